//! Estimates the one-way delay of a path, and its variation.

use crate::multi_nic::{PathDelay, PerByte};
use farpace_units::{ByteCount, Instant, Rate, Span};
use std::collections::VecDeque;

/// Frames are predicted to have the delays of probes during this time.
const RECENT: Span = Span::from_secs(1);
/// Maximum number of remembered probes.
const MAX_RECENT: usize = 64;
/// The minimum delay counts as that of an empty path for one to two epochs.
const EPOCH: Span = Span::from_secs(5);
/// From this number of long probes on, they represent data frames better than short ones.
const MIN_LONG_PROBES: usize = 8;
/// Growth of the correction with each report of late frames: a factor and a step.
const GROWTH: f64 = 1.25;
const STEP: Span = Span::from_micros(5);
/// Maximum correction.
const MAX_CORRECTION: Span = Span::from_millis(50);
/// Decay of the correction with each report without late frames: at 40 reports per second it halves in two
/// seconds.
const DECAY: f64 = 0.99;

/// Maximum increase of the jitter estimate from zero, in ns, times 16.
const JITTER_STEP: f64 = 200_000.0;

/// Decay of the highest jitter with each probe: at 40 probes per second it halves in about nine seconds.
const JITTER_DECAY: f64 = 0.998;

/// Jitter is that of the path alone after so many short probes with hardly any traffic: those of a second
/// difference.
const MIN_QUIET: u32 = 4;
/// Each of so many ns of jitter takes one probe more to tell a queue from it, up to this number.
const JITTER_PER_PROBE: f64 = 300_000.0;
const MAX_PROBES_OF_QUEUE: usize = 8;

/// Wire lengths of short and long probes.
pub(super) const SHORT: ByteCount = ByteCount::new(84);
pub(super) const LONG: ByteCount = ByteCount::new(1_538);

/// Difference of two unsynchronised clocks in ns: the arrival time by one less the sending time by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OneWayDelay(i64);

