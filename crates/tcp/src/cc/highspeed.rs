//! HighSpeed TCP (RFC 3649): Reno whose increase and decrease depend on the window.
//!
//! For a window of w segments above Low_Window = 38 (§5, §7):
//! ```text
//! p(w) = 0.078 / w^1.2                                          the loss rate at which w is the mean window
//! b(w) = (0.1 - 0.5) (ln w - ln 38) / (ln 83000 - ln 38) + 0.5  the part given up after a loss
//! a(w) = w^2 p(w) 2 b(w) / (2 - b(w))                           segments more each round trip
//! ```
//! Up to it a = 1 and b = 0.5. The functions drive the window; tables made of them (appendix B, Linux) are
//! steps on the same curve.

use super::fraction::{Fraction, part_of};
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets};

/// Up to this window HighSpeed TCP is Reno (§5), segments.
const LOW_WINDOW: f64 = 38.0;
/// The window at which the loss rate is 1e-7 and a tenth is given up (§5, §7), segments.
const HIGH_WINDOW: f64 = 83_000.0;
/// b at `HIGH_WINDOW` (§7).
const HIGH_DECREASE: f64 = 0.1;
/// b falls no further above this window, the last of appendix B, in segments: the formula would reach zero at
/// 567 000 segments, and the increase with it.
const LAST_WINDOW: f64 = 94_717.0;

/// b(w), §7.
fn decrease(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 0.5;
    }
    let position = libm::log(w.min(LAST_WINDOW) / LOW_WINDOW) / libm::log(HIGH_WINDOW / LOW_WINDOW);
    (HIGH_DECREASE - 0.5) * position + 0.5
}

/// a(w), §7. The formula is below one up to 41 segments; appendix C too takes one there.
fn increase(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    let b = decrease(w);
    // w^2 p(w), with p(w) of §7.
    let response = 0.078 * libm::pow(w, 0.8);
    (response * 2.0 * b / (2.0 - b)).max(1.0)
}

/// State of HighSpeed TCP.
#[derive(Clone, Debug)]
pub struct HighSpeed {
    slow_start: SlowStart,
    fraction: Fraction,
    /// The window before the last reduction.
    prior: Packets,
}

impl HighSpeed {
    /// HighSpeed TCP that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        HighSpeed { slow_start, fraction: Fraction::default(), prior: Packets::ZERO }
    }
}

impl CongestionControl for HighSpeed {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let acked = self.slow_start.on_ack(window, ack);
        if ack.cwnd_limited && !acked.is_zero() {
            // §7: w += a(w)/w for each segment.
            let a = increase(self.fraction.cwnd(window));
            self.fraction.grow(window, acked, a);
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, _: Cut) -> Packets {
        self.prior = window.cwnd();
        // §7: w = (1 - b(w)) w, of what was in use.
        let used = f64::from(window.cwnd().min(flight).get());
        part_of(window, flight, 1.0 - decrease(used))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior)
    }

    fn name(&self) -> &'static str {
        "highspeed"
    }
}

#[cfg(test)]
mod tests;
