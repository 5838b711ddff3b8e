//! `farpace kernel`: farpace's congestion control, and what else BPF lets it change, inside the kernel of
//! this machine.
//!
//! Start reading at [`run`]; a file for each command. What is loaded is `crates/kernel`, and only with the
//! feature `kernel`; `crates/kernel-service` keeps it there.

#![cfg_attr(not(feature = "kernel"), allow(dead_code, reason = "this build only parses the words"))]

mod words;

#[cfg(feature = "kernel")]
mod doctor;
#[cfg(feature = "kernel")]
mod down;
#[cfg(feature = "kernel")]
mod status;
#[cfg(feature = "kernel")]
mod trace;
#[cfg(feature = "kernel")]
mod up;

#[cfg(feature = "kernel")]
pub use farpace_kernel_service::setup::leftovers;

use crate::emulate::words::span;
use anyhow::Result;
use farpace_kernel::{KernelControl, KernelDestination};
use farpace_units::Span;
use std::path::PathBuf;
use std::process::ExitCode;

const AFTER_HELP: &str = "\
The controls of farpace run in the kernel for connections of any program: `farpace` for all far paths, \
`star` (TCP-STAR) for satellites. Nothing is patched and nothing restarted. Programs choose one with \
setsockopt(TCP_CONGESTION), administrators with `ip route ... congctl farpace`, with sysctl \
net.ipv4.tcp_congestion_control, or with the options of `up`.

Examples:
  farpace kernel doctor                         what this kernel allows
  farpace kernel up --default                   every new connection of this machine, until Ctrl-C
  farpace kernel up --default --stay            the same, until `farpace kernel down`
  farpace kernel up --classes pacing.toml --dev eth0    classes with rates, byte for byte, on a device
  farpace kernel status                         the connections under it, and what classes do
  farpace kernel trace --out t --for 60s        a row for each ACK
  farpace kernel down

It needs root, or the capabilities CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON, and Linux 6.1 or later with BTF. \
docs/kernel.md.

Exit codes: 0 done, 1 `doctor` finds that it does not work here, 2 no rights, a kernel that refuses, or a \
build without BPF.";

/// What a build without the feature says.
#[cfg(not(feature = "kernel"))]
const NO_BPF: &str = "this build of farpace has no BPF programs. One that has: tools/setup kernel && \
    cargo build --release -p farpace --features kernel (it needs clang and libelf)";

/// The arguments of `farpace kernel`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
#[cfg_attr(not(feature = "kernel"), command(before_help = NO_BPF))]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Report what this kernel allows, feature by feature, and what is missing
    Doctor(DoctorArgs),
    /// Load the controls, and select the connections that use them
    Up(UpArgs),
    /// The connections under them: control, rate, window, round trip, losses; and what classes do
    Status(StatusArgs),
    /// Write a row for each ACK, in the form of the lab's traces
    Trace(TraceArgs),
    /// Unload what `up --stay` has loaded, and move its connections to another control
    Down(KernelDownArgs),
}

/// The arguments of `farpace kernel doctor`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  farpace kernel doctor\n  farpace kernel doctor --json")]
struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const UP_HELP: &str = "\
A destination is a network, followed by any of these keys for connections with it:
  control=farpace|star|kernel       the congestion control; kernel: no change
  rto-min=50ms  rto-max=5s          bounds of the retransmission timeout (rto-max: Linux 6.15 or later, 1 s \
  to 120 s)
  delack-max=8ms                    maximum delay of ACKs by this end
  initial-window=32                 segments before the first ACK
  initial-receive-window=1000       segments that the peer may send before the receive window grows
  max-rate=20mbit                   no connection faster than this
  ack-requests=on|off               request ACKs if the peer supports it, and answer
The longest prefix decides. Missing keys are as --control and --ack-requests set them. Without --default, \
--cgroup and --to the controls are registered, and only connections that select one use it.

Examples:
  farpace kernel up --default
  farpace kernel up --cgroup /sys/fs/cgroup/system.slice/backup.service --control star
  farpace kernel up --to 203.0.113.0/24,rto-max=5s --to 10.0.0.0/8,control=kernel --stay
  farpace kernel up --classes pacing.toml --dev eth0 --stay";

