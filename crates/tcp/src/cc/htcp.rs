//! H-TCP (Leith and Shorten, PFLDnet 2004): growth by the time since the last congestion, cuts by the queue.
//!
//! With D, the time since the last cut, in seconds:
//! ```text
//! f = 1                                  D <= 1
//! f = 1 + 10 (D - 1) + ((D - 1) / 2)^2   D > 1
//! f is divided by clamp(0.1 s / RTTmin, 0.5, 10), and is at least 1
//! w += 2 f (1 - beta)                    each round trip
//! loss: w = beta w, with
//! beta = RTTmin / RTTmax, within 0.5..0.8; 0.5 if the throughput has changed by more than a fifth
//! ```
//! Throughput is the largest of a round trip between two cuts, RTTmax the largest SRTT between them. D stands
//! still while the window is not used, as in CUBIC (RFC 9438 §5.8).

use super::fraction::{Fraction, part_of};
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Span};

/// Bounds of beta.
const BETA: (f64, f64) = (0.5, 0.8);
/// The round trip at which growth is not scaled, seconds.
const REFERENCE_RTT: f64 = 0.1;
/// Bounds of the scale.
const SCALE: (f64, f64) = (0.5, 10.0);
/// Change of the throughput, as a part of it, above which the path counts as another one.
const MAX_CHANGE: f64 = 0.2;

/// The time between two cuts, and what the first of them has decided.
#[derive(Clone, Copy, Debug)]
struct HtcpEpoch {
    /// The cut, moved on by the time in which the window was not used; none before the first ACK.
    start: Option<Instant>,
    /// Arrival of the latest ACK that might have raised the window.
    last: Instant,
    beta: f64,
    rtt_max: Span,
    /// Largest throughput of a round trip, segments/s; zero before the first.
    best: f64,
    /// The same in the epoch before; zero if there was none.
    best_before: f64,
    /// Begin of the round trip that is measured.
    round: Option<Instant>,
    /// Segments that arrived in it.
    delivered: u64,
}

/// State of H-TCP.
#[derive(Clone, Debug)]
pub struct HTcp {
    slow_start: SlowStart,
    fraction: Fraction,
    rtt_min: Span,
    epoch: HtcpEpoch,
    /// Window and epoch before the last reduction.
    prior: Option<(Packets, HtcpEpoch)>,
}

/// Segments more each round trip, at `since` the last cut.
fn increase(since: Span, rtt_min: Span, beta: f64) -> f64 {
    let d = (since.as_secs_f64() - 1.0).max(0.0);
    let f = 1.0 + 10.0 * d + d * d / 4.0;
    let scale = if rtt_min.is_zero() { 1.0 } else { REFERENCE_RTT / rtt_min.as_secs_f64() };
    2.0 * (f / scale.clamp(SCALE.0, SCALE.1)).max(1.0) * (1.0 - beta)
}

impl HtcpEpoch {
    fn new() -> Self {
        HtcpEpoch {
            start: None,
            last: Instant::ZERO,
            beta: BETA.0,
            rtt_max: Span::ZERO,
            best: 0.0,
            best_before: 0.0,
            round: None,
            delivered: 0,
        }
    }

    /// What follows a cut at `now`.
    fn next(&self, now: Instant, rtt_min: Span) -> Self {
        let known = self.best > 0.0 && self.best_before > 0.0 && !self.rtt_max.is_zero();
        let steady = known && (self.best - self.best_before).abs() <= MAX_CHANGE * self.best_before;
        let ratio = if steady { rtt_min.as_secs_f64() / self.rtt_max.as_secs_f64() } else { BETA.0 };
        // An epoch too short to measure says nothing of the throughput.
        let best_before = if self.best > 0.0 { self.best } else { self.best_before };
        let beta = ratio.clamp(BETA.0, BETA.1);
        HtcpEpoch { start: Some(now), last: now, beta, best_before, ..HtcpEpoch::new() }
    }

    fn measure(&mut self, ack: &AckSample) {
        self.rtt_max = self.rtt_max.max(ack.srtt);
        let Some(round) = self.round else {
            self.round = Some(ack.now);
            return;
        };
        self.delivered += u64::from(ack.delivered.get());
        let length = ack.now.since(round);
        if length >= ack.srtt && !length.is_zero() {
            self.best = self.best.max(self.delivered as f64 / length.as_secs_f64());
            self.round = Some(ack.now);
            self.delivered = 0;
        }
    }

    /// The time up to `now` does not count.
    fn skip(&mut self, now: Instant) {
        if let Some(start) = &mut self.start {
            *start += now.since(self.last);
        }
    }
}

impl HTcp {
    /// H-TCP that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        HTcp {
            slow_start,
            fraction: Fraction::default(),
            rtt_min: Span::ZERO,
            epoch: HtcpEpoch::new(),
            prior: None,
        }
    }
}

impl CongestionControl for HTcp {
    fn on_acked(&mut self, ack: &AckSample) {
        self.rtt_min = ack.min_rtt.unwrap_or(self.rtt_min);
        // In recovery the throughput is that of a reduction.
        if matches!(ack.state, RecoveryState::Open | RecoveryState::Disorder) {
            self.epoch.measure(ack);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let acked = self.slow_start.on_ack(window, ack);
        if !ack.cwnd_limited {
            self.epoch.skip(ack.now);
        }
        self.epoch.last = self.epoch.last.max(ack.now);
        let start = *self.epoch.start.get_or_insert(ack.now);
        if ack.cwnd_limited && !acked.is_zero() {
            let alpha = increase(ack.now.since(start), self.rtt_min, self.epoch.beta);
            self.fraction.grow(window, acked, alpha);
        }
    }

    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, _: Cut) -> Packets {
        self.prior = Some((window.cwnd(), self.epoch));
        self.epoch = self.epoch.next(now, self.rtt_min);
        part_of(window, flight, self.epoch.beta)
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior.map_or(Packets::ZERO, |(cwnd, _)| cwnd))
    }

    fn on_event(&mut self, now: Instant, _: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::Undo => {
                if let Some((_, epoch)) = self.prior.take() {
                    self.epoch = HtcpEpoch { last: self.epoch.last, round: None, delivered: 0, ..epoch };
                }
            }
            CongestionEvent::Restart(_) => {
                self.epoch.skip(now);
                self.epoch.last = self.epoch.last.max(now);
                self.epoch.round = None;
                self.epoch.delivered = 0;
            }
            CongestionEvent::EnterRecovery
            | CongestionEvent::ExitRecovery
            | CongestionEvent::EnterLoss { .. }
            | CongestionEvent::Established(_) => {}
        }
    }

    fn name(&self) -> &'static str {
        "htcp"
    }
}

#[cfg(test)]
mod tests;
