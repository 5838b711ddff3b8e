//! One trial: a safety phase with all impairments, a liveness phase without, and the verdict.

use super::host::{TestConnection, TestHost};
use super::knobs::{DirectionKnobs, Knobs, Read};
use super::network;
use super::paced::Meters;
use farpace_events::Cause;
use farpace_lab::{ElementId, Observer, WireId, World};
use farpace_path::{DropReason, Port};
use farpace_tcp::{CloseReason, ConnectionState};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;
use std::collections::BTreeSet;

/// More events than this are a storm: a trial has about 20,000.
const MAX_EVENTS: u64 = 4_000_000;
/// Longest retransmission timeout, and the longest pause between two probes of a window.
const MAX_BACK_OFF: Span = Span::from_secs(120);
/// SYN after SYN: 1 + 2 + 4 + 8 + 16 + 32 s.
const HANDSHAKE: Span = Span::from_secs(64);
/// Time after the end within which everything must come to rest: TIME-WAIT, and a last FIN that backs off.
const REST: Span = Span::from_secs(900);

/// The observations of a trial.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub connections: u64,
    pub virtual_time: Span,
    pub events: u64,
    pub causes: BTreeSet<Cause>,
    pub ends: BTreeSet<CloseReason>,
    /// Connections that could not finish: aborted, or never opened.
    pub excused: u64,
    /// Frames of classes whose burstiness was measured, and gap frames.
    pub paced: [u64; 2],
}

impl Report {
    pub fn add(&mut self, other: Report) {
        self.connections += other.connections;
        self.virtual_time += other.virtual_time;
        self.events += other.events;
        self.causes.extend(other.causes);
        self.ends.extend(other.ends);
        self.excused += other.excused;
        self.paced[0] += other.paced[0];
        self.paced[1] += other.paced[1];
    }
}

/// Prints every packet and every drop, if asked to.
struct Printer(bool);

impl Observer for Printer {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        if self.0 {
            let side = ["client", "server", "the client's entry", "the server's entry"][wire.index() % 4];
            println!("{:.6} {side} {packet:?}", now.as_secs_f64());
        }
    }
    fn dropped(&mut self, now: Instant, _: ElementId, packet: &Packet, reason: DropReason) {
        if self.0 {
            println!("{:.6} {} {packet:?}", now.as_secs_f64(), reason.name());
        }
    }
}

/// Runs a trial; panics if a law is broken. `print`: with a line for each packet that a host sends or that is
/// dropped.
pub fn run(knobs: &Knobs, print: bool) -> Report {
    let (mut world, ids, link) = network::build(knobs);
    for id in ids {
        world.observe((id, Port(0))).expect("hosts have a port");
    }
    // Packets that leave a link at its far end.
    let wires = [1, 0].map(|port| world.observe((link, Port(port))).expect("links have two ports"));
    let watch = &mut (Printer(print), Meters::new(&knobs.directions, &knobs.ends, wires));
    let heal = Instant::ZERO + knobs.heal;
    advance(&mut world, heal, watch);
    let by = bound(knobs);
    while !is_done(&world, ids, knobs) {
        let next = world.next_event_time();
        let Some(next) = next.filter(|at| *at <= by) else { break };
        advance(&mut world, next + Span::from_millis(100), watch);
    }
    let ended = world.now();
    world.check().expect("packets are conserved");
    let mut report = judge(&world, ids, knobs);
    let queues =
        knobs.directions.iter().fold(Span::ZERO, |t, direction| t + in_direction(direction, longest(knobs)));
    let rest = world.now().max(heal) + REST + queues;
    advance(&mut world, rest, watch);
    world.check().expect("packets are conserved");
    let next = world.next_event_time();
    assert_eq!(next, None, "the world does not come to rest: {}", describe(&world, ids, 0));
    assert!(judge(&world, ids, knobs).connections == report.connections);
    report.virtual_time = ended.since(Instant::ZERO);
    report.events = world.events_processed();
    report.paced = watch.1.check();
    report
}

