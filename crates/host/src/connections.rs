//! The connections of a host: where they are kept, and how they are found.

use crate::application::Application;
use crate::binds::BindId;
use crate::connection_id::ConnectionId;
use crate::index::TupleIndex;
use crate::secret::Tuple;
use farpace_tcp::Connection;
use farpace_tcp::config::Config;
use farpace_wire::{Below, Departures};
use std::collections::{BTreeSet, VecDeque};

/// Connections that one host keeps at once, planned ones included. SYNs beyond it are dropped and counted.
pub const MAX_CONNECTIONS: usize = 1 << 20;

/// Closed connections that stay for inspection, unless a host is told otherwise
/// ([`Host::keep_closed`](crate::Host::keep_closed)); of more, the oldest are forgotten.
pub const DEFAULT_CLOSED_KEPT: usize = 64;

/// A connection and what belongs to it.
pub(crate) struct ConnectionEntry {
    pub connection: Connection,
    /// None until the handshake of an accepted connection is complete.
    pub application: Option<Box<dyn Application>>,
    pub tuple: Tuple,
    pub below: Below,
    /// Number of its next IPv4 packet.
    pub ident: u16,
    /// The listener that took it.
    pub accepted_by: Option<BindId>,
    /// It counts against its listener's backlog.
    pub half_open: bool,
    /// Its number among those that their programs have left.
    pub orphan: Option<u64>,
    /// Sockets that bear it may be bound to its port (SO_REUSEADDR).
    pub reuse_address: bool,
    /// What it counts for in the memory of the host.
    pub weight: u64,
    /// Segments that it has dropped for want of memory, as counted so far.
    pub refused: u64,
    /// Which of its packets have left the host, if that is known.
    pub departures: Option<Departures>,
}

impl ConnectionEntry {
    /// Tells the connection which of its packets have left.
    pub fn note_departures(&mut self) {
        if let Some(departures) = &self.departures {
            self.connection.set_departed(departures.latest());
        }
    }
}

/// A connection that is to be opened later.
pub(crate) struct ServicePlan {
    pub config: Config,
    pub tuple: Tuple,
    pub application: Box<dyn Application>,
    pub log_as: Option<u32>,
    pub reuse_address: bool,
}

#[derive(Default)]
enum SlotContent {
    #[default]
    Free,
    Planned(Box<ServicePlan>),
    Open(Box<ConnectionEntry>),
}

#[derive(Default)]
struct ConnectionSlot {
    generation: u32,
    content: SlotContent,
}

/// All connections. A slot is one connection's place from its plan or SYN until it is forgotten.
pub(crate) struct Connections {
    slots: Vec<ConnectionSlot>,
    /// Closed connections that are kept at most.
    pub closed_kept: usize,
    /// Slots to be used again.
    free: Vec<usize>,
    /// Slots of closed connections, oldest first.
    closed: VecDeque<usize>,
    /// Slots of connections that make records.
    logged: BTreeSet<usize>,
    /// Everything planned or open.
    index: TupleIndex,
    /// The connection that was found last: bulk data finds it again.
    recent: Option<usize>,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            slots: Vec::new(),
            closed_kept: DEFAULT_CLOSED_KEPT,
            free: Vec::new(),
            closed: VecDeque::new(),
            logged: BTreeSet::new(),
            index: TupleIndex::default(),
            recent: None,
        }
    }
}

impl Connections {
    /// Planned and open connections.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True if there is room for one more.
    pub fn has_room(&self) -> bool {
        self.index.len() < MAX_CONNECTIONS
    }

    /// True if a connection or a plan has these ends.
    pub fn uses(&self, tuple: &Tuple) -> bool {
        self.index.get(tuple).is_some()
    }

    /// The slot of the connection or plan with these ends.
    pub fn find(&mut self, tuple: &Tuple) -> Option<usize> {
        if let Some(recent) = self.recent
            && let Some(ConnectionSlot { content: SlotContent::Open(entry), .. }) = self.slots.get(recent)
            && entry.tuple == *tuple
        {
            return Some(recent);
        }
        self.recent = self.index.get(tuple);
        self.recent
    }

    /// Takes a slot for a connection that is to be opened later.
    pub fn plan(&mut self, plan: ServicePlan) -> (usize, ConnectionId) {
        let tuple = plan.tuple;
        self.insert(tuple, SlotContent::Planned(Box::new(plan)))
    }

    /// Takes a slot for a connection that begins now.
    pub fn add(&mut self, entry: ConnectionEntry) -> usize {
        let tuple = entry.tuple;
        self.insert(tuple, SlotContent::Open(Box::new(entry))).0
    }

