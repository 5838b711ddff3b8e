//! The same as `hours` for a pair of gateways, whose paths are cut, change their rates, lose, repeat and
//! reorder frames. Every byte is compared.
//!
//! `FARPACE_HOURS` is the number of episodes (default: 4), `FARPACE_FROM` the first seed.

use crate::harness::{byte_at, policy};
use crate::pair::*;
use bytes::Bytes;
use farpace_gateway::{Action, FlowView, Gateway, GatewayConfig, LegView, Policy, PolicyTable};
use farpace_host::{Application, ConnectionId, Host, SocketEnds};
use farpace_path::world::{ElementId, Observer, WireId};
use farpace_path::{Cx, Port, RateStep};
use farpace_tcp::config::{AckControlMode, Congestion, Profile, Settings};
use farpace_tcp::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Span};
use farpace_wire::udp::UdpHeader;
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

/// Connections are opened, and things happen, in the first part of an episode.
const BUSY: Span = Span::from_secs(400);
/// Between two times when nothing passes. TCP gives up a handshake that fails for a minute.
const BETWEEN_OUTAGES: Span = Span::from_secs(80);
/// Afterwards the paths are good, and what was not disturbed is done after so long.
const DONE: Span = Span::from_secs(900);
/// Whatever is left then is reset by the hosts, and gone from both gateways after so long.
const GONE: Span = Span::from_secs(1_800);
/// Probes take an eighth of a path of this rate, and most of one that is much slower.
const SLOWEST_KBIT: u64 = 500;
const DATAGRAM_PORT: u16 = 9;

/// What both programs of a connection do; it follows from its key.
#[derive(Clone, Copy, Debug)]
struct Talk {
    /// Of the opener, and of the acceptor.
    sends: [usize; 2],
    /// The acceptor sends when the opener has closed.
    after_fin: bool,
    /// They write, and read, a piece now and then.
    writes_pieces: [bool; 2],
    reads_pieces: [bool; 2],
}

impl Talk {
    fn of(seed: u64, key: TalkKey, most: usize) -> Self {
        let mut random = RandomStream::new(seed, &format!("talk {key:?}"));
        let mut size = || match random.below(8) {
            0 => 0,
            1 => random.below(20) as usize,
            2..4 => random.below(20_000) as usize,
            _ => random.below(most as u64) as usize,
        };
        let sends = [size(), size()];
        let mut seldom = || random.below(6) == 0;
        let (writes_pieces, reads_pieces) = ([seldom(), seldom()], [seldom(), seldom()]);
        Talk { sends, after_fin: random.below(4) == 0, writes_pieces, reads_pieces }
    }
}

/// The site of the opener, and its port.
type TalkKey = (usize, u16);

/// What one end of a connection has seen.
#[derive(Debug, Default)]
struct EndRecord {
    id: Option<ConnectionId>,
    received: usize,
    wrong: Option<usize>,
    peer_closed: bool,
    ended: Option<CloseReason>,
    /// Its own host has given it up, and reads no more.
    is_given_up: bool,
}

type TalkLog = Rc<RefCell<BTreeMap<TalkKey, Vec<Rc<RefCell<EndRecord>>>>>>;

/// The program at one end.
struct PairProgram {
    /// 0: the opener, 1: the acceptor.
    own: usize,
    /// The site where it is.
    site: usize,
    seed: u64,
    most: usize,
    talk: Talk,
    /// The bytes of a connection differ from those of others.
    mark: u8,
    is_connected: bool,
    sent: usize,
    may_write: usize,
    may_read: usize,
    log: Option<TalkLog>,
    record: Rc<RefCell<EndRecord>>,
}

impl PairProgram {
    fn new(own: usize, site: usize, seed: u64, most: usize, log: Option<TalkLog>) -> Self {
        let talk = Talk::of(seed, (0, 0), most);
        let record = Rc::default();
        let (may_write, may_read) = (0, 0);
        PairProgram {
            own,
            site,
            seed,
            most,
            talk,
            mark: 0,
            is_connected: false,
            sent: 0,
            may_write,
            may_read,
            log,
            record,
        }
    }

