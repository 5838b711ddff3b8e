//! What all commands share that make experiments: options, progress, files, and how they end.

use crate::scenario::parse_set;
use crate::terminal;
use anyhow::{Result, anyhow};
use farpace_papers::{Experiment, ExperimentReport, MeasureError, Paper, ProgressSink, Runner};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name of a report.
pub const REPORT: &str = "report.html";
/// The name of the file for finished measurements.
pub const KEPT: &str = ".farpace-measured";

/// Options of every command that makes an experiment.
#[derive(Clone, Debug, Default, Serialize, clap::Args)]
pub struct ExperimentArgs {
    /// Print JSON; the report is also written
    #[arg(long)]
    #[serde(skip)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg [default: out/ and the last word of the command]
    #[arg(long, value_name = "DIR")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    #[serde(skip)]
    pub threads: Option<u16>,
    /// Replace a value of the scenario in every run, as in links.wan.delay="20 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    pub set: Vec<(String, String)>,
}

impl ExperimentArgs {
    /// Where the report goes.
    pub fn dir(&self, name: &str) -> PathBuf {
        self.out.clone().unwrap_or_else(|| Path::new("out").join(name))
    }
}

/// What a command prints on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputForm {
    /// Tables and claims.
    Text,
    /// JSON.
    Json,
    /// Nothing.
    Nothing,
}

impl OutputForm {
    /// JSON or text.
    pub const fn of(json: bool) -> Self {
        if json { OutputForm::Json } else { OutputForm::Text }
    }
}

/// A report that has been printed and written; the exit code if there is none.
pub type Made = Result<ExperimentReport, ExitCode>;

/// Makes an experiment, prints its report and writes it to `dir`. `line` is the command that repeats it. If
/// it is interrupted or fails, what is finished stays in `dir` for the next time.
///
/// # Errors
/// Options that do not fit, or files that cannot be written.
pub fn make<E: Experiment>(
    experiment: &E,
    line: &str,
    args: &ExperimentArgs,
    dir: &Path,
    form: OutputForm,
) -> Result<Made> {
    let plan = Runner::plan(experiment)?;
    make_report(args, dir, form, |runner| runner.run(experiment, plan, line))
}

/// The same for a paper, literally and in the world of `assumed`, side by side.
///
/// # Errors
/// As [`make`].
pub fn make_beside<P: Paper>(
    [paper, assumed]: [&P; 2],
    line: &str,
    args: &ExperimentArgs,
    dir: &Path,
    form: OutputForm,
) -> Result<Made> {
    let plans = [Runner::plan(paper)?, Runner::plan(assumed)?];
    if let Some(world) = assumed.world() {
        let again = plans[1].iter().filter(|run| P::depends_on_world(&run.case)).count();
        terminal::note(&format!(
            "{} runs literally, then {again} in the world `{}`; --assume literal leaves the latter out.",
            plans[0].len(),
            world.name
        ));
    }
    make_report(args, dir, form, |runner| runner.run_beside(paper, assumed, plans, line))
}

