//! How long the frames of one way are under way, and how sure that is.

use crate::multi_nic::{PathDelay, PerByte};
use farpace_units::{ByteCount, Instant, Rate, Span};
use std::collections::VecDeque;

/// Frames are predicted to take as long as probes have taken during this time.
const RECENT: Span = Span::from_secs(1);
/// Most probes that are remembered of it.
const MAX_RECENT: usize = 64;
/// For how long the shortest delay is believed to be that of an empty way: twice this at most, once at least.
const EPOCH: Span = Span::from_secs(5);
/// So many long probes say more of frames of data, which are long, than short ones do.
const ENOUGH_LONG: usize = 8;
/// The correction grows to this part more with each report of frames that came too late, from this on, and up to this.
const GROWTH: f64 = 1.25;
const STEP: Span = Span::from_micros(5);
const MAX: Span = Span::from_millis(50);
/// Each report without such frames takes away this part: at 40 reports a second half of it is gone in two seconds.
const DECAY: f64 = 0.99;

/// From nothing, jitter grows by sixteenths of this at most, in ns.
const JITTER_STEP: f64 = 200_000.0;

/// Bytes of the line of the two lengths of probes.
pub(super) const SHORT: ByteCount = ByteCount::new(84);
pub(super) const LONG: ByteCount = ByteCount::new(1_538);

/// The difference of two clocks of which nobody knows how far they are apart, in ns: what one says on arrival less what the other
/// said when the frame left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OneWayDelay(i64);

