//! Outages: times when every packet is dropped.

use crate::periods::Periods;
use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_wire::Packet;

/// Outages in each direction.
pub type Outage = Duplex<OutageDirection>;

/// One direction of an [`Outage`].
#[derive(Clone, Debug)]
pub struct OutageDirection {
    down: Periods,
    lost: u64,
}

impl OutageDirection {
    /// Down in each of these periods.
    pub const fn new(down: Periods) -> Self {
        OutageDirection { down, lost: 0 }
    }
    /// Packets dropped so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl ElementDirection for OutageDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if self.down.end_at(cx.now()).is_some() {
            self.lost += 1;
            cx.drop(packet, DropReason::Outage);
        } else {
            cx.emit(out, packet);
        }
    }
    fn inspect(&self) -> Inspection {
        vec![("outages", self.down.len().to_string()), ("lost", self.lost.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};
    use farpace_units::Instant;

    const fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Breaks: a packet passes in an outage, is lost outside of one, or is lost in the other direction.
    #[test]
    fn packets_are_lost_while_it_lasts() {
        let down = Periods::new(vec![at(10)..at(20), at(20)..at(21), at(30)..at(40)]).unwrap();
        let mut harness =
            Harness::new(Outage::new(OutageDirection::new(down), OutageDirection::new(Periods::default())));
        for ns in [9, 10, 19, 20, 21, 29, 30, 40] {
            harness.packet(at(ns), Port(0), packet(ns as u16, 0));
            harness.packet(at(ns), Port(1), packet(ns as u16, 0));
        }
        assert_eq!(harness.idents(Port(1)), [9, 21, 29, 40]);
        assert_eq!(harness.idents(Port(0)).len(), 8);
    }
}
