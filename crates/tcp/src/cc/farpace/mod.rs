//! The congestion control of the profile `farpace`: for paths of which nothing is known but that they are
//! far.
//!
//! Each part answers one thing that goes wrong on such paths.
//!
//! * **Start** ([`train`]): the first flight leaves in one burst, and the spacing of its ACKs tells what the
//!   path carries. Longer trains follow at half of that rate, each up to sixteen times the one before, if the
//!   one before has arrived at its rate. When a train fills a round trip, the window grows with its ACKs to
//!   all of the rate: three round trips instead of a dozen, or six instead of twenty.
//! * **Queue** ([`path`]): the window is what the path holds when empty, and a few segments more,
//!
//!   ```text
//!   each round trip:  w <- w + ((w · base/rtt + alpha) - w) / 2        (the fixed point of FAST TCP)
//!   ```
//!
//!   with `rtt` the median of a round trip, `base` the least of the medians, and `alpha` the segments that
//!   this connection keeps in the queue: a few, or as many as an ACK tells of at once. So the queue stays
//!   short, connections share alike, and a loss is no news. Where there is no queue, alpha doubles each round
//!   trip, except near the window that was too much last; it counts twice where the queue does not grow with
//!   the window, because a second line takes the rest.
//! * **Loss** ([`loss`]): bit errors lose the same part of the segments at any rate, a full queue or a
//!   policer loses more when more is sent. So more loss than usual cuts the window to what was delivered, and
//!   what is lost after that is usual.
//! * **Neighbours** ([`share`]): a queue that others keep filled while this connection holds hardly anything
//!   of it would starve it. Until that queue is gone the window follows CUBIC (RFC 9438), and more loss than
//!   usual reduces it. The same holds at a policer.
//! * **Pacing**: always, so that a window never leaves as a burst.
//!
//! Timeouts are AEN's business (`timeout = "aen"`); one that was right opens the window again from a quarter.

mod aggregation;
mod loss;
mod path;
mod probe;
mod share;
mod start;
mod steady;
#[cfg(test)]
mod tests;
mod train;
mod way_back;

use super::rounds::PacketRounds;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, SentSample};
use crate::window::Window;
use aggregation::AckAggregation;
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};
use loss::LossJudge;
use path::PathModel;
use probe::QueueProbe;
use share::LossShare;
use train::{PacketTrain, TrainPace};
use way_back::WayBack;

/// Segments that a connection keeps in the queue, at least ...
const MIN_ALPHA: f64 = 3.0;
/// ... and as a part of its window, so that fast paths give a delay that can be measured.
const ALPHA_SHARE: f64 = 0.005;
/// But not more than short queues on fast paths hold.
const MAX_ALPHA: f64 = 300.0;
/// Segments that ACKs tell of at once count as alpha up to this part of the window: without more than that in
/// flight there is nothing to wait for.
const MAX_AGGREGATION: f64 = 0.5;
/// A queue of so many times the usual movement of round trips is none ...
const JITTER_MOVEMENTS: f64 = 3.0;
/// ... up to this part of the window.
const MAX_JITTER: f64 = 1.0 / 6.0;
/// The part of what was delivered that a cut leaves, so that the queue drains.
const DRAIN: f64 = 0.95;
/// The least window in force: what keeps ACKs coming, and lets SACK find a loss.
const MIN_CWND: f64 = 4.0;
/// The least window that the model wants. What is below [`MIN_CWND`] the pacing rate enforces.
const MIN_WINDOW: f64 = 0.5;
/// Pacing is a little faster than the window, so that it smooths and does not limit.
const PACING_GAIN: f64 = 1.1;
/// So many segments of a window may be missing in flight: of a tenth of them, by which pacing is faster than
/// the window, a short queue loses nothing.
const MAX_MISSING: f64 = 1000.0;
/// The first flight is meant to be a burst.
const BURST_RATE: Rate = Rate::from_mbit(1_000_000);

