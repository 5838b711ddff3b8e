//! `farpace together`: the cures of all five papers on one path.
//!
//! Each was found on a path with one trouble. Here paths have all five, and cures are taken out one by one and put in one by one, as
//! the papers print them and as they would be done today. `cures` says what each changes in a scenario, `plan` which runs are
//! made, `measure` says what is looked at, `devices` repeats them in real time, `results` and `page` show what came out.

mod cures;
mod devices;
mod measure;
mod page;
mod plan;
mod results;

use crate::grid::run_all_or_end;
use crate::outdir::OutDir;
use crate::scenario::parse_set;
use crate::{interrupt, terminal};
use anyhow::{Result, bail};
use farpace_units::Span;
use std::path::PathBuf;
use std::process::ExitCode;

pub use page::{add_to, figures};
pub use results::{Results, json};

use plan::{Plan, meetings};

const AFTER_HELP: &str = "\
Paths, from scenarios/gallery:
  ship     two cards, two policed contracts, one satellite: 500 ms, bit errors, a small queue (together.toml)
  office   two policed lines to a data centre: 60 ms, a small queue, no bit errors (together-office.toml)

Cures, each as its paper prints it, and as it is done today:
  recovery   of lost retransmissions    remedy B in Linux 2.6.22         RACK-TLP, PRR, F-RTO, undo
  control    of congestion              TCP-STAR                         farpace
  asking     for ACKs                   the CDL bit                      TARR
  pacing     at the cards               PSPacer, highest rate first      earliest deadline first
  cards      several as one             frames sent ahead by a number    frames sent to arrive in turn

Examples:
  farpace together                           report in out/together/report.html
  farpace together --path ship --seeds 5
  farpace together --path office --time \"5 s\" --json
  sudo farpace together --path office --devices    the same in real time, three minutes more

Exit codes:
  0    the comparison was made
  1    bytes arrived other than they were sent
  2    wrong usage, or a file that cannot be written
  130  interrupted; nothing was written";

/// The arguments of `farpace together`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Only this path: ship or office [default: both]
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Runs of each kind, with different dice
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Virtual time of each run, as in "90 s" [default: the scenario's]
    #[arg(long, value_name = "TIME")]
    pub time: Option<Span>,
    /// Also on devices of this machine, in real time (needs root, and a machine that has nothing else to do): 16 runs a path, one after another
    #[arg(long)]
    pub devices: bool,
    /// Print JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/together")]
    pub out: PathBuf,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Replace a value of the scenarios in every run, as in links.space.delay="300 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
}

/// `farpace together`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let chosen: Vec<_> =
        meetings().into_iter().filter(|m| args.path.as_ref().is_none_or(|path| path == m.name)).collect();
    if let Some(path) = args.path.as_ref().filter(|_| chosen.is_empty()) {
        let names: Vec<&str> = meetings().iter().map(|m| m.name).collect();
        bail!("there is no path `{path}`: {}", names.join(", "));
    }
    let plans: Vec<Plan> =
        chosen.into_iter().map(|m| Plan::new(m, args.seeds, args.time, &args.set)).collect::<Result<_>>()?;
    let out = OutDir::open(&args.out, &["report.html".to_owned()])?;
    let mut all = match all(plans, args.threads) {
        Ok(all) => all,
        Err(code) => return Ok(code),
    };
    for results in &mut all {
        if args.devices {
            match devices::measure(&results.plan) {
                Ok(devices) => results.devices = devices,
                Err(code) => return Ok(code),
            }
        }
    }
    if args.json {
        terminal::print_json(&results::json(&all))?;
    } else {
        for results in &all {
            terminal::print(&results.text())?;
        }
    }
    page::write(out, args, &all)?;
    terminal::say_where(&args.out.join("report.html"), args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// All paths with their own times; the exit code if not all runs were made.
///
/// # Errors
/// A scenario that cannot run.
pub fn measured(seeds: u64, threads: Option<u16>) -> Result<Result<Vec<Results>, ExitCode>> {
    let plans = meetings().map(|meeting| Plan::new(meeting, seeds, None, &[]));
    Ok(all(plans.into_iter().collect::<Result<_>>()?, threads))
}

fn all(plans: Vec<Plan>, threads: Option<u16>) -> Result<Vec<Results>, ExitCode> {
    let mut all = Vec::new();
    for plan in plans {
        let measured = run_all_or_end(&plan.jobs(), threads, |job| plan.measure(job))?;
        all.push(Results::new(plan, measured));
    }
    Ok(all)
}
