//! `farpace lab`: the network of a scenario between network namespaces, in real time.
//!
//! Start reading at `up`; `manage` looks at labs that are up and takes them down.

mod manage;
mod up;

use crate::{lab_compare, lab_grid};
use anyhow::Result;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each host of the scenario becomes a network namespace with one interface, far0, which has the host's \
address. The scenario's network runs between them in real time: links, queues, policers, losses, routers, \
switches, and the layer below hosts with several NICs. Unmodified programs run in the namespaces with the \
kernel's TCP. Flows of the scenario are not started. Needs root and iproute2.

Examples:
  farpace lab up scenarios/gallery/lossy.toml              up, in the background
  farpace lab exec lossy b -- iperf3 -s &
  farpace lab exec lossy a -- iperf3 -c 10.0.0.2
  farpace lab list
  farpace lab down lossy
  farpace lab up wan.toml --set links.wan.delay=\"50 ms\" -- ./trial.sh      up for as long as a program runs

See docs/emulator.md.";

const UP_HELP: &str = "\
Examples:
  farpace lab up scenarios/gallery/lossy.toml                 up, in the background
  farpace lab up wan.toml --set links.wan.delay=\"50 ms\" -- ./trial.sh      up for as long as a program \
  runs";
const DOWN_HELP: &str = "\
Examples:
  farpace lab down lossy
  farpace doctor --clean             labs whose program was killed, too";
const LIST_HELP: &str = "\
Examples:
  farpace lab list
  farpace lab list --json";
const EXEC_HELP: &str = "\
Examples:
  farpace lab exec lossy a -- ping -c 3 10.0.0.2
  farpace lab exec lossy b -- iperf3 -s";

/// The arguments of `farpace lab`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Make the network of a scenario, with a namespace for each host
    #[command(after_help = UP_HELP)]
    Up(up::Args),
    /// Stop a lab, and remove all that it made
    #[command(after_help = DOWN_HELP)]
    Down(manage::DownArgs),
    /// List the labs that are up, or were left behind
    #[command(after_help = LIST_HELP)]
    List(manage::ListArgs),
    /// Run one bulk transfer in virtual time, in real time, and with the kernel's TCP, and say how close they
    /// are
    Compare(lab_compare::Args),
    /// The same over many paths, until it is known how close they are at each
    Grid(lab_grid::Args),
    /// Run a program in a host of a lab
    #[command(after_help = EXEC_HELP)]
    Exec(manage::ExecArgs),
}

/// `farpace lab`.
///
/// # Errors
/// What keeps a lab from being made or found.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Up(args) => up::run(args),
        Command::Down(args) => manage::down(args),
        Command::List(args) => manage::list(args),
        Command::Compare(args) => lab_compare::run(args),
        Command::Grid(args) => lab_grid::run(args),
        Command::Exec(args) => manage::exec(args),
    }
}
