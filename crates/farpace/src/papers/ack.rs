//! `farpace papers ack`: its options.

use super::{PaperArgs, exit_codes, make_paper};
use crate::experiments::{self, Made, OutputForm, command_line};
use anyhow::Result;
use farpace_papers::ack::{AckPaper, EstimatorsOfAcks, ModernAcks};
use serde::Serialize;

const AFTER_HELP: &str = concat!(
    "\
Every run is a bulk transfer of 10 s in virtual time; every byte received is compared with the byte
sent. The result depends on nothing but the scenario (scenarios/papers/ack.toml, with --set) and the
version of farpace. It takes some seconds; --today and --estimators take about half a minute each.

Examples:
  farpace papers ack                         report in out/ack/report.html
  farpace papers ack --quick                 two clock phases, no sensitivity table
  farpace papers ack --json | jq '.claims[] | select(.holds | not)'
  farpace papers ack --today                 not the thesis: the same idea with modern paths and stacks
  farpace papers ack --estimators            not the thesis: estimators of the timeout, side by side

",
    exit_codes!()
);

/// The arguments of `farpace papers ack`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Less of everything: two clock phases, and no sensitivity table
    #[arg(long)]
    pub quick: bool,
    /// Beyond the thesis: policies with modern paths and stacks, to out/ack-today
    #[arg(long, conflicts_with_all = ["estimators", "strict", "assume", "search"])]
    pub today: bool,
    /// Beyond the thesis: estimators of the timeout, with and without confirmed samples, to
    /// out/ack-estimators
    #[arg(long, conflicts_with_all = ["strict", "assume", "search"])]
    pub estimators: bool,
    /// The options of every paper.
    #[command(flatten)]
    #[serde(flatten)]
    pub paper: PaperArgs,
}

pub(super) fn make(args: &Args, form: OutputForm) -> Result<Made> {
    let common = &args.paper.common;
    let line = command_line("papers ack", args);
    match args {
        Args { today: true, .. } => {
            let modern = ModernAcks::new(args.quick);
            experiments::make(&modern, &line, common, &common.dir("ack-today"), form)
        }
        Args { estimators: true, .. } => {
            let estimators = EstimatorsOfAcks::new(args.quick);
            experiments::make(&estimators, &line, common, &common.dir("ack-estimators"), form)
        }
        _ => {
            let paper = AckPaper::new(args.quick, &common.set);
            make_paper(paper, &line, &args.paper, &common.dir("ack"), form)
        }
    }
}
