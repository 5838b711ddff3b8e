//! The rate per n packets (paper §4.4).

use farpace_units::{ByteCount, Instant, Rate};

/// The values of n: the paper has 1 and 2.
pub const RATE_WINDOWS: [u64; 3] = [1, 2, 10];
const MAX_WINDOW: usize = 10;

/// The rate per n packets: bytes of n consecutive packets, from packet i to packet i + n - 1, over the time
/// from the start of packet i to the start of packet i + n. (The sum in the paper runs to i + n, but its
/// numbers are those of n packets: a flow at 10 Mbit/s has 9.95 for n = 1.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerPackets {
    /// n.
    pub n: u64,
    /// Number of measurements: one for each i.
    pub count: u64,
    /// The minimum; none if no packet i + n has another time than packet i.
    pub min: Option<Rate>,
    /// The maximum, of measurements with a non-zero time.
    pub max: Option<Rate>,
    /// Number of measurements with a time of zero by the clock. The other fields exclude them.
    pub at_once: u64,
    sum: u128,
}

impl PerPackets {
    /// The arithmetic mean.
    pub fn mean(&self) -> Option<Rate> {
        let mean = self.sum.checked_div(u128::from(self.count.saturating_sub(self.at_once)))?;
        Some(Rate::from_bits_per_sec(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
    fn add(&mut self, bytes: u64, nanos: u64) {
        self.count += 1;
        if nanos == 0 {
            self.at_once += 1;
            return;
        }
        let bits = u128::from(bytes) * 8_000_000_000 / u128::from(nanos);
        let rate = Rate::from_bits_per_sec(u64::try_from(bits).unwrap_or(u64::MAX));
        self.min = Some(self.min.map_or(rate, |min| min.min(rate)));
        self.max = Some(self.max.map_or(rate, |max| max.max(rate)));
        self.sum = self.sum.saturating_add(u128::from(rate.bits_per_sec()));
    }
}

/// Measures the rate for all [`RATE_WINDOWS`].
#[derive(Clone, Debug)]
pub(super) struct RateFacts {
    pub per: [PerPackets; RATE_WINDOWS.len()],
    past: Past<MAX_WINDOW>,
}

impl Default for RateFacts {
    fn default() -> Self {
        RateFacts {
            per: RATE_WINDOWS.map(|n| PerPackets { n, ..PerPackets::default() }),
            past: Past::default(),
        }
    }
}

impl RateFacts {
    /// A packet of `bytes`, not earlier than the previous one.
    pub fn packet(&mut self, time: Instant, bytes: ByteCount) {
        for per in &mut self.per {
            if let Some((bytes, nanos)) = self.past.back(per.n, time) {
                per.add(bytes, nanos);
            }
        }
        self.past.push(time, bytes);
    }
}

/// The last N packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past<const N: usize> {
    /// Start time, and the sum of bytes before.
    ring: [(Instant, u64); N],
    packets: u64,
    bytes: u64,
}

impl<const N: usize> Default for Past<N> {
    fn default() -> Self {
        Past { ring: [(Instant::ZERO, 0); N], packets: 0, bytes: 0 }
    }
}

impl<const N: usize> Past<N> {
    /// Bytes of the last `n` packets, and the time from the first of them to `now`; none if there were fewer
    /// packets.
    #[inline]
    pub fn back(&self, n: u64, now: Instant) -> Option<(u64, u64)> {
        let at = self.packets.checked_sub(n)?;
        let (start, before) = self.ring.get((at % N as u64) as usize)?;
        Some((self.bytes.saturating_sub(*before), now.since(*start).as_nanos()))
    }
    #[inline]
    pub fn push(&mut self, time: Instant, bytes: ByteCount) {
        if let Some(slot) = self.ring.get_mut((self.packets % N as u64) as usize) {
            *slot = (time, self.bytes);
        }
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(bytes.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: the rates equal a direct computation of the definition.
        #[test]
        fn rates_equal_a_direct_computation(packets in prop::collection::vec((0u64..3_000, 64u64..9_000), 0..60)) {
            let mut now = 0;
            let stamped: Vec<(u64, u64)> = packets.iter().map(|(gap, bytes)| { now += gap; (now, *bytes) }).collect();
            let mut rates = RateFacts::default();
            for (time, bytes) in &stamped {
                rates.packet(Instant::from_nanos(*time), ByteCount::new(*bytes));
            }
            for per in &rates.per {
                let n = per.n as usize;
                let all: Vec<Option<u64>> = (0..stamped.len().saturating_sub(n)).map(|i| {
                    let bytes: u64 = stamped[i..i + n].iter().map(|p| p.1).sum();
                    (bytes * 8_000_000_000).checked_div(stamped[i + n].0 - stamped[i].0)
                }).collect();
                let known: Vec<u64> = all.iter().flatten().copied().collect();
                let bits = |rate: Option<Rate>| rate.map(Rate::bits_per_sec);
                prop_assert_eq!(per.count, all.len() as u64);
                prop_assert_eq!(per.at_once, (all.len() - known.len()) as u64);
                prop_assert_eq!(bits(per.min), known.iter().copied().min());
                prop_assert_eq!(bits(per.max), known.iter().copied().max());
                prop_assert_eq!(bits(per.mean()), known.iter().sum::<u64>().checked_div(known.len() as u64));
            }
        }
    }
}
