//! Observers of a running world.

use super::{ElementId, WireId};
use crate::DropReason;
use farpace_units::Instant;
use farpace_wire::Packet;

/// Sees the packets on the wires that are observed, and every drop. `()` sees nothing.
///
/// Calls come in the order of events. An observer cannot change what happens.
pub trait Observer {
    /// `packet` enters `wire`, and arrives at its other end at the same instant.
    fn packet(&mut self, _now: Instant, _wire: WireId, _packet: &Packet) {}
    /// `packet` ends in `element`.
    fn dropped(&mut self, _now: Instant, _element: ElementId, _packet: &Packet, _reason: DropReason) {}
}

impl Observer for () {}

/// Two observers that see the same.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        self.0.packet(now, wire, packet);
        self.1.packet(now, wire, packet);
    }
    fn dropped(&mut self, now: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        self.0.dropped(now, element, packet, reason);
        self.1.dropped(now, element, packet, reason);
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn packet(&mut self, now: Instant, wire: WireId, packet: &Packet) {
        (**self).packet(now, wire, packet);
    }
    fn dropped(&mut self, now: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        (**self).dropped(now, element, packet, reason);
    }
}
