//! `farpace lab`: the network of a scenario between network namespaces, in real time.

use anyhow::Result;
use std::process::ExitCode;

/// The arguments of `farpace lab`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {}

/// `farpace lab`.
///
/// # Errors
/// None.
pub fn run(_: &Args) -> Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
