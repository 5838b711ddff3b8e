//! ProbeBW: the cycle of sending slower, as fast, and faster than the path delivers (§5.3.3).

use super::{AckPhase, Bbr, BbrState, MIN_PIPE_CWND};
use farpace_units::Span;

/// BBR.Headroom: the part of the long-term bound that is left to others.
const HEADROOM: f64 = 0.15;
/// Round trips after which bandwidth is probed however large the BDP is (§5.3.3.8).
const MAX_RENO_ROUNDS: f64 = 63.0;
/// Doublings of the slope of the long-term bound.
const MAX_PROBE_UP_ROUNDS: u32 = 30;

impl Bbr {
    pub(super) fn is_in_probe_bw(&self) -> bool {
        matches!(
            self.state,
            BbrState::ProbeBwDown | BbrState::ProbeBwCruise | BbrState::ProbeBwRefill | BbrState::ProbeBwUp
        )
    }

    pub(super) fn start_probe_bw_down(&mut self) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = self.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = BbrState::ProbeBwDown;
    }

    pub(super) fn start_probe_bw_cruise(&mut self) {
        self.state = BbrState::ProbeBwCruise;
    }

    pub(super) fn start_probe_bw_refill(&mut self) {
        self.reset_short_term_model();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = BbrState::ProbeBwRefill;
    }

    fn start_probe_bw_up(&mut self) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw();
        self.full_bw = self.rs.delivery_rate;
        self.state = BbrState::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// §5.3.3.9.
    pub(super) fn update_probe_bw_cycle_phase(&mut self) {
        if !self.full_bw_reached || self.adapt_long_term_model() {
            return;
        }
        match self.state {
            BbrState::ProbeBwDown => {
                if !self.probe_if_time() && self.is_time_to_cruise() {
                    self.start_probe_bw_cruise();
                }
            }
            BbrState::ProbeBwCruise => {
                self.probe_if_time();
            }
            BbrState::ProbeBwRefill => {
                // One round trip at the full rate comes first.
                if self.rounds.start {
                    self.is_bw_probe_sample = true;
                    self.start_probe_bw_up();
                }
            }
            BbrState::ProbeBwUp => {
                if self.is_time_to_go_down() {
                    self.prev_probe_too_high = false;
                    self.start_probe_bw_down();
                }
            }
            BbrState::Startup | BbrState::Drain | BbrState::ProbeRtt => {}
        }
    }

    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom()
            && self.in_flight <= self.inflight(self.max_bw.get(), 1.0)
    }

    fn is_time_to_go_down(&mut self) -> bool {
        // §5.3.3.6: the last probe went too high; stop where it did. The window never lets more in flight
        // than the bound, and each ACK takes something off: what counts is what it found.
        if self.prev_probe_too_high && self.in_flight_before >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.cwnd_limited && self.cwnd >= self.inflight_longterm {
            // The bound, not the path, limits the rate: nothing can be said of the path.
            self.reset_full_bw();
            self.full_bw = self.rs.delivery_rate;
            return false;
        }
        self.full_bw_now
    }

    /// §5.3.3.8: begins to probe after two to three seconds, or after as many round trips as Reno would need.
    fn probe_if_time(&mut self) -> bool {
        let elapsed = self.now > self.cycle_stamp + self.bw_probe_wait;
        let reno_rounds = self.target_inflight().min(MAX_RENO_ROUNDS);
        let due = elapsed || f64::from(self.rounds_since_probe_up) >= reno_rounds;
        if due {
            self.start_probe_bw_refill();
        }
        due
    }

    fn pick_probe_wait(&mut self) {
        let draw = self.rng.roll();
        self.rounds_since_probe_up = (draw & 1) as u32;
        self.bw_probe_wait = Span::from_secs(2) + Span::from_nanos((draw >> 1) % 1_000_000_000);
    }

    /// The long-term bound less what is left to others; infinite without a bound.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        let bound = self.inflight_longterm;
        if bound.is_infinite() {
            return bound;
        }
        (bound - (HEADROOM * bound).max(1.0)).max(MIN_PIPE_CWND)
    }

    fn raise_inflight_longterm_slope(&mut self) {
        let growth_this_round = f64::from(1u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(MAX_PROBE_UP_ROUNDS);
        self.probe_up_acked_per_inc = (self.cwnd / growth_this_round).max(1.0);
    }

    fn probe_inflight_longterm_upward(&mut self) {
        if !self.cwnd_limited || self.cwnd < self.inflight_longterm {
            return; // the bound is not used
        }
        self.bw_probe_up_acked += self.rs.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let steps = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= steps * self.probe_up_acked_per_inc;
            self.inflight_longterm += steps;
        }
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// Follows the ACKs of the probe, and raises the long-term bound if they allow it. True: the state has
    /// changed.
    fn adapt_long_term_model(&mut self) -> bool {
        if self.rounds.start && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.rounds.start && self.ack_phase == AckPhase::ProbeStopping {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_probe_bw() {
                if !self.rs.app_limited {
                    self.max_bw.advance();
                }
                if self.prev_probe_precautionary && !self.prev_probe_too_high {
                    self.start_probe_bw_refill();
                    return true;
                }
            }
        }
        if self.is_inflight_too_high() || self.inflight_longterm.is_infinite() {
            return false;
        }
        self.inflight_longterm = self.inflight_longterm.max(self.rs.tx_in_flight);
        if self.state == BbrState::ProbeBwUp {
            self.probe_inflight_longterm_upward();
        }
        false
    }
}
