//! Estimates all properties of a path.

use super::capacity::{Capacity, CapacitySample, DelayState};
use super::delays::{DelayFit, Delays, OneWayDelay, relative};
use super::message::{ProbeTraffic, ReorderCounts, Reply};
use crate::multi_nic::{PathDelay, PerByte};
use farpace_units::{ByteCount, Instant, Rate, Span};

/// The shortest round trip counts as that of the empty path for one to two epochs.
const RTT_EPOCH: Span = Span::from_secs(5);

/// No neighbour holds frames for longer, whatever it says.
pub(super) const MAX_RESEQUENCE_TIME: Span = Span::from_secs(2);

/// The estimated properties of a path from an own NIC to one of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathEstimate {
    /// True if frames arrive.
    pub up: bool,
    /// One-way delay. The fixed part is relative to the fastest path to the same neighbour.
    pub delay: PathDelay,
    /// Margin over the delay that covers 19 of 20 frames, plus a correction if frames of this path were late.
    pub guard: Span,
    /// Margin over the delay that covers 19 of 20 frames.
    pub spread: Span,
    /// The rate at which to use the path, at most that of the NICs.
    pub rate: Rate,
    /// Smoothed round trip time; zero: no reply yet.
    pub rtt: Span,
    /// The shortest round trip of the last five to ten seconds, without queues; zero: no reply yet.
    pub base_rtt: Span,
    /// The longest round trip of the last five to ten seconds, by the own clock; zero: no reply yet.
    pub longest_rtt: Span,
    /// Loss rate of the last thousands of frames, 0 to 1.
    pub loss: f64,
    /// How long the neighbour holds frames until earlier ones have come, at most two seconds; zero: unknown.
    pub resequence_time: Span,
}

/// A probe without a reply so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutstandingProbe {
    pub seq: u32,
    pub sent_at: Instant,
    pub sent: ProbeTraffic,
    pub long: bool,
    /// True if it belongs to a [train](super::train::ProbeTrain).
    pub train: bool,
    /// Wire length of the frame sent immediately before.
    pub behind: ByteCount,
}

/// A reply may be later than the smoothed round trip by at least this, and by at most another round trip and
/// a second.
const MIN_TIMEOUT_MARGIN: Span = Span::from_millis(1);
const MAX_TIMEOUT_MARGIN: Span = Span::from_secs(1);
/// So many frames between two probes are hardly any traffic.
const QUIET_FRAMES: u64 = 8;
/// Number of frames over which losses are averaged, and how many must have been sent.
const LOSS_FRAMES: f64 = 8_192.0;
const MIN_LOSS_FRAMES: f64 = 1_024.0;

/// The loss rate of a path over many frames.
#[derive(Clone, Copy, Debug, Default)]
struct PathLoss {
    sent: f64,
    lost: f64,
    last: Option<(ProbeTraffic, ProbeTraffic)>,
}

impl PathLoss {
    /// So much had been sent, and received, when a probe passed. What a path loses that is overloaded does
    /// not count.
    fn add(&mut self, sent: ProbeTraffic, received: ProbeTraffic, overloaded: bool) {
        if overloaded {
            self.last = Some((sent, received));
        } else if let Some((sent_before, received_before)) = self.last.replace((sent, received))
            && let Some((sent, received)) = sent.since(sent_before).zip(received.since(received_before))
        {
            let (frames, lost) = (sent.frames as f64, sent.frames.saturating_sub(received.frames) as f64);
            let keep = (1.0 - frames / LOSS_FRAMES).max(0.0);
            (self.sent, self.lost) = (self.sent * keep + frames, self.lost * keep + lost);
        }
    }
    fn get(&self) -> f64 {
        if self.sent < MIN_LOSS_FRAMES { 0.0 } else { self.lost / self.sent }
    }
}

/// Computes estimates from replies.
#[derive(Clone, Debug)]
pub(super) struct Estimator {
    delays: Delays,
    capacity: Capacity,
    assumed: PerByte,
    /// Smoothed round trip time and mean deviation, as in RFC 6298.
    rtt: Option<(Span, Span)>,
    /// The shortest and the longest round trip of this epoch and of the one before, and when this one began.
    rtts: [Option<(Span, Span)>; 2],
    epoch_start: Instant,
    loss: PathLoss,
    /// What had been sent when the last probe was.
    last_sent: Option<ProbeTraffic>,
    resequence_time: Span,
    last: Option<(ProbeTraffic, ReorderCounts)>,
}

