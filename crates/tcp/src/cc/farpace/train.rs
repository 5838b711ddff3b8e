//! What the first flight tells: sent as a burst, it passes the bottleneck back to back, and its ACKs come as
//! far apart as the bottleneck makes them.

use crate::cc::AckSample;
use farpace_units::{Instant, Span};

/// Intervals that are enough for a median.
const MAX_INTERVALS: usize = 4;
/// Intervals that are needed at least.
const MIN_INTERVALS: usize = 2;
/// A window grows at most so many times in one round trip on the word of a train.
pub const MAX_JUMP: f64 = 16.0;
/// The median may be faster than the whole train by this factor; beyond it ACKs came bunched.
const MAX_BUNCHING: f64 = 2.0;
/// ACKs are one bunch where the time between them is so many times shorter than that between bunches.
const BUNCH: f64 = 8.0;
/// An ACK of one segment that comes so many times later than any before was delayed by the receiver.
const DELAYED: f64 = 8.0;
/// Intervals of a train that passed nothing but a line differ by less than this factor.
const MAX_UNEVENNESS: f64 = 1.5;

/// The ACKs of a flight.
#[derive(Clone, Debug, Default)]
pub struct PacketTrain {
    /// What was delivered before the flight left.
    from: u64,
    /// What was delivered when its first ACK came: what left after that is another flight.
    until: Option<u64>,
    first: Option<Instant>,
    last: Option<Instant>,
    /// The window held data back.
    limited: bool,
    /// Segments told by all ACKs but the first.
    after_first: f64,
    /// Segments told at the end of each interval, and its seconds.
    intervals: Vec<(f64, f64)>,
}

impl PacketTrain {
    /// The flight that leaves when this much has been delivered.
    pub fn after(delivered: u64) -> Self {
        PacketTrain { from: delivered, ..PacketTrain::default() }
    }

    /// An ACK; true when there is enough of them, it is the last, or the next flight answers already.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        let told = f64::from(ack.delivered.get());
        let Some(rate) = ack.rate.filter(|r| r.prior_delivered >= self.from && told > 0.0) else {
            return false;
        };
        if self.until.is_some_and(|until| rate.prior_delivered >= until) {
            return true;
        }
        self.until.get_or_insert(rate.total_delivered);
        self.limited |= ack.cwnd_limited;
        // Nothing more of this flight comes: the next one need not be waited for.
        self.add(told, ack.now) || ack.in_flight.is_zero()
    }

    /// An ACK of the flight that tells of so many segments; true when there is enough of them.
    fn add(&mut self, told: f64, now: Instant) -> bool {
        if let Some(last) = self.last {
            let gap = now.since(last).as_secs_f64();
            if self.is_delayed(told, gap) {
                return self.intervals.len() >= MIN_INTERVALS;
            }
            self.after_first += told;
            self.add_interval(told, gap);
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.intervals.len() >= MAX_INTERVALS
    }

    /// The receiver has waited for a second segment until its timer for delayed ACKs expired (RFC 5681
    /// section 4.2): the flight had an odd number of segments, and this is its end.
    fn is_delayed(&self, told: f64, gap: f64) -> bool {
        let longest = self.intervals.iter().map(|(_, gap)| *gap).fold(0.0, f64::max);
        told <= 1.0 && !self.intervals.is_empty() && gap > longest * DELAYED
    }

    /// Puts ACKs together that came as one bunch: a NIC hands over at once what has arrived since its last
    /// interrupt, and the time between two bunches is that in which the later one arrived.
    fn add_interval(&mut self, told: f64, gap: f64) {
        match self.intervals.as_mut_slice() {
            [] if gap <= 0.0 => {}
            [.., last] if gap * BUNCH < last.1 => *last = (last.0 + told, last.1 + gap),
            [first] if first.1 * BUNCH < gap => *first = (told, gap), // what came before was one bunch
            _ => self.intervals.push((told, gap)),
        }
    }

    /// The rate in bytes a second; none if the ACKs were too few.
    pub fn rate(&self, mss: f64) -> Option<f64> {
        if self.intervals.len() < MIN_INTERVALS {
            return None;
        }
        let mut rates: Vec<f64> = self.rates().collect();
        rates.sort_by(f64::total_cmp);
        let median = *rates.get(rates.len() / 2)?;
        let time = self.last?.since(self.first?).as_secs_f64();
        let whole = self.after_first / time.max(1e-9);
        Some(median.min(whole * MAX_BUNCHING) * mss)
    }

    /// The flight was a whole window, and not the few segments that a program had to send.
    pub fn is_whole(&self) -> bool {
        self.limited
    }

    /// Something else than the line made the distances of the ACKs: a NIC that gathers frames, other traffic,
    /// a way back that varies. The rate may be far from that of the line.
    pub fn is_uneven(&self) -> bool {
        let least = self.rates().fold(f64::INFINITY, f64::min);
        self.rates().any(|rate| rate > least * MAX_UNEVENNESS)
    }

    /// Segments a second in each interval.
    fn rates(&self) -> impl Iterator<Item = f64> {
        self.intervals.iter().map(|(told, seconds)| told / seconds)
    }
}

