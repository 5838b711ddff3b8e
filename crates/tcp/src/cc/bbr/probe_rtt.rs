//! ProbeRTT: now and then little is sent for a moment, to see the round trip without a queue (§5.3.4); and
//! what a pause of the application does (§5.4).

use super::{AckPhase, Bbr, BbrState};
use farpace_units::Span;

/// BBR.ProbeRTTDuration.
const PROBE_RTT_DURATION: Span = Span::from_millis(200);

impl Bbr {
    pub(super) fn check_probe_rtt(&mut self) {
        if self.state != BbrState::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.state = BbrState::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt();
        }
        if self.rs.delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self) {
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.rounds.start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done();
            }
        } else if self.in_flight <= self.probe_rtt_cwnd() {
            // For this time, and for a round trip.
            self.probe_rtt_done_stamp = Some(self.now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt_done_stamp.is_some_and(|done| self.now > done) {
            self.probe_rtt_min_stamp = self.now;
            self.restore_cwnd();
            self.exit_probe_rtt();
        }
    }

    /// §5.3.4.4.
    fn exit_probe_rtt(&mut self) {
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_probe_bw_down();
            self.start_probe_bw_cruise();
        } else {
            self.enter_startup();
        }
    }

    /// §5.4.1. At the begin of a connection there was nothing to pause.
    pub(super) fn handle_restart_from_idle(&mut self) {
        if self.delivered == 0 {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(self.now);
        if self.is_in_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == BbrState::ProbeRtt {
            self.check_probe_rtt_done();
        }
    }
}
