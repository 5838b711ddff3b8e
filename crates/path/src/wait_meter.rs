//! A meter of the time that packets have spent in queues: mean and percentiles in bounded memory.

use farpace_units::Span;

/// Buckets of an octave: a percentile is at most a 32nd too long.
const PARTS: u32 = 32;

/// Counts waits of packets, in buckets whose width grows with the wait.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitMeter {
    /// Those with packets, by number. At most 1,920; a short flow has few, and there may be thousands of
    /// meters.
    buckets: Vec<WaitBucket>,
    packets: u64,
    total_ns: u128,
    longest: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WaitBucket {
    number: u16,
    packets: u64,
}

impl WaitMeter {
    /// A packet has waited so long.
    pub fn record(&mut self, wait: Span) {
        let number = bucket(wait);
        match self.buckets.binary_search_by_key(&number, |bucket| bucket.number) {
            Ok(at) => self.buckets[at].packets += 1,
            Err(at) => self.buckets.insert(at, WaitBucket { number, packets: 1 }),
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
        for bucket in &self.buckets {
            seen += bucket.packets;
            if seen >= wanted {
                return bucket_end(bucket.number).min(self.longest);
            }
        }
        self.longest
    }
}

/// Below 2 × PARTS a bucket is a nanosecond; above, an octave has PARTS of them.
fn bucket(wait: Span) -> u16 {
    let ns = wait.as_nanos();
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(PARTS.ilog2() + 1);
    // At most 58 × 32 + 63.
    (octave * PARTS) as u16 + (ns >> octave) as u16
}

/// The longest wait of a bucket.
fn bucket_end(n: u16) -> Span {
    let n = u64::from(n);
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