impl OneWayDelay {
    pub(super) fn between(sent_at: Instant, arrived_at: Instant) -> OneWayDelay {
        OneWayDelay(arrived_at.as_nanos().wrapping_sub(sent_at.as_nanos()) as i64)
    }
    /// By how much it is longer; zero if it is not.
    pub(super) fn beyond(self, other: OneWayDelay) -> Span {
        Span::from_nanos(u64::try_from(self.0.saturating_sub(other.0)).unwrap_or(0))
    }
    fn less(self, span: Span) -> OneWayDelay {
        OneWayDelay(self.0.saturating_sub(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// The shortest of the present and the last epoch.
#[derive(Clone, Copy, Debug, Default)]
struct Shortest([Option<OneWayDelay>; 2]);

impl Shortest {
    fn get(self) -> Option<OneWayDelay> {
        self.0.into_iter().flatten().min()
    }
    fn add(&mut self, delay: OneWayDelay) {
        self.0[0] = Some(self.0[0].map_or(delay, |shortest| shortest.min(delay)));
    }
    fn turn(&mut self) {
        self.0 = [None, self.0[0]];
    }
}

/// What probes of two lengths tell of delays.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    /// Taken for granted until long probes have come.
    assumed: PerByte,
    /// The part of it that belongs to lines after our card's.
    sent_on: PerByte,
    recent: VecDeque<DelaySample>,
    short: Shortest,
    long: Shortest,
    turned: Instant,
    /// The last two short ones, the newest first.
    last: [Option<OneWayDelay>; 2],
    jitter: f64,
    correction: Span,
}

#[derive(Clone, Copy, Debug)]
struct DelaySample {
    at: Instant,
    delay: OneWayDelay,
    long: bool,
}

impl Delays {
    /// Time per byte is taken for `assumed`, of which our card's line takes what `nominal` says.
    pub(super) fn new(assumed: PerByte, nominal: Rate) -> Delays {
        let own = PerByte::of(nominal).as_nanos_f64();
        Delays {
            assumed,
            sent_on: PerByte::from_nanos_f64(assumed.as_nanos_f64() - own),
            recent: VecDeque::new(),
            short: Shortest::default(),
            long: Shortest::default(),
            turned: Instant::ZERO,
            last: [None; 2],
            jitter: 0.0,
            correction: Span::ZERO,
        }
    }
    /// A probe has come through, which left `behind` a frame of data.
    pub(super) fn add(&mut self, now: Instant, delay: OneWayDelay, long: bool, behind: ByteCount) {
        // A short frame catches up with a longer one wherever that is sent on when it is whole, and waits for it there.
        let own = if long { LONG } else { SHORT };
        let delay = delay.less(self.sent_on.span(ByteCount::new(behind.get().saturating_sub(own.get()))));

        if now.since(self.turned) >= EPOCH {
            self.turned = now;
            self.short.turn();
            self.long.turn();
        }
        if long {
            self.long.add(delay);
        } else {
            self.short.add(delay);
            if let [Some(last), Some(before)] = self.last {
                // Second differences: a queue that grows evenly is no jitter, and one that begins or ends hardly.
                let bend = (delay.0 as f64 - 2.0 * last.0 as f64 + before.0 as f64).abs() / 2.0;
                self.jitter += (bend.min(self.jitter * 8.0 + JITTER_STEP) - self.jitter) / 16.0;
            }
            self.last = [Some(delay), self.last[0]];
        }
        self.recent.push_back(DelaySample { at: now, delay, long });
        let old = |sample: &DelaySample| now.since(sample.at) > RECENT;
        while self.recent.len() > MAX_RECENT || self.recent.front().is_some_and(old) {
            self.recent.pop_front();
        }
    }
    /// What comes next has nothing to do with the last probes.
    pub(super) fn interrupt(&mut self) {
        self.last = [None; 2];
    }
    /// So many frames of the lane have come too late, since the last report.
    pub(super) fn report(&mut self, harmful: u32) {
        let (factor, step) = if harmful > 0 { (GROWTH, STEP) } else { (DECAY, Span::ZERO) };
        let nanos = self.correction.as_nanos() as f64 * factor;
        self.correction = (Span::from_nanos(nanos as u64) + step).min(MAX);
    }
    /// What waits on the way before a frame that goes in now, as far as the last two probes tell: that of the faster one, which
    /// jitter has delayed less.
    pub(super) fn queue(&self) -> Span {
        let newest = self.last.into_iter().flatten().min();
        newest.zip(self.short.get()).map_or(Span::ZERO, |(newest, base)| newest.beyond(base))
    }
    /// By how much delays differ from one probe to the next, as a mean.
    pub(super) fn jitter(&self) -> Span {
        Span::from_nanos(self.jitter as u64)
    }
    /// The way is another: what is shortest now is what is shortest.
    pub(super) fn rebase(&mut self) {
        let [newest, before] = self.last;
        self.short = Shortest([newest.into_iter().chain(before).min(), None]);
        self.long = Shortest::default();
    }
    /// Time per byte, and the shortest delay of late without it. None: no probe has come through.
    pub(super) fn fit(&self) -> Option<(OneWayDelay, PerByte)> {
        let per_byte = match (self.short.get(), self.long.get()) {
            (Some(short), Some(long)) => {
                let nanos = long.beyond(short).as_nanos() as f64;
                PerByte::from_nanos_f64(nanos / (LONG - SHORT).get() as f64)
            }
            _ => self.assumed,
        };
        let shortest = self.recent.iter().map(|sample| sample.without(per_byte)).min()?;
        Some((shortest, per_byte))
    }
    /// By how much frames come later than that, but for one in twenty, and what has been learned from frames that came too late.
    pub(super) fn guard(&self) -> Span {
        let Some((shortest, per_byte)) = self.fit() else { return self.correction };
        // A short probe in a stream of long frames waits for the one before it at each line; long ones do not.
        let long = self.recent.iter().filter(|sample| sample.long).count() >= ENOUGH_LONG;
        let of_data = self.recent.iter().filter(|sample| sample.long || !long);
        let mut beyond: Vec<Span> = of_data.map(|sample| sample.without(per_byte).beyond(shortest)).collect();
        beyond.sort_unstable();
        let high = beyond.get((beyond.len() * 19).div_ceil(20).saturating_sub(1));
        high.copied().unwrap_or_default() + self.correction
    }
}

impl DelaySample {
    fn without(self, per_byte: PerByte) -> OneWayDelay {
        self.delay.less(per_byte.span(if self.long { LONG } else { SHORT }))
    }
}

/// As lanes have it: beyond what is `common` to all lanes of the neighbour, the difference of the clocks among it.
pub(super) fn relative(fit: (OneWayDelay, PerByte), common: OneWayDelay) -> PathDelay {
    PathDelay { fixed: fit.0.beyond(common), per_byte: fit.1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pacing::on_the_line;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// Breaks: lengths that are counted are not those that are sent.
    #[test]
    fn probes_take_of_the_line_what_is_said() {
        assert_eq!((on_the_line(ByteCount::new(60)), on_the_line(ByteCount::new(1_514))), (SHORT, LONG));
    }

    /// Breaks: a short frame is predicted to take as long as a long one, or the clock of the neighbour enters.
    #[test]
    fn two_lengths_tell_time_per_byte_from_what_is_fixed() {
        for ahead in [0, 77_000_000_000, 0_u64.wrapping_sub(5_000_000_000)] {
            let mut delays = Delays::new(PerByte::default(), Rate::default());
            for i in 0..40 {
                // Two lines of 100 Mbit/s and 300 us.
                let (long, bytes) = if i % 4 == 3 { (true, 1_538) } else { (false, 84) };
                let delay = 300_000 + bytes * 160;
                let sent = at(1_000 + i * 25);
                let arrived = Instant::from_nanos(sent.as_nanos().wrapping_add(delay).wrapping_add(ahead));
                delays.add(sent, OneWayDelay::between(sent, arrived), long, ByteCount::ZERO);
            }
            let fit = delays.fit().expect("probes came");
            let base = OneWayDelay(ahead as i64);
            let delay = relative(fit, base);
            assert!(delay.fixed.abs_diff(Span::from_micros(300)) < Span::from_nanos(5), "{delay:?}");
            assert!((delay.per_byte.as_nanos_f64() - 160.0).abs() < 0.01, "{delay:?}");
            assert!(delays.guard() < Span::from_nanos(5));
            assert!(delays.queue().is_zero() && delays.jitter().is_zero());
        }
    }

    /// Breaks: jitter is not guarded against, or one probe of twenty that is late holds everything up.
    #[test]
    fn the_guard_is_what_nearly_all_keep_to() {
        let mut delays = Delays::new(PerByte::default(), Rate::default());
        for i in 0..40 {
            let late = if i == 5 { 9_000_000 } else { (i % 20) * 10_000 };
            delays.add(at(i as u64 * 25), OneWayDelay(late), false, ByteCount::ZERO);
        }
        let guard = delays.guard();
        assert!(guard >= Span::from_micros(180) && guard <= Span::from_micros(190), "{guard}");
    }

    /// Breaks: a lane whose frames come too late again and again is not sent to earlier, or stays so for ever.
    #[test]
    fn reports_of_late_frames_widen_the_guard_for_a_while() {
        let mut delays = Delays::new(PerByte::default(), Rate::default());
        delays.add(at(0), OneWayDelay(0), false, ByteCount::ZERO);
        for _ in 0..10 {
            delays.report(2);
        }
        let wide = delays.guard();
        assert!(wide > Span::from_micros(150), "{wide}");
        for _ in 0..69 {
            delays.report(0);
        }
        let narrower = delays.guard();
        assert!(narrower.abs_diff(wide / 2) < wide / 50, "{wide} {narrower}");
        for _ in 0..1_000 {
            delays.report(u32::MAX);
        }
        assert_eq!(delays.guard(), MAX);
    }

    /// Breaks: a queue is taken for jitter, or the reverse.
    #[test]
    fn a_queue_that_grows_is_no_jitter() {
        let mut delays = Delays::new(PerByte::default(), Rate::default());
        for i in 0..50 {
            delays.add(at(i as u64 * 25), OneWayDelay(i * 1_000_000), false, ByteCount::ZERO);
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
            );
        }
        assert!(delays.jitter().abs_diff(Span::from_millis(1)) < Span::from_micros(50));
    }
}
