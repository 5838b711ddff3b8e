//! `farpace papers nics`: the paper on one TCP connection over several unequal network cards.
//!
//! Its authors gave two hosts a card of 1 Gbit/s and one of 100 Mbit/s each, sent the frames of one connection by both, and
//! those for the narrow card ahead of their turn by a skip number S. Here the same is measured again: `plan` says what,
//! `printed` holds the paper's numbers, `host` the machines that had to be assumed, `case` makes a run. `claims`, `rows` and
//! `tables` say what came out, `figures` and `page` show it, `turns` turns what the paper leaves open. `sets` and `beyond` are
//! other cards, other orders and lines of a house, `failure` is a card that dies and comes back.

mod beyond;
mod case;
mod claims;
mod failure;
mod figures;
mod host;
mod page;
mod plan;
mod printed;
mod results;
mod rows;
mod sets;
mod tables;
mod turns;

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
Every byte received is compared with the byte sent. The result depends on nothing but the scenarios
(scenarios/papers/nics.toml, with --set; those of other cards are in the report) and the version of farpace.

Examples:
  farpace papers nics                      report in out/nics/report.html
  farpace papers nics --quick              the paper's runs of 1 s, and few of what goes beyond it
  farpace papers nics --json | jq '.claims[] | select(.holds | not)'
  farpace papers nics --set links.b-wide.forward.interrupts='{ delay = \"50 us\" }'

Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    bytes arrived other than they were sent; with --strict also: a claim fails
  2    wrong usage, or a file that cannot be written
  130  interrupted; nothing was written";

/// The arguments of `farpace papers nics`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print {"paper", "rows", "claims"} as JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/nics")]
    pub out: PathBuf,
    /// Less of everything: shorter runs, fewer orders and sets of cards, nothing turned
    #[arg(long)]
    pub quick: bool,
    /// Virtual time of each of the paper's transfers [default: 3 s; with --quick 1 s]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the paper's scenario in each of its runs, as in links.a-wide.delay="5 us"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Exit with 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
}

/// `farpace papers nics`.
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
    if args.time.is_some_and(|time| time < Span::from_millis(200) || time > Span::from_secs(600)) {
        bail!("--time must be from 200 ms to 600 s");
    }
    interrupt::install();
    let plan = Plan::new(args);
    plan.check()?;
    let out = OutDir::open(&args.out, &[REPORT.to_owned()])?;
    let measured = match run_all_or_end(&plan.cases, args.threads, |case| plan.measure(case)) {
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
