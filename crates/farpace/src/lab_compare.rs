//! `farpace lab compare`: the lab against reality.
//!
//! One bulk transfer over the network of a scenario, in up to three ways: `lab` (virtual time), `farpace`
//! (our engine at both ends, on devices in real time), `kernel` (the kernel's TCP at both ends of the same).

use crate::realtime::LateTolerance;
use crate::scenario;
use crate::scenario::parse_set;
use crate::terminal;
use anyhow::Result;
use farpace_emulate::compare::{Backend, Plan, Results, congestion_of, page, run_by};
use farpace_explain::input::RecordFollower;
use farpace_explain_report::reasons::{self, FlowReason};
use farpace_papers::congestion_name;
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_report::Page;
use farpace_tcp::config::{Congestion, Profile};
use farpace_units::Span;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
One flow, the first of the scenario, sends without end in three stacks: in the lab; in real time with \
farpace's TCP at both ends, on devices in network namespaces with the scenario's network between them; and \
there with the kernel's TCP. Profile and congestion control are the same in all three. Receive buffers are \
those of the scenario, or 6 MiB. Times and bytes count from the first SYN. Real time needs root, iproute2, \
and an otherwise idle core.

Examples:
  sudo farpace lab compare scenarios/reality/wan.toml
  sudo farpace lab compare scenarios/reality/wan.toml --seconds 30 --runs 5 --out out/wan
  sudo farpace lab compare scenarios/gallery/lossy.toml --with lab,kernel --congestion reno
  sudo farpace lab compare scenarios/reality/wan.toml --require 5

Exit codes:
  0    all runs were made; with --require, all are within the bound
  1    with --require: the goodput of a stack differs by more
  2    wrong usage, a bad scenario, or what the system does not allow
  130  interrupted; nothing was written";

/// The arguments of `farpace lab compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The scenario, a TOML file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// The stacks, separated by commas: lab, farpace, kernel
    #[arg(long = "with", value_name = "WAYS", value_delimiter = ',', default_value = "lab,farpace,kernel")]
    pub ways: Vec<Backend>,
    /// How long each run lasts
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,
    /// Runs of each stack, with different seeds; medians are shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub runs: u64,
    /// Congestion control of all stacks; `bbr` is the kernel's name of bbr1
    #[arg(long, value_name = "NAME", value_parser = congestion_of, default_value = "cubic")]
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
    /// Exit with 1 if the goodput of a stack differs by more than this percentage from the first one's
    #[arg(long, value_name = "PERCENT")]
    pub require: Option<f64>,
    /// Print JSON; the report is also written
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html, figures/*.svg and samples.csv
    #[arg(long, value_name = "DIR", default_value = "out/reality")]
    pub out: PathBuf,
}

/// A profile by its name.
fn profile(name: &str) -> Result<Profile, String> {
    let found = Profile::ALL.into_iter().find(|profile| profile.name() == name);
    found.ok_or_else(|| format!("there is no TCP profile `{name}`: `farpace profiles` lists them"))
}

/// `farpace lab compare`.
///
/// # Errors
/// A scenario that cannot be run, what the system does not allow, or a file that cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let plan = Plan::new(
        scenario::load(&args.scenario, &args.set)?,
        args.ways.clone(),
        (args.profile, args.congestion),
        Span::from_secs(args.seconds),
        args.wait.wait(),
        &args.scenario.display().to_string(),
    )?;
    let out = OutDir::open(&args.out, &["report.html".to_owned(), "samples.csv".to_owned()])?;
    let (mut trials, mut reasons) = (Vec::new(), Vec::new());
    for number in 0..args.runs {
        let scenario = plan.scenario(number);
        for way in &plan.ways {
            let mut follower = RecordFollower::default();
            let trial = run_by(&plan, &scenario, *way, &mut follower)?;
            if interrupt::asked() {
                terminal::note("Interrupted: nothing was written.");
                return Ok(ExitCode::from(terminal::INTERRUPTED));
            }
            let names: Vec<String> = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
            // Of runs in real time there are no records.
            reasons.push(reasons::of_records(follower, &names));
            trials.push(trial);
        }
    }
    let results = Results::new(&plan, trials);
    let of_lab = plan.ways.iter().cycle().zip(&reasons).find(|(way, _)| **way == Backend::Lab);
    let of_lab = of_lab.map_or(&[][..], |(_, reasons)| reasons);
    if args.json {
        terminal::print_json(&to_json(&plan, &results, &reasons))?;
    } else {
        let reasons = reasons::text(of_lab, terminal::width());
        terminal::print(&(terminal::table(&results.table(&plan)) + &reasons))?;
    }
    for warning in results.warnings() {
        terminal::note(&warning);
    }
    let first = reasons.iter().find_map(|reasons| reasons.first());
    let section = first.map(|reason| move |page: &mut Page, file: &str| reasons::section(page, reason, file));
    let section = section.as_ref().map(|section| section as &page::LabReason<'_>);
    page::write(out, &command(args), &plan, &results, section)?;
    terminal::say_where(&args.out.join("report.html"), args.json)?;
    let close = args.require.is_none_or(|percent| results.within(percent));
    Ok(ExitCode::from(if close { terminal::OK } else { terminal::FAILED }))
}

/// For programs. Each run has the reasons that are known of its flows.
fn to_json(plan: &Plan, results: &Results, reasons: &[Vec<FlowReason>]) -> Value {
    let mut value = results.json(plan);
    let trials = value["trials"].as_array_mut().into_iter().flatten();
    for (trial, reasons) in trials.zip(reasons).filter(|(_, reasons)| !reasons.is_empty()) {
        trial["reasons"] = reasons::to_json(reasons);
    }
    value
}

fn command(args: &Args) -> String {
    let mut line = format!(
        "farpace lab compare {} --seconds {} --runs {} --congestion {} --profile {}",
        args.scenario.display(),
        args.seconds,
        args.runs,
        congestion_name(args.congestion),
        args.profile.name()
    );
    for (key, value) in &args.set {
        line.push_str(&format!(" --set {key}='{value}'"));
    }
    line
}
