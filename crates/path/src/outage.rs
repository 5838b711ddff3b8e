//! Outages: times when every packet is dropped.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::ops::Range;
use thiserror::Error;

/// Outages in each direction.
pub type Outage = Duplex<OutageDirection>;

/// Why an outage is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutageError {
    /// An end at or before its beginning, or a beginning before the end of the previous outage.
    #[error("the outage from {from} to {to} is empty, or begins before the one before it is over")]
    OutOfOrder {
        /// Where it begins.
        from: Instant,
        /// Where it ends.
        to: Instant,
    },
    /// More than [`OutageDirection::MAX`].
    #[error("{0} outages are more than the {max} allowed", max = OutageDirection::MAX)]
    TooMany(usize),
}

/// One direction of an [`Outage`].
#[derive(Clone, Debug)]
pub struct OutageDirection {
    down: Vec<Range<Instant>>,
    /// So many of `down` are over.
    over: usize,
    lost: u64,
}

impl OutageDirection {
    /// Most outages of one direction.
    pub const MAX: usize = 100_000;

    /// Down in each of `down`, from its start up to but not including its end. In order of time.
    ///
    /// # Errors
    /// Ranges that are empty, overlap or are out of order, or too many of them.
    pub fn new(down: Vec<Range<Instant>>) -> Result<Self, OutageError> {
        if down.len() > Self::MAX {
            return Err(OutageError::TooMany(down.len()));
        }
        let mut up = Instant::ZERO;
        for d in &down {
            if d.is_empty() || d.start < up {
                return Err(OutageError::OutOfOrder { from: d.start, to: d.end });
            }
            up = d.end;
        }
        Ok(OutageDirection { down, over: 0, lost: 0 })
    }
    /// Packets dropped so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl ElementDirection for OutageDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        while self.down.get(self.over).is_some_and(|d| d.end <= cx.now()) {
            self.over += 1;
        }
        if self.down.get(self.over).is_some_and(|d| d.contains(&cx.now())) {
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

    const fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    /// Breaks: an outage begins or ends at the wrong nanosecond.
    #[test]
    fn an_outage_has_its_start_and_not_its_end() {
        let direction = OutageDirection::new(vec![at(10)..at(20), at(20)..at(21), at(30)..at(40)]).unwrap();
        let mut harness = Harness::new(Outage::new(direction, OutageDirection::new(vec![]).unwrap()));
        for ns in [9, 10, 19, 20, 21, 29, 30, 40] {
            harness.packet(at(ns), Port(0), packet(ns as u16, 0));
            harness.packet(at(ns), Port(1), packet(ns as u16, 0));
        }
        assert_eq!(harness.idents(Port(1)), [9, 21, 29, 40]);
        assert_eq!(harness.idents(Port(0)).len(), 8);
    }

    /// Breaks: outages out of order are accepted, and some of them never happen.
    #[test]
    fn unordered_outages_are_refused() {
        for down in [vec![at(1)..at(1)], vec![at(5)..at(9), at(8)..at(10)], vec![at(5)..at(9), at(1)..at(2)]]
        {
            assert!(matches!(OutageDirection::new(down), Err(OutageError::OutOfOrder { .. })));
        }
        assert_eq!(
            OutageDirection::new(vec![at(1)..at(2); 100_001]).map(drop),
            Err(OutageError::TooMany(100_001))
        );
    }
}
