//! The gateway on this host, until it is told to end.

use super::capture::{CaptureFiles, CaptureView};
use super::check_firewall::firewall_notes;
use super::config::{GatewayFile, PeerDown};
use super::control::{self, GatewayRequest, Question, Questions};
use super::gain::Gain;
use super::interception::{Interception, side_mtu};
use super::link_watch::LinkWatch;
use super::log::ConnectionLog;
use super::pair::{GatewayPair, PairElements, PairView};
use super::peer_watch::PeerWatch;
use super::records::{ConnectionRecord, EndedRing, MAX_LIVING};
use super::router_errors::RouterErrors;
use super::shards::{GatewayShard, ShardParts, ShardView, Workers};
use super::shared_ledger::SharedLedger;
use super::snapshot::{MAX_ROWS, Snapshot, is_here};
use super::watchdog::Watchdog;
use super::web::{self, Dashboard};
use crate::Note;
use anyhow::{Context, Result, bail};
use farpace_gateway::{Drain, Gateway, GatewayTotals, PeerLink, SharedFlows};
use farpace_path::world::{ElementId, World};
use farpace_units::{Instant, Span};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde_json::{Value, json};
use std::sync::Arc;

/// Connections are handed over in this time, or end.
const DRAIN: Span = Span::from_secs(30);
/// Between two signs of life for systemd.
const NOTIFY: Span = Span::from_millis(500);
/// Between two looks at what is known of the paths to a peer.
const LOOK: Span = Span::from_secs(1);
/// Between two reads of signals.
const SIGNALS: Span = Span::from_millis(100);
/// Between two attempts to set or take away the rules that lead to a peer, after one has failed.
const RULES_RETRY: Span = Span::from_secs(5);

/// A gateway that runs.
pub struct GatewayService {
    first: GatewayShard,
    workers: Workers,
    watchdog: Watchdog,
    questions: Questions,
    signals: SignalFd,
    file: GatewayFile,
    interception: Interception,
    notified: Instant,
    pair: Option<(GatewayPair, PairElements)>,
    looked: Instant,
    dashboard: Option<Dashboard>,
    peer_watch: PeerWatch,
    peer_is_up: bool,
    /// How the gateway of a pair drains.
    drain: Option<Drain>,
    link_watch: LinkWatch,
    /// Why the rules that lead to the peer could not be set or taken away, and when that is tried again.
    rules_error: Option<String>,
    rules_retry: Instant,
    /// Listens as long as this is there.
    _router_errors: Option<RouterErrors>,
    capture: Option<CaptureFiles>,
    /// A capture that has ended by itself.
    ended_capture: Option<CaptureView>,
    gain: Gain,
    ended: EndedRing,
    log: Option<ConnectionLog>,
    /// Connections are handed over.
    is_ending: bool,
    note: Note,
}

/// What there was, when a gateway has ended.
#[derive(Clone, Debug)]
pub struct GatewayEnd {
    /// What it has done. The connections that were left are counted as cut.
    pub totals: GatewayTotals,
    /// The same for programs.
    pub json: Value,
}

