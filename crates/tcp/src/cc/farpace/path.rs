//! Round trips: how long the empty path is, and whose queue there is.
//!
//! A round trip of the path is the median of the samples of that time, and the empty path's is the least of
//! these medians: so jitter, which moves every median alike, does not look like a queue.

use super::least_alpha;
use farpace_units::{Instant, Span};

/// The least median of this time is the empty path's; two windows of half the length take turns. It is long,
/// because the queue that all connections together like to keep would otherwise become part of the path.
const BASE_WINDOW: Span = Span::from_secs(600);
/// Samples that make a median; fewer wait for those of the next round trip, because a delayed ACK is one in
/// two.
const MIN_SAMPLES: usize = 8;
/// Samples of a round trip that are kept; of more, every second, fourth, ... one.
const MAX_SAMPLES: usize = 64;
/// A path that has become longer shows by a step of at least this part of the base ...
const MIN_STEP: f64 = 0.01;
/// ... after which round trips differ by less than this part ...
const MAX_FLAT_RANGE: f64 = 0.005;
/// ... so many times. Queues grow more slowly, and move.
const FLAT_ROUNDS: usize = 4;
/// The step is at least this part of what the round trip has more than the base. Where others fill a queue
/// and slow down, the last step of many is none.
const MIN_STEP_SHARE: f64 = 1.0 / 3.0;
/// A queue grows by less than this part of itself in two round trips: who doubles the window in each has put
/// three quarters of the queue there in the last two.
const MAX_GROWTH_SHARE: f64 = 0.8;
/// A queue does not follow the window if the round trip falls by at most this part of what it would, ...
const MIN_FALL: f64 = 0.25;
/// ... if that is so many times what round trips move by, ...
const MIN_FALL_MOVEMENTS: f64 = 4.0;
/// ... since it was longer than this times what it was before.
const MAX_CREEP: f64 = 1.05;
/// A window that came down tells whether a queue is its own if that would be shorter by this part of it.
const MIN_TOLD_PART: f64 = 1.0 / 3.0;
/// Before a step of the path this connection has no more than so many alphas in the queue.
const MAX_BEFORE_STEP: f64 = 2.0;
/// A queue shows if it is so many times what round trips move by, ...
const MIN_SHOWN_MOVEMENTS: f64 = 4.0;
/// ... and this part of a segment: half of the line's rate may be that of others.
const MIN_SHOWN: f64 = 0.5;
/// A queue of others is at least this part of the base, and so many times alpha at the best rate seen, ...
const MIN_FOREIGN: (f64, f64) = (0.05, 4.0);
/// ... or this part: who comes late to a full queue has not seen a good rate.
const LARGE_FOREIGN: f64 = 0.25;
/// ... for so many round trips and for so long: a queue that another of our kind has made by its start is
/// gone by then.
const FOREIGN_ROUNDS: usize = 10;
const FOREIGN_TIME: Span = Span::from_millis(500);
/// Queues shorter than this part of the base cannot be told from noise.
const MIN_EXCESS: f64 = 0.001;
/// Of a window that grows, so much at least waits where there is but one line.
const MIN_QUEUE_GROWTH: f64 = 0.25;
/// With more than this of what is wanted in the queue, the queue moves for other reasons.
const MAX_YIELD_QUEUE: f64 = 1.0;
/// A movement of round trips adds one part of so many to what is known of it: slow enough for a mean, fast
/// enough for a new path.
const MOVEMENT_MEMORY: u64 = 8;
const MOVEMENT_UNIT: u64 = 256;
/// One movement counts as at most so many times the mean, or one part of so many of the base: a queue of ACKs
/// after a loss is no jitter.
const MAX_BEND: (u64, u64) = (4, 16);
/// Round trips after a probe began in which they move because of it: its own, the next, and two for the bend.
const PROBE_DISTURBANCE: u32 = 5;
/// Round trips are steady if the last ones differ by at most so many times their usual movement, or by one
/// part of so many of the base.
const STEADY_MOVEMENTS: u64 = 3;
const STEADY_PART: u64 = 200;
/// Others that keep a queue filled are gone when it was short for so many round trips.
const QUIET_ROUNDS: u32 = 8;
/// Of the longest queue of others one part of so many is forgotten in a round trip.
const QUEUE_MEMORY: u64 = 64;
/// A queue fills when samples exceed the base by this part of it, so many in a row: samples scatter more than
/// medians.
const FILLING: (f64, usize) = (0.02, 8);
/// They come in no less than this part of the base: a host that was busy gives many late samples at once.
const MIN_FILLING_TIME: u64 = 16;