impl Estimator {
    pub(super) fn new(nominal: Rate, assumed: PerByte) -> Estimator {
        Estimator {
            delays: Delays::new(assumed, nominal),
            capacity: Capacity::new(nominal),
            assumed,
            rtt: None,
            rtts: [None; 2],
            epoch_start: Instant::ZERO,
            loss: PathLoss::default(),
            last_sent: None,
            resequence_time: Span::ZERO,
            last: None,
        }
    }
    /// `probe` was answered. `interval` is the interval between probes.
    pub(super) fn add(&mut self, now: Instant, probe: &OutstandingProbe, reply: &Reply, interval: Span) {
        let rtt = now.since(probe.sent_at);
        let (smooth, deviation) = match self.rtt {
            None => (rtt, rtt / 2),
            Some((smooth, deviation)) => ((smooth * 7 + rtt) / 8, (deviation * 3 + smooth.abs_diff(rtt)) / 4),
        };
        self.rtt = Some((smooth, deviation));
        if now.since(self.epoch_start) >= RTT_EPOCH {
            self.epoch_start = now;
            self.rtts = [None, self.rtts[0]];
        }
        let (least, most) = self.rtts[0].unwrap_or((rtt, rtt));
        self.rtts[0] = Some((least.min(rtt), most.max(rtt)));
        let before = self.last_sent.replace(probe.sent).filter(|_| !probe.long);
        let quiet = before
            .and_then(|before| probe.sent.since(before))
            .is_some_and(|more| more.frames <= QUIET_FRAMES);
        let delay = OneWayDelay::between(probe.sent_at, reply.arrived_at);
        self.delays.add(now, delay, probe.long, probe.behind, quiet);
        self.report(reply);
        self.resequence_time = reply.resequence_time.min(MAX_RESEQUENCE_TIME);
        if probe.long {
            return;
        }
        let sample = CapacitySample {
            sent_at: probe.sent_at,
            arrived_at: reply.arrived_at,
            sent: probe.sent,
            received: reply.received,
        };
        let (queue, jitter) = (self.delays.queue(), self.delays.jitter());
        let around = DelayState { queue, jitter, lag: smooth - queue + interval };
        if self.capacity.add(now, sample, around) {
            self.delays.rebase();
        }
        self.loss.add(probe.sent, reply.received, self.capacity.is_overloaded(now));
    }
    /// A train has measured this rate, at most that of the NICs.
    pub(super) fn found(&mut self, now: Instant, rate: Rate) {
        self.capacity.on_train(now, rate);
    }
    /// True if a train should measure the path again. It is true once.
    pub(super) fn take_retest(&mut self, now: Instant) -> bool {
        self.capacity.take_retest(now)
    }
    /// The path was interrupted.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.capacity.interrupt(now);
        self.delays.interrupt();
        self.loss.last = None;
        self.last = None;
    }
    /// Smoothed round trip time; none: no reply yet.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.rtt.map(|(smooth, _)| smooth)
    }
    /// Timeout for a reply: as in RFC 6298, but a few replies that were much later than the others must not
    /// keep a path up that has failed.
    pub(super) fn reply_timeout(&self) -> Option<Span> {
        self.rtt.map(|(smooth, deviation)| {
            smooth + (deviation * 4).clamp(MIN_TIMEOUT_MARGIN, smooth + MAX_TIMEOUT_MARGIN)
        })
    }
    /// The recent minimum delay without transmission times, by two clocks, and the time per byte.
    pub(super) fn fit(&self) -> Option<DelayFit> {
        self.delays.fit()
    }
    /// The estimate, with the [fit](Self::fit) of now, and delays relative to `common`.
    pub(super) fn estimate(
        &self,
        up: bool,
        fit: Option<DelayFit>,
        common: Option<OneWayDelay>,
    ) -> PathEstimate {
        let spread = fit.map_or(Span::ZERO, |fit| self.delays.spread(fit));
        let rtts = || self.rtts.into_iter().flatten();
        let unknown = PathDelay { fixed: Span::ZERO, per_byte: self.assumed };
        PathEstimate {
            up,
            delay: fit.zip(common).map_or(unknown, |(fit, common)| relative(fit, common)),
            guard: spread + self.delays.correction(),
            spread,
            rate: self.capacity.rate(),
            rtt: self.rtt().unwrap_or_default(),
            base_rtt: rtts().map(|(least, _)| least).min().unwrap_or_default(),
            longest_rtt: rtts().map(|(_, most)| most).max().unwrap_or_default(),
            loss: self.loss.get(),
            resequence_time: self.resequence_time,
        }
    }

    /// Passes on the number of late frames since the last reply.
    fn report(&mut self, reply: &Reply) {
        if let Some((received, reordered)) = self.last
            && reply.received.since(received).is_some()
        {
            self.delays.report(reply.reordered.harmful.wrapping_sub(reordered.harmful));
        }
        self.last = Some((reply.received, reply.reordered));
    }
}
