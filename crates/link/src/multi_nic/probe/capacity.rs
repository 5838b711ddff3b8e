//! Estimates the rate of a path, where it may be lower than that of its NICs.

use super::delays::OneWayDelay;
use super::message::ProbeTraffic;
use farpace_units::{Instant, Rate, Span};
use std::collections::VecDeque;

/// Target queueing delay beyond jitter: enough to detect and to keep a standing queue.
const TARGET: Span = Span::from_millis(2);
/// On slow paths the queue holds a few frames, but not for longer than this.
const MAX_TARGET: Span = Span::from_millis(10);
/// Queueing delay above the target that is too high, however slowly it has grown.
const TOO_LONG: Span = Span::from_millis(8);
/// If the distance of two probes grows by this factor, the arrival rate exceeds the rate of the path.
const STRETCH: f64 = 1.015;
/// Loss above the background loss of the path that indicates the same.
const LOSS: f64 = 0.02;
/// A queue holds at least so many bytes: fewer are no queue, whatever a probe was delayed by.
const MIN_BACKLOG: f64 = 4.0 * 1_538.0;
/// A path that was not used at its rate for this time is measured by a train again: what is known of it is
/// old.
const RETEST_INTERVAL: Span = Span::from_secs(3);
/// What a train tells of a path that has shown a lower rate is believed up to this multiple of that.
const MAX_RETEST_GAIN: f64 = 2.0;
/// Minimum utilisation of the current rate at which a lower one is believed.
const MIN_USE: f64 = 0.5;
/// Minimum utilisation of the current rate at which a higher rate may be tried.
const MIN_UTILISATION: f64 = 0.9;
/// Gain of the first attempt at a higher rate. It doubles with each attempt while no queue builds up.
const FIRST_GAIN: f64 = 0.03;
const MAX_GAIN: f64 = 0.125;
/// After loss, no higher rate is tried for this time.
const HOLD: Span = Span::from_secs(1);
/// Interval at which the queue is drained to measure the delay of the empty path.
const DRAIN_INTERVAL: Span = Span::from_secs(5);
/// Fraction of the rate during a drain.
const DRAIN_GAIN: f64 = 0.9;
const MAX_DRAIN: Span = Span::from_millis(300);
/// If a queue is more than twice what it should be, for this time at least, the delay has another cause, or
/// the base delay has changed.
const STANDING_TIME: Span = Span::from_secs(1);
/// A queue becomes shorter for sure where less than this part of the rate of the path is sent.
const SURE_LOAD: f64 = 0.97;
/// A queue that is no jitter grows by so many times the jitter, ...
const MIN_GROWTH: u64 = 3;
/// ... not by more than this part of its growth from one probe to the next, ...
const MAX_STEP: f64 = 0.6;
/// ... of at least so many distances of probes if there are as many.
const GROWTH_PROBES: usize = 4;
/// A path that fails twice within this time is overloaded rather than broken.
const REPEATED_FAILURE: Span = Span::from_secs(5);
/// How long probes are remembered.
const WINDOW: Span = Span::from_millis(400);
const MAX_SAMPLES: usize = 128;
/// Minimum number of frames between two probes that are compared.
const MIN_FRAMES: u64 = 8;
/// Minimum number of frames for a loss rate.
const MIN_FRAMES_FOR_LOSS: u64 = 100;
/// Minimum number of frames to decide whether a lower rate has reduced the loss.
const MIN_FRAMES_FOR_VERDICT: u64 = 400;

/// Estimates the rate of one path, somewhat like BBR: the arrival rate during a standing queue is the rate of
/// the path, and a sending rate close to it keeps the queue short.
///
/// While no queue grows and nothing is lost, the estimate is exactly the nominal rate. Once the path has
/// shown a lower rate, the sending rate follows the arrival rate, lower while the queueing delay exceeds two
/// milliseconds, higher below. If no queue builds up although the path is used at its rate, higher rates are
/// tried in growing steps until one does. An unused path keeps its rate.
#[derive(Clone, Debug)]
pub(super) struct Capacity {
    nominal: Rate,
    limit: Option<CapacityLimit>,
    samples: VecDeque<CapacitySample>,
    /// Loss rate of the path that does not depend on the sending rate.
    background: f64,
    loss: f64,
    /// When the path was last interrupted, if no probe has arrived since.
    interrupted: Option<Instant>,
    broken_at: Option<Instant>,
    /// Probes sent earlier do not count for the loss at the current rate.
    judged_from: Instant,
    /// When the path was used at its rate, or was tested, last.
    used_at: Instant,
}