/// Whose queue it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEstimate {
    /// Nobody's: less than half of what this connection wants to keep there.
    Empty,
    /// This connection's.
    Own,
    /// Mostly that of others.
    Foreign,
}

/// A window, and the round trip that it had.
#[derive(Clone, Copy, Debug, Default)]
struct RoundTripReference {
    /// Segments.
    w: f64,
    /// Seconds.
    rtt: f64,
    since: Instant,
    /// The window has since come down for another reason than the queue, or was not in use.
    disturbed: bool,
}

/// The path's round trips.
#[derive(Clone, Debug, Default)]
pub struct PathModel {
    /// The empty path's round trip is no shorter, because there are several paths; zero: it is not known.
    of_paths: Span,
    samples: Vec<Span>,
    /// Every so many-th sample is kept, and how many were passed over since.
    stride: usize,
    passed: usize,
    latest: Option<Span>,
    /// Least medians of this window and the one before, and when this one began.
    current: Option<Span>,
    before: Option<Span>,
    since: Instant,
    /// The least median is one of few samples.
    provisional: bool,
    /// Samples in a row that were high, and when the first of them came.
    high: usize,
    high_since: Instant,
    /// The windows of the last round trips: a window that grew makes a step of its own.
    windows: [f64; 5],
    /// Our part of the queue in the last round trips.
    owns: [f64; 4],
    /// Medians since the last step upwards; empty if there was none.
    flat: Vec<Span>,
    /// Round trips since the last median: a small window needs some for one.
    rounds: usize,
    /// Round trips in a row in which the queue was mostly that of others.
    foreign: usize,
    competing: bool,
    /// The window before the queue that is taken for that of others.
    before_others: f64,
    /// The largest rise of round trips, from one to the next but one, since there was no such queue,
    /// microseconds.
    steepest: u64,
    /// The longest queue of others, which is forgotten slowly.
    longest: Span,
    /// From where on the window has come down in a queue.
    reference: RoundTripReference,
    /// Since when it is there.
    others_since: Instant,
    /// Round trips without a long queue since others had one.
    quiet: u32,
    /// The medians of the last round trips in microseconds, the newest first; zero: there was none.
    medians: [u64; 4],
    /// How much a median differs from the line through its neighbours in the mean, in [`MOVEMENT_UNIT`]ths of
    /// a microsecond: jitter, for queues grow and shrink along lines.
    movement: u64,
    /// Round trips until movements are those of the path again: a probe makes its own.
    disturbed: u32,
    /// The same as `steepest` without what a window that grew explains, seconds.
    step: f64,
    /// The path itself has become longer: the round trip has not followed the window down from this one.
    longer: Option<f64>,
}

impl PathModel {
    /// A round trip was measured.
    pub fn sample(&mut self, rtt: Span) {
        self.passed += 1;
        if self.passed <= self.stride {
            return;
        }
        self.passed = 0;
        if self.samples.len() >= MAX_SAMPLES {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = self.stride * 2 + 1;
        }
        self.samples.push(Span::from_micros(rtt.as_nanos() / 1_000));
    }

    /// The empty path's round trip is no shorter than this: that of the longest of several paths; zero: there
    /// is one.
    pub fn at_least(&mut self, base_of_paths: Span) {
        self.of_paths = base_of_paths;
    }

    /// The median of the last round trip that had samples.
    pub fn latest(&self) -> Option<Span> {
        self.latest
    }

    /// The empty path's round trip; zero before the first.
    pub fn base(&self) -> Span {
        match (self.current, self.before) {
            (Some(a), Some(b)) => a.min(b).max(self.of_paths),
            (a, b) => a.or(b).map(|least| least.max(self.of_paths)).unwrap_or_default(),
        }
    }

    /// The window before others had the queue that they have now, segments.
    pub fn before_others(&self) -> f64 {
        self.before_others
    }

    /// The window with which that was sent of which the last round trip has told, segments.
    pub fn window_before(&self) -> f64 {
        if self.windows[1] > 0.0 { self.windows[1] } else { self.windows[0] }
    }

