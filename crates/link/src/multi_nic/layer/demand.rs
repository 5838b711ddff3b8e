//! How much TCP has sent to a neighbour of late: a little takes the shortest path, however thin it is.

use farpace_units::{ByteCount, Instant, Rate, Span};

/// What is sent counts for so long, and for up to twice that. A second: bytes are a rate.
const DEMAND_TIME: Span = Span::from_secs(1);

/// Bytes of TCP that were to be sent to a neighbour of late.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentDemand {
    /// Wire bytes since `begun`, and in the time before.
    bytes: [ByteCount; 2],
    begun: Instant,
    /// The paths are to be selected again when there are more bytes since `begun`; none: they need not.
    limit: Option<ByteCount>,
}

impl RecentDemand {
    /// A frame of `bytes` is to be sent. True if paths are to be selected again.
    #[inline]
    pub fn add(&mut self, now: Instant, bytes: ByteCount) -> bool {
        let passed = now.since(self.begun);
        if passed >= DEMAND_TIME {
            let before = if passed < DEMAND_TIME * 2 { self.bytes[0] } else { ByteCount::ZERO };
            (self.bytes, self.begun) = ([ByteCount::ZERO, before], now);
        }
        self.bytes[0] += bytes;
        self.limit.is_some_and(|limit| self.bytes[0] > limit)
    }
    /// The rate, at least.
    pub fn rate(&self, now: Instant) -> Rate {
        let passed = now.since(self.begun);
        let bytes = if passed < DEMAND_TIME {
            self.bytes[0].max(self.bytes[1])
        } else if passed < DEMAND_TIME * 2 {
            self.bytes[0]
        } else {
            ByteCount::ZERO
        };
        Rate::from_bits_per_sec(bytes.get().saturating_mul(8))
    }
    /// Paths that are in use suffice up to this rate; none: up to any.
    pub fn suffice_up_to(&mut self, rate: Option<Rate>) {
        self.limit = rate.map(|rate| rate.bytes_in(DEMAND_TIME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a bulk transfer is taken for a little traffic, a little for bulk, or bulk counts for ever.
    #[test]
    fn what_was_sent_of_late_counts() {
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let mut demand = RecentDemand::default();
        let kbit = |demand: &RecentDemand, millis| demand.rate(at(millis)).bits_per_sec() / 1_000;
        assert_eq!(kbit(&demand, 5), 0);
        assert!(!demand.add(at(10), ByteCount::new(100_000)), "no limit");
        assert_eq!(kbit(&demand, 20), 800);
        demand.suffice_up_to(Some(Rate::from_bits_per_sec(1_000_000)));
        assert!(!demand.add(at(30), ByteCount::new(25_000)));
        assert!(demand.add(at(40), ByteCount::new(1)), "more than 125,000 in less than a second");
        assert!(!demand.add(at(1_500), ByteCount::new(10)), "another second");
        assert_eq!(kbit(&demand, 1_600), 1_000, "and that before counts");
        assert_eq!(kbit(&demand, 2_600), 0, "80 bits of it");
        assert!(!demand.add(at(9_000), ByteCount::new(50_000)));
        assert_eq!(kbit(&demand, 9_000), 400, "what is older does not");
        assert_eq!(kbit(&demand, 11_000), 0);
    }
}
