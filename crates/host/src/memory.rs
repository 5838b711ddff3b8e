//! The memory budget of a host: what its connections hold, and what is done when it gets short.
//!
//! | held, of the limit | what happens |
//! |---|---|
//! | 1/2 | autotuned buffers grow no more |
//! | 3/4 | connections that hold their share take no more: they drop segments unacknowledged and announce a window of zero |
//! | 7/8 | new connections are refused: SYNs are dropped, `connect` fails |
//! | all | every connection that holds anything takes no more |
//!
//! Nothing that was acknowledged is dropped, and no connection ends. Each step is counted ([`MemoryUse`]). A
//! connection with nothing to read takes one segment, and one with nothing to send takes a byte, whatever is
//! held: so the most that is ever held is the limit, and a segment for each connection.

use crate::connections::ConnectionEntry;
use farpace_tcp::{ConnectionMemory, ConnectionState, Pressure};
use farpace_units::ByteCount;
use std::collections::BTreeSet;

/// Limit of a host that was not told one ([`Host::set_memory_limit`](crate::Host::set_memory_limit)). Who
/// runs hosts on a machine knows a better one: a quarter of its memory.
pub const DEFAULT_MEMORY: ByteCount = ByteCount::new(16 << 30);
/// Least limit: a few connections with small buffers.
pub const MIN_MEMORY: ByteCount = ByteCount::new(64 << 10);

/// An autotuned buffer may reach this part of the limit, and no more.
const LARGEST_BUFFER: u64 = 4;
/// Part of the limit that all connections share in each direction when memory is short.
const SHARED: u64 = 8;
/// Least share.
const MIN_SHARE: u64 = 4096;
/// What an idle connection takes (measured by a test).
const CONNECTION: u64 = 4096;
/// An outstanding segment: its row, tags and rate sample.
const ROW: u64 = 160;
/// A stretch of data beyond a hole: its entry, and its list of pieces.
const OUT_OF_ORDER_RANGE: u64 = 224;
/// What a piece of data takes besides its bytes.
const CHUNK: u64 = 96;

/// How short of memory a host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryLevel {
    /// There is enough.
    #[default]
    Enough,
    /// Autotuned buffers do not grow.
    NoGrowth,
    /// Connections take no more than their share.
    Shares,
    /// And there are no new ones.
    NoConnections,
    /// Connections that hold anything take no more.
    Full,
}

impl MemoryLevel {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryLevel::Enough => "enough",
            MemoryLevel::NoGrowth => "buffers do not grow",
            MemoryLevel::Shares => "connections are held to their share",
            MemoryLevel::NoConnections => "new connections are refused",
            MemoryLevel::Full => "full",
        }
    }
}

/// What the connections of a host hold, and what was done about it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Bytes that connections hold now.
    pub held: ByteCount,
    /// Most that they held.
    pub peak: ByteCount,
    /// What they may hold.
    pub limit: ByteCount,
    /// How short memory is.
    pub level: MemoryLevel,
    /// Times that buffers stopped to grow.
    pub growth_stopped: u64,
    /// Times that connections were held to their share.
    pub held_to_share: u64,
    /// Connections refused, of peers and of programs.
    pub connections_refused: u64,
    /// Segments dropped unacknowledged, of connections that are over as well.
    pub segments_refused: u64,
    /// Connections that announce a window of zero for want of memory now.
    pub closed_windows: usize,
}

/// The account of a host.
#[derive(Debug)]
pub(crate) struct HostBudget {
    limit: u64,
    held: u64,
    peak: u64,
    level: MemoryLevel,
    growth_stopped: u64,
    held_to_share: u64,
    connections_refused: u64,
    segments_refused: u64,
    /// Slots of connections that announce a window of zero for want of memory.
    closed: BTreeSet<usize>,
}

impl Default for HostBudget {
    fn default() -> Self {
        HostBudget {
            limit: DEFAULT_MEMORY.get(),
            held: 0,
            peak: 0,
            level: MemoryLevel::Enough,
            growth_stopped: 0,
            held_to_share: 0,
            connections_refused: 0,
            segments_refused: 0,
            closed: BTreeSet::new(),
        }
    }
}

