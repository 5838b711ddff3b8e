//! `farpace cc search`: the paths on which a congestion control is worst.

use crate::experiments::{REPORT, command_line, program};
use crate::terminal;
use anyhow::{Context, Result, anyhow};
use farpace_papers::search::{Objective, Search, SearchProgress, SearchReport, SearchRunner, SearchSpace};
use farpace_papers::{MeasureError, chosen_controls};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_process::stopwatch::Stopwatch;
use farpace_units::Span;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The file for judged paths.
const KEPT: &str = ".farpace-search";
/// Part of the budget for the search. The rest is for shrinking what it has found.
const SEARCH_SHARE: f64 = 0.6;
/// The controls to compare with, without `--against`.
const AGAINST: [&str; 3] = ["cubic", "bbr3", "farpace"];

const AFTER_HELP: &str = "\
An evolution strategy searches for networks on which a congestion control fails. It draws paths (rate, \
round trip, queue and its discipline, losses, bit errors, jitter, reordering, steps of rate and delay, \
outages, a policer, a slow reverse path, thinned, stretched and delayed ACKs, datagrams, neighbours), runs \
them in virtual time, and changes the worst of each kind. The results are shrunk to few impairments and \
round numbers, and written as scenarios that repeat them exactly.

Objectives (the gap is 0 where it is as good as the best of the others, 1 where it gets nothing):
  goodput     payload, alone
  delay       time in queues, alone; also compared with a quarter of the round trip
  fairness    Jain's index of two flows of its kind
  starvation  what it and a neighbour get, compared with the first of --against in its place
  recovery    payload after the rate, the delay or an outage has changed the path

The space is narrowed by a file of lines like these:
  rate_mbit_s = [5, 50]           two bounds
  neighbour = [\"cubic\", \"bbr3\"]   words
  policer_ms = false              an impairment that is left out
Dimensions: rate_mbit_s, rtt_ms, queue_bdp, discipline, loss_percent, burst_loss_percent, bit_errors,
jitter_of_rtt, reorder_percent, rate_step, delay_step_of_rtt, step_s, outage_ms, policer_ms, back_slower,
back_queue_packets, ack_thinning, ack_every, ack_delay_ms, load, neighbour, neighbour_start_s,
neighbour_rtt.

Examples:
  farpace cc search --control farpace
  farpace cc search --control cubic --against bbr3 --budget 2m --seed 7
  farpace cc search --control bbr3 --objective starvation --budget 30m --json

Evaluated paths are kept in the directory: the same command evaluates nothing twice, and continues with a \
longer budget. The same seed and the same number of generations find the same paths, if the budget is \
sufficient to shrink them.

Exit codes:
  0    the search was made, whatever it has found
  2    wrong usage, a bad space, or a file that cannot be read or written
  130  interrupted before anything could be written; the same command goes on";

/// The arguments of `farpace cc search`.
#[derive(Clone, Debug, Serialize, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// The congestion control to examine
    #[arg(long, value_name = "NAME")]
    pub control: String,
    /// The controls that it is compared with, separated by commas [default: cubic,bbr3,farpace]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub against: Vec<String>,
    /// The objective: goodput, delay, fairness, starvation or recovery
    #[arg(long, value_name = "WORD", default_value = "goodput", value_parser = objective)]
    pub objective: Objective,
    /// Duration, as in 10m, 90s or "2 h": 60 % for the search, the rest for shrinking
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = budget)]
    pub budget: Span,
    /// A TOML file that narrows the space of paths
    #[arg(long, value_name = "FILE")]
    pub space: Option<PathBuf>,
    /// All random numbers of the search follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// End after this many generations of 16 paths, even if time is left
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub generations: Option<u64>,
    /// The directory for report.html, the scenarios and figures/*.svg [default: out/cc-search]
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    #[serde(skip)]
    pub threads: Option<u16>,
    /// Print JSON; the report is also written
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
}

fn objective(word: &str) -> Result<Objective, String> {
    let found = Objective::ALL.into_iter().find(|o| o.name() == word);
    found.ok_or_else(|| format!("it is none of {}", Objective::ALL.map(Objective::name).join(", ")))
}

