//! BBRv3 (draft-ietf-ccwg-bbr): a model of the path, its bandwidth and round trip, sets window and pacing
//! rate.
//!
//! One file for each part of the draft: [`model`] (§5.5: what the path can do), [`signals`] (§5.5.10: what
//! losses say), [`startup`] (§5.3.1, §5.3.2), [`probe_bw`] (§5.3.3), [`probe_rtt`] (§5.3.4), [`control`]
//! (§5.6: what follows for window and rate) and [`undo`] (§5.5.11). This file holds the state and the order
//! of the steps. Names are the draft's.
//!
//! Volumes are counted in segments, as everywhere in this crate, with fractions where the model needs them;
//! rates in bytes per second. ECN is not used: the draft does not either.

mod control;
mod model;
mod probe_bw;
mod probe_rtt;
mod signals;
mod startup;
#[cfg(test)]
mod tests;
mod undo;

use super::extra_acked::ExtraAcked;
use super::rounds::PacketRounds;
use super::split_mix::SplitMix64;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, SentSample};
use crate::segments::{LostSegment, RateSample};
use crate::window::Window;
use farpace_units::{Instant, Packets, Rate, Seq, Span};
use model::MaxBandwidth;
use undo::BbrUndo;

/// BBR.LossThresh: the loss rate of a round trip that is too much.
const LOSS_THRESH: f64 = 0.02;
/// BBR.Beta: what a round trip with losses leaves of the short-term bounds.
const BETA: f64 = 0.7;
/// BBR.MinPipeCwnd, segments.
const MIN_PIPE_CWND: f64 = 4.0;

/// Where BBR is in its cycle (§5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrState {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// What the ACKs mean that arrive now, with respect to bandwidth probing (BBR.ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The rate sample of the ACK at hand, or of the segment found lost (RS).
#[derive(Clone, Copy, Debug, Default)]
struct BbrSample {
    /// Zero: no sample.
    delivery_rate: f64,
    delivered: f64,
    prior_delivered: u64,
    newly_acked: f64,
    app_limited: bool,
    tx_in_flight: f64,
    lost: f64,
    has_data: bool,
}

impl BbrSample {
    fn of(rate: Option<RateSample>) -> Self {
        let Some(rs) = rate else { return BbrSample::default() };
        BbrSample {
            delivery_rate: rs.rate.map_or(0.0, Rate::as_bytes_per_sec_f64),
            delivered: f64::from(rs.delivered.get()),
            prior_delivered: rs.prior_delivered,
            newly_acked: f64::from(rs.newly_delivered.get()),
            app_limited: rs.app_limited,
            tx_in_flight: f64::from(rs.in_flight_at_send.get()),
            lost: f64::from(rs.lost.get()),
            has_data: true,
        }
    }
}

/// State of BBR. Bounds that are not set are infinite.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: BbrState,
    // The connection, as of the call under way (C.*)
    now: Instant,
    rs: BbrSample,
    cwnd: f64,
    in_flight: f64,
    /// The same before the ACK at hand.
    in_flight_before: f64,
    /// Segments delivered over the whole connection.
    delivered: u64,
    mss: f64,
    cwnd_limited: bool,
    has_sack: bool,
    in_loss_recovery: bool,
    initial_cwnd: Option<f64>,
    // Model
    rounds: PacketRounds,
    max_bw: MaxBandwidth,
    bw: f64,
    bw_shortterm: f64,
    bw_latest: f64,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    inflight_latest: f64,
    min_rtt: Option<Span>,
    min_rtt_stamp: Instant,
    extra_acked: ExtraAcked,
    // Loss signals
    loss_round_delivered: u64,
    loss_round_start: bool,
    is_loss_in_round: bool,
    /// Discontiguous ranges lost in this round trip, and where the last one ends.
    lost_ranges: u32,
    lost_end: Option<Seq>,
    // Startup and Drain
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: u64,
    // ProbeBW
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_up_rounds: u32,
    rounds_since_probe_up: u32,
    bw_probe_wait: Span,
    cycle_stamp: Instant,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    rng: SplitMix64,
    // ProbeRTT
    probe_rtt_min_delay: Option<Span>,
    probe_rtt_min_stamp: Instant,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Instant>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    // Control
    prior_cwnd: f64,
    /// Bytes per second; zero before the first segment.
    pacing_rate: f64,
    /// The pacing rate has been worked out from a round trip, not from a guess.
    has_seen_rtt: bool,
    undo: BbrUndo,
}

impl Bbr {
    /// A BBR that knows nothing (§5.2.1). Connections with different seeds probe at different times.
    pub fn new(seed: u32) -> Self {
        Bbr {
            state: BbrState::Startup,
            now: Instant::ZERO,
            rs: BbrSample::default(),
            cwnd: 1.0,
            in_flight: 0.0,
            in_flight_before: 0.0,
            delivered: 0,
            mss: 1.0,
            cwnd_limited: false,
            has_sack: true,
            in_loss_recovery: false,
            initial_cwnd: None,
            rounds: PacketRounds::default(),
            max_bw: MaxBandwidth::default(),
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_latest: 0.0,
            min_rtt: None,
            min_rtt_stamp: Instant::ZERO,
            extra_acked: ExtraAcked::default(),
            loss_round_delivered: 0,
            loss_round_start: false,
            is_loss_in_round: false,
            lost_ranges: 0,
            lost_end: None,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: Span::ZERO,
            cycle_stamp: Instant::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            rng: SplitMix64::new(seed),
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Instant::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_cwnd: 0.0,
            pacing_rate: 0.0,
            has_seen_rtt: false,
            undo: BbrUndo::default(),
        }
    }

