//! What the first flight tells: sent as a burst, it passes the bottleneck back to back, and its ACKs come as far apart as
//! the bottleneck makes them.

use crate::cc::AckSample;
use farpace_units::Instant;

/// Intervals that are enough for a median.
const ENOUGH: usize = 4;
/// Intervals that are needed at least.
const NEEDED: usize = 3;
/// A window grows at most so many times in one round trip on the word of a train.
pub const MAX_JUMP: f64 = 16.0;
/// The median may be faster than the whole train by this factor; beyond it ACKs came bunched.
const BUNCHED: f64 = 2.0;

/// The ACKs of the first flight.
#[derive(Clone, Debug, Default)]
pub struct Train {
    /// Its length in segments.
    length: f64,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Segments told by all ACKs, and by all but the first.
    told: f64,
    after_first: f64,
    /// Segments a second, one for each interval.
    rates: Vec<f64>,
}

impl Train {
    /// So many segments are on their way.
    pub fn expect(&mut self, length: f64) {
        self.length = length;
    }

    /// An ACK; true when there is enough of them, or no more to come.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        let told = f64::from(ack.delivered.get());
        self.told += told + f64::from(ack.lost.get());
        if told > 0.0 {
            if let Some(last) = self.last {
                self.after_first += told;
                let gap = ack.now.since(last);
                if !gap.is_zero() {
                    self.rates.push(told / gap.as_secs_f64());
                }
            }
            self.first.get_or_insert(ack.now);
            self.last = Some(ack.now);
        }
        self.rates.len() >= ENOUGH || self.told >= self.length
    }

    /// The rate in bytes a second; none if the ACKs were too few.
    pub fn rate(&mut self, mss: f64) -> Option<f64> {
        if self.rates.len() < NEEDED {
            return None;
        }
        self.rates.sort_by(f64::total_cmp);
        let median = *self.rates.get(self.rates.len() / 2)?;
        let time = self.last?.since(self.first?).as_secs_f64();
        let whole = self.after_first / time.max(1e-9);
        Some(median.min(whole * BUNCHED) * mss)
    }
}
