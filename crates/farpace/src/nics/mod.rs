//! `farpace nics`: several NICs as one: who sends to whom, and what leaves in which order.

mod order;
mod pair;
mod path_spec;
mod show;
mod up;

use anyhow::Result;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Examples:
  farpace nics pair --ours 1G,100M --theirs 100M,1G     which NIC sends to which
  farpace nics order --paths 1G,100M                    in which order frames leave and arrive
  farpace nics order --paths 1G,100M --order skip --skip 8 --ratio 90/10
  farpace nics order --paths \"80 Mbit/s@20 ms,180 Mbit/s@45 ms,150 Mbit/s@30 ms\" --frames 5000
  farpace nics show scenarios/gallery/nics.toml         what hosts know of each other after 200 ms
  farpace nics show lan.pcapng                          who has told of its NICs
  farpace run scenarios/gallery/nics.toml               a transfer over two NICs
  farpace nics up --addr 10.9.0.1/24 --nic eth1 --nic eth2   NICs of this host, under its own TCP
  farpace papers nics                                   what all orders reach

docs/nics.md describes the method and its limits.";

/// The arguments of `farpace nics`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Pair the NICs of two hosts by their kinds
    Pair(pair::Args),
    /// In which order frames leave, by which NIC, and how they arrive
    Order(order::Args),
    /// Show the NICs that hosts announce, in a capture or in a scenario
    Show(show::Args),
    /// Use several NICs of this host as one, under the kernel's own TCP
    Up(up::Args),
}

/// `farpace nics`.
///
/// # Errors
/// Arguments that make no sense, or files that cannot be read or written.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Pair(args) => pair::run(args),
        Command::Order(args) => order::run(args),
        Command::Show(args) => show::run(args),
        Command::Up(args) => up::run(args),
    }
}