    /// The queue is at least half as long as the longest one of others.
    pub fn is_queue_high(&self) -> bool {
        let excess = self.latest.unwrap_or_default() - self.base();
        !self.longest.is_zero() && excess * 2 >= self.longest
    }

    /// The queue is as long as one that others keep filled, at least.
    pub fn is_queue_long(&self) -> bool {
        let excess = self.latest.unwrap_or_default() - self.base();
        excess.as_secs_f64() >= MIN_FOREIGN.0 * self.base().as_secs_f64()
    }

    /// Segments wait in a short queue, whoever sent them: the last round trip exceeded the empty path's by
    /// more than noise, and by more than a part of a segment takes at `best` segments a second. Longer queues
    /// show whose they are.
    pub fn is_queue_short(&self, best: f64) -> bool {
        let excess = (self.latest.unwrap_or_default() - self.base()).as_secs_f64();
        let least = (MIN_STEP * self.base().as_secs_f64()).max(MIN_SHOWN_MOVEMENTS * self.movement());
        excess >= least && excess * best >= MIN_SHOWN && !self.is_queue_long()
    }

    /// Our part of the queue in the last round trip, segments.
    pub fn own(&self) -> f64 {
        self.owns[0]
    }

    /// Seconds by which a round trip usually differs from the one before, though nothing else has changed.
    pub fn movement(&self) -> f64 {
        self.movement as f64 / (MOVEMENT_UNIT as f64 * 1e6)
    }

    /// The last round trips differ by no more than they usually move.
    pub fn is_steady(&self) -> bool {
        let most = self.medians.iter().copied().max().unwrap_or(0);
        let least = self.medians.iter().copied().min().unwrap_or(0);
        let base = self.base().as_nanos() / 1_000;
        let allowed = (STEADY_MOVEMENTS * self.movement / MOVEMENT_UNIT).max(base / STEADY_PART);
        least > 0 && most - least <= allowed
    }

    /// If the last round trip has shown that the path itself has become longer: the window before that was
    /// taken for a queue, segments.
    pub fn longer(&self) -> Option<f64> {
        self.longer
    }

    /// The window comes down for another reason than the queue, or is not in use: whether round trips follow
    /// it says nothing.
    pub fn ignore_window(&mut self) {
        self.reference.disturbed = true;
    }

    /// The path is as long as its last round trip.
    pub fn adopt(&mut self, rtt: Span) {
        (self.current, self.before) = (Some(rtt), None);
        self.flat.clear();
        self.reference = RoundTripReference::default();
        self.foreign = 0;
        self.owns = [0.0; 4];
    }

    /// The window moves for a probe: round trips move with it for a while.
    pub fn disturb(&mut self) {
        self.disturbed = PROBE_DISTURBANCE;
    }

    /// Others have the queue that is there, or it looks like that for some round trips.
    pub fn may_be_others(&self) -> bool {
        self.competing || self.foreign >= FOREIGN_ROUNDS - 2
    }

    /// Round trips have become much longer, and no step of the path has done that: a queue has grown.
    pub fn has_grown(&self) -> bool {
        let base = self.base().as_nanos() / 1_000;
        let excess = self.medians[0].saturating_sub(base);
        excess as f64 >= LARGE_FOREIGN * base as f64
            && (self.steepest as f64) < MAX_GROWTH_SHARE * excess as f64
    }

    /// Others have the queue that is there, if it is long.
    pub fn suspect_others(&mut self) {
        self.foreign = self.foreign.max(FOREIGN_ROUNDS / 2);
    }

    /// Learns from a median how much they move.
    fn watch(&mut self, rtt: Span) {
        self.medians.rotate_right(1);
        self.medians[0] = rtt.as_nanos() / 1_000;
        let [newest, middle, oldest, _] = self.medians;
        self.disturbed = self.disturbed.saturating_sub(1);
        if oldest > 0 && self.disturbed == 0 {
            let base = self.base().as_nanos() / 1_000 * MOVEMENT_UNIT;
            let most = (self.movement * MAX_BEND.0).max(base / MAX_BEND.1);
            let bend = ((newest + oldest).abs_diff(2 * middle) * MOVEMENT_UNIT / 2).min(most);
            self.movement = self.movement - self.movement / MOVEMENT_MEMORY + bend / MOVEMENT_MEMORY;
        }
    }