fn advance(world: &mut World, until: Instant, watch: &mut dyn Observer) {
    while world.next_event_time().is_some_and(|at| at <= until) {
        // In slices, so that a storm is noticed.
        for _ in 0..10_000 {
            match world.next_event_time() {
                Some(at) if at <= until => {
                    world.step(watch).expect("elements keep their contract");
                }
                _ => break,
            }
        }
        let events = world.events_processed();
        assert!(events < MAX_EVENTS, "a storm: {events} events by {}", world.now());
    }
    world.run_until(until, watch).expect("elements keep their contract");
}

/// The link's part of a round trip in the worst case: its delay and a full queue.
fn in_direction(direction: &DirectionKnobs, segment: u64) -> Span {
    let (rate, queue) = match &direction.paced {
        Some(paced) => paced.slowest(direction.rate),
        None => (direction.rate, u64::from(direction.queue.get())),
    };
    direction.delay + rate.time_for(ByteCount::new((segment + 120) * (queue + 1)))
}

/// The longest segment that there may be.
fn longest(knobs: &Knobs) -> u64 {
    knobs.ends.iter().map(|end| u64::from(end.settings.mss.unwrap_or(1460))).max().unwrap_or(1460)
}

/// When everything must be over. In the worst case each segment, each buffer and each turn takes its own
/// round trip after a timeout, because a queue of two packets and a back-off allow no more. Before that, two
/// full back-offs may be pending when the network heals: one of the peer's window probe and one of our
/// retransmission.
pub fn bound(knobs: &Knobs) -> Instant {
    let mss = |i: usize| u64::from(knobs.ends[i].settings.mss.unwrap_or(1460));
    let segment = mss(0).min(mss(1));
    let rtt: Span = knobs.directions.iter().fold(Span::ZERO, |t, w| t + in_direction(w, segment));
    let (mut rounds, mut pauses) = (0, Span::ZERO);
    for i in 0..2 {
        let p = &knobs.programs[i];
        let buffer = |b: Option<ByteCount>| b.map_or(u64::MAX, ByteCount::get);
        let (own, peer) = (&knobs.ends[i].settings, &knobs.ends[1 - i].settings);
        let windows = p.total / buffer(peer.receive_buffer);
        rounds += p.total / (segment - 52).max(1) + p.total / buffer(own.send_buffer) + windows;
        rounds += p.total / p.turn + 10;
        match knobs.programs[1 - i].read {
            Read::Eager => {}
            Read::Every(every) => pauses += every * (windows * 2 + p.total / p.turn + 10),
            Read::Pause { lasts, .. } => pauses += lasts,
        }
    }
    // A black hole is found by several timeouts in a row, some for each size, and again ten minutes after it
    // ended.
    let holes = knobs.directions.iter().any(|w| w.mtu_stays);
    let holes = if holes { MAX_BACK_OFF * 10 } else { Span::ZERO };
    let n = u64::from(knobs.connections);
    // Karn's rule: retransmitted segments give no sample. So without timestamps a back-off lasts until
    // everything outstanding has arrived, and a queue of two packets may take a timeout for each segment (RFC
    // 6298 §3, §5.5).
    let timestamps = |i: usize| knobs.ends[i].settings.resolve().is_ok_and(|c| c.timestamps);
    let karn = if timestamps(0) && timestamps(1) { Span::ZERO } else { MAX_BACK_OFF };
    // The effect of a policer or an outage on the round-trip estimate has to decay as well.
    let round = rtt * 4 + Span::from_millis(1_700) + karn;
    let start = knobs.every * n + HANDSHAKE;
    Instant::ZERO
        + (knobs.heal.max(start) + MAX_BACK_OFF * 2 + HANDSHAKE + pauses + holes + round * (rounds * n))
}

fn host(world: &World, id: ElementId) -> &TestHost {
    world.element(id).expect("it is one")
}

fn attempts(host: &TestHost, number: u32) -> impl Iterator<Item = &TestConnection> {
    host.connections.range((number, 0)..(number + 1, 0)).map(|(_, entry)| entry)
}

fn both(world: &World, ids: [ElementId; 2], number: u32) -> Vec<&TestConnection> {
    ids.iter().flat_map(|id| attempts(host(world, *id), number)).collect()
}

