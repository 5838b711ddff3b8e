//! `farpace ss`: the sockets of the farpace hosts of this user.

use crate::terminal;
use anyhow::Result;
use farpace_live::hosts;
use farpace_live::socket::{ListedProtocol, Listing, SocketRow, list_text};
use serde_json::json;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
Each process with a host shows its sockets: `farpace up`, programs under `farpace exec`, `farpace send` \
and `farpace recv` with --tun, and programs in C that set `control=NAME`. The words are those of ss -tuni \
of iproute2, and:
  limit:...        what keeps the connection from sending more: program, receive window, congestion window
  ack_requests:78/77   requests sent, and answers received
  ack_answers:12/12    requests received, and answers sent
  dropped:5        datagrams dropped because the buffer of a UDP socket was full

Examples:
  farpace ss                     connections of all hosts of this user
  farpace ss --all               listeners, and UDP sockets that are not connected, too
  farpace ss -ul                 UDP sockets that are not connected
  farpace ss --pid 4711 --json   those of one process, for programs
  sudo farpace ss                those of hosts that run as root

The other end of the control socket is open to the same user and root alone. See docs/sockets.md.";

/// The arguments of `farpace ss`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// TCP alone, unless --udp is given, too
    #[arg(short, long)]
    tcp: bool,
    /// UDP alone, unless --tcp is given, too
    #[arg(short, long)]
    udp: bool,
    /// Listeners and connections; UDP sockets connected or not
    #[arg(short, long)]
    all: bool,
    /// Listeners alone; UDP sockets that are not connected
    #[arg(short, long, conflicts_with = "all")]
    listening: bool,
    /// Hosts of this process alone
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn shows(&self, row: &SocketRow) -> bool {
        let wanted = match row.protocol {
            ListedProtocol::Tcp => self.tcp || !self.udp,
            ListedProtocol::Udp => self.udp || !self.tcp,
        };
        wanted && (self.all || self.listening == row.peer.is_none())
    }
    /// Sockets of both protocols are shown, so each says which it has.
    const fn is_mixed(&self) -> bool {
        self.tcp == self.udp
    }
}

/// `farpace ss`.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let mut found = hosts();
    found.hosts.retain(|host| args.pid.is_none_or(|pid| pid == host.pid));
    for host in &mut found.hosts {
        host.sockets.retain(|row| args.shows(row));
    }
    for (path, why) in &found.silent {
        terminal::note(&format!("{}: no list: {why}", path.display()));
    }
    if args.json {
        terminal::print_json(&json!({ "format": "farpace-ss/1", "hosts": found.hosts }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.hosts.is_empty() {
        terminal::note("no farpace host of this user runs; those of root are shown to root");
    }
    let texts: Vec<_> = found.hosts.iter().map(|host| of_host(host, args.is_mixed())).collect();
    terminal::print(&texts.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn of_host(host: &Listing, mixed: bool) -> String {
    let addresses: Vec<_> = host.addresses.iter().map(ToString::to_string).collect();
    let mut text = format!("{} (pid {}), {}\n", printable(&host.name), host.pid, addresses.join(", "));
    text += &list_text(&host.sockets, mixed);
    if host.left_out > 0 {
        text += &format!("{} sockets more\n", host.left_out);
    }
    text
}

/// A name that another process has chosen, without what a terminal would obey.
fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
