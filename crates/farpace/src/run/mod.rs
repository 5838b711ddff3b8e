//! `farpace run`: a scenario from its file to a summary, a trace, captures and a report.
//!
//! Start reading at [`run`]; `input` is what goes in. What came of it is [`farpace_run`]'s.

mod input;
mod pace;
mod progress;
mod trace;

use crate::scenario::parse_set;
use crate::terminal;
use anyhow::{Result, anyhow};
use farpace_explain::input::RecordFollower;
use farpace_explain_report::reasons::{self, FlowReason};
use farpace_lab::{Inputs, Run, RunError, VerifyError};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_process::stopwatch::Stopwatch;
use farpace_report::{BinnedSeries, Page};
use farpace_run::{RunSummary, RunWatch, Status, Wall, page, summarize, tables};
use input::Input;
use progress::ProgressLine;
use std::path::PathBuf;
use std::process::ExitCode;
use trace::TraceSink;

const AFTER_HELP: &str = "\
What is written: without --out, only the report, to out/SCENARIO/report.html. With --out, to DIR: \
report.html and figures/*.svg, summary.json (what --json prints, without wall time), scenario.toml (as it \
was \
run, with all defaults), trace.parquet, and if the scenario has taps, one capture per tap and drops.pcapng \
with every dropped packet and its cause. A directory holds one run: files of an earlier run are replaced or \
removed, other files are never changed. Files appear when they are complete.

Examples:
  farpace run scenarios/gallery/lossy.toml
  farpace run wan.toml --payload film.mp4 --received copy.mp4 --out results
  farpace run wan.toml --set links.wan.delay=\"20 ms\" --set flows.*.sender.profile=linux-2.6.17
  farpace run wan.toml --pace a=pacing.toml
  farpace run scenarios/papers/stops.toml --explain
  farpace run wan.toml --json --no-report | jq '.flows[0].goodput_bit_s'

Exit codes:
  0    all flows are complete, and every received byte is the one that was sent
  1    a flow did not complete, or bytes differ
  2    wrong usage, a bad scenario, or a file that cannot be read or written
  130  interrupted (Ctrl-C): partial results have been written and are marked so; again: ends at once";

/// The arguments of `farpace run`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The scenario, a TOML file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// A file that the first flow sends, in place of a pattern
    #[arg(long, value_name = "FILE")]
    pub payload: Option<PathBuf>,
    /// File for the bytes received by the first flow; an existing file is replaced when they are complete
    #[arg(long, value_name = "OUT")]
    pub received: Option<PathBuf>,
    /// In place of the scenario's seed
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: Option<u64>,
    /// Replace a value of the scenario, as in links.wan.delay="20 ms"; may be repeated. Links and flows are
    /// addressed by name or by index from 0; * stands for all of them
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
    /// Pace what NODE sends on its first link by a pacing configuration, in place of the scenario's; may be
    /// repeated (farpace pacing --help)
    #[arg(long = "pace", value_name = "NODE=FILE", value_parser = pace::parse)]
    pub pace: Vec<(String, PathBuf)>,
    /// The directory for all results
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the summary as one JSON object (docs/json.md)
    #[arg(long)]
    pub json: bool,
    /// Explain for each flow where the time went, with evidence and what would help
    #[arg(long)]
    pub explain: bool,
    /// No report and no figures
    #[arg(long)]
    pub no_report: bool,
    /// The table of every segment and ACK [default: parquet with --out, none without]
    #[arg(long, value_name = "FORMAT")]
    pub trace: Option<TraceFormat>,
    /// No captures, although the scenario has taps
    #[arg(long)]
    pub no_captures: bool,
    /// Run no faster than real time, for observation. Time stays virtual and the results are the same;
    /// `farpace lab compare` runs in real time
    #[arg(long)]
    pub clock_speed: bool,
    /// No progress and no summary: errors only
    #[arg(long, short)]
    pub quiet: bool,
}

/// The form of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TraceFormat {
    /// For pandas, polars and duckdb: small and quick
    Parquet,
    /// For spreadsheets
    Csv,
    /// No trace
    None,
}

/// `farpace run`. The exit code tells how the flows fared.
///
/// # Errors
/// Whatever keeps the run from beginning, or its results from being written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let input = Input::read(args)?;
    let out = match input.directory() {
        Some(dir) => Some(OutDir::open(&dir, &input.planned())?),
        None => None,
    };
    let done = drive(&input, out.as_ref())?;
    let reasons = done.reasons;
    // A result is worth showing even if it cannot be written.
    let mut summary = done.summary;
    let written = match (out, done.trace) {
        (Some(out), Ok(())) => write(&input, out, &mut summary, &done.watch, &done.meters, &reasons),
        // An incomplete trace must not stand beside what it belongs to.
        (_, trace) => trace,
    };
    let received = done.received.and_then(|()| input.settle_received(&summary));
    show(args, &input, &summary, &reasons)?;
    written.and(received)?;
    Ok(ExitCode::from(match summary.status {
        Status::Complete => terminal::OK,
        Status::Failed => terminal::FAILED,
        Status::Interrupted => terminal::INTERRUPTED,
    }))
}

/// A run that has ended.
struct Done {
    summary: RunSummary,
    /// Why flows took their time, if that was asked.
    reasons: Vec<FlowReason>,
    watch: RunWatch,
    /// Receiving hosts, and what came in.
    meters: Vec<(String, BinnedSeries)>,
    /// Files that could not be written, though the transfers went on.
    trace: Result<()>,
    received: Result<()>,
}

