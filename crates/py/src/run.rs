//! One run, and scenarios.

use crate::arguments::PyScenario;
use crate::control::{ControlFailure, external};
use crate::failed;
use crate::table::ArrowTable;
use anyhow::{Context, Result};
use farpace_events::Record;
use farpace_lab::scenario::{MixSpec, Scenario};
use farpace_run::{RunResult, run_scenario};
use farpace_tcp::config::Settings;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::Path;
use std::sync::OnceLock;

/// Bins of virtual time between two questions whether Ctrl-C was pressed.
const ASK_EVERY: u32 = 100;

/// What came of a run.
#[pyclass(frozen, name = "Run")]
pub struct RunHandle {
    summary: String,
    flows: ArrowTable,
    records: Vec<Record>,
    trace: OnceLock<ArrowTable>,
}

#[pymethods]
impl RunHandle {
    /// What `farpace run --json` prints.
    #[getter]
    fn summary_json(&self) -> &str {
        &self.summary
    }

    /// A row for each flow.
    #[getter]
    fn flows(&self) -> ArrowTable {
        self.flows.clone()
    }

    /// A row for each segment and ACK.
    #[getter]
    fn trace(&self) -> PyResult<ArrowTable> {
        if let Some(table) = self.trace.get() {
            return Ok(table.clone());
        }
        let table = ArrowTable::of_records(&self.records)?;
        Ok(self.trace.get_or_init(|| table).clone())
    }
}

/// Runs a scenario.
#[pyfunction]
pub fn run(
    py: Python<'_>,
    source: PyScenario,
    set: Vec<(String, String)>,
    trace: bool,
    controls: Vec<(String, Py<PyAny>)>,
) -> PyResult<RunHandle> {
    let failure = ControlFailure::default();
    let scenario = source.controlled(&set, &external(py, &controls, &failure)?).map_err(failed)?;
    refuse_unused(&scenario, controls.iter().map(|(name, _)| name))?;
    let mut signal = None;
    let made = py.detach(|| -> Result<RunResult> {
        let mut bins = 0u32;
        run_scenario(&scenario, Path::new(&source.name), &set, trace, |_| {
            bins = bins.wrapping_add(1);
            if bins.is_multiple_of(ASK_EVERY) {
                signal = Python::attach(|py| py.check_signals()).err();
            }
            signal.is_none() && !failure.is_set()
        })
    });
    if let Some(signal) = signal {
        return Err(signal);
    }
    if let Some(error) = failure.take() {
        return Err(error);
    }
    let RunResult { summary, records } = made.map_err(failed)?;
    let summary = serde_json::to_value(&summary).context("cannot write the summary").map_err(failed)?;
    let flows = ArrowTable::of_flows(summary["flows"].as_array().map_or(&[][..], Vec::as_slice))?;
    Ok(RunHandle { summary: summary.to_string(), flows, records, trace: OnceLock::new() })
}

/// A control that is given, and that no flow has, is a mistake.
pub fn refuse_unused<'a>(scenario: &Scenario, names: impl Iterator<Item = &'a String>) -> PyResult<()> {
    for name in names {
        let is = |settings: &Settings| settings.external.as_ref().is_some_and(|own| own.name() == name);
        let used = scenario.flows.iter().any(|flow| {
            let of_mix = |part: &MixSpec| {
                is(&part.sender) || part.receiver.as_ref().is_some_and(|settings| is(settings))
            };
            is(&flow.sender) || is(&flow.receiver) || flow.mix.iter().any(of_mix)
        });
        if !used {
            let first = scenario.flows.first().map_or("bulk", |flow| flow.name.as_str());
            return Err(PyValueError::new_err(format!(
                "no flow has the control `{name}`: set congestion = \"{name}\" in the sender of a flow, as \
                 with **{{\"flows.{first}.sender.congestion\": \"{name}\"}}"
            )));
        }
    }
    Ok(())
}

/// Checks a scenario, and says in words what it means.
#[pyfunction]
pub fn check(source: PyScenario, set: Vec<(String, String)>) -> PyResult<String> {
    source.check(&set).map(|scenario| farpace_lab::scenario::explain(&scenario)).map_err(failed)
}

/// A scenario given as JSON, as TOML.
#[pyfunction]
pub fn to_toml(json: &str) -> PyResult<String> {
    let value: toml::Value =
        serde_json::from_str(json).context("the scenario is no table").map_err(failed)?;
    toml::to_string(&value).context("the scenario cannot be written as TOML").map_err(failed)
}

/// The JSON schema of scenarios.
#[pyfunction]
pub fn schema() -> String {
    farpace_lab::scenario::schema().to_string()
}
