//! `farpace papers pacing`: its options.

use super::{PaperArgs, exit_codes, make_paper};
use crate::experiments::{Made, OutputForm, command_line};
use anyhow::Result;
use farpace_papers::pacing::PacingPaper;
use farpace_units::Span;
use serde::Serialize;

const AFTER_HELP: &str = concat!(
    "\
Table 5 is made of transfers of 5 minutes at 500 Mbit/s in virtual time: all of it takes some minutes on
two cores. Every byte received is compared with the byte sent. The result depends on nothing but the
scenarios (scenarios/papers/pacing.toml and pacing-two.toml, with --set) and the version of farpace.

Examples:
  farpace papers pacing                      report in out/pacing/report.html
  farpace papers pacing --quick              transfers of 1 minute, fewer packets, no sensitivity tables
  farpace papers pacing --full               what goes beyond the paper takes 5 minutes as well
  farpace papers pacing --json | jq '.claims[] | select(.holds | not)'

",
    exit_codes!()
);

/// The arguments of `farpace papers pacing`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Less of everything: transfers of 60 s, 10,000 packets a row, no sensitivity tables
    #[arg(long)]
    pub quick: bool,
    /// Transfers that are not in the paper are as long as the paper's, not 60 s
    #[arg(long, conflicts_with = "quick")]
    pub full: bool,
    /// Virtual time of each transfer of Table 5 [default: 300 s, as in the paper; with --quick 60 s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// Random sets of classes to search [default: 1000; with --quick 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub sets: Option<u32>,
    /// The options of every paper.
    #[command(flatten)]
    #[serde(flatten)]
    pub paper: PaperArgs,
}

pub(super) fn make(args: &Args, form: OutputForm) -> Result<Made> {
    let common = &args.paper.common;
    let paper = PacingPaper::new([args.quick, args.full], args.time, args.sets, &common.set)?;
    make_paper(paper, &command_line("papers pacing", args), &args.paper, &common.dir("pacing"), form)
}
