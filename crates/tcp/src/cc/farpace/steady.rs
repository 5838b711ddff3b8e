//! After the start: following the queue, and coming down.

use super::loss::LossVerdict;
use super::path::QueueEstimate;
use super::share::BETA;
use super::{DRAIN, Farpace, MIN_ALPHA, MIN_WINDOW, Round};
use farpace_units::Instant;

/// Round trips without a queue after which alpha doubles.
const CALM_ROUNDS: u32 = 2;
/// So many times at most, where there is a queue that does not grow.
const YIELDING: u32 = 1;
/// Within these parts of the limit that was found last, the window grows by alpha only.
const SLOW: (f64, f64) = (0.9, 1.1);
/// Most that a window grows by in a round trip when it is doubling alpha.
const MAX_GROWTH: f64 = 0.25;
/// What a congestion mark leaves: it comes from a short queue (RFC 8511).
const BETA_MARK: f64 = 0.85;
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
    pub(super) fn follow(&mut self, now: Instant, round: &Round, queue: QueueEstimate) {
        if queue == QueueEstimate::Foreign {
            // What the suspicion has cost is not lost: as if they had come by a loss.
            self.w = self.share.show(now, self.w, self.path.before_others());
        }
        if self.share.holds(now) {
            return self.share_losses(now, round);
        }
        let empty = queue == QueueEstimate::Empty;
        let verdict = self.loss.judge(round.lost, round.delivered, empty);
        let waits = self.loss.is_looking() && verdict == LossVerdict::Usual;
        let probed = if waits { 0.0 } else { std::mem::take(&mut self.probed) };
        match verdict {
            _ if round.marked => {
                self.w *= BETA_MARK;
                self.calm = 0;
            }
            // Without a queue this is a policer's or the path's: what a window shows that is well below
            // tells which.
            LossVerdict::Congestion if empty => {
                self.probed = self.w;
                self.w = (self.w.min(self.holds(self.bandwidth).max(MIN_WINDOW)) * BETA).max(MIN_WINDOW);
                self.probe = None;
                self.calm = 0;
            }
            LossVerdict::Congestion => {
                self.cut_to_delivered();
                self.probe = None;
            }
            LossVerdict::Learned => self.w = self.w.max(probed),
            LossVerdict::Confirmed if probed > 0.0 => {
                self.w = self.share.cut(now, probed);
            }
            _ if waits && self.probed > 0.0 => {}
            _ if self.probe(round.limited) => {}
            LossVerdict::Usual | LossVerdict::Confirmed => self.follow_queue(round, queue),
        }
    }

    /// Beside others that know of congestion by losses alone.
    fn share_losses(&mut self, now: Instant, round: &Round) {
        self.calm = 0;
        (self.probe, self.probed) = (None, 0.0);
        if self.loss.is_overflow(round.lost, round.delivered) || round.marked {
            self.w = self.share.cut(now, self.w);
        } else if round.limited {
            let rtt = self.path.latest().unwrap_or_default();
            self.w = self.share.grow(now, rtt, self.w);
        }
    }

    /// Toward the window that keeps alpha in the queue.
    fn follow_queue(&mut self, round: &Round, queue: QueueEstimate) {
        let Some(rtt) = self.path.latest() else { return };
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
