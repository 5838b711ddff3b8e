//! The long-term bandwidth of Linux (lt_bw): where two intervals in a row lose a fifth and more at the same
//! rate, a token bucket limits it. The sender then keeps to that rate for a while, and does not probe. ACKs
//! are samples, and timeouts.

use farpace_units::{Instant, Span};

/// Round trips of an interval: at least, and at most.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// The part of the delivered segments that is lost in an interval: 50 of 256.
const MIN_LOSS: f64 = 50.0 / 256.0;
/// Two rates are the same if they differ by this part, or by so many bytes per second.
const SAME_RATIO: f64 = 1.0 / 8.0;
const SAME_BYTES: f64 = 4_000.0 / 8.0;
/// Round trips for which the rate is kept.
const KEPT_ROUNDS: u32 = 48;

/// What an ACK tells, or a timeout.
#[derive(Clone, Copy, Debug)]
pub struct PolicerSample {
    /// When data was last known to be delivered: of an ACK, its arrival.
    pub delivered_at: Instant,
    /// A round trip begins.
    pub round_start: bool,
    /// Segments that are newly known to be lost.
    pub newly_lost: f64,
    /// Segments delivered over the whole connection.
    pub delivered: f64,
    /// Segments found lost over the whole connection.
    pub lost: f64,
    /// The program held data back.
    pub app_limited: bool,
    /// Bytes of a segment.
    pub mss: f64,
}

/// The search for a token bucket. Rates in bytes per second.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicerSearch {
    sampling: bool,
    rate: f64,
    used: bool,
    rounds: u32,
    since: Instant,
    delivered: f64,
    lost: f64,
}

impl PolicerSearch {
    /// The rate to keep to, if there is one.
    pub fn rate(&self) -> Option<f64> {
        self.used.then_some(self.rate)
    }

    /// Forgets all.
    pub fn reset(&mut self) {
        *self = PolicerSearch::default();
    }

    /// A sample; `probes`: the sender is in its cycle of gains. True: the rate was kept long enough, and the
    /// cycle begins anew.
    pub fn on_sample(&mut self, sample: &PolicerSample, probes: bool) -> bool {
        if self.used {
            self.rounds += u32::from(sample.round_start && probes);
            let over = sample.round_start && probes && self.rounds >= KEPT_ROUNDS;
            if over {
                self.reset();
            }
            return over;
        }
        if !self.sampling {
            // An interval begins with a loss, when the bucket is empty.
            if sample.newly_lost <= 0.0 {
                return false;
            }
            self.sampling = true;
            self.begin(sample);
        }
        self.rounds += u32::from(sample.round_start);
        if sample.app_limited || self.rounds > MAX_ROUNDS {
            self.reset();
            return false;
        }
        // It ends with one as well.
        if self.rounds < MIN_ROUNDS || sample.newly_lost <= 0.0 {
            return false;
        }
        let (delivered, lost) = (sample.delivered - self.delivered, sample.lost - self.lost);
        let time = sample.delivered_at.since(self.since);
        if delivered > 0.0 && lost >= MIN_LOSS * delivered && time >= Span::from_millis(1) {
            self.end(delivered * sample.mss / time.as_secs_f64(), sample);
        }
        false
    }

    fn end(&mut self, rate: f64, sample: &PolicerSample) {
        let apart = (rate - self.rate).abs();
        if self.rate > 0.0 && (apart <= SAME_RATIO * self.rate || apart <= SAME_BYTES) {
            (self.rate, self.used, self.rounds) = ((self.rate + rate) / 2.0, true, 0);
            return;
        }
        self.rate = rate;
        self.begin(sample);
    }

    fn begin(&mut self, sample: &PolicerSample) {
        (self.since, self.delivered, self.lost, self.rounds) =
            (sample.delivered_at, sample.delivered, sample.lost, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 10 ms with 20 segments delivered in each of `rounds`, and `lost` lost.
    fn run(search: &mut PolicerSearch, at: &mut PolicerSample, rounds: u32, lost: f64) -> bool {
        let mut over = false;
        for _ in 0..rounds {
            at.delivered_at += Span::from_millis(10);
            at.delivered += 20.0;
            at.lost += lost;
            let sample = PolicerSample { round_start: true, newly_lost: lost, ..*at };
            over |= search.on_sample(&sample, true);
        }
        over
    }

    fn begin() -> (PolicerSearch, PolicerSample) {
        let at = PolicerSample {
            delivered_at: Instant::ZERO,
            round_start: false,
            newly_lost: 0.0,
            delivered: 0.0,
            lost: 0.0,
            app_limited: false,
            mss: 1_000.0,
        };
        (PolicerSearch::default(), at)
    }

    /// Breaks: a policer is not recognised, or its rate is kept for ever.
    #[test]
    fn two_intervals_with_a_fifth_lost_are_a_policer() {
        let (mut search, mut at) = begin();
        run(&mut search, &mut at, 2 * MIN_ROUNDS - 1, 5.0);
        assert_eq!(search.rate(), None, "one interval");
        run(&mut search, &mut at, 1, 5.0);
        let rate = search.rate().expect("two of them");
        assert!((1.9e6..2.1e6).contains(&rate), "{rate}");
        assert!(!run(&mut search, &mut at, KEPT_ROUNDS - 1, 0.0) && search.rate().is_some());
        assert!(run(&mut search, &mut at, 1, 0.0) && search.rate().is_none());
    }

    /// Breaks: random losses are taken for a policer, and the sender does not probe for more.
    #[test]
    fn fewer_losses_are_none() {
        let (mut search, mut at) = begin();
        run(&mut search, &mut at, 100, 3.0);
        assert_eq!(search.rate(), None);
        let (mut search, mut at) = begin();
        at.app_limited = true;
        run(&mut search, &mut at, 100, 5.0);
        assert_eq!(search.rate(), None, "a program that held back says nothing of the path");
    }
}