    /// Takes what the connection says at the begin of a call.
    fn begin(&mut self, now: Instant, window: &Window) {
        self.now = now;
        self.cwnd = f64::from(window.cwnd().get());
        self.mss = f64::from(window.mss().max(1));
    }

    fn set_window(&self, window: &mut Window) {
        debug_assert!(self.cwnd.is_finite() && self.pacing_rate.is_finite() && self.bw.is_finite());
        // A cast from floating point saturates.
        window.set_cwnd(Packets::new(self.cwnd as u32));
    }

    fn update_model_and_state(&mut self, rtt: Option<Span>, base_of_paths: Span) {
        self.update_latest_delivery_signals();
        self.update_congestion_signals();
        self.update_ack_aggregation();
        self.check_full_bw_reached();
        self.check_startup_done();
        self.check_drain_done();
        self.update_probe_bw_cycle_phase();
        self.update_min_rtt(rtt, base_of_paths);
        self.check_probe_rtt();
        self.advance_latest_delivery_signals();
        self.bound_bw_for_model();
    }
}

impl CongestionControl for Bbr {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.begin(ack.now, window);
        self.in_flight = f64::from(ack.in_flight.get());
        self.in_flight_before = f64::from(ack.in_flight_before.get());
        self.cwnd_limited = ack.cwnd_limited;
        self.has_sack = ack.sack;
        self.rs = BbrSample::of(ack.rate);
        if let Some(rate) = ack.rate {
            self.delivered = rate.total_delivered;
        }
        let rtt = ack.rate.and_then(|r| r.rtt).or(ack.rtt);
        if let Some(rtt) = rtt
            && !self.has_seen_rtt
        {
            self.has_seen_rtt = true;
            self.init_pacing_rate(rtt);
        }
        self.update_model_and_state(rtt, ack.base_of_paths);
        self.set_pacing_rate();
        self.set_cwnd();
        self.set_window(window);
    }

    fn on_lost(&mut self, now: Instant, window: &mut Window, lost: &LostSegment) {
        self.begin(now, window);
        self.handle_lost_segment(lost);
    }

    fn on_sent(&mut self, window: &mut Window, sent: &SentSample) {
        if self.initial_cwnd.is_some() {
            return;
        }
        self.begin(sent.now, window);
        self.initial_cwnd = Some(self.cwnd);
        self.min_rtt_stamp = sent.now;
        self.probe_rtt_min_stamp = sent.now;
        self.extra_acked.restart(sent.now);
        if !sent.srtt.is_zero() {
            self.min_rtt = Some(sent.srtt);
            self.has_seen_rtt = true;
        }
        self.init_pacing_rate(sent.srtt);
    }

    /// The threshold means nothing to BBR, and losses do not cut the window: they are taken into the model.
    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        window.ssthresh()
    }

    fn min_cwnd(&self, _: &Window) -> Packets {
        Packets::new(MIN_PIPE_CWND as u32)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(Packets::new(self.prior_cwnd as u32))
    }

    fn on_event(&mut self, now: Instant, window: &mut Window, event: CongestionEvent) {
        self.begin(now, window);
        match event {
            CongestionEvent::EnterRecovery => {
                self.save_state_upon_loss();
                self.in_loss_recovery = true;
            }
            CongestionEvent::EnterLoss { .. } => {
                self.save_state_upon_loss();
                self.in_loss_recovery = true;
                // §5.6.4.4. What a timeout by time (RFC 8985 §6.3) leaves in flight need not be known: the
                // head is sent whatever the window says, and its ACK opens it again.
                self.cwnd = 1.0;
            }
            CongestionEvent::ExitRecovery => {
                self.in_loss_recovery = false;
                self.restore_cwnd();
            }
            CongestionEvent::Undo => {
                self.in_loss_recovery = false;
                self.handle_spurious_loss_detection();
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
        self.state == BbrState::ProbeRtt
    }

    fn wants_rates(&self) -> bool {
        true
    }

    fn hides_rate(&self) -> bool {
        self.state == BbrState::ProbeRtt
    }

    fn pacing(&self) -> Option<Rate> {
        (self.pacing_rate > 0.0).then(|| Rate::from_bytes_per_sec_f64(self.pacing_rate.max(1.0)))
    }

    fn bandwidth(&self) -> Option<Rate> {
        let bw = self.max_bw.get();
        (bw > 0.0).then(|| Rate::from_bytes_per_sec_f64(bw))
    }

    fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    fn name(&self) -> &'static str {
        "bbr3"
    }
}
