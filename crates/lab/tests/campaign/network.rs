//! From knobs to a world: two hosts and the impairments between them.

use super::host::TestHost;
use super::knobs::{DirectionKnobs, Knobs};
use super::middlebox::{Mark, Split};
use super::paced::LinkTransmitter;
use super::program::streams;
use farpace_lab::{ElementId, World};
use farpace_path as path;
use farpace_path::{Cx, Duplex, Element, Inspection, Port};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;
use std::cell::RefCell;

/// An impairment that ends: later packets pass it unchanged; packets that it holds still leave.
struct Until {
    end: Instant,
    inner: Box<dyn Element>,
}

impl Element for Until {
    fn ports(&self) -> u16 {
        2
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        match cx.now() < self.end {
            true => self.inner.on_packet(port, packet, cx),
            false => cx.emit(Port(1 - port.0), packet),
        }
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.inner.on_wake(cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
    fn held(&self) -> u64 {
        self.inner.held()
    }
    fn inspect(&self) -> Inspection {
        self.inner.inspect()
    }
}

/// The world of a trial, its hosts, and its link.
pub fn build(knobs: &Knobs) -> (World, [ElementId; 2], ElementId) {
    thread_local!(static STREAMS: RefCell<[farpace_lab::Payload; 2]> = RefCell::new(streams()));
    let streams = STREAMS.with_borrow(Clone::clone);
    let mut world = World::new(knobs.seed);
    let host = |side: usize| {
        let end = &knobs.ends[side];
        let config = end.settings.resolve().expect("what was drawn was tried");
        let paced = &knobs.directions[side].paced;
        let says = paced.as_ref().is_some_and(|paced| paced.config.follows_connections());
        TestHost::new(side, config, end.budget, knobs.programs, streams.clone()).say_rates(says)
    };
    let client = host(0).open(knobs.connections, knobs.every);
    let client = world.add("client", Box::new(client)).expect("a free name");
    let server = world.add("server", Box::new(host(1))).expect("a free name");

    let end = Instant::ZERO + knobs.heal;
    let mut chain: Vec<(String, Box<dyn Element>)> = Vec::new();
    let clock = |jumps: &[path::Jump]| path::ClockJump::of_port_0(jumps.to_vec());
    if !knobs.ends[0].jumps.is_empty() {
        chain.push(("client.clock".into(), Box::new(clock(&knobs.ends[0].jumps))));
    }
    let until = |name: &str, direction: &DirectionKnobs, inner: Box<dyn Element>| -> Box<dyn Element> {
        let stays = match name {
            "mtu" => direction.mtu_stays,
            "middlebox" | "thinning" => direction.middleboxes_stay,
            _ => false,
        };
        if stays { inner } else { Box::new(Until { end, inner }) }
    };
    for (name, inner) in impairments(&knobs.directions[0], 0) {
        chain.push((format!("forward.{name}"), until(name, &knobs.directions[0], inner)));
    }
    let far_end = |i: usize| knobs.directions[i].paced.as_ref().and_then(|paced| paced.element());
    chain.extend(far_end(1).map(|element| ("backward.far-end".into(), element)));
    let [forward, backward] = [0, 1].map(|i| LinkTransmitter::new(&knobs.directions[i]));
    let place = chain.len();
    chain.push(("line".into(), Box::new(Duplex::new(forward, backward))));
    chain.extend(far_end(0).map(|element| ("forward.far-end".into(), element)));
    let mut back = impairments(&knobs.directions[1], 1);
    back.reverse();
    for (name, inner) in back {
        chain.push((format!("backward.{name}"), until(name, &knobs.directions[1], inner)));
    }
    if !knobs.ends[1].jumps.is_empty() {
        let jumps = knobs.ends[1].jumps.clone();
        let value = path::ClockJumpDirection::new(path::ClockField::Value, jumps.clone());
        let echo = path::ClockJumpDirection::new(path::ClockField::Echo, jumps);
        chain.push(("server.clock".into(), Box::new(Duplex::new(echo, value))));
    }
    let (mut last, mut link) = ((client, Port(0)), client);
    for (number, (name, element)) in chain.into_iter().enumerate() {
        let id = world.add(&name, element).expect("a free name");
        if number == place {
            link = id;
        }
        world.connect(last, (id, Port(0))).expect("free ports");
        last = (id, Port(1));
    }
    world.connect(last, (server, Port(0))).expect("free ports");
    (world, [client, server], link)
}

/// In the order in which packets meet them.
fn impairments(direction: &DirectionKnobs, entry: usize) -> Vec<(&'static str, Box<dyn Element>)> {
    fn in_direction<W: path::ElementDirection>(what: W, entry: usize) -> Box<dyn Element> {
        Box::new(if entry == 0 { Duplex::new(Some(what), None) } else { Duplex::new(None, Some(what)) })
    }
    // Every field is named, so that a new one cannot be forgotten.
    let DirectionKnobs {
        rate: _,
        delay: _,
        queue: _,
        paced: _,
        policer,
        loss,
        burst,
        corrupt,
        duplicate,
        reorder,
        jitter,
        outages,
        mtu,
        mtu_silent,
        mtu_stays: _,
        split,
        marks,
        middlebox,
        thinning,
        middleboxes_stay: _,
    } = direction;
    let mut list = Vec::new();
    if *split > 0.0 {
        list.push(("split", in_direction(Split(*split), entry)));
    }
    if let Some((congested, bleached)) = *marks {
        list.push(("mark", in_direction(Mark { congested, bleached }, entry)));
    }
    if let Some(config) = middlebox {
        list.push(("middlebox", in_direction(path::MiddleboxDirection::new(config.clone()), entry)));
    }
    if let Some((every, hold)) = *thinning {
        list.push(("thinning", in_direction(path::AckThinningDirection::new(every, hold), entry)));
    }
    if let Some(p) = policer {
        list.push((
            "policer",
            in_direction(path::PolicerDirection::new(p.config()).expect("as drawn"), entry),
        ));
    }
    if !mtu.is_empty() {
        let direction = path::MtuDirection::new(ByteCount::new(65_535), mtu.clone()).expect("in order");
        list.push(("mtu", in_direction(if *mtu_silent { direction.silent() } else { direction }, entry)));
    }
    if !outages.is_empty() {
        let down = outages.iter().map(|o| Instant::ZERO + o.at..Instant::ZERO + o.at + o.lasts);
        list.push((
            "outage",
            in_direction(
                path::OutageDirection::new(path::Periods::new(down.collect()).expect("in order")),
                entry,
            ),
        ));
    }
    if *loss > 0.0 {
        list.push(("loss", in_direction(path::LossDirection::new(*loss), entry)));
    }
    if let Some(config) = burst {
        list.push(("burst", in_direction(path::BurstLossDirection::new(*config), entry)));
    }
    if *corrupt > 0.0 {
        list.push(("corrupt", in_direction(path::CorruptDirection::new(*corrupt), entry)));
    }
    if *duplicate > 0.0 {
        list.push(("duplicate", in_direction(path::DuplicateDirection::new(*duplicate), entry)));
    }
    if !jitter.is_zero() {
        let jitter = Some(path::Jitter { max: *jitter, reorders: true });
        list.push(("jitter", in_direction(path::DelayDirection::new(Span::ZERO, jitter), entry)));
    }
    if let Some((chance, extra)) = reorder {
        list.push(("reorder", in_direction(path::ReorderDirection::new(*chance, *extra), entry)));
    }
    list
}
