//! What a way carries, where that may be less than what its cards send.

use super::message::ProbeTraffic;
use farpace_units::{Instant, Rate, Span};
use std::collections::VecDeque;

/// What stands in the way's queue on purpose, beyond jitter: enough to see that the way is full, and to keep it so.
const TARGET: Span = Span::from_millis(2);
/// A queue that is longer than that by so much is too long, however slowly it came to be.
const TOO_LONG: Span = Span::from_millis(8);
/// Probes that left with this distance arrive with so much more: frames come in faster than they go out.
const STRETCH: f64 = 1.015;
/// Loss beyond what the way has anyway that says the same.
const LOSS: f64 = 0.02;
/// A lane that is used at less than this part of its rate says nothing of what more it would carry.
const USED: f64 = 0.9;
/// Shares by which more is tried: the first one, and the greatest, each twice that before while no queue shows.
const FIRST_GAIN: f64 = 0.03;
const MAX_GAIN: f64 = 0.125;
/// After loss nothing more is tried for this time.
const HOLD: Span = Span::from_secs(1);
/// Every so often the queue is emptied, to see how long an empty way takes; this part of the rate does it, for so long at most.
const DRAIN_EVERY: Span = Span::from_secs(5);
const DRAIN: f64 = 0.9;
const MAX_DRAIN: Span = Span::from_millis(300);
/// A queue that does not become shorter for so long although less is sent is none of ours, or none at all.
const FLAT: Span = Span::from_secs(1);
/// A way that fails twice within this time is flooded rather than broken.
const AGAIN: Span = Span::from_secs(5);
/// What is remembered of probes.
const WINDOW: Span = Span::from_millis(400);
const MAX_SAMPLES: usize = 128;
/// Two probes are compared if so much has been sent between them, or so much time has passed: what less says is noise.
const FEWEST_FRAMES: u64 = 8;
/// Loss is told from so many frames on.
const FEWEST_FOR_LOSS: u64 = 100;
/// And so many show whether it was any use to send less.
const FEWEST_FOR_VERDICT: u64 = 400;

/// Finds what one way carries, a little like BBR: what arrives while a queue stands on the way is what it carries, and a rate
/// beside that keeps the queue short.
///
/// As long as no queue grows and nothing is lost, the nominal rate stands, exactly. Once the way has been seen to carry less, the
/// rate follows what arrives, slower while the queue is longer than two milliseconds, faster while it is shorter. If no queue
/// shows although the lane is used at its rate, more is tried in ever greater steps until one does. A lane that is not used
/// keeps its rate.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    nominal: Rate,
    limit: Option<CapacityLimit>,
    samples: VecDeque<CapacitySample>,
    /// Share of frames that is lost however few are sent.
    background: f64,
    loss: f64,
    /// Nothing came back for too long: since the last probe that came through, and before.
    interrupted: Option<Instant>,
    broken_at: Option<Instant>,
    /// Probes that left before say nothing of loss at the present rate.
    judged_from: Instant,
}

/// A probe that came through.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacitySample {
    /// By our clock.
    pub sent_at: Instant,
    /// By the neighbour's.
    pub arrived_at: Instant,
    /// Until then.
    pub sent: ProbeTraffic,
    /// Until then.
    pub received: ProbeTraffic,
}

/// What is known of the way beside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Surroundings {
    /// What waits on the way.
    pub queue: Span,
    /// Noise in that.
    pub jitter: Span,
    /// Until a change shows: a round trip, and the time between probes.
    pub lag: Span,
}

/// The way carries less than the cards send. Rates in bytes a second.
#[derive(Clone, Copy, Debug)]
struct CapacityLimit {
    capacity: f64,
    rate: f64,
    gain: f64,
    /// Probes that left before say nothing of the present gain.
    gained_at: Instant,
    hold_until: Instant,
    drained_at: Instant,
    draining: bool,
    /// The way drops frames before a queue shows: none is to stand there.
    shallow: bool,
    flat_since: Option<Instant>,
    /// The rate before it was cut because of loss, and how much was lost: to be justified.
    cut: Option<(f64, f64)>,
}

/// Two probes compared.
#[derive(Clone, Copy, Debug)]
struct Pair {
    sent: f64,
    delivered: f64,
    stretch: f64,
    frames: u64,
    lost: u64,
}