    fn begin(&mut self, key: TalkKey) {
        self.talk = Talk::of(self.seed, key, self.most);
        self.mark = (key.1 as u8).wrapping_mul(37) ^ key.0 as u8;
        let piece = |is_piece, size| if is_piece { size } else { usize::MAX };
        self.may_write = piece(self.talk.writes_pieces[self.own], self.talk.sends[self.own] / 3);
        self.may_read = piece(self.talk.reads_pieces[self.own], 30_000);
    }

    fn act(&mut self, connection: &mut Connection) {
        if !self.is_connected {
            return;
        }
        let mut record = self.record.borrow_mut();
        let room = ByteCount::new((self.may_read - record.received.min(self.may_read)) as u64);
        let mark = self.mark ^ if self.own == 0 { 0x5a } else { 0 };
        connection.read_up_to(room, |bytes| {
            for byte in bytes {
                if byte != byte_at(mark, record.received) && record.wrong.is_none() {
                    record.wrong = Some(record.received);
                }
                record.received += 1;
            }
        });
        if self.own == 1 && self.talk.after_fin && !record.peer_closed {
            return;
        }
        let mark = self.mark ^ if self.own == 1 { 0x5a } else { 0 };
        let sends = self.talk.sends[self.own];
        while self.sent < sends.min(self.may_write) {
            let end = sends.min(self.may_write).min(self.sent + 10_000);
            let chunk: Vec<u8> = (self.sent..end).map(|n| byte_at(mark, n)).collect();
            let taken = connection.write(&mut Bytes::from(chunk)).as_len();
            if taken == 0 {
                return;
            }
            self.sent += taken;
        }
        if self.sent == sends {
            connection.close();
        }
    }

    /// It goes on.
    fn tick(&mut self, connection: &mut Connection, by: usize) {
        self.may_write = self.may_write.saturating_add(by.max(self.talk.sends[self.own] / 3));
        self.may_read = self.may_read.saturating_add(by);
        self.act(connection);
    }
}

impl Application for PairProgram {
    fn on_begin(&mut self, id: ConnectionId, ends: SocketEnds) {
        let key = match self.own {
            0 => (self.site, ends.local.port()),
            _ => (1 - self.site, ends.remote.port()),
        };
        self.begin(key);
        self.record.borrow_mut().id = Some(id);
        if let Some(log) = &self.log {
            log.borrow_mut().entry(key).or_default().push(self.record.clone());
        }
    }
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected => self.is_connected = true,
            ConnectionEvent::PeerClosed => self.record.borrow_mut().peer_closed = true,
            ConnectionEvent::Closed(reason) => {
                self.record.borrow_mut().ended = Some(reason);
                self.may_read = usize::MAX;
            }
            _ => {}
        }
        self.act(connection);
    }
}

/// The datagrams that reach the hosts.
#[derive(Default)]
struct Datagrams {
    wires: Vec<WireId>,
    sent: u32,
    arrived: BTreeMap<u32, u32>,
    wrong: usize,
}

/// A datagram says its number in its first bytes; the others follow from it.
fn datagram(number: u32, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len).map(|n| byte_at(number as u8, n)).collect();
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

impl Observer for Datagrams {
    fn packet(&mut self, _: Instant, wire: WireId, packet: &Packet) {
        if self.wires.contains(&wire) && packet.udp().is_ok() {
            let payload = packet.payload();
            let number = payload.first_chunk().map_or(u32::MAX, |bytes| u32::from_be_bytes(*bytes));
            let right = payload.len() >= 4 && payload[..] == datagram(number, payload.len())[..];
            self.wrong += usize::from(!right || number >= self.sent);
            *self.arrived.entry(number).or_default() += 1;
        }
    }
}

