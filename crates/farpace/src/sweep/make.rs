//! The sweep itself: from words to a plan, and from a plan to runs.

use super::progress::{SweepProgress, duration};
use super::show;
use crate::scenario::{parse_set, read_text};
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use farpace_cluster::{RayCluster, python};
use farpace_process::interrupt;
use farpace_process::stopwatch::Stopwatch;
use farpace_study::{
    MAX_RUNS, PlanSpec, QueueOptions, RunOptions, Sampling, ScenarioSource, Shard, StoredStudy, StudyEnd,
    StudyPlan, probe, shard_folder, simulate,
};
use farpace_units::Span;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// From so many runs on, one is made first to tell how long all take.
const ASK_RUNS: u64 = 10_000;
/// Nobody is asked about a sweep that takes less.
const ASK_ABOVE: Duration = Duration::from_secs(600);

/// The arguments of a sweep.
#[derive(Clone, Debug, clap::Args)]
pub struct SweepArgs {
    /// The scenario, a TOML file
    #[arg(value_name = "SCENARIO.toml", required = true)]
    scenario: Option<PathBuf>,
    /// A path of the scenario and the values it takes, as in links.wan.delay=5ms,50ms; may be repeated, then
    /// every combination is run. Links and flows are addressed by name or by index from 0; * stands for all
    /// of them
    #[arg(long, value_name = "PATH=VALUES")]
    vary: Vec<String>,
    /// Replace a value of the scenario in every run, as in links.wan.delay="20 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, String)>,
    /// Runs of each point, with seeds from the scenario's on
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u64,
    /// The folder of the study [default: out/sweep/SCENARIO]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Points drawn from the values in place of all combinations: lhs:N (Latin hypercube) or sobol:N
    #[arg(long, value_name = "KIND:N")]
    samples: Option<Sampling>,
    /// Make no more seeds of a point when the half width of the 95 % confidence interval of its goodput is at
    /// most this part of the mean, as in 2%. At least 3 seeds are run, and --seeds at most
    #[arg(long, value_name = "WIDTH", value_parser = parse_share)]
    stop_at: Option<f64>,
    /// Only part I of N, in the folder shard-I-of-N below --out
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,
    /// Make the runs on a Ray cluster: auto (that of this host), or HOST:PORT of its head
    #[arg(long, value_name = "ADDRESS")]
    ray: Option<String>,
    /// The Python with farpace and ray, for --ray [default: python3]
    #[arg(long, value_name = "FILE", requires = "ray")]
    python: Option<PathBuf>,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// The maximum real time of one run; a longer one is a row with that reason
    #[arg(long, value_name = "TIME", default_value = "1 h")]
    run_limit: Span,
    /// Make runs again that crashed, failed or took too long
    #[arg(long)]
    retry: bool,
    /// Discard all runs in the folder
    #[arg(long)]
    restart: bool,
    /// Do not ask before a long sweep
    #[arg(long)]
    yes: bool,
    /// Print the means as one JSON object (docs/json.md)
    #[arg(long)]
    json: bool,
    /// No progress and no table: errors only
    #[arg(long, short)]
    quiet: bool,
}

/// A part of one: `2%` or `0.02`.
fn parse_share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.trim().strip_suffix('%').map_or((text.trim(), 1.0), |n| (n.trim(), 100.0));
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number < unit => Ok(number / unit),
        _ => Err("expected a part of the mean, as in 2%".to_owned()),
    }
}

/// Names the program: rows of another one do not belong to a study.
pub fn version() -> String {
    format!("{} ({})", env!("CARGO_PKG_VERSION"), env!("FARPACE_COMMIT"))
}

