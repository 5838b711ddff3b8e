//! `farpace notices`: the licences of what this program is made of.

use crate::terminal;
use anyhow::Result;
use std::process::ExitCode;

/// Names, versions, licences and their texts. tools/notices.py writes it.
pub const TEXT: &str = include_str!("../NOTICES.txt");

const AFTER_HELP: &str = "\
Example:
  farpace notices | less";

/// The arguments of `farpace notices`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {}

/// `farpace notices`.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(_: &Args) -> Result<ExitCode> {
    terminal::print(TEXT)?;
    Ok(ExitCode::SUCCESS)
}
