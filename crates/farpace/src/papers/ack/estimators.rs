//! Estimators of the timeout, with and without confirmed samples.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// `farpace papers ack --estimators`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(_: &super::Args) -> Result<ExitCode> {
    bail!("--estimators is not made yet")
}
