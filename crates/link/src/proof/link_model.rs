//! The rate of the link, if it is not configured.

use super::rates::Past;
use farpace_units::{ByteCount, Instant, Rate, Span};

/// Common link rates in Mbit/s.
const RATES: [u64; 11] = [10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 100_000, 200_000, 400_000];
/// Number of consecutive frames that are measured: enough to average out jitter of the clock.
const FRAMES: u64 = 10;

/// The link on which frames were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// Its rate.
    pub rate: Rate,
    /// True if it was not configured: it is the lowest common rate at which the closest frames of one sender
    /// fit.
    pub assumed: bool,
}

/// The minimum distance of frames of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinDistance {
    past: Past<{ FRAMES as usize }>,
    last: Instant,
    max_rate: Option<Rate>,
}

impl MinDistance {
    /// A frame with a wire length of `bytes`.
    pub fn frame(&mut self, time: Instant, bytes: ByteCount, tick: Span) {
        // A decreasing clock yields no rate.
        self.last = self.last.max(time);
        let (ten, nine) = (self.past.back(FRAMES, self.last), self.past.back(FRAMES - 1, self.last));
        if let (Some((ten, nanos)), Some((nine, _))) = (ten, nine) {
            let span = Span::from_nanos(nanos) + tick;
            // Time stamps may mark the beginning of frames or their end. So between the first and this one,
            // either the first frame has passed or this one.
            let passed = nine + bytes.get().min(ten - nine);
            let rate = match span.is_zero() {
                true => Rate::from_bits_per_sec(u64::MAX),
                false => Rate::of(ByteCount::new(passed), span),
            };
            self.max_rate = self.max_rate.max(Some(rate));
        }
        self.past.push(self.last, bytes);
    }
    /// The highest rate of ten consecutive frames.
    pub fn max_rate(&self) -> Option<Rate> {
        self.max_rate
    }
}

/// The lowest common link rate of at least `rate`.
pub(super) fn assumed(rate: Rate) -> Option<LinkModel> {
    let rate = RATES.into_iter().map(Rate::from_mbit).find(|common| *common >= rate)?;
    Some(LinkModel { rate, assumed: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the derived rate is high enough for the frames, and jitter of the clock does not raise it.
    #[test]
    fn ten_frames_yield_the_link_rate() {
        let derived = |gap: u64, tick: u64, jitter: u64| {
            let mut closest = MinDistance::default();
            for i in 0..100 {
                let time = Instant::from_nanos(i * gap + i % 2 * jitter);
                closest.frame(time, ByteCount::new(1_538), Span::from_nanos(tick));
            }
            closest.max_rate().and_then(assumed).map(|derived| derived.rate.as_mbit_f64())
        };
        assert_eq!(derived(12_304, 0, 0), Some(1_000.0));
        assert_eq!(derived(12_303, 0, 0), Some(2_500.0));
        assert_eq!(derived(12_303, 60, 0), Some(1_000.0), "within the resolution of the clock");
        assert_eq!(derived(13_000, 0, 12_000), Some(1_000.0));
        assert_eq!(derived(1_000_000, 0, 0), Some(100.0));
        assert_eq!(derived(0, 0, 0), None);
    }

    /// Breaks: time stamps at the end of frames do not raise the derived rate: alternating long and short
    /// frames on 1 Gbit/s.
    #[test]
    fn stamps_may_be_those_of_ends() {
        let mut closest = MinDistance::default();
        let mut now = 0;
        for i in 0..100u64 {
            let bytes = if i % 7 == 0 { 84 } else { 1_538 };
            now += bytes * 8;
            closest.frame(Instant::from_nanos(now), ByteCount::new(bytes), Span::from_nanos(1));
        }
        assert_eq!(
            closest.max_rate().and_then(assumed).map(|derived| derived.rate),
            Some(Rate::from_mbit(1_000))
        );
    }
}
