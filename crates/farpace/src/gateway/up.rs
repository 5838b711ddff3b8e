//! `farpace gateway up`: the gateway on this host, until it is told to end.

use super::config::{GatewayFile, PeerDown};
use super::control::{Question, Questions};
use super::interception::{Interception, side_mtu};
use super::pair::{GatewayPair, PairElements, PairView};
use super::snapshot::{MAX_ROWS, Snapshot};
use super::watchdog::Watchdog;
use super::web::Dashboard;
use crate::terminal;
use anyhow::{Context, Result};
use farpace_gateway::Gateway;
use farpace_link::multi_nic::MultiNic;
use farpace_live::{Driver, Wait, sharpen_timers};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Cx, Port};
use farpace_units::{ByteCount, Instant, Span};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde_json::json;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

/// Connections are handed over in this time, or end.
const DRAIN: Span = Span::from_secs(30);
/// Rounds of the loop after nothing comes any more.
const LAST_ROUNDS: u32 = 8;
/// Between two signs of life for systemd.
const NOTIFY: Span = Span::from_millis(500);
/// Between two looks at what is known of the paths to a peer.
const LOOK: Span = Span::from_secs(1);
/// A peer that answers on no path for so long is down.
const PEER_TIMEOUT: Span = Span::from_secs(2);
/// Between two attempts to set or take away the rules that lead to a peer, after one has failed.
const RULES_RETRY: Span = Span::from_secs(5);

const AFTER_HELP: &str = "\
SIGTERM and Ctrl-C hand the connections over to their hosts: nothing is lost. SIGHUP reads the configuration \
again. After kill -9 connections pass by the kernel; those with undelivered bytes end.

With --peer the gateway is one of a pair: both split, and between them everything for the networks behind \
the peer goes through an encrypted tunnel over all links at once. Datagrams, ICMP and all else precede TCP.

Examples:
  farpace gateway up --lan eth0 --wan eth1
  farpace gateway up --lan eth0 --peer hq.conf --via wan0 --via lte0
  farpace gateway up --lan eth0 --lan eth2 --wan eth1 --min-rtt 20ms --memory \"2 GiB\"
  farpace gateway up --config /etc/farpace/gateway.toml --metrics 127.0.0.1:9745 --json
  farpace gateway up --lan eth0 --wan eth1 --web 9746    the dashboard at http://127.0.0.1:9746/

Exit codes: 0 ended in order, 2 no rights, a bad configuration, or a device that has failed.";

/// The arguments of `farpace gateway up`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct GatewayUpArgs {
    /// Interface to the hosts whose TCP is not to suffer from the far link; may be repeated
    #[arg(long, value_name = "IF")]
    lan: Vec<String>,
    /// Interface to the far link; may be repeated
    #[arg(long, value_name = "IF", conflicts_with_all = ["peer", "via"])]
    wan: Vec<String>,
    /// The gateway is one of a pair: file of the peer, which `farpace gateway keys` makes
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// Link of a path to the peer, by its interface or address; repeated for several paths at once
    #[arg(long, value_name = "IF|ADDR")]
    via: Vec<String>,
    /// Configuration file; options of the command line come before it, SIGHUP reads it again
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Connections with a shorter handshake pass unsplit [default: 5 ms]
    #[arg(long, value_name = "TIME", value_parser = crate::emulate::words::span)]
    min_rtt: Option<Span>,
    /// Memory of all connections, as in "2 GiB" [default: a quarter of the host's]
    #[arg(long, value_name = "BYTES", value_parser = crate::transfer::bytes)]
    memory: Option<ByteCount>,
    /// Serve metrics in Prometheus' format at this address, as in 127.0.0.1:9745
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Serve a dashboard for browsers at this address; a port alone: for this host alone. Elsewhere it asks
    /// for a token, which is printed on a terminal, and kept in a file otherwise
    #[arg(long, value_name = "PORT|ADDR", value_parser = super::web::address)]
    web: Option<SocketAddr>,
    /// Ends after this time; without it at Ctrl-C or SIGTERM
    #[arg(long = "for", value_name = "TIME", value_parser = crate::emulate::words::span)]
    lasts: Option<Span>,
    /// Print JSON: one line when it is up, one at the end
    #[arg(long)]
    json: bool,
}

