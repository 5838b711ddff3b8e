//! The table of connections in TIME-WAIT: a row for each, and nothing else.

use crate::secret::{Purpose, Secret, Tuple};
use farpace_tcp::{Ports, Segment, TimeWait, TimeWaitOutcome};
use farpace_units::{Instant, Seq, Span};
use farpace_wire::TcpHeader;
use hashbrown::HashTable;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

/// Rows of the table. A connection that finds it full ends without TIME-WAIT, and is counted (Linux:
/// tcp_max_tw_buckets).
pub const MAX_TIME_WAIT: usize = 1 << 18;

/// Rows end together, as often as this.
const TICK: Span = Span::from_millis(100);
/// Rows are allocated so many at a time: a table that doubled would hold twice of what it needs.
const CHUNK: usize = 512;
const NONE: u32 = u32::MAX;

struct TimeWaitRow {
    wait: TimeWait,
    local: Ipv6Addr,
    remote: Ipv6Addr,
    local_port: u16,
    remote_port: u16,
    /// The next row that ends in the same tick, or the next free one.
    next: u32,
    hash: u32,
    /// Sockets that bear it may be bound to its port (SO_REUSEADDR).
    reuse_address: bool,
    /// It has not been ended before its time.
    live: bool,
}

const _: () = assert!(std::mem::size_of::<TimeWaitRow>() <= 112);

impl TimeWaitRow {
    fn tuple(&self) -> Tuple {
        Tuple {
            remote: self.remote.to_canonical(),
            remote_port: self.remote_port,
            local_port: self.local_port,
            local: self.local.to_canonical(),
        }
    }
    fn is(&self, tuple: &Tuple) -> bool {
        (self.local_port, self.remote_port) == (tuple.local_port, tuple.remote_port)
            && self.remote == mapped(tuple.remote)
            && self.local == mapped(tuple.local)
    }
}

/// What a segment for a row of the table has brought about.
pub(crate) enum TimeWaitArrival {
    /// There is no such row.
    Unknown,
    /// It begins a new connection in the place of the old one, whose row is gone. Its initial sequence number
    /// is not below.
    Reused(Seq),
    /// This is to be sent.
    Answered(Box<TcpHeader>),
    /// Nothing is left to do.
    Done,
}

/// Hosts have no IPv4-mapped addresses: so this and [`Ipv6Addr::to_canonical`] undo each other.
fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// The table.
pub(crate) struct TimeWaits {
    chunks: Vec<Vec<TimeWaitRow>>,
    /// First free row, of those that were used before.
    free: u32,
    index: HashTable<u32>,
    /// First row of each tick in which rows end.
    ends: BTreeMap<u64, u32>,
    ended_early: u64,
}

impl Default for TimeWaits {
    fn default() -> Self {
        TimeWaits {
            chunks: Vec::new(),
            free: NONE,
            index: HashTable::new(),
            ends: BTreeMap::new(),
            ended_early: 0,
        }
    }
}

/// Keyed, so that nobody can choose ends that make a search long.
fn hash(secret: &Secret, tuple: &Tuple) -> u32 {
    secret.hash(Purpose::TimeWait, tuple, 0) as u32
}

/// The index takes buckets from the low bits and tags from the high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn tick_of(until: Instant) -> u64 {
    until.as_nanos().div_ceil(TICK.as_nanos())
}

