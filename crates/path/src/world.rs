//! Elements and the wires between them. Time comes from outside: virtual in the lab, real on devices.

mod agenda;
mod error;
mod events;
mod ledger;
mod observer;
mod slot;

pub use error::WorldError;
pub use ledger::Ledger;
pub use observer::Observer;

use crate::{Cx, Effects, Element, Port};
use agenda::Agenda;
use events::WorldEvent;
use farpace_units::{Instant, RandomStream};
use slot::{ElementSlot, NOBODY, NOWHERE, Wire};
use std::any::{Any, type_name};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An element of a world, by the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(u32);

impl ElementId {
    /// The number, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One end of a wire.
pub type End = (ElementId, Port);

/// One direction of an observed wire, in the order of the calls of [`World::observe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireId(u32);

impl WireId {
    /// The number, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A network that is driven by a time from outside.
///
/// Elements are added with names and connected port to port. A packet that leaves a port arrives at the other
/// end at the same instant: a wire takes no time, a link does. Events are ordered by time, then by element,
/// then by sequence: at one instant the element that was added first has all its events first, its wake
/// before its packets, its packets in the order in which they were sent.
///
/// So only wakes are in the future, one for each element, and only they are sorted: see `Agenda`. A packet
/// whose arrival is the next event goes from element to element without being stored.
///
/// Contract: the elements keep that of [`Element`]. The world checks it: conservation after every call in
/// debug builds and by [`check`](World::check), the deadline law and loops without time always.
pub struct World {
    seed: u64,
    now: Instant,
    slots: Vec<ElementSlot>,
    names: BTreeMap<String, ElementId>,
    agenda: Agenda,
    /// The near ends of the observed directions.
    observed: Vec<End>,
    /// Elements that a caller may have changed since they were last asked for their deadline.
    touched: BTreeSet<ElementId>,
    /// Something was added since all ports were last found connected.
    unchecked: bool,
    effects: Effects,
    events: u64,
    /// More events than this are too many for the present instant.
    max_events: u64,
    /// The elements that had events after the limit of one instant.
    looping: BTreeSet<ElementId>,
}

impl World {
    /// Most elements of a world.
    pub const MAX_ELEMENTS: usize = 1 << 20;
    /// Most events at one instant: with more, packets must be in a loop.
    pub const MAX_EVENTS_AT_ONCE: u64 = 10_000_000;
    /// So many more events show the elements of the loop.
    const LOOP_EVENTS: u64 = 1_000;

    /// An empty world at the start of time. `seed` and the names of the elements determine all random
    /// numbers.
    pub fn new(seed: u64) -> Self {
        World {
            seed,
            now: Instant::ZERO,
            slots: Vec::new(),
            names: BTreeMap::new(),
            agenda: Agenda::new(),
            observed: Vec::new(),
            touched: BTreeSet::new(),
            unchecked: false,
            effects: Effects::default(),
            events: 0,
            max_events: Self::MAX_EVENTS_AT_ONCE,
            looping: BTreeSet::new(),
        }
    }

    /// Adds an element.
    ///
    /// # Errors
    /// A name that is taken, or too many elements.
    pub fn add(&mut self, name: &str, element: Box<dyn Element>) -> Result<ElementId, WorldError> {
        if self.names.contains_key(name) {
            return Err(WorldError::DuplicateName(name.to_owned()));
        }
        if self.slots.len() >= Self::MAX_ELEMENTS {
            return Err(WorldError::TooManyElements);
        }
        let id = ElementId(self.slots.len() as u32);
        self.slots.push(ElementSlot {
            deadline: Instant::FAR_FUTURE,
            inbox: VecDeque::new(),
            wires: vec![NOWHERE; usize::from(element.ports())],
            rng: RandomStream::new(self.seed, name),
            ledger: Ledger::default(),
            passive: element.is_passive(),
            name: name.to_owned(),
            element,
        });
        self.names.insert(name.to_owned(), id);
        self.agenda.grow(self.slots.len());
        self.touched.insert(id);
        self.unchecked = true;
        Ok(id)
    }

