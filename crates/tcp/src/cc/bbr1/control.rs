//! What follows from the model for the pacing rate and the window (BBR §4.2).

use super::{Bbr1, Bbr1State, MIN_PIPE_CWND};
use farpace_units::Span;

/// The round trip to assume for the first pacing rate.
const NOMINAL_RTT: Span = Span::from_millis(1);
/// The pacing rate is so much of what the gain asks for, so that queues do not grow by its error (Linux).
const PACING_MARGIN: f64 = 0.99;
/// BBR §4.2.2: what is sent at once: what is sent in a millisecond (1/1024 s, as Linux has it), at most 64 kB
/// and at least two segments, one below this rate (bytes/s).
const ONE_SEGMENT_RATE: f64 = 1.2e6 / 8.0;
const QUANTUM_TIME: f64 = 1.0 / 1024.0;
const MAX_QUANTUM: f64 = 64_000.0;
/// Aggregated ACKs that the window has room for, in time.
const MAX_AGGREGATION: Span = Span::from_millis(100);

impl Bbr1 {
    /// BBR §4.2.1.
    pub(super) fn init_pacing_rate(&mut self, srtt: Span) {
        let srtt = if srtt.is_zero() { NOMINAL_RTT } else { srtt };
        let nominal = self.initial_cwnd.unwrap_or(self.cwnd) * self.mss / srtt.as_secs_f64();
        self.pacing_rate = PACING_MARGIN * self.pacing_gain() * nominal;
    }

    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = PACING_MARGIN * gain * self.bw();
        // Before the pipe was full once, the rate only rises.
        if (self.filled_pipe && rate > 0.0) || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Segments.
    fn send_quantum(&self) -> f64 {
        let least = if self.pacing_rate < ONE_SEGMENT_RATE { 1.0 } else { 2.0 };
        libm::floor((self.pacing_rate * QUANTUM_TIME).min(MAX_QUANTUM) / self.mss).max(least)
    }

    /// BBRInflight: what has to be under way at `gain`, segments (BBR §4.2.3.2).
    pub(super) fn inflight(&self, gain: f64) -> f64 {
        self.quantized(self.volume(self.btl_bw.get(), gain))
    }

    /// What a path of this rate holds, times `gain`, in segments.
    fn volume(&self, bw: f64, gain: f64) -> f64 {
        match self.rtprop {
            Some(rtprop) => libm::ceil(gain * bw * rtprop.as_secs_f64() / self.mss),
            None => self.initial_cwnd.unwrap_or(self.cwnd),
        }
    }

    /// Room for aggregated ACKs once the pipe has been full, at most for 100 ms of them (Linux).
    pub(super) fn room(&self) -> f64 {
        let most = self.bw() / self.mss * MAX_AGGREGATION.as_secs_f64();
        if self.filled_pipe { libm::floor(self.extra_acked.get().min(most)) } else { 0.0 }
    }

    /// With what waits in both hosts' stacks: three quanta. The least windows are even, so that delayed ACKs
    /// do not hold one back, and a probe has two segments more (Linux).
    fn quantized(&self, volume: f64) -> f64 {
        let even = 2.0 * libm::ceil((volume + 3.0 * self.send_quantum()) / 2.0);
        even + if self.is_probing() { 2.0 } else { 0.0 }
    }

    /// BBR §4.2.3.
    pub(super) fn set_cwnd(&mut self) {
        self.modulate_for_recovery();
        if !self.packet_conservation {
            let target = self.quantized(self.volume(self.bw(), self.cwnd_gain()) + self.room());
            let grown = self.cwnd + self.newly_delivered;
            if self.filled_pipe {
                self.cwnd = grown.min(target);
            } else if self.cwnd < target || (self.delivered as f64) < self.initial_cwnd.unwrap_or(self.cwnd) {
                self.cwnd = grown;
            }
            self.cwnd = self.cwnd.max(MIN_PIPE_CWND);
        }
        if self.state == Bbr1State::ProbeRtt {
            self.cwnd = self.cwnd.min(MIN_PIPE_CWND);
        }
    }

    /// BBR §4.2.3.3: what is lost leaves the window; in the first round trip of a recovery no more is sent
    /// than arrives.
    fn modulate_for_recovery(&mut self) {
        self.cwnd = (self.cwnd - self.newly_lost).max(1.0);
        if std::mem::take(&mut self.entering) {
            self.cwnd = self.in_flight + self.newly_delivered.max(1.0);
        }
        if self.packet_conservation {
            self.cwnd = self.cwnd.max(self.in_flight + self.newly_delivered);
        }
    }

    /// The last window that was modulated neither by a recovery nor by ProbeRTT.
    pub(super) fn save_cwnd(&mut self) {
        self.prior_cwnd = if !self.in_loss_recovery && self.state != Bbr1State::ProbeRtt {
            self.cwnd
        } else {
            self.prior_cwnd.max(self.cwnd)
        };
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}