/// What a connection counts for.
fn weight(memory: &ConnectionMemory) -> u64 {
    let ConnectionMemory {
        rows,
        send_bytes,
        send_chunks,
        readable_bytes,
        readable_chunks,
        waiting_bytes,
        ..
    } = *memory;
    let pieces = (send_chunks + readable_chunks + memory.waiting_chunks) as u64;
    CONNECTION
        + rows as u64 * ROW
        + memory.out_of_order_ranges as u64 * OUT_OF_ORDER_RANGE
        + pieces * CHUNK
        + send_bytes.get()
        + readable_bytes.get()
        + waiting_bytes.get()
}

impl HostBudget {
    /// Connections may hold so much; [`MIN_MEMORY`] at least.
    pub fn set_limit(&mut self, limit: ByteCount) {
        self.limit = limit.max(MIN_MEMORY).get();
        self.judge();
    }

    /// What connections hold, and what was done about it.
    pub fn memory_use(&self) -> MemoryUse {
        MemoryUse {
            held: ByteCount::new(self.held),
            peak: ByteCount::new(self.peak),
            limit: ByteCount::new(self.limit),
            level: self.level,
            growth_stopped: self.growth_stopped,
            held_to_share: self.held_to_share,
            connections_refused: self.connections_refused,
            segments_refused: self.segments_refused,
            closed_windows: self.closed.len(),
        }
    }

    /// Books what the connection in `slot` holds.
    pub fn weigh(&mut self, slot: usize, entry: &mut ConnectionEntry) {
        let over = entry.connection.state() == ConnectionState::Closed;
        let weight = if over { 0 } else { weight(&entry.connection.memory()) };
        let before = std::mem::replace(&mut entry.weight, weight);
        if weight != before {
            self.change(before, weight);
        }
        let refused = entry.connection.counters().refused_for_memory;
        let more = refused - std::mem::replace(&mut entry.refused, refused);
        let closed = entry.connection.is_closed_for_memory() && !over;
        if more > 0 || closed || !self.closed.is_empty() {
            self.note_refusals(slot, more, closed);
        }
    }

    /// A connection that counted for `before` counts for `after` now.
    fn change(&mut self, before: u64, after: u64) {
        self.held = (self.held + after).saturating_sub(before);
        self.peak = self.peak.max(self.held);
        // Nearly always there is enough, and there was.
        if self.held >= self.limit / 2 || self.level != MemoryLevel::Enough {
            self.judge();
        }
    }

    #[cold]
    fn judge(&mut self) {
        let (held, limit) = (u128::from(self.held), u128::from(self.limit));
        let level = match () {
            () if held >= limit => MemoryLevel::Full,
            () if held * 8 >= limit * 7 => MemoryLevel::NoConnections,
            () if held * 4 >= limit * 3 => MemoryLevel::Shares,
            () if held * 2 >= limit => MemoryLevel::NoGrowth,
            () => MemoryLevel::Enough,
        };
        let reached = |step: MemoryLevel, before: MemoryLevel| u64::from(level >= step && before < step);
        self.growth_stopped += reached(MemoryLevel::NoGrowth, self.level);
        self.held_to_share += reached(MemoryLevel::Shares, self.level);
        self.level = level;
    }

    /// There is no memory for one more connection. It is counted.
    pub fn refuses_connection(&mut self) -> bool {
        let refused = self.level >= MemoryLevel::NoConnections;
        self.connections_refused += u64::from(refused);
        refused
    }

    /// What each of so many connections is asked for.
    pub fn pressure(&self, connections: usize) -> Pressure {
        let share = match self.level {
            MemoryLevel::Enough => return Pressure::NONE,
            MemoryLevel::NoGrowth => u64::MAX,
            MemoryLevel::Shares | MemoryLevel::NoConnections => {
                (self.limit / SHARED / (connections as u64).max(1)).max(MIN_SHARE)
            }
            MemoryLevel::Full => 0,
        };
        Pressure { frozen: true, share: ByteCount::new(share) }
    }

    /// Most bytes of an autotuned buffer.
    pub fn largest_buffer(&self) -> ByteCount {
        ByteCount::new(self.limit / LARGEST_BUFFER)
    }

    /// A connection has dropped so many segments more for want of memory; its window is closed for that, or
    /// not any more.
    fn note_refusals(&mut self, slot: usize, more: u64, closed: bool) {
        self.segments_refused += more;
        if closed {
            self.closed.insert(slot);
        } else {
            self.closed.remove(&slot);
        }
    }

    /// There is memory again for connections that announce a window of zero.
    pub fn may_reopen(&self) -> bool {
        !self.closed.is_empty() && self.level < MemoryLevel::Shares
    }

    /// These connections. Each is to be serviced.
    pub fn take_closed(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.closed)
    }
}