/// A train that leaves at a chosen rate, longer than the one before: does it arrive at that rate?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrainPace {
    /// Segments delivered when it has arrived, but for the last few: an ACK may be held back there.
    until: u64,
    first: Instant,
    /// Segments told by all ACKs but the first.
    told: f64,
    last: Instant,
    /// The longest time without an ACK, when it began, and segments told until then.
    pause: (Span, Instant, f64),
}

/// Segments of a train that was cut short that tell its rate.
const MIN_TOLD: f64 = 8.0;
/// A pause of this part of the time since its first ACK is the end of a train that was cut short.
const IDLE_PART: f64 = 0.25;
/// Part of a paced train after which it is judged.
const JUDGED_PART: f64 = 7.0 / 8.0;

impl TrainPace {
    /// A train of `length` segments, whose first ACK has come. Then `delivered` segments were over the whole
    /// connection.
    pub fn begins(now: Instant, delivered: u64, length: f64) -> Self {
        TrainPace {
            until: delivered.saturating_add((length * JUDGED_PART) as u64),
            first: now,
            told: 0.0,
            last: now,
            pause: (Span::ZERO, now, 0.0),
        }
    }

    /// Segments a second of a train that was cut short, when ACKs of the next flight come; none if they were
    /// too few.
    pub fn so_far(&self) -> Option<f64> {
        let (pause, paused, before) = self.pause;
        let all = self.last.since(self.first);
        // The line was idle until the next flight came.
        let is_idle = pause.as_secs_f64() >= IDLE_PART * all.as_secs_f64();
        let (time, told) = if is_idle { (paused.since(self.first), before) } else { (all, self.told) };
        (told >= MIN_TOLD && !time.is_zero()).then(|| told / time.as_secs_f64())
    }

    /// An ACK of the train, `delivered` segments over the whole connection. When the train has arrived: its
    /// segments a second.
    pub fn on_ack(&mut self, ack: &AckSample, delivered: u64) -> Option<f64> {
        if !ack.delivered.is_zero() {
            let pause = ack.now.since(self.last);
            if pause > self.pause.0 {
                self.pause = (pause, self.last, self.told);
            }
            (self.last, self.told) = (ack.now, self.told + f64::from(ack.delivered.get()));
        }
        if delivered < self.until {
            return None;
        }
        let time = ack.now.since(self.first);
        // All at once: ACKs were gathered somewhere, and say nothing.
        Some(if time.is_zero() { 0.0 } else { self.told / time.as_secs_f64() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A train whose ACKs tell of so many segments each after so many microseconds.
    fn train(acks: &[(f64, f64)]) -> PacketTrain {
        let mut train = PacketTrain::default();
        let mut now = Instant::ZERO;
        train.add(2.0, now);
        for &(told, micros) in acks {
            now += farpace_units::Span::from_nanos((micros * 1e3) as u64);
            train.add(told, now);
        }
        train
    }

    /// Breaks: the first flight of a program that writes an odd number of segments tells a tenth of the rate,
    /// because the receiver's delayed ACK of the last one passes for the line.
    #[test]
    fn a_delayed_ack_is_no_interval() {
        let rate = train(&[(2.0, 1830.0), (2.0, 480.0), (2.0, 490.0)]).rate(1_000.0).unwrap();
        let odd = train(&[(2.0, 1830.0), (2.0, 480.0), (2.0, 490.0), (1.0, 40_000.0)]);
        assert_eq!(odd.rate(1_000.0), Some(rate));
        assert!(!train(&[(2.0, 480.0), (2.0, 480.0), (1.0, 40_000.0)]).is_uneven());
        // ACKs of each segment are no delayed ones.
        let each = train(&[(1.0, 240.0), (1.0, 260.0), (1.0, 1_000.0)]);
        assert_eq!(each.intervals.len(), 3);
    }

    /// Breaks: behind NICs that gather frames a train tells half of the rate, or many times it. The ACKs of
    /// one bunch belong to one interval.
    #[test]
    fn acks_of_a_bunch_are_one_interval() {
        let even = train(&[(2.0, 240.0), (2.0, 240.0), (2.0, 240.0), (2.0, 240.0)]);
        assert!(!even.is_uneven());
        let rate = even.rate(1_000.0).unwrap();
        // The same segments in bunches of two ACKs, at one instant or a few microseconds apart, wherever the
        // flight begins.
        for within in [0.0, 3.0] {
            for first in [true, false] {
                let (short, long) = ((2.0, within), (2.0, 480.0 - within));
                let mut acks = vec![short, long, short, long, short, long];
                if !first {
                    acks.remove(0);
                }
                let bunched = train(&acks).rate(1_000.0).unwrap();
                assert!((bunched / rate - 1.0).abs() < 0.02, "{within} {first}: {bunched} and {rate}");
            }
        }
    }

    /// Breaks: a rate that other traffic or a NIC has changed passes for that of the line.
    #[test]
    fn uneven_intervals_are_seen() {
        assert!(train(&[(2.0, 240.0), (2.0, 400.0), (2.0, 240.0)]).is_uneven());
        assert!(!train(&[(2.0, 240.0), (4.0, 500.0), (2.0, 250.0)]).is_uneven());
    }
}
