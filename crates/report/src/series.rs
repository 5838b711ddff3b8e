//! A series of any length in bounded memory that keeps its peaks.
//!
//! Start reading at [`Reduced`].

use farpace_units::{Instant, Span};

/// The values in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesBucket {
    /// The first value.
    pub first: f64,
    /// The last value.
    pub last: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
    /// The number of values.
    pub count: u64,
}

impl SeriesBucket {
    fn of(value: f64) -> SeriesBucket {
        SeriesBucket { first: value, last: value, min: value, max: value, count: 1 }
    }
    /// This bucket and the next one, joined.
    fn joined(self, next: SeriesBucket) -> SeriesBucket {
        SeriesBucket {
            first: self.first,
            last: next.last,
            min: self.min.min(next.min),
            max: self.max.max(next.max),
            count: self.count.saturating_add(next.count),
        }
    }
}

/// A series of (time, value) that is reduced as it grows: a limited number of time buckets with first, last,
/// minimum and maximum. When the series exceeds the last bucket, adjacent buckets are joined, and the width
/// of all doubles. Peaks never disappear; only their time is rounded to a bucket.
#[derive(Clone, Debug)]
pub struct Reduced {
    limit: usize,
    /// Time of the first value; earlier times are replaced by it.
    origin: Instant,
    width: Span,
    buckets: Vec<Option<SeriesBucket>>,
}

impl Default for Reduced {
    fn default() -> Self {
        Reduced::new(Reduced::DEFAULT_BUCKETS)
    }
}

impl Reduced {
    /// Twice the width of a wide figure in pixels.
    pub const DEFAULT_BUCKETS: usize = 2000;
    /// Maximum number of buckets.
    pub const MAX_BUCKETS: usize = 1 << 20;

    /// An empty series of at most `buckets` buckets (rounded to an even number from 2 to
    /// [`Reduced::MAX_BUCKETS`]).
    pub fn new(buckets: usize) -> Self {
        let limit = buckets.clamp(2, Self::MAX_BUCKETS) & !1;
        Reduced { limit, origin: Instant::ZERO, width: Span::from_nanos(1), buckets: Vec::new() }
    }

    /// Adds a value. Values that are not finite are ignored. A time before the first one is replaced by it.
    pub fn push(&mut self, time: Instant, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.buckets.is_empty() {
            self.origin = time;
        }
        let offset = time.since(self.origin).as_nanos();
        while offset / self.width.as_nanos() >= self.limit as u64 {
            self.double();
        }
        // Below `limit`, so it fits.
        let index = (offset / self.width.as_nanos()) as usize;
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, None);
        }
        if let Some(slot) = self.buckets.get_mut(index) {
            *slot = Some(slot.map_or(SeriesBucket::of(value), |b| b.joined(SeriesBucket::of(value))));
        }
    }

    fn double(&mut self) {
        self.width = self.width * 2;
        let pairs = self.buckets.chunks(2).map(|pair| match *pair {
            [Some(a), Some(b)] => Some(a.joined(b)),
            [a, b] => a.or(b),
            [a] => a,
            _ => None,
        });
        self.buckets = pairs.collect();
    }

    /// Width of a bucket.
    pub fn width(&self) -> Span {
        self.width
    }

    /// The buckets with values and their start times, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, SeriesBucket)> + '_ {
        (0u64..).zip(&self.buckets).filter_map(|(i, b)| b.map(|b| (self.origin + self.width * i, b)))
    }

    /// Seconds and values for steps until `end`: of each bucket the first, least, largest and last value.
    pub fn steps(&self, end: Instant) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.iter().flat_map(move |(start, b)| {
            let (from, to) = (start.as_secs_f64(), (start + self.width).min(end).as_secs_f64());
            let within = |share: f64| from + (to - from) * share;
            // A bucket with one value is one point.
            let values = [(from, b.first), (within(0.3), b.min), (within(0.6), b.max), (within(0.9), b.last)];
            values.into_iter().take(if b.count == 1 { 1 } else { 4 })
        })
    }

    /// Number of buckets in memory, including empty ones; at most the limit.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// True if there is no value.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The minimum and maximum of all values.
    pub fn range(&self) -> Option<(f64, f64)> {
        let mut all = self.iter().map(|(_, b)| b);
        let first = all.next()?;
        let total = all.fold(first, SeriesBucket::joined);
        Some((total.min, total.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: a reduced series keeps its minimum, maximum and ends, in bounded memory.
        #[test]
        fn extremes_and_ends_are_kept(
            limit in 0usize..64,
            steps in prop::collection::vec((0u64..5_000_000_000, -1e9f64..1e9), 1..400),
        ) {
            let mut series = Reduced::new(limit);
            let mut now = Instant::ZERO;
            for (gap, value) in &steps {
                now += Span::from_nanos(*gap);
                series.push(now, *value);
                prop_assert!(series.len() <= limit.max(2));
            }
            let values: Vec<f64> = steps.iter().map(|s| s.1).collect();
            let min = values.iter().copied().fold(f64::INFINITY, f64::min);
            let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(series.range(), Some((min, max)));
            let buckets: Vec<SeriesBucket> = series.iter().map(|(_, b)| b).collect();
            prop_assert_eq!(buckets[0].first, values[0]);
            prop_assert_eq!(buckets[buckets.len() - 1].last, values[values.len() - 1]);
            prop_assert_eq!(buckets.iter().map(|b| b.count).sum::<u64>(), values.len() as u64);
        }

        /// Breaks: each value is in the bucket of its time.
        #[test]
        fn each_value_is_in_the_bucket_of_its_time(times in prop::collection::vec(0u64..1_000_000_000_000, 1..50)) {
            let mut times = times;
            times.sort_unstable();
            let mut series = Reduced::new(16);
            for t in &times {
                series.push(Instant::from_nanos(*t), *t as f64);
            }
            for (start, bucket) in series.iter() {
                prop_assert!(bucket.min >= start.as_nanos() as f64);
                prop_assert!(bucket.max < (start + series.width()).as_nanos() as f64);
            }
        }
    }

    /// Breaks: a jump to the maximum time neither hangs nor overflows, and NaN does not affect the range.
    #[test]
    fn extreme_times_and_values_are_handled() {
        let mut series = Reduced::default();
        series.push(Instant::ZERO, 1.0);
        series.push(Instant::FAR_FUTURE, 2.0);
        series.push(Instant::ZERO, f64::NAN);
        series.push(Instant::ZERO, f64::INFINITY);
        assert_eq!(series.range(), Some((1.0, 2.0)));
        assert!(Reduced::new(10).range().is_none());
    }
}