impl OneWayDelay {
    pub(super) fn between(sent_at: Instant, arrived_at: Instant) -> OneWayDelay {
        OneWayDelay(arrived_at.as_nanos().wrapping_sub(sent_at.as_nanos()) as i64)
    }
    /// How much longer it is than `other`; zero if it is not.
    pub(super) fn beyond(self, other: OneWayDelay) -> Span {
        Span::from_nanos(u64::try_from(self.0.saturating_sub(other.0)).unwrap_or(0))
    }
    fn less(self, span: Span) -> OneWayDelay {
        OneWayDelay(self.0.saturating_sub(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// The minimum delay of the current and the previous epoch.
#[derive(Clone, Copy, Debug, Default)]
struct MinDelay([Option<OneWayDelay>; 2]);

impl MinDelay {
    fn get(self) -> Option<OneWayDelay> {
        self.0.into_iter().flatten().min()
    }
    fn add(&mut self, delay: OneWayDelay) {
        self.0[0] = Some(self.0[0].map_or(delay, |min| min.min(delay)));
    }
    fn next_epoch(&mut self) {
        self.0 = [None, self.0[0]];
    }
}

/// The minimum delay without transmission times, and the time per byte.
pub(super) type DelayFit = (OneWayDelay, PerByte);

/// One-way delays, from probes of two lengths.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// Time per byte until long probes have arrived.
    assumed: PerByte,
    /// The part of it on links behind the first.
    sent_on: PerByte,
    recent: VecDeque<DelaySample>,
    short: MinDelay,
    long: MinDelay,
    epoch_start: Instant,
    /// The last two short probes, latest first.
    last: [Option<OneWayDelay>; 2],
    jitter: f64,
    /// Jitter of probes before which hardly anything was sent: with much traffic, frames that keep their
    /// order show hardly any, and queues that grow and shrink look like it.
    quiet_jitter: f64,
    /// The highest of it of late.
    high_jitter: f64,
    /// Number of short probes in a row before which hardly anything was sent.
    quiet: u32,
    correction: Span,
}

#[derive(Clone, Copy, Debug)]
struct DelaySample {
    at: Instant,
    delay: OneWayDelay,
    long: bool,
}

impl Delays {
    /// Assumes `assumed` as time per byte, of which the first link takes the part of rate `nominal`.
    pub(super) fn new(assumed: PerByte, nominal: Rate) -> Delays {
        let own = PerByte::of(nominal).as_nanos_f64();
        Delays {
            assumed,
            sent_on: PerByte::from_nanos_f64(assumed.as_nanos_f64() - own),
            recent: VecDeque::new(),
            short: MinDelay::default(),
            long: MinDelay::default(),
            epoch_start: Instant::ZERO,
            last: [None; 2],
            jitter: 0.0,
            quiet_jitter: 0.0,
            high_jitter: 0.0,
            quiet: 0,
            correction: Span::ZERO,
        }
    }
    /// A probe has arrived that was sent `behind` a data frame. `quiet`: hardly anything was sent before it.
    pub(super) fn add(
        &mut self,
        now: Instant,
        delay: OneWayDelay,
        long: bool,
        behind: ByteCount,
        quiet: bool,
    ) {
        // On store-and-forward links a short frame catches up with a longer one and waits.
        let own = if long { LONG } else { SHORT };
        let delay = delay.less(self.sent_on.span(ByteCount::new(behind.get().saturating_sub(own.get()))));

        if now.since(self.epoch_start) >= EPOCH {
            self.epoch_start = now;
            self.short.next_epoch();
            self.long.next_epoch();
        }
        if long {
            self.long.add(delay);
        } else {
            self.short.add(delay);
            if let [Some(last), Some(before)] = self.last {
                // Second differences: a queue that grows steadily is not jitter.
                let bend = (delay.0 as f64 - 2.0 * last.0 as f64 + before.0 as f64).abs() / 2.0;
                let step = |jitter: f64| (bend.min(jitter * 8.0 + JITTER_STEP) - jitter) / 16.0;
                self.jitter += step(self.jitter);
                self.high_jitter *= JITTER_DECAY;
                self.quiet = if quiet { self.quiet.saturating_add(1) } else { 0 };
                if self.quiet >= MIN_QUIET {
                    self.quiet_jitter += step(self.quiet_jitter);
                    self.high_jitter = self.high_jitter.max(self.quiet_jitter);
                }
            }
            self.last = [Some(delay), self.last[0]];
        }
        self.recent.push_back(DelaySample { at: now, delay, long });
        let old = |sample: &DelaySample| now.since(sample.at) > RECENT;
        while self.recent.len() > MAX_RECENT || self.recent.front().is_some_and(old) {
            self.recent.pop_front();
        }
    }
    /// The path was interrupted: later probes are not compared with earlier ones.
    pub(super) fn interrupt(&mut self) {
        self.last = [None; 2];
    }
    /// Handles a report of the number of late frames since the last report.
    pub(super) fn report(&mut self, harmful: u32) {
        let (factor, step) = if harmful > 0 { (GROWTH, STEP) } else { (DECAY, Span::ZERO) };
        let nanos = self.correction.as_nanos() as f64 * factor;
        self.correction = (Span::from_nanos(nanos as u64) + step).min(MAX_CORRECTION);
    }
    /// Queueing delay of the path: the least of the last short probes, two or, with much jitter, up to eight.
    pub(super) fn queue(&self) -> Span {
        let more = (self.high_jitter / JITTER_PER_PROBE) as usize;
        let probes = (2 + more).min(MAX_PROBES_OF_QUEUE);
        let short = self.recent.iter().rev().filter(|sample| !sample.long).take(probes);
        let newest = short.map(|sample| sample.delay).min();
        newest.zip(self.short.get()).map_or(Span::ZERO, |(newest, base)| newest.beyond(base))
    }
    /// Mean variation of the delay between probes; with hardly any traffic, the highest of late times a half
    /// more.
    pub(super) fn jitter(&self) -> Span {
        Span::from_nanos(self.jitter.max(self.high_jitter * 1.5) as u64)
    }
    /// Restarts the measurement of minimum delays after a change of the path.
    pub(super) fn rebase(&mut self) {
        let [newest, before] = self.last;
        self.short = MinDelay([newest.into_iter().chain(before).min(), None]);
        self.long = MinDelay::default();
    }
    /// The recent minimum delay without transmission times, and the time per byte. None: no probe has
    /// arrived.
    pub(super) fn fit(&self) -> Option<DelayFit> {
        let per_byte = match (self.short.get(), self.long.get()) {
            (Some(short), Some(long)) => {
                let nanos = long.beyond(short).as_nanos() as f64;
                PerByte::from_nanos_f64(nanos / (LONG - SHORT).get() as f64)
            }
            _ => self.assumed,
        };
        let min = self.recent.iter().map(|sample| sample.without(per_byte)).min()?;
        Some((min, per_byte))
    }
    /// What is added to the spread because frames were late.
    pub(super) const fn correction(&self) -> Span {
        self.correction
    }
    /// Margin over the minimum delay of `fit` that covers 19 of 20 frames.
    pub(super) fn spread(&self, (min, per_byte): DelayFit) -> Span {
        // A short probe in a stream of long frames waits for the previous one at each link. Long probes do
        // not.
        let long = self.recent.iter().filter(|sample| sample.long).count() >= MIN_LONG_PROBES;
        let of_data = self.recent.iter().filter(|sample| sample.long || !long);
        let mut beyond: Vec<Span> = of_data.map(|sample| sample.without(per_byte).beyond(min)).collect();
        beyond.sort_unstable();
        let high = beyond.get((beyond.len() * 19).div_ceil(20).saturating_sub(1));
        high.copied().unwrap_or_default()
    }
}

impl DelaySample {
    fn without(self, per_byte: PerByte) -> OneWayDelay {
        self.delay.less(per_byte.span(if self.long { LONG } else { SHORT }))
    }
}

/// The delay of a path relative to `common`, a delay that all paths of the neighbour share and that includes
/// the clock difference.
pub(super) fn relative(fit: DelayFit, common: OneWayDelay) -> PathDelay {
    PathDelay { fixed: fit.0.beyond(common), per_byte: fit.1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::wire_len;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn guard(delays: &Delays) -> Span {
        delays.fit().map_or(Span::ZERO, |fit| delays.spread(fit)) + delays.correction()
    }

    /// Breaks: the assumed wire lengths are those of the probes.
    #[test]
    fn probes_have_the_stated_wire_lengths() {
        assert_eq!((wire_len(ByteCount::new(60)), wire_len(ByteCount::new(1_514))), (SHORT, LONG));
    }

    /// Breaks: predictions depend on the length of a frame, and not on the clock of the neighbour.
    #[test]
    fn two_lengths_separate_time_per_byte_from_fixed_delay() {
        for ahead in [0, 77_000_000_000, 0_u64.wrapping_sub(5_000_000_000)] {
            let mut delays = Delays::new(PerByte::default(), Rate::default());
            for i in 0..40 {
                // Two links of 100 Mbit/s and 300 us.
                let (long, bytes) = if i % 4 == 3 { (true, 1_538) } else { (false, 84) };
                let delay = 300_000 + bytes * 160;
                let sent = at(1_000 + i * 25);
                let arrived = Instant::from_nanos(sent.as_nanos().wrapping_add(delay).wrapping_add(ahead));
                delays.add(sent, OneWayDelay::between(sent, arrived), long, ByteCount::ZERO, false);
            }
            let fit = delays.fit().expect("probes have arrived");
            let base = OneWayDelay(ahead as i64);
            let delay = relative(fit, base);
            assert!(delay.fixed.abs_diff(Span::from_micros(300)) < Span::from_nanos(5), "{delay:?}");
            assert!((delay.per_byte.as_nanos_f64() - 160.0).abs() < 0.01, "{delay:?}");
            assert!(guard(&delays) < Span::from_nanos(5));
            assert!(delays.queue().is_zero() && delays.jitter().is_zero());
        }
    }

    /// Breaks: the guard covers jitter, and ignores a single late probe in twenty.
    #[test]
    fn the_guard_covers_nearly_all_probes() {
        let mut delays = Delays::new(PerByte::default(), Rate::default());
        for i in 0..40 {
            let late = if i == 5 { 9_000_000 } else { (i % 20) * 10_000 };
            delays.add(at(i as u64 * 25), OneWayDelay(late), false, ByteCount::ZERO, false);
        }
        let margin = guard(&delays);
        assert!(margin >= Span::from_micros(180) && margin <= Span::from_micros(190), "{margin}");
    }

    /// Breaks: frames of a path with late frames are sent earlier, and the correction decays afterwards.
    #[test]
    fn reports_of_late_frames_widen_the_guard_for_a_while() {
        let mut delays = Delays::new(PerByte::default(), Rate::default());
        delays.add(at(0), OneWayDelay(0), false, ByteCount::ZERO, false);
        for _ in 0..10 {
            delays.report(2);
        }
        let wide = guard(&delays);
        assert!(wide > Span::from_micros(150), "{wide}");
        for _ in 0..69 {
            delays.report(0);
        }
        let later = guard(&delays);
        assert!(later.abs_diff(wide / 2) < wide / 50, "{wide} {later}");
        for _ in 0..1_000 {
            delays.report(u32::MAX);
        }
        assert_eq!(guard(&delays), MAX_CORRECTION);
    }

    /// Breaks: a growing queue is not jitter, and jitter is not a queue.
    #[test]
    fn a_growing_queue_is_not_jitter() {
        let mut delays = Delays::new(PerByte::default(), Rate::default());
        for i in 0..50 {
            delays.add(at(i as u64 * 25), OneWayDelay(i * 1_000_000), false, ByteCount::ZERO, false);
        }
        assert!(delays.jitter().is_zero(), "{}", delays.jitter());
        assert_eq!(delays.queue(), Span::from_millis(48));
        delays.rebase();
        assert!(delays.queue().is_zero());
        for i in 50..200 {
            delays.add(
                at(i as u64 * 25),
                OneWayDelay(100_000_000 + (i % 2) * 1_000_000),
                false,
                ByteCount::ZERO,
                false,
            );
        }
        assert!(delays.jitter().abs_diff(Span::from_millis(1)) < Span::from_micros(50));
    }
}
