//! One direction of a link that is paced in at least one.

use farpace_link::nic::PacingNic;
use farpace_path::{Cx, Duplex, ElementDirection, Inspection, ManagedLinkDirection, Port};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;

/// A link of which at least one direction is paced.
pub(crate) type PacedLink = Duplex<LinkTransmitter>;

/// A direction of a [`PacedLink`].
pub(crate) enum LinkTransmitter {
    /// Behind a network card that paces.
    Paced(Box<PacingNic>),
    /// As in any other link.
    Other(Box<ManagedLinkDirection>),
}

impl LinkTransmitter {
    /// How long what is here takes to leave.
    pub fn drains_in(&mut self, now: Instant) -> Span {
        match self {
            LinkTransmitter::Paced(nic) => nic.drains_in(now),
            LinkTransmitter::Other(line) => line.drains_in(now),
        }
    }
    /// The card, if it is paced.
    pub fn nic(&self) -> Option<&PacingNic> {
        match self {
            LinkTransmitter::Paced(nic) => Some(nic),
            LinkTransmitter::Other(_) => None,
        }
    }
}

impl ElementDirection for LinkTransmitter {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        match self {
            LinkTransmitter::Paced(nic) => nic.on_packet(packet, out, cx),
            LinkTransmitter::Other(line) => line.on_packet(packet, out, cx),
        }
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        match self {
            LinkTransmitter::Paced(nic) => nic.on_wake(out, cx),
            LinkTransmitter::Other(line) => line.on_wake(out, cx),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            LinkTransmitter::Paced(nic) => nic.deadline(),
            LinkTransmitter::Other(line) => line.deadline(),
        }
    }
    fn held(&self) -> u64 {
        match self {
            LinkTransmitter::Paced(nic) => nic.held(),
            LinkTransmitter::Other(line) => line.held(),
        }
    }
    fn inspect(&self) -> Inspection {
        match self {
            LinkTransmitter::Paced(nic) => nic.inspect(),
            LinkTransmitter::Other(line) => line.inspect(),
        }
    }
}
