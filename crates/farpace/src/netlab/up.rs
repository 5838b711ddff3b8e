//! `farpace lab up`: namespaces, interfaces, and the network between them.

use super::manage::pause;
use super::state::{self, HostState, State};
use crate::emulate::words;
use crate::realtime::{Attachment, Captures, Figures, Network, Options, Patience};
use crate::scenario::parse_set;
use crate::{cli, interrupt, scenario};
use anyhow::{Context, Result, bail};
use farpace_lab::scenario::Scenario;
use farpace_lab::{DoorInfo, Doors};
use farpace_live::device::{Tun, TunConfig};
use farpace_live::{Device, Namespace, Process};
use farpace_units::Span;
use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

/// The interface of each host.
const INTERFACE: &str = "far0";

/// The arguments of `farpace lab up`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The scenario, a TOML file
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// The lab's name [default: that of the file]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Replace a value of the scenario, as in links.wan.delay="20 ms"; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_set)]
    set: Vec<(String, String)>,
    /// Stay in the foreground, with live figures, until Ctrl-C
    #[arg(long, short)]
    foreground: bool,
    /// Ends after this time; without it when it is taken down
    #[arg(long = "for", value_name = "TIME", value_parser = words::span)]
    lasts: Option<Span>,
    /// How it waits for the next packet
    #[arg(long, value_name = "HOW", value_enum, default_value = "hybrid")]
    wait: Patience,
    /// Captures at each host, and of what is dropped, into this directory
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Print the summary as one JSON object at the end (in the foreground)
    #[arg(long)]
    json: bool,
    /// No live figures and no summary
    #[arg(long, short)]
    quiet: bool,
    /// It has been started by another that waits for it
    #[arg(long, hide = true)]
    detached: bool,
    /// The lab is up as long as this program runs. It finds each host's namespace in FARPACE_NS_HOST
    #[arg(value_name = "COMMAND", last = true)]
    command: Vec<String>,
}

/// `farpace lab up`.
///
/// # Errors
/// A bad scenario, a name that is taken, or what the system does not allow.
pub fn run(args: &Args) -> Result<ExitCode> {
    let scenario = scenario::load(&args.scenario, &args.set)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => args.scenario.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
    };
    state::check_name(&name)?;
    if args.foreground || !args.command.is_empty() {
        return here(args, &scenario, &name);
    }
    background(args, &name)
}

/// Starts this program again, without a terminal, and waits until the lab is up.
fn background(args: &Args, name: &str) -> Result<ExitCode> {
    if let Some(old) = State::read(name)?.filter(|old| old.process().is_alive()) {
        bail!("lab `{0}` is up; take it down with `farpace lab down {0}`, or use --name", old.name);
    }
    state::make_folder()?;
    let log = state::log_file(name);
    let file = File::create(&log).with_context(|| format!("cannot write `{}`", log.display()))?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["lab", "up", "--foreground", "--detached", "--quiet", "--name", name]);
    command.args(args.set.iter().map(|(key, value)| format!("--set={key}={value}")));
    if let Some(lasts) = args.lasts {
        command.arg(format!("--for={lasts}"));
    }
    if let Some(pcap) = &args.pcap {
        command.arg("--pcap").arg(pcap);
    }
    let wait = clap::ValueEnum::to_possible_value(&args.wait);
    command.args(wait.map(|wait| format!("--wait={}", wait.get_name())));
    command.arg(&args.scenario).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let mut child = command.spawn().context("cannot start the lab in the background")?;
    loop {
        if let Some(state) = State::read(name)?.filter(|state| state.ready) {
            cli::print(&told(&state))?;
            return Ok(ExitCode::SUCCESS);
        }
        if child.try_wait()?.is_some() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let _ = std::fs::remove_file(&log);
            bail!("the lab has not come up: {}", said.trim().trim_start_matches("error: "));
        }
        pause();
    }
}

/// What a user can do now.
fn told(state: &State) -> String {
    let mut text = format!("Lab `{}` is up.\n", state.name);
    for host in &state.hosts {
        let _ = writeln!(text, "  {:<12} {:<16} farpace lab exec {} {} -- COMMAND", host.host, host.address, state.name, host.host);
    }
    let _ = writeln!(text, "Down with: farpace lab down {}", state.name);
    text
}

/// Forgets the lab when it is gone.
struct Claim(State);

impl Drop for Claim {
    fn drop(&mut self) {
        self.0.remove();
    }
}

