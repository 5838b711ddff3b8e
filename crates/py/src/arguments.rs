//! Scenarios and settings as Python gives them.

use crate::failed;
use anyhow::{Result, anyhow, bail};
use farpace_lab::scenario::{MAX_TEXT, Scenario};
use farpace_tcp::cc::PerAckReno;
use farpace_tcp::config::{Congestion, ExternalControl};
use farpace_units::Span;
use pyo3::prelude::*;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A scenario as text, with its name and the folder of the files that it names.
#[derive(Clone, FromPyObject)]
pub struct PyScenario {
    /// The name in messages and summaries.
    pub name: String,
    /// TOML.
    pub text: String,
    /// The folder.
    pub folder: PathBuf,
    /// Names of congestion controls that the program supplies.
    pub controls: Vec<String>,
}

impl PyScenario {
    /// Reads and checks it.
    pub fn scenario(&self, set: &[(String, String)]) -> Result<Scenario> {
        self.controlled(set, &[])
    }

    /// Checks it, with the controls of which it only has the names.
    pub fn check(&self, set: &[(String, String)]) -> Result<Scenario> {
        // A check runs nothing: none of them is ever made.
        let named = |name: &String| ExternalControl::new(name, |_| Box::new(PerAckReno));
        self.controlled(set, &self.controls.iter().map(named).collect::<Vec<_>>())
    }

    /// Reads it with the congestion controls that its flows may name.
    pub fn controlled(&self, set: &[(String, String)], controls: &[ExternalControl]) -> Result<Scenario> {
        refuse_own_names(controls)?;
        let beside = |name: &str| read_beside(&self.folder.join(name));
        Scenario::parse_controlled(&self.text, &self.name, set, &beside, controls)
            .map_err(|error| anyhow!("{error}"))
    }
}

/// A control of a program cannot have the name of one of farpace's.
pub fn refuse_own_names(controls: &[ExternalControl]) -> Result<()> {
    match controls.iter().find(|c| Congestion::ALL.iter().any(|own| own.name() == c.name())) {
        Some(own) => {
            bail!("`{}` is one of farpace's own congestion controls: give yours another name", own.name())
        }
        None => Ok(()),
    }
}

/// A time as scenarios write it, in seconds.
#[pyfunction]
pub fn seconds(time: &str) -> PyResult<f64> {
    let span: Span = time.parse().map_err(|error| failed(anyhow!("{error}")))?;
    Ok(span.as_secs_f64())
}

fn read_beside(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(MAX_TEXT.get() + 1).read_to_string(&mut text));
    read.map(|_| text).map_err(|error| error.to_string())
}