    /// The window has grown for some round trips, and the queue has not: a second line takes what the first
    /// cannot, because something waits there.
    pub fn yields(&self, alpha: f64) -> bool {
        // What waits in a round trip was sent in the one before.
        let [_, newer, .., older] = self.windows;
        let [queue, .., before] = self.owns;
        let grown = newer - older;
        older > 0.0
            && grown >= least_alpha(newer)
            && queue - before < MIN_QUEUE_GROWTH * grown
            && queue.max(before) <= MAX_YIELD_QUEUE * alpha
    }

    /// A single round trip; true if it and those before show that the queue fills.
    pub fn is_filling(&mut self, now: Instant, rtt: Span, w: f64, alpha: f64) -> bool {
        let long = self.base().as_secs_f64();
        let excess = (rtt - self.base()).as_secs_f64();
        let high = excess > FILLING.0 * long && w * excess > 2.0 * alpha * long;
        self.high = if high { self.high + 1 } else { 0 };
        if self.high <= 1 {
            self.high_since = now;
        }
        self.high >= FILLING.1 && now.since(self.high_since) >= self.base() / MIN_FILLING_TIME
    }

    /// A round trip is over; the window is `w`, what this connection wants to keep in the queue `alpha`
    /// segments, and the most that it has ever had delivered `best` segments a second.
    pub fn end_round(&mut self, now: Instant, w: f64, alpha: f64, best: f64) -> QueueEstimate {
        let grew = self.windows.iter().take(3).any(|before| w > before + least_alpha(w));
        self.windows.rotate_right(1);
        self.windows[0] = w;
        self.rounds += 1;
        self.longer = None;
        if self.samples.len() < MIN_SAMPLES && self.latest.is_some() {
            return if self.competing { QueueEstimate::Foreign } else { QueueEstimate::Own };
        }
        self.stride = 0;
        self.passed = 0;
        // What the train has shown is a few samples: the first real median takes its place.
        let few = self.samples.len() < MIN_SAMPLES;
        if std::mem::replace(&mut self.provisional, few) && !few {
            self.current = None;
        }
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_unstable();
        let Some(rtt) = samples.get(samples.len().saturating_sub(1) / 2).copied() else {
            return QueueEstimate::Own;
        };
        samples.clear();
        self.samples = samples;
        let previous = self.latest.replace(rtt);
        self.watch(rtt);
        if self.current.is_none() {
            self.since = now;
        } else if now.since(self.since) >= BASE_WINDOW / 2 {
            (self.before, self.current) = (self.current, None);
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
        // Few ACKs make round trips move by what one of them waits for.
        let scatter = (alpha - least_alpha(w)).max(0.0) / w.max(1.0);
        // What others keep filled is no path, however flat it is.
        if !self.may_be_others() && self.is_longer(rtt, previous.filter(|_| !grew), scatter) {
            (self.current, self.before, self.since) = (self.flat.iter().min().copied(), None, now);
            self.flat.clear();
        }
        self.longest -= self.longest / QUEUE_MEMORY;
        if self.competing {
            self.longest = self.longest.max(rtt - self.base());
        }
        let rounds = std::mem::take(&mut self.rounds);
        self.judge(now, rtt, w, alpha, best, rounds)
    }

    /// The path itself has become longer: a step, and then nothing moves. `scatter`: the part of a round trip
    /// that a step must have besides.
    fn is_longer(&mut self, rtt: Span, previous: Option<Span>, scatter: f64) -> bool {
        let long = self.base().as_secs_f64();
        let least = ((MIN_STEP + scatter) * long).max(MIN_STEP_SHARE * (rtt - self.base()).as_secs_f64());
        let stepped = previous.is_some_and(|p| (rtt - p).as_secs_f64() > least);
        if stepped {
            self.flat.clear();
            self.flat.push(rtt);
        } else if let Some(first) = self.flat.first() {
            if first.abs_diff(rtt).as_secs_f64() > MAX_FLAT_RANGE * long {
                self.flat.clear();
            } else {
                self.flat.push(rtt);
            }
        }
        self.flat.len() > FLAT_ROUNDS
    }

    /// The window has come down to half, and the round trip has not followed: the queue is not that of this
    /// connection.
    fn is_unmoved(&mut self, now: Instant, rtt: Span) -> bool {
        let (rtt, w) = (rtt.as_secs_f64(), self.windows[1]);
        let RoundTripReference { w: before, rtt: longest, since, .. } = self.reference;
        if rtt > longest * MAX_CREEP || w > before {
            self.reference = RoundTripReference { w, rtt, since: now, disturbed: false };
            return false;
        }
        let expected = longest - (longest * w / before.max(1e-9)).max(self.base().as_secs_f64());
        w <= before / 2.0
            && longest - rtt <= MIN_FALL * expected
            && expected >= MIN_FALL_MOVEMENTS * self.movement()
            && now.since(since) >= FOREIGN_TIME
    }

    /// The round trip has grown in one step, from a queue of twice `alpha` at most, and not followed the
    /// window, which came down because of that alone: there is no queue, and the path itself has become
    /// longer. A dip, in effect, that need not wait for its turn.
    fn is_stepped(&self, rtt: Span, alpha: f64) -> bool {
        let RoundTripReference { w: before, rtt: longest, disturbed, .. } = self.reference;
        let (rtt, w, base) = (rtt.as_secs_f64(), self.windows[1], self.base().as_secs_f64());
        if disturbed || self.may_be_others() || w > before || rtt > longest * MAX_CREEP {
            return false;
        }
        let excess = rtt - base;
        let expected = longest - (longest * w / before.max(1e-9)).max(base);
        self.step >= MAX_GROWTH_SHARE * excess
            && (excess - self.step) * w <= MAX_BEFORE_STEP * alpha * rtt
            && (longest - rtt).abs() <= MIN_FALL * expected
            && expected >= (MIN_TOLD_PART * excess).max(MIN_FALL_MOVEMENTS * self.movement())
    }

    /// `rounds`: as many round trips as the median `rtt` is of.
    fn judge(
        &mut self,
        now: Instant,
        rtt: Span,
        w: f64,
        alpha: f64,
        best: f64,
        rounds: usize,
    ) -> QueueEstimate {
        let long = self.base().as_secs_f64();
        let excess = (rtt - self.base()).as_secs_f64();
        let own = w * excess / rtt.as_secs_f64().max(1e-9);
        self.owns.rotate_right(1);
        self.owns[0] = own;
        let large = excess * best >= MIN_FOREIGN.1 * alpha || excess >= LARGE_FOREIGN * long;
        if excess < MIN_FOREIGN.0 * long || !large {
            self.foreign = 0;
            self.reference = RoundTripReference::default();
            self.quiet = self.quiet.saturating_add(1);
            if self.competing && self.quiet < QUIET_ROUNDS {
                return QueueEstimate::Foreign;
            }
            self.competing = false;
            return if own <= alpha / 2.0 || excess <= MIN_EXCESS * long {
                QueueEstimate::Empty
            } else {
                QueueEstimate::Own
            };
        }
        let [newest, previous, older, _] = self.medians;
        // A round trip in which the path changes has a median of before, of after, or between.
        let lower = if older > 0 { older.min(previous) } else { previous };
        let rise = newest.saturating_sub(lower);
        self.steepest = if self.quiet > 0 { rise } else { self.steepest.max(rise) };
        let [_, told, before, earlier, _] = self.windows;
        let grown = (told - if earlier > 0.0 { earlier.min(before) } else { before }).max(0.0);
        let step = rise as f64 / 1e6 - rtt.as_secs_f64() * grown / told.max(1.0);
        self.step = if self.quiet > 0 { step } else { self.step.max(step) };
        // This connection makes room for others before it knows of them.
        if self.quiet > 0 || self.before_others == 0.0 {
            let known = if self.quiet < QUIET_ROUNDS { self.before_others } else { 0.0 };
            self.before_others = self.windows[1].max(w).max(known);
        }
        self.quiet = 0;
        // We hold next to nothing of it, and it stays.
        if self.foreign == 0 {
            self.others_since = now;
        }
        if own <= 2.0 * alpha.min(least_alpha(w).max(w / 8.0)) {
            self.foreign += rounds;
        } else if self.disturbed == 0 {
            self.foreign = 0;
        }
        if self.is_stepped(rtt, alpha) {
            self.longer = Some(self.reference.w);
        }
        // A path that has become longer does not follow the window, either.
        self.competing |= self.is_unmoved(now, rtt) && self.has_grown();
        self.competing |= self.foreign >= FOREIGN_ROUNDS && now.since(self.others_since) >= FOREIGN_TIME;
        if self.competing { QueueEstimate::Foreign } else { QueueEstimate::Own }
    }
}
