//! The rate of the line, if nobody says it.

use super::rates::Past;
use farpace_units::{ByteCount, Instant, Rate, Span};

/// Rates that lines have, in Mbit/s.
const RATES: [u64; 11] = [10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 100_000, 200_000, 400_000];
/// Frames in a row that are looked at: enough that a clock's jitter does not show.
const FRAMES: u64 = 10;

/// The line that frames were captured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkModel {
    /// Its rate.
    pub rate: Rate,
    /// Nobody has said it: it is the slowest common line that carries what came closest together of one sender.
    pub assumed: bool,
}

/// How close frames of one sender come together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Closest {
    past: Past<{ FRAMES as usize }>,
    last: Instant,
    most: Option<Rate>,
}

impl Closest {
    /// A frame that takes so many bytes of the line.
    pub fn frame(&mut self, time: Instant, bytes: ByteCount, tick: Span) {
        // A clock that goes back says nothing.
        self.last = self.last.max(time);
        let (ten, nine) = (self.past.back(FRAMES, self.last), self.past.back(FRAMES - 1, self.last));
        if let (Some((ten, nanos)), Some((nine, _))) = (ten, nine) {
            let span = Span::from_nanos(nanos) + tick;
            // A sender's clock stamps where frames begin, a receiver's may where they end: from the first to this one, either
            // the first has passed or this one has.
            let passed = nine + bytes.get().min(ten - nine);
            let rate = match span.is_zero() {
                true => Rate::from_bits_per_sec(u64::MAX),
                false => Rate::of(ByteCount::new(passed), span),
            };
            self.most = self.most.max(Some(rate));
        }
        self.past.push(self.last, bytes);
    }
    /// The rate of the closest ten, at least.
    pub fn most(&self) -> Option<Rate> {
        self.most
    }
}

/// The slowest common line that carries `rate`.
pub(super) fn assumed(rate: Rate) -> Option<LinkModel> {
    let rate = RATES.into_iter().map(Rate::from_mbit).find(|line| *line >= rate)?;
    Some(LinkModel { rate, assumed: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the line of a capture is taken for a slower one than its frames need, or a jittering clock makes it faster.
    #[test]
    fn ten_frames_tell() {
        let line = |gap: u64, tick: u64, jitter: u64| {
            let mut closest = Closest::default();
            for i in 0..100 {
                let time = Instant::from_nanos(i * gap + i % 2 * jitter);
                closest.frame(time, ByteCount::new(1_538), Span::from_nanos(tick));
            }
            closest.most().and_then(assumed).map(|line| line.rate.as_mbit_f64())
        };
        assert_eq!(line(12_304, 0, 0), Some(1_000.0));
        assert_eq!(line(12_303, 0, 0), Some(2_500.0));
        assert_eq!(line(12_303, 60, 0), Some(1_000.0), "the clock ticks");
        assert_eq!(line(13_000, 0, 12_000), Some(1_000.0));
        assert_eq!(line(1_000_000, 0, 0), Some(100.0));
        assert_eq!(line(0, 0, 0), None);
    }

    /// Breaks: a capture behind the line, stamped where frames end, seems to come from a faster one: long and short frames in
    /// turn on 1 Gbit/s.
    #[test]
    fn stamps_may_be_those_of_ends() {
        let mut closest = Closest::default();
        let mut now = 0;
        for i in 0..100u64 {
            let bytes = if i % 7 == 0 { 84 } else { 1_538 };
            now += bytes * 8;
            closest.frame(Instant::from_nanos(now), ByteCount::new(bytes), Span::from_nanos(1));
        }
        assert_eq!(closest.most().and_then(assumed).map(|line| line.rate), Some(Rate::from_mbit(1_000)));
    }
}
