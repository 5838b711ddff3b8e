//! The Python package `farpace`: runs, studies and analyses as functions.
//!
//! Start reading at `python/farpace/__init__.py`, which says what is public; `run.rs` and `study.rs` are what
//! it calls here. Tables go to Python by the Arrow C data interface (`table.rs`), without a copy. This crate
//! never computes a result: it reads arguments and asks the crates below. The interpreter's lock is released
//! while they work.

mod arguments;
mod cluster;
mod control;
mod episode;
mod run;
mod stepped;
mod study;
mod table;
mod window;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::path::PathBuf;

/// An error for Python, with its causes.
fn failed(error: anyhow::Error) -> PyErr {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    PyValueError::new_err(text)
}

/// What `farpace explain --json` prints of captures, traces or logs.
#[pyfunction]
fn explain_json(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<String> {
    let report = py
        .detach(|| farpace_explain_report::json::report_of(&files))
        .map_err(|error| failed(error.into()))?;
    Ok(report.to_string())
}

/// The module.
#[pymodule]
fn _farpace(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::ArrowTable>()?;
    module.add_class::<run::RunHandle>()?;
    module.add_class::<window::PyWindow>()?;
    module.add_class::<control::PyAckSample>()?;
    module.add_class::<control::PyCongestionEvent>()?;
    module.add_class::<episode::PyEpisode>()?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::check, module)?)?;
    module.add_function(wrap_pyfunction!(run::to_toml, module)?)?;
    module.add_function(wrap_pyfunction!(run::schema, module)?)?;
    module.add_function(wrap_pyfunction!(study::sweep, module)?)?;
    module.add_class::<cluster::PyStudyQueue>()?;
    module.add_function(wrap_pyfunction!(cluster::make_planned, module)?)?;
    module.add_function(wrap_pyfunction!(cluster::build, module)?)?;
    module.add_function(wrap_pyfunction!(study::shard_name, module)?)?;
    module.add_function(wrap_pyfunction!(study::show, module)?)?;
    module.add_function(wrap_pyfunction!(study::compare, module)?)?;
    module.add_function(wrap_pyfunction!(arguments::seconds, module)?)?;
    module.add_function(wrap_pyfunction!(explain_json, module)?)
}