/// What the connection is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum FarpacePhase {
    /// The first flight is out: its ACKs are timed.
    #[default]
    Train,
    /// What the train said would fill far more than it can vouch for: a train at half of the rate is under
    /// way.
    Trains {
        /// What was said last, bytes a second.
        rate: f64,
        /// The train under way; none until its first ACK comes.
        train: Option<TrainPace>,
    },
    /// Half of what the train said is under way; with its ACKs the window grows to all of it.
    Ramp {
        /// What the train said, bytes a second.
        rate: f64,
        /// The window at half of it.
        half: f64,
        /// ACKs of the half come.
        clocked: bool,
    },
    /// The window has reached what the train said, without a queue, and the train may have said too little:
    /// the window grows by a part.
    Beyond {
        /// The window from which on it doubles.
        most: f64,
    },
    /// The train said nothing: the window doubles.
    Double {
        /// What the first burst lost is no longer counted.
        judged: bool,
    },
    /// Following the queue.
    Steady,
}

/// What a round trip brought.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    delivered: f64,
    lost: f64,
    /// The highest delivery rate, bytes a second.
    bandwidth: f64,
    /// The window held data back.
    limited: bool,
    /// A congestion mark came back.
    marked: bool,
}

/// The controller; one that knows nothing of its path by default.
#[derive(Clone, Debug, Default)]
pub struct Farpace {
    phase: FarpacePhase,
    /// The window that the model wants, segments.
    w: f64,
    /// The window in force: less than `w` after a timeout.
    cwnd: f64,
    rounds: PacketRounds,
    round: Round,
    path: PathModel,
    train: PacketTrain,
    /// Trains that told nothing.
    trains: u32,
    loss: LossJudge,
    way_back: WayBack,
    /// The latest round trip, without what its ACK has waited for.
    rtt: Option<Span>,
    aggregation: AckAggregation,
    /// Round trips without a queue.
    calm: u32,
    /// The window beside others.
    share: LossShare,
    /// The window before a cut whose effect is awaited; zero: there is none.
    probed: f64,
    probe: Option<QueueProbe>,
    /// Round trips since the last dip began, and since the last probe was over.
    since_dip: u32,
    since_probe: u32,
    /// By how much the window may rise, because it did half of that without a queue; zero: not known.
    room: f64,
    /// The window that was too much last; zero: not known.
    limit: f64,
    /// A queue told so, and not losses.
    limit_by_queue: bool,
    /// A queue, or losses, have shown that the window is no smaller than what the path holds.
    was_full: bool,
    /// Round trips that still tell of what was sent before a queue ended the start.
    settling: u32,
    /// The bandwidth of the last round trip, bytes a second.
    bandwidth: f64,
    /// The highest of all.
    best: f64,
    srtt: Span,
    mss: f64,
    /// Segments in flight.
    flight: f64,
    /// Timeouts since something was delivered.
    timeouts: u32,
    /// Before the last reduction.
    before: (f64, f64),
}

/// Segments to keep in the queue where each pair has an ACK of its own.
fn least_alpha(w: f64) -> f64 {
    (ALPHA_SHARE * w).clamp(MIN_ALPHA, MAX_ALPHA)
}

impl Farpace {
    fn begin(&mut self, window: &Window) {
        self.mss = f64::from(window.mss().max(1));
        if self.w <= 0.0 {
            self.w = f64::from(window.cwnd().get());
            self.cwnd = self.w;
        }
    }

    fn set_window(&self, window: &mut Window) {
        debug_assert!(self.w.is_finite() && self.cwnd.is_finite());
        window.set_cwnd(Packets::new(self.cwnd as u32)); // a cast from floating point saturates
    }

    /// Segments to keep in the queue. What waits at the receiver, or in a box on the way back, to be told by
    /// one ACK is in flight besides what the path holds; without as many more the line runs empty between two
    /// ACKs (draft-ietf-ccwg-bbr §5.5.9: extra_acked). With an ACK for each pair this is no more than the
    /// least alpha.
    fn alpha(&self) -> f64 {
        let together = (self.aggregation.together() + 1.0).min(self.w * MAX_AGGREGATION);
        // Round trips that move by themselves look like a queue: as much is none.
        let rtt = self.path.base().as_secs_f64().max(1e-9);
        let jitter = (JITTER_MOVEMENTS * self.path.movement() / rtt).min(MAX_JITTER) * self.w;
        least_alpha(self.w).max(together).max(jitter)
    }

