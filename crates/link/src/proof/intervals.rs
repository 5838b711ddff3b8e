//! Intervals from the start of a frame to the start of the next.

use farpace_units::Span;

/// Maximum number of distinct values that are stored exactly. A paced flow has few.
pub const MAX_DISTINCT: usize = 16;
/// Bins per factor of two.
const PER_OCTAVE: usize = 8;
const BINS: usize = PER_OCTAVE * 62;

/// A histogram of intervals, with eight bins per factor of two.
#[derive(Clone, Debug)]
pub struct Intervals {
    bins: Vec<u64>,
    distinct: Option<Vec<(Span, u64)>>,
    count: u64,
    shortest: Span,
    max: Span,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals {
            bins: Vec::new(),
            distinct: Some(Vec::new()),
            count: 0,
            shortest: Span::MAX,
            max: Span::ZERO,
        }
    }
}

impl Intervals {
    pub(super) fn add(&mut self, interval: Span) {
        let bin = bin_of(interval.as_nanos());
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        if let Some(count) = self.bins.get_mut(bin) {
            *count += 1;
        }
        self.count += 1;
        self.shortest = self.shortest.min(interval);
        self.max = self.max.max(interval);
        let Some(distinct) = &mut self.distinct else { return };
        match distinct.binary_search_by_key(&interval, |d| d.0) {
            Ok(at) => {
                if let Some((_, count)) = distinct.get_mut(at) {
                    *count += 1;
                }
            }
            Err(at) if distinct.len() < MAX_DISTINCT => distinct.insert(at, (interval, 1)),
            Err(_) => self.distinct = None,
        }
    }

    /// Number of intervals: one less than packets.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Minimum and maximum; none without intervals.
    pub fn range(&self) -> Option<(Span, Span)> {
        (self.count > 0).then_some((self.shortest, self.max))
    }
    /// All non-empty bins in ascending order: lower bound, exclusive upper bound, count.
    pub fn bins(&self) -> impl Iterator<Item = (Span, Span, u64)> + '_ {
        let full = self.bins.iter().enumerate().filter(|(_, count)| **count > 0);
        full.map(|(bin, count)| {
            (Span::from_nanos(start_of(bin)), Span::from_nanos(start_of(bin + 1)), *count)
        })
    }
    /// All distinct values with their counts, if there are at most 16.
    pub fn distinct(&self) -> Option<&[(Span, u64)]> {
        self.distinct.as_deref()
    }
    /// Lower bound of the bin with the median; none without intervals.
    pub fn median(&self) -> Option<Span> {
        let mut left = self.count / 2;
        for (from, _, count) in self.bins() {
            if left < count {
                return Some(from.max(self.shortest));
            }
            left -= count;
        }
        None
    }
}

fn bin_of(nanos: u64) -> usize {
    if nanos < PER_OCTAVE as u64 {
        return nanos as usize;
    }
    let exponent = nanos.ilog2();
    let within = nanos >> (exponent - 3) & 7;
    (exponent as usize - 2) * PER_OCTAVE + within as usize
}

fn start_of(bin: usize) -> u64 {
    let (octave, within) = (bin / PER_OCTAVE, (bin % PER_OCTAVE) as u64);
    match octave {
        0 => within,
        octave if bin < BINS => (8 + within) << (octave - 1),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: each interval is counted once, in the right bin.
        #[test]
        fn bins_count_their_intervals(values in prop::collection::vec(prop_oneof![0u64..40, any::<u64>()], 1..80)) {
            let mut intervals = Intervals::default();
            for v in &values {
                intervals.add(Span::from_nanos(*v));
            }
            let mut end = Span::ZERO;
            for (from, to, count) in intervals.bins() {
                prop_assert!(from >= end && from < to);
                end = to;
                let inside = |v: &&u64| (from.as_nanos()..to.as_nanos()).contains(*v) || to == Span::MAX && **v == u64::MAX;
                prop_assert_eq!(values.iter().filter(inside).count() as u64, count);
            }
            prop_assert_eq!(intervals.bins().map(|b| b.2).sum::<u64>(), values.len() as u64);
            prop_assert_eq!(intervals.count(), values.len() as u64);
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let middle = sorted[values.len() / 2];
            let median = intervals.median().unwrap().as_nanos();
            prop_assert!(median <= middle && middle - median <= median / 8, "{} for {}", median, middle);
            prop_assert_eq!(intervals.range().map(|r| (r.0.as_nanos(), r.1.as_nanos())), Some((sorted[0], sorted[values.len() - 1])));
            sorted.dedup();
            match intervals.distinct() {
                Some(distinct) => {
                    prop_assert_eq!(distinct.iter().map(|d| d.1).sum::<u64>(), values.len() as u64);
                    prop_assert_eq!(distinct.iter().map(|d| d.0.as_nanos()).collect::<Vec<_>>(), sorted);
                }
                None => prop_assert!(sorted.len() > MAX_DISTINCT),
            }
        }
    }

    /// Breaks: bins neither overlap nor leave a gap.
    #[test]
    fn every_bin_begins_where_the_previous_one_ends() {
        for bin in 0..BINS {
            assert_eq!(bin_of(start_of(bin)), bin);
            assert_eq!(bin_of(start_of(bin + 1) - 1), bin);
        }
        assert_eq!(bin_of(u64::MAX), BINS - 1);
    }
}
