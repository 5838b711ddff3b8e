//! A meter of the time that packets have spent in queues: mean and percentiles in bounded memory.

use farpace_units::Span;

/// Buckets of an octave: a percentile is at most a 32nd too long.
const PARTS: u32 = 32;
/// Counts waits of packets, in buckets whose width grows with the wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitMeter {
    /// The first bucket that is kept.
    first: usize,
    /// The buckets from there to the last one with a packet: few, for a short flow.
    buckets: Vec<u64>,
    packets: u64,
    total_ns: u128,
    longest: Span,
}

impl WaitMeter {
    /// A packet has waited so long.
    pub fn record(&mut self, wait: Span) {
        let at = bucket(wait);
        if self.buckets.is_empty() {
            self.first = at;
        } else if at < self.first {
            self.buckets.splice(..0, std::iter::repeat_n(0, self.first - at));
            self.first = at;
        }
        let place = at - self.first;
        if place >= self.buckets.len() {
            // Exactly: there may be thousands of meters, and none has more than 2,000 buckets.
            self.buckets.reserve_exact(place + 1 - self.buckets.len());
            self.buckets.resize(place + 1, 0);
        }
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += 1;
        }
        self.packets += 1;
        self.total_ns += u128::from(wait.as_nanos());
        self.longest = self.longest.max(wait);
    }
    /// Packets counted.
    pub const fn packets(&self) -> u64 {
        self.packets
    }
    /// The mean wait; zero before the first packet.
    pub fn mean(&self) -> Span {
        let mean = self.total_ns / u128::from(self.packets.max(1));
        Span::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
    /// The longest wait.
    pub const fn longest(&self) -> Span {
        self.longest
    }
    /// What `percent` of the packets, 0 to 100, have not exceeded: the end of its bucket, and at most the
    /// longest wait. Zero before the first packet.
    pub fn percentile(&self, percent: f64) -> Span {
        let wanted = (self.packets as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (n, packets) in (self.first..).zip(&self.buckets) {
            seen += packets;
            if seen >= wanted {
                return bucket_end(n).min(self.longest);
            }
        }
        self.longest
    }
}

/// Below 2 × PARTS a bucket is a nanosecond; above, an octave has PARTS of them.
fn bucket(wait: Span) -> usize {
    let ns = wait.as_nanos();
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(PARTS.ilog2() + 1);
    (octave * PARTS) as usize + (ns >> octave) as usize
}

/// The longest wait of a bucket.
fn bucket_end(n: usize) -> Span {
    let n = n as u64;
    let parts = u64::from(PARTS);
    let octave = (n / parts).saturating_sub(1);
    let start = u128::from(n - octave * parts) << octave;
    let end = start + (1u128 << octave) - 1;
    Span::from_nanos(u64::try_from(end).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: delays in reports: a meter without packets, or with one.
    #[test]
    fn none_and_one() {
        let mut meter = WaitMeter::default();
        assert_eq!((meter.mean(), meter.percentile(95.0)), (Span::ZERO, Span::ZERO));
        meter.record(Span::from_millis(7));
        assert_eq!((meter.mean(), meter.percentile(0.0)), (Span::from_millis(7), Span::from_millis(7)));
        meter.record(Span::from_nanos(u64::MAX));
        assert_eq!(meter.percentile(100.0), Span::from_nanos(u64::MAX));
    }

    proptest! {
        /// Breaks: a percentile is farther than a 32nd from that of the sorted waits, or the mean is not
        /// exact.
        #[test]
        fn as_the_sorted_waits(waits in prop::collection::vec(0u64..1 << 40, 1..200), percent in 1u32..=100) {
            let mut meter = WaitMeter::default();
            waits.iter().for_each(|ns| meter.record(Span::from_nanos(*ns)));
            let mut sorted = waits.clone();
            sorted.sort_unstable();
            let at = (sorted.len() * percent as usize).div_ceil(100) - 1;
            let found = meter.percentile(f64::from(percent)).as_nanos();
            let over = found.checked_sub(sorted[at]);
            prop_assert!(over.is_some_and(|over| over <= sorted[at] / 32 + 1), "{found}");
            prop_assert_eq!(meter.mean().as_nanos(), waits.iter().sum::<u64>() / waits.len() as u64);
        }
    }
}