fn drive(input: &Input, out: Option<&OutDir>) -> Result<Done> {
    let scenario = &input.run.scenario;
    let place = |error| in_place(error, out, input);
    let stopwatch = Stopwatch::start();
    let mut trace = TraceSink::create(input, out)?;
    let mut follower = input.explain.then(RecordFollower::default);
    let mut recording = trace.is_some() || input.report() || follower.is_some();
    let mut run = Run::new(
        scenario,
        Inputs {
            payload: input.payload.clone(),
            received: input.received_unfinished(),
            seed: None,
            records: recording,
        },
    )
    .map_err(place)?;
    if let Some(out) = out.filter(|_| input.captures()) {
        run.capture_into(out.staging()).map_err(place)?;
    }
    let mut watch = RunWatch::new(scenario, input.report());
    watch.begin(&mut run).map_err(place)?;
    let mut progress = ProgressLine::new(input.quiet);
    let interrupted = loop {
        let start = run.now();
        let now = if recording {
            run.advance(Some(&mut trace::Records {
                watch: &mut watch,
                trace: trace.as_mut(),
                follower: follower.as_mut(),
            }))
        } else {
            run.advance(None)
        };
        let now = now.map_err(place)?;
        watch.bin(&mut run, start);
        if recording && trace.is_none() && follower.is_none() && watch.has_enough_records() {
            run.stop_records();
            recording = false;
        }
        progress.update(&now);
        if now.finished {
            break false;
        }
        if input.clock_speed {
            stopwatch.wait_until(now.now.as_nanos(), interrupt::asked);
        }
        if interrupt::asked() {
            break true;
        }
    };
    progress.clear();
    watch.finish(&mut run).map_err(place)?;
    let meters = run.meters().map(|(host, meter)| {
        let bytes = meter.bins().iter().map(|bin| bin.bytes).collect();
        (host.to_owned(), BinnedSeries::new(meter.width(), bytes))
    });
    let meters = meters.collect();
    let outcome = run.finish().map_err(place)?;
    let trace = trace.map_or(Ok(()), TraceSink::finish);
    let mut summary = summarize(&input.run, &outcome, &watch, interrupted);
    let names: Vec<String> = summary.flows.iter().map(|flow| flow.name.clone()).collect();
    let reasons = follower.map_or_else(Vec::new, |follower| reasons::of_records(follower, &names));
    summary.explain = input.explain.then(|| reasons::to_json(&reasons));
    summary.wall = Some(Wall::new(stopwatch.elapsed(), &summary));
    let unwritten = outcome.flows.into_iter().find_map(|flow| match flow.verified {
        Err(error @ VerifyError::Write { .. }) => Some(in_place(RunError::Received(error), out, input)),
        _ => None,
    });
    let received = unwritten.map_or(Ok(()), |error| {
        input.remove_received();
        Err(error)
    });
    Ok(Done { summary, reasons, watch, meters, trace, received })
}

/// Errors name files by the places they would have got.
fn in_place(error: RunError, out: Option<&OutDir>, input: &Input) -> anyhow::Error {
    match error {
        RunError::Capture(e) => {
            let place = out.map_or_else(|| e.path.clone(), |out| out.place(&e.path));
            anyhow!("cannot write the capture `{}`: {}", place.display(), e.error)
        }
        RunError::Received(VerifyError::Write { path, error }) => {
            let place = input.received.clone().unwrap_or(path);
            anyhow!("cannot write the received bytes to `{}`: {error}", place.display())
        }
        other => other.into(),
    }
}

fn write(
    input: &Input,
    out: OutDir,
    summary: &mut RunSummary,
    watch: &RunWatch,
    meters: &[(String, BinnedSeries)],
    reasons: &[FlowReason],
) -> Result<()> {
    if input.report() {
        let section = |page: &mut Page, flow: &str, figure: &str| {
            let reason = reasons.iter().find(|reason| reason.name == flow);
            reason.inspect(|reason| reasons::section(page, reason, figure)).is_some()
        };
        let (page, figures) = page::page(&input.run, summary, watch, meters, &section);
        out.write("report.html", page.as_bytes())?;
        if input.out.is_some() {
            for figure in figures {
                out.write(&figure.file_name, figure.svg.as_bytes())?;
            }
        }
    }
    if input.out.is_some() {
        out.write("scenario.toml", input.run.effective()?.as_bytes())?;
        out.write("summary.json", b"")?;
    }
    summary.directory = Some(out.dir().display().to_string());
    summary.files = out.staged()?;
    if input.out.is_some() {
        let text = serde_json::to_string_pretty(&summary.repeatable())? + "\n";
        out.write("summary.json", text.as_bytes())?;
    }
    summary.files = out.commit()?;
    Ok(())
}

/// What goes to standard output.
fn show(args: &Args, input: &Input, summary: &RunSummary, reasons: &[FlowReason]) -> Result<()> {
    if args.json {
        return terminal::print_json(summary);
    }
    if args.quiet {
        return Ok(());
    }
    terminal::print(
        &(tables::text(summary, terminal::width()) + &reasons::text(reasons, terminal::width())),
    )?;
    let mut notes = String::new();
    if let Some(dir) = &summary.directory {
        let dir = std::path::Path::new(dir);
        for name in summary.files.iter().filter(|name| !name.starts_with("figures/")) {
            notes.push_str(&format!("  {}\n", dir.join(name).display()));
        }
        if summary.files.iter().any(|name| name.starts_with("figures/")) {
            notes.push_str(&format!("  {}\n", dir.join("figures/*.svg").display()));
        }
    }
    if let Some(note) = input.received_note(summary) {
        notes.push_str(&format!("  {note}\n"));
    }
    if !notes.is_empty() {
        terminal::print(&format!("\nWritten\n{notes}"))?;
    }
    Ok(())
}