    /// Segments that the empty path holds at so many bytes a second.
    fn holds(&self, rate: f64) -> f64 {
        rate * self.path.base().as_secs_f64() / self.mss
    }

    /// The window that brings so many bytes a second: what the empty path holds, what waits to be told by the
    /// next ACK, and what ACKs tell of that wait on their way back.
    fn window_for(&self, rate: f64) -> f64 {
        // At a policer what is in flight besides goes into its bucket.
        let wait = if self.share.is_policed() { Span::ZERO } else { self.way_back.wait() };
        self.holds(rate) + rate * wait.as_secs_f64() / self.mss + self.aggregation.together()
    }

    /// What the line is known to carry, bytes a second; zero: nothing is known yet. The rate of a window that
    /// grows is not that of the line.
    fn known_rate(&self) -> f64 {
        let shown = self.best.max(self.round.bandwidth);
        match self.phase {
            FarpacePhase::Train => 0.0,
            FarpacePhase::Trains { rate, .. } | FarpacePhase::Ramp { rate, .. } => shown.max(rate),
            FarpacePhase::Beyond { .. } | FarpacePhase::Double { .. } | FarpacePhase::Steady => shown,
        }
    }

    /// The window of a round trip, segments.
    fn paced_window(&self) -> f64 {
        if self.is_paced() { self.cwnd.min(self.w) } else { self.cwnd.max(1.0) }
    }

    /// The window that the model wants is less than keeps ACKs coming: the pacing rate is the limit.
    fn is_paced(&self) -> bool {
        self.phase == FarpacePhase::Steady && self.w < MIN_CWND
    }

    /// Windows a round trip at which segments leave. A large window that is not all in flight fills at the
    /// rate that the path has shown: at more, what a short queue cannot hold is lost before the window is
    /// full.
    fn windows_a_round(&self) -> f64 {
        let window = self.paced_window() * self.mss;
        let known = match self.phase {
            FarpacePhase::Ramp { rate, .. } => rate,
            FarpacePhase::Steady => self.best,
            FarpacePhase::Train
            | FarpacePhase::Trains { .. }
            | FarpacePhase::Beyond { .. }
            | FarpacePhase::Double { .. } => return PACING_GAIN,
        };
        if self.is_paced() {
            return 1.0;
        }
        if self.flight + MAX_MISSING >= self.cwnd {
            return PACING_GAIN;
        }
        (known * self.srtt.as_secs_f64() / window).clamp(1.0, PACING_GAIN)
    }

    fn end_round(&mut self, ack: &AckSample) {
        let round = std::mem::take(&mut self.round);
        if round.bandwidth > 0.0 {
            self.bandwidth = round.bandwidth;
        }
        let before = self.best;
        self.best = before.max(round.bandwidth);
        self.aggregation.end_round();
        self.way_back.end_round();
        // After a timeout less is in force than is wanted.
        let window = self.w.min(self.cwnd);
        let queue = self.path.end_round(ack.now, window, self.alpha(), self.best / self.mss);
        if self.phase == FarpacePhase::Steady {
            self.follow(ack.now, &round, queue);
            self.settling = self.settling.saturating_sub(1);
        } else {
            self.start_round(ack, &round, queue, before);
        }
        self.w = self.w.clamp(MIN_WINDOW, f64::from(u32::MAX));
    }
}

