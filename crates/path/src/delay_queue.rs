//! A store of packets, each with the instant at which it leaves.

use crate::{Cx, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Packets that leave at their own times; those of one instant in the order of their arrival. In-order
/// packets, nearly all, take a plain queue, the others a heap.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayQueue {
    in_order: VecDeque<DelayedPacket>,
    out_of_order: BinaryHeap<DelayedPacket>,
    arrived: u64,
}

#[derive(Clone, Debug)]
struct DelayedPacket {
    due: Instant,
    arrived: u64,
    packet: Packet,
}

impl DelayQueue {
    /// Keeps `packet` until `due`.
    pub fn push(&mut self, due: Instant, packet: Packet) {
        let held = DelayedPacket { due, arrived: self.arrived, packet };
        self.arrived += 1;
        match self.in_order.back() {
            Some(last) if last.due > due => self.out_of_order.push(held),
            _ => self.in_order.push_back(held),
        }
    }
    /// Emits by `out` all packets that are due at `cx.now()`.
    pub fn release(&mut self, out: Port, cx: &mut Cx<'_>) {
        while self.due().is_some_and(|due| due <= cx.now()) {
            let next = match (self.in_order.front(), self.out_of_order.peek()) {
                // The greater of two is the one that is due first: see `Ord`.
                (Some(a), Some(b)) if b > a => self.out_of_order.pop(),
                (None, _) => self.out_of_order.pop(),
                _ => self.in_order.pop_front(),
            };
            if let Some(held) = next {
                cx.emit(out, held.packet);
            }
        }
    }
    /// When the next packet leaves.
    pub fn due(&self) -> Option<Instant> {
        match (self.in_order.front(), self.out_of_order.peek()) {
            (Some(a), Some(b)) => Some(a.due.min(b.due)),
            (a, b) => a.or(b).map(|held| held.due),
        }
    }
    /// Packets inside.
    pub fn len(&self) -> u64 {
        (self.in_order.len() + self.out_of_order.len()) as u64
    }
}

impl Ord for DelayedPacket {
    /// Reversed, because the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.due, other.arrived).cmp(&(self.due, self.arrived))
    }
}
impl PartialOrd for DelayedPacket {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for DelayedPacket {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for DelayedPacket {}

#[cfg(test)]
mod tests {
    use super::DelayQueue;
    use crate::harness::{ident, packet};
    use crate::{Cx, Effects, Port};
    use farpace_units::{Instant, RandomStream};
    use proptest::prelude::*;

    proptest! {
        /// Breaks: delayed packets leave in the wrong order, too early, or too late.
        #[test]
        fn packets_leave_by_time_then_by_arrival(dues in prop::collection::vec(0u64..20, 1..60)) {
            let mut hold = DelayQueue::default();
            for (n, due) in dues.iter().enumerate() {
                hold.push(Instant::from_nanos(*due), packet(n as u16, 0));
            }
            let mut expected: Vec<_> = dues.iter().enumerate().map(|(n, due)| (*due, n as u16)).collect();
            expected.sort_unstable();
            let (mut effects, mut rng) = (Effects::default(), RandomStream::new(1, "hold"));
            let mut left = vec![];
            while let Some(due) = hold.due() {
                hold.release(Port(0), &mut Cx::new(due, &mut effects, &mut rng));
                left.extend(effects.emitted.drain(..).map(|(_, p)| (due.as_nanos(), ident(&p))));
            }
            prop_assert_eq!(left, expected);
            prop_assert_eq!(hold.len(), 0);
        }
    }
}
