//! Memory of all connections, and what is done when it gets short.
//!
//! | held, of the limit | what happens |
//! |---|---|
//! | 1/2 | autotuned buffers grow no more |
//! | 3/4 | each connection keeps no more than its share in each direction |
//! | 7/8 | new connections pass unsplit |
//! | all | connections take nothing more until something is delivered |

use crate::shared_flows::{Account, SharedFlows};
use farpace_tcp::{ConnectionMemory, Pressure};
use farpace_units::ByteCount;
use std::sync::atomic::Ordering;

/// What a leg takes without data.
const LEG: u64 = 4096;
/// A segment that is outstanding, and a piece of data.
const ROW: u64 = 160;
const CHUNK: u64 = 96;
/// Parts of the limit that all connections share in each direction when memory is short.
const SHARED: u64 = 8;
/// Least share of a connection.
const MIN_SHARE: u64 = 4096;

/// What a gateway may hold, together with those that it shares connections with.
pub(crate) struct Budget {
    limit: u64,
    shard: SharedFlows,
}

impl Budget {
    pub fn new(limit: ByteCount, shard: SharedFlows) -> Self {
        Budget { limit: limit.get().max(1), shard }
    }
    pub fn set_limit(&mut self, limit: ByteCount) {
        self.limit = limit.get().max(1);
    }
    pub fn held(&self) -> ByteCount {
        ByteCount::new(self.shard.account().held.load(Ordering::Relaxed))
    }
    pub fn peak(&self) -> ByteCount {
        ByteCount::new(self.shard.account().peak.load(Ordering::Relaxed))
    }
    pub fn limit(&self) -> ByteCount {
        ByteCount::new(self.limit)
    }
    /// A connection that counted for `before` counts for `after` now.
    pub fn change(&self, before: u64, after: u64) {
        if before == after {
            return;
        }
        let Account { held, peak, .. } = self.shard.account();
        // Every connection takes back what it has added: the sum does not wrap.
        let change = after.wrapping_sub(before);
        let now = held.fetch_add(change, Ordering::Relaxed).wrapping_add(change);
        if after > before {
            peak.fetch_max(now, Ordering::Relaxed);
        }
    }
    /// There is no memory for one more connection.
    pub fn is_short(&self) -> bool {
        self.reaches(7, 8)
    }
    /// What each of so many connections is asked for.
    pub fn pressure(&self, connections: usize) -> Pressure {
        if !self.reaches(1, 2) {
            return Pressure::NONE;
        }
        let share = match () {
            () if self.reaches(1, 1) => 0,
            () if self.reaches(3, 4) => (self.limit / SHARED / (connections as u64).max(1)).max(MIN_SHARE),
            () => u64::MAX,
        };
        Pressure { frozen: true, share: ByteCount::new(share) }
    }
    fn reaches(&self, parts: u64, of: u64) -> bool {
        u128::from(self.held().get()) * u128::from(of) >= u128::from(self.limit) * u128::from(parts)
    }
}

/// What a leg counts for.
pub(crate) fn weight(memory: &ConnectionMemory) -> u64 {
    let pieces = memory.send_chunks + memory.readable_chunks + memory.waiting_chunks;
    let bytes = memory.send_bytes.get() + memory.readable_bytes.get() + memory.waiting_bytes.get();
    LEG + memory.rows as u64 * ROW + pieces as u64 * CHUNK + bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    // Breaks: memory grows beyond the limit, or new connections are split without memory for them.
    #[test]
    fn pressure_rises_with_what_is_held() {
        let budget = Budget::new(ByteCount::new(1 << 20), SharedFlows::alone());
        assert_eq!(budget.pressure(1), Pressure::NONE);
        budget.change(0, 600 << 10);
        assert_eq!(budget.pressure(1), Pressure { frozen: true, share: ByteCount::MAX });
        budget.change(0, 200 << 10);
        assert_eq!(budget.pressure(4).share, ByteCount::new((1 << 20) / 8 / 4));
        assert!(!budget.is_short());
        budget.change(0, 200 << 10);
        assert!(budget.is_short());
        budget.change(0, 100 << 10);
        assert_eq!(budget.pressure(4).share, ByteCount::ZERO);
        budget.change(1100 << 10, 0);
        assert_eq!((budget.held(), budget.pressure(1)), (ByteCount::ZERO, Pressure::NONE));
        assert_eq!(budget.peak(), ByteCount::new(1100 << 10));
    }
}