impl TimeWaits {
    fn row(&self, at: u32) -> &TimeWaitRow {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    fn row_mut(&mut self, at: u32) -> &mut TimeWaitRow {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }

    fn find(&self, hash: u32, tuple: &Tuple) -> Option<u32> {
        self.index.find(spread(hash), |at| self.row(*at).is(tuple)).copied()
    }

    /// A row has these ends.
    pub fn has(&self, secret: &Secret, tuple: &Tuple) -> bool {
        !self.index.is_empty() && self.find(hash(secret, tuple), tuple).is_some()
    }

    /// Rows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Connections that found the table full.
    pub const fn ended_early(&self) -> u64 {
        self.ended_early
    }

    /// A connection has nothing left but its wait. False: the table is full.
    pub fn keep(&mut self, secret: &Secret, tuple: &Tuple, wait: TimeWait, reuse_address: bool) -> bool {
        self.insert(hash(secret, tuple), tuple, wait, reuse_address)
    }

    /// A segment whose ends may be those of a row. `listens`: asked whether somebody listens there.
    /// `ended` is told of the row, if it is gone.
    pub fn on_segment(
        &mut self,
        secret: &Secret,
        now: Instant,
        tuple: &Tuple,
        segment: &Segment,
        listens: impl FnOnce() -> bool,
        ended: impl FnOnce(Tuple, bool),
    ) -> TimeWaitArrival {
        let Some(at) = self.find(hash(secret, tuple), tuple) else { return TimeWaitArrival::Unknown };
        let listened = listens();
        let row = self.row_mut(at);
        let arrival = if listened && row.wait.may_be_reused_by(segment) {
            TimeWaitArrival::Reused(row.wait.next_iss_floor())
        } else {
            let ports = Ports { local: tuple.local_port, remote: tuple.remote_port };
            match row.wait.on_segment(now, ports, segment) {
                TimeWaitOutcome::Ignored => return TimeWaitArrival::Done,
                TimeWaitOutcome::Answer(header) => return TimeWaitArrival::Answered(header),
                TimeWaitOutcome::Ended => TimeWaitArrival::Done,
            }
        };
        let (tuple, reuse_address) = self.end(at);
        ended(tuple, reuse_address);
        arrival
    }

    /// False: the table is full.
    fn insert(&mut self, hash: u32, tuple: &Tuple, wait: TimeWait, reuse_address: bool) -> bool {
        let row = TimeWaitRow {
            wait,
            local: mapped(tuple.local),
            remote: mapped(tuple.remote),
            local_port: tuple.local_port,
            remote_port: tuple.remote_port,
            next: NONE,
            hash,
            reuse_address,
            live: true,
        };
        let at = if self.free != NONE {
            let at = self.free;
            self.free = self.row(at).next;
            *self.row_mut(at) = row;
            at
        } else {
            let full = self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK);
            if full && self.chunks.len() == MAX_TIME_WAIT / CHUNK {
                self.ended_early += 1;
                return false;
            }
            if full {
                self.chunks.push(Vec::with_capacity(CHUNK));
            }
            let last = self.chunks.len() - 1;
            self.chunks[last].push(row);
            (last * CHUNK + self.chunks[last].len() - 1) as u32
        };
        let chunks = &self.chunks;
        let hash_of = |at: &u32| spread(chunks[*at as usize / CHUNK][*at as usize % CHUNK].hash);
        self.index.insert_unique(spread(hash), at, hash_of);
        self.link(at);
        true
    }

    /// The row ends in the tick of its deadline.
    fn link(&mut self, at: u32) {
        let head = self.ends.entry(tick_of(self.row(at).wait.until())).or_insert(NONE);
        let next = std::mem::replace(head, at);
        self.row_mut(at).next = next;
    }

    /// The row stands for nothing any more. It is free when its tick comes.
    fn end(&mut self, at: u32) -> (Tuple, bool) {
        let row = self.row_mut(at);
        row.live = false;
        let (hash, tuple, reuse_address) = (row.hash, row.tuple(), row.reuse_address);
        if let Ok(entry) = self.index.find_entry(spread(hash), |other| *other == at) {
            entry.remove();
        }
        (tuple, reuse_address)
    }

    /// Ends the rows whose time has come, and tells of each.
    pub fn expire(&mut self, now: Instant, mut ended: impl FnMut(Tuple, bool)) {
        while let Some(first) = self.ends.first_entry()
            && first.key().saturating_mul(TICK.as_nanos()) <= now.as_nanos()
        {
            let mut next = first.remove();
            while next != NONE {
                let at = next;
                next = self.row(at).next;
                if self.row(at).live && self.row(at).wait.until() > now {
                    self.link(at); // the peer's FIN came again meanwhile
                    continue;
                }
                if self.row(at).live {
                    let (tuple, reuse_address) = self.end(at);
                    ended(tuple, reuse_address);
                }
                self.row_mut(at).next = self.free;
                self.free = at;
            }
        }
        if self.ends.is_empty() && !self.chunks.is_empty() {
            // Nothing is in use: the memory goes back.
            *self = TimeWaits { ended_early: self.ended_early, ..TimeWaits::default() };
        }
    }

    /// When the next rows end.
    pub fn next(&self) -> Option<Instant> {
        let (tick, _) = self.ends.first_key_value()?;
        Some(Instant::from_nanos(tick.saturating_mul(TICK.as_nanos())))
    }
}
