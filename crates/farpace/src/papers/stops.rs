//! `farpace papers stops`: the paper on communication stops.
//!
//! Its authors sent 1 GB through a router that polices to 500 Mbit/s, and found transfers that stood still for
//! seconds. They traced this to three defects of Linux 2.6.17 and cured the third one themselves. Here the same
//! transfers run again: `plan` says which, `measure` makes one, `claims`, `rows` and `tables` say what came out,
//! `page` shows it. `docs/papers/stops.md` tells the story.

mod claims;
mod measure;
mod page;
mod payload;
mod plan;
mod results;
mod rows;
mod tables;

use super::{Made, REPORT, Saying};
use crate::outdir::OutDir;
use crate::scenario::parse_set;
use crate::{interrupt, terminal};
use anyhow::{Context, Result};
use farpace_report::Reproduction;
use indicatif::{ProgressBar, ProgressStyle};
use measure::Measurement;
use plan::{Job, Plan};
use rayon::prelude::*;
use results::Results;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Every run is one transfer in virtual time; every byte received is compared with the byte sent. The result depends
on nothing but the scenario (scenarios/papers/stops.toml, with --set) and the version of farpace.

Examples:
  farpace papers stops                       about a minute; report in out/stops/report.html
  farpace papers stops --quick               one window, three phases
  farpace papers stops --real-file           sends a file of 1 GB from the disk, not a pattern
  farpace papers stops --json | jq '.claims[] | select(.holds | not)'

Exit codes:
  0    all runs were made and all bytes arrived; claims may fail, which is printed
  1    a transfer did not complete or bytes differ; with --strict also: a claim fails
  2    wrong usage, or a file that cannot be read or written
  130  interrupted";

/// The arguments of `farpace papers stops`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Print {"paper", "rows", "claims"} as JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/stops")]
    pub out: PathBuf,
    /// Less of everything: the window of 2500 packets and three policer phases
    #[arg(long)]
    pub quick: bool,
    /// Policer phases per row of Table 2 [default: 10, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub phases: Option<u32>,
    /// A file that every run sends, in place of a pattern of the scenario's size
    #[arg(long, value_name = "FILE", conflicts_with = "real_file")]
    pub payload: Option<PathBuf>,
    /// Make a file of the scenario's size with pseudo-random bytes, send it in every run, and remove it
    #[arg(long)]
    pub real_file: bool,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the scenario in every run, as in flows.bulk.size="100 MB"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Exit with 1 if a claim fails
    #[arg(long)]
    pub strict: bool,
}

/// `farpace papers stops`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    made(args, Saying::all(args.json)).map(|made| super::ended(made, args.strict))
}

/// The same for a page on all papers; the exit code if not all runs were made.
///
/// # Errors
/// As [`run`].
pub fn made(args: &Args, saying: Saying) -> Result<Made> {
    interrupt::install();
    let plan = Plan::new(args.quick, args.phases, &args.set)?;
    let out = OutDir::open(&args.out, &[REPORT.to_owned()])?;
    let payload = payload::prepare(args, &plan.base()?, out.staging())?;
    let Some(measured) = measure_all(args, &plan, &payload)? else {
        terminal::note("Interrupted: nothing was written.");
        return Ok(Err(ExitCode::from(terminal::INTERRUPTED)));
    };
    let broken: Vec<&str> = measured.iter().filter_map(|m| m.broken.as_deref()).collect();
    if !broken.is_empty() {
        for line in &broken {
            terminal::note(&format!("error: {line}"));
        }
        return Ok(Err(ExitCode::from(terminal::FAILED)));
    }
    let results = Results::new(&plan, measured, payload.size());
    let figures = page::Figures::measure(&plan, &results, &payload)?;
    payload.remove();
    let reproduction = Reproduction {
        paper: plan::PAPER.to_owned(),
        rows: rows::rows(&results),
        claims: claims::claims(&results),
    };
    let text = tables::text(&results, &reproduction);
    let report = page::report(args, &results, &reproduction, &figures);
    super::deliver(out, saying, reproduction, &text, report)
}

/// All runs, in the order of the plan whatever the number of threads; none if interrupted.
fn measure_all(args: &Args, plan: &Plan, payload: &payload::Source) -> Result<Option<Vec<Measurement>>> {
    let jobs: Vec<Job> = plan.jobs();
    let bar = ProgressBar::new(jobs.len() as u64);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} transfers  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.tick();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(args.threads.map_or(0, usize::from)).build();
    let one = |job: &Job| -> Result<Option<Measurement>> {
        bar.set_message(job.key.to_string());
        let measured = measure::run(&plan.scenario(job)?, payload.payload(), &job.to_string());
        bar.inc(1);
        measured
    };
    let all: Result<Option<Vec<Measurement>>> = pool
        .context("no threads")?
        .install(|| jobs.par_iter().with_max_len(1).map(one).collect::<Result<Vec<_>>>())
        .map(|all| all.into_iter().collect());
    bar.finish_and_clear();
    all
}
