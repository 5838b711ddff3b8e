//! `farpace papers ack`: the thesis on CDL, by which a sender asks for ACKs that are not delayed.
//!
//! Its author put a flag into BSD's TCP that cancels the receiver's delayed ACK, and sent for 10 s over an emulated line
//! of 512 kbit/s with six policies of when to set it. Here the same runs are made again: `cases` and `plan` say
//! which, `thesis` holds its numbers, `claims`, `rows` and `tables` say what came out, `figures` and `page` show it.
//! `clocks` measures what its chapter 6 proposes, `sensitivity` turns what it leaves open.
//! `today` asks what is left of the gain on a stack of today, `estimators` compares estimators of the timeout.

mod cases;
mod claims;
mod clocks;
mod estimators;
mod figures;
mod measure;
mod page;
mod plan;
mod results;
mod round_trips;
mod rows;
mod sensitivity;
mod tables;
mod thesis;
mod today;

use super::{Made, REPORT, Saying};
use crate::grid::run_all_or_end;
use crate::interrupt;
use crate::outdir::OutDir;
use crate::scenario::parse_set;
use anyhow::Result;
use farpace_report::Reproduction;
use measure::measure;
use plan::Plan;
use results::Results;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Every run is a bulk transfer of 10 s in virtual time; every byte received is compared with the byte
sent. The result depends on nothing but the scenario (scenarios/papers/ack.toml, with --set) and the
version of farpace. It takes some seconds; --today and --estimators take about half a minute each.

Examples:
  farpace papers ack                         report in out/ack/report.html
  farpace papers ack --quick                 two clock phases, no sensitivity table
  farpace papers ack --json | jq '.claims[] | select(.holds | not)'
  farpace papers ack --today                 not the thesis: the same idea on paths and stacks of today
  farpace papers ack --estimators            not the thesis: estimators of the timeout, side by side

Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    bytes arrived other than they were sent; with --strict also: a claim fails
  2    wrong usage, or a file that cannot be written
  130  interrupted; nothing was written";

/// The arguments of `farpace papers ack`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print {"paper", "rows", "claims"} as JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg [default: out/ack, out/ack-today or out/ack-estimators]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Less of everything: two clock phases, and no sensitivity table
    #[arg(long)]
    pub quick: bool,
    /// Not the thesis: policies on the paths and stacks of today
    #[arg(long, conflicts_with_all = ["estimators", "strict"])]
    pub today: bool,
    /// Not the thesis: estimators of the timeout, with and without confirmed samples
    #[arg(long, conflicts_with = "strict")]
    pub estimators: bool,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the scenario in every run, as in links.line.rate="1 Mbit/s"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Exit with 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
}

impl Args {
    /// Where the report goes.
    pub fn out_dir(&self) -> PathBuf {
        let name = match self {
            Args { today: true, .. } => "out/ack-today",
            Args { estimators: true, .. } => "out/ack-estimators",
            _ => "out/ack",
        };
        self.out.clone().unwrap_or_else(|| PathBuf::from(name))
    }
}

/// `farpace papers ack`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match args {
        Args { today: true, .. } => today::run(args),
        Args { estimators: true, .. } => estimators::run(args),
        _ => made(args, Saying::all(args.json)).map(|made| super::ended(made, args.strict)),
    }
}

/// The thesis for a page on all papers; the exit code if not all runs were made.
///
/// # Errors
/// As [`run`].
pub fn made(args: &Args, saying: Saying) -> Result<Made> {
    interrupt::install();
    let plan = Plan::new(args);
    plan.check()?;
    let out = OutDir::open(&args.out_dir(), &[REPORT.to_owned()])?;
    let results = match run_all_or_end(&plan.jobs, args.threads, |job| measure(&plan, job)) {
        Ok(measured) => Results::new(&plan, measured),
        Err(code) => return Ok(Err(code)),
    };
    let reproduction = Reproduction {
        paper: plan::PAPER.to_owned(),
        rows: rows::rows(&results),
        claims: claims::claims(&results),
    };
    let text = tables::text(&results, &reproduction);
    let report = page::report(args, &results, &reproduction);
    super::deliver(out, saying, reproduction, &text, report)
}