struct Opened {
    key: TalkKey,
    to: IpAddr,
    record: Rc<RefCell<EndRecord>>,
    /// Streams with this key that had arrived before it.
    before: usize,
    /// A host or a gateway has ended, or will have to end, what was not delivered: then TCP promises less.
    is_disturbed: bool,
}

/// What an episode has had.
#[derive(Debug, Default)]
struct PairCounts {
    connections: usize,
    disturbed: usize,
    kills: usize,
    drains: usize,
    cuts: usize,
    resets: usize,
    restarts: usize,
    again: usize,
    given_up: usize,
    datagrams: [usize; 2],
    split: [u64; 2],
    passed: u64,
    ended: u64,
}

fn pick<T: Copy>(random: &mut RandomStream, from: &[T]) -> T {
    from[random.below(from.len() as u64) as usize]
}

fn config(random: &mut RandomStream, site: usize) -> GatewayConfig {
    let base = policy();
    let congestion = pick(random, &[None, None, None, Some(Congestion::Cubic)]);
    let wan = Settings {
        profile: Some(Profile::Farpace),
        ack_control: Some(AckControlMode::Safe),
        congestion,
        ..Settings::default()
    };
    let wan = wan.resolve().unwrap();
    let policy = Policy {
        buffer: ByteCount::new(pick(random, &[65_536, 1 << 20, 64 << 20])),
        min_rtt: Span::from_millis(pick(random, &[0, 5, 100])),
        action: pick(random, &[Action::Auto, Action::Split]),
        wan: wan.into(),
        ..base
    };
    // Connections with the second address of the other host pass here, perhaps.
    let passes = Policy { action: Action::Pass, ..policy.clone() };
    let rules = match random.below(2) {
        0 => vec![(farpace_path::Prefix::new(SECOND_ADDRESSES[1 - site], 32).unwrap(), passes)],
        _ => Vec::new(),
    };
    let mut config = GatewayConfig::new(PolicyTable::new(rules, policy));
    config.memory = ByteCount::new(pick(random, &[1 << 20, 8 << 20, 64 << 20]));
    config.super_segment = pick(random, &[0, 65_000]);
    config.wan_mtu = TUNNEL_MTU;
    config
}

fn path(rng: &mut RandomStream) -> PathPlan {
    let share = |rng: &mut RandomStream, most: f64| match rng.below(2) {
        0 => 0.0,
        _ => rng.below(1_000) as f64 / 1_000.0 * most,
    };
    let (most_kbit, most_delay) = (pick(rng, &[1_000, 40_000, 40_000]), pick(rng, &[120, 120, 120, 600]));
    let kbit = SLOWEST_KBIT + rng.below(most_kbit);
    let delay = 1 + rng.below(most_delay);
    let changes = pick(rng, &[0, 0, 1, 6]);
    let mut steps = Vec::new();
    for n in 0..=changes {
        let kbit = if n == 0 { kbit } else { SLOWEST_KBIT + rng.below(kbit * 2) };
        let rate = Some(Rate::from_bits_per_sec(1_000 * kbit));
        let delay = Span::from_millis(if n == 0 { delay } else { 1 + rng.below(delay * 2) });
        steps.push(RateStep { at: Span::from_millis(n * 5_000 + rng.below(4_000) * n.min(1)), rate, delay });
    }
    PathPlan {
        steps,
        period: Span::from_secs(40),
        queue: ByteCount::new(pick(rng, &[20_000, 100_000, 1_000_000])),
        loss: share(rng, 0.04),
        duplicate: share(rng, 0.01),
        reorder: share(rng, 0.02),
    }
}

struct PairEpisode {
    seed: u64,
    net: PairNet,
    most: usize,
    opened: Vec<Opened>,
    accepted: TalkLog,
    datagrams: Datagrams,
    /// Gates that open again.
    cut_until: Vec<(Instant, ElementId)>,
    next_outage: Instant,
    counts: PairCounts,
}

