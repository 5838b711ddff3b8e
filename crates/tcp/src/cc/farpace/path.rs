//! Round trips: how long the empty path is, and whose queue there is.
//!
//! A round trip of the path is the median of the samples of that time, and the empty path's is the least of these medians: so
//! jitter, which moves every median alike, does not look like a queue.

use super::least_alpha;
use farpace_units::{Instant, Span};

/// The least median of this time is the empty path's; two windows of half the length take turns. It is long, because the
/// queue that all connections together like to keep would otherwise become part of the path.
const WINDOW: Span = Span::from_secs(600);
/// Samples that make a median; fewer wait for those of the next round trip, because a delayed ACK is one in two.
const ENOUGH: usize = 8;
/// Samples of a round trip that are kept; of more, every second, fourth, ... one.
const SAMPLES: usize = 64;
/// A path that has become longer shows by a step of at least this part of the base ...
const STEP: f64 = 0.01;
/// ... after which round trips differ by less than this part ...
const FLAT: f64 = 0.005;
/// ... so many times. Queues grow more slowly, and move.
const ROUNDS: usize = 4;
/// A queue of others is at least this part of the base, and so many times alpha at the best rate seen, ...
const FOREIGN: (f64, f64) = (0.05, 4.0);
/// ... or this part: who comes late to a full queue has not seen a good rate.
const CERTAINLY_FOREIGN: f64 = 0.25;
/// Queues shorter than this part of the base cannot be told from noise.
const NOISE: f64 = 0.001;
/// Of a window that grows, so much at least waits where there is but one line.
const YIELDS: f64 = 0.25;
/// With more than this of what is wanted in the queue, the queue moves for other reasons.
const MODEST: f64 = 1.0;
/// A queue fills when samples exceed the base by this part of it, so many in a row: samples scatter more than medians.
const FILLING: (f64, usize) = (0.02, 8);

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

/// The path's round trips.
#[derive(Clone, Debug, Default)]
pub struct PathModel {
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
    /// Samples in a row that were high.
    high: usize,
    /// The windows of the last round trips: a window that grew makes a step of its own.
    windows: [f64; 5],
    /// Our part of the queue in the last round trips.
    owns: [f64; 4],
    /// Medians since the last step upwards; empty if there was none.
    flat: Vec<Span>,
    /// Round trips in a row in which the queue was mostly that of others.
    foreign: usize,
    competing: bool,
}

impl PathModel {
    /// A round trip was measured.
    pub fn sample(&mut self, rtt: Span) {
        self.passed += 1;
        if self.passed <= self.stride {
            return;
        }
        self.passed = 0;
        if self.samples.len() >= SAMPLES {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride = self.stride * 2 + 1;
        }
        self.samples.push(rtt);
    }

    /// The median of the last round trip that had samples.
    pub fn latest(&self) -> Option<Span> {
        self.latest
    }

    /// The empty path's round trip; zero before the first.
    pub fn base(&self) -> Span {
        match (self.current, self.before) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).unwrap_or_default(),
        }
    }

    /// The window has grown for some round trips, and the queue has not: a second line takes what the first cannot, because something
    /// waits there.
    pub fn yields(&self, alpha: f64) -> bool {
        // What waits in a round trip was sent in the one before.
        let [_, newer, .., older] = self.windows;
        let [queue, .., before] = self.owns;
        let grown = newer - older;
        older > 0.0
            && grown >= least_alpha(newer)
            && queue - before < YIELDS * grown
            && queue.max(before) <= MODEST * alpha
    }

    /// A single round trip; true if it and those before show that the queue fills.
    pub fn is_filling(&mut self, rtt: Span, w: f64, alpha: f64) -> bool {
        let long = self.base().as_secs_f64();
        let excess = (rtt - self.base()).as_secs_f64();
        let high = excess > FILLING.0 * long && w * excess > 2.0 * alpha * long;
        self.high = if high { self.high + 1 } else { 0 };
        self.high >= FILLING.1
    }

    /// A round trip is over; the window is `w`, what this connection wants to keep in the queue `alpha` segments, and the
    /// most that it has ever had delivered `best` segments a second.
    pub fn end_round(&mut self, now: Instant, w: f64, alpha: f64, best: f64) -> QueueEstimate {
        let grew = self.windows.iter().take(3).any(|before| w > before + least_alpha(w));
        self.windows.rotate_right(1);
        self.windows[0] = w;
        if self.samples.len() < ENOUGH && self.latest.is_some() {
            return if self.competing { QueueEstimate::Foreign } else { QueueEstimate::Own };
        }
        self.stride = 0;
        self.passed = 0;
        // What the train has shown is a few samples: the first real median takes its place.
        let few = self.samples.len() < ENOUGH;
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
        if self.current.is_none() {
            self.since = now;
        } else if now.since(self.since) >= WINDOW / 2 {
            (self.before, self.current) = (self.current, None);
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
        // Few ACKs make round trips move by what one of them waits for.
        let scatter = (alpha - least_alpha(w)).max(0.0) / w.max(1.0);
        if self.is_longer(rtt, previous.filter(|_| !grew), scatter) {
            (self.current, self.before, self.since) = (self.flat.iter().min().copied(), None, now);
            self.flat.clear();
        }
        self.judge(rtt, w, alpha, best)
    }

    /// The path itself has become longer: a step, and then nothing moves. `scatter`: the part of a round trip that a step
    /// must have besides.
    fn is_longer(&mut self, rtt: Span, previous: Option<Span>, scatter: f64) -> bool {
        let long = self.base().as_secs_f64();
        let stepped = previous.is_some_and(|p| (rtt - p).as_secs_f64() > (STEP + scatter) * long);
        if stepped {
            self.flat.clear();
            self.flat.push(rtt);
        } else if let Some(first) = self.flat.first() {
            if first.abs_diff(rtt).as_secs_f64() > FLAT * long {
                self.flat.clear();
            } else {
                self.flat.push(rtt);
            }
        }
        self.flat.len() > ROUNDS
    }

    fn judge(&mut self, rtt: Span, w: f64, alpha: f64, best: f64) -> QueueEstimate {
        let long = self.base().as_secs_f64();
        let excess = (rtt - self.base()).as_secs_f64();
        let own = w * excess / rtt.as_secs_f64().max(1e-9);
        self.owns.rotate_right(1);
        self.owns[0] = own;
        let large = excess * best >= FOREIGN.1 * alpha || excess >= CERTAINLY_FOREIGN * long;
        if excess < FOREIGN.0 * long || !large {
            (self.foreign, self.competing) = (0, false);
            return if own <= alpha / 2.0 || excess <= NOISE * long {
                QueueEstimate::Empty
            } else {
                QueueEstimate::Own
            };
        }
        // We hold next to nothing of it, and it stays.
        self.foreign = if own <= 2.0 * alpha { self.foreign + 1 } else { 0 };
        self.competing |= self.foreign >= ROUNDS;
        if self.competing { QueueEstimate::Foreign } else { QueueEstimate::Own }
    }
}
