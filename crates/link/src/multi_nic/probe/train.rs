//! Probe trains: a few back-to-back frames of full length. Their distance on arrival shows the rate of the
//! path before it is used.

use super::message::ProbeTraffic;
use farpace_units::{Instant, Rate, Span};

/// Maximum and minimum number of frames. In between, the train takes `TIME` to send.
const MAX_FRAMES: u64 = 16;
const MIN_FRAMES: u64 = 4;
const TIME: Span = Span::from_millis(5);
/// The distance on arrival must exceed that at the sender by this many standard errors.
const MIN_STANDARD_ERRORS: f64 = 4.0;
/// And by this factor.
const MIN_STRETCH: f64 = 1.05;

/// A probe train.
#[derive(Clone, Debug)]
pub(super) struct ProbeTrain {
    nominal: Rate,
    /// Number of frames still to be sent.
    left: u64,
    /// Arrival times in seconds since the first, with the bytes received by then.
    arrivals: Vec<(f64, f64)>,
    first: Option<(Instant, ProbeTraffic)>,
}

impl ProbeTrain {
    /// A train for a path of this nominal rate.
    pub fn new(nominal: Rate) -> ProbeTrain {
        let fit = TIME.as_nanos().checked_div(nominal.time_for(super::delays::LONG).as_nanos());
        let left = fit.unwrap_or(MAX_FRAMES).clamp(MIN_FRAMES, MAX_FRAMES);
        ProbeTrain { nominal, left, arrivals: Vec::new(), first: None }
    }
    /// True if more frames are to be sent.
    pub const fn wants(&self) -> bool {
        self.left > 0
    }
    /// A frame has been sent.
    pub fn on_sent(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
    /// A frame has arrived, at `arrived_at` by the neighbour's clock.
    pub fn on_reply(&mut self, arrived_at: Instant, received: ProbeTraffic) {
        let (at, before) = *self.first.get_or_insert((arrived_at, received));
        if let Some(more) = received.since(before) {
            self.arrivals.push((arrived_at.since(at).as_secs_f64(), more.bytes.get() as f64));
        }
    }
    /// The rate of the path, at most the nominal one: the upper bound that fits the arrivals. None: too few
    /// have arrived, or it was returned before.
    pub fn take_rate(&mut self) -> Option<Rate> {
        let arrivals = std::mem::take(&mut self.arrivals);
        if arrivals.len() < MIN_FRAMES as usize {
            return None;
        }
        let n = arrivals.len() as f64;
        // Linear regression of seconds over bytes. The slope is the time per byte.
        let mean = |of: fn(&(f64, f64)) -> f64| arrivals.iter().map(of).sum::<f64>() / n;
        let (time, bytes) = (mean(|(t, _)| *t), mean(|(_, b)| *b));
        let sum =
            |of: &dyn Fn(f64, f64) -> f64| arrivals.iter().map(|(t, b)| of(t - time, b - bytes)).sum::<f64>();
        let spread = sum(&|_, b| b * b);
        let slope = sum(&|t, b| t * b) / spread;
        let error = (sum(&|t, b| (t - slope * b) * (t - slope * b)) / (n - 2.0) / spread).sqrt();
        let pace = slope - MIN_STANDARD_ERRORS * error;
        let slower = pace * self.nominal.as_bytes_per_sec_f64() > MIN_STRETCH;
        Some(if slower { Rate::from_bytes_per_sec_f64(1.0 / pace) } else { self.nominal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::RandomStream;

    /// The rate that a train measures on a link of `mbit` Mbit/s with this jitter.
    fn measured(mbit: u64, jitter_us: u64, lost: &[u64], seed: u64) -> Option<u64> {
        let mut train = ProbeTrain::new(Rate::from_mbit(1_000));
        let mut rng = RandomStream::new(seed, "jitter");
        let pace = Rate::from_mbit(mbit).time_for(super::super::delays::LONG);
        let (mut at, mut received, mut n) = (Instant::from_nanos(5), ProbeTraffic::default(), 0);
        while train.wants() {
            train.on_sent();
            n += 1;
            if lost.contains(&n) {
                continue;
            }
            received.add(super::super::delays::LONG);
            let late = Span::from_nanos(rng.next_u64() % (jitter_us * 1_000 + 1));
            at = at.max(Instant::from_nanos(5) + pace * n + late);
            train.on_reply(at, received);
        }
        let slower = train.take_rate().filter(|rate| *rate < Rate::from_mbit(1_000));
        slower.map(|rate| rate.bits_per_sec() / 1_000_000)
    }

    /// Breaks: a slow link behind a fast NIC is detected before it is overloaded, and a fast path is not
    /// mistaken for a slow one.
    #[test]
    fn the_rate_of_the_slowest_link_is_found() {
        assert_eq!(measured(1_000, 0, &[], 1), None);
        assert_eq!(measured(100, 0, &[], 1), Some(100));
        assert_eq!(
            measured(10, 0, &[3, 7, 8], 1),
            Some(9),
            "8 Mbit/s of the frames sent, but the arrivals count"
        );
        for seed in 0..100 {
            let slow = measured(10, 2_000, &[], seed).expect("the path is much slower");
            assert!((10..=16).contains(&slow), "{slow} Mbit/s");
            let fast = measured(1_000, 2_000, &[], seed);
            assert!(fast.is_none_or(|rate| rate > 100), "{fast:?}");
        }
    }

    /// Breaks: a train does not block a slow NIC for long.
    #[test]
    fn trains_on_slow_nics_are_short() {
        let frames = |mbit| ProbeTrain::new(Rate::from_mbit(mbit)).left;
        assert_eq!([1, 10, 50, 100, 100_000].map(frames), [4, 4, 16, 16, 16]);
        assert_eq!(ProbeTrain::new(Rate::from_mbit(1)).take_rate(), None, "no arrivals");
    }
}