impl PairEpisode {
    fn run_for(&mut self, span: Span) {
        let until = self.net.world.now() + span;
        loop {
            let next = self.cut_until.iter().map(|(at, _)| *at).min().filter(|at| *at <= until);
            self.net.world.run_until(next.unwrap_or(until), &mut self.datagrams).unwrap();
            let Some(next) = next else { break };
            let due: Vec<_> = self.cut_until.extract_if(.., |(at, _)| *at <= next).collect();
            for (_, gate) in due {
                if !self.cut_until.iter().any(|(_, other)| *other == gate) {
                    self.net.set_gate(gate, [true; 2]);
                }
            }
        }
        self.net.world.check().unwrap();
    }

    fn cut(&mut self, gate: ElementId, open: [bool; 2], span: Span) {
        self.net.set_gate(gate, open);
        self.cut_until.push((self.net.world.now() + span, gate));
        self.counts.cuts += 1;
    }

    /// Cuts a path, or all of them, or a LAN. Nothing passes at all for a while only now and then.
    fn cut_some(&mut self, gates: &[ElementId], open: [bool; 2], span: Span) {
        let now = self.net.world.now();
        let is_cut = |gate: &ElementId| self.cut_until.iter().any(|(_, other)| other == gate);
        let is_outage = self.net.cuts.iter().all(|gate| gates.contains(gate) || is_cut(gate))
            || !self.net.cuts.contains(&gates[0]);
        if is_outage {
            if now < self.next_outage {
                return;
            }
            self.next_outage = now + span + BETWEEN_OUTAGES;
        }
        gates.iter().for_each(|gate| self.cut(*gate, open, span));
    }

    fn listen(&mut self, site: usize) {
        let (accepted, seed, most) = (self.accepted.clone(), self.seed, self.most);
        self.net
            .listen(site, move || Box::new(PairProgram::new(1, site, seed, most, Some(accepted.clone()))));
    }

    fn open(&mut self, site: usize, port: u16, to: IpAddr) {
        let program = PairProgram::new(0, site, self.seed, self.most, None);
        let (key, record) = ((site, port), program.record.clone());
        let before = self.whole_streams(&key);
        if self.net.connect(site, port, to, Box::new(program)) {
            self.opened.push(Opened { key, to, record, before, is_disturbed: false });
        }
    }

    /// The port of a connection that is done is used once more.
    fn open_again(&mut self, rng: &mut RandomStream) {
        let done: Vec<(TalkKey, IpAddr)> = self
            .opened
            .iter()
            .filter(|opened| !opened.is_disturbed && self.is_done(opened))
            .map(|opened| (opened.key, opened.to))
            .collect();
        let Some(&((site, port), to)) = done.get(rng.below(done.len().max(1) as u64) as usize) else {
            return;
        };
        let mut uses = self.opened.iter().filter(|opened| opened.key == (site, port));
        if uses.all(|opened| !opened.is_disturbed && self.is_done(opened)) {
            self.open(site, port, to);
            self.counts.again += 1;
        }
    }

    /// Streams of an opener that have arrived whole.
    fn whole_streams(&self, key: &TalkKey) -> usize {
        let bytes = Talk::of(self.seed, *key, self.most).sends[0];
        let accepted = self.accepted.borrow();
        let ends = accepted.get(key).map_or(&[][..], |ends| ends);
        let ends = ends.iter().map(|end| end.borrow());
        ends.filter(|end| end.peer_closed && end.received == bytes).count()
    }

    fn talk(&self, opened: &Opened) -> Talk {
        Talk::of(self.seed, opened.key, self.most)
    }

    /// All arrived in both directions.
    fn is_done(&self, opened: &Opened) -> bool {
        let end = opened.record.borrow();
        end.peer_closed
            && end.received == self.talk(opened).sends[1]
            && self.whole_streams(&opened.key) > opened.before
    }