impl Capacity {
    pub(super) fn new(nominal: Rate) -> Capacity {
        Capacity {
            nominal,
            limit: None,
            samples: VecDeque::new(),
            background: 0.0,
            loss: 0.0,
            interrupted: None,
            broken_at: None,
            judged_from: Instant::ZERO,
        }
    }
    /// What may be sent: the nominal rate at most.
    pub(super) fn rate(&self) -> Rate {
        let limited = |limit: CapacityLimit| Rate::from_bytes_per_sec_f64(limit.rate).min(self.nominal);
        self.limit.map_or(self.nominal, limited)
    }
    /// It is known to carry no more, before anything else is known of it.
    pub(super) fn begin_with(&mut self, now: Instant, rate: Rate) {
        let rate = rate.as_bytes_per_sec_f64();
        if self.limit.is_none() && rate < self.nominal.as_bytes_per_sec_f64() {
            self.limit = Some(CapacityLimit {
                capacity: rate,
                rate,
                gain: 0.0,
                gained_at: now,
                hold_until: now,
                drained_at: now,
                draining: false,
                shallow: false,
                flat_since: None,
                cut: None,
            });
        }
    }
    /// Share of frames that was lost of late.
    pub(super) fn loss(&self) -> f64 {
        self.loss
    }
    /// Nothing came back for too long.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.interrupted = Some(now);
    }
    /// A short probe came through. True: what was taken for a queue is none, and delays are to be counted anew.
    pub(super) fn add(&mut self, now: Instant, sample: CapacitySample, around: Surroundings) -> bool {
        let again = |last: &CapacitySample| {
            sample.received.since(last.received).is_none() || sample.arrived_at <= last.arrived_at
        };
        if self.samples.back().is_some_and(again) {
            self.samples.clear();
        }
        // A way that returns with a long queue was flooded, and what arrived meanwhile is what it carries. One that returns
        // without was broken, and what was lost says nothing; unless that happens again and again.
        if let Some(first) = self.interrupted.take() {
            let again = self.broken_at.is_some_and(|at| now.since(at) < AGAIN);
            if around.queue <= around.target() && !again {
                self.samples.clear();
            }
            self.broken_at = Some(first);
        }
        let old = |first: &CapacitySample| sample.sent_at.since(first.sent_at) > WINDOW;
        while self.samples.len() >= MAX_SAMPLES || self.samples.front().is_some_and(old) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let lossy = self.judge_loss(now, sample);
        // The longer the noise, the farther apart.
        let apart = (around.jitter * 40).min(WINDOW / 2);
        let Some(pair) = self.pair(sample, apart, FEWEST_FRAMES) else { return false };
        match self.limit {
            None => {
                self.enter(now, pair, around, lossy);
                false
            }
            Some(limit) => self.adjust(now, limit, pair, around, lossy),
        }
    }

    /// The newest probe that is far enough away from `sample`, compared with it.
    fn pair(&self, sample: CapacitySample, apart: Span, frames: u64) -> Option<Pair> {
        let pair = |first: &CapacitySample| Pair::of(*first, sample);
        let far =
            |first: &&CapacitySample| sample.sent_at.since(first.sent_at) >= apart.max(Span::from_nanos(1));
        self.samples.iter().rev().filter(far).filter_map(pair).find(|pair| pair.frames >= frames)
    }
    /// Loss in all that is remembered and in the newest of it. Returns what arrived if it is more than the way has anyway.
    fn judge_loss(&mut self, now: Instant, sample: CapacitySample) -> Option<f64> {
        let long_enough = |pair: &Pair| pair.frames >= FEWEST_FOR_LOSS;
        let since = self.judged_from;
        let pairs = self.samples.iter().filter(|first| first.sent_at >= since);
        let mut pairs = pairs.filter_map(|first| Pair::of(*first, sample)).filter(long_enough);
        let all = pairs.next()?;
        let newest = pairs.next_back();
        self.loss = all.loss();
        let pending = self.limit.as_mut().and_then(|limit| Some((limit.cut?, limit)));
        if let Some(((before, lost), limit)) = pending {
            if all.frames < FEWEST_FOR_VERDICT {
                return None;
            }
            limit.cut = None;
            if all.loss() * 2.0 > lost {
                // Less was sent, and as much was lost: that is how the way is.
                self.background = all.loss();
                limit.capacity = limit.capacity.max(before);
                limit.hold_until = now;
                self.judged_from = now;
                return None;
            }
        }
        let worst =
            [Some(all), newest].into_iter().flatten().find(|pair| pair.loses(self.background + LOSS, 3.0));
        match worst {
            Some(pair) => {
                self.judged_from = now;
                self.loss = pair.loss();
                Some(pair.delivered)
            }
            None => {
                self.background += (self.loss.min(self.background) - self.background) / 16.0;
                None
            }
        }
    }
    fn enter(&mut self, now: Instant, pair: Pair, around: Surroundings, lossy: Option<f64>) {
        let target = around.target();
        let grows = around.queue > target && pair.stretch > STRETCH;
        let nominal = self.nominal.as_bytes_per_sec_f64();
        let delivered = match lossy {
            Some(delivered) => delivered.max(pair.delivered),
            None if grows || around.queue > target + TOO_LONG => pair.delivered,
            None => return,
        };
        if delivered >= nominal {
            return;
        }
        let limit = CapacityLimit {
            capacity: delivered,
            rate: delivered,
            gain: 0.0,
            gained_at: now,
            hold_until: if lossy.is_some() { now + HOLD } else { now },
            drained_at: now,
            draining: false,
            shallow: lossy.is_some(),
            flat_since: None,
            cut: lossy.map(|_| (nominal, self.loss)),
        };
        self.limit = Some(CapacityLimit { rate: limit.steer(around, target), ..limit });
    }
    fn adjust(
        &mut self,
        now: Instant,
        mut limit: CapacityLimit,
        pair: Pair,
        around: Surroundings,
        lossy: Option<f64>,
    ) -> bool {
        let target = around.target();
        let queued = around.queue > target;
        let mut rebase = false;
        if let Some(delivered) = lossy {
            limit.cut = Some((limit.capacity, self.loss));
            limit.hold_until = now + HOLD;
            limit.gain = 0.0;
            limit.capacity = limit.capacity.min(delivered);
            limit.shallow = !queued;
        } else if queued && pair.stretch > STRETCH {
            limit.gain = 0.0;
            limit.capacity = limit.capacity.min(pair.delivered);
        }
        limit.capacity = limit.capacity.max(pair.delivered);
        if limit.gain > 0.0 && pair.loses(self.background + LOSS / 2.0, 2.0) {
            limit.gain = 0.0;
            limit.hold_until = now + HOLD;
        }
        let used = pair.sent >= USED * limit.rate;
        let newest = self.samples.back().map_or(Instant::ZERO, |sample| sample.sent_at);
        if queued {
            limit.gain = 0.0;
            limit.shallow = false;
        } else if used
            && now >= limit.hold_until
            && newest.since(limit.gained_at) >= around.lag
            && !limit.draining
        {
            limit.gain = (limit.gain * 2.0).clamp(FIRST_GAIN, MAX_GAIN);
            limit.gained_at = now;
        }
        // Less is sent than the way carries, and the queue does not care.
        let flat = queued && pair.sent < 0.97 * limit.capacity && (pair.stretch - 1.0).abs() < 0.01;
        limit.flat_since = flat.then(|| limit.flat_since.unwrap_or(now));
        if limit.flat_since.is_some_and(|since| now.since(since) >= FLAT + around.lag) {
            limit.flat_since = None;
            rebase = true;
        }
        limit.drain(now, around);
        limit.rate = limit.steer(around, target);
        let nominal = self.nominal.as_bytes_per_sec_f64();
        let free = !queued && limit.rate >= nominal && pair.stretch < STRETCH;
        self.limit = (!free).then_some(limit);
        rebase
    }
}

