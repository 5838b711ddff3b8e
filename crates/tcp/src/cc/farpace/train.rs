//! What the first flight tells: sent as a burst, it passes the bottleneck back to back, and its ACKs come as
//! far apart as the bottleneck makes them.

use crate::cc::AckSample;
use farpace_units::Instant;

/// Intervals that are enough for a median.
const MAX_INTERVALS: usize = 4;
/// Intervals that are needed at least.
const MIN_INTERVALS: usize = 2;
/// A window grows at most so many times in one round trip on the word of a train.
pub const MAX_JUMP: f64 = 16.0;
/// The median may be faster than the whole train by this factor; beyond it ACKs came bunched.
const MAX_BUNCHING: f64 = 2.0;

/// The ACKs of a flight.
#[derive(Clone, Debug, Default)]
pub struct PacketTrain {
    /// What was delivered before the flight left.
    from: u64,
    /// What was delivered when its first ACK came: what left after that is another flight.
    until: Option<u64>,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Segments told by all ACKs but the first.
    after_first: f64,
    /// Segments a second, one for each interval.
    rates: Vec<f64>,
}

impl PacketTrain {
    /// The flight that leaves when this much has been delivered.
    pub fn after(delivered: u64) -> Self {
        PacketTrain { from: delivered, ..PacketTrain::default() }
    }

    /// An ACK; true when there is enough of them, or the next flight answers already.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        let told = f64::from(ack.delivered.get());
        let Some(rate) = ack.rate.filter(|r| r.prior_delivered >= self.from && told > 0.0) else {
            return false;
        };
        if self.until.is_some_and(|until| rate.prior_delivered >= until) {
            return true;
        }
        self.until.get_or_insert(rate.total_delivered);
        if let Some(last) = self.last {
            self.after_first += told;
            let gap = ack.now.since(last);
            if !gap.is_zero() {
                self.rates.push(told / gap.as_secs_f64());
            }
        }
        self.first.get_or_insert(ack.now);
        self.last = Some(ack.now);
        self.rates.len() >= MAX_INTERVALS
    }

    /// The rate in bytes a second; none if the ACKs were too few.
    pub fn rate(&self, mss: f64) -> Option<f64> {
        if self.rates.len() < MIN_INTERVALS {
            return None;
        }
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        let median = *rates.get(rates.len() / 2)?;
        let time = self.last?.since(self.first?).as_secs_f64();
        let whole = self.after_first / time.max(1e-9);
        Some(median.min(whole * MAX_BUNCHING) * mss)
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
}

/// Part of a paced train after which it is judged.
const JUDGED_PART: f64 = 7.0 / 8.0;

impl TrainPace {
    /// A train of `length` segments, whose first ACK has come. Then `delivered` segments were over the whole
    /// connection.
    pub fn begins(now: Instant, delivered: u64, length: f64) -> Self {
        TrainPace { until: delivered.saturating_add((length * JUDGED_PART) as u64), first: now, told: 0.0 }
    }

    /// An ACK of the train, `delivered` segments over the whole connection. When the train has arrived: its
    /// segments a second.
    pub fn on_ack(&mut self, ack: &AckSample, delivered: u64) -> Option<f64> {
        self.told += f64::from(ack.delivered.get());
        if delivered < self.until {
            return None;
        }
        let time = ack.now.since(self.first);
        // All at once: ACKs were gathered somewhere, and say nothing.
        Some(if time.is_zero() { 0.0 } else { self.told / time.as_secs_f64() })
    }
}
