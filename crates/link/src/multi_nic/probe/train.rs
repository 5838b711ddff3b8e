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
/// Frames that left this many times farther apart than a NIC of the nominal rate sends do not show that the
/// path carries that rate.
const MAX_SPACING: f64 = 1.5;

/// A frame of a train that has arrived, relative to the first one: seconds at the sender and at the receiver,
/// each by its own clock, and bytes that the receiver has got on the path.
#[derive(Clone, Copy, Debug)]
struct TrainArrival {
    sent: f64,
    arrived: f64,
    bytes: f64,
}

/// A probe train.
#[derive(Clone, Debug)]
pub(super) struct ProbeTrain {
    nominal: Rate,
    /// Number of frames still to be sent.
    left: u64,
    arrivals: Vec<TrainArrival>,
    /// When the first frame that has arrived left, and when it arrived, and what had been received by then.
    first: Option<(Instant, Instant, ProbeTraffic)>,
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
    /// A frame has arrived that left at `sent_at`, at `arrived_at` by the neighbour's clock.
    pub fn on_reply(&mut self, sent_at: Instant, arrived_at: Instant, received: ProbeTraffic) {
        let (left, at, before) = *self.first.get_or_insert((sent_at, arrived_at, received));
        if let Some(more) = received.since(before) {
            self.arrivals.push(TrainArrival {
                sent: sent_at.since(left).as_secs_f64(),
                arrived: arrived_at.since(at).as_secs_f64(),
                bytes: more.bytes.get() as f64,
            });
        }
    }
    /// The rate of the path, at most the nominal one: the upper bound that fits the arrivals. It is the
    /// nominal one if frames arrive no slower than they left, or than a NIC of this rate sends: other frames
    /// of this host may leave between those of the train. None: too few have arrived, or it was returned
    /// before, or the frames left too far apart to tell.
    pub fn take_rate(&mut self) -> Option<Rate> {
        let arrivals = std::mem::take(&mut self.arrivals);
        if arrivals.len() < MIN_FRAMES as usize {
            return None;
        }
        let (left, _) = pace(&arrivals, |row| row.sent);
        let (pace, error) = pace(&arrivals, |row| row.arrived);
        let pace = pace - MIN_STANDARD_ERRORS * error;
        let nominal = 1.0 / self.nominal.as_bytes_per_sec_f64();
        if pace > MIN_STRETCH * left.max(nominal) {
            return Some(Rate::from_bytes_per_sec_f64(1.0 / pace));
        }
        (left <= MAX_SPACING * nominal).then_some(self.nominal)
    }
}

/// Linear regression of a time over bytes: its slope, which is the seconds per byte, and the standard error
/// of that.
fn pace(arrivals: &[TrainArrival], time: fn(&TrainArrival) -> f64) -> (f64, f64) {
    let n = arrivals.len() as f64;
    let mean = |of: fn(&TrainArrival) -> f64| arrivals.iter().map(of).sum::<f64>() / n;
    let (mean_time, mean_bytes) = (mean(time), mean(|row| row.bytes));
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        arrivals.iter().map(|row| of(time(row) - mean_time, row.bytes - mean_bytes)).sum::<f64>()
    };
    let spread = sum(&|_, b| b * b);
    let slope = sum(&|t, b| t * b) / spread;
    (slope, (sum(&|t, b| (t - slope * b) * (t - slope * b)) / (n - 2.0) / spread).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::{ByteCount, RandomStream};

    /// The rate that a train measures on a link of `mbit` Mbit/s with this jitter, below that of the NIC.
    fn measured(mbit: u64, jitter_us: u64, lost: &[u64], seed: u64) -> Option<u64> {
        measured_between(mbit, jitter_us, lost, seed, ByteCount::ZERO)
    }
    /// So many bytes of other frames leave before each frame of the train.
    fn measured_between(
        mbit: u64,
        jitter_us: u64,
        lost: &[u64],
        seed: u64,
        between: ByteCount,
    ) -> Option<u64> {
        let mut train = ProbeTrain::new(Rate::from_mbit(1_000));
        let mut rng = RandomStream::new(seed, "jitter");
        let long = super::super::delays::LONG;
        let pace = Rate::from_mbit(mbit).time_for(long + between);
        let leaves = Rate::from_mbit(1_000).time_for(long + between);
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
            train.on_reply(Instant::from_nanos(9) + leaves * n, at, received);
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

    /// Breaks: frames of this host that leave between those of the train, replies to the train of the other
    /// host above all, do not make an idle path look slower than its NICs.
    #[test]
    fn other_frames_between_those_of_a_train_are_not_the_path() {
        for between in [118, 126, 1_538] {
            assert_eq!(measured_between(1_000, 0, &[], 1, ByteCount::new(between)), None, "{between} bytes");
        }
        let far_apart = |bytes| {
            let mut train = ProbeTrain::new(Rate::from_mbit(1_000));
            let mut received = ProbeTraffic::default();
            for n in 0..8 {
                received.add(super::super::delays::LONG);
                let at = Instant::ZERO + Rate::from_mbit(1_000).time_for(ByteCount::new(bytes)) * n;
                train.on_reply(at, at, received);
            }
            train.take_rate()
        };
        assert_eq!(far_apart(1_538 + 126), Some(Rate::from_mbit(1_000)));
        assert_eq!(far_apart(1_538 * 2), None, "the path may be slower than its NICs");
        let slow = measured_between(100, 0, &[], 1, ByteCount::new(118)).expect("the path is much slower");
        assert!((90..=100).contains(&slow), "{slow} Mbit/s");
    }

    /// Breaks: a train does not block a slow NIC for long.
    #[test]
    fn trains_on_slow_nics_are_short() {
        let frames = |mbit| ProbeTrain::new(Rate::from_mbit(mbit)).left;
        assert_eq!([1, 10, 50, 100, 100_000].map(frames), [4, 4, 16, 16, 16]);
        assert_eq!(ProbeTrain::new(Rate::from_mbit(1)).take_rate(), None, "no arrivals");
    }
}