    fn insert(&mut self, tuple: Tuple, content: SlotContent) -> (usize, ConnectionId) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(ConnectionSlot::default());
            self.slots.len() - 1
        });
        self.slots[slot].content = content;
        self.index.insert(tuple, slot);
        (slot, ConnectionId { slot, generation: self.slots[slot].generation })
    }

    /// The plan in `slot`; [`open`](Self::open) or [`forget`](Self::forget) must follow.
    pub fn take_plan(&mut self, slot: usize) -> Option<ServicePlan> {
        let content = &mut self.slots.get_mut(slot)?.content;
        match std::mem::take(content) {
            SlotContent::Planned(plan) => Some(*plan),
            other => {
                *content = other;
                None
            }
        }
    }

    /// What was planned for `slot` has begun.
    pub fn open(&mut self, slot: usize, entry: ConnectionEntry) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.content = SlotContent::Open(Box::new(entry));
        }
    }

    /// The connection in `slot` makes records.
    pub fn set_logged(&mut self, slot: usize) {
        self.logged.insert(slot);
    }

    /// The connection in `slot`.
    pub fn at(&mut self, slot: usize) -> Option<&mut ConnectionEntry> {
        match &mut self.slots.get_mut(slot)?.content {
            SlotContent::Open(entry) => Some(entry),
            SlotContent::Planned(_) | SlotContent::Free => None,
        }
    }

    /// The slot of a connection that is not forgotten.
    pub fn slot(&self, id: ConnectionId) -> Option<usize> {
        self.slots.get(id.slot).filter(|s| s.generation == id.generation)?;
        Some(id.slot)
    }

    /// A connection that has begun and is not forgotten.
    pub fn get(&self, id: ConnectionId) -> Option<&ConnectionEntry> {
        match &self.slots[self.slot(id)?].content {
            SlotContent::Open(entry) => Some(entry),
            SlotContent::Planned(_) | SlotContent::Free => None,
        }
    }

    /// The name of what is in `slot`.
    pub fn id(&self, slot: usize) -> Option<ConnectionId> {
        Some(ConnectionId { slot, generation: self.slots.get(slot)?.generation })
    }
    /// All that have begun and are not forgotten.
    pub fn iter(&self) -> impl Iterator<Item = (ConnectionId, &ConnectionEntry)> {
        self.slots.iter().enumerate().filter_map(|(slot, s)| match &s.content {
            SlotContent::Open(entry) => {
                Some((ConnectionId { slot, generation: s.generation }, entry.as_ref()))
            }
            SlotContent::Planned(_) | SlotContent::Free => None,
        })
    }

    /// Slots of connections to this listener whose handshake is not complete.
    pub fn half_open_of(&self, listener: BindId) -> Vec<usize> {
        let is = |entry: &ConnectionEntry| entry.half_open && entry.accepted_by == Some(listener);
        let slots = self.iter().filter(|(_, entry)| is(entry));
        slots.map(|(id, _)| id.slot).collect()
    }

    /// Slots of everything planned or open, in the order of their ends.
    pub fn slots(&self) -> Vec<usize> {
        self.index.slots()
    }

    /// The connection in `slot` makes records.
    pub fn is_logged(&self, slot: usize) -> bool {
        self.logged.contains(&slot)
    }

    /// Those that make records, in the order of their slots.
    pub fn logged(&mut self) -> impl Iterator<Item = &mut ConnectionEntry> {
        let logged = &self.logged;
        // Few connections make records, but a host may have many.
        let last = logged.last().map_or(0, |last| last + 1).min(self.slots.len());
        self.slots[..last].iter_mut().enumerate().filter(|(slot, _)| logged.contains(slot)).filter_map(
            |(_, s)| match &mut s.content {
                SlotContent::Open(entry) => Some(entry.as_mut()),
                SlotContent::Planned(_) | SlotContent::Free => None,
            },
        )
    }

    /// The ends of `slot` are free again; and whether others may have been bound to its port meanwhile. None:
    /// they were free.
    pub fn release(&mut self, slot: usize) -> Option<(Tuple, bool)> {
        self.recent = None;
        let (tuple, reuse_address) = match self.slots.get(slot).map(|s| &s.content) {
            Some(SlotContent::Open(entry)) => (entry.tuple, entry.reuse_address),
            Some(SlotContent::Planned(plan)) => (plan.tuple, plan.reuse_address),
            Some(SlotContent::Free) | None => return None,
        };
        if self.index.get(&tuple) != Some(slot) {
            return None; // others have the same ends by now
        }
        self.index.remove(&tuple);
        Some((tuple, reuse_address))
    }

    /// A released connection stays for inspection until too many have. Tells which slot is free for it.
    pub fn retire(&mut self, slot: usize) {
        self.closed.push_back(slot);
        if self.closed.len() > self.closed_kept
            && let Some(oldest) = self.closed.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// A closed connection that stays for inspection is forgotten. False: it does not stay.
    pub fn forget_closed(&mut self, id: ConnectionId) -> bool {
        let Some(slot) = self.slot(id) else { return false };
        let Some(at) = self.closed.iter().position(|closed| *closed == slot) else { return false };
        self.closed.remove(at);
        self.forget(slot);
        true
    }

    /// Nothing is left of a released connection or plan.
    pub fn forget(&mut self, slot: usize) {
        if let Some(s) = self.slots.get_mut(slot) {
            s.content = SlotContent::Free;
            s.generation = s.generation.wrapping_add(1);
            self.logged.remove(&slot);
            self.free.push(slot);
        }
    }
}