/// A probe that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct CapacitySample {
    /// Sending time, by the own clock.
    pub sent_at: Instant,
    /// Arrival time, by the clock of the neighbour.
    pub arrived_at: Instant,
    /// Traffic sent so far.
    pub sent: ProbeTraffic,
    /// Traffic received so far.
    pub received: ProbeTraffic,
}

/// The delay state of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayState {
    /// Queueing delay of the path.
    pub queue: Span,
    /// Jitter of the queueing delay.
    pub jitter: Span,
    /// Reaction time: a round trip and the interval between probes.
    pub lag: Span,
}

/// A path with a lower rate than its NICs. Rates are in bytes per second.
#[derive(Clone, Copy, Debug)]
struct CapacityLimit {
    /// When it was found.
    since: Instant,
    /// Earlier probes tell nothing of the capacity, which was lowered since.
    carries_from: Instant,
    capacity: f64,
    rate: f64,
    gain: f64,
    /// Probes sent earlier do not count for the current gain.
    gained_at: Instant,
    hold_until: Instant,
    drained_at: Instant,
    draining: bool,
    /// The path drops frames before a queueing delay shows, so the target is an empty queue.
    shallow: bool,
    standing: Option<StandingQueue>,
    /// The rate before a reduction because of loss, and the loss rate, until the reduction is confirmed.
    cut: Option<(f64, f64)>,
}

/// A queue above the target, as it is and as it should be by what was sent. Times are sending times of
/// probes.
#[derive(Clone, Copy, Debug)]
struct StandingQueue {
    /// The latest probe.
    latest: Instant,
    /// The latest one whose delay agreed.
    agreed: Instant,
    /// The queueing delay.
    queue: Span,
    /// What it should be, in seconds, at most.
    expected: f64,
}

