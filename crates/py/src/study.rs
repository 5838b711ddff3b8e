//! Studies, and all congestion controls on one path.

use crate::arguments::{PyScenario, refuse_own_names};
use crate::control::{ControlFailure, external};
use crate::failed;
use crate::table::{ArrowTable, PointColumn};
use anyhow::{Context, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_papers::controls::ControlComparison;
use farpace_papers::{ProgressSink, Runner, chosen_controls};
use farpace_study::{
    Metric, PlanSpec, PointSummary, RunEnd, RunOptions, RunRecord, RunVerdict, ScenarioSource, Shard,
    StoredStudy, StudyError, StudyPlan, StudySink, interval, json, shard_folder, simulate, summarize,
};
use farpace_tcp::config::ExternalControl;
use farpace_units::Span;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often Ctrl-C is looked for.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Lets `work` run in a thread without the interpreter's lock, and tells it to stop when Ctrl-C is pressed:
/// only the main thread of Python hears that.
pub fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&AtomicBool) -> T + Send) -> PyResult<T> {
    let (done, wait) = channel();
    let (result, signal) = py.detach(move || {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || _ = done.send(work(stop)));
            let mut signal = None;
            loop {
                match wait.recv_timeout(ASK_EVERY) {
                    Ok(result) => return (Some(result), signal),
                    Err(RecvTimeoutError::Disconnected) => return (None, signal),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(error) = Python::attach(|py| py.check_signals()) {
                            stop.store(true, Ordering::Relaxed);
                            signal.get_or_insert(error);
                        }
                    }
                }
            }
        })
    });
    match (signal, result) {
        (Some(signal), _) => Err(signal),
        (None, Some(result)) => Ok(result),
        (None, None) => Err(failed(anyhow!("the work has panicked: a defect of farpace"))),
    }
}

struct Quiet<'a>(&'a AtomicBool);

impl StudySink for Quiet<'_> {
    fn begin(&self, _: u64, _: u64) {}
    fn finished(&self, _: &RunRecord) {}
    fn spared(&self, _: u64) {}
    fn clock(&self) -> Box<dyn Fn() -> RunVerdict + '_> {
        Box::new(|| if self.0.load(Ordering::Relaxed) { RunVerdict::Stop } else { RunVerdict::GoOn })
    }
}

impl ProgressSink for Quiet<'_> {
    fn begin(&self, _: usize, _: usize) {}
    fn started(&self, _: &str) {}
    fn finished(&self) {}
    fn end(&self) {}
}

/// What a sweep takes besides its scenario.
#[derive(FromPyObject)]
pub struct SweepOptions {
    set: Vec<(String, String)>,
    vary: Vec<String>,
    seeds: u64,
    out: PathBuf,
    samples: Option<String>,
    stop_at: Option<f64>,
    jobs: Option<usize>,
    shard: Option<String>,
    /// Runs that crashed, failed or were overdue are made again.
    pub retry: bool,
    /// All runs that are there are forgotten.
    pub restart: bool,
}

impl SweepOptions {
    /// What is to be run, with controls that flows may name.
    pub fn plan(&self, source: PyScenario, controls: Vec<ExternalControl>) -> Result<StudyPlan, StudyError> {
        let set = self.set.clone();
        let source = ScenarioSource { name: source.name, text: source.text, folder: source.folder, set };
        let (vary, samples) = (self.vary.clone(), self.samples.clone());
        let spec = PlanSpec { vary, seeds: self.seeds, samples, stop_at: self.stop_at, first_seed: 0 };
        StudyPlan::controlled(source, spec, controls)
    }

    /// The part of the study, and the folder of it.
    pub fn place(&self) -> PyResult<(Option<Shard>, PathBuf)> {
        let shard = self.shard.as_ref().map(|text| text.parse()).transpose();
        let shard = shard.map_err(|error: String| failed(anyhow!(error)))?;
        Ok((shard, shard.map_or_else(|| self.out.clone(), |shard| shard_folder(&self.out, shard))))
    }
}

/// A congestion control: its name, what makes it, and what identifies that.
type VersionedControl = (String, Py<PyAny>, String);

