//! `farpace papers ack`: asking the receiver for ACKs that are not held back (CDL).

mod estimators;
mod today;

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::process::ExitCode;

/// The arguments of `farpace papers ack`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Print JSON; the report is written all the same
    #[arg(long)]
    pub json: bool,
    /// The directory for report.html and figures/*.svg
    #[arg(long, value_name = "DIR", default_value = "out/ack")]
    pub out: PathBuf,
    /// Less of everything
    #[arg(long)]
    pub quick: bool,
    /// Not the thesis: what asking gains on paths of today
    #[arg(long, conflicts_with = "estimators")]
    pub today: bool,
    /// Not the thesis: what asking gives estimators of round trip, timeout and bandwidth
    #[arg(long)]
    pub estimators: bool,
    /// Runs at a time [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// `farpace papers ack`.
///
/// # Errors
/// Whatever keeps the measurement from being made or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.today {
        today::run(args)
    } else if args.estimators {
        estimators::run(args)
    } else {
        bail!("choose --today or --estimators")
    }
}
