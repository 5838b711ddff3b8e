//! `farpace cc compare`: all congestion controls on one path.
//!
//! Each runs alone, beside itself, and beside CUBIC: `plan` says which runs, `results` what came out, `page` shows it.

mod page;
mod plan;
mod results;

use super::chosen;
use crate::grid::{measure, run_all_or_end};
use crate::outdir::OutDir;
use crate::scenario::parse_set;
use crate::{interrupt, terminal};
use anyhow::{Result, bail};
use farpace_units::Span;
use plan::Plan;
use results::Results;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Every congestion control sends over the same path, in virtual time, for so long and with so many
seeds: alone, beside a second flow of its own kind, and beside a flow of CUBIC. The first flow of
the scenario says what TCP there is around it. Flows are never short of data.

Columns:
  goodput        payload per time, alone
  delay          time in queues on the way of data, alone: mean, and 95th percentile
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
  130  interrupted; nothing was written";

/// The arguments of `farpace cc compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The path: satellite, lfn, policed, lossy, or a scenario file
    #[arg(long, value_name = "PATH")]
    pub path: String,
    /// Only these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Runs of each kind, with different dice
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Virtual time of each run, as in "90 s" [default: the scenario's; of a file at most 60 s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// Print JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/cc")]
    pub out: PathBuf,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the scenario in every run, as in links.wan.queue="50 kB"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
}

/// `farpace cc compare`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let plan = Plan::new(args, &chosen(&args.only)?)?;
    for name in &plan.refused {
        terminal::note(&format!("note: {name} is left out: the profile of this scenario does not take it"));
    }
    if plan.contenders.is_empty() {
        bail!("no congestion control is left to compare");
    }
    let out = OutDir::open(&args.out, &["report.html".to_owned()])?;
    let measured = run_all_or_end(&plan.jobs(), args.threads, |job| measure(&plan.scenario(job), false));
    let measured = match measured {
        Ok(measured) => measured,
        Err(code) => return Ok(code),
    };
    let results = Results::new(&plan, measured);
    if args.json {
        terminal::print_json(&results.json(&plan))?;
    } else {
        terminal::print(&results.table(&plan).to_text())?;
    }
    let written = page::write(out, args, &plan, &results)?;
    terminal::say_where(&written, args.json)?;
    Ok(ExitCode::SUCCESS)
}