/// Makes the runs that are missing, and shows what came of all.
///
/// # Errors
/// A scenario, values or a folder that do not fit, or files that cannot be written.
pub(super) fn make(args: &SweepArgs) -> Result<ExitCode> {
    let scenario = args.scenario.as_deref().context("a sweep needs a scenario")?;
    interrupt::install();
    let plan = plan(args, scenario)?;
    let limit = Duration::from_nanos(args.run_limit.as_nanos());
    let version = version();
    let cluster = args.ray.as_deref().map(|address| RayCluster {
        address,
        python: python(args.python.as_ref()),
        jobs: args.jobs,
        run_limit: limit,
        version: &version,
    });
    if let Some(out) =
        args.out.as_ref().map(|out| out.display()).filter(|out| out.to_string().contains("://"))
    {
        bail!(
            "--out {out}: a URL is for the Python package, farpace.sweep(..., out=\"{out}\"); here it is a \
             path"
        );
    }
    if let Some(cluster) = &cluster {
        cluster.check()?;
    }
    let sink = SweepProgress::new(args.quiet, limit);
    if plan.runs() > ASK_RUNS && !ask(args, &plan, &sink)? {
        return Ok(ExitCode::from(terminal::INTERRUPTED));
    }
    let name = scenario.file_stem().unwrap_or_default();
    let study = args.out.clone().unwrap_or_else(|| Path::new("out/sweep").join(name));
    let folder = args.shard.map_or_else(|| study.clone(), |shard| shard_folder(&study, shard));
    let (shard, retry) = (args.shard, args.retry);
    let end = match &cluster {
        None => {
            let threads = args.jobs.map(usize::from);
            let options = RunOptions { threads, shard, retry, simulate: &simulate, version: &version };
            farpace_study::run(&plan, &folder, args.restart, &options, &sink).map_err(anyhow::Error::from)
        }
        Some(cluster) => {
            let options = QueueOptions { shard, retry, restart: args.restart, version: &version };
            cluster.run(&plan, &folder, options, &sink).map_err(anyhow::Error::from)
        }
    };
    sink.clear();
    let end = end?;
    let stored = StoredStudy::read(&folder)?;
    if args.json {
        terminal::print_json(&farpace_study::json(&stored, &farpace_study::summarize(&stored, None)))?;
    } else if !args.quiet {
        terminal::print(&show::text(&stored, None))?;
        terminal::print(&format!("\n{}{}\n", said(&end), folder.display()))?;
    }
    let bad = stored.records.iter().take(stored.planned).filter(|run| run.status.is_bad()).count();
    if end.interrupted {
        terminal::note("Interrupted: finished runs are kept. The same command goes on.");
        return Ok(ExitCode::from(terminal::INTERRUPTED));
    }
    if bad > 0 && !args.quiet {
        terminal::note(&format!("{bad} runs have no result, or a wrong one: see `reason` in the data set"));
    }
    Ok(if bad > 0 { ExitCode::from(terminal::FAILED) } else { ExitCode::SUCCESS })
}

fn plan(args: &SweepArgs, scenario: &Path) -> Result<StudyPlan> {
    let source = ScenarioSource {
        name: scenario.display().to_string(),
        text: read_text(scenario)?,
        folder: scenario.parent().unwrap_or(Path::new("")).to_owned(),
        set: args.set.clone(),
    };
    let spec = PlanSpec {
        vary: args.vary.clone(),
        seeds: args.seeds,
        samples: args.samples.map(|samples| samples.to_string()),
        stop_at: args.stop_at,
        first_seed: 0,
    };
    StudyPlan::new(source, spec).map_err(|error| anyhow!(error))
}

/// Says how long a sweep takes, and asks whether it is to begin.
fn ask(args: &SweepArgs, plan: &StudyPlan, sink: &SweepProgress) -> Result<bool> {
    let stopwatch = Stopwatch::start();
    if probe(plan, &simulate, sink)?.is_none() {
        return Ok(false);
    }
    let (one, runs) = (stopwatch.elapsed(), plan.runs());
    // What a cluster has is not known yet.
    let cores = args.jobs.map_or_else(|| if args.ray.is_some() { 1 } else { available() }, u64::from);
    let of = args.shard.map_or(1, |shard| u64::from(shard.of));
    let all = one.as_secs_f64() * runs as f64 / (cores * of) as f64;
    let said = format!(
        "{runs} runs{} take about {} on {cores} {}, if all are like the first ({})",
        if of > 1 { format!(" in {of} shards") } else { String::new() },
        duration(all),
        if cores == 1 { "core" } else { "cores" },
        duration(one.as_secs_f64())
    );
    if runs > MAX_RUNS {
        bail!(
            "{said}. A study has at most {MAX_RUNS} runs: vary less, or draw samples with \
             --samples sobol:1024"
        );
    }
    if args.yes || all < ASK_ABOVE.as_secs_f64() {
        if !args.quiet {
            terminal::note(&said);
        }
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() {
        bail!("{said}. To begin, say --yes; to make fewer, draw samples with --samples sobol:1024");
    }
    terminal::note(&format!("{said}. Begin? [y/N]"));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn available() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

fn said(end: &StudyEnd) -> String {
    let part = |n: u64, what: &str| if n > 0 { format!(", {n} {what}") } else { String::new() };
    format!(
        "{} runs made{}{}: ",
        end.made,
        part(end.reused, "were there"),
        part(end.spared, "not needed (--stop-at)")
    )
}
