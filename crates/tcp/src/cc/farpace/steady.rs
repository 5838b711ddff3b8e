//! After the start: following the queue, and coming down.

use super::path::QueueEstimate;
use super::{DRAIN, Farpace, MIN_ALPHA, MIN_WINDOW, Round};
use farpace_units::Span;

/// Round trips without a queue after which alpha doubles.
const CALM_ROUNDS: u32 = 2;
/// So many times at most, where there is a queue that does not grow.
const YIELDING: u32 = 1;
/// Within these parts of the limit that was found last, the window grows by alpha only.
const SLOW: (f64, f64) = (0.9, 1.1);
/// Most that a window grows by in a round trip when it is doubling alpha.
const MAX_GROWTH: f64 = 0.25;
/// What a loss leaves of the window beside others that fill the queue.
const BETA: f64 = 0.7;
/// What a congestion mark leaves: it comes from a short queue (RFC 8511).
const BETA_MARK: f64 = 0.85;
/// Growth beside others that fill the queue, in a round trip or in this time, whichever is longer: CUBIC grows by the clock.
const COMPETE: f64 = 0.04;
const COMPETE_TIME: Span = Span::from_millis(100);
/// Least such growth in segments a round trip: that of Reno for a window that falls to BETA (RFC 9438 §4.3).
const RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

impl Farpace {
    pub(super) fn cut_to_delivered(&mut self) {
        if self.bandwidth > 0.0 {
            self.limit = self.holds(self.bandwidth).min(self.w);
            self.w = self.w.min(self.limit * DRAIN).max(MIN_WINDOW);
        }
        self.calm = 0;
    }

    /// How much more than alpha the window may grow by, where there is no queue: twice as much each round trip, but not
    /// where the limit was found last.
    fn haste(&self) -> f64 {
        if (self.limit * SLOW.0..self.limit * SLOW.1).contains(&self.w) {
            return 1.0;
        }
        f64::from(1u32 << self.calm.saturating_sub(CALM_ROUNDS).min(30))
    }

    /// A round trip is over.
    pub(super) fn follow(&mut self, round: &Round, queue: QueueEstimate) {
        if queue == QueueEstimate::Foreign {
            self.calm = 0;
            if self.loss.is_overflow(round.lost, round.delivered) || round.marked {
                self.w *= BETA;
            } else if round.limited {
                let rtt = self.path.latest().unwrap_or(COMPETE_TIME).min(COMPETE_TIME);
                let part = COMPETE * rtt.as_secs_f64() / COMPETE_TIME.as_secs_f64();
                self.w += (part * self.w).max(RENO);
            }
            return;
        }
        let congested = self.loss.is_congestion(round.lost, round.delivered, queue == QueueEstimate::Empty);
        if round.marked {
            self.w *= BETA_MARK;
            self.calm = 0;
        } else if congested {
            self.cut_to_delivered();
        } else if let Some(rtt) = self.path.latest() {
            let longer = self.calm.saturating_add(1);
            self.calm = match queue {
                QueueEstimate::Empty => longer,
                _ if self.path.yields(self.alpha()) => longer.min(CALM_ROUNDS + YIELDING),
                _ => 0,
            };
            let most = (self.w * MAX_GROWTH).max(MIN_ALPHA);
            let alpha = (self.alpha() * self.haste()).min(most);
            let target = self.w * self.path.base().as_secs_f64() / rtt.as_secs_f64().max(1e-9) + alpha;
            if round.limited {
                self.w += (target - self.w) / 2.0;
            } else {
                self.calm = 0; // a window that is not used says nothing, and is no reason for a queue
            }
        }
    }
}
