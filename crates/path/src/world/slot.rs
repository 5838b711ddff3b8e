//! An element in its world, and the wires at its ports.

use super::{Ledger, Observer, WireId, WorldError};
use crate::{Element, Port};
use farpace_units::{Instant, RandomStream};
use farpace_wire::Packet;
use std::collections::VecDeque;

/// An element of a world, with its packets, its wires and its account.
pub(super) struct ElementSlot {
    pub element: Box<dyn Element>,
    /// The deadline when the element was last asked, or [`Instant::FAR_FUTURE`].
    pub deadline: Instant,
    pub passive: bool,
    /// Packets that arrive now.
    pub inbox: VecDeque<(Port, Packet)>,
    pub wires: Vec<Wire>,
    pub rng: RandomStream,
    pub ledger: Ledger,
    pub name: String,
}

/// What a port leads to.
#[derive(Clone, Copy)]
pub(super) struct Wire {
    pub to: u32,
    pub port: Port,
    pub observed: u32,
}

/// No element, no observer.
pub(super) const NOBODY: u32 = u32::MAX;
pub(super) const NOWHERE: Wire = Wire { to: NOBODY, port: Port(0), observed: NOBODY };

impl ElementSlot {
    /// When this element has its next event; a deadline in the past is now.
    pub fn next_event(&self, now: Instant) -> Instant {
        if self.inbox.is_empty() { self.deadline.max(now) } else { now }
    }
    /// The same, if a caller may have changed the element.
    pub fn next_event_after_changes(&self, now: Instant) -> Instant {
        let deadline = self.element.deadline().unwrap_or(Instant::FAR_FUTURE);
        if self.inbox.is_empty() { deadline.max(now) } else { now }
    }
    /// The packet of this event; none if it is a wake, which comes before packets.
    pub fn next_packet(&mut self, now: Instant) -> Option<(Port, Packet)> {
        if self.deadline <= now { None } else { self.inbox.pop_front() }
    }
    /// Where `packet` goes from `port`. Shows it to the observer.
    #[inline]
    pub fn leave_by(&self, port: Port, packet: &Packet, now: Instant, observer: &mut dyn Observer) -> Wire {
        let wire = self.wires.get(usize::from(port.0)).copied().unwrap_or(NOWHERE);
        if wire.observed != NOBODY {
            observer.packet(now, WireId(wire.observed), packet);
        }
        wire
    }
    #[cold]
    pub fn dangling(&self, port: Port) -> WorldError {
        WorldError::Dangling { element: self.name.clone(), port: port.0 }
    }
    pub fn check(&self, at: Instant) -> Result<(), WorldError> {
        let held = self.element.held();
        if self.ledger.balances(held) {
            return Ok(());
        }
        Err(WorldError::NotConserved { element: self.name.clone(), at, ledger: Box::new(self.ledger), held })
    }
}
