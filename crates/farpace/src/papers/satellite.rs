//! `farpace papers satellite`: the paper on TCP-STAR.
//!
//! Its authors put TCP-STAR into NetBSD and compared it with TCP-J, HighSpeed TCP, Scalable TCP and NewReno over an
//! emulated satellite link: bit errors, lost ACKs, one and two flows, a large and a small router queue. Here the same
//! runs are made again: `plan` says which, `claims`, `rows` and `tables` say what came out, `figures` and `page` show
//! it. `sensitivity` turns what the paper leaves open; `frontier` puts every congestion control on the same grid.

mod claims;
mod figures;
mod frontier;
mod page;
mod plan;
mod results;
mod rows;
mod sensitivity;
mod tables;

use super::{Made, REPORT, Saying};
use crate::grid::{measure, run_all_or_end};
use crate::outdir::OutDir;
use crate::scenario::parse_set;
use crate::{interrupt, terminal};
use anyhow::{Result, bail};
use farpace_report::Reproduction;
use farpace_units::Span;
use plan::Plan;
use results::Results;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Every run is a bulk transfer of 60 s in virtual time; every byte received is compared with the byte
sent. The result depends on nothing but the scenarios (scenarios/papers/satellite.toml and
satellite-two.toml, with --set) and the version of farpace.

Examples:
  farpace papers satellite                   report in out/satellite/report.html
  farpace papers satellite --quick           five seeds, no sensitivity table
  farpace papers satellite --json | jq '.claims[] | select(.holds | not)'
  farpace papers satellite --frontier --seeds 3
  farpace papers satellite --frontier --only cubic,bbr3,star-robust

Exit codes:
  0    all runs were made and all bytes were right; claims may fail, which is printed
  1    bytes arrived other than they were sent; with --strict also: a claim fails
  2    wrong usage, or a file that cannot be written
  130  interrupted; nothing was written";

/// The arguments of `farpace papers satellite`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print {"paper", "rows", "claims"} as JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/satellite")]
    pub out: PathBuf,
    /// Less of everything: two seeds, and no sensitivity table
    #[arg(long)]
    pub quick: bool,
    /// Runs of each cell, with different dice [default: 10; with --quick 5, with --frontier 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: Option<u64>,
    /// Virtual time of each run
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    pub time: Span,
    /// Not the paper: every congestion control, on a stack of today, over the same grid
    #[arg(long, conflicts_with_all = ["quick", "strict"])]
    pub frontier: bool,
    /// With --frontier: only these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', requires = "frontier")]
    pub only: Vec<String>,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the scenarios in every run, as in links.satellite.rate="20 Mbit/s"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Exit with 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
}

/// `farpace papers satellite`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if !args.frontier {
        return made(args, Saying::all(args.json)).map(|made| super::ended(made, args.strict));
    }
    check_time(args)?;
    interrupt::install();
    let plan = frontier::plan(args, &crate::cc::chosen(&args.only)?);
    plan.check()?;
    let out = OutDir::open(&args.out, &[REPORT.to_owned()])?;
    let measured =
        run_all_or_end(&plan.jobs, args.threads, |job| measure(&plan.scenario(job)?, job.readings));
    let results = match measured {
        Ok(measured) => Results::new(&plan, measured),
        Err(code) => return Ok(code),
    };
    frontier::show(args, &results, out)?;
    terminal::say_where(&args.out.join("report.html"), args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn check_time(args: &Args) -> Result<()> {
    if args.time < Span::from_secs(4) || args.time > Span::from_secs(3600) {
        bail!("--time must be from 4 s to 3600 s");
    }
    Ok(())
}

/// The paper for a page on all papers; the exit code if not all runs were made.
///
/// # Errors
/// As [`run`].
pub fn made(args: &Args, saying: Saying) -> Result<Made> {
    check_time(args)?;
    interrupt::install();
    let plan = Plan::paper(args);
    plan.check()?;
    let out = OutDir::open(&args.out, &[REPORT.to_owned()])?;
    let measured =
        run_all_or_end(&plan.jobs, args.threads, |job| measure(&plan.scenario(job)?, job.readings));
    let results = match measured {
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
