//! A harness for tests of one element: it runs the element alone, with packets at given times, and checks the
//! laws.

use crate::{Cx, DropReason, Effects, Element, Port};
use bytes::Bytes;
use farpace_units::{Instant, RandomStream};
use farpace_wire::{AddressPair, Below, MacAddr, Packet, TcpFlags, TcpHeader};

/// The output of an element.
pub(crate) struct Harness<E> {
    pub element: E,
    pub emitted: Vec<(Instant, Port, Packet)>,
    pub dropped: Vec<(Instant, DropReason)>,
    received: u64,
    made: u64,
    consumed: u64,
    effects: Effects,
    rng: RandomStream,
}

impl<E: Element> Harness<E> {
    pub fn new(element: E) -> Self {
        let (effects, rng) = (Effects::default(), RandomStream::new(1, "bed"));
        Harness { element, emitted: vec![], dropped: vec![], received: 0, made: 0, consumed: 0, effects, rng }
    }
    /// Runs up to and including `now`, then gives the element a packet.
    pub fn packet(&mut self, now: Instant, port: Port, packet: Packet) {
        self.run_until(now);
        self.received += 1;
        self.element.on_packet(port, packet, &mut Cx::new(now, &mut self.effects, &mut self.rng));
        self.keep(now);
    }
    /// Wakes the element as often as it wants up to and including `end`.
    pub fn run_until(&mut self, end: Instant) {
        while let Some(now) = self.element.deadline().filter(|at| *at <= end) {
            self.element.on_wake(&mut Cx::new(now, &mut self.effects, &mut self.rng));
            self.keep(now);
            let next = self.element.deadline();
            assert!(next.is_none_or(|next| next > now), "woken at {now:?}, wants {next:?}");
        }
    }
    pub fn run(&mut self) {
        self.run_until(Instant::FAR_FUTURE);
    }
    fn keep(&mut self, now: Instant) {
        self.emitted.extend(self.effects.emitted.drain(..).map(|(port, packet)| (now, port, packet)));
        self.dropped.extend(self.effects.dropped.drain(..).map(|(_, reason)| (now, reason)));
        self.made += std::mem::take(&mut self.effects.made);
        self.consumed += std::mem::take(&mut self.effects.consumed);
        let out = (self.emitted.len() + self.dropped.len()) as u64 + self.consumed;
        assert_eq!(self.received + self.made, out + self.element.held(), "conservation at {now:?}");
    }
    /// The identification numbers of the packets that left by `port`, in order.
    pub fn idents(&self, port: Port) -> Vec<u16> {
        self.emitted.iter().filter(|(_, at, _)| *at == port).map(|(_, _, packet)| ident(packet)).collect()
    }
}

/// A TCP packet of 54 B and `payload`, with `ident` as its identification number.
pub(crate) fn packet(ident: u16, payload: usize) -> Packet {
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
    let lower = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
    let header = TcpHeader { src_port: 40_000, dst_port: 80, flags: TcpFlags::ACK, ..TcpHeader::default() };
    lower.tcp(ident, &header, Bytes::from(vec![0x5a; payload]))
}

pub(crate) fn ident(packet: &Packet) -> u16 {
    packet.ipv4().map_or(0, |ip| ip.ident())
}