/// Comparison of two probes.
#[derive(Clone, Copy, Debug)]
struct ProbePair {
    /// When the first one was sent.
    since: Instant,
    sent: f64,
    delivered: f64,
    /// Seconds from one arrival to the other.
    back: f64,
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
            used_at: Instant::ZERO,
        }
    }
    /// The sending rate, at most the nominal rate.
    pub(super) fn rate(&self) -> Rate {
        let limited = |limit: CapacityLimit| Rate::from_bytes_per_sec_f64(limit.rate).min(self.nominal);
        self.limit.map_or(self.nominal, limited)
    }
    /// More than usual was lost of late, because more was sent than the path carries.
    pub(super) fn is_overloaded(&self, now: Instant) -> bool {
        self.limit.is_some_and(|limit| limit.cut.is_some() || now < limit.hold_until)
    }
    /// True if the path has a limit that was not seen for long, so that a train should measure it again. It
    /// is true once.
    pub(super) fn take_retest(&mut self, now: Instant) -> bool {
        let due = self.limit.is_some() && now.since(self.used_at) >= RETEST_INTERVAL;
        if due {
            self.used_at = now;
        }
        due
    }
    /// Takes in what a train has measured: a first estimate, or that the path carries more than it has shown.
    pub(super) fn on_train(&mut self, now: Instant, rate: Rate) {
        let rate = rate.as_bytes_per_sec_f64();
        self.used_at = now;
        if let Some(limit) = &mut self.limit {
            let more = rate.min(limit.capacity * MAX_RETEST_GAIN);
            if more > limit.capacity {
                (limit.capacity, limit.rate, limit.hold_until) = (more, more, now);
            }
        } else if rate < self.nominal.as_bytes_per_sec_f64() {
            self.limit = Some(CapacityLimit {
                since: now,
                carries_from: now,
                capacity: rate,
                rate,
                gain: 0.0,
                gained_at: now,
                hold_until: now,
                drained_at: now,
                draining: false,
                shallow: false,
                standing: None,
                cut: None,
            });
        }
    }
    /// The path has been interrupted.
    pub(super) fn interrupt(&mut self, now: Instant) {
        self.interrupted = Some(now);
    }
    /// Handles the reply to a short probe. Returns true if the queueing delay is a false measurement, so that
    /// base delays must be measured again.
    pub(super) fn add(&mut self, now: Instant, sample: CapacitySample, delays: DelayState) -> bool {
        let again = |last: &CapacitySample| {
            sample.received.since(last.received).is_none() || sample.arrived_at <= last.arrived_at
        };
        if self.samples.back().is_some_and(again) {
            self.samples.clear();
        }
        // A path that returns with a long queue was overloaded, and the arrival rate meanwhile is its rate.
        // One that returns without a queue was broken, and its losses do not count, unless that happens
        // repeatedly. A path whose rate was known for long, and that had no queue before, was broken, too. It
        // may be another one now: that of another satellite or base station, with a delay of its own.
        let mut rebase = false;
        if let Some(first) = self.interrupted.take() {
            let again = self.broken_at.is_some_and(|at| now.since(at) < REPEATED_FAILURE);
            let rate = self.limit.map_or(f64::MAX, |limit| limit.capacity);
            let has_queue = delays.queue > delays.target(rate);
            let had_none = self.limit.is_some_and(|limit| {
                let is_known = now.since(limit.since) >= STANDING_TIME;
                is_known && limit.standing.is_none_or(|standing| standing.queue < TOO_LONG)
            });
            if !again && (had_none || !has_queue) {
                self.samples.clear();
                rebase = had_none;
            }
            self.broken_at = Some(first);
        }
        let old = |first: &CapacitySample| sample.sent_at.since(first.sent_at) > WINDOW;
        while self.samples.len() >= MAX_SAMPLES || self.samples.front().is_some_and(old) {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        let lossy = self.judge_loss(now, sample);
        // With more jitter, compare probes with a longer distance.
        let apart = (delays.jitter * 40).min(WINDOW / 2);
        let Some(pair) = self.pair(sample, apart, MIN_FRAMES) else { return rebase };
        match self.limit {
            None => {
                self.enter(now, pair, delays, lossy);
                rebase
            }
            Some(limit) => self.adjust(now, limit, (sample, pair), delays, lossy) || rebase,
        }
    }

    /// Bytes per second that the path has carried from a probe to `sample`, at least: probes may have come
    /// later and earlier by jitter. Of probes that were sent at `from` or later.
    fn has_carried(&self, from: Instant, sample: CapacitySample, jitter: Span) -> f64 {
        let noise = (jitter * MIN_GROWTH).as_secs_f64();
        let first = self.samples.iter().filter(|first| first.sent_at >= from);
        let pairs = first.filter_map(|first| ProbePair::of(*first, sample));
        let rates = pairs.filter(|pair| pair.frames >= MIN_FRAMES).map(|pair| pair.delivered_beyond(noise));
        rates.fold(0.0, f64::max)
    }

    /// True if a queue has grown from the probe that was sent at `since` to the latest one, from probe to
    /// probe and beyond jitter. A path that becomes longer does so between two probes.
    fn has_grown(&self, since: Instant, jitter: Span) -> bool {
        let mut earlier = self.samples.iter().rev();
        let Some(newest) = earlier.next().map(CapacitySample::delay) else { return false };
        let (mut next, mut distances, mut grown) = (newest, 0, Span::ZERO);
        let (mut risen, mut largest) = (Span::ZERO, Span::ZERO);
        for sample in earlier {
            if sample.sent_at < since && distances >= GROWTH_PROBES {
                break;
            }
            let step = next.beyond(sample.delay());
            (risen, largest, distances, next) =
                (risen + step, largest.max(step), distances + 1, sample.delay());
            grown = if sample.sent_at >= since { newest.beyond(next) } else { grown };
        }
        grown > jitter * MIN_GROWTH && largest.as_secs_f64() <= risen.as_secs_f64() * MAX_STEP
    }

    /// Compares `sample` with the latest probe that is far enough away.
    fn pair(&self, sample: CapacitySample, apart: Span, frames: u64) -> Option<ProbePair> {
        let pair = |first: &CapacitySample| ProbePair::of(*first, sample);
        let far =
            |first: &&CapacitySample| sample.sent_at.since(first.sent_at) >= apart.max(Span::from_nanos(1));
        self.samples.iter().rev().filter(far).filter_map(pair).find(|pair| pair.frames >= frames)
    }
    /// Judges the loss in the whole window and in its latest part. Returns the arrival rate if loss exceeds
    /// the background.
    fn judge_loss(&mut self, now: Instant, sample: CapacitySample) -> Option<f64> {
        let long_enough = |pair: &ProbePair| pair.frames >= MIN_FRAMES_FOR_LOSS;
        let since = self.judged_from;
        let pairs = self.samples.iter().filter(|first| first.sent_at >= since);
        let mut pairs = pairs.filter_map(|first| ProbePair::of(*first, sample)).filter(long_enough);
        let all = pairs.next()?;
        let newest = pairs.next_back();
        self.loss = all.loss();
        let pending = self.limit.as_mut().and_then(|limit| Some((limit.cut?, limit)));
        if let Some(((before, lost), limit)) = pending {
            if all.frames < MIN_FRAMES_FOR_VERDICT {
                return None;
            }
            limit.cut = None;
            if all.loss() * 2.0 > lost {
                // A lower rate has not reduced the loss: it is background loss.
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
    fn enter(&mut self, now: Instant, pair: ProbePair, delays: DelayState, lossy: Option<f64>) {
        let target = delays.target(pair.delivered);
        let grows = delays.queue > target && pair.stretch > STRETCH;
        let backlogged = pair.delivered * delays.queue.as_secs_f64() >= MIN_BACKLOG;
        let nominal = self.nominal.as_bytes_per_sec_f64();
        let delivered = match lossy {
            Some(delivered) => delivered.max(pair.delivered),
            None if backlogged && (grows || delays.queue > target + TOO_LONG) => pair.delivered,
            None => return,
        };
        if delivered >= nominal {
            return;
        }
        let limit = CapacityLimit {
            since: now,
            carries_from: now,
            capacity: delivered,
            rate: delivered,
            gain: 0.0,
            gained_at: now,
            hold_until: if lossy.is_some() { now + HOLD } else { now },
            drained_at: now,
            draining: false,
            shallow: lossy.is_some(),
            standing: None,
            cut: lossy.map(|_| (nominal, self.loss)),
        };
        self.used_at = now;
        self.limit = Some(CapacityLimit { rate: limit.steer(delays, target), ..limit });
    }
    fn adjust(
        &mut self,
        now: Instant,
        mut limit: CapacityLimit,
        (sample, pair): (CapacitySample, ProbePair),
        delays: DelayState,
        lossy: Option<f64>,
    ) -> bool {
        let target = delays.target(limit.capacity);
        let queued = delays.queue > target;
        let used = pair.sent >= MIN_UTILISATION * limit.rate;
        if used {
            self.used_at = now;
        }
        let mut rebase = false;
        if let Some(delivered) = lossy {
            limit.cut = Some((limit.capacity, self.loss));
            limit.hold_until = now + HOLD;
            limit.gain = 0.0;
            limit.capacity = limit.capacity.min(delivered);
            limit.carries_from = pair.since;
            limit.shallow = !queued;
        } else if queued
            && pair.sent >= MIN_USE * limit.rate
            && pair.stretch > STRETCH
            && self.has_grown(pair.since, delays.jitter)
        {
            // Only a path that was really used has shown what it carries.
            limit.gain = 0.0;
            limit.capacity = limit.capacity.min(pair.delivered);
            limit.carries_from = pair.since;
            limit.standing = None;
        }
        limit.capacity = limit.capacity.max(self.has_carried(limit.carries_from, sample, delays.jitter));
        if limit.gain > 0.0 && pair.loses(self.background + LOSS / 2.0, 2.0) {
            limit.gain = 0.0;
            limit.hold_until = now + HOLD;
        }
        if queued {
            limit.gain = 0.0;
            limit.shallow = false;
        } else if used
            && now >= limit.hold_until
            && sample.sent_at.since(limit.gained_at) >= delays.lag
            && !limit.draining
        {
            limit.gain = (limit.gain * 2.0).clamp(FIRST_GAIN, MAX_GAIN);
            limit.gained_at = now;
        }
        let load = pair.sent / limit.capacity;
        limit.standing =
            queued.then(|| StandingQueue::after(limit.standing, sample.sent_at, delays.queue, load));
        let time = STANDING_TIME + delays.lag;
        if limit.standing.is_some_and(|standing| standing.has_another_cause(time)) {
            limit.standing = None;
            rebase = true;
        }
        limit.drain(now, delays);
        limit.rate = limit.steer(delays, target);
        let nominal = self.nominal.as_bytes_per_sec_f64();
        let free = !queued && limit.rate >= nominal && pair.stretch < STRETCH;
        self.limit = (!free).then_some(limit);
        rebase
    }
}

impl CapacitySample {
    fn delay(&self) -> OneWayDelay {
        OneWayDelay::between(self.sent_at, self.arrived_at)
    }
}

impl StandingQueue {
    /// The queue after a probe that was sent at `sent_at` and has waited for `queue`. `load`: what was sent,
    /// as a part of what the path carries.
    fn after(last: Option<StandingQueue>, sent_at: Instant, queue: Span, load: f64) -> StandingQueue {
        let delay = queue.as_secs_f64();
        let new = StandingQueue { latest: sent_at, agreed: sent_at, queue, expected: delay };
        let Some(last) = last else { return new };
        let passed = sent_at.since(last.latest).as_secs_f64();
        let expected = (last.expected + passed * (load - SURE_LOAD)).clamp(0.0, delay);
        let agreed = if expected > delay / 2.0 { sent_at } else { last.agreed };
        StandingQueue { agreed, expected, ..new }
    }
    /// True if it has been longer than it should be for `time`.
    fn has_another_cause(&self, time: Span) -> bool {
        self.latest.since(self.agreed) >= time
    }
}

impl DelayState {
    /// Target queueing delay on a path that carries so many bytes per second.
    fn target(self, rate: f64) -> Span {
        TARGET.max(Span::from_nanos((MIN_BACKLOG / rate.max(1.0) * 1e9) as u64).min(MAX_TARGET))
            + self.jitter * 2
    }
}

impl CapacityLimit {
    /// Begins or ends a drain of the queue.
    fn drain(&mut self, now: Instant, delays: DelayState) {
        let since = now.since(self.drained_at);
        if !self.draining && since >= DRAIN_INTERVAL {
            (self.draining, self.drained_at) = (true, now);
        } else if self.draining
            && (delays.queue <= delays.jitter * 2 || since >= MAX_DRAIN.max(delays.lag * 2))
        {
            (self.draining, self.drained_at) = (false, now);
        }
    }
    /// The rate that brings the queueing delay to `target` within a multiple of the reaction time.
    fn steer(&self, delays: DelayState, target: Span) -> f64 {
        let time = (delays.lag.as_secs_f64() * 2.5).max(0.1);
        let wanted = if self.draining { 0.0 } else { target.as_secs_f64() };
        let error = (wanted - delays.queue.as_secs_f64()) / time;
        let error = if self.shallow { error.min(0.0) } else { error };
        let max = if self.draining { DRAIN_GAIN } else { f64::MAX };
        self.capacity * (1.0 + self.gain + error).clamp(0.5, 1.25).min(max)
    }
}

impl ProbePair {
    /// Received bytes per second if the second probe had come so many seconds later.
    fn delivered_beyond(&self, noise: f64) -> f64 {
        self.delivered * self.back / (self.back + noise)
    }
    fn loss(&self) -> f64 {
        self.lost as f64 / self.frames.max(1) as f64
    }
    /// True if the loss rate exceeds `expected` by this number of standard deviations.
    fn loses(&self, expected: f64, deviations: f64) -> bool {
        let expected = expected * self.frames as f64;
        self.lost as f64 > expected + deviations * expected.sqrt()
    }
    /// None if the probes cannot be compared.
    fn of(first: CapacitySample, last: CapacitySample) -> Option<ProbePair> {
        let sent = last.sent.since(first.sent)?;
        let received = last.received.since(first.received)?;
        let out = last.sent_at.since(first.sent_at).as_secs_f64();
        let back = last.arrived_at.since(first.arrived_at).as_secs_f64();
        if out <= 0.0 || back <= 0.0 {
            return None;
        }
        Some(ProbePair {
            since: first.sent_at,
            sent: sent.bytes.get() as f64 / out,
            delivered: received.bytes.get() as f64 / back,
            back,
            stretch: back / out,
            frames: sent.frames,
            lost: sent.frames.saturating_sub(received.frames),
        })
    }
}