/// The arguments of `farpace kernel up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = UP_HELP)]
struct UpArgs {
    /// The control of connections without a rule of their own [default: farpace]
    #[arg(long, value_name = "CONTROL", value_parser = words::control)]
    control: Option<KernelControl>,
    /// Use it for every new connection of this host, also in containers
    #[arg(long)]
    default: bool,
    /// Use it for new connections of processes in this control group (version 2); may be repeated
    #[arg(long, value_name = "FOLDER", conflicts_with = "default")]
    cgroup: Vec<PathBuf>,
    /// Settings for connections with a network, with --cgroup only of its processes; may be repeated
    #[arg(long, value_name = "NETWORK[,KEY=VALUE]...", value_parser = words::destination)]
    to: Vec<words::To>,
    /// Request ACKs if the peer's farpace answers requests, and answer requests
    #[arg(long)]
    ack_requests: bool,
    /// Pacing classes for packets that leave by --dev: a configuration of farpace pacing
    #[arg(long, value_name = "FILE", requires = "dev")]
    classes: Option<PathBuf>,
    /// A device that has the classes; may be repeated, each has them for itself
    #[arg(long, value_name = "DEVICE", requires = "classes")]
    dev: Vec<String>,
    /// Drop packets of classes that would wait longer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = words::horizon, requires = "classes")]
    horizon: Span,
    /// Do not split super-segments: less processor time, and bursts of that many frames
    #[arg(long, requires = "classes")]
    keep_super_segments: bool,
    /// Stay loaded when this command ends; `farpace kernel down` unloads it
    #[arg(long, conflicts_with = "lasts")]
    stay: bool,
    /// Ends after this time; without it, and without --stay, at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    lasts: Option<Span>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl UpArgs {
    /// The control of connections without a rule of their own.
    fn usual(&self) -> KernelControl {
        self.control.unwrap_or(KernelControl::Farpace)
    }

    /// Whether controls are to be loaded: classes do not need them.
    fn wants_controls(&self) -> bool {
        let asked = self.control.is_some() || self.default || self.ack_requests;
        self.classes.is_none() || asked || !self.cgroup.is_empty() || !self.to.is_empty()
    }

    /// What holds where, or nothing if nobody is under a control who does not ask.
    fn destinations(&self) -> Vec<KernelDestination> {
        let usual = words::usual(self.usual(), self.ack_requests);
        let mut all: Vec<_> = self.to.iter().map(|to| to.complete(usual)).collect();
        if (self.default || !self.cgroup.is_empty()) && !all.iter().any(|to| to.bits == 0) {
            all.push(KernelDestination::everywhere(usual));
        }
        all
    }
}

/// The arguments of `farpace kernel status`.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  farpace kernel status --watch\n  farpace kernel status --json\n  farpace \
                  kernel status --prometheus"
)]
struct StatusArgs {
    /// Again each second, until Ctrl-C
    #[arg(long, conflicts_with_all = ["json", "prometheus"])]
    watch: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print metrics in the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    prometheus: bool,
}

/// The arguments of `farpace kernel trace`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  farpace kernel trace --out t --for 60s")]
struct TraceArgs {
    /// The directory for trace.parquet and connections.json
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Ends after this time; without it at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = span)]
    lasts: Option<Span>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `farpace kernel down`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "Examples:\n  farpace kernel down\n  farpace kernel down --keep-connections")]
struct KernelDownArgs {
    /// Connections keep their control until they end
    #[arg(long)]
    keep_connections: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `farpace kernel`.
///
/// # Errors
/// No rights, a kernel that refuses, or a build without BPF.
#[cfg(feature = "kernel")]
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Doctor(args) => doctor::run(args),
        Command::Up(args) => up::run(args),
        Command::Status(args) => status::run(args),
        Command::Trace(args) => trace::run(args),
        Command::Down(args) => down::run(args),
    }
}

/// `farpace kernel` in a build that cannot do it.
///
/// # Errors
/// Always.
#[cfg(not(feature = "kernel"))]
pub fn run(_: &Args) -> Result<ExitCode> {
    anyhow::bail!("{NO_BPF}")
}

/// Sets that dead processes have left in the kernel: none without BPF.
#[cfg(not(feature = "kernel"))]
pub fn leftovers(_: bool) -> Result<Vec<String>> {
    Ok(Vec::new())
}
