//! Westwood+ (Mascolo et al., CCR 34(2), 2004) as in Linux: Westwood with one sample a round trip.
//!
//! ```text
//! s[k] = segments that arrived in window k / its length,   length >= max(RTT, 50 ms)
//! n[k] = 7/8 n[k-1] + 1/8 s[k]
//! b[k] = 7/8 b[k-1] + 1/8 n[k]                             n[1] = b[1] = s[1]
//! at a cut, and w with it when recovery ends:  ssthresh = max(b RTTmin, 2)
//! timeout:  the same threshold; RTTmin begins anew with the next sample
//! ```
//! A window of a round trip holds a burst and its pause, so compressed ACKs change nothing. The price is an
//! estimate that lags by some fifteen round trips: the loss that ends slow start finds it at a tenth of the
//! bandwidth, and on a long path the way up from there takes minutes.

use super::filters::TwoStages;
use super::slow_start::SlowStart;
use super::westwood::window_for;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, Reno};
use crate::window::Window;
use farpace_units::{Instant, Packets, Span};

/// Least length of a measurement.
const MIN_WINDOW: Span = Span::from_millis(50);

/// A low-pass of the second order over the rates of round trips.
#[derive(Clone, Debug, Default)]
struct WestwoodPlusFilter {
    /// Begin of the present window; none before the first ACK.
    start: Option<Instant>,
    /// Segments in it.
    delivered: u64,
    /// Segments/s.
    b: TwoStages,
}

impl WestwoodPlusFilter {
    fn on_acked(&mut self, now: Instant, delivered: Packets, rtt: Span) {
        let Some(start) = self.start else {
            self.start = Some(now);
            return;
        };
        self.delivered += u64::from(delivered.get());
        let length = now.since(start);
        if length < rtt.max(MIN_WINDOW) {
            return;
        }
        self.b.take(self.delivered as f64 / length.as_secs_f64());
        self.start = Some(now);
        self.delivered = 0;
    }
}

/// State of Westwood+.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    reno: Reno,
    filter: WestwoodPlusFilter,
    /// The latest round trip.
    rtt: Span,
    rtt_min: Option<Span>,
    /// The next round trip replaces the least one.
    renew: bool,
    /// The least one before the last timeout.
    rtt_min_before: Option<Span>,
    /// A recovery is under way at whose end the window is set.
    recovery: bool,
}

impl WestwoodPlus {
    /// Westwood+ that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        WestwoodPlus {
            reno: Reno::new(slow_start),
            filter: WestwoodPlusFilter::default(),
            rtt: Span::ZERO,
            rtt_min: None,
            renew: false,
            rtt_min_before: None,
            recovery: false,
        }
    }

    fn measure(&mut self, rtt: Span) {
        self.rtt = rtt;
        self.rtt_min = Some(self.rtt_min.filter(|_| !self.renew).map_or(rtt, |least| least.min(rtt)));
        self.renew = false;
    }

    /// b RTTmin; none before something is measured.
    fn threshold(&self) -> Option<Packets> {
        Some(window_for(self.filter.b.get()?, self.rtt_min?))
    }
}

impl CongestionControl for WestwoodPlus {
    fn on_acked(&mut self, ack: &AckSample) {
        if let Some(rtt) = ack.rtt {
            self.measure(rtt);
            // A path that is longer than the others has been added.
            self.rtt_min = self.rtt_min.map(|least| least.max(ack.base_of_paths));
        }
        self.filter.on_acked(ack.now, ack.delivered, self.rtt);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.reno.on_ack(window, ack);
    }

    /// In recovery the window must not be above the one at the loss, so the threshold is given up to it.
    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        let half = self.reno.ssthresh(now, window, flight, cut);
        self.recovery = cut != Cut::Timeout;
        match self.threshold() {
            Some(threshold) if cut == Cut::Timeout => threshold,
            Some(threshold) => threshold.min(window.cwnd()).max(Packets::new(2)),
            None => half,
        }
    }

    /// b RTTmin: the floor of rate halving in Linux.
    fn min_cwnd(&self, window: &Window) -> Packets {
        self.threshold().unwrap_or(window.ssthresh())
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        self.reno.undo_cwnd(window)
    }

    fn on_event(&mut self, now: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::ExitRecovery => {
                if let Some(threshold) = self.threshold().filter(|_| self.recovery) {
                    window.set_ssthresh(threshold);
                    window.set_cwnd(threshold);
                }
                self.recovery = false;
            }
            CongestionEvent::EnterLoss { .. } => {
                self.recovery = false;
                self.renew = true;
                self.rtt_min_before = self.rtt_min;
            }
            CongestionEvent::Undo => {
                // The delay that made the timer fire is no new path.
                self.recovery = false;
                self.renew = false;
                self.rtt_min = self.rtt_min.into_iter().chain(self.rtt_min_before.take()).min();
            }
            CongestionEvent::Established(rtt) => {
                self.filter.start = Some(now);
                if !rtt.is_zero() {
                    self.measure(rtt);
                }
            }
            CongestionEvent::EnterRecovery | CongestionEvent::Restart(_) => {}
        }
    }

    fn name(&self) -> &'static str {
        "westwood-plus"
    }
}

#[cfg(test)]
mod tests;
