//! Bytes per time bin, as a bandwidth meter counts them, and intervals with hardly any traffic.

use farpace_units::{ByteCount, Instant, Rate, Span};

/// The interval from `start` up to, but not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinInterval {
    /// The first instant of the interval.
    pub start: Instant,
    /// The first instant after the interval.
    pub end: Instant,
}

impl BinInterval {
    /// An interval; empty if `end` is not after `start`.
    pub const fn new(start: Instant, end: Instant) -> Self {
        BinInterval { start, end }
    }
    /// Its length.
    pub fn span(&self) -> Span {
        self.end.since(self.start)
    }
    /// True for an instant in the interval.
    pub fn contains(&self, at: Instant) -> bool {
        self.start <= at && at < self.end
    }
}

/// Number of bytes that passed a point in each time bin. The first bin begins at the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct BinnedSeries {
    bin: Span,
    bytes: Vec<ByteCount>,
}

impl BinnedSeries {
    /// A series of `bytes` per bin of width `bin` (zero becomes 1 ns).
    pub fn new(bin: Span, bytes: Vec<ByteCount>) -> Self {
        BinnedSeries { bin: if bin.is_zero() { Span::from_nanos(1) } else { bin }, bytes }
    }
    /// Width of a bin.
    pub fn bin(&self) -> Span {
        self.bin
    }
    /// The number of bytes in each bin.
    pub fn bytes(&self) -> &[ByteCount] {
        &self.bytes
    }
    /// End of the last bin.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.bin * self.bytes.len() as u64
    }
    /// The mean rate over all bins; zero if there are none.
    pub fn mean(&self) -> Rate {
        self.mean_from(0)
    }
    /// The mean rate from bin `first` on; zero if there are none.
    pub fn mean_from(&self, first: usize) -> Rate {
        let bytes = self.bytes.get(first..).unwrap_or_default();
        Rate::of(bytes.iter().copied().sum(), self.bin * bytes.len() as u64)
    }
    /// The rate in bin `index`; zero beyond the end.
    pub fn rate(&self, index: usize) -> Rate {
        self.bytes.get(index).map_or(Rate::default(), |b| Rate::of(*b, self.bin))
    }

    /// Intervals of at least `at_least` in which no bin contains more than `limit`. These are the
    /// communication stops of the paper (§3.2): one packet per round trip still passes, so `limit` should be
    /// one packet per bin. An interval may end with the series.
    pub fn silences(&self, limit: ByteCount, at_least: Span) -> Vec<BinInterval> {
        let mut found = Vec::new();
        let mut since: Option<u64> = None;
        let mut close = |from: u64, to: u64| {
            let interval = BinInterval::new(Instant::ZERO + self.bin * from, Instant::ZERO + self.bin * to);
            if interval.span() >= at_least {
                found.push(interval);
            }
        };
        for (i, bytes) in (0u64..).zip(&self.bytes) {
            match (since, *bytes <= limit) {
                (None, true) => since = Some(i),
                (Some(from), false) => {
                    close(from, i);
                    since = None;
                }
                _ => {}
            }
        }
        if let Some(from) = since {
            close(from, self.bytes.len() as u64);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(bytes: &[u64]) -> BinnedSeries {
        BinnedSeries::new(Span::from_millis(10), bytes.iter().map(|b| ByteCount::new(*b)).collect())
    }

    /// Breaks: silent intervals are found with their exact limits.
    #[test]
    fn silences_are_found() {
        let ms = |a, b| {
            BinInterval::new(Instant::ZERO + Span::from_millis(a), Instant::ZERO + Span::from_millis(b))
        };
        let s = series(&[0, 9000, 0, 1500, 0, 9000, 0, 0]);
        assert_eq!(s.silences(ByteCount::new(1500), Span::from_millis(20)), vec![ms(20, 50), ms(60, 80)]);
        assert_eq!(s.silences(ByteCount::new(1500), Span::from_millis(31)), vec![]);
        assert_eq!(series(&[]).silences(ByteCount::new(1500), Span::ZERO), vec![]);
    }

    /// Breaks: bandwidth in figures has the right unit.
    #[test]
    fn rates_are_bits_per_second() {
        let s = series(&[625_000, 0]);
        assert_eq!(s.rate(0), Rate::from_mbit(500));
        assert_eq!(s.mean(), Rate::from_mbit(250));
        assert_eq!(s.rate(7), Rate::default());
        let late = series(&[0, 0, 625_000, 0]);
        assert_eq!((late.mean_from(2), late.mean_from(9)), (Rate::from_mbit(250), Rate::default()));
    }
}
