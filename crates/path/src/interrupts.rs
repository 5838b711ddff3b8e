//! Receive interrupts of a NIC: one for several frames.

use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;
use std::collections::VecDeque;

/// A segment is compared with so many packets at most, as in Linux (`MAX_GRO_SKBS`).
const MAX_JOINED: usize = 8;

/// Interrupts at both ends of a link.
pub type Interrupts = Duplex<InterruptsDirection>;

/// When a NIC interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterruptsConfig {
    /// So long after the first frame that waits.
    pub delay: Span,
    /// As soon as so many frames wait, even if that is earlier; 0: never for this reason.
    pub frames: u32,
    /// From the interrupt until the host takes the frames: uniform from 0 to this, drawn for each interrupt.
    pub jitter: Span,
    /// Segments of a connection that are taken together and follow each other become one packet
    /// ([`Packet::join_segment`]).
    pub gro: bool,
}

/// One direction of an [`Interrupts`]: frames that have arrived wait until the NIC interrupts its host and
/// the host takes them, all at once and in order. A frame that arrives between the interrupt and its handling
/// goes with the others.
#[derive(Clone, Debug)]
pub struct InterruptsDirection {
    config: InterruptsConfig,
    waiting: VecDeque<Packet>,
    /// From the pending interrupt until it is handled.
    latency: Span,
    /// When the frames are taken.
    due: Option<Instant>,
    interrupts: u64,
    frames: u64,
}

impl InterruptsDirection {
    /// A NIC without frames.
    pub const fn new(config: InterruptsConfig) -> Self {
        let waiting = VecDeque::new();
        InterruptsDirection { config, waiting, latency: Span::ZERO, due: None, interrupts: 0, frames: 0 }
    }
    /// Interrupts handled so far.
    pub const fn interrupts(&self) -> u64 {
        self.interrupts
    }

    fn handle(&mut self, out: Port, cx: &mut Cx<'_>) {
        if self.due.is_some_and(|due| due <= cx.now()) {
            self.due = None;
            self.interrupts += 1;
            self.frames += self.waiting.len() as u64;
            if self.config.gro {
                return self.join(out, cx);
            }
            self.waiting.drain(..).for_each(|packet| cx.emit(out, packet));
        }
    }

    /// Hands over what waits, with segments joined. Each connection keeps its order.
    fn join(&mut self, out: Port, cx: &mut Cx<'_>) {
        let mut joined: Vec<Packet> = Vec::new();
        for packet in self.waiting.drain(..) {
            let last = joined.iter_mut().rev().take(MAX_JOINED).find(|last| last.is_same_flow(&packet));
            if last.is_some_and(|last| last.join_segment(&packet)) {
                cx.consume(packet);
            } else {
                joined.push(packet);
            }
        }
        joined.into_iter().for_each(|packet| cx.emit(out, packet));
    }
}

impl ElementDirection for InterruptsDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        self.waiting.push_back(packet);
        let c = self.config;
        let due = match self.due {
            Some(due) => due,
            None => {
                self.latency = Span::from_nanos(cx.rng().below(c.jitter.as_nanos().saturating_add(1)));
                cx.now() + c.delay + self.latency
            }
        };
        let full = c.frames > 0 && self.waiting.len() as u64 == u64::from(c.frames);
        self.due = Some(if full { due.min(cx.now() + self.latency) } else { due });
        self.handle(out, cx);
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        self.handle(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.due
    }
    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
    fn inspect(&self) -> Inspection {
        vec![("interrupts", self.interrupts.to_string()), ("frames", self.frames.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};

    fn harness(delay: u64, frames: u32, jitter: u64) -> Harness<Interrupts> {
        let (delay, jitter) = (Span::from_micros(delay), Span::from_micros(jitter));
        let direction = InterruptsDirection::new(InterruptsConfig { delay, frames, jitter, gro: false });
        Harness::new(Duplex::new(direction.clone(), direction))
    }
    fn at(micros: u64) -> Instant {
        Instant::ZERO + Span::from_micros(micros)
    }

    /// Breaks: frames are not taken together, are taken at the wrong time, or a full ring waits.
    #[test]
    fn frames_wait_for_the_timer_or_for_enough_others() {
        let mut harness = harness(30, 3, 0);
        for (n, micros) in [0, 10, 40, 45, 50, 50].into_iter().enumerate() {
            harness.packet(at(micros), Port(0), packet(n as u16, 0));
        }
        harness.run();
        let times: Vec<_> = harness.emitted.iter().map(|(at, ..)| at.as_micros()).collect();
        assert_eq!(times, [30, 30, 50, 50, 50, 80]);
        assert_eq!(harness.idents(Port(1)), [0, 1, 2, 3, 4, 5]);
        assert_eq!(harness.element.direction(Port(0)).interrupts(), 3);
    }

    /// Breaks: segments that are taken together reach the host one by one, or others than neighbours are
    /// joined.
    #[test]
    fn neighbours_become_one_packet() {
        let config =
            InterruptsConfig { delay: Span::from_micros(30), frames: 0, jitter: Span::ZERO, gro: true };
        let direction = InterruptsDirection::new(config);
        let mut harness = Harness::new(Duplex::new(direction.clone(), direction));
        // Two runs of three with a segment missing between, and one that comes after the interrupt.
        for (n, micros) in [(0, 0), (1, 5), (2, 10), (4, 12), (5, 14), (6, 16), (7, 40)] {
            harness.packet(at(micros), Port(0), data(n * 1_000));
        }
        harness.run();
        let seen: Vec<_> = harness
            .emitted
            .iter()
            .map(|(at, _, packet)| (at.as_micros(), packet.tcp().unwrap().seq().get(), packet.segments()))
            .collect();
        assert_eq!(seen, [(30, 0, 3), (30, 4_000, 3), (70, 7_000, 1)]);
    }

    /// A full segment with this sequence number.
    fn data(seq: u32) -> Packet {
        use farpace_wire::ip::AddressPair;
        use farpace_wire::tcp::{TcpFlags, TcpHeader};
        use farpace_wire::{Below, MacAddr};
        let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
        let lower = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
        let seq = farpace_units::Seq::new(seq);
        let header =
            TcpHeader { src_port: 40_000, dst_port: 80, seq, flags: TcpFlags::ACK, ..TcpHeader::default() };
        lower.tcp(0, &header, vec![0x5a; 1_000].into())
    }

    /// Breaks: jitter leaves its range, is drawn for each frame, or changes the order.
    #[test]
    fn jitter_delays_all_frames_of_an_interrupt() {
        let mut harness = harness(30, 0, 20);
        for n in 0..200 {
            harness.packet(at(u64::from(n / 2) * 100), Port(0), packet(n, 0));
        }
        harness.run();
        let late: Vec<_> = harness.emitted.iter().map(|(at, ..)| at.as_nanos() % 100_000).collect();
        assert!(late.iter().all(|ns| (30_000..=50_000).contains(ns)));
        assert!(late.chunks(2).all(|pair| pair[0] == pair[1]));
        let (min, max) = (late.iter().min(), late.iter().max());
        assert!(min < Some(&31_000) && max > Some(&49_000), "{min:?} to {max:?}");
        assert_eq!(harness.idents(Port(1)), (0..200).collect::<Vec<_>>());
    }
}