impl CongestionControl for Farpace {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.begin(window);
        self.srtt = ack.srtt;
        self.path.at_least(ack.base_of_paths);
        self.rtt = ack.rate.and_then(|r| r.rtt).or(ack.rtt);
        if let (Some(rtt), Some(stamp)) = (self.rtt, ack.peer_clock) {
            self.rtt = Some(self.way_back.without_queue(ack.now, stamp, rtt, self.path.base()));
        }
        if let Some(rtt) = self.rtt {
            self.path.sample(rtt);
        }
        let rate = ack.rate.and_then(|r| r.rate).map_or(0.0, |r| r.as_bytes_per_sec_f64());
        self.round.bandwidth = self.round.bandwidth.max(rate);
        self.flight = f64::from(ack.in_flight.get());
        let delivered = f64::from(ack.delivered.get());
        self.aggregation.on_ack(ack.now, delivered, self.known_rate() / self.mss);
        self.round.delivered += delivered;
        self.round.lost += f64::from(ack.lost.get());
        // A window that a timeout holds below the one wanted says nothing of that one.
        let app_limited = ack.rate.is_some_and(|rate| rate.app_limited);
        self.round.limited |= (ack.cwnd_limited || self.is_paced() && !app_limited) && self.cwnd >= self.w;
        self.round.marked |= ack.ece;
        if !ack.delivered.is_zero() {
            self.timeouts = 0;
        }
        if self.phase == FarpacePhase::Train
            && self.train.on_ack(ack)
            && let Some(rate) = ack.rate
        {
            self.path.end_round(ack.now, self.w, self.alpha(), 0.0);
            self.on_train(rate.total_delivered);
            self.rounds.restart(rate.total_delivered);
        }
        self.open(ack);
        if let Some(rate) = ack.rate {
            self.rounds.on_ack(Some(rate.prior_delivered), rate.total_delivered);
            if self.rounds.start {
                self.end_round(ack);
            }
        }
        if self.phase != FarpacePhase::Steady {
            self.cwnd = self.w;
        } else if !ack.delivered.is_zero() {
            // After a timeout the window opens again by what arrives, from a quarter of what it was.
            self.cwnd = (self.cwnd + f64::from(ack.delivered.get())).max(self.w / 4.0);
        }
        self.cwnd = self.cwnd.min(self.w.max(MIN_CWND));
        self.set_window(window);
    }

    fn on_sent(&mut self, window: &mut Window, sent: &SentSample) {
        self.begin(window);
        if self.srtt.is_zero() {
            self.srtt = sent.srtt;
        }
    }

    /// The threshold means nothing here; but a reduction may begin, and may have to be taken back.
    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        self.begin(window);
        self.before = (self.w, self.cwnd);
        window.ssthresh()
    }

    fn min_cwnd(&self, _: &Window) -> Packets {
        Packets::new(MIN_CWND as u32)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(Packets::new(self.before.1 as u32))
    }

    fn on_event(&mut self, _: Instant, window: &mut Window, event: CongestionEvent) {
        self.begin(window);
        match event {
            CongestionEvent::Established(rtt) => {
                self.srtt = rtt;
                return;
            }
            CongestionEvent::EnterLoss { .. } => {
                self.timeouts = self.timeouts.saturating_add(1);
                self.phase = FarpacePhase::Steady;
                self.was_full = true;
                (self.probe, self.probed) = (None, 0.0);
                self.loss.stop_test();
                self.path.ignore_window();
                // RFC 5681 §3.1. That the path carries less, no timeout tells: w stays, also after several.
                self.cwnd = 1.0;
            }
            CongestionEvent::Undo => {
                self.w = self.w.max(self.before.0);
                self.cwnd = self.cwnd.max(self.before.1).min(self.w.max(MIN_CWND));
            }
            CongestionEvent::EnterRecovery | CongestionEvent::ExitRecovery | CongestionEvent::Restart(_) => {
                return;
            }
        }
        self.set_window(window);
    }

    fn owns_window(&self) -> bool {
        true
    }

    fn loss_tolerant(&self) -> bool {
        true
    }

    fn wants_rates(&self) -> bool {
        true
    }

    fn pacing(&self) -> Option<Rate> {
        if self.phase == FarpacePhase::Train || self.srtt.is_zero() {
            return Some(BURST_RATE);
        }
        if let FarpacePhase::Trains { rate, .. } = self.phase {
            return Some(Rate::from_bytes_per_sec_f64(rate / 2.0).max(Rate::from_bits_per_sec(8)));
        }
        let bytes = (self.paced_window() * self.mss * self.windows_a_round()) as u64;
        Some(Rate::of(ByteCount::new(bytes), self.srtt).max(Rate::from_bits_per_sec(8)))
    }

    fn bandwidth(&self) -> Option<Rate> {
        (self.bandwidth > 0.0).then(|| Rate::from_bytes_per_sec_f64(self.bandwidth))
    }

    fn name(&self) -> &'static str {
        "farpace"
    }
}