    /// Something happens that TCP does not hide from what is under way.
    fn disturb(&mut self) {
        let done: Vec<bool> = self.opened.iter().map(|opened| self.is_done(opened)).collect();
        for (opened, done) in self.opened.iter_mut().zip(done) {
            opened.is_disturbed |= !done;
        }
    }

    /// What programs that are not done have seen, with their sites and connections.
    fn live_records(&self) -> Vec<(usize, ConnectionId, Rc<RefCell<EndRecord>>)> {
        let of = |site: usize, record: &Rc<RefCell<EndRecord>>| {
            let seen = record.borrow();
            Some((site, seen.id.filter(|_| seen.ended.is_none())?, record.clone()))
        };
        let openers = self.opened.iter().filter_map(|opened| of(opened.key.0, &opened.record));
        let accepted = self.accepted.borrow();
        let acceptors = accepted.iter().flat_map(|((site, _), ends)| ends.iter().map(move |e| (1 - site, e)));
        openers.chain(acceptors.filter_map(|(site, end)| of(site, end))).collect()
    }

    /// A gateway is about to be killed: what it has acknowledged and not delivered will be lost, and a FIN
    /// that it has not passed on. All other connections go on.
    fn disturb_unsettled(&mut self, site: usize) {
        let flows = self.net.gateway(site).flows(self.net.world.now());
        let is_settled = |flow: &FlowView| {
            let state = |leg: &LegView| leg.state == ConnectionState::Established;
            let states = flow.to_opener.as_ref().is_none_or(state) && state(&flow.to_acceptor);
            flow.undelivered.iter().all(|bytes| bytes.is_zero()) && states
        };
        let unsettled = flows.filter(|flow| flow.to_opener.is_some() && !is_settled(flow));
        let ports: BTreeSet<u16> = unsettled.map(|flow| flow.opener.port()).collect();
        for opened in &mut self.opened {
            opened.is_disturbed |= ports.contains(&opened.key.1);
        }
    }

    /// The connections that programs still have, and their sites.
    fn live(&self) -> Vec<(usize, ConnectionId)> {
        self.live_records().into_iter().map(|(site, id, _)| (site, id)).collect()
    }

