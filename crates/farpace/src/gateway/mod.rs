//! `farpace gateway`: TCP of a whole site split on its router.
//!
//! Start reading at [`run`]; a file for each command. The gateway on a host is
//! [`farpace_gateway_service`], its core [`farpace_gateway`].

mod capture;
mod check;
mod install;
mod keys;
mod status;
mod top;
mod up;

use crate::terminal;
use anyhow::Result;
use farpace_gateway_service::{peer_schema, schema, watchdog};
use std::process::ExitCode;

const AFTER_HELP: &str = "\
A gateway runs on the router between a LAN and a far link. Hosts speak TCP with it, and it speaks with the \
hosts beyond the link, with the loss recovery, congestion control and pacing of a farpace host. The hosts \
need no change; they see each other's own addresses, ports and numbers. Other traffic passes unchanged. If \
the gateway ends or is killed, connections pass by the kernel. Two gateways are a pair: both split, with \
an encrypted tunnel over one or several links between them.

Examples:
  farpace gateway check --lan eth0 --wan eth1       problems of this router, with the commands that fix them
  farpace gateway up --lan eth0 --wan eth1          until Ctrl-C
  farpace gateway up --config gateway.toml --metrics 127.0.0.1:9745
  farpace gateway status                            connections, legs, rates, RTT, what limits each
  farpace gateway top                               the same, live
  farpace gateway capture start captures            packets of both sides, for tshark and `farpace explain`
  farpace gateway keys a=10.1.0.0/16 b=10.2.0.0/16 --endpoint b=198.51.100.7 --paths 2
  farpace gateway up --lan eth0 --peer b.conf --via wan0 --via lte0    a pair: a tunnel over two links
  farpace gateway install --lan eth0 --wan eth1     a systemd unit with a watchdog, and its configuration

It needs root, or the capabilities CAP_NET_ADMIN and CAP_NET_RAW. docs/gateway.md.

Exit codes: 0 done, 1 `check` finds a problem, 2 no rights, or a bad configuration.";

/// The arguments of `farpace gateway`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it in a process")]
enum Command {
    /// Split TCP between interfaces of this router
    Up(up::GatewayUpArgs),
    /// Check the router: forwarding, routes, NAT, MTU, filters, offloads; print findings and commands that
    /// fix them
    Check(check::CheckArgs),
    /// Connections, legs, rates, round trips, losses, and what limits each
    Status(status::GatewayStatusArgs),
    /// The same, live on the terminal
    Top(top::TopArgs),
    /// Begin or end captures of both sides of a running gateway
    Capture(capture::CaptureArgs),
    /// Write a systemd unit with a watchdog, and a configuration
    Install(install::InstallArgs),
    /// Make the two files of a pair of gateways, with keys and endpoints
    Keys(keys::KeysArgs),
    /// Print the JSON schema of the configuration
    #[command(after_help = "Examples:\n  farpace gateway schema > gateway.schema.json\n  \
                      farpace gateway schema --peer > peer.schema.json")]
    Schema {
        /// Print the schema of the file of a peer
        #[arg(long)]
        peer: bool,
    },
    /// End a gateway that hangs, and remove its settings; started by `up`
    #[command(after_help = "It reads signs of life from its standard input.\n\n\
                      Examples:\n  farpace gateway watchdog 4711 1234567    as `up` starts it")]
    Watchdog {
        /// Process of the gateway
        pid: i32,
        /// When it was started, in ticks
        started: u64,
    },
}

/// `farpace gateway`.
///
/// # Errors
/// See each command.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Up(args) => up::run(args),
        Command::Check(args) => check::run(args),
        Command::Status(args) => status::run(args),
        Command::Top(args) => top::run(args),
        Command::Capture(args) => capture::run(args),
        Command::Install(args) => install::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Schema { peer } => {
            let schema = if *peer { peer_schema() } else { schema() };
            terminal::print_json(&schema)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Watchdog { pid, started } => {
            watchdog::run(*pid, *started, terminal::note)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
