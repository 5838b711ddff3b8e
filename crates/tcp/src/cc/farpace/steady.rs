//! After the start: following the queue, and coming down.

use super::loss::{LossSample, LossVerdict};
use super::path::QueueEstimate;
use super::share::BETA;
use super::{DRAIN, Farpace, MIN_ALPHA, MIN_CWND, MIN_WINDOW, Round};
use farpace_units::Instant;

/// Round trips without a queue after which alpha doubles.
const CALM_ROUNDS: u32 = 2;
/// So many times at most, where there is a queue that does not grow.
const YIELD_ROUNDS: u32 = 1;
/// Within these parts of the limit that was found last, the window grows by alpha only.
const LIMIT_ZONE: (f64, f64) = (0.9, 1.1);
/// If a queue has told so, so many round trips without a queue there show that it is no limit, or no longer.
/// Behind a queue that is too short to be seen there never is one.
const LIMIT_ROUNDS: u32 = 5;
/// Most that a window grows by in a round trip when it is doubling alpha.
const MAX_GROWTH: f64 = 0.25;
/// What a congestion mark leaves: it comes from a short queue (RFC 8511).
const BETA_MARK: f64 = 0.85;
impl Farpace {
    /// `least`: the window that is left at least.
    pub(super) fn cut_to_delivered(&mut self, least: f64) {
        self.was_full = true;
        if self.bandwidth > 0.0 {
            self.limit = self.window_for(self.bandwidth).min(self.w);
            self.limit_by_queue = false;
            self.w = self.w.min((self.limit * DRAIN).max(least));
        }
        self.calm = 0;
    }

    /// How much more than alpha the window may grow by, where there is no queue: twice as much each round
    /// trip, but not where the limit was found last.
    fn haste(&self) -> f64 {
        if (self.limit * LIMIT_ZONE.0..self.limit * LIMIT_ZONE.1).contains(&self.w) {
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
            self.path.ignore_window();
            return self.share_losses(now, round);
        }
        let verdict = self.loss.judge(&self.loss_sample(round, queue));
        let is_queue_alone = matches!(verdict, LossVerdict::Usual | LossVerdict::Waits) && !round.marked;
        if !is_queue_alone || !round.limited {
            self.path.ignore_window();
        }
        self.was_full |= queue != QueueEstimate::Empty || round.marked || verdict == LossVerdict::Persistent;
        match verdict {
            _ if round.marked => {
                self.w = (self.w * BETA_MARK).max(self.w.min(MIN_CWND));
                self.calm = 0;
            }
            LossVerdict::Congestion => {
                // Who shares a short queue with others must not be driven out of it.
                let is_queue = self.path.is_queue_long();
                self.cut_to_delivered(if is_queue { MIN_CWND } else { MIN_WINDOW });
                self.settle_at(round.bandwidth);
                self.probe = None;
                // It may have been the path's loss.
                self.expect_room();
            }
            // What a window shows that is well below tells a policer's loss from the path's.
            LossVerdict::Persistent => {
                self.probed = self.w;
                self.w = (self.w.min(self.window_for(self.bandwidth).max(MIN_WINDOW)) * BETA).max(MIN_WINDOW);
                self.probe = None;
                self.calm = 0;
            }
            LossVerdict::Learned => {
                self.w = self.w.max(std::mem::take(&mut self.probed));
                self.share.forget_policer();
            }
            LossVerdict::Policed => {
                let before = std::mem::take(&mut self.probed).max(self.w);
                self.w = self.share.police(now, before);
            }
            LossVerdict::Waits => self.calm = 0,
            LossVerdict::Usual if self.follow_path() => {}
            LossVerdict::Usual if self.probe(round.limited) => {}
            LossVerdict::Usual => self.follow_queue(round, queue),
        }
    }

