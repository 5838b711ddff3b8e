//! `farpace exec`: a program that knows nothing of farpace, on a farpace host.
//!
//! The host is in the program's own process: a library that is loaded before all others (`crates/preload`)
//! takes libc's calls for sockets and gives those for farpace's networks to the C interface (`crates/capi`).
//! Here is only what must be said before: where the host is to be (`words`), and whether the program can be
//! helped so (`program`).

mod libraries;
mod program;
mod words;

use anyhow::{Context, Result};
use farpace_live::InterfacePrefix;
use farpace_units::ByteCount;
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const AFTER_HELP: &str = "\
The program gets a host of its own, on a new TUN device or, with --iface, on an existing Ethernet. Its TCP \
and UDP sockets for the networks of that host (--addr, --route, and everything with --gateway) are \
farpace's. Loopback, unix sockets, all other addresses and name resolution are the kernel's. A server that \
listens at all addresses listens on farpace's. The device is made when the first such socket is used, and \
is removed with the program.

Examples:
  farpace exec -- python3 -m http.server 8000         then: curl http://10.77.0.2:8000/
  farpace exec -- curl http://10.77.0.1/              from the kernel's web server on this machine
  farpace exec --profile farpace --pcap up.pcapng -- iperf3 -c 10.77.0.1
  farpace exec --set ack_control=unilateral -- curl -O http://10.77.0.1/film.mp4
  farpace exec --iface eth1 --addr 192.168.1.77/24 --gateway 192.168.1.1 -- curl https://example.org/
  farpace exec --wireguard wg0.conf -- curl http://10.9.0.1/     through a WireGuard tunnel, without root
  farpace exec --tun fp1 --addr 10.78.0.2/24 --route 0.0.0.0/0 -- curl http://192.0.2.1/

With --wireguard addresses are those of the file, and the networks of AllowedIPs are farpace's. Without \
it, the command needs root (rights of the file `farpace` do not pass to the program). The program must \
call libc: programs that are statically linked, written in Go, or setuid are refused. Children of a \
program that uses the host use it as well, as long as that program lives; unrelated programs do not share \
it. See docs/exec.md.";

/// The arguments of `farpace exec`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Args {
    /// Make a TUN device with this name [default: fp0]
    #[arg(long, value_name = "NAME", group = "device")]
    tun: Option<String>,
    /// Make a TAP device with this name: Ethernet, with ARP
    #[arg(long, value_name = "NAME", group = "device")]
    tap: Option<String>,
    /// Be on this interface, beside the system
    #[arg(long, value_name = "NAME", group = "device", requires = "addr")]
    iface: Option<String>,
    /// Be behind WireGuard tunnels over UDP, as this file says (wg-quick's form); needs no privileges
    #[arg(long, value_name = "FILE", group = "device", conflicts_with_all = ["addr", "peer_addr", "gateway"])]
    wireguard: Option<PathBuf>,
    /// Address of the host with its network, IPv4 or IPv6; may be repeated [default: 10.77.0.2/24]
    #[arg(long, value_name = "ADDR/BITS", value_parser = farpace_live::prefix)]
    addr: Vec<InterfacePrefix>,
    /// Address of the kernel on the TUN or TAP device [default: the first of the network]
    #[arg(long, value_name = "ADDR", conflicts_with = "iface")]
    peer_addr: Vec<IpAddr>,
    /// Memory limit of its connections, as in "2 GiB" [default: a quarter of the host's memory]
    #[arg(long, value_name = "BYTES", value_parser = crate::transfer::bytes)]
    memory: Option<ByteCount>,
    /// Router to all other networks, one for each family; then everything but loopback is farpace's
    #[arg(long, value_name = "ADDR")]
    gateway: Vec<IpAddr>,
    /// Another network that is farpace's; may be repeated
    #[arg(long, value_name = "ADDR/BITS", value_parser = words::network)]
    route: Vec<InterfacePrefix>,
    /// Longest IP packet in bytes [default: 1500, or that of the interface]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(576..), conflicts_with = "iface")]
    mtu: Option<u16>,
    /// TCP of the program: see `farpace profiles`
    #[arg(long, value_name = "NAME", default_value = "modern")]
    profile: String,
    /// A setting of its TCP, as in scenarios: ack_control=safe; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write packets to this file (pcapng), split and with checksums as on a link
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// `farpace exec`. It returns only if there is an error: this process becomes the program.
///
/// # Errors
/// Arguments that make no sense, a program that is not there or cannot be helped, rights that are missing.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (name, rest) = args.command.split_first().context("no program")?;
    let path = program::find(name)?;
    program::check(&path)?;
    let libraries = libraries::find()?;
    let words = words::of(args, &libraries.stack)?;
    words::try_device(args)?;
    let mut preload = OsString::from(&libraries.preload);
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let mut command = Command::new(&path);
    command.arg0(name).args(rest).env("LD_PRELOAD", preload).env("FARPACE_EXEC", words);
    Err(command.exec()).with_context(|| format!("cannot run `{}`", path.display()))
}
