//! Startup, Drain, the cycle of gains, and ProbeRTT (BBR §4.3).

use super::{Bbr1, Bbr1State, MIN_PIPE_CWND};
use farpace_units::Span;

/// BBRHighGain: 2/ln 2, the least gain that lets the rate double each round trip (BBR §4.3.2.1).
const HIGH_GAIN: f64 = 2.885;
/// Pacing gains of ProbeBW, one for each RTprop (BBR §4.3.4.2).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Place of the gain that drains: no flow begins with it.
const DRAINING: usize = 1;
/// Growth of BtlBw in a round trip that shows that the pipe is not full, and how many without (BBR §4.3.2.2).
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// ProbeRTTDuration (BBR §4.3.5).
const PROBE_RTT_DURATION: Span = Span::from_millis(200);

impl Bbr1 {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            Bbr1State::Startup => HIGH_GAIN,
            Bbr1State::Drain => 1.0 / HIGH_GAIN,
            // The bucket of a policer would pass a probe at once, and drop as much afterwards.
            Bbr1State::ProbeBw if self.policers.rate().is_some() => 1.0,
            Bbr1State::ProbeBw => CYCLE.get(self.cycle_index).copied().unwrap_or(1.0),
            Bbr1State::ProbeRtt => 1.0,
        }
    }

    /// In the first place of the cycle, whose gain is above one.
    pub(super) fn is_probing(&self) -> bool {
        self.state == Bbr1State::ProbeBw && self.cycle_index == 0
    }

    pub(super) fn cwnd_gain(&self) -> f64 {
        match self.state {
            Bbr1State::Startup | Bbr1State::Drain => HIGH_GAIN,
            Bbr1State::ProbeBw => 2.0,
            Bbr1State::ProbeRtt => 1.0,
        }
    }

    /// Ends Startup when three round trips have not raised the bandwidth by a quarter.
    pub(super) fn check_full_pipe(&mut self) {
        if self.filled_pipe || !self.rounds.start || self.app_limited {
            return;
        }
        if self.btl_bw.get() >= self.full_bw * FULL_BW_GROWTH {
            (self.full_bw, self.full_bw_count) = (self.btl_bw.get(), 0);
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= FULL_BW_ROUNDS;
    }

    /// BBR §4.3.3.
    pub(super) fn check_drain(&mut self) {
        if self.state == Bbr1State::Startup && self.filled_pipe {
            self.state = Bbr1State::Drain;
        }
        if self.state == Bbr1State::Drain && self.in_flight <= self.inflight(1.0) {
            self.enter_probe_bw();
        }
    }

    /// The cycle begins anywhere but where it drains: there is nothing to drain, and others begin elsewhere.
    pub(super) fn enter_probe_bw(&mut self) {
        self.state = Bbr1State::ProbeBw;
        let draw = (self.rng.roll() % (CYCLE.len() as u64 - 1)) as usize;
        self.cycle_index = if draw >= DRAINING { draw + 1 } else { draw };
        self.cycle_stamp = self.now;
    }

    /// BBR §4.3.4.3.
    pub(super) fn check_cycle_phase(&mut self) {
        if self.state == Bbr1State::ProbeBw && self.is_next_cycle_phase() {
            self.cycle_index = (self.cycle_index + 1) % CYCLE.len();
            self.cycle_stamp = self.now;
        }
    }

    fn is_next_cycle_phase(&self) -> bool {
        let over = self.now.since(self.cycle_stamp) > self.rtprop.unwrap_or_default();
        let gain = self.pacing_gain();
        if gain > 1.0 {
            // A probe needs what it asks for to be under way, or to be too much.
            over && (self.newly_lost > 0.0 || self.in_flight_before >= self.inflight(gain))
        } else if gain < 1.0 {
            over || self.in_flight_before <= self.inflight(1.0)
        } else {
            over
        }
    }

    /// BBR §4.3.5: no round trip as short as RTprop for ten seconds.
    pub(super) fn check_probe_rtt(&mut self) {
        if self.state != Bbr1State::ProbeRtt && self.rtprop_expired && !self.idle_restart {
            self.save_cwnd();
            self.state = Bbr1State::ProbeRtt;
            self.probe_rtt_done_stamp = None;
        }
        if self.state == Bbr1State::ProbeRtt {
            self.handle_probe_rtt();
        }
        if self.newly_delivered > 0.0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self) {
        if self.probe_rtt_done_stamp.is_some() {
            self.probe_rtt_round_done |= self.rounds.start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done();
            }
        } else if self.in_flight <= MIN_PIPE_CWND {
            self.probe_rtt_done_stamp = Some(self.now + PROBE_RTT_DURATION);
            self.probe_rtt_round_done = false;
            self.rounds.restart(self.delivered);
        }
    }

    fn check_probe_rtt_done(&mut self) {
        if self.probe_rtt_done_stamp.is_some_and(|done| self.now > done) {
            self.rtprop_stamp = self.now;
            self.restore_cwnd();
            if self.filled_pipe {
                self.enter_probe_bw();
            } else {
                self.state = Bbr1State::Startup;
            }
        }
    }

    /// BBR §4.3.4.4: after a pause it sends as fast as the path is known to be, not faster.
    pub(super) fn handle_restart_from_idle(&mut self) {
        if self.delivered == 0 {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(self.now);
        match self.state {
            Bbr1State::ProbeBw => self.set_pacing_rate(1.0),
            Bbr1State::ProbeRtt => self.check_probe_rtt_done(),
            Bbr1State::Startup | Bbr1State::Drain => {}
        }
    }
}