    /// What a round trip lost, with what tells whose losses they are.
    pub(super) fn loss_sample(&self, round: &Round, queue: QueueEstimate) -> LossSample {
        let empty = queue == QueueEstimate::Empty;
        // What ACKs wait on their way back is in flight, too. Without a queue round trips are longer than
        // the empty path's by jitter alone.
        let (base, latest) = (self.path.base(), self.path.latest().unwrap_or_default());
        let rtt = if empty { self.srtt } else { base + (self.srtt - latest) };
        let through = round.bandwidth * rtt.as_secs_f64() / self.mss;
        // A round trip that tells no rate tells no excess.
        let excess = if round.bandwidth > 0.0 {
            (1.0 - through / self.path.window_before().max(1.0)).max(0.0)
        } else {
            0.0
        };
        let short = empty || queue == QueueEstimate::Own && self.path.own() <= self.alpha();
        let limited = round.limited;
        let queued = self.path.is_queue_short(self.best / self.mss);
        LossSample { lost: round.lost, delivered: round.delivered, empty, short, queued, excess, limited }
    }

    /// Beside others that know of congestion by losses alone.
    fn share_losses(&mut self, now: Instant, round: &Round) {
        self.calm = 0;
        (self.probe, self.probed) = (None, 0.0);
        let high = self.path.is_queue_high() && self.path.is_queue_long();
        let overflows = self.loss.is_overflow(round.lost, round.delivered, high) || round.marked;
        let below = self.share.is_below_policer(self.w);
        if self.share.is_policed()
            && self.loss.is_no_policer(below || !overflows, round.lost, round.delivered)
        {
            self.w = self.w.max(self.share.policed_at());
            return self.share.end();
        }
        if overflows {
            let shown = self.path.is_queue_high() || self.share.is_policed() && !below;
            self.w = self.share.cut(now, self.w, shown);
            self.share.doubt_policer(below);
        } else if round.limited {
            let rtt = self.path.latest().unwrap_or_default();
            self.w = self.share.grow(now, rtt, self.w);
        }
    }

    /// True: the path has become longer, and the window with it.
    fn follow_path(&mut self) -> bool {
        let (Some(before), Some(rtt)) = (self.path.longer(), self.path.latest()) else { return false };
        self.adopt_path(rtt, self.w.max(before));
        true
    }

    /// Toward the window that keeps alpha in the queue.
    fn follow_queue(&mut self, round: &Round, queue: QueueEstimate) {
        let Some(rtt) = self.path.latest() else { return };
        let longer = self.calm.saturating_add(1);
        self.calm = match queue {
            QueueEstimate::Empty => longer,
            _ if self.path.yields(self.alpha()) => longer.min(CALM_ROUNDS + YIELD_ROUNDS),
            _ => {
                if self.calm > CALM_ROUNDS {
                    // It may be round trips that vary, and no queue.
                    self.expect_room();
                }
                if self.limit_by_queue && self.settling == 0 {
                    self.limit = self.limit.min(self.w);
                }
                0
            }
        };
        if self.limit_by_queue && self.calm >= LIMIT_ROUNDS {
            self.limit = 0.0;
        }
        if !self.was_full && round.limited && self.calm > CALM_ROUNDS {
            return self.start_again();
        }
        let most = (self.w * MAX_GROWTH).max(MIN_ALPHA);
        // Up to a limit that a queue has told there is room.
        let known =
            if self.limit_by_queue && queue == QueueEstimate::Empty { self.limit - self.w } else { 0.0 };
        let alpha = (self.alpha() * self.haste()).max(known).min(most);
        let target = self.w * self.path.base().as_secs_f64() / rtt.as_secs_f64().max(1e-9) + alpha;
        if round.limited {
            // A few segments grow by a part of themselves, too: several round trips pass until their losses
            // are judged.
            self.w += ((target - self.w) / 2.0).min(self.w * MAX_GROWTH / 2.0);
        } else {
            self.calm = 0; // a window that is not used says nothing, and is no reason for a queue
        }
        self.settle_at(round.bandwidth);
    }
}
