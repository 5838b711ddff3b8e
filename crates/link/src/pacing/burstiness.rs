//! How bursty a flow is: the queue that it makes before a line of exactly its mean rate (paper §4.1).

use farpace_units::{ByteCount, Rate};

/// The queue Q(t) of a virtual bottleneck, and its greatest value, the burstiness. A flow is paced *precisely* if that is
/// at most two full frames.
///
/// Time is counted in ticks of any kind: nanoseconds, bytes of a line, ticks of a capture's clock. All arithmetic is
/// exact.
///
/// ```
/// use farpace_link::pacing::Burstiness;
/// use farpace_units::ByteCount;
///
/// // 1,500 B every 24 ticks; then two at once.
/// let mut q = Burstiness::new(ByteCount::new(1_500), 24);
/// for at in [0, 24, 48] {
///     q.arrive(at, ByteCount::new(1_500));
/// }
/// assert_eq!(q.most(), ByteCount::new(1_500));
/// q.arrive(48, ByteCount::new(1_500));
/// assert_eq!(q.most(), ByteCount::new(3_000));
/// ```
#[derive(Clone, Debug)]
pub struct Burstiness {
    /// The rate of the bottleneck: so many bytes per so many ticks.
    bytes: u64,
    ticks: u64,
    last: u64,
    /// Bytes in the queue, and the most so far, times `ticks`.
    queue: u128,
    most: u128,
}

impl Burstiness {
    /// Before a line that takes `bytes` in each `ticks` (0 counts as 1). For n packets the mean rate is that of all but
    /// the last over the time from the first to the last.
    pub fn new(bytes: ByteCount, ticks: u64) -> Self {
        Burstiness { bytes: bytes.get(), ticks: ticks.max(1), last: 0, queue: 0, most: 0 }
    }
    /// Before a line of `rate`; ticks are nanoseconds.
    pub fn at(rate: Rate) -> Self {
        Burstiness::new(ByteCount::new(rate.bits_per_sec()), 8_000_000_000)
    }
    /// A packet of so many bytes comes. Ticks do not go back; an earlier one counts as the last.
    pub fn arrive(&mut self, tick: u64, bytes: ByteCount) {
        self.queue = self.left(tick);
        self.last = self.last.max(tick);
        self.queue = self.queue.saturating_add(u128::from(bytes.get()) * u128::from(self.ticks));
        self.most = self.most.max(self.queue);
    }
    /// What is in the queue now, the packet that has just come included, rounded up.
    pub fn queue(&self) -> ByteCount {
        self.whole(self.queue)
    }
    /// What will be in the queue at `tick`, rounded up, if nothing comes until then.
    pub fn queue_at(&self, tick: u64) -> ByteCount {
        self.whole(self.left(tick))
    }
    /// The most that was ever in the queue, rounded up.
    pub fn most(&self) -> ByteCount {
        self.whole(self.most)
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

    /// Breaks: the measure itself: ON-OFF traffic of period t has t (avg/max) (max - avg), as in the paper §4.1, and the
    /// packet that is counted whole when it comes.
    #[test]
    fn on_off_traffic_has_the_papers_burstiness() {
        // In each 1,000 ticks: 10 packets of 10 B every 10 ticks (1 B per tick), then silence: 0.1 B per tick.
        let mut q = Burstiness::new(ByteCount::new(100), 1_000);
        for period in 0..50 {
            for packet in 0..10 {
                q.arrive(period * 1_000 + packet * 10, ByteCount::new(10));
            }
        }
        // 1000 x 0.1 x 0.9 = 90, and what the last packet's own ten ticks would still drain, 1.
        assert_eq!(q.most(), ByteCount::new(91));
    }
}