/// Makes the runs of a study that its folder does not have yet. Returns the folder. The first error of a
/// control ends the study.
#[pyfunction]
pub fn sweep(
    py: Python<'_>,
    source: PyScenario,
    options: SweepOptions,
    controls: Vec<VersionedControl>,
) -> PyResult<PathBuf> {
    let (shard, folder) = options.place()?;
    let failure = ControlFailure::default();
    let named: Vec<_> = controls.iter().map(|(name, make, _)| (name.clone(), make.clone_ref(py))).collect();
    let versions = controls.iter().map(|(.., version)| version);
    let external = external(py, &named, &failure)?.into_iter().zip(versions);
    let external: Vec<_> = external.map(|(control, version)| control.with_version(version)).collect();
    refuse_own_names(&external).map_err(failed)?;
    // An error of a control is no property of the path: it ends the study as Ctrl-C does.
    let simulate_controlled = |scenario: &Scenario, seed: u64, verdict: &dyn Fn() -> RunVerdict| {
        let verdict = || if failure.is_set() { RunVerdict::Stop } else { verdict() };
        let made = simulate(scenario, seed, &verdict);
        if failure.is_set() { Err(RunEnd::Stopped) } else { made }
    };
    let made = interruptible(py, |stop| {
        let plan = options.plan(source, external)?;
        if let Some((name, ..)) = controls.iter().find(|(name, ..)| !plan.uses_control(name)) {
            let why = format!("no flow has the control `{name}`, and no value of `vary` is its name");
            return Err(StudyError::Invalid(why));
        }
        let version = farpace::sweep::version();
        let o = &options;
        let local = RunOptions {
            threads: o.jobs,
            shard,
            retry: o.retry,
            simulate: &simulate_controlled,
            version: &version,
        };
        farpace_study::run(&plan, &folder, o.restart, &local, &Quiet(stop))
    })?;
    if let Some(error) = failure.take() {
        return Err(error);
    }
    made.map_err(|error| failed(anyhow!(error)))?;
    Ok(folder)
}

/// The name of a shard's folder, below that of its study.
#[pyfunction]
pub fn shard_name(shard: &str) -> PyResult<PathBuf> {
    let shard = shard.parse().map_err(|error: String| failed(anyhow!(error)))?;
    Ok(farpace_study::shard_folder(Path::new(""), shard))
}

/// The means of a study, as JSON and as a table.
#[pyfunction]
pub fn show(study: PathBuf, flow: Option<String>) -> PyResult<(String, ArrowTable)> {
    let stored = StoredStudy::read(&study).map_err(|error| failed(anyhow!(error)))?;
    if let Some(flow) = &flow {
        stored.check_flow(flow).map_err(|error| failed(anyhow!(error)))?;
    }
    let points = summarize(&stored, flow.as_deref());
    let vary = &stored.provenance.plan.vary;
    let paths = vary.iter().filter_map(|text| text.split_once('=')).map(|(path, _)| path.trim().to_owned());
    let mut columns: Vec<(String, PointColumn)> = paths
        .enumerate()
        .map(|(axis, path)| {
            (path, PointColumn::Text(points.iter().map(|p| p.values[axis].clone()).collect()))
        })
        .collect();
    let mut counted = |name: &str, count: fn(&PointSummary) -> usize| {
        columns.push((name.into(), PointColumn::Count(points.iter().map(|p| count(p) as i64).collect())));
    };
    counted("runs", |p| p.runs);
    counted("complete_runs", |p| p.complete);
    counted("bad", |p| p.bad);
    for metric in Metric::ALL {
        let numbers = |of: fn(&farpace_papers::statistics::Summary) -> f64| {
            let finite = |n: f64| n.is_finite().then_some(n);
            points.iter().map(|p| p.metric(metric).map(of).and_then(finite)).collect()
        };
        columns.push((metric.key().to_owned(), PointColumn::Number(numbers(|s| s.mean))));
        columns.push((format!("{}_ci95", metric.key()), PointColumn::Number(numbers(interval))));
    }
    Ok((json(&stored, &points).to_string(), ArrowTable::of_columns(columns)?))
}

/// What `farpace cc compare --json` prints.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    path: String,
    source: Option<PyScenario>,
    only: Vec<String>,
    seeds: u64,
    time: Option<String>,
) -> PyResult<String> {
    let time = time.map(|text| text.parse::<Span>()).transpose().map_err(|error| failed(anyhow!(error)))?;
    let report = interruptible(py, |stop| -> anyhow::Result<String> {
        let base = match source {
            Some(source) => source.scenario(&[])?,
            None => ControlComparison::named_path(&path, &[])?.with_context(|| {
                format!("there is no path `{path}`: {}", ControlComparison::path_names().join(", "))
            })?,
        };
        let base = base.drawn(base.seed);
        let comparison = ControlComparison::new(&path, base, chosen_controls(&only)?, seeds, time)?;
        let plan = Runner::plan(&comparison)?;
        let stopped = || stop.load(Ordering::Relaxed);
        let runner = Runner {
            threads: None,
            stop: &stopped,
            progress: &Quiet(stop),
            kept: None,
            program: String::new(),
        };
        let report = runner.run(&comparison, plan, "farpace.cc.compare")?;
        Ok(serde_json::to_string(&report.json)?)
    })?;
    report.map_err(failed)
}
