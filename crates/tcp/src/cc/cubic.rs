//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last reduction.

use super::fraction::{Fraction, part_of};
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, StartPace};
use crate::window::Window;
use farpace_units::{Instant, Packets, Span};

/// Aggressiveness, segments/s³ (RFC 9438 §5.1).
const C: f64 = 0.4;
/// The window that is left after a reduction (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// Growth of the Reno-friendly estimate, segments per round trip (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The window aimed at for the next round trip is at most this times the present one (RFC 9438 §4.2).
const MAX_STEP: f64 = 1.5;

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CubicEpoch {
    /// t_epoch, moved on by the time in which the window was not used.
    start: Instant,
    /// Arrival of the latest ACK of the stage.
    last: Instant,
    /// K in seconds.
    k: f64,
    /// W_est in segments.
    w_est: f64,
}

/// The undo set of RFC 9438 §4.9.2.
#[derive(Clone, Copy, Debug)]
struct CubicUndo {
    cwnd: u32,
    cwnd_prior: f64,
    w_max: Option<f64>,
    epoch: Option<CubicEpoch>,
    after_timeout: bool,
}

/// State of CUBIC. Windows are in segments, with their fractions.
#[derive(Clone, Debug)]
pub struct Cubic {
    slow_start: SlowStart,
    /// None before the first reduction.
    w_max: Option<f64>,
    cwnd_prior: f64,
    epoch: Option<CubicEpoch>,
    /// The next stage is the first one after a timeout.
    after_timeout: bool,
    fraction: Fraction,
    undo: Option<CubicUndo>,
}

impl Cubic {
    /// CUBIC that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Cubic {
            slow_start,
            w_max: None,
            cwnd_prior: 0.0,
            epoch: None,
            after_timeout: false,
            fraction: Fraction::default(),
            undo: None,
        }
    }

    /// RFC 9438 §4.2, at the begin of a congestion avoidance stage.
    fn begin_epoch(&mut self, now: Instant, cwnd: f64) -> CubicEpoch {
        if self.w_max.is_none() {
            self.cwnd_prior = cwnd; // §4.10: slow start ended without loss
        }
        let k = match self.w_max {
            Some(w_max) if w_max > cwnd && !self.after_timeout => libm::cbrt((w_max - cwnd) / C),
            // §4.8, §4.10; and a window that is above the maximum already has nothing to come back to.
            _ => {
                self.w_max = Some(cwnd);
                0.0
            }
        };
        self.after_timeout = false;
        CubicEpoch { start: now, last: now, k, w_est: cwnd }
    }

    /// W_cubic(t), RFC 9438 figure 1.
    fn w_cubic(&self, epoch: &CubicEpoch, t: Span) -> f64 {
        let d = t.as_secs_f64() - epoch.k;
        C * d * d * d + self.w_max.unwrap_or(0.0)
    }

    /// Congestion avoidance for `acked` segments.
    ///
    /// RFC 9438 §4.4 gives an increment "for each ACK", which is meant for receivers that acknowledge each
    /// segment: taken literally, one that acknowledges every eighth would make the window grow at an eighth
    /// of the rate. Here each acknowledged segment counts, as it does for W_est.
    fn avoid_congestion(&mut self, window: &mut Window, ack: &AckSample, acked: u32) {
        let cwnd = self.fraction.cwnd(window);
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(ack.now, cwnd),
        };
        let since = ack.now.since(epoch.last);
        epoch.last = epoch.last.max(ack.now);
        if !ack.cwnd_limited {
            // §4.2, §5.8: time in which the window was not used does not count.
            epoch.start += since;
            self.epoch = Some(epoch);
            return;
        }
        let share = (f64::from(acked) / cwnd).min(1.0);
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * share;
        let t = ack.now.since(epoch.start);
        self.epoch = Some(epoch);
        let next = if self.w_cubic(&epoch, t) < epoch.w_est {
            epoch.w_est.max(cwnd) // §4.3: the Reno-friendly region
        } else {
            let target = self.w_cubic(&epoch, t + ack.srtt).clamp(cwnd, MAX_STEP * cwnd);
            cwnd + (target - cwnd) * share
        };
        self.fraction.set_cwnd(window, next);
    }
}

impl CongestionControl for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let acked = self.slow_start.on_ack(window, ack);
        if !acked.is_zero() {
            self.avoid_congestion(window, ack, acked.get());
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        self.slow_start.on_cut();
        let cwnd = self.fraction.cwnd(window);
        self.undo = Some(CubicUndo {
            cwnd: window.cwnd().get(),
            cwnd_prior: self.cwnd_prior,
            w_max: self.w_max,
            epoch: self.epoch,
            after_timeout: self.after_timeout,
        });
        // §4.7: a maximum that keeps falling is a sign of a newcomer.
        self.w_max = Some(match self.w_max {
            Some(w_max) if cwnd < w_max => cwnd * (1.0 + BETA) / 2.0,
            _ => cwnd,
        });
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.after_timeout = cut == Cut::Timeout;
        part_of(window, flight, BETA)
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(Packets::new(self.undo.map_or(0, |u| u.cwnd)))
    }

    fn on_event(&mut self, now: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::Undo => {
                // §4.9.2: unless the window has grown beyond what it was.
                if let Some(undo) = self.undo.take()
                    && window.cwnd().get() <= undo.cwnd
                {
                    self.cwnd_prior = undo.cwnd_prior;
                    self.w_max = undo.w_max;
                    self.epoch = undo.epoch;
                    self.after_timeout = undo.after_timeout;
                }
            }
            CongestionEvent::Restart(_) => {
                // Counted from the last ACK, as for any other time in which the window is not used, so that
                // nothing is taken off twice.
                if let Some(epoch) = &mut self.epoch {
                    epoch.start += now.since(epoch.last);
                    epoch.last = epoch.last.max(now);
                }
            }
            CongestionEvent::EnterRecovery
            | CongestionEvent::ExitRecovery
            | CongestionEvent::EnterLoss { .. }
            | CongestionEvent::Established(_) => {}
        }
    }

    fn pace(&self, window: &Window) -> StartPace {
        self.slow_start.pace(window)
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
mod tests;
