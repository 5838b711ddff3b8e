//! `farpace pacing`: what people write and read about pacing, and the proof of it.

mod file;
pub mod report;
mod show;
mod statistics;
mod tc;
mod up;

pub use file::read;

use anyhow::Result;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace pacing tc qdisc add dev eth0 root handle 1: edf default 2
  farpace pacing tc class add dev eth0 parent 1: classid 1:1 edf rate 500mbit
  farpace pacing show --line \"1 Gbit/s\"               rates, gaps, and how much of the line is promised
  farpace run wan.toml --pace a=pacing.toml           a run with it
  farpace pacing show -s out                          and its counters
  farpace pacing up --iface eth1 --addr 10.9.0.1/24 --rate 100mbit    real packets, under the kernel's TCP
  farpace pacing report trace.pcap                    how evenly the flows of a capture are paced

docs/pacing.md describes all keys.";

/// The arguments of `farpace pacing`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Change a pacing configuration with commands of tc
    Tc(tc::Args),
    /// Print the effect of a pacing configuration on a link, or its counters in a run
    Show(show::Args),
    /// Measure how evenly the flows of a capture are paced
    Report(report::Args),
    /// Pace what this host sends on an interface, under the kernel's own TCP
    Up(up::Args),
}

/// `farpace pacing`.
///
/// # Errors
/// Commands that are wrong, or files that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Tc(args) => tc::run(args),
        Command::Show(args) => show::run(args),
        Command::Report(args) => report::run(args),
        Command::Up(args) => up::run(args),
    }
}