/// The connection need not do more: an end aborted, as planned, or it never began.
fn excused(entries: &[&TestConnection]) -> bool {
    entries.iter().any(|l| {
        let p = &l.program;
        p.aborted || (p.ended == Some(CloseReason::TimedOut) && !p.connected)
    })
}

fn complete(a: &TestConnection, b: &TestConnection) -> bool {
    let done = |l: &TestConnection, peer: &TestConnection| {
        let p = &l.program;
        p.received == peer.program.does.total && p.written == p.does.total && p.peer_closed && p.has_closed
    };
    done(a, b) && done(b, a)
}

/// All have ended, or wait only for the end of TIME-WAIT.
fn is_done(world: &World, ids: [ElementId; 2], knobs: &Knobs) -> bool {
    (0..knobs.connections).all(|number| {
        let entries = both(world, ids, number);
        let over = |l: &&TestConnection| {
            matches!(l.connection.state(), ConnectionState::Closed | ConnectionState::TimeWait)
                && l.program.wake().is_none()
        };
        entries.len() >= 2 && entries.iter().all(over)
    })
}

/// Safety always, liveness unless there is an excuse.
fn judge(world: &World, ids: [ElementId; 2], knobs: &Knobs) -> Report {
    let mut report = Report::default();
    for number in 0..knobs.connections {
        let entries = both(world, ids, number);
        let Some((client, servers)) = entries.split_first() else {
            panic!("connection {number} never began")
        };
        for server in servers {
            for (to, from) in [(client, server), (server, client)] {
                // An attempt that never reached the peer has no peer.
                let (to, from) = (&to.program, &from.program);
                assert!(to.received == 0 || servers.len() > 1 || to.received <= from.written, "from nowhere");
            }
        }
        let truncated = |to: &TestConnection, from: &TestConnection| {
            let (to, from) = (&to.program, &from.program);
            // Data that waits for a slow reader, and data left at an abort, is not lost.
            let all = to.received == from.written || to.aborted || to.wake().is_some();
            to.peer_closed && !(from.has_closed && all)
        };
        if servers.iter().all(|s| truncated(client, s)) && !servers.is_empty()
            || servers.iter().any(|s| truncated(s, client))
        {
            panic!("the end of a stream before its last byte: {}", describe(world, ids, number));
        }
        report.connections += 1;
        if excused(&entries) {
            report.excused += 1;
        } else {
            let done = servers.iter().any(|s| complete(client, s));
            assert!(
                done,
                "connection {number} is not done at {}: {}",
                world.now(),
                describe(world, ids, number)
            );
            for entry in &entries {
                let ended = entry.program.ended;
                // The last to close may find that the peer is gone already.
                let fine = matches!(ended, None | Some(CloseReason::Finished | CloseReason::Reset));
                assert!(fine || !entry.program.connected, "{ended:?}: {}", describe(world, ids, number));
            }
        }
        for entry in &entries {
            report.ends.extend(entry.program.ended);
            let sent = entry.connection.counters().sent;
            report.causes.extend((Cause::ALL.iter().zip(sent)).filter(|(_, n)| *n > 0).map(|(c, _)| *c));
        }
    }
    report
}

/// A summary of a failure for a person: connection number `first`, and those after it.
fn describe(world: &World, ids: [ElementId; 2], first: u32) -> String {
    let mut text = format!("\n  now {}, {} events", world.now(), world.events_processed());
    for id in ids {
        let m = host(world, id);
        let name = world.name(id);
        text += &format!("\n  {name}: {} segments sent, {} resets to strangers", m.segments, m.strangers);
        for ((number, attempt), entry) in m.connections.range((first, 0)..).take(3) {
            let (p, c) = (&entry.program, &entry.connection);
            text += &format!(
                "\n    {name} {number}.{attempt}: {:?} wrote {}/{} received {} peer closed {} ended {:?} \
                 last progress {} deadline {:?}\n      {:?}",
                c.state(),
                p.written,
                p.does.total,
                p.received,
                p.peer_closed,
                p.ended,
                p.last_progress,
                c.deadline(),
                c.inspect()
            );
        }
    }
    text
}
