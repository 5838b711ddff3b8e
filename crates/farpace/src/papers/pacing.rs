//! `farpace papers pacing`: the paper on precise pacing by gap packets.
//!
//! Its authors kept packets apart by PAUSE frames, whose bytes are the clock, and compared that with a token bucket and with
//! nothing: bandwidth per packet, burstiness, and TCP over 200 ms through a small FIFO. Here the same is measured again:
//! `plan` says what, `printed` holds the paper's numbers, `pace` what paces. `lines` drives schedulers whose classes always have
//! packets, `switching` those that begin and end, `transfers` runs TCP; `sets` looks for classes that the paper's order does not
//! pace precisely. `claims`, `rows` and `tables` say what came out, `figures` and `page` show it, `sensitivity` turns
//! what the paper leaves open.

mod claims;
mod drive;
mod figures;
mod lines;
mod pace;
mod page;
mod plan;
mod printed;
mod results;
mod rows;
mod sensitivity;
mod sets;
mod switching;
mod tables;
mod transfers;

use super::{Made, REPORT, Saying};
use crate::grid::run_all_or_end;
use crate::interrupt;
use crate::outdir::OutDir;
use crate::scenario::parse_set;
use anyhow::{Result, bail};
use farpace_report::Reproduction;
use farpace_units::Span;
use plan::Plan;
use results::Results;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Table 5 is made of transfers of 5 minutes at 500 Mbit/s in virtual time: all of it takes some minutes on
two cores. Every byte received is compared with the byte sent. The result depends on nothing but the
scenarios (scenarios/papers/pacing.toml and pacing-two.toml, with --set) and the version of farpace.

Examples:
  farpace papers pacing                      report in out/pacing/report.html
  farpace papers pacing --quick              transfers of 1 minute, fewer packets, no sensitivity tables
  farpace papers pacing --full               what goes beyond the paper takes 5 minutes as well
  farpace papers pacing --json | jq '.claims[] | select(.holds | not)'

Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    bytes arrived other than they were sent; with --strict also: a claim fails
  2    wrong usage, or a file that cannot be written
  130  interrupted; nothing was written";

/// The arguments of `farpace papers pacing`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print {"paper", "rows", "claims"} as JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/pacing")]
    pub out: PathBuf,
    /// Less of everything: transfers of 60 s, 20,000 packets a row, no sensitivity tables
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
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the scenarios in every transfer, as in links.line.delay="50 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Exit with 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
}

/// `farpace papers pacing`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    made(args, Saying::all(args.json)).map(|made| super::ended(made, args.strict))
}

/// The same for a page on all papers; the exit code if not all runs were made.
///
/// # Errors
/// As [`run`].
pub fn made(args: &Args, saying: Saying) -> Result<Made> {
    if args.time.is_some_and(|time| time < Span::from_secs(3) || time > Span::from_secs(3600)) {
        bail!("--time must be from 3 s to 3600 s");
    }
    interrupt::install();
    let plan = Plan::new(args);
    plan.check()?;
    let out = OutDir::open(&args.out, &[REPORT.to_owned()])?;
    let measured = match run_all_or_end(&plan.jobs, args.threads, |job| plan.measure(job)) {
        Ok(measured) => measured,
        Err(code) => return Ok(Err(code)),
    };
    let results = Results::new(plan, measured);
    let reproduction = Reproduction {
        paper: plan::PAPER.to_owned(),
        rows: rows::rows(&results),
        claims: claims::claims(&results),
    };
    let text = tables::text(&results, &reproduction);
    let report = page::report(args, &results, &reproduction);
    super::deliver(out, saying, reproduction, &text, report)
}
