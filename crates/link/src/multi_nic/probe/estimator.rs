//! All that is said of a way.

use super::capacity::{Capacity, CapacitySample, Surroundings};
use super::delays::{Delays, OneWayDelay, relative};
use super::message::{Places, ProbeTraffic, Reply};
use crate::multi_nic::{PathDelay, PerByte};
use farpace_units::{ByteCount, Instant, Rate, Span};

/// What is known of the way from one of our cards to one of a neighbour's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathEstimate {
    /// Frames arrive.
    pub up: bool,
    /// How long frames are under way. What is fixed is counted from the fastest lane to the same neighbour on.
    pub delay: PathDelay,
    /// By how much frames come later than that: all but one in twenty, and more if frames of this lane came too late.
    pub guard: Span,
    /// What the way carries, and how fast it is to be used: at most what the cards send.
    pub rate: Rate,
    /// There and back, smoothed; zero: nothing has come back yet.
    pub rtt: Span,
    /// Share of frames that was lost of late, 0 to 1.
    pub loss: f64,
}

/// A probe that has not been answered yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    pub seq: u32,
    pub sent_at: Instant,
    pub sent: ProbeTraffic,
    pub long: bool,
    /// One of a [train](super::train::Train).
    pub train: bool,
    /// Bytes of the line of the frame that was sent just before.
    pub behind: ByteCount,
}

/// Makes estimates from replies.
#[derive(Clone, Debug)]
pub(super) struct Estimator {
    delays: Delays,
    capacity: Capacity,
    assumed: PerByte,
    /// Smoothed, and its mean deviation, as of RFC 6298.
    rtt: Option<(Span, Span)>,
    last: Option<(ProbeTraffic, Places)>,
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
    /// `probe` was answered. `interval` is the time from one to the next.
    pub(super) fn add(&mut self, now: Instant, probe: &Outstanding, reply: &Reply, interval: Span) {
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
        let around = Surroundings { queue, jitter, lag: smooth - queue + interval };
        if self.capacity.add(now, sample, around) {
            self.delays.rebase();
        }
    }
    /// A train has told what the way carries, if that is less than what its cards send.
    pub(super) fn found(&mut self, now: Instant, rate: Rate) {
        self.capacity.begin_with(now, rate);
    }
    /// The way was interrupted.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.capacity.interrupt(now);
        self.delays.interrupt();
        self.last = None;
    }
    /// There and back; none: nothing has come back yet.
    pub(super) fn rtt(&self) -> Option<Span> {
        self.rtt.map(|(smooth, _)| smooth)
    }
    /// A reply that has not come after so long does not come.
    pub(super) fn patience(&self) -> Option<Span> {
        self.rtt.map(|(smooth, deviation)| smooth + (deviation * 4).max(Span::from_millis(1)))
    }
    /// The shortest delay of late, by two clocks.
    pub(super) fn shortest(&self) -> Option<OneWayDelay> {
        self.delays.fit().map(|(shortest, _)| shortest)
    }
    /// With delays from `common` on.
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

    /// Frames that came too late since the last reply.
    fn report(&mut self, reply: &Reply) {
        if let Some((received, places)) = self.last
            && reply.received.since(received).is_some()
        {
            self.delays.report(reply.places.harmful.wrapping_sub(places.harmful));
        }
        self.last = Some((reply.received, reply.places));
    }
}