    /// Connects two ports, in both directions.
    ///
    /// # Errors
    /// An element or port that does not exist, a port that has a wire, or twice the same port.
    pub fn connect(&mut self, a: End, b: End) -> Result<(), WorldError> {
        for (element, port) in [a, b] {
            let wire = *self.wire(element, port)?;
            if wire.to != NOBODY {
                let peer = self.name(ElementId(wire.to)).to_owned();
                let element = self.name(element).to_owned();
                return Err(WorldError::PortTaken { element, port: port.0, peer, peer_port: wire.port.0 });
            }
        }
        if a == b {
            return Err(WorldError::SelfConnected { element: self.name(a.0).to_owned(), port: a.1.0 });
        }
        for (near, far) in [(a, b), (b, a)] {
            let wire = self.wire(near.0, near.1)?;
            (wire.to, wire.port) = (far.0.0, far.1);
        }
        Ok(())
    }

    /// From now on the observer sees the packets that leave by `end`. A second call returns the same number.
    /// To see the packets that arrive at a port, observe its [`peer`](World::peer).
    ///
    /// # Errors
    /// An element or port that does not exist.
    pub fn observe(&mut self, end: End) -> Result<WireId, WorldError> {
        let next = self.observed.len() as u32;
        let wire = self.wire(end.0, end.1)?;
        if wire.observed == NOBODY {
            wire.observed = next;
            self.observed.push(end);
            return Ok(WireId(next));
        }
        Ok(WireId(wire.observed))
    }
    /// The end at which the packets of `wire` leave.
    pub fn observed(&self, wire: WireId) -> Option<End> {
        self.observed.get(wire.index()).copied()
    }
    /// The other end of the wire at `end`.
    pub fn peer(&self, end: End) -> Option<End> {
        let wire = self.slots.get(end.0.index())?.wires.get(usize::from(end.1.0))?;
        (wire.to != NOBODY).then_some((ElementId(wire.to), wire.port))
    }