impl GatewayUpArgs {
    /// The configuration file, with what the command line says in its place.
    pub fn file(&self) -> Result<GatewayFile> {
        let mut file = match &self.config {
            Some(path) => GatewayFile::read(path)?,
            None => GatewayFile::default(),
        };
        if !self.lan.is_empty() {
            file.lan.clone_from(&self.lan);
        }
        if !self.wan.is_empty() {
            file.wan.clone_from(&self.wan);
        }
        if let Some(peer) = &self.peer {
            file.peer = Some(peer.clone());
        }
        if !self.via.is_empty() {
            file.via.clone_from(&self.via);
        }
        file.min_rtt = self.min_rtt.unwrap_or(file.min_rtt);
        file.memory = self.memory.or(file.memory);
        file.metrics = self.metrics.or(file.metrics);
        file.web = self.web.or(file.web);
        file.check()?;
        Ok(file)
    }
}

/// A gateway that runs.
struct Running {
    driver: Driver,
    gateway: ElementId,
    watchdog: Watchdog,
    questions: Questions,
    signals: SignalFd,
    file: GatewayFile,
    interception: Interception,
    notified: Instant,
    pair: Option<(GatewayPair, PairElements)>,
    looked: Instant,
    dashboard: Option<Dashboard>,
    /// Since when no path leads to the peer.
    down_since: Option<Instant>,
    /// Why the rules that lead to the peer could not be set or taken away, and when that is tried again.
    rules_error: Option<String>,
    rules_retry: Instant,
    /// Connections are handed over.
    is_ending: bool,
}

/// `farpace gateway up`.
///
/// # Errors
/// A bad configuration, or a system that refuses.
pub fn run(args: &GatewayUpArgs) -> Result<ExitCode> {
    let file = args.file()?;
    // Before any thread: signals are read, and interrupt nothing.
    let mut set = SigSet::empty();
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| set.add(signal));
    set.thread_block().context("cannot block signals")?;
    let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
    let signals = signals.context("cannot read signals")?;

    let pair = GatewayPair::open(&file)?;
    let mut interception = Interception::begin(&file, pair.as_ref())?;
    let config = file.gateway(interception.mtus)?;
    let mut world = World::new(0);
    let gateway = world.add("gateway", Box::new(Gateway::new(config)))?;
    let mut ports = Vec::new();
    let sides = [("lan", Gateway::LAN), ("wan", Gateway::WAN)];
    for (name, port) in sides.into_iter().take(interception.names.len()) {
        let boundary = world.add(name, Box::new(BoundaryPort::default()))?;
        world.connect((gateway, port), (boundary, Port(0)))?;
        ports.push(boundary);
    }
    let mut built = None;
    if let Some(pair) = pair {
        let (elements, path_ports) = pair.build(&mut world, gateway)?;
        built = Some((pair, elements, path_ports));
    }
    let mut driver = Driver::new(world, Wait::Sleep)?;
    for (port, device) in ports.into_iter().zip(std::mem::take(&mut interception.devices)) {
        driver.attach(port, Box::new(device));
    }
    let pair = built.map(|(mut pair, elements, path_ports)| {
        pair.attach(&mut driver, path_ports);
        (pair, elements)
    });
    sharpen_timers();
    let questions = Questions::open(driver.handle(), file.metrics)?;
    let serve = |address| super::web::serve(address, questions.asker());
    let dashboard = file.web.map(serve).transpose()?;
    let watchdog = Watchdog::start()?;
    match &pair {
        None => interception.catch(&file)?,
        Some((pair, _)) if file.peer_down == PeerDown::Hold => {
            interception.catch_for_peer(&file, &pair.file)?
        }
        // When it answers.
        Some(_) => {}
    }
    let mut running = Running {
        driver,
        gateway,
        watchdog,
        questions,
        signals,
        file,
        interception,
        notified: Instant::ZERO,
        pair,
        looked: Instant::ZERO,
        down_since: None,
        rules_error: None,
        rules_retry: Instant::ZERO,
        dashboard,
        is_ending: false,
    };
    running.say_up(args.json)?;
    let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Ready]);
    let ended = running.serve(args);
    let ended = ended.and_then(|()| running.drain());
    running.end(args.json, ended)
}

