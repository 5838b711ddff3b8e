//! Round trips of a whole transfer, thinned out, to rank one of them among all.

use farpace_units::Span;

/// Samples that are kept. Beyond them every second one goes, again and again.
const MAX_KEPT: usize = 1_024;
/// Without so many, none has a rank.
const MIN_KEPT: usize = 16;

/// Round trips between the capture point and the receiver.
#[derive(Debug, Default)]
pub struct FarTrips {
    /// In microseconds; longer ones than an hour are no round trips.
    kept: Vec<u32>,
    seen: u64,
    stride: u64,
}

impl FarTrips {
    /// Memory on the heap, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<u32>()
    }

    /// Nothing follows: room for more goes.
    pub(super) fn shrink(&mut self) {
        self.kept.shrink_to_fit();
    }

    pub(super) fn add(&mut self, span: Span) {
        self.seen += 1;
        if !self.seen.is_multiple_of(self.stride.max(1)) {
            return;
        }
        if self.kept.len() >= MAX_KEPT {
            self.stride = self.stride.max(1) * 2;
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
        }
        self.kept.push(micros(span));
    }

    /// Those that are kept, in order of their lengths.
    pub(crate) fn sorted(&self) -> RankedTrips {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        RankedTrips(sorted)
    }
}

/// Round trips in order of their lengths, in microseconds.
pub(crate) struct RankedTrips(Vec<u32>);

impl RankedTrips {
    /// The share of them that is shorter, 0 to 1. Equal ones count half. None if there are too few.
    pub(crate) fn rank(&self, span: Span) -> Option<f64> {
        let own = micros(span);
        let (shorter, not_longer) =
            (self.0.partition_point(|t| *t < own), self.0.partition_point(|t| *t <= own));
        (self.0.len() >= MIN_KEPT).then(|| (shorter + not_longer) as f64 / (2 * self.0.len()) as f64)
    }
}

fn micros(span: Span) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a long transfer takes memory without end, or ranks later round trips among early ones alone.
    #[test]
    fn ranks_are_those_among_all() {
        let mut trips = FarTrips::default();
        assert_eq!(trips.sorted().rank(Span::from_millis(1)), None);
        (0..100_000u64).for_each(|n| trips.add(Span::from_micros(n)));
        assert!(trips.kept.len() <= MAX_KEPT && trips.kept.len() * 2 >= MAX_KEPT);
        let rank = |micros| trips.sorted().rank(Span::from_micros(micros)).unwrap_or_default();
        assert!((rank(25_000) - 0.25).abs() < 0.01);
        assert!((rank(90_000) - 0.9).abs() < 0.01);
        let mut same = FarTrips::default();
        (0..20).for_each(|_| same.add(Span::from_millis(7)));
        assert_eq!(same.sorted().rank(Span::from_millis(7)), Some(0.5), "equal ones");
    }
}