/// Makes runs, prints the report and writes it.
fn make_report(
    args: &ExperimentArgs,
    dir: &Path,
    form: OutputForm,
    run: impl FnOnce(&Runner<'_>) -> Result<ExperimentReport, MeasureError>,
) -> Result<Made> {
    let out = OutDir::open(dir, &[REPORT.to_owned()])?;
    let bar = RunBar(ProgressBar::hidden());
    let runner = Runner {
        threads: args.threads,
        stop: &interrupt::asked,
        progress: &bar,
        kept: Some(dir.join(KEPT)),
        program: program(),
    };
    let report = match run(&runner) {
        Ok(report) => report,
        Err(MeasureError::Interrupted) => {
            terminal::note(
                "Interrupted: no report was written. The same command goes on with what is finished.",
            );
            return Ok(Err(ExitCode::from(terminal::INTERRUPTED)));
        }
        Err(error @ MeasureError::Run { .. }) => {
            terminal::complain(&anyhow!(error));
            return Ok(Err(ExitCode::from(terminal::FAILED)));
        }
        Err(error) => return Err(anyhow!(error)),
    };
    match form {
        OutputForm::Json => terminal::print_json(&report.json)?,
        OutputForm::Text => terminal::print(&report.text(terminal::width()))?,
        OutputForm::Nothing => {}
    }
    out.write(REPORT, report.page.render().as_bytes())?;
    for figure in report.page.figures() {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    out.commit()?;
    runner.forget();
    if form != OutputForm::Nothing {
        terminal::say_where(&dir.join(REPORT), form == OutputForm::Json)?;
    }
    Ok(Ok(report))
}

/// How the command ends; if `strict`, claims that fail count.
pub fn end(made: Made, strict: bool) -> ExitCode {
    match made {
        Ok(report) if strict && report.reproduction().is_some_and(|all| !all.holds()) => {
            ExitCode::from(terminal::FAILED)
        }
        Ok(_) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

/// Names this program: its version, and the length and time of its file.
pub fn program() -> String {
    let file = std::env::current_exe().and_then(std::fs::metadata);
    let file = file.map(|file| format!("{} {:?}", file.len(), file.modified().ok()));
    format!("farpace {} {}", env!("CARGO_PKG_VERSION"), file.unwrap_or_default())
}

/// The command line of `name` with options as they are serialised: lists have commas between their words,
/// pairs repeat their option.
pub fn command_line(name: &str, args: &impl Serialize) -> String {
    let mut line = format!("farpace {name}");
    let Ok(Value::Object(options)) = serde_json::to_value(args) else { return line };
    for (key, value) in options {
        let option = format!(" --{}", key.replace('_', "-"));
        match value {
            Value::Bool(true) => line.push_str(&option),
            Value::Number(number) => line.push_str(&format!("{option} {number}")),
            Value::String(text) if text.contains(' ') => line.push_str(&format!("{option} \"{text}\"")),
            Value::String(text) => line.push_str(&format!("{option} {text}")),
            Value::Array(list) => {
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                if !words.is_empty() {
                    line.push_str(&format!("{option} {}", words.join(",")));
                }
                for pair in list.iter().filter_map(Value::as_array) {
                    if let [Value::String(key), Value::String(value)] = pair.as_slice() {
                        line.push_str(&format!("{option} {key}=\"{value}\""));
                    }
                }
            }
            Value::Bool(false) | Value::Null | Value::Object(_) => {}
        }
    }
    line
}

/// A bar on standard error, if that is a terminal.
pub struct RunBar(pub ProgressBar);

impl ProgressSink for RunBar {
    fn begin(&self, total: usize, finished: usize) {
        if finished > 0 {
            terminal::note(&format!("{finished} of {total} runs are finished from the last time."));
        }
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len} runs  {eta} left  {msg}");
        self.0.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.0.set_length(total as u64);
        self.0.set_position(finished as u64);
        // What was there, and the runs before these, say nothing about the time that is left.
        self.0.reset_eta();
        self.0.set_draw_target(indicatif::ProgressDrawTarget::stderr());
        self.0.tick();
    }
    fn started(&self, run: &str) {
        self.0.set_message(run.to_owned());
    }
    fn finished(&self) {
        self.0.inc(1);
    }
    fn end(&self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the command in a report, which people copy.
    #[test]
    fn a_command_line_has_every_option() {
        #[derive(Serialize)]
        struct AllKinds {
            quick: bool,
            full: bool,
            seeds: Option<u64>,
            time: Option<String>,
            only: Vec<String>,
            #[serde(flatten)]
            common: ExperimentArgs,
        }
        let set = vec![("links.wan.delay".to_owned(), "20 ms".to_owned())];
        let args = AllKinds {
            quick: true,
            full: false,
            seeds: Some(3),
            time: Some("5 s".into()),
            only: vec!["reno".into(), "cubic".into()],
            common: ExperimentArgs { json: true, threads: Some(2), set, ..ExperimentArgs::default() },
        };
        let line = "farpace papers x --only reno,cubic --quick --seeds 3 --set links.wan.delay=\"20 ms\" \
                    --time \"5 s\"";
        assert_eq!(command_line("papers x", &args), line);
    }
}