impl GatewayService {
    /// Starts it. Lines about what happens meanwhile go to `note`. From here on signals of this process are
    /// read by it: this must come before the first thread.
    ///
    /// # Errors
    /// A system that refuses.
    pub fn start(file: GatewayFile, note: Note) -> Result<Self> {
        // Before any thread: signals are read, and interrupt nothing.
        let mut set = SigSet::empty();
        [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().for_each(|signal| set.add(signal));
        set.thread_block().context("cannot block signals")?;
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC);
        let signals = signals.context("cannot read signals")?;

        refuse_second(&file)?;
        let capture = file.capture().map(|config| CaptureFiles::open(config, note)).transpose()?;
        let log = file.log.as_deref().map(|path| ConnectionLog::open(path, note)).transpose()?;
        let pair = GatewayPair::open(&file)?;
        // Before the interfaces are looked at: no change is missed.
        let mut link_watch = LinkWatch::open()?;
        let mut interception = Interception::begin(&file, pair.as_ref())?;
        link_watch.names = file.lan.iter().chain(&file.wan).chain(&interception.names).cloned().collect();
        if pair.is_none() {
            // Before the watchdog: where the processor is busy, this takes a while.
            interception.notes.extend(firewall_notes(&file));
        }
        let config = file.gateway(interception.mtus)?;
        let shards = SharedFlows::all(interception.queues.len());
        // A peer is asked by its own gateway.
        let parts = SharedLedger::parts(shards.len(), config.max_connections, pair.is_none());
        let (ledger, parts) = parts.context("cannot keep a ledger of connections")?;
        let mut shards: Vec<ShardParts> = shards
            .into_iter()
            .zip(std::mem::take(&mut interception.queues))
            .zip(parts)
            .map(|((flows, devices), ledger)| ShardParts { flows, devices, ledger })
            .collect();
        let first = shards.remove(0);
        let shard = first.flows.clone();
        let sides: Vec<_> = file.lan.iter().chain(&file.wan).cloned().collect();
        // Those about packets from a peer come by the device: rules lead them into the tunnel.
        let alone = pair.is_none();
        let router_errors = alone.then(|| RouterErrors::listen(&sides, shard, note)).transpose()?;
        let build =
            |world: &mut World, gateway| pair.map(|pair| build_pair(pair, world, gateway)).transpose();
        let (mut first, built) = GatewayShard::new(config.clone(), first, build)?;
        let pair = built.map(|(mut pair, elements, path_ports)| {
            pair.attach(&mut first.driver, path_ports);
            (pair, elements)
        });
        let workers = Workers::start(&config, shards, &first.driver.handle())?;
        let questions = Questions::open(first.driver.handle(), file.metrics, note)?;
        let serve = |address| web::serve(address, questions.asker());
        let dashboard = file.web.map(serve).transpose()?;
        let watchdog = Watchdog::start(ledger.file()?, note)?;
        let mut running = GatewayService {
            first,
            workers,
            watchdog,
            questions,
            signals,
            file,
            interception,
            notified: Instant::ZERO,
            pair,
            looked: Instant::ZERO,
            peer_watch: PeerWatch::default(),
            peer_is_up: false,
            drain: None,
            link_watch,
            rules_error: None,
            rules_retry: Instant::ZERO,
            _router_errors: router_errors,
            capture: None,
            ended_capture: None,
            dashboard,
            gain: Gain::default(),
            ended: EndedRing::default(),
            log,
            is_ending: false,
            note,
        };
        if let Some(files) = capture {
            running.start_capture(files)?;
        }
        running.catch()?;
        Ok(running)
    }

    /// From now on traffic comes to the gateway; with a peer that may be down, when it answers.
    fn catch(&mut self) -> Result<()> {
        match &self.pair {
            None => self.interception.catch(&self.file, &mut || self.watchdog.beat()),
            Some((pair, _)) if self.file.peer_down == PeerDown::Hold => {
                self.interception.catch_for_peer(&self.file, &pair.file)
            }
            Some(_) => Ok(()),
        }
    }

