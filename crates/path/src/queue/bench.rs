//! A bench for one queue discipline: packets arrive and leave at given milliseconds.

use super::{Backlog, QueueDiscipline};
use crate::harness;
use crate::{Cx, DropReason, Effects};
use farpace_units::{Instant, RandomStream, Span};
use farpace_wire::{Ecn, Packet};

/// A discipline, and the fate of its packets.
pub(super) struct Bench<Q> {
    pub queue: Q,
    pub dropped: Vec<(Instant, DropReason)>,
    /// When marked packets left.
    pub marked: Vec<Instant>,
    pub arrived: u64,
    pub left: u64,
    effects: Effects,
    rng: RandomStream,
}

impl<Q: QueueDiscipline> Bench<Q> {
    pub fn new(queue: Q) -> Self {
        let (effects, rng) = (Effects::default(), RandomStream::new(1, "bench"));
        Bench { queue, dropped: vec![], marked: vec![], arrived: 0, left: 0, effects, rng }
    }
    pub fn enqueue(&mut self, ms: u64, packet: Packet) {
        let now = at(ms);
        self.arrived += 1;
        let cx = &mut Cx::new(now, &mut self.effects, &mut self.rng);
        self.queue.enqueue(packet, Backlog::default(), cx);
        self.keep(now);
    }
    pub fn dequeue(&mut self, ms: u64) -> Option<Packet> {
        let now = at(ms);
        let packet = self.queue.dequeue(&mut Cx::new(now, &mut self.effects, &mut self.rng));
        self.left += u64::from(packet.is_some());
        if packet.as_ref().and_then(Packet::ip).is_some_and(|ip| ip.ecn() == Ecn::Ce) {
            self.marked.push(now);
        }
        self.keep(now);
        packet
    }
    /// One packet arrives and one leaves in each of `ms`. Packets begin to leave `wait` ms later, and the
    /// rest stays.
    pub fn load(&mut self, ms: std::ops::Range<u64>, wait: u64, packet: fn(u16) -> Packet) {
        for t in ms.clone() {
            self.enqueue(t, packet(t as u16));
            if t >= ms.start + wait {
                self.dequeue(t);
            }
        }
    }
    pub fn drain(&mut self, ms: u64) {
        while self.dequeue(ms).is_some() {}
    }
    fn keep(&mut self, now: Instant) {
        self.dropped.extend(self.effects.dropped.drain(..).map(|(_, reason)| (now, reason)));
        let gone = self.left + self.dropped.len() as u64;
        assert_eq!(self.arrived, gone + self.queue.backlog().packets, "conservation at {now:?}");
        assert_eq!(self.queue.backlog().packets == 0, self.queue.backlog().bytes.is_zero());
    }
}

pub(super) fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// A frame of 1514 B whose sender does not use ECN.
pub(super) fn packet(ident: u16) -> Packet {
    harness::packet(ident, 1_460)
}

/// One whose sender does.
pub(super) fn ect(ident: u16) -> Packet {
    let mut packet = packet(ident);
    packet.set_ecn(Ecn::Ect0);
    packet
}
