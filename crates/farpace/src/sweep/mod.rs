//! `farpace sweep`: many runs of a scenario with varied values and seeds, in a folder that grows.
//!
//! Start reading at [`run`]; `make` is the sweep itself, `show` its tables and page, `progress` what is said
//! meanwhile.

mod make;
mod progress;
mod show;

pub(crate) use progress::duration;

use crate::terminal;
use anyhow::Result;
use farpace_study::merge;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use make::{SweepArgs, version};
pub use show::ShowArgs;

const AFTER_HELP: &str = "\
Values behind --vary, separated by commas:
  cubic,bbr3              words and numbers, as behind --set
  5ms..300ms*7            seven values at equal distances
  1e-5..1e-2*log4         four values at equal ratios
  5ms..300ms              a range for --samples; 5ms..300ms*log with equal shares of the logarithm

The folder holds study.json (plan, version, digest), scenario.toml, and runs.parquet with a row for each
flow of each run. Existing runs are not made again: an interrupted sweep continues with the same
command, and one with more values or seeds makes only what is new. A run that crashes, is impossible or
takes too long is a row with its reason.

Examples:
  farpace sweep wan.toml --vary links.wan.delay=5ms..300ms*7 --vary flows.0.sender.congestion=cubic,bbr3
  farpace sweep wan.toml --vary links.wan.forward.loss=0,1e-5..1e-2*log4 --seeds 100 --stop-at 2%
  farpace sweep wan.toml --vary links.wan.delay=1ms..300ms*log --vary links.wan.rate=1Mbit/s..1Gbit/s*log \\
      --samples sobol:256
  farpace sweep wan.toml --vary links.wan.delay=5ms,50ms --seeds 1000 --out study --shard 3/16
  farpace sweep merge study --out study
  farpace sweep wan.toml --vary links.wan.delay=5ms,50ms --seeds 1000 --out study --ray 10.0.0.1:6379
  farpace sweep show study --x links.wan.delay --metric goodput

Exit codes:
  0    all runs were made
  1    a run crashed, failed, was impossible or took too long, received bytes differ, or merge lacks runs
  2    wrong usage, a bad scenario, or a file that cannot be read or written
  130  interrupted; the same command continues with the finished runs";

const MERGE_HELP: &str = "\
Examples:
  farpace sweep merge study --out study            the shards below study, into study itself
  farpace sweep merge node1 node2 --out study      folders that were brought together";

/// The arguments of `farpace sweep`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    sweep: SweepArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Print the means of a study, and draw small multiples and heat maps
    Show(ShowArgs),
    /// Join the shards of a study, or folders with parts of it
    #[command(after_help = MERGE_HELP)]
    Merge {
        /// Studies with the same plan; one with shards below it stands for these
        #[arg(required = true, value_name = "DIR")]
        parts: Vec<PathBuf>,
        /// The study that gets all runs
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

/// `farpace sweep`.
///
/// # Errors
/// A study that cannot be made, read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        None => make::make(&args.sweep),
        Some(Command::Show(args)) => show::show(args),
        Some(Command::Merge { parts, out }) => join(parts, out),
    }
}

fn join(parts: &[PathBuf], out: &Path) -> Result<ExitCode> {
    let merged = merge(parts, out)?;
    let p = &merged.provenance;
    terminal::print(&format!("{} runs in {}, digest {}\n", p.runs, out.display(), p.digest))?;
    let lacks = merged.lacks();
    lacks.iter().for_each(|lacks| terminal::note(lacks));
    Ok(if lacks.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
