//! Which flows of TCP send so little that they need not wait behind others.

use crate::multi_nic::FlowId;
use farpace_units::{ByteCount, Instant, Span};

/// Flows that have sent at most so much of late send little: an initial window, or keystrokes.
const MAX_LITTLE: u32 = 16 * 1_538;
/// What was sent counts half after this time, or after so many of the longest round trips, a quarter after
/// twice that, and so on. A window that grows over a long path is no little, though it is sent in bursts.
const MIN_HALF_LIFE: Span = Span::from_millis(100);
const HALF_LIFE_ROUNDS: u64 = 2;
/// Flows beyond share a count. Then they send more than each of them, and wait like bulk.
const COUNTS: usize = 1_024;

/// What a flow, or several, have sent of late.
#[derive(Clone, Copy, Debug, Default)]
struct FlowCount {
    bytes: u32,
    /// When it was last halved.
    halved: Instant,
}

/// What flows have sent of late: in 16 kB of memory, however many there are.
#[derive(Debug)]
pub(super) struct SparseFlows(Box<[FlowCount]>);

impl Default for SparseFlows {
    fn default() -> Self {
        SparseFlows(vec![FlowCount::default(); COUNTS].into())
    }
}

impl SparseFlows {
    /// A frame of a flow is to be sent, over paths of which the longest round trip is `rtt`. True if the flow
    /// has sent little of late, with it.
    pub fn add(&mut self, now: Instant, flow: FlowId, bytes: ByteCount, rtt: Span) -> bool {
        let half_life = MIN_HALF_LIFE.max(rtt * HALF_LIFE_ROUNDS);
        let at = (flow.0 % COUNTS as u64) as usize;
        let Some(count) = self.0.get_mut(at) else { return false };
        let halvings = now.since(count.halved).as_nanos() / half_life.as_nanos().max(1);
        if halvings > 0 {
            count.bytes = u32::try_from(halvings).map_or(0, |n| count.bytes.checked_shr(n).unwrap_or(0));
            count.halved += half_life * halvings;
        }
        count.bytes = count.bytes.saturating_add(u32::try_from(bytes.get()).unwrap_or(u32::MAX));
        count.bytes <= MAX_LITTLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: keystrokes and first windows wait behind bulk, bulk passes for little, or a flow that was bulk
    /// waits for ever.
    #[test]
    fn what_sends_little_is_told_from_bulk() {
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let full = ByteCount::new(1_538);
        let mut flows = SparseFlows::default();
        let (bulk, keys) = (FlowId(5), FlowId(6));
        assert!((0..16).all(|_| flows.add(at(1), bulk, full, Span::ZERO)), "an initial window");
        assert!(!flows.add(at(1), bulk, full, Span::ZERO), "and more");
        assert!((0..800).all(|n| !flows.add(at(1 + n), bulk, full, Span::ZERO)), "12 Mbit/s");
        assert!(
            (0..1_000).all(|n| flows.add(at(n * 10), keys, ByteCount::new(125), Span::ZERO)),
            "100 kbit/s"
        );
        assert!(flows.add(at(3_000), bulk, full, Span::ZERO), "after two seconds of silence");
        assert!(flows.add(at(90_000_000), bulk, full, Span::ZERO));
        // Flows of strangers take no memory.
        (0..100_000).for_each(|n| _ = flows.add(at(90_000_000), FlowId(n), full, Span::ZERO));
        assert_eq!(flows.0.len(), COUNTS);
    }
}
