//! One run, and scenarios.

use crate::arguments::PyScenario;
use crate::failed;
use crate::table::ArrowTable;
use anyhow::{Context, Result};
use farpace::run::{RunResult, run_scenario};
use farpace_events::Record;
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
) -> PyResult<RunHandle> {
    let scenario = source.scenario(&set).map_err(failed)?;
    let mut signal = None;
    let made = py.detach(|| -> Result<RunResult> {
        let mut bins = 0u32;
        run_scenario(&scenario, Path::new(&source.name), &set, trace, |_| {
            bins = bins.wrapping_add(1);
            if bins.is_multiple_of(ASK_EVERY) {
                signal = Python::attach(|py| py.check_signals()).err();
            }
            signal.is_none()
        })
    });
    if let Some(signal) = signal {
        return Err(signal);
    }
    let RunResult { summary, records } = made.map_err(failed)?;
    let summary = serde_json::to_value(&summary).context("cannot write the summary").map_err(failed)?;
    let flows = ArrowTable::of_flows(summary["flows"].as_array().map_or(&[][..], Vec::as_slice))?;
    Ok(RunHandle { summary: summary.to_string(), flows, records, trace: OnceLock::new() })
}

/// Checks a scenario, and says in words what it means.
#[pyfunction]
pub fn check(source: PyScenario, set: Vec<(String, String)>) -> PyResult<String> {
    source.scenario(&set).map(|scenario| farpace_lab::scenario::explain(&scenario)).map_err(failed)
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