/// A time with a unit; `10m`, as everybody writes it, too.
fn budget(word: &str) -> Result<Span, String> {
    let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let unit = match word[number.len()..].trim_start() {
        "m" => "min",
        unit => unit,
    };
    let span: Span =
        format!("{number} {unit}").parse().map_err(|error: farpace_units::UnitError| error.to_string())?;
    if span.is_zero() { Err("a search needs some time".to_owned()) } else { Ok(span) }
}

/// `farpace cc search`.
///
/// # Errors
/// A control or a space that does not exist, or a file that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install();
    let search = search(args)?;
    let dir = args.out.clone().unwrap_or_else(|| Path::new("out").join("cc-search"));
    let out = OutDir::open(&dir, &[REPORT.to_owned()])?;
    let (bar, watch) = (progress_bar(args.budget), Stopwatch::start());
    let whole = Duration::from_nanos(args.budget.as_nanos());
    let go_on = |progress: &SearchProgress| {
        let elapsed = watch.elapsed();
        bar.set_position(elapsed.as_secs());
        let (step, paths, is_over) = match progress.shrinking {
            true => ("shrinking", progress.attempts, elapsed >= whole),
            false => (
                "searching",
                progress.paths,
                elapsed >= whole.mul_f64(SEARCH_SHARE)
                    || args.generations.is_some_and(|most| progress.generation >= most),
            ),
        };
        bar.set_message(format!(
            "{step}  {paths} paths, {} generations, largest gap {:.2}",
            progress.generation, progress.worst
        ));
        !is_over && !interrupt::asked()
    };
    let runner = SearchRunner {
        threads: args.threads,
        stop: &interrupt::asked,
        go_on: &go_on,
        kept: Some(dir.join(KEPT)),
        program: program(),
    };
    let line = command_line("cc search", args);
    let made =
        runner.run(&search).and_then(|found| SearchReport::make(&search, &found, &line, &interrupt::asked));
    bar.finish_and_clear();
    let made = match made {
        Ok(made) => made,
        Err(MeasureError::Interrupted) => {
            terminal::note(
                "Interrupted: no report was written. The same command goes on with what is judged.",
            );
            return Ok(ExitCode::from(terminal::INTERRUPTED));
        }
        Err(error) => return Err(anyhow!(error)),
    };
    let report = &made.report;
    if args.json {
        terminal::print_json(&report.json)?;
    } else {
        terminal::print(&report.text(terminal::width()))?;
    }
    out.write(REPORT, report.page.render().as_bytes())?;
    for figure in report.page.figures() {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    for (name, text) in &made.scenarios {
        out.write(name, text.as_bytes())?;
    }
    out.commit()?;
    terminal::say_where(&dir.join(REPORT), args.json)?;
    Ok(ExitCode::SUCCESS)
}

fn search(args: &Args) -> Result<Search> {
    let one = |name: &String| chosen_controls(std::slice::from_ref(name)).map(|c| c.into_iter().next());
    let control = one(&args.control)?.with_context(|| format!("there is no control `{}`", args.control))?;
    let against =
        if args.against.is_empty() { AGAINST.map(str::to_owned).to_vec() } else { args.against.clone() };
    // In the order in which they were named: the first has a meaning.
    let mut others = Vec::new();
    for name in against.iter().filter(|name| **name != args.control) {
        others.extend(one(name)?);
    }
    if others.is_empty() {
        return Err(anyhow!("--against must name a control other than {}", args.control));
    }
    let space = match &args.space {
        Some(file) => {
            let text =
                std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))?;
            SearchSpace::parse(&text).map_err(|error| anyhow!("{}: {error}", file.display()))?
        }
        None => SearchSpace::default(),
    };
    Ok(Search { control, against: others, objective: args.objective, space, seed: args.seed })
}

fn progress_bar(budget: Span) -> ProgressBar {
    let bar = ProgressBar::new(budget.as_nanos() / 1_000_000_000);
    let style = ProgressStyle::with_template("{bar:24} {pos}/{len} s  {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_draw_target(ProgressDrawTarget::stderr());
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: `--budget 10m`, and an error for what is no time.
    #[test]
    fn budgets() {
        assert_eq!(budget("10m"), Ok(Span::from_secs(600)));
        assert_eq!(budget("90 s"), Ok(Span::from_secs(90)));
        assert_eq!(budget("1h"), Ok(Span::from_secs(3600)));
        assert!(
            budget("10").is_err() && budget("m").is_err() && budget("0s").is_err() && budget("").is_err()
        );
    }
}
