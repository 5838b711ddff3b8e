//! The model of the path: bandwidth, propagation delay, aggregation (§5.5).

use super::Bbr;
use crate::cc::extra_acked::AckedBatch;
use farpace_units::Span;

/// BBR.MinRTTFilterLen.
const MIN_RTT_FILTER_LEN: Span = Span::from_secs(10);
/// BBR.ProbeRTTInterval.
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
/// BBR.ExtraAckedFilterLen, round trips.
const EXTRA_ACKED_FILTER_LEN: u64 = 10;

/// The highest delivery rate of this bandwidth probing cycle and the one before (§5.5.3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    before: f64,
    current: f64,
}

impl MaxBandwidth {
    pub fn get(&self) -> f64 {
        self.before.max(self.current)
    }

    /// The next cycle (§5.5.6). One that brought no sample does not count.
    pub fn advance(&mut self) {
        if self.current > 0.0 {
            (self.before, self.current) = (self.current, 0.0);
        }
    }
}

impl Bbr {
    pub(super) fn start_round(&mut self) {
        self.rounds.restart(self.delivered);
    }

    fn update_round(&mut self) {
        self.rounds.on_ack(self.rs.has_data.then_some(self.rs.prior_delivered), self.delivered);
        if self.rounds.start {
            self.rounds_since_probe_up = self.rounds_since_probe_up.saturating_add(1);
        }
    }

    /// §5.5.5.
    pub(super) fn update_max_bw(&mut self) {
        self.update_round();
        let rate = self.rs.delivery_rate;
        if rate > 0.0 && (rate >= self.max_bw.get() || !self.rs.app_limited) {
            self.max_bw.current = self.max_bw.current.max(rate);
        }
    }

    pub(super) fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.get().min(self.bw_shortterm);
    }

    /// BBR.bdp times `gain` at bandwidth `bw`, segments; none before the first round trip.
    pub(super) fn bdp(&self, bw: f64, gain: f64) -> Option<f64> {
        Some(gain * bw * self.min_rtt?.as_secs_f64() / self.mss)
    }

    /// §5.5.9.
    pub(super) fn update_ack_aggregation(&mut self) {
        let rounds = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        let ack = AckedBatch {
            now: self.now,
            round: self.rounds.count,
            acked: self.rs.newly_acked,
            rate: self.bw / self.mss,
            cwnd: self.cwnd,
        };
        self.extra_acked.on_ack(&ack, rounds);
    }

    /// §5.3.4.3. The least round trip of ten seconds, from the least ones of five.
    pub(super) fn update_min_rtt(&mut self, rtt: Option<Span>, base_of_paths: Span) {
        self.probe_rtt_expired = self.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rtt
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|min| rtt < min))
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = self.now;
        }
        let expired = self.now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if let Some(delay) = self.probe_rtt_min_delay
            && (expired || self.min_rtt.is_none_or(|min| delay < min))
        {
            self.min_rtt = Some(delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        // A path that is longer than the others has been added.
        self.min_rtt = self.min_rtt.map(|min| min.max(base_of_paths));
        self.probe_rtt_min_delay = self.probe_rtt_min_delay.map(|min| min.max(base_of_paths));
    }
}
