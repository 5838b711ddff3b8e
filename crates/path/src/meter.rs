//! A meter of bandwidth: bytes and packets per bin of time.

use farpace_units::{ByteCount, Instant, Rate, Span};

/// What passed in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterBin {
    /// Bytes, as the caller counts them.
    pub bytes: ByteCount,
    /// Packets.
    pub packets: u64,
}

/// Counts what passes a point, per bin of time. It is not an element: an observer of a wire calls it.
///
/// Memory is bounded: a run of more than [`Meter::MAX_BINS`] bins doubles the width of the bins, as often as
/// needed, so that no byte is lost; [`width`](Meter::width) returns the width.
#[derive(Clone, Debug)]
pub struct Meter {
    width: Span,
    bins: Vec<MeterBin>,
    /// The end of the last bin of `bins`.
    end: Instant,
    total: MeterBin,
}

impl Meter {
    /// Most bins: 16 MiB of memory, or nearly three hours at 10 ms.
    pub const MAX_BINS: usize = 1 << 20;

    /// Bins of `width`, the first one beginning at the start of the run. A width of zero counts as 1 ns.
    pub fn new(width: Span) -> Self {
        let width = width.max(Span::from_nanos(1));
        Meter { width, bins: Vec::new(), end: Instant::ZERO, total: MeterBin::default() }
    }
    /// A packet of `len` passes at `now`; never earlier than the one before it.
    pub fn record(&mut self, now: Instant, len: ByteCount) {
        if now >= self.end {
            self.open_bin(now);
        }
        for bin in self.bins.last_mut().into_iter().chain([&mut self.total]) {
            bin.bytes += len;
            bin.packets += 1;
        }
    }
    /// Width of a bin: the configured one, or a power of two times it.
    pub const fn width(&self) -> Span {
        self.width
    }
    /// The bins from the start of the run up to the last packet.
    pub fn bins(&self) -> &[MeterBin] {
        &self.bins
    }
    /// All that has passed.
    pub const fn total(&self) -> MeterBin {
        self.total
    }
    /// The mean rate in each bin, with the instant at which the bin begins.
    pub fn rates(&self) -> impl Iterator<Item = (Instant, Rate)> + '_ {
        let starts = (0u64..).map(|n| Instant::ZERO + self.width * n);
        starts.zip(&self.bins).map(|(start, bin)| (start, Rate::of(bin.bytes, self.width)))
    }

    /// Makes the bin of `now` the last one. The next bin, the usual case, needs no division.
    fn open_bin(&mut self, now: Instant) {
        let in_the_next = !self.bins.is_empty() && now.since(self.end) < self.width;
        let mut at =
            if in_the_next { self.bins.len() as u64 } else { now.as_nanos() / self.width.as_nanos() };
        while at >= Self::MAX_BINS as u64 {
            at /= 2;
            self.halve();
        }
        self.bins.resize(at as usize + 1, MeterBin::default());
        self.end = Instant::ZERO + self.width * (at + 1);
    }
    fn halve(&mut self) {
        self.width = self.width * 2;
        let halves = self.bins.chunks(2).map(|pair| MeterBin {
            bytes: pair.iter().map(|bin| bin.bytes).sum(),
            packets: pair.iter().map(|bin| bin.packets).sum(),
        });
        self.bins = halves.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const MS_10: Span = Span::from_millis(10);

    /// Breaks: the figure of bandwidth over time: a packet is counted in the wrong bin at an edge.
    #[test]
    fn a_bin_has_its_start_and_not_its_end() {
        let mut meter = Meter::new(MS_10);
        for (ns, len) in [(0, 1), (9_999_999, 2), (10_000_000, 4), (45_000_000, 8)] {
            meter.record(Instant::from_nanos(ns), ByteCount::new(len));
        }
        let bytes: Vec<_> = meter.bins().iter().map(|bin| bin.bytes.get()).collect();
        assert_eq!(bytes, [3, 4, 0, 0, 8]);
        assert_eq!(meter.total(), MeterBin { bytes: ByteCount::new(15), packets: 4 });
        let (start, rate) = meter.rates().last().unwrap();
        assert_eq!((start, rate.bits_per_sec()), (Instant::from_nanos(40_000_000), 6_400));
    }

    /// Breaks: a long or silent run takes unbounded memory, or loses what was counted.
    #[test]
    fn bins_become_wider_instead_of_more() {
        let mut meter = Meter::new(Span::from_nanos(1));
        meter.record(Instant::from_nanos(5), ByteCount::new(7));
        meter.record(Instant::from_nanos(u64::MAX), ByteCount::new(9));
        assert!(meter.bins().len() <= Meter::MAX_BINS);
        assert_eq!(meter.width().as_nanos().count_ones(), 1);
        assert_eq!(meter.bins()[0].bytes.get(), 7);
        assert_eq!(meter.bins().last().unwrap().bytes.get(), 9);
    }

    proptest! {
        /// Breaks: the bins disagree with counting by division, for any gaps between packets.
        #[test]
        fn bins_equal_a_recount(gaps in prop::collection::vec(0u64..5_000, 1..200), width in 1u64..2_000) {
            let mut meter = Meter::new(Span::from_nanos(width));
            let (mut now, mut expected) = (0, BTreeMap::new());
            for gap in gaps {
                now += gap;
                meter.record(Instant::from_nanos(now), ByteCount::new(3));
                *expected.entry(now / width).or_insert(0) += 1;
            }
            prop_assert_eq!(meter.bins().len() as u64, now / width + 1);
            for (n, bin) in meter.bins().iter().enumerate() {
                let packets = expected.get(&(n as u64)).copied().unwrap_or(0);
                prop_assert_eq!((bin.packets, bin.bytes.get()), (packets, packets * 3));
            }
        }
    }
}
