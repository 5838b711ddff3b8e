//! What a run is made from, as its summary and its report name it.

use anyhow::{Context, Result};
use farpace_lab::scenario::Scenario;
use std::path::PathBuf;

/// What a run is made from.
#[derive(Clone, Debug)]
pub struct RunInput {
    /// As it will be run: overrides, seed and the payload's size are in it.
    pub scenario: Scenario,
    /// The scenario's file, as it was given.
    pub file: PathBuf,
    /// What was replaced in it, in order.
    pub set: Vec<(String, String)>,
    /// The command line that repeats this run.
    pub command: String,
}

impl RunInput {
    /// The scenario as it was run, as TOML.
    ///
    /// # Errors
    /// A seed that is too large for TOML.
    pub fn effective(&self) -> Result<String> {
        let toml = self.scenario.to_toml().context("the scenario cannot be written as TOML")?;
        Ok(format!("# As it was run, with all defaults. To run it again: farpace run THIS_FILE\n\n{toml}"))
    }
}
