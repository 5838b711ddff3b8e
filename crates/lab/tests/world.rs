//! The world's laws.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use bytes::Bytes;
use farpace_lab::checks::Digest;
use farpace_path::world::*;
use farpace_path::{
    Cx, Delay, DelayDirection, DropReason, Element, Framing, Inspection, Jitter, Link, LinkConfig, Loss,
    LossDirection, Port, QueueLimit,
};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{AddressPair, Below, MacAddr, Packet, TcpHeader};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

const P0: Port = Port(0);
const P1: Port = Port(1);

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn packet(ident: u16) -> Packet {
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let lower = Below::new(mac, mac, addresses, 9);
    lower.tcp(ident, &TcpHeader::default(), Bytes::from_static(b"payload"))
}

type Log = Rc<RefCell<Vec<(u64, &'static str, String)>>>;

/// Sends packets at given times, consumes what arrives, and logs its events.
#[derive(Default)]
struct Host {
    name: &'static str,
    log: Log,
    sends: VecDeque<(Instant, Vec<u16>)>,
    answers: bool,
    alarm: Option<Instant>,
}

impl Host {
    fn note(&self, cx: &Cx<'_>, what: String) {
        self.log.borrow_mut().push((cx.now().as_nanos(), self.name, what));
    }
}

impl Element for Host {
    fn on_packet(&mut self, _port: Port, packet: Packet, cx: &mut Cx<'_>) {
        self.note(cx, format!("packet {}", packet.ipv4().unwrap().ident()));
        if self.answers {
            cx.emit(P0, packet);
        } else {
            cx.consume(packet);
        }
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.note(cx, "wake".into());
        if self.alarm.is_some_and(|alarm| alarm <= cx.now()) {
            self.alarm = None;
        }
        while self.sends.front().is_some_and(|(at, _)| *at <= cx.now())
            && let Some((_, idents)) = self.sends.pop_front()
        {
            for ident in idents {
                cx.made();
                cx.emit(P0, packet(ident));
            }
        }
    }
    fn deadline(&self) -> Option<Instant> {
        let send = self.sends.front().map(|(at, _)| *at);
        send.into_iter().chain(self.alarm).min()
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        vec![]
    }
}

/// Forwards packets at once; breaks the contract on request.
#[derive(Default)]
struct Hub {
    ports: u16,
    loses: bool,
    never_sleeps: bool,
}

impl Element for Hub {
    fn ports(&self) -> u16 {
        self.ports
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        if !self.loses {
            cx.emit(Port((port.0 + 1) % self.ports), packet);
        }
    }
    fn on_wake(&mut self, _cx: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        self.never_sleeps.then_some(at(5))
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        vec![]
    }
}

fn host(name: &'static str, log: &Log, sends: &[(u64, &[u16])]) -> Box<Host> {
    let sends = sends.iter().map(|(ns, idents)| (at(*ns), idents.to_vec())).collect();
    Box::new(Host { name, log: Rc::clone(log), sends, ..Host::default() })
}

/// Breaks: the order of simultaneous events, and with it every recorded run. At one instant: lower elements
/// first, a wake before packets, packets in the order sent.
#[test]
fn simultaneous_events_have_one_order() {
    let log = Log::default();
    let mut world = World::new(1);
    // Added in this order, so `late` comes after `early` although it sends first.
    let early = world.add("early", host("early", &log, &[(10, &[1, 2])])).unwrap();
    let late = world.add("late", host("late", &log, &[(10, &[3, 4])])).unwrap();
    let sink = world.add("sink", host("sink", &log, &[(10, &[])])).unwrap();
    let low = world.add("low", host("low", &log, &[])).unwrap();
    world.connect((early, P0), (low, P0)).unwrap();
    world.connect((late, P0), (sink, P0)).unwrap();
    world.run_until(Instant::FAR_FUTURE, &mut ()).unwrap();
    let log: Vec<_> = log.borrow().iter().map(|(at, who, what)| format!("{at} {who} {what}")).collect();
    assert_eq!(
        log,
        [
            "10 early wake",
            "10 late wake",
            "10 sink wake",
            "10 sink packet 3",
            "10 sink packet 4",
            "10 low packet 1",
            "10 low packet 2",
        ]
    );
    assert_eq!(world.events_processed(), 7);
    world.check().unwrap();
}

/// Breaks: an element with a lower number does not precede waiting packets. The answer to the first of two
/// packets goes back before the second arrives.
#[test]
fn a_lower_element_interrupts() {
    let log = Log::default();
    let mut world = World::new(1);
    let asks = world.add("asks", host("asks", &log, &[(1, &[1, 2])])).unwrap();
    let mut answering = host("answers", &log, &[]);
    answering.answers = true;
    let answers = world.add("answers", answering).unwrap();
    world.connect((asks, P0), (answers, P0)).unwrap();
    assert_eq!(world.step(&mut ()).unwrap(), Some(at(1)));
    world.run_until(at(1), &mut ()).unwrap();
    let log: Vec<_> = log.borrow().iter().map(|(_, who, what)| format!("{who} {what}")).collect();
    assert_eq!(log, ["asks wake", "answers packet 1", "asks packet 1", "answers packet 2", "asks packet 2"]);
}

/// Two hosts with a lossy, jittering, slow path between them.
fn lossy(seed: u64, meter: bool) -> World {
    let log = Log::default();
    let mut world = World::new(seed);
    let sends: Vec<u16> = (0..400).collect();
    let a = world.add("a", host("a", &log, &[(0, &sends), (70_000, &sends)])).unwrap();
    let config = LinkConfig {
        rate: Some(Rate::from_mbit(100)),
        delay: Span::from_micros(10),
        queue: QueueLimit::Bytes(ByteCount::new(20_000)),
        framing: Framing::ETHERNET,
    };
    let link = world.add("link", Box::new(Link::symmetric(config).unwrap())).unwrap();
    let loss =
        world.add("loss", Box::new(Loss::new(LossDirection::new(0.1), LossDirection::new(0.1)))).unwrap();
    let jitter = Some(Jitter { max: Span::from_micros(50), reorders: true });
    let delay = Delay::new(DelayDirection::new(Span::ZERO, jitter), DelayDirection::new(Span::ZERO, jitter));
    let delay = world.add("delay", Box::new(delay)).unwrap();
    let mut answering = host("b", &log, &[]);
    answering.answers = true;
    let b = world.add("b", answering).unwrap();
    let mut last = (delay, P1);
    if meter {
        let hub = world.add("another", Box::new(Hub { ports: 2, ..Hub::default() })).unwrap();
        world.connect(last, (hub, P0)).unwrap();
        last = (hub, P1);
    }
    for (x, y) in
        [((a, P0), (link, P0)), ((link, P1), (loss, P0)), ((loss, P1), (delay, P0)), (last, (b, P0))]
    {
        world.connect(x, y).unwrap();
    }
    world.observe((b, P0)).unwrap();
    world.observe((link, P0)).unwrap();
    world
}

/// Breaks: runs cannot be repeated; or another element, or how a run is cut into pieces, changes random
/// numbers.
#[test]
fn a_run_repeats_to_the_bit() {
    let digest = |mut world: World, piece: u64| {
        let mut digest = Digest::default();
        let mut until = Instant::ZERO;
        while world.next_event_time().is_some() {
            if piece == 0 {
                world.step(&mut digest).unwrap();
            } else {
                until += Span::from_nanos(piece);
                world.run_until(until, &mut digest).unwrap();
                assert_eq!(world.now(), until);
            }
        }
        world.check().unwrap();
        let a = world.find("a").unwrap();
        let ledger = world.ledger(a).unwrap();
        assert!(ledger.consumed > 100 && ledger.consumed < 700, "{ledger}");
        (digest.finish(), *ledger)
    };
    let first = digest(lossy(1, false), u64::MAX / 2);
    assert_eq!(first, digest(lossy(1, false), u64::MAX / 2));
    assert_eq!(first, digest(lossy(1, false), 0), "by steps");
    assert_eq!(first, digest(lossy(1, false), 777), "in pieces");
    assert_ne!(first.0, digest(lossy(2, false), 0).0, "another seed");
    assert_eq!(first.1, digest(lossy(1, true), 0).1, "another element");
}

/// Breaks: drops are not observed, or are counted under another element or reason.
#[test]
fn every_drop_reaches_the_observer() {
    #[derive(Default)]
    struct Drops(BTreeMap<(ElementId, DropReason), u64>);
    impl Observer for Drops {
        fn dropped(&mut self, _now: Instant, element: ElementId, _packet: &Packet, reason: DropReason) {
            *self.0.entry((element, reason)).or_default() += 1;
        }
    }
    let (mut world, mut drops) = (lossy(3, false), Drops::default());
    world.run_until(Instant::FAR_FUTURE, &mut drops).unwrap();
    let booked = world.ids().flat_map(|id| {
        let drops: Vec<_> = world.ledger(id).unwrap().drops().collect();
        drops.into_iter().map(move |(reason, n)| ((id, reason), n))
    });
    assert_eq!(drops.0, booked.collect());
    assert_eq!(drops.0.len(), 2, "the queue and the loss");
}

/// Two hosts, and `hub` between them with its two ports.
fn with_hub(hub: Hub) -> Result<World, WorldError> {
    let log = Log::default();
    let mut world = World::new(1);
    let a = world.add("a", host("a", &log, &[(3, &[1])]))?;
    let hub = world.add("hub", Box::new(hub))?;
    let b = world.add("b", host("b", &log, &[]))?;
    world.connect((a, P0), (hub, P0))?;
    world.connect((hub, P1), (b, P0))?;
    Ok(world)
}

/// Breaks: an element that loses packets goes unnoticed.
#[test]
fn a_lost_packet_is_found() {
    let mut world = with_hub(Hub { ports: 2, loses: true, ..Hub::default() }).unwrap();
    let run = world.run_until(Instant::FAR_FUTURE, &mut ());
    // Debug builds find it at the call, others at the check.
    let found = if cfg!(debug_assertions) { run.unwrap_err() } else { world.check().unwrap_err() };
    assert!(matches!(&found, WorldError::NotConserved { element, held: 0, .. } if element == "hub"));
    assert_eq!(world.check(), Err(found));
    assert!(
        world
            .check()
            .unwrap_err()
            .to_string()
            .contains("`hub` at 0.000000 s: received 1 + made 0; emitted 0")
    );
}

/// Breaks: an element that does not sleep hangs the run.
#[test]
fn a_deadline_that_stays_is_an_error() {
    let mut world = with_hub(Hub { ports: 2, never_sleeps: true, ..Hub::default() }).unwrap();
    let error = world.run_until(Instant::FAR_FUTURE, &mut ()).unwrap_err();
    assert_eq!(error, WorldError::DeadlineLaw { element: "hub".into(), at: at(5), deadline: at(5) });
}

/// Breaks: a loop in the topology hangs the run.
#[test]
fn a_loop_without_time_is_named() {
    let mut world = World::new(1);
    let x = world.add("x", Box::new(Hub { ports: 2, ..Hub::default() })).unwrap();
    let y = world.add("y", Box::new(Hub { ports: 2, ..Hub::default() })).unwrap();
    world.connect((x, P0), (y, P1)).unwrap();
    world.connect((x, P1), (y, P0)).unwrap();
    world.run_until(at(4), &mut ()).unwrap();
    world.call(x, &mut (), |_: &mut Hub, cx| (cx.made(), cx.emit(P0, packet(9)))).unwrap();
    let error = world.run_until(Instant::FAR_FUTURE, &mut ()).unwrap_err();
    assert_eq!(error, WorldError::Loop { at: at(4), through: "`x`, `y`".into() });
}

/// Breaks: a timer that keeps moving, as TCP's does at every ACK, costs events; or its expiry is missed.
#[test]
fn a_moving_deadline_costs_nothing() {
    let log = Log::default();
    let mut world = World::new(1);
    let a = world.add("a", host("a", &log, &[])).unwrap();
    let b = world.add("b", host("b", &log, &[])).unwrap();
    world.connect((a, P0), (b, P0)).unwrap();
    for ns in 0..1_000 {
        world.element_mut::<Host>(a).unwrap().alarm = Some(at(ns + 300));
        assert_eq!(world.next_event_time(), Some(at(ns + 300)));
        world.run_until(at(ns), &mut ()).unwrap();
    }
    assert_eq!(world.events_processed(), 0);
    // An earlier deadline counts as well, and one in the past is now.
    world.element_mut::<Host>(a).unwrap().alarm = Some(at(1_001));
    world.run_until(at(1_000), &mut ()).unwrap();
    world.element_mut::<Host>(b).unwrap().alarm = Some(at(5));
    world.run_until(Instant::FAR_FUTURE, &mut ()).unwrap();
    assert_eq!(*log.borrow(), [(1_000, "b", "wake".into()), (1_001, "a", "wake".into())]);
}

/// Breaks: a call from outside the world has no effect on other elements.
#[test]
fn calls_from_outside_are_events() {
    let mut world = with_hub(Hub { ports: 2, ..Hub::default() }).unwrap();
    let (a, hub, b) = (world.find("a").unwrap(), world.find("hub").unwrap(), world.find("b").unwrap());
    world.run_until(at(1), &mut ()).unwrap();
    let now = world.call(a, &mut (), |_: &mut Host, cx| {
        cx.made();
        cx.emit(P0, packet(5));
        cx.now()
    });
    assert_eq!(now, Ok(at(1)));
    world.run_until(at(1), &mut ()).unwrap();
    assert_eq!(world.ledger(b).unwrap().consumed, 1);
    assert!(matches!(world.call(hub, &mut (), |_: &mut Host, _| ()), Err(WorldError::NotA { .. })));
    assert!(world.element::<Host>(hub).is_none() && world.element::<Hub>(hub).is_some());
    world.check().unwrap();
}

/// Breaks: a wrong topology is accepted, and packets vanish or the run stops in the middle.
#[test]
fn wrong_topologies_are_refused() {
    let log = Log::default();
    let mut world = World::new(1);
    let a = world.add("a", host("a", &log, &[])).unwrap();
    let hub = world.add("hub", Box::new(Hub { ports: 2, ..Hub::default() })).unwrap();
    assert_eq!(world.add("a", host("a", &log, &[])), Err(WorldError::DuplicateName("a".into())));
    world.connect((a, P0), (hub, P1)).unwrap();
    let mut larger = World::new(1);
    let names = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
    let elsewhere = names.map(|name| larger.add(name, host("z", &log, &[])).unwrap())[9];
    let message = |result: Result<(), WorldError>| result.unwrap_err().to_string();
    assert_eq!(
        message(world.connect((hub, P0), (a, P0))),
        "port 0 of `a` is already connected to port 1 of `hub`"
    );
    assert_eq!(message(world.connect((hub, P0), (a, P1))), "`a` has no port 1: it has 1");
    assert_eq!(message(world.connect((hub, P0), (hub, P0))), "port 0 of `hub` cannot be connected to itself");
    assert_eq!(message(world.connect((hub, P0), (elsewhere, P0))), "there is no element number 9");
    assert_eq!(message(world.run_until(at(1), &mut ())), "port 0 of `hub` is not connected");
    assert_eq!(world.peer((a, P0)), Some((hub, P1)));
    assert_eq!(world.peer((hub, P0)), None);
    let wire = world.observe((a, P0)).unwrap();
    assert_eq!((world.observe((a, P0)), world.observed(wire)), (Ok(wire), Some((a, P0))));
}
