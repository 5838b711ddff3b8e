//! Estimates all properties of a path.

use super::capacity::{Capacity, CapacitySample, DelayState};
use super::delays::{Delays, OneWayDelay, relative};
use super::message::{ProbeTraffic, ReorderCounts, Reply};
use crate::multi_nic::{PathDelay, PerByte};
use farpace_units::{ByteCount, Instant, Rate, Span};

/// The estimated properties of a path from an own NIC to one of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathEstimate {
    /// True if frames arrive.
    pub up: bool,
    /// One-way delay. The fixed part is relative to the fastest path to the same neighbour.
    pub delay: PathDelay,
    /// Margin over the delay that covers 19 of 20 frames, plus a correction if frames of this path were late.
    pub guard: Span,
    /// The rate at which to use the path, at most that of the NICs.
    pub rate: Rate,
    /// Smoothed round trip time; zero: no reply yet.
    pub rtt: Span,
    /// Recent loss rate, 0 to 1.
    pub loss: f64,
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

/// Computes estimates from replies.
#[derive(Clone, Debug)]
pub(super) struct Estimator {
    delays: Delays,
    capacity: Capacity,
    assumed: PerByte,
    /// Smoothed round trip time and mean deviation, as in RFC 6298.
    rtt: Option<(Span, Span)>,
    last: Option<(ProbeTraffic, ReorderCounts)>,
}

impl Estimator {
    pub(super) fn new(nominal: Rate, assumed: PerByte) -> Estimator {
        Estimator {
            delays: Delays::new(assumed, nominal),
            capacity: Capacity::new(nominal),
            assumed,
            rtt: None,
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
        self.delays.add(now, OneWayDelay::between(probe.sent_at, reply.arrived_at), probe.long, probe.behind);
        self.report(reply);
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
    }
    /// A train has measured a rate below that of the NICs.
    pub(super) fn found(&mut self, now: Instant, rate: Rate) {
        self.capacity.begin_with(now, rate);
    }
    /// The path was interrupted.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.capacity.interrupt(now);
        self.delays.interrupt();
        self.last = None;
    }
    /// Smoothed round trip time; none: no reply yet.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.rtt.map(|(smooth, _)| smooth)
    }
    /// Timeout for a reply.
    pub(super) fn reply_timeout(&self) -> Option<Span> {
        self.rtt.map(|(smooth, deviation)| smooth + (deviation * 4).max(Span::from_millis(1)))
    }
    /// Recent minimum delay, by two clocks.
    pub(super) fn shortest(&self) -> Option<OneWayDelay> {
        self.delays.fit().map(|(shortest, _)| shortest)
    }
    /// The estimate, with delays relative to `common`.
    pub(super) fn estimate(&self, up: bool, common: Option<OneWayDelay>) -> PathEstimate {
        let unknown = PathDelay { fixed: Span::ZERO, per_byte: self.assumed };
        PathEstimate {
            up,
            delay: self.delays.fit().zip(common).map_or(unknown, |(fit, common)| relative(fit, common)),
            guard: self.delays.guard(),
            rate: self.capacity.rate(),
            rtt: self.rtt().unwrap_or_default(),
            loss: self.capacity.loss(),
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