    /// Runs until it is told to end, or `lasts` is over, and hands its connections over to their hosts.
    /// SIGHUP takes over the configuration that `read` gives.
    ///
    /// # Errors
    /// A device that has failed.
    pub fn run(&mut self, lasts: Option<Span>, read: &dyn Fn() -> Result<GatewayFile>) -> Result<()> {
        let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Ready]);
        self.serve(lasts, read)?;
        self.drain()
    }

    fn serve(&mut self, lasts: Option<Span>, read: &dyn Fn() -> Result<GatewayFile>) -> Result<()> {
        let end = lasts.map_or(Instant::FAR_FUTURE, |lasts| self.first.driver.now() + lasts);
        let mut signals_at = Instant::ZERO;
        loop {
            self.round()?;
            let now = self.first.driver.now();
            // Not in each round: with small packets there are 100,000 rounds a second.
            if now >= signals_at {
                signals_at = now + SIGNALS;
                while let Ok(Some(signal)) = self.signals.read_signal() {
                    if signal.ssi_signo != Signal::SIGHUP as u32 {
                        return Ok(());
                    }
                    self.reload(read)?;
                }
            }
            if now >= end {
                return Ok(());
            }
        }
    }

    fn round(&mut self) -> Result<()> {
        self.first.round()?;
        self.workers.check()?;
        if self.workers.live() {
            self.watchdog.beat();
        }
        let now = self.first.driver.now();
        if now.since(self.notified) >= NOTIFY {
            self.notified = now;
            let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Watchdog]);
        }
        self.follow_peer(now);
        if now.since(self.looked) >= LOOK {
            self.looked = now;
            self.follow_paths();
            self.follow_links()?;
            self.flush_capture()?;
            self.compare()?;
            self.take_ended()?;
        }
        for request in self.questions.requests() {
            // Who has asked may have given up.
            match request {
                GatewayRequest::Look(question, to) => {
                    drop(to.send(self.snapshot(question == Question::Status)?))
                }
                GatewayRequest::Records(to) => drop(to.send(self.records())),
                GatewayRequest::StartCapture(files, to) => drop(to.send(self.start_capture(files))),
                GatewayRequest::StopCapture(to) => drop(to.send(self.stop_capture())),
            }
        }
        Ok(())
    }

    fn start_capture(&mut self, files: CaptureFiles) -> Result<Value> {
        if let Some(running) = &self.capture {
            bail!("a capture runs: `farpace gateway capture stop` ends it; {}", running.view().json()["dir"]);
        }
        let value = files.view().json();
        let (feed, own) = (files.feed(), files.feed());
        self.first.start_capture(own)?;
        self.workers
            .each(move |shard| shard.start_capture(feed.clone()))?
            .into_iter()
            .collect::<Result<()>>()?;
        (self.capture, self.ended_capture) = (Some(files), None);
        Ok(value)
    }

    fn stop_capture(&mut self) -> Result<Value> {
        match (self.capture.take(), self.ended_capture.take()) {
            (Some(files), _) => Ok(self.end_capture(files)?.json()),
            (None, Some(ended)) => Ok(ended.json()),
            (None, None) => bail!("no capture runs"),
        }
    }

    fn end_capture(&mut self, files: CaptureFiles) -> Result<CaptureView> {
        self.first.end_capture();
        self.workers.each(GatewayShard::end_capture)?;
        Ok(files.end())
    }

    /// What was captured goes to the disk. If that is full, the gateway goes on without a capture.
    fn flush_capture(&mut self) -> Result<()> {
        if let Some(files) = self.capture.take_if(|files| files.have_failed()) {
            self.ended_capture = Some(self.end_capture(files)?);
        }
        self.capture.iter().for_each(CaptureFiles::flush);
        Ok(())
    }

    /// Takes what the comparison with the control group has found.
    fn compare(&mut self) -> Result<()> {
        if self.file.control_group > 0.0 {
            self.gain.add(self.first.take_results());
            self.workers
                .each(GatewayShard::take_results)?
                .into_iter()
                .for_each(|results| self.gain.add(results));
        }
        Ok(())
    }

    /// Takes the connections that have ended.
    fn take_ended(&mut self) -> Result<()> {
        if self.file.records == 0 && self.log.is_none() {
            return Ok(());
        }
        let (mut ended, mut lost) = self.first.take_ended();
        for (others, also_lost) in self.workers.each(GatewayShard::take_ended)? {
            ended.extend(others);
            lost += also_lost;
        }
        self.ended.keep(&ended, self.file.records);
        if let Some(log) = &mut self.log {
            log.add(ended, lost);
        }
        Ok(())
    }

    /// The latest connections that have ended, and those that live.
    fn records(&mut self) -> Result<Vec<Arc<ConnectionRecord>>> {
        self.take_ended()?;
        let now = self.first.driver.epoch() + self.first.driver.now().since(Instant::ZERO);
        let others = self.workers.each(|shard| shard.view(MAX_LIVING))?;
        let all =
            others.into_iter().fold(self.first.view(MAX_LIVING), |sum, view| sum.with(view, MAX_LIVING));
        let living = all.flows.into_iter().map(|view| Arc::new(ConnectionRecord::living(now, view)));
        Ok(self.ended.all().cloned().chain(living).collect())
    }

    /// Traffic goes to the peer while it answers. When it is down, traffic passes by the kernel, as at its
    /// own site, unless it is to be held.
    fn follow_peer(&mut self, now: Instant) {
        let Some((pair, elements)) = &self.pair else { return };
        let is_up = pair.is_up(self.first.driver.world(), elements);
        let link = self.first.driver.world().element::<PeerLink>(elements.link);
        let has_ended = link.is_some_and(|link| link.peer_ended_lately(now)) && self.first.connections() == 0;
        let is_down = self.peer_watch.is_down(now, is_up, has_ended, || pair.heard());
        if is_up && !std::mem::replace(&mut self.peer_is_up, is_up) {
            self.first.on_gateway(Gateway::peer_is_back);
        }
        self.peer_is_up = is_up;
        self.follow_ends(now);
        match is_up || self.file.peer_down == PeerDown::Hold {
            true if !self.is_ending => self.lead_to_peer(now),
            false if is_down => self.pass_by_kernel(now),
            _ => {}
        }
    }

    /// While a gateway of the pair is about to end, both hand their connections over, its peer first.
    fn follow_ends(&mut self, now: Instant) {
        let Some((pair, elements)) = &self.pair else { return };
        // Until it drains, it may split another one in this round.
        let left = self.first.connections().max(usize::from(self.drain.is_none()));
        let Some(link) = self.first.driver.world_mut().element_mut::<PeerLink>(elements.link) else { return };
        link.set_left(left);
        let drain = match (self.is_ending, link.peer_ends(now)) {
            (false, false) => None,
            (false, true) => Some(Drain::FromLan),
            (true, true) if link.peer_is_last() => Some(Drain::FromLan),
            (true, _) if link.may_end(now) || !self.peer_is_up => Some(Drain::All),
            (true, _) => Some(Drain::Hold),
        };
        if drain == std::mem::replace(&mut self.drain, drain) {
            return;
        }
        if !self.is_ending && drain.is_some() {
            (self.note)(&format!("the peer {} ends: connections are handed over", pair.file.peer));
        }
        self.first.on_gateway(|gateway, cx| gateway.set_drain(drain, cx));
    }

    /// The end of this gateway loses nothing that the peer has for its hosts.
    fn peer_lets_end(&self) -> bool {
        let Some((_, elements)) = self.pair.as_ref().filter(|_| self.peer_is_up) else { return true };
        let driver = &self.first.driver;
        driver.world().element::<PeerLink>(elements.link).is_none_or(|link| link.may_end(driver.now()))
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
            (self.note)(&format!(
                "the peer {} does not answer: its traffic passes by the kernel",
                pair.file.peer
            ));
        }
        let done = self.interception.pass_by_kernel();
        if done.is_ok() {
            self.first.on_gateway(Gateway::abandon);
        }
        self.on_rules(now, done.context("cannot let traffic pass by the kernel"));
    }

    /// The rules that lead to the peer were set or taken away. A failure does not end the gateway: it carries
    /// connections, and tries again.
    fn on_rules(&mut self, now: Instant, done: Result<()>) {
        let error = done.err().map(|error| format!("{error:#}"));
        if let Some(text) = error.as_ref().filter(|text| self.rules_error.as_ref() != Some(*text)) {
            (self.note)(&format!("{text}; it is tried again each {RULES_RETRY}"));
        }
        self.rules_retry = if error.is_some() { now + RULES_RETRY } else { now };
        self.rules_error = error;
    }

    /// New connections take the MTU that all paths bear.
    fn follow_paths(&mut self) {
        let Some((pair, _)) = &mut self.pair else { return };
        pair.follow_names();
        if let Some(mtu) = pair.measured_mtu().filter(|mtu| *mtu != self.interception.mtus[1]) {
            self.interception.mtus[1] = mtu;
            self.first.on_gateway(|gateway, _| gateway.set_wan_mtu(mtu));
        }
    }

    /// The MTU of interfaces holds for new connections, and routes that are gone are restored.
    fn follow_links(&mut self) -> Result<()> {
        let changes = self.link_watch.changes();
        if changes.links && self.interception.follow_mtus(&self.file) {
            let [lan, wan] = self.interception.mtus;
            self.first.on_gateway(|gateway, _| gateway.set_mtus(lan, wan));
            self.workers.each(move |shard| shard.on_gateway(|gateway, _| gateway.set_mtus(lan, wan)))?;
            (self.note)(&format!("the MTU is {lan} B and {wan} B now; it holds for new connections"));
        }
        if (changes.links || changes.routes) && !self.is_ending {
            self.watchdog.beat();
            self.interception.restore_routes(&self.file).iter().for_each(|done| (self.note)(done));
        }
        Ok(())
    }

    /// Reads the configuration again. Interfaces and addresses stay what they are.
    fn reload(&mut self, read: &dyn Fn() -> Result<GatewayFile>) -> Result<()> {
        self.log.iter().for_each(ConnectionLog::reopen);
        let read = read().and_then(|mut file| {
            let wan = match &self.pair {
                Some(_) => self.interception.mtus[1],
                None => side_mtu(&self.file.wan)?,
            };
            let mtus = [side_mtu(&self.file.lan)?, wan];
            let fixed = |file: &GatewayFile| {
                let sides =
                    (file.lan.clone(), file.wan.clone(), file.peer.clone(), file.via.clone(), file.threads());
                let told = (file.metrics, file.web, file.capture(), file.log.clone());
                (sides, told, file.rule_priority, file.table, file.pass_marks.clone())
            };
            if fixed(&file) != fixed(&self.file) {
                (self.note)(
                    "note: only a restart changes interfaces, peer, threads, pages, captures, log and rules",
                );
            }
            file.lan.clone_from(&self.file.lan);
            file.wan.clone_from(&self.file.wan);
            file.peer.clone_from(&self.file.peer);
            file.via.clone_from(&self.file.via);
            (file.metrics, file.web, file.threads) = (self.file.metrics, self.file.web, self.file.threads);
            file.pcap.clone_from(&self.file.pcap);
            file.log.clone_from(&self.file.log);
            (file.snaplen, file.pcap_limit) = (self.file.snaplen, self.file.pcap_limit);
            (file.rule_priority, file.table) = (self.file.rule_priority, self.file.table);
            file.pass_marks.clone_from(&self.file.pass_marks);
            Ok((file.gateway(mtus)?, file, mtus))
        });
        match read {
            Ok((config, file, mtus)) => {
                self.first.reconfigure(config.clone());
                self.workers.each(move |shard| shard.reconfigure(config.clone()))?;
                (self.file, self.interception.mtus) = (file, mtus);
                self.ended.keep(&[], self.file.records);
                (self.note)("the configuration was read again; it holds for new connections");
            }
            Err(error) => {
                (self.note)(&format!("the configuration stays as it was: {error:#}"));
            }
        }
        Ok(())
    }

    /// New connections pass, and split ones are handed over to their hosts.
    fn drain(&mut self) -> Result<()> {
        let _ = sd_notify::notify(false, &[sd_notify::NotifyState::Stopping]);
        self.is_ending = true;
        match &self.pair {
            // The element is there as long as the world.
            Some((_, elements)) => drop(self.first.driver.call(elements.link, PeerLink::begin_end)),
            None => {
                self.first.on_gateway(Gateway::drain);
                self.workers.each(|shard| shard.on_gateway(Gateway::drain))?;
            }
        }
        let until = self.first.driver.now() + DRAIN;
        while (self.first.connections() > 0 || !self.peer_lets_end()) && self.first.driver.now() < until {
            self.round()?;
            // A second signal: at once.
            if let Ok(Some(_)) = self.signals.read_signal() {
                break;
            }
        }
        Ok(())
    }

    fn token_file(&self) -> Option<String> {
        let token_file = self.dashboard.as_ref().and_then(|dashboard| dashboard.token_file.as_ref());
        token_file.map(|file| file.path().display().to_string())
    }

    fn paths(&self) -> impl Iterator<Item = (&String, &String)> {
        self.pair.iter().flat_map(|(pair, _)| pair.links.iter().zip(&pair.said))
    }

    /// What it is, for programs.
    pub fn up_json(&self) -> Value {
        let Interception { names, mtus, notes, .. } = &self.interception;
        let peer = self.pair.as_ref().map(|(pair, _)| {
            let paths: Vec<_> =
                self.paths().map(|(via, said)| json!({ "via": via, "found": said })).collect();
            json!({ "name": pair.file.peer, "prefixes": pair.file.peer_prefixes, "paths": paths })
        });
        json!({ "up": {
            "lan": self.file.lan, "wan": self.file.wan, "peer": peer, "devices": names,
            "mtu_bytes": { "lan": mtus[0], "wan": mtus[1] },
            "threads": self.file.threads(),
            "set": self.interception.steps(), "notes": notes,
            "web": self.dashboard.as_ref().map(|dashboard| &dashboard.url),
            "web_token_file": self.token_file(),
            "capture": self.capture.as_ref().map(|files| files.view().json()),
        }})
    }

    /// What it is, for people.
    pub fn up_text(&self) -> String {
        let Interception { mtus, notes, .. } = &self.interception;
        let far = match &self.pair {
            Some((pair, _)) => format!("the peer {}", pair.file.peer),
            None => self.file.wan.join(", "),
        };
        let mut text = format!(
            "TCP between {} and {far} is split; MTU {} B and {} B\n",
            self.file.lan.join(", "),
            mtus[0],
            mtus[1]
        );
        self.paths().for_each(|(via, said)| text += &format!("  path via {via}: {said}\n"));
        self.interception.steps().iter().for_each(|step| text += &format!("  set; at the end: {step}\n"));
        notes.iter().for_each(|note| text += &format!("  note: {note}\n"));
        if let Some(dashboard) = &self.dashboard {
            text += &format!("  dashboard: {}\n", dashboard.url);
        }
        if let Some(path) = self.token_file() {
            text += &format!("    with #token=TOKEN at its end; TOKEN is in {path}\n");
        }
        if let Some(config) = self.file.capture() {
            text += &format!("  captures: {}, {} at most\n", config.folder.display(), config.limit);
        }
        text += "Try: farpace gateway check   farpace gateway status   farpace gateway top\n";
        text += "Ctrl-C hands the connections over and takes everything away.\n";
        text
    }

    /// Takes everything away, and returns what there was; `ended` is what [`run`](GatewayService::run) has
    /// returned.
    ///
    /// # Errors
    /// Of `ended`, or what could not be taken away.
    pub fn end(mut self, ended: Result<()>) -> Result<GatewayEnd> {
        // Resets leave while the rules and the exemption from tracking still stand.
        self.first.on_gateway(Gateway::cut);
        self.first.send_the_rest();
        let cut = self.workers.each(|shard| {
            shard.on_gateway(Gateway::cut);
            shard.send_the_rest();
        });
        self.watchdog.beat();
        let snapshot = self.snapshot(false);
        let logged = self.take_ended();
        let released = self.interception.release();
        self.watchdog.beat();
        self.first.send_the_rest();
        self.first.end_capture();
        let workers_ended = self.workers.end();
        self.watchdog.beat();
        if let Some(files) = self.capture.take() {
            files.end();
        }
        if let Some(log) = self.log.take() {
            log.end();
        }
        drop(self.first);
        drop(self.questions);
        drop(self.dashboard);
        if released.is_ok() {
            self.watchdog.end();
        }
        ended?;
        workers_ended?;
        cut?;
        logged?;
        released?;
        let snapshot = snapshot?;
        Ok(GatewayEnd { totals: snapshot.totals, json: json!({ "end": snapshot.json()["totals"] }) })
    }

    fn snapshot(&self, with_flows: bool) -> Result<Snapshot> {
        let GatewayService { first, workers, file, interception, pair, .. } = self;
        let rows = if with_flows { MAX_ROWS } else { 0 };
        let others = workers.each(move |shard| shard.view(rows))?;
        let add = |sum: ShardView, view| sum.with(view, rows);
        let ShardView { totals, devices, flows } = others.into_iter().fold(first.view(rows), add);
        let running = self.capture.as_ref().map(CaptureFiles::view);
        Ok(Snapshot {
            lan: file.lan.clone(),
            wan: file.wan.clone(),
            via: file.via.clone(),
            rules_error: self.rules_error.clone(),
            rule_priority: file.rule_priority,
            table: file.table,
            pass_marks: file.pass_marks.clone(),
            names: interception.names.clone(),
            mtus: interception.mtus,
            threads: file.threads(),
            uptime: first.driver.now().since(Instant::ZERO),
            totals,
            devices,
            pair: pair.as_ref().map(|(pair, elements)| PairView {
                caught: interception.leads_to_peer(),
                ..pair.view(first.driver.world(), elements)
            }),
            flows,
            control_group: file.control_group,
            gain: self.gain.rows(),
            capture: running.or_else(|| self.ended_capture.clone()),
        })
    }
}

/// Two gateways cannot have the same routing tables.
fn refuse_second(file: &GatewayFile) -> Result<()> {
    // One that does not answer may be about to end.
    for status in control::status_of_all().unwrap_or_default().iter().filter(|status| is_here(status)) {
        let Some(other) = status["table"].as_u64() else { continue };
        if u64::from(file.table).abs_diff(other) <= 1 {
            bail!(
                "the gateway of process {} has the routing table {other}: set table = {} and \
                 rule_priority = {} in the configuration of this one, or end the other",
                status["pid"],
                other + 2,
                status["rule_priority"].as_u64().unwrap_or(100) + 10
            );
        }
    }
    Ok(())
}

/// Puts the link to the peer behind the gateway: what the pair is then, and the ports of its paths.
fn build_pair(
    pair: GatewayPair,
    world: &mut World,
    gateway: ElementId,
) -> Result<(GatewayPair, PairElements, Vec<ElementId>)> {
    let (elements, path_ports) = pair.build(world, gateway)?;
    Ok((pair, elements, path_ports))
}
