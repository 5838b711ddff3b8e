//! What follows from the model for the pacing rate and the window (§5.6).

use super::{Bbr, BbrState, MIN_PIPE_CWND};
use farpace_units::Span;

/// BBR.StartupPacingGain: 4 ln 2.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// BBR.DefaultCwndGain.
const DEFAULT_CWND_GAIN: f64 = 2.0;
/// BBR.ProbeRTTCwndGain.
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// BBR.PacingMarginPercent, as what is left.
const PACING_MARGIN: f64 = 0.99;
/// The round trip to assume for the first pacing rate.
const NOMINAL_RTT: Span = Span::from_millis(1);
/// A quantum is what is sent in this time (§5.6.3), seconds ...
const QUANTUM_TIME: f64 = 0.001;
/// ... at most this many bytes, and at least two segments.
const MAX_QUANTUM: f64 = 64_000.0;

impl Bbr {
    /// §5.6.1.
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup => STARTUP_PACING_GAIN,
            BbrState::Drain => 0.5,
            BbrState::ProbeBwDown => 0.9,
            BbrState::ProbeBwUp => 1.25,
            BbrState::ProbeBwCruise | BbrState::ProbeBwRefill | BbrState::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            BbrState::ProbeBwUp => 2.25,
            BbrState::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => DEFAULT_CWND_GAIN,
        }
    }

    /// §5.6.2.
    pub(super) fn init_pacing_rate(&mut self, srtt: Span) {
        let srtt = if srtt.is_zero() { NOMINAL_RTT } else { srtt };
        let nominal = self.initial_cwnd.unwrap_or(self.cwnd) * self.mss / srtt.as_secs_f64();
        self.pacing_rate = STARTUP_PACING_GAIN * nominal;
    }

    pub(super) fn set_pacing_rate(&mut self) {
        self.set_pacing_rate_with_gain(self.pacing_gain());
    }

    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        // Before the pipe was full once, the rate only rises: samples may be limited by the application.
        if (self.full_bw_reached && rate > 0.0) || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// BBR.offload_budget, segments. The draft's three quanta for TCP are for a kernel's queues and offloads,
    /// which this sender does not have.
    fn offload_budget(&self) -> f64 {
        (self.pacing_rate * QUANTUM_TIME).min(MAX_QUANTUM).max(2.0 * self.mss) / self.mss
    }

    fn quantization_budget(&self, inflight_cap: f64) -> f64 {
        let cap = inflight_cap.max(self.offload_budget()).max(MIN_PIPE_CWND);
        if self.state == BbrState::ProbeBwUp { cap + 2.0 } else { cap }
    }

    fn bdp_or_initial(&self, bw: f64, gain: f64) -> f64 {
        self.bdp(bw, gain).unwrap_or(self.initial_cwnd.unwrap_or(self.cwnd))
    }

    /// What has to be in flight at this bandwidth, segments.
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.quantization_budget(self.bdp_or_initial(bw, gain))
    }

    fn max_inflight(&self) -> f64 {
        let bdp = self.bdp_or_initial(self.bw, self.cwnd_gain());
        self.quantization_budget(bdp + self.extra_acked.get())
    }

    /// §5.6.4.6.
    pub(super) fn set_cwnd(&mut self) {
        let max_inflight = self.max_inflight();
        let grown = self.cwnd + self.rs.newly_acked;
        if self.full_bw_reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || (self.delivered as f64) < self.initial_cwnd.unwrap_or(self.cwnd)
        {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(MIN_PIPE_CWND);
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_or_initial(self.bw, PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND)
    }

    /// §5.6.4.7.
    fn bound_cwnd_for_model(&mut self) {
        let cap = match self.state {
            BbrState::ProbeBwDown | BbrState::ProbeBwRefill | BbrState::ProbeBwUp => self.inflight_longterm,
            BbrState::ProbeRtt | BbrState::ProbeBwCruise => self.inflight_with_headroom(),
            BbrState::Startup | BbrState::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND);
        self.cwnd = self.cwnd.min(cap);
    }

    /// §5.6.4.4: the last window that was not modulated by recovery or ProbeRTT.
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd = if !self.in_loss_recovery && self.state != BbrState::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
