//! One direction of a link that is paced in at least one.

use farpace_link::nic::NicWay;
use farpace_path::{Cx, Inspection, ManagedLinkWay, Port, TwoWay, Way};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;

/// A link of which at least one direction is paced.
pub(crate) type PacedLink = TwoWay<LineWay>;

/// A direction of a [`PacedLink`].
pub(crate) enum LineWay {
    /// Behind a network card that paces.
    Paced(Box<NicWay>),
    /// As in any other link.
    Other(Box<ManagedLinkWay>),
}

impl LineWay {
    /// How long what is here takes to leave.
    pub fn drains_in(&mut self, now: Instant) -> Span {
        match self {
            LineWay::Paced(nic) => nic.drains_in(now),
            LineWay::Other(line) => line.drains_in(now),
        }
    }
    /// The card, if it is paced.
    pub fn nic(&self) -> Option<&NicWay> {
        match self {
            LineWay::Paced(nic) => Some(nic),
            LineWay::Other(_) => None,
        }
    }
}

impl Way for LineWay {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        match self {
            LineWay::Paced(nic) => nic.on_packet(packet, out, cx),
            LineWay::Other(line) => line.on_packet(packet, out, cx),
        }
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        match self {
            LineWay::Paced(nic) => nic.on_wake(out, cx),
            LineWay::Other(line) => line.on_wake(out, cx),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            LineWay::Paced(nic) => nic.deadline(),
            LineWay::Other(line) => line.deadline(),
        }
    }
    fn held(&self) -> u64 {
        match self {
            LineWay::Paced(nic) => nic.held(),
            LineWay::Other(line) => line.held(),
        }
    }
    fn inspect(&self) -> Inspection {
        match self {
            LineWay::Paced(nic) => nic.inspect(),
            LineWay::Other(line) => line.inspect(),
        }
    }
}
