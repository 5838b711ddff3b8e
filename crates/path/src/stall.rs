//! Stalls: times when a machine does nothing, and packets wait.

use crate::periods::Periods;
use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::collections::VecDeque;

/// Stalls in each direction.
pub type MachineStall = Duplex<MachineStallDirection>;

/// One direction of a [`MachineStall`]: packets that arrive in a stall wait for its end, and go on together
/// then, in their order.
#[derive(Clone, Debug)]
pub struct MachineStallDirection {
    stalls: Periods,
    waiting: VecDeque<Packet>,
    /// When those that wait go on.
    due: Option<Instant>,
    held_back: u64,
}

impl MachineStallDirection {
    /// Still in each of these periods.
    pub const fn new(stalls: Periods) -> Self {
        MachineStallDirection { stalls, waiting: VecDeque::new(), due: None, held_back: 0 }
    }
    /// Packets that had to wait, so far.
    pub const fn held_back(&self) -> u64 {
        self.held_back
    }

    fn release(&mut self, out: Port, cx: &mut Cx<'_>) {
        if self.due.is_some_and(|due| due <= cx.now()) {
            // The next stall may begin where this one ends.
            self.due = self.stalls.end_at(cx.now());
            if self.due.is_none() {
                self.waiting.drain(..).for_each(|packet| cx.emit(out, packet));
            }
        }
    }
}

impl ElementDirection for MachineStallDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        self.release(out, cx);
        self.due = self.due.or_else(|| self.stalls.end_at(cx.now()));
        match self.due {
            Some(_) => {
                self.held_back += 1;
                self.waiting.push_back(packet);
            }
            None => cx.emit(out, packet),
        }
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        self.release(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.due
    }
    fn held(&self) -> u64 {
        self.waiting.len() as u64
    }
    fn inspect(&self) -> Inspection {
        vec![("stalls", self.stalls.len().to_string()), ("held back", self.held_back.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};

    /// Breaks: a packet passes in a stall, waits longer than it lasts, overtakes those that wait, or waits in
    /// the other direction.
    #[test]
    fn packets_wait_for_the_end_of_a_stall() {
        let at = Instant::from_nanos;
        let stalls = Periods::new(vec![at(10)..at(20), at(20)..at(25), at(30)..at(40)]).unwrap();
        let mut harness = Harness::new(MachineStall::new(
            MachineStallDirection::new(stalls),
            MachineStallDirection::new(Periods::default()),
        ));
        for ns in [9, 10, 19, 20, 25, 29, 35, 40] {
            harness.packet(at(ns), Port(0), packet(ns as u16, 0));
            harness.packet(at(ns), Port(1), packet(ns as u16, 0));
        }
        harness.run();
        let left = |port| {
            let by_port = harness.emitted.iter().filter(move |(_, out, _)| *out == Port(port));
            by_port.map(|(at, ..)| at.as_nanos()).collect::<Vec<_>>()
        };
        assert_eq!(left(1), [9, 25, 25, 25, 25, 29, 40, 40]);
        assert_eq!(harness.idents(Port(1)), [9, 10, 19, 20, 25, 29, 35, 40]);
        assert_eq!(left(0), [9, 10, 19, 20, 25, 29, 35, 40]);
        assert_eq!(harness.element.direction(Port(0)).held_back(), 4);
    }
}
