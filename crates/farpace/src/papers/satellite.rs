//! `farpace papers satellite`: its options.

use super::{PaperArgs, exit_codes, make_paper};
use crate::experiments::{self, Made, OutputForm, command_line};
use anyhow::Result;
use farpace_papers::satellite::{Frontier, SatellitePaper};
use farpace_units::Span;
use serde::Serialize;

const AFTER_HELP: &str = concat!(
    "\
Every run is a bulk transfer in virtual time; every byte received is compared with the byte sent. The
result depends on nothing but the scenarios (scenarios/papers/satellite.toml and satellite-two.toml, with
--set) and the version of farpace.

Examples:
  farpace papers satellite                   report in out/satellite/report.html
  farpace papers satellite --quick           five seeds, no sensitivity table
  farpace papers satellite --json | jq '.claims[] | select(.holds | not)'
  farpace papers satellite --frontier --seeds 3
  farpace papers satellite --frontier --only cubic,bbr3,star-robust

",
    exit_codes!()
);

/// The arguments of `farpace papers satellite`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Less of everything: five seeds, and no sensitivity table
    #[arg(long)]
    pub quick: bool,
    /// Runs of each cell [default: 10; with --quick 5, with --frontier 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Virtual time of each run [default: 60 s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// Beyond the paper: every congestion control, on a modern stack, over the same grid
    #[arg(long, conflicts_with_all = ["quick", "strict", "assume", "search"])]
    pub frontier: bool,
    /// With --frontier: only these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "frontier")]
    pub only: Vec<String>,
    /// The options of every paper.
    #[command(flatten)]
    #[serde(flatten)]
    pub paper: PaperArgs,
}

pub(super) fn make(args: &Args, form: OutputForm) -> Result<Made> {
    let common = &args.paper.common;
    let (time, set) = (args.time.unwrap_or(Span::from_secs(60)), &common.set);
    let (dir, line) = (common.dir("satellite"), command_line("papers satellite", args));
    if args.frontier {
        let frontier = Frontier::new(&args.only, args.seeds, time, set)?;
        return experiments::make(&frontier, &line, common, &dir, form);
    }
    let paper = SatellitePaper::new(args.quick, args.seeds, time, set)?;
    make_paper(paper, &line, &args.paper, &dir, form)
}
