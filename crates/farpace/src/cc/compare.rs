//! `farpace cc compare`: all congestion controls on one path.

use crate::experiments::{ExperimentArgs, OutputForm, command_line, end, make};
use crate::scenario::load;
use crate::terminal;
use anyhow::{Result, bail};
use farpace_papers::chosen_controls;
use farpace_papers::controls::ControlComparison;
use farpace_process::interrupt;
use farpace_units::Span;
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Every congestion control sends over the same path, in virtual time, for so long and with so many
seeds: alone, beside a second flow of its own kind, and beside a flow of CUBIC. The first flow of
the scenario says what TCP there is around it. Its other flows and datagrams stay in all runs:
`alone` is then without a second flow, and the report names them. Flows are never short of data.

Columns:
  goodput        payload per time, alone
  delay          time that packets spent in queues, alone: mean, 95th and 99th percentile
  retransmitted  of all segments sent, alone
  fairness       Jain's index of two flows of the same kind: 1 is equal, 0.5 is all for one
  CUBIC keeps    what a flow of CUBIC gets beside it, of what it gets beside another CUBIC

Examples:
  farpace cc compare --path satellite
  farpace cc compare --path lossy --only reno,cubic,bbr3 --seeds 5
  farpace cc compare --path scenarios/gallery/lossy.toml --time \"30 s\" --json

Exit codes:
  0    the comparison was made
  1    bytes arrived other than they were sent
  2    wrong usage, a bad scenario, or a file that cannot be read or written
  130  interrupted; the same command continues with the finished runs";

/// The arguments of `farpace cc compare`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The path: satellite, lfn, policed, lossy, or a scenario file
    #[arg(long, value_name = "PATH")]
    pub path: String,
    /// Only these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Runs of each kind
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Virtual time of each run, as in "90 s" [default: the scenario's; of a file at most 60 s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// The options of every experiment.
    #[command(flatten)]
    #[serde(flatten)]
    pub common: ExperimentArgs,
}

/// `farpace cc compare`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let controls = chosen_controls(&args.only)?;
    let (path, set) = (&args.path, &args.common.set);
    let base = match ControlComparison::named_path(path, set)? {
        Some(base) => base,
        None if !Path::new(path).exists() && Path::new(path).extension().is_none() => {
            let names = ControlComparison::path_names().join(", ");
            bail!("there is no path `{path}`: {names}, or a scenario file");
        }
        None => load(Path::new(path), set)?,
    };
    let comparison = ControlComparison::new(path, base, controls, args.seeds, args.time)?;
    for name in comparison.left_out() {
        terminal::note(&format!("note: {name} is left out: the profile of this scenario does not take it"));
    }
    let (line, dir) = (command_line("cc compare", args), args.common.dir("cc"));
    Ok(end(make(&comparison, &line, &args.common, &dir, OutputForm::of(args.common.json))?, false))
}