    fn tick(&mut self, by: usize) {
        for (site, id) in self.live() {
            let act = |host: &mut Host, cx: &mut Cx<'_>| {
                host.with_application(id, cx, |program: &mut PairProgram, tcp| program.tick(tcp, by))
            };
            self.net.world.call(self.net.sites[site].host, &mut self.datagrams, act).unwrap();
        }
    }

    fn abort(&mut self, site: usize, id: ConnectionId) {
        let act = |host: &mut Host, cx: &mut Cx<'_>| {
            host.with_application(id, cx, |program: &mut PairProgram, tcp| {
                program.record.borrow_mut().is_given_up = true;
                tcp.abort();
            })
        };
        self.net.world.call(self.net.sites[site].host, &mut self.datagrams, act).unwrap();
    }

    fn reset_one(&mut self, rng: &mut RandomStream) {
        let live = self.live_records();
        if live.is_empty() {
            return;
        }
        let (site, id, record) = &live[rng.below(live.len() as u64) as usize];
        let accepted = self.accepted.borrow();
        let is_it = |opened: &Opened| {
            let acceptors = accepted.get(&opened.key).map_or(&[][..], |ends| ends);
            acceptors.iter().chain([&opened.record]).any(|end| Rc::ptr_eq(end, record))
        };
        let key = self.opened.iter().find(|opened| is_it(opened)).map(|opened| opened.key);
        drop(accepted);
        let ends = |opened: &Opened| Some(opened.key) == key && !self.is_done(opened);
        let ended: Vec<bool> = self.opened.iter().map(ends).collect();
        self.opened.iter_mut().zip(ended).for_each(|(opened, ended)| opened.is_disturbed |= ended);
        self.counts.resets += 1;
        self.abort(*site, *id);
    }

    fn send_datagrams(&mut self, site: usize, count: u64, len: usize) {
        for _ in 0..count {
            let (IpAddr::V4(from), IpAddr::V4(to)) = (ADDRESSES[site], ADDRESSES[1 - site]) else { return };
            let below = Below::new(MacAddr::default(), MacAddr::default(), AddressPair::V4(from, to), 64);
            let header = UdpHeader { src_port: DATAGRAM_PORT, dst_port: DATAGRAM_PORT };
            let packet = below.udp(1, header, datagram(self.datagrams.sent, len).into()).unwrap();
            self.datagrams.sent += 1;
            let gate = self.net.sites[site].gate;
            if self.net.world.element::<CableGate>(gate).unwrap().lets_in(Port(0)) {
                let act = |_: &mut CableGate, cx: &mut Cx<'_>| {
                    cx.made();
                    cx.emit(Port(1), packet);
                };
                self.net.world.call(gate, &mut self.datagrams, act).unwrap();
            }
        }
    }

    fn count_gateway(&mut self, site: usize) {
        let totals = self.net.totals()[site];
        self.counts.split[site] += totals.split;
        self.counts.passed += totals.packets_passed;
        self.counts.ended += totals.ended_by_error;
    }

    fn kill(&mut self, site: usize, pause: Span) {
        self.count_gateway(site);
        self.disturb_unsettled(site);
        self.net.stop(site);
        self.run_for(pause);
        self.net.start(site);
        self.counts.kills += 1;
    }

    /// A host loses its connections without a word.
    fn restart_host(&mut self, site: usize) {
        self.disturb();
        self.net.restart_host(site);
        self.listen(site);
        for (at, _, record) in self.live_records() {
            if at == site {
                let mut record = record.borrow_mut();
                (record.is_given_up, record.ended) = (true, Some(CloseReason::Aborted));
            }
        }
        self.counts.restarts += 1;
    }

    /// Nothing passes for long, and a gateway gives up its peer. The kernel has no other route.
    fn give_up(&mut self, site: usize, span: Span, both: bool) {
        let cuts = self.net.cuts.clone();
        self.disturb();
        cuts.iter().for_each(|gate| self.cut(*gate, [false; 2], span));
        self.run_for(Span::from_secs(3));
        for site in [site, 1 - site].into_iter().take(1 + usize::from(both)) {
            if !self.net.is_up(site) {
                self.net.on_gateway(site, &mut self.datagrams, Gateway::abandon);
                self.net.hold(site, true);
                self.counts.given_up += 1;
            }
        }
        self.run_for(span);
        (0..2).for_each(|site| self.net.hold(site, false));
    }

    fn drain(&mut self, site: usize) {
        self.net.on_gateway(site, &mut self.datagrams, Gateway::drain);
        let end = self.net.world.now() + DONE;
        while self.has_undisturbed(site) {
            self.tick(usize::MAX);
            self.run_for(Span::from_millis(500));
            if self.net.world.now() > end {
                self.fail("connections are not handed over");
            }
        }
        self.count_gateway(site);
        self.net.stop(site);
        self.net.start(site);
        self.counts.drains += 1;
    }

    /// A gateway has connections that no kill has harmed. What a kill has taken nobody can deliver.
    fn has_undisturbed(&self, site: usize) -> bool {
        let keys: BTreeSet<TalkKey> = self.opened.iter().filter(|o| !o.is_disturbed).map(|o| o.key).collect();
        let flows = self.net.gateway(site).flows(self.net.world.now());
        let mut openers = flows.map(|flow| flow.opener);
        openers.any(|opener| (0..2).any(|from| keys.contains(&(from, opener.port()))))
    }

    fn happen(&mut self, rng: &mut RandomStream) {
        let site = rng.below(2) as usize;
        match rng.below(26) {
            23 => (0..4).for_each(|_| self.open_again(rng)),
            24 if rng.below(2) == 0 => self.restart_host(site),
            25 if self.net.world.now() >= self.next_outage => {
                let span = Span::from_millis(4_000 + rng.below(20_000));
                self.next_outage = self.net.world.now() + span * 2 + BETWEEN_OUTAGES;
                self.give_up(site, span, rng.below(2) == 0);
            }
            0 => {
                let pause = Span::from_millis(rng.below(3_000));
                self.kill(site, pause);
            }
            1 => self.drain(site),
            2 => self.reset_one(rng),
            3..7 => {
                let gate = pick(rng, &self.net.cuts);
                let open = pick(rng, &[[false, false], [false, false], [false, true], [true, false]]);
                let most = pick(rng, &[1_000, 20_000]);
                self.cut_some(&[gate], open, Span::from_millis(50 + rng.below(most)));
            }
            7 => {
                let most = pick(rng, &[1_000, 5_000, 20_000]);
                let span = Span::from_millis(50 + rng.below(most));
                self.cut_some(&self.net.cuts.clone(), [false; 2], span);
            }
            8 => {
                let gate = self.net.sites[site].gate;
                let most = pick(rng, &[1_000, 20_000]);
                self.cut_some(&[gate], [false; 2], Span::from_millis(50 + rng.below(most)));
            }
            9 => {
                let (count, len) = (1 + rng.below(300), 4 + rng.below(1_380) as usize);
                self.send_datagrams(site, count, len);
            }
            _ => {
                for _ in 0..1 + rng.below(4) {
                    let addresses = pick(rng, &[ADDRESSES, ADDRESSES, SECOND_ADDRESSES]);
                    let site = rng.below(2) as usize;
                    let port = 20_000 + self.opened.len() as u16;
                    self.open(site, port, addresses[1 - site]);
                }
            }
        }
    }

    fn fail(&self, what: &str) -> ! {
        let now = self.net.world.now();
        for site in 0..2 {
            for flow in self.net.gateway(site).flows(now) {
                println!("gateway {site}: {flow:#?}");
            }
            println!("layer {site}: {:?}", self.net.layer(site).map(farpace_path::Element::inspect));
        }
        for opened in self.opened.iter().filter(|opened| !self.is_done(opened)) {
            let accepted = self.accepted.borrow();
            println!(
                "{:?} disturbed {} {:?}\n  {:?}\n  {:?}",
                opened.key,
                opened.is_disturbed,
                self.talk(opened),
                opened.record.borrow(),
                accepted.get(&opened.key),
            );
        }
        panic!("seed {} at {now}: {what}", self.seed);
    }

    fn check_streams(&self) {
        let accepted = self.accepted.borrow();
        for opened in &self.opened {
            let talk = self.talk(opened);
            let acceptors = accepted.get(&opened.key).map_or(&[][..], |ends| ends);
            let ends = acceptors.iter().map(|end| (end, talk.sends[0]));
            for (end, bytes) in ends.chain([(&opened.record, talk.sends[1])]) {
                let end = end.borrow();
                if end.wrong.is_some() {
                    self.fail(&format!("{:?}: a byte differs: {end:?}", opened.key));
                }
                // A stream that ends as if it were whole is whole, whatever has happened.
                if end.peer_closed && end.received != bytes && !end.is_given_up {
                    self.fail(&format!("{:?}: a FIN before {bytes}: {end:?}", opened.key));
                }
            }
            let uses = self.opened.iter().filter(|other| other.key == opened.key).count();
            if acceptors.iter().filter(|end| end.borrow().peer_closed).count() > uses {
                self.fail(&format!("{:?}: a stream comes twice: {acceptors:?}", opened.key));
            }
        }
    }
}

