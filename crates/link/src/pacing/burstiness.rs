//! Burstiness of a flow: the queue that it builds at a bottleneck of exactly its mean rate (paper §4.1).

use farpace_units::{ByteCount, Rate};

/// The queue Q(t) of a virtual bottleneck, and its maximum, the burstiness. A flow is paced *precisely* if
/// its burstiness is at most two full frames.
///
/// Ticks may have any unit: nanoseconds, bytes on the wire, ticks of the clock of a capture. All arithmetic
/// is exact.
///
/// ```
/// use farpace_link::pacing::Burstiness;
/// use farpace_units::ByteCount;
///
/// // 1,500 B every 24 ticks; then two packets at once.
/// let mut q = Burstiness::new(ByteCount::new(1_500), 24);
/// for at in [0, 24, 48] {
///     q.arrive(at, ByteCount::new(1_500));
/// }
/// assert_eq!(q.peak(), ByteCount::new(1_500));
/// q.arrive(48, ByteCount::new(1_500));
/// assert_eq!(q.peak(), ByteCount::new(3_000));
/// ```
#[derive(Clone, Debug)]
pub struct Burstiness {
    /// The rate of the bottleneck: `bytes` per `ticks`.
    bytes: u64,
    ticks: u64,
    last: u64,
    /// Current and maximum queue in bytes, times `ticks`.
    queue: u128,
    peak: u128,
}

impl Burstiness {
    /// A bottleneck that transmits `bytes` in each `ticks` (0 counts as 1). The mean rate of n packets is the
    /// size of all but the last over the time from the first to the last.
    pub fn new(bytes: ByteCount, ticks: u64) -> Self {
        Burstiness { bytes: bytes.get(), ticks: ticks.max(1), last: 0, queue: 0, peak: 0 }
    }
    /// A bottleneck of `rate`; ticks are nanoseconds.
    pub fn at(rate: Rate) -> Self {
        Burstiness::new(ByteCount::new(rate.bits_per_sec()), 8_000_000_000)
    }
    /// A packet of `bytes` arrives. A `tick` before the previous one counts as the previous one.
    pub fn arrive(&mut self, tick: u64, bytes: ByteCount) {
        self.queue = self.left(tick);
        self.last = self.last.max(tick);
        self.queue = self.queue.saturating_add(u128::from(bytes.get()) * u128::from(self.ticks));
        self.peak = self.peak.max(self.queue);
    }
    /// The current queue in bytes, including the packet that has just arrived, rounded up.
    pub fn queue(&self) -> ByteCount {
        self.whole(self.queue)
    }
    /// The queue in bytes at `tick`, rounded up, if no packet arrives before.
    pub fn queue_at(&self, tick: u64) -> ByteCount {
        self.whole(self.left(tick))
    }
    /// The maximum queue in bytes, rounded up.
    pub fn peak(&self) -> ByteCount {
        self.whole(self.peak)
    }
    fn left(&self, tick: u64) -> u128 {
        let passed = tick.saturating_sub(self.last);
        self.queue.saturating_sub(u128::from(passed) * u128::from(self.bytes))
    }
    fn whole(&self, scaled: u128) -> ByteCount {
        ByteCount::new(u64::try_from(scaled.div_ceil(u128::from(self.ticks))).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the burstiness of ON-OFF traffic with period t is t (avg/max) (max - avg), as in the paper
    /// §4.1, plus the last packet, which counts in full when it arrives.
    #[test]
    fn on_off_traffic_has_the_papers_burstiness() {
        // In each 1,000 ticks: one packet of 10 B every 10 ticks, 10 times (1 B per tick), then silence: mean
        // 0.1 B per tick.
        let mut q = Burstiness::new(ByteCount::new(100), 1_000);
        for period in 0..50 {
            for packet in 0..10 {
                q.arrive(period * 1_000 + packet * 10, ByteCount::new(10));
            }
        }
        // 1000 x 0.1 x 0.9 = 90, plus 1 that drains during the last packet's own ten ticks.
        assert_eq!(q.peak(), ByteCount::new(91));
    }
}
