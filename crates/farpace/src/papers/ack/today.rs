//! CDL on the paths and stacks of today.

use anyhow::{Result, bail};
use std::process::ExitCode;

/// `farpace papers ack --today`.
///
/// # Errors
/// A scenario that cannot run, or a file that cannot be written.
pub fn run(_: &super::Args) -> Result<ExitCode> {
    bail!("--today is not made yet")
}
