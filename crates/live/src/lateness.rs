//! Lateness: the time between the scheduled and the actual departure of packets.

use farpace_units::Span;

/// Sub-buckets per power of two: quantiles are exact to 1/16.
const PARTS: u64 = 16;
/// Smaller values have a bucket each.
const EXACT: u64 = 2 * PARTS;
/// Number of buckets for all values of 64 bits.
const BUCKETS: usize = (EXACT + (64 - 5) * PARTS) as usize;

/// A histogram of times, for quantiles. It takes 8 kB for any number of values.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: Vec<u64>,
    count: u64,
    max: Span,
}

impl Lateness {
    /// An empty histogram.
    pub fn new() -> Self {
        Lateness { counts: vec![0; BUCKETS], count: 0, max: Span::ZERO }
    }
    /// Adds a value.
    #[inline]
    pub fn record(&mut self, time: Span) {
        if let Some(counter) = self.counts.get_mut(bucket(time.as_nanos())) {
            *counter += 1;
        }
        self.count += 1;
        self.max = self.max.max(time);
    }
    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }
    /// The maximum.
    pub const fn max(&self) -> Span {
        self.max
    }
    /// The quantile `share` (0 to 1), exact to 1/16. Zero without values.
    pub fn quantile(&self, share: f64) -> Span {
        let wanted = ((self.count as f64) * share.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (at, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Span::from_nanos(upper(at)).min(self.max);
            }
        }
        self.max
    }
    /// Removes all values.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.max) = (0, Span::ZERO);
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Lateness::new()
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < EXACT {
        return nanos as usize;
    }
    let power = u64::from(nanos.ilog2());
    let part = (nanos >> (power - 4)) & (PARTS - 1);
    (EXACT + (power - 5) * PARTS + part) as usize
}

/// The largest value of a bucket.
fn upper(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (power, part) = ((bucket - EXACT) / PARTS + 5, (bucket - EXACT) % PARTS);
    let width = 1u64 << (power - 4);
    (1u64 << power).saturating_add(part * width).saturating_add(width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the reported lateness of the emulator is as accurate as documented.
    #[test]
    fn quantiles_are_those_of_the_times_to_a_sixteenth() {
        let mut lateness = Lateness::new();
        assert_eq!(lateness.quantile(0.5), Span::ZERO);
        for n in 1..=1_000u64 {
            lateness.record(Span::from_nanos(n * n));
        }
        for (share, exact) in [(0.0, 1), (0.001, 1), (0.5, 250_000), (0.99, 980_100), (1.0, 1_000_000)] {
            let found = lateness.quantile(share).as_nanos();
            assert!((exact..=exact + exact / 16).contains(&found), "{share}: {found}, not {exact}");
        }
        assert_eq!((lateness.count(), lateness.max().as_nanos()), (1_000, 1_000_000));
        lateness.clear();
        assert_eq!((lateness.count(), lateness.quantile(1.0)), (0, Span::ZERO));
    }

    /// Breaks: every time belongs to exactly one bucket.
    #[test]
    fn every_time_belongs_to_one_bucket() {
        let powers = (0..64).map(|power| 1u64 << power);
        for nanos in powers.flat_map(|p| [p - 1, p, p + 1]).chain([u64::MAX]) {
            let at = bucket(nanos);
            assert!(at < BUCKETS && nanos <= upper(at), "{nanos}");
            assert!(upper(at) - nanos <= nanos / 16, "{nanos} counts as {}", upper(at));
        }
    }
}