    /// Runs all events up to and including `until`, which is the present afterwards; with
    /// [`Instant::FAR_FUTURE`] until there are no more events.
    ///
    /// # Errors
    /// A port without a wire, an element that breaks its contract, or a loop without time. The world stays
    /// where it stopped and can be inspected.
    pub fn run_until(&mut self, until: Instant, observer: &mut dyn Observer) -> Result<(), WorldError> {
        self.run(until, u64::MAX, observer)?;
        if until != Instant::FAR_FUTURE && until > self.now {
            self.advance(until);
        }
        Ok(())
    }
    /// Sets the present to `now` without running the events before it. They run late, with the next call, as
    /// on a busy machine.
    pub fn oversleep(&mut self, now: Instant) {
        if now > self.now {
            self.advance(now);
        }
    }
    /// Runs one event and returns its time; `None` if there is none.
    ///
    /// # Errors
    /// As [`run_until`](World::run_until).
    pub fn step(&mut self, observer: &mut dyn Observer) -> Result<Option<Instant>, WorldError> {
        let events = self.events;
        self.run(Instant::FAR_FUTURE, 1, observer)?;
        Ok((self.events > events).then_some(self.now))
    }
    /// Calls `act` on an element now, as an event of its own: the packets that it emits are delivered.
    ///
    /// # Errors
    /// An element that does not exist or is not a `T`; otherwise as [`run_until`](World::run_until).
    pub fn call<T: Element, R>(
        &mut self,
        id: ElementId,
        observer: &mut dyn Observer,
        act: impl FnOnce(&mut T, &mut Cx<'_>) -> R,
    ) -> Result<R, WorldError> {
        self.begin()?;
        let slot = self.slots.get(id.index()).ok_or(WorldError::NoSuchElement(id.0))?;
        let element: &dyn Any = &*slot.element;
        let not_a = WorldError::NotA { element: slot.name.clone(), expected: type_name::<T>() };
        if !element.is::<T>() {
            return Err(not_a);
        }
        let mut result = None;
        let at_once = self.happen(id.0, WorldEvent::Call, observer, |element, cx| {
            let element: &mut dyn Any = element;
            result = element.downcast_mut::<T>().map(|element| act(element, cx));
        })?;
        if let Some(arrival) = at_once {
            self.deliver(arrival);
        }
        result.ok_or(not_a)
    }

    /// The present.
    pub const fn now(&self) -> Instant {
        self.now
    }
    /// When the next event is; `None` if there is none.
    pub fn next_event_time(&self) -> Option<Instant> {
        let next = match self.touched.is_empty() {
            true => self.agenda.first().at,
            // The agenda does not know the changes of callers yet.
            false => self.slots.iter().map(|slot| slot.next_event_after_changes(self.now)).min()?,
        };
        (next != Instant::FAR_FUTURE).then_some(next)
    }
    /// Events since the start of time.
    pub const fn events_processed(&self) -> u64 {
        self.events
    }
    /// The elements, in the order in which they were added.
    pub fn ids(&self) -> impl Iterator<Item = ElementId> + use<> {
        (0..self.slots.len() as u32).map(ElementId)
    }
    /// The element with this name.
    pub fn find(&self, name: &str) -> Option<ElementId> {
        self.names.get(name).copied()
    }
    /// The name of an element; empty if there is no such element.
    pub fn name(&self, id: ElementId) -> &str {
        self.slots.get(id.index()).map_or("", |slot| &slot.name)
    }
    /// The packet account of an element.
    pub fn ledger(&self, id: ElementId) -> Option<&Ledger> {
        self.slots.get(id.index()).map(|slot| &slot.ledger)
    }
    /// An element, whatever its type.
    pub fn any(&self, id: ElementId) -> Option<&dyn Element> {
        self.slots.get(id.index()).map(|slot| &*slot.element)
    }
    /// An element, if it is a `T`.
    pub fn element<T: Element>(&self, id: ElementId) -> Option<&T> {
        let element: &dyn Any = self.any(id)?;
        element.downcast_ref()
    }
    /// The same, to change it. It cannot emit packets here (see [`call`](World::call)), but its deadline may
    /// change, even to the present.
    pub fn element_mut<T: Element>(&mut self, id: ElementId) -> Option<&mut T> {
        let element: &mut dyn Any = &mut *self.slots.get_mut(id.index())?.element;
        let element = element.downcast_mut()?;
        self.touched.insert(id);
        Some(element)
    }
    /// Checks the account of every element, and that the wires lost nothing.
    ///
    /// # Errors
    /// The first element whose account does not balance, with its numbers.
    pub fn check(&self) -> Result<(), WorldError> {
        for slot in &self.slots {
            slot.check(self.now)?;
        }
        let sum = |of: fn(&ElementSlot) -> u64| self.slots.iter().map(of).sum::<u64>();
        let (emitted, received) = (sum(|s| s.ledger.emitted), sum(|s| s.ledger.received));
        let waiting = sum(|s| s.inbox.len() as u64);
        if emitted != received + waiting {
            return Err(WorldError::WiresNotConserved { emitted, received, waiting });
        }
        Ok(())
    }

    fn wire(&mut self, id: ElementId, port: Port) -> Result<&mut Wire, WorldError> {
        let slot = self.slots.get_mut(id.index()).ok_or(WorldError::NoSuchElement(id.0))?;
        let ports = slot.wires.len() as u16;
        let ElementSlot { wires, name, .. } = slot;
        let no_such_port = || WorldError::NoSuchPort { element: name.clone(), port: port.0, ports };
        wires.get_mut(usize::from(port.0)).ok_or_else(no_such_port)
    }
}
