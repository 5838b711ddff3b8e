//! Scenarios and settings as Python gives them.

use anyhow::{Result, anyhow};
use farpace_lab::scenario::{MAX_TEXT, Scenario};
use pyo3::FromPyObject;
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
}

impl PyScenario {
    /// Reads and checks it.
    pub fn scenario(&self, set: &[(String, String)]) -> Result<Scenario> {
        let beside = |name: &str| read_beside(&self.folder.join(name));
        Scenario::parse_beside(&self.text, &self.name, set, &beside).map_err(|error| anyhow!("{error}"))
    }
}

fn read_beside(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|f| f.take(MAX_TEXT.get() + 1).read_to_string(&mut text));
    read.map(|_| text).map_err(|error| error.to_string())
}
