//! How a world runs its events.

use super::slot::NOBODY;
use super::{ElementId, Observer, World, WorldError};
use crate::{Cx, Element, Port};
use farpace_units::Instant;
use farpace_wire::Packet;

/// What happens to an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WorldEvent {
    /// It is woken.
    Wake,
    /// It is first on the agenda, for a packet.
    Packet,
    /// A packet arrives without having been stored, and without the agenda.
    AtOnce,
    /// A caller calls it.
    Call,
}

/// The element, the port and the packet that arrives there now.
pub(super) type WorldArrival = (u32, Port, Packet);

impl World {
    /// Takes the changes of callers into account.
    pub(super) fn begin(&mut self) -> Result<(), WorldError> {
        if self.unchecked {
            for slot in &self.slots {
                if let Some(port) = slot.wires.iter().position(|wire| wire.to == NOBODY) {
                    return Err(slot.dangling(Port(port as u16)));
                }
            }
            self.unchecked = false;
        }
        while let Some(id) = self.touched.pop_first() {
            let slot = &mut self.slots[id.index()];
            slot.deadline = slot.element.deadline().unwrap_or(Instant::FAR_FUTURE);
            self.agenda.set(id.0, slot.next_event(self.now));
        }
        Ok(())
    }

    pub(super) fn run(
        &mut self,
        until: Instant,
        max: u64,
        observer: &mut dyn Observer,
    ) -> Result<(), WorldError> {
        self.begin()?;
        let mut at_once: Option<WorldArrival> = None;
        let stop = self.events.saturating_add(max);
        while self.events < stop {
            let (id, packet, event) = match at_once.take() {
                Some((to, port, packet)) => (to, Some((port, packet)), WorldEvent::AtOnce),
                None => {
                    let due = self.agenda.first();
                    if due.at > until || due.at == Instant::FAR_FUTURE {
                        break;
                    }
                    if due.at > self.now {
                        self.advance(due.at);
                    }
                    (due.element, self.slots[due.element as usize].next_packet(self.now), WorldEvent::Packet)
                }
            };
            self.events += 1;
            if self.events > self.max_events {
                self.record_loop(ElementId(id))?;
            }
            at_once = match packet {
                Some((port, packet)) => {
                    self.happen(id, event, observer, |element, cx| element.on_packet(port, packet, cx))
                }
                None => self.happen(id, WorldEvent::Wake, observer, |element, cx| element.on_wake(cx)),
            }?;
        }
        if let Some(arrival) = at_once {
            self.deliver(arrival);
        }
        Ok(())
    }

    pub(super) fn advance(&mut self, to: Instant) {
        self.now = to;
        self.max_events = self.events + Self::MAX_EVENTS_AT_ONCE;
    }

    /// Calls `act` on an element, counts what it did and delivers its packets. If one packet arrives
    /// somewhere before all other events, it is returned instead of stored.
    #[inline]
    pub(super) fn happen(
        &mut self,
        id: u32,
        event: WorldEvent,
        observer: &mut dyn Observer,
        act: impl FnOnce(&mut dyn Element, &mut Cx<'_>),
    ) -> Result<Option<WorldArrival>, WorldError> {
        let now = self.now;
        let effects = &mut self.effects;
        let slot = &mut self.slots[id as usize];
        act(&mut *slot.element, &mut Cx::new(now, effects, &mut slot.rng));

        let ledger = &mut slot.ledger;
        ledger.received += u64::from(matches!(event, WorldEvent::Packet | WorldEvent::AtOnce));
        ledger.emitted += effects.emitted.len() as u64;
        if effects.made | effects.consumed > 0 {
            ledger.made += std::mem::take(&mut effects.made);
            ledger.consumed += std::mem::take(&mut effects.consumed);
        }
        if !effects.dropped.is_empty() {
            ledger.book_drops(&mut effects.dropped, now, ElementId(id), observer);
        }
        // A packet that came without the agenda leaves the entry of a passive element unchanged.
        if !(slot.passive && event == WorldEvent::AtOnce) {
            slot.deadline = slot.element.deadline().unwrap_or(Instant::FAR_FUTURE);
            if event == WorldEvent::Wake && slot.deadline <= now {
                return Err(WorldError::DeadlineLaw {
                    element: slot.name.clone(),
                    at: now,
                    deadline: slot.deadline,
                });
            }
            self.agenda.set(id, slot.next_event(now));
        }
        if cfg!(debug_assertions) {
            slot.check(now)?;
        }
        if effects.emitted.len() > 1 {
            return self.deliver_all(id, observer);
        }
        let Some((port, packet)) = effects.emitted.pop() else { return Ok(None) };
        let wire = slot.leave_by(port, &packet, now, observer);
        if wire.to == NOBODY {
            return Err(slot.dangling(port));
        }
        let next = self.agenda.first();
        if next.at > now || wire.to < next.element {
            return Ok(Some((wire.to, wire.port, packet)));
        }
        self.deliver((wire.to, wire.port, packet));
        Ok(None)
    }

    /// Puts a packet where it arrives now.
    pub(super) fn deliver(&mut self, (to, port, packet): WorldArrival) {
        self.slots[to as usize].inbox.push_back((port, packet));
        self.agenda.set(to, self.now);
    }
    /// The same for all that `id` has just emitted.
    #[inline(never)]
    fn deliver_all(
        &mut self,
        id: u32,
        observer: &mut dyn Observer,
    ) -> Result<Option<WorldArrival>, WorldError> {
        for (port, packet) in self.effects.emitted.drain(..) {
            let slot = &self.slots[id as usize];
            let wire = slot.leave_by(port, &packet, self.now, observer);
            if wire.to == NOBODY {
                return Err(slot.dangling(port));
            }
            self.slots[wire.to as usize].inbox.push_back((wire.port, packet));
            self.agenda.set(wire.to, self.now);
        }
        Ok(None)
    }

    #[cold]
    fn record_loop(&mut self, id: ElementId) -> Result<(), WorldError> {
        self.looping.insert(id);
        if self.events < self.max_events + Self::LOOP_EVENTS {
            return Ok(());
        }
        let names: Vec<_> = self.looping.iter().map(|id| format!("`{}`", self.name(*id))).collect();
        Err(WorldError::Loop { at: self.now, through: names.join(", ") })
    }
}
