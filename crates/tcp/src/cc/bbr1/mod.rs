//! BBRv1 (draft-cardwell-iccrg-bbr-congestion-control-00, BBR below): window and rate from a model of the
//! path.
//!
//! BtlBw is the greatest delivery rate of ten round trips, RTprop the least round trip of ten seconds. The
//! pacing rate is pacing_gain·BtlBw, the window cwnd_gain·BtlBw·RTprop and three quanta. This file holds the
//! state and the order of the steps, [`phases`] the cycle, [`control`] window and rate.
//!
//! As in Linux, the window has room for aggregated ACKs ([`ExtraAcked`]), a policer's rate is kept
//! ([`policers`]), and the pacing rate is 1 % lower. Other losses change nothing but the window during a
//! recovery: that is what v3 was made for.

mod control;
mod phases;
mod policers;
#[cfg(test)]
mod tests;

use super::extra_acked::{AckedBatch, ExtraAcked};
use super::rounds::PacketRounds;
use super::split_mix::SplitMix64;
use super::windowed_max::WindowedMax;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, SentSample};
use crate::segments::RateSample;
use crate::window::Window;
use farpace_units::{Instant, Packets, Rate, Span};
use policers::{PolicerSample, PolicerSearch};

/// BtlBwFilterLen, round trips (BBR §4.1.1.5).
const BTL_BW_FILTER_LEN: u64 = 10;
/// RTpropFilterLen (BBR §4.1.2.3).
const RTPROP_FILTER_LEN: Span = Span::from_secs(10);
/// BBRMinPipeCwnd, segments (BBR §4.2.3.4).
const MIN_PIPE_CWND: f64 = 4.0;

/// BBR §3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bbr1State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// State of BBRv1. Volumes in segments, rates in bytes per second.
#[derive(Clone, Debug)]
pub struct Bbr1 {
    state: Bbr1State,
    // The connection, as of the call under way
    now: Instant,
    cwnd: f64,
    in_flight: f64,
    in_flight_before: f64,
    mss: f64,
    /// Segments delivered over the whole connection, when the last of them were, and how many by the ACK at
    /// hand.
    delivered: u64,
    delivered_at: Instant,
    newly_delivered: f64,
    newly_lost: f64,
    app_limited: bool,
    initial_cwnd: Option<f64>,
    // Model
    rounds: PacketRounds,
    btl_bw: WindowedMax,
    extra_acked: ExtraAcked,
    policers: PolicerSearch,
    rtprop: Option<Span>,
    rtprop_stamp: Instant,
    rtprop_expired: bool,
    // Phases
    filled_pipe: bool,
    full_bw: f64,
    full_bw_count: u32,
    cycle_index: usize,
    cycle_stamp: Instant,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    rng: SplitMix64,
    // Control
    pacing_rate: f64,
    has_seen_rtt: bool,
    prior_cwnd: f64,
    /// The same when the last recovery began.
    cwnd_before_loss: f64,
    in_loss_recovery: bool,
    /// The next ACK is the first one of a fast recovery.
    entering: bool,
    packet_conservation: bool,
}

impl Bbr1 {
    /// One that knows nothing (BBR §4.3.1.1). Connections with different seeds probe at different times.
    pub fn new(seed: u32) -> Self {
        Bbr1 {
            state: Bbr1State::Startup,
            now: Instant::ZERO,
            cwnd: 1.0,
            in_flight: 0.0,
            in_flight_before: 0.0,
            mss: 1.0,
            delivered: 0,
            delivered_at: Instant::ZERO,
            newly_delivered: 0.0,
            newly_lost: 0.0,
            app_limited: false,
            initial_cwnd: None,
            rounds: PacketRounds::default(),
            btl_bw: WindowedMax::default(),
            extra_acked: ExtraAcked::default(),
            policers: PolicerSearch::default(),
            rtprop: None,
            rtprop_stamp: Instant::ZERO,
            rtprop_expired: false,
            filled_pipe: false,
            full_bw: 0.0,
            full_bw_count: 0,
            cycle_index: 0,
            cycle_stamp: Instant::ZERO,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            rng: SplitMix64::new(seed),
            pacing_rate: 0.0,
            has_seen_rtt: false,
            prior_cwnd: 0.0,
            cwnd_before_loss: 0.0,
            in_loss_recovery: false,
            entering: false,
            packet_conservation: false,
        }
    }

    fn begin(&mut self, now: Instant, window: &Window) {
        self.now = now;
        self.cwnd = f64::from(window.cwnd().get());
        self.mss = f64::from(window.mss().max(1));
    }

    fn set_window(&self, window: &mut Window) {
        debug_assert!(self.cwnd.is_finite() && self.pacing_rate.is_finite());
        window.set_cwnd(Packets::new(self.cwnd as u32));
    }

    /// The rate to send at, bytes per second: a policer's, or BtlBw.
    fn bw(&self) -> f64 {
        self.policers.rate().unwrap_or_else(|| self.btl_bw.get())
    }

    /// BBR §4.1.1: a rate that the application limited counts only if it is greater than what is known.
    fn update_btl_bw(&mut self, sample: Option<&RateSample>) {
        self.rounds.on_ack(sample.map(|s| s.prior_delivered), self.delivered);
        if self.rounds.start {
            self.packet_conservation = false;
        }
        let Some(sample) = sample else { return };
        self.look_for_policer(sample.total_lost);
        let Some(rate) = sample.rate else { return };
        let rate = rate.as_bytes_per_sec_f64();
        if rate >= self.btl_bw.get() || !self.app_limited {
            self.btl_bw.note(self.rounds.count, rate, BTL_BW_FILTER_LEN);
        }
    }

