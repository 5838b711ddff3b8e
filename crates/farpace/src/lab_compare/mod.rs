//! `farpace lab compare`: the lab against reality.
//!
//! One bulk transfer over the network of a scenario, in up to three ways: `lab` (virtual time), `farpace`
//! (our engine at both ends, on devices in real time), `kernel` (the kernel's TCP at both ends of the same).
//! `plan` says what is run, `virtual_time` and `real_time` run it (`ends` are the ends in real time),
//! `results` holds them against each other, `page` shows them.

mod backend_run;
mod ends;
mod page;
mod plan;
mod real_time;
mod results;
mod virtual_time;

pub use backend_run::BackendRun;
pub use plan::Backend;

use crate::explain::reasons;
use crate::realtime::LateTolerance;
use crate::scenario::parse_set;
use crate::terminal;
use anyhow::Result;
use farpace_lab::scenario::Scenario;
use farpace_papers::congestion_name;
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_tcp::config::{Congestion, Profile};
use plan::Plan;
use results::Results;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
One flow, the first of the scenario, sends without end: in the lab; in real time with farpace's TCP at both \
ends, on
devices in network namespaces with the scenario's network between them; and so with the kernel's. Profile \
and congestion
control are the same in all three; receive buffers are those of the scenario, or for both 6 MiB. Times and
bytes count from the first SYN. Real time needs root, iproute2, and a core that nobody else uses.

Examples:
  sudo farpace lab compare scenarios/reality/wan.toml
  sudo farpace lab compare scenarios/reality/wan.toml --seconds 30 --runs 5 --out out/wan
  sudo farpace lab compare scenarios/gallery/lossy.toml --with lab,kernel --congestion reno
  sudo farpace lab compare scenarios/reality/wan.toml --require 5

Exit codes:
  0    all runs were made; with --require, all are that close
  1    with --require: the goodput of a way differs by more
  2    wrong usage, a bad scenario, or what the system does not allow
  130  interrupted; nothing was written";

/// The arguments of `farpace lab compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The scenario, a TOML file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// The ways, separated by commas
    #[arg(
        long = "with",
        value_name = "WAYS",
        value_enum,
        value_delimiter = ',',
        default_value = "lab,farpace,kernel"
    )]
    pub ways: Vec<Backend>,
    /// How long each run lasts
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Runs of each way, with different dice; medians are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub runs: u64,
    /// Congestion control of all ways, as the kernel names it, too
    #[arg(long, value_name = "NAME", value_parser = congestion, default_value = "cubic")]
    pub congestion: Congestion,
    /// TCP profile of farpace's ends
    #[arg(long, value_name = "NAME", value_parser = profile, default_value = "linux")]
    pub profile: Profile,
    /// Replace a value of the scenario, as in links.wan.delay="20 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// How the network waits for the next packet
    #[arg(long, value_name = "HOW", value_enum, default_value = "hybrid")]
    pub wait: LateTolerance,
    /// Exit with 1 if the goodput of a way is not within so many percent of the first one's
    #[arg(long, value_name = "PERCENT")]
    pub require: Option<f64>,
    /// Print JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html, figures/*.svg and samples.csv
    #[arg(long, value_name = "DIR", default_value = "out/reality")]
    pub out: PathBuf,
}

/// A congestion control by its name.
fn congestion(name: &str) -> Result<Congestion, String> {
    let found = Congestion::ALL.into_iter().find(|congestion| congestion_name(*congestion) == name);
    found.ok_or_else(|| format!("there is no congestion control `{name}`: `farpace profiles` lists them"))
}

/// A profile by its name.
fn profile(name: &str) -> Result<Profile, String> {
    let found = Profile::ALL.into_iter().find(|profile| profile.name() == name);
    found.ok_or_else(|| format!("there is no TCP profile `{name}`: `farpace profiles` lists them"))
}

/// The first flow of a scenario, without end and with the TCP that it names, on devices. `file` names the
/// scenario.
///
/// # Errors
/// A scenario without flows, or what the system does not allow.
pub fn on_devices(scenario: Scenario, file: &str) -> Result<BackendRun> {
    let (lasts, seed) = (scenario.duration, scenario.seed);
    let plan = Plan::of(scenario, lasts, LateTolerance::Hybrid, file)?;
    Ok(BackendRun { seed, ..real_time::run(&plan, plan.base(), Backend::Farpace)? })
}

/// `farpace lab compare`.
///
/// # Errors
/// A scenario that cannot be run, what the system does not allow, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let plan = Plan::new(args)?;
    let out = OutDir::open(&args.out, &["report.html".to_owned(), "samples.csv".to_owned()])?;
    let mut trials = Vec::new();
    for number in 0..args.runs {
        let scenario = plan.scenario(number);
        for way in &plan.ways {
            let trial = match way {
                Backend::Lab => virtual_time::run(&plan, &scenario)?,
                Backend::Farpace | Backend::Kernel => real_time::run(&plan, &scenario, *way)?,
            };
            if interrupt::asked() {
                terminal::note("Interrupted: nothing was written.");
                return Ok(ExitCode::from(terminal::INTERRUPTED));
            }
            trials.push(BackendRun { seed: scenario.seed, ..trial });
        }
    }
    let results = Results::new(&plan, trials);
    if args.json {
        terminal::print_json(&results.json(&plan))?;
    } else {
        let reasons =
            results.of(Backend::Lab).next().map_or(String::new(), |run| reasons::text(&run.reasons));
        terminal::print(&(terminal::table(&results.table(&plan)) + &reasons))?;
    }
    for warning in results.warnings() {
        terminal::note(&warning);
    }
    page::write(out, args, &plan, &results)?;
    terminal::say_where(&args.out.join("report.html"), args.json)?;
    let close = args.require.is_none_or(|percent| results.within(percent));
    Ok(ExitCode::from(if close { terminal::OK } else { terminal::FAILED }))
}