impl Surroundings {
    /// How long the queue is to be.
    fn target(self) -> Span {
        TARGET + self.jitter * 2
    }
}

impl CapacityLimit {
    /// Begins or ends to empty the queue.
    fn drain(&mut self, now: Instant, around: Surroundings) {
        let since = now.since(self.drained_at);
        if !self.draining && since >= DRAIN_EVERY {
            (self.draining, self.drained_at) = (true, now);
        } else if self.draining
            && (around.queue <= around.jitter * 2 || since >= MAX_DRAIN.max(around.lag * 2))
        {
            (self.draining, self.drained_at) = (false, now);
        }
    }
    /// The rate that brings the queue to `target` in a time that is long beside the lag.
    fn steer(&self, around: Surroundings, target: Span) -> f64 {
        let time = (around.lag.as_secs_f64() * 2.5).max(0.1);
        let wanted = if self.draining { 0.0 } else { target.as_secs_f64() };
        let error = (wanted - around.queue.as_secs_f64()) / time;
        let error = if self.shallow { error.min(0.0) } else { error };
        let least = if self.draining { DRAIN } else { f64::MAX };
        self.capacity * (1.0 + self.gain + error).clamp(0.5, 1.25).min(least)
    }
}

impl Pair {
    fn loss(&self) -> f64 {
        self.lost as f64 / self.frames.max(1) as f64
    }
    /// More than a share of `expected` is lost, and by more than so many standard deviations: not by chance alone.
    fn loses(&self, expected: f64, deviations: f64) -> bool {
        let expected = expected * self.frames as f64;
        self.lost as f64 > expected + deviations * expected.sqrt()
    }
    /// None if nothing can be said of them.
    fn of(first: CapacitySample, last: CapacitySample) -> Option<Pair> {
        let sent = last.sent.since(first.sent)?;
        let received = last.received.since(first.received)?;
        let out = last.sent_at.since(first.sent_at).as_secs_f64();
        let back = last.arrived_at.since(first.arrived_at).as_secs_f64();
        if out <= 0.0 || back <= 0.0 {
            return None;
        }
        Some(Pair {
            sent: sent.bytes.get() as f64 / out,
            delivered: received.bytes.get() as f64 / back,
            stretch: back / out,
            frames: sent.frames,
            lost: sent.frames.saturating_sub(received.frames),
        })
    }
}
