//! `farpace pacing`: packets that leave evenly, and the proof of it.

pub mod report;

use anyhow::Result;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace pacing report trace.pcap";

/// The arguments of `farpace pacing`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// How evenly the flows of a capture are paced, and whether that is precise
    Report(report::Args),
}

/// `farpace pacing`.
///
/// # Errors
/// A file that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Report(args) => report::run(args),
    }
}