impl Running {
    /// Runs until it is told to end.
    fn serve(&mut self, args: &GatewayUpArgs) -> Result<()> {
        let end = args.lasts.map_or(Instant::FAR_FUTURE, |lasts| self.driver.now() + lasts);
        loop {
            self.round()?;
            while let Ok(Some(signal)) = self.signals.read_signal() {
                if signal.ssi_signo != Signal::SIGHUP as u32 {
                    return Ok(());
                }
                self.reload(args);
            }
            if self.driver.now() >= end {
                return Ok(());
            }
        }
    }

    fn round(&mut self) -> Result<()> {
        self.driver.run_round()?;
        self.watchdog.beat();
        let now = self.driver.now();
        if now.since(self.notified) >= NOTIFY {
            self.notified = now;
            let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Watchdog]);
        }
        self.follow_peer(now);
        if now.since(self.looked) >= LOOK {
            self.looked = now;
            self.follow_paths();
        }
        let Running { questions, driver, gateway, file, interception, pair, rules_error, .. } = self;
        questions.answer(|question| {
            let with_flows = question == Question::Status;
            let taken = snapshot(driver, *gateway, file, interception, pair.as_ref(), with_flows);
            Snapshot { rules_error: rules_error.clone(), ..taken }
        });
        Ok(())
    }

    /// Traffic goes to the peer while it answers. When it is down, traffic passes by the kernel, as at its
    /// own site, unless it is to be held.
    fn follow_peer(&mut self, now: Instant) {
        let Some((pair, elements)) = &self.pair else { return };
        let is_up = pair.is_up(self.driver.world(), elements);
        self.down_since = if is_up { None } else { Some(self.down_since.unwrap_or(now)) };
        let is_down = self.down_since.is_some_and(|since| now.since(since) >= PEER_TIMEOUT);
        match is_up || self.file.peer_down == PeerDown::Hold {
            true if !self.is_ending => self.lead_to_peer(now),
            false if is_down => self.pass_by_kernel(now),
            _ => {}
        }
    }

    fn lead_to_peer(&mut self, now: Instant) {
        let Some((pair, _)) = &self.pair else { return };
        let is_set = self.interception.leads_to_peer() && self.rules_error.is_none();
        if !is_set && now >= self.rules_retry {
            let done = self.interception.catch_for_peer(&self.file, &pair.file);
            self.on_rules(now, done.context("cannot lead traffic to the peer"));
        }
    }

    fn pass_by_kernel(&mut self, now: Instant) {
        let Some((pair, _)) = &self.pair else { return };
        let is_set = !self.interception.leads_to_peer() && self.rules_error.is_none();
        if is_set || now < self.rules_retry {
            return;
        }
        if self.rules_error.is_none() {
            terminal::note(&format!(
                "the peer {} does not answer: its traffic passes by the kernel",
                pair.file.peer
            ));
        }
        let done = self.interception.pass_by_kernel();
        if done.is_ok() {
            let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.abandon(cx);
            // The element is there as long as the world.
            let _ = self.driver.world_mut().call(self.gateway, &mut (), act);
        }
        self.on_rules(now, done.context("cannot let traffic pass by the kernel"));
    }

    /// The rules that lead to the peer were set or taken away. A failure does not end the gateway: it carries
    /// connections, and tries again.
    fn on_rules(&mut self, now: Instant, done: Result<()>) {
        let error = done.err().map(|error| format!("{error:#}"));
        if let Some(text) = error.as_ref().filter(|text| self.rules_error.as_ref() != Some(*text)) {
            terminal::note(&format!("{text}; it is tried again each {RULES_RETRY}"));
        }
        self.rules_retry = if error.is_some() { now + RULES_RETRY } else { now };
        self.rules_error = error;
    }

    /// Frames wait for earlier ones as the round trips of the paths ask for, and new connections take the MTU
    /// that all paths bear.
    fn follow_paths(&mut self) {
        let Some((pair, elements)) = &mut self.pair else { return };
        pair.follow_names();
        let (time, mtu) = pair.measured();
        let world = self.driver.world_mut();
        if let Some(time) = time
            && let Some(layer) = world.element_mut::<MultiNic>(elements.paths)
        {
            layer.set_resequence_time(time);
        }
        if let Some(mtu) = mtu.filter(|mtu| *mtu != self.interception.mtus[1]) {
            self.interception.mtus[1] = mtu;
            if let Some(gateway) = world.element_mut::<Gateway>(self.gateway) {
                gateway.set_wan_mtu(mtu);
            }
        }
    }

    /// Reads the configuration again. Interfaces and addresses stay what they are.
    fn reload(&mut self, args: &GatewayUpArgs) {
        let read = args.file().and_then(|mut file| {
            let wan = match &self.pair {
                Some(_) => self.interception.mtus[1],
                None => side_mtu(&self.file.wan)?,
            };
            let mtus = [side_mtu(&self.file.lan)?, wan];
            let fixed = |file: &GatewayFile| {
                let sides = (file.lan.clone(), file.wan.clone(), file.peer.clone(), file.via.clone());
                (sides, file.metrics, file.web, file.rule_priority, file.table)
            };
            if fixed(&file) != fixed(&self.file) {
                terminal::note(
                    "note: lan, wan, peer, via, metrics, web, rule_priority and table need a restart; the \
                     rest is taken over",
                );
            }
            file.lan.clone_from(&self.file.lan);
            file.wan.clone_from(&self.file.wan);
            file.peer.clone_from(&self.file.peer);
            file.via.clone_from(&self.file.via);
            (file.metrics, file.web) = (self.file.metrics, self.file.web);
            (file.rule_priority, file.table) = (self.file.rule_priority, self.file.table);
            Ok((file.gateway(mtus)?, file, mtus))
        });
        match read {
            Ok((config, file, mtus)) => {
                if let Some(gateway) = self.driver.world_mut().element_mut::<Gateway>(self.gateway) {
                    gateway.reconfigure(config);
                }
                (self.file, self.interception.mtus) = (file, mtus);
                terminal::note("the configuration was read again; it holds for new connections");
            }
            Err(error) => {
                terminal::note(&format!("the configuration stays as it was: {error:#}"));
            }
        }
    }

    /// New connections pass, and split ones are handed over to their hosts.
    fn drain(&mut self) -> Result<()> {
        let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Stopping]);
        self.is_ending = true;
        let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.drain(cx);
        self.driver.world_mut().call(self.gateway, &mut (), act)?;
        let until = self.driver.now() + DRAIN;
        while self.gateway().is_some_and(|gateway| gateway.totals().connections > 0)
            && self.driver.now() < until
        {
            self.round()?;
            // A second signal: at once.
            if let Ok(Some(_)) = self.signals.read_signal() {
                break;
            }
        }
        Ok(())
    }

    fn gateway(&self) -> Option<&Gateway> {
        self.driver.world().element::<Gateway>(self.gateway)
    }

    fn say_up(&self, json: bool) -> Result<()> {
        let Interception { names, mtus, notes, .. } = &self.interception;
        let (lan, wan) = (&self.file.lan, &self.file.wan);
        let paths = || self.pair.iter().flat_map(|(pair, _)| pair.links.iter().zip(&pair.said));
        let token_file = self.dashboard.as_ref().and_then(|dashboard| dashboard.token_file.as_ref());
        let token_file = token_file.map(|file| file.path().display().to_string());
        if json {
            let peer = self.pair.as_ref().map(|(pair, _)| {
                let paths: Vec<_> = paths().map(|(via, said)| json!({ "via": via, "found": said })).collect();
                json!({ "name": pair.file.peer, "prefixes": pair.file.peer_prefixes, "paths": paths })
            });
            let up = json!({ "up": {
                "lan": lan, "wan": wan, "peer": peer, "devices": names,
                "mtu_bytes": { "lan": mtus[0], "wan": mtus[1] },
                "set": self.interception.steps(), "notes": notes,
                "web": self.dashboard.as_ref().map(|dashboard| &dashboard.url),
                "web_token_file": token_file,
            }});
            return terminal::print(&format!("{up}\n"));
        }
        let far = match &self.pair {
            Some((pair, _)) => format!("the peer {}", pair.file.peer),
            None => wan.join(", "),
        };
        let mut text = format!(
            "TCP between {} and {far} is split; MTU {} B and {} B\n",
            lan.join(", "),
            mtus[0],
            mtus[1]
        );
        paths().for_each(|(via, said)| text += &format!("  path via {via}: {said}\n"));
        self.interception.steps().iter().for_each(|step| text += &format!("  set; at the end: {step}\n"));
        notes.iter().for_each(|note| text += &format!("  note: {note}\n"));
        if let Some(dashboard) = &self.dashboard {
            text += &format!("  dashboard: {}\n", dashboard.url);
        }
        if let Some(path) = token_file {
            text += &format!("    with #token=TOKEN at its end; TOKEN is in {path}\n");
        }
        text += "Try: farpace gateway check   farpace gateway status   farpace gateway top\n";
        text += "Ctrl-C hands the connections over and takes everything away.\n";
        terminal::print(&text)
    }

    /// Takes everything away, and says what there was.
    fn end(mut self, json: bool, ended: Result<()>) -> Result<ExitCode> {
        let totals = self.gateway().map(Gateway::totals).unwrap_or_default();
        let pair = self.pair.as_ref();
        let snapshot = snapshot(&self.driver, self.gateway, &self.file, &self.interception, pair, false);
        let released = self.interception.release();
        self.watchdog.beat();
        // What still waits in the devices goes out. A job keeps the loop from sleeping.
        let handle = self.driver.handle();
        for _ in 0..LAST_ROUNDS {
            if handle.run(Box::new(|_, _| {})).is_err() || self.driver.run_round().is_err() {
                break;
            }
        }
        drop(self.driver);
        drop(self.questions);
        drop(self.dashboard);
        drop(self.watchdog);
        ended?;
        released?;
        let lost = totals.connections;
        if json {
            terminal::print(&format!("{}\n", json!({ "end": snapshot.json()["totals"] })))?;
        } else {
            terminal::print(&format!(
                "{} connections split, {} handed over at the end, {lost} cut; {} to the WAN, {} to the LAN\n",
                totals.split, totals.handed_over, totals.moved[0], totals.moved[1]
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn snapshot(
    driver: &Driver,
    gateway: ElementId,
    file: &GatewayFile,
    interception: &Interception,
    pair: Option<&(GatewayPair, PairElements)>,
    with_flows: bool,
) -> Snapshot {
    let now = driver.now();
    let gateway = driver.world().element::<Gateway>(gateway);
    let rows = if with_flows { MAX_ROWS } else { 0 };
    Snapshot {
        lan: file.lan.clone(),
        wan: file.wan.clone(),
        via: file.via.clone(),
        rules_error: None,
        names: interception.names.clone(),
        mtus: interception.mtus,
        uptime: now.since(Instant::ZERO),
        totals: gateway.map(Gateway::totals).unwrap_or_default(),
        devices: driver.stats().devices,
        pair: pair.map(|(pair, elements)| PairView {
            caught: interception.leads_to_peer(),
            ..pair.view(driver.world(), elements)
        }),
        flows: gateway.map(|gateway| gateway.flows(now).take(rows).collect()).unwrap_or_default(),
    }
}
