//! `farpace papers nics`: its options.

use super::{PaperArgs, exit_codes, make_paper};
use crate::experiments::{Made, OutputForm, command_line};
use anyhow::Result;
use farpace_papers::nics::NicsPaper;
use farpace_units::Span;
use serde::Serialize;

const AFTER_HELP: &str = concat!(
    "\
Every byte received is compared with the byte sent. The result depends on nothing but the scenarios
(scenarios/papers/nics.toml, with --set; those of other NICs are in the report) and the version of farpace.

Examples:
  farpace papers nics                      report in out/nics/report.html
  farpace papers nics --quick              the paper's runs of 1 s, and few of what goes beyond it
  farpace papers nics --json | jq '.claims[] | select(.holds | not)'
  farpace papers nics --set links.b-wide.forward.interrupts='{ delay = \"50 us\" }'

",
    exit_codes!()
);

/// The arguments of `farpace papers nics`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Less of everything: shorter runs, fewer orders and sets of NICs, no sensitivity table
    #[arg(long)]
    pub quick: bool,
    /// Virtual time of each of the paper's transfers [default: 3 s; with --quick 1 s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// The options of every paper. --set changes the paper's scenario alone.
    #[command(flatten)]
    #[serde(flatten)]
    pub paper: PaperArgs,
}

pub(super) fn make(args: &Args, form: OutputForm) -> Result<Made> {
    let common = &args.paper.common;
    let paper = NicsPaper::new(args.quick, args.time, &common.set)?;
    make_paper(paper, &command_line("papers nics", args), &args.paper, &common.dir("nics"), form)
}