    /// An ACK or a timeout, as a sample of what a policer delivers; `total_lost` as in [`RateSample`].
    fn look_for_policer(&mut self, total_lost: u64) {
        let sample = PolicerSample {
            delivered_at: self.delivered_at,
            round_start: self.rounds.start,
            newly_lost: self.newly_lost,
            delivered: self.delivered as f64,
            lost: total_lost as f64,
            app_limited: self.app_limited,
            mss: self.mss,
        };
        if self.policers.on_sample(&sample, self.state == Bbr1State::ProbeBw) {
            self.enter_probe_bw();
        }
    }

    /// BBR §4.1.2.
    fn update_rtprop(&mut self, rtt: Option<Span>, base_of_paths: Span) {
        self.rtprop_expired = self.now > self.rtprop_stamp + RTPROP_FILTER_LEN;
        if let Some(rtt) = rtt
            && (self.rtprop_expired || self.rtprop.is_none_or(|least| rtt <= least))
        {
            self.rtprop = Some(rtt);
            self.rtprop_stamp = self.now;
        }
        // A path that is longer than the others has been added.
        self.rtprop = self.rtprop.map(|least| least.max(base_of_paths));
    }
}

impl CongestionControl for Bbr1 {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.begin(ack.now, window);
        self.in_flight = f64::from(ack.in_flight.get());
        self.in_flight_before = f64::from(ack.in_flight_before.get());
        self.newly_lost = f64::from(ack.lost.get());
        self.newly_delivered = ack.rate.map_or(0.0, |r| f64::from(r.newly_delivered.get()));
        self.app_limited = ack.rate.is_some_and(|r| r.app_limited);
        if let Some(sample) = &ack.rate {
            (self.delivered, self.delivered_at) = (sample.total_delivered, ack.now);
        }
        let rtt = ack.rate.and_then(|r| r.rtt).or(ack.rtt);
        if let Some(rtt) = rtt
            && !self.has_seen_rtt
        {
            self.has_seen_rtt = true;
            self.init_pacing_rate(rtt);
        }
        self.update_btl_bw(ack.rate.as_ref());
        let batch = AckedBatch {
            now: self.now,
            round: self.rounds.count,
            acked: self.newly_delivered,
            rate: self.bw() / self.mss,
            cwnd: self.cwnd,
        };
        self.extra_acked.on_ack(&batch, BTL_BW_FILTER_LEN);
        self.check_cycle_phase();
        self.check_full_pipe();
        self.check_drain();
        self.update_rtprop(rtt, ack.base_of_paths);
        self.check_probe_rtt();
        self.set_pacing_rate(self.pacing_gain());
        self.set_cwnd();
        self.set_window(window);
    }

    fn on_sent(&mut self, window: &mut Window, sent: &SentSample) {
        if self.initial_cwnd.is_some() {
            return;
        }
        self.begin(sent.now, window);
        self.initial_cwnd = Some(self.cwnd);
        self.rtprop_stamp = sent.now;
        if !sent.srtt.is_zero() {
            self.rtprop = Some(sent.srtt);
            self.has_seen_rtt = true;
        }
        self.init_pacing_rate(sent.srtt);
    }

    /// The threshold means nothing to BBR, and losses do not cut its model.
    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        window.ssthresh()
    }

    fn min_cwnd(&self, _: &Window) -> Packets {
        Packets::new(MIN_PIPE_CWND as u32)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(Packets::new(self.cwnd_before_loss as u32))
    }

    fn on_event(&mut self, now: Instant, window: &mut Window, event: CongestionEvent) {
        self.begin(now, window);
        match event {
            CongestionEvent::EnterRecovery => {
                self.save_cwnd();
                self.cwnd_before_loss = self.prior_cwnd;
                self.in_loss_recovery = true;
                self.entering = true;
                self.packet_conservation = true;
                self.rounds.restart(self.delivered);
            }
            CongestionEvent::EnterLoss { total_lost } => {
                // As in Linux, it ends a round trip, in which something was lost.
                (self.rounds.start, self.newly_lost, self.app_limited) = (true, 1.0, false);
                self.look_for_policer(total_lost);
                self.save_cwnd();
                self.cwnd_before_loss = self.prior_cwnd;
                self.in_loss_recovery = true;
                (self.entering, self.packet_conservation) = (false, false);
                self.full_bw = 0.0;
                self.cwnd = 1.0; // BBR §4.2.3.3
            }
            CongestionEvent::ExitRecovery | CongestionEvent::Undo => {
                self.in_loss_recovery = false;
                (self.entering, self.packet_conservation) = (false, false);
                if event == CongestionEvent::Undo {
                    self.prior_cwnd = self.prior_cwnd.max(self.cwnd_before_loss);
                    // A plateau during a slowdown that was none says nothing: look again.
                    (self.full_bw, self.full_bw_count) = (0.0, 0);
                    self.policers.reset();
                }
                self.restore_cwnd();
            }
            CongestionEvent::Restart(_) => self.handle_restart_from_idle(),
            CongestionEvent::Established(_) => {}
        }
        self.set_window(window);
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn loss_tolerant(&self) -> bool {
        true
    }

    /// It may be in slow start while a loss is repaired.
    fn send_buffer_windows(&self) -> u32 {
        3
    }

    fn measures_empty_path(&self) -> bool {
        self.state == Bbr1State::ProbeRtt
    }

    fn wants_rates(&self) -> bool {
        true
    }

    fn hides_rate(&self) -> bool {
        self.state == Bbr1State::ProbeRtt
    }

    fn pacing(&self) -> Option<Rate> {
        (self.pacing_rate > 0.0).then(|| Rate::from_bytes_per_sec_f64(self.pacing_rate.max(1.0)))
    }

    fn name(&self) -> &'static str {
        "bbr1"
    }
}