fn episode(seed: u64) -> PairCounts {
    let mut random = RandomStream::new(seed, "pair hours");
    let rng = &mut random;
    let configs = [0, 1].map(|site| config(rng, site));
    let plans: Vec<PathPlan> = (0..pick(rng, &[1, 2, 2, 2, 3])).map(|_| path(rng)).collect();
    // A connection takes the paths for two seconds at most.
    let rates = plans.iter().filter_map(|plan| plan.steps[0].rate);
    let capacity = rates.map(|rate| rate.bits_per_sec() / 8).sum::<u64>() as usize * 2;
    let may_repeat = plans.iter().any(|plan| plan.duplicate > 0.0);
    let net = PairNet::new(seed, configs, &plans);
    let datagrams = Datagrams { wires: net.wires.to_vec(), ..Datagrams::default() };
    let mut all = PairEpisode {
        seed,
        net,
        most: capacity.min(pick(rng, &[50_000, 300_000, 1_000_000])),
        opened: Vec::new(),
        accepted: Rc::default(),
        datagrams,
        cut_until: Vec::new(),
        next_outage: Instant::ZERO,
        counts: PairCounts::default(),
    };
    (0..2).for_each(|site| all.listen(site));
    while all.net.world.now() < Instant::ZERO + BUSY {
        let most = pick(rng, &[100, 5_000, 10_000]);
        all.run_for(Span::from_millis(rng.below(most)));
        all.tick(10_000);
        all.happen(rng);
    }
    let end = all.net.world.now() + DONE;
    while all.opened.iter().any(|opened| !opened.is_disturbed && !all.is_done(opened)) {
        all.tick(usize::MAX);
        all.run_for(Span::from_secs(1));
        if all.net.world.now() > end {
            all.fail("a connection hangs, or was lost");
        }
    }
    all.tick(usize::MAX);
    all.check_streams();
    for (site, id) in all.live() {
        let disturbed: BTreeSet<_> = all.opened.iter().filter(|o| o.is_disturbed).map(|o| o.key).collect();
        if !disturbed.is_empty() {
            all.abort(site, id);
        }
    }
    let end = all.net.world.now() + GONE;
    while all.net.totals().iter().any(|totals| totals.connections > 0)
        || (0..2).any(|site| all.net.frames_held(site) > 0)
    {
        all.run_for(Span::from_secs(10));
        if all.net.world.now() > end {
            all.fail("gateways keep connections, or layers frames");
        }
    }
    all.check_streams();
    for totals in all.net.totals() {
        if (totals.connections, totals.half_open, totals.memory) != (0, 0, ByteCount::ZERO) {
            all.fail(&format!("something is left: {totals:?}"));
        }
    }
    let datagrams = &all.datagrams;
    assert_eq!(datagrams.wrong, 0, "seed {seed}: a datagram differs");
    let repeated = datagrams.arrived.values().filter(|times| **times > 1).count();
    assert!(may_repeat || repeated == 0, "seed {seed}: {repeated} datagrams come twice");
    (0..2).for_each(|site| all.count_gateway(site));
    all.counts.datagrams = [all.datagrams.sent as usize, all.datagrams.arrived.len()];
    all.counts.connections = all.opened.len();
    all.counts.disturbed = all.opened.iter().filter(|opened| opened.is_disturbed).count();
    all.counts
}

/// Breaks: a pair of gateways whose paths fail and come back, or that is killed or drained, loses, changes or
/// repeats a byte, ends a stream too early as if it were whole, lets a connection hang, or keeps connections,
/// memory or frames.
#[test]
fn every_byte_of_a_pair_is_right() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let (episodes, from) = (number("FARPACE_HOURS").unwrap_or(4), number("FARPACE_FROM").unwrap_or(1));
    for seed in from..from + episodes {
        let counts = episode(seed);
        println!("episode {seed}: {counts:?}");
        assert!(counts.connections > 20, "{counts:?}");
    }
}
