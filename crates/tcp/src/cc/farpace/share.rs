//! Sharing a queue, or a policer, with connections that know of congestion by losses alone: the window
//! follows CUBIC (RFC 9438), so that each of them gets about the same.

use super::{MIN_CWND, MIN_WINDOW};
use farpace_units::{Instant, Span};

/// Aggressiveness, segments/s³ (RFC 9438 §5.1).
const C: f64 = 0.4;
/// What a loss leaves of the window (RFC 9438 §4.6).
pub const BETA: f64 = 0.7;
/// A product with [`BETA`] that is whole may come out smaller by less than this.
const ROUNDING: f64 = 1e-6;
/// Growth of the Reno-friendly estimate, segments a round trip (RFC 9438 §4.3).
const RENO: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The window of the next round trip is at most this times the present one (RFC 9438 §4.2).
const MAX_STEP: f64 = 1.5;
/// After the last loss that others have a part in, they are taken to be there for so long ...
const MIN_SHARE_TIME: Span = Span::from_secs(4);
/// ... and for so many times as long as the window needs to come back to where it was.
const SHARE_TIME_K: f64 = 2.0;

/// Each time that a policer is found again, it is taken to be there twice as long, so many times.
const MAX_POLICED: u32 = 4;

/// Losses in a row at windows that a policer let pass, after which it is not believed in.
const MAX_BELOW: u32 = 4;

/// The window beside others, as a function of the time since it was cut.
#[derive(Clone, Copy, Debug, Default)]
pub struct LossShare {
    /// When the window was cut last, or began to grow; none: others are not known of.
    cut: Option<Instant>,
    /// When others showed last.
    seen: Instant,
    /// The window at which there was a loss last.
    w_max: f64,
    /// Seconds until the window is there again.
    k: f64,
    /// What Reno would have.
    w_est: f64,
    w_prior: f64,
    /// Times that a policer was found, without one that was none in between; up to [`MAX_POLICED`].
    policed: u32,
    /// The window that was too much for the policer.
    policed_at: f64,
    /// Losses in a row at windows that the policer let pass.
    below: u32,
}

impl LossShare {
    /// Others are there: they keep a queue filled, or what is sent is too much for all together.
    pub fn holds(&self, now: Instant) -> bool {
        let stays = MIN_SHARE_TIME.max(Span::from_micros((SHARE_TIME_K * self.k * 1e6) as u64));
        self.cut.is_some() && now.since(self.seen) < stays * (1 << self.policed)
    }

    /// Others show, with the window `w`. Returns it, or if they are new what a loss would have left of the
    /// window `before` they were there.
    pub fn show(&mut self, now: Instant, w: f64, before: f64) -> f64 {
        if self.holds(now) {
            self.seen = now;
            return w;
        }
        let w = w.max(before * BETA);
        *self = LossShare {
            cut: Some(now),
            seen: now,
            w_max: w,
            k: 0.0,
            w_est: w,
            w_prior: w,
            ..LossShare::default()
        };
        w
    }

    /// Something was lost, with the window `w`. Returns what is left of it. `shown`: that shows that others
    /// are there still.
    pub fn cut(&mut self, now: Instant, w: f64, shown: bool) -> f64 {
        // Fast convergence (RFC 9438 §4.7): who loses at less than before makes room.
        let w_max = if w < self.w_max && self.cut.is_some() { w * (1.0 + BETA) / 2.0 } else { w };
        // RFC 9438 §4.6 reduces what is in flight, which the lost segment is not, and CUBIC counts whole
        // segments. Few segments make that much less than BETA.
        let whole = libm::floor((libm::floor(w) - 1.0) * BETA + ROUNDING);
        let left = match self.is_policed() {
            true => whole.max(w.min(MIN_CWND) * BETA).max(MIN_WINDOW),
            false => whole.max(w.min(MIN_CWND)),
        };
        let k = libm::cbrt((w_max - left).max(0.0) / C);
        let seen = if shown { now } else { self.seen };
        *self = LossShare { cut: Some(now), seen, w_max, k, w_est: left, w_prior: w, ..*self };
        left
    }

    /// What is lost at the window `w` is a policer's. Returns what is left of the window.
    pub fn police(&mut self, now: Instant, w: f64) -> f64 {
        self.policed = (self.policed + 1).min(MAX_POLICED);
        (self.policed_at, self.below) = (w, 0);
        self.cut(now, w, true)
    }

    /// A policer was found.
    pub fn is_policed(&self) -> bool {
        self.policed > 0
    }

    /// A policer was found, and it let the window `w` pass.
    pub fn is_below_policer(&self, w: f64) -> bool {
        self.is_policed() && w <= self.policed_at * BETA
    }

    /// Something was lost, `below` what the policer let pass or not. So many times in a row, and it is found
    /// again or it is none.
    pub fn doubt_policer(&mut self, below: bool) {
        self.below = if below { self.below + 1 } else { 0 };
        if self.below >= MAX_BELOW {
            self.cut = None;
        }
    }

    /// The window that was too much for the policer.
    pub fn policed_at(&self) -> f64 {
        self.policed_at
    }

    /// What is lost is the path's.
    pub fn forget_policer(&mut self) {
        self.policed = 0;
    }

    /// There are no others, and there is no policer.
    pub fn end(&mut self) {
        *self = LossShare::default();
    }

    /// A round trip of `rtt` without loss: the window after `w`.
    pub fn grow(&mut self, now: Instant, rtt: Span, w: f64) -> f64 {
        let Some(cut) = self.cut else { return w };
        // Below the least window of CUBIC a segment a round trip would be a large part of all.
        let part = (w / MIN_CWND).min(1.0);
        self.w_est += part * if self.w_est >= self.w_prior { 1.0 } else { RENO };
        let d = now.since(cut).as_secs_f64() + rtt.as_secs_f64() - self.k;
        let cubic = (C * d * d * d + self.w_max).min(w * MAX_STEP);
        cubic.max(self.w_est).max(w)
    }
}