fn here(args: &Args, scenario: &Scenario, name: &str) -> Result<ExitCode> {
    if args.detached {
        farpace_live::leave_terminal();
    }
    interrupt::install();
    let (_, doors) = Doors::build(scenario, scenario.seed)?;
    let own = Process::own();
    let hosts = doors.doors().iter().map(|door| HostState {
        host: door.host.clone(),
        namespace: format!("far-{name}-{}", door.host),
        interface: INTERFACE.to_owned(),
        address: door.address.to_string(),
    });
    let state = State {
        name: name.to_owned(),
        scenario: args.scenario.display().to_string(),
        pid: own.pid,
        started: own.started,
        ready: false,
        hosts: hosts.collect(),
    };
    state.claim()?;
    let mut claim = Claim(state);
    // Dropped after the network, before the claim.
    let mut namespaces = Vec::new();
    let mut devices = Vec::new();
    for (door, host) in doors.doors().iter().zip(&claim.0.hosts) {
        let namespace = Namespace::create(&host.namespace)?;
        devices.push(Attachment { host: door.host.clone(), device: interface(&namespace, door, doors.doors())? });
        namespaces.push(namespace);
    }
    let options = Options {
        patience: args.wait,
        whole: false,
        bin: Span::from_millis(100),
        captures: args.pcap.clone().map(|directory| Captures { directory, epoch: crate::stopwatch::since_1970() }),
    };
    let mut network = Network::build(scenario, devices, &options)?;
    claim.0.ready = true;
    claim.0.write()?;
    if !args.quiet && args.command.is_empty() {
        cli::note(told(&claim.0).trim_end());
    }
    let mut child = match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest).env("FARPACE_LAB", name);
            for host in &claim.0.hosts {
                command.env(format!("FARPACE_NS_{}", host.host), &host.namespace);
            }
            Some(command.spawn().with_context(|| format!("cannot run `{program}`"))?)
        }
        None => None,
    };
    let mut figures = Figures::new(args.quiet || child.is_some());
    let mut status = None;
    network.run(args.lasts, &mut figures, || {
        status = child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        status.is_some()
    })?;
    if let Some(child) = child.as_mut().filter(|_| status.is_none()) {
        // The lab ends before its program: a signal, or time is up.
        let _ = child.kill();
        let _ = child.wait();
    }
    let summary = network.finish()?;
    if args.json {
        cli::print_json(&summary)?;
    } else if !args.quiet {
        cli::note(summary.text().trim_end());
    }
    if let Some(warning) = summary.warning() {
        cli::note(&warning);
    }
    drop(network);
    namespaces.into_iter().try_for_each(Namespace::remove)?;
    drop(claim);
    let code = status.map_or(Some(0), |status| status.code());
    Ok(ExitCode::from(u8::try_from(code.unwrap_or(1)).unwrap_or(1)))
}

/// The interface of a host, in its namespace: addresses, routes, and the neighbours that do not answer ARP.
fn interface(namespace: &Namespace, door: &DoorInfo, all: &[DoorInfo]) -> Result<Box<dyn Device>> {
    let config = TunConfig { tap: true, ..TunConfig::new(INTERFACE) };
    let quiet = |address: &DoorInfo| match address.address.is_ipv4() {
        // Otherwise the kernel looks for IPv6 routers, on a network in which nobody asked for it.
        true => std::fs::write(format!("/proc/sys/net/ipv6/conf/{INTERFACE}/disable_ipv6"), "1").is_ok(),
        false => true,
    };
    let device = namespace.within(|| {
        let device = Tun::open(&config);
        let _ = quiet(door);
        device
    })?;
    let device = device.with_context(|| format!("host `{}`", door.host))?;
    let prefix = |address: std::net::IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let own = door.address;
    let no_dad = if own.is_ipv4() { "" } else { " nodad" };
    let mut lines = format!("link set dev {INTERFACE} address {}\n", door.mac);
    let _ = writeln!(lines, "addr add {own}/{} dev {INTERFACE}{no_dad}", prefix(own));
    for other in all.iter().filter(|other| other.host != door.host && other.address.is_ipv4() == own.is_ipv4()) {
        let address = other.address;
        let _ = writeln!(lines, "route replace {address}/{} dev {INTERFACE}", prefix(address));
        if !(door.resolves && other.resolves) {
            let _ = writeln!(lines, "neigh replace {address} lladdr {} dev {INTERFACE} nud permanent", other.mac);
        }
    }
    namespace.configure(&lines)?;
    Ok(Box::new(device))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: users are told to type what does not work.
    #[test]
    fn users_are_told_what_to_type() {
        let host = HostState {
            host: "a".into(),
            namespace: "far-wan-a".into(),
            interface: INTERFACE.into(),
            address: "10.0.0.1".into(),
        };
        let state = State {
            name: "wan".into(),
            scenario: "wan.toml".into(),
            pid: 1,
            started: 1,
            ready: true,
            hosts: vec![host],
        };
        let text = told(&state);
        assert!(text.contains("farpace lab exec wan a -- COMMAND") && text.contains("farpace lab down wan"), "{text}");
    }
}
