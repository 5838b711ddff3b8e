//! Errors in a configuration.

use std::fmt;
use thiserror::Error;

/// An error in a configuration and its position: the table or list, the index (from 0), and the key.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct ConfigError {
    /// Path of the wrong value: `classes`, `2`, `rate`.
    pub at: Vec<String>,
    /// What is wrong.
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(at: &[&str], problem: impl fmt::Display) -> Self {
        ConfigError { at: at.iter().map(|step| (*step).to_owned()).collect(), problem: problem.to_string() }
    }
}
