//! Round trips: how long the empty path is, and whose queue there is.
//!
//! A round trip of the path is the median of the samples of that time, and the empty path's is the least of these medians: so
//! jitter, which moves every median alike, does not look like a queue.

use farpace_units::{Instant, Span};

/// The least median of this time is the empty path's; two windows of half the length take turns.
const WINDOW: Span = Span::from_secs(60);
/// Samples of a round trip that are kept; of more, every second, fourth, ... one.
const SAMPLES: usize = 64;
/// A queue of others, or a path that has become longer, is at least this part of the base ...
const FOREIGN: f64 = 0.05;
/// ... for so many round trips ...
const ROUNDS: usize = 4;
/// ... and if it varies by less than this part, it is the path.
const STEADY: f64 = 0.02;
/// Queues shorter than this part of the base cannot be told from noise.
const NOISE: f64 = 0.001;
/// A single sample shows a queue that fills when it exceeds the base by this part of it, if alpha is not more: samples
/// scatter more than medians.
const FILLING: f64 = 0.02;

/// Whose queue it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Nobody's: less than half of what this connection wants to keep there.
    Empty,
    /// This connection's.
    Own,
    /// Mostly that of others.
    Foreign,
}

/// The path's round trips.
#[derive(Clone, Debug, Default)]
pub struct Path {
    samples: Vec<Span>,
    /// Every so many-th sample is kept, and how many were passed over since.
    stride: usize,
    passed: usize,
    latest: Option<Span>,
    /// Least medians of this window and the one before, and when this one began.
    current: Option<Span>,
    before: Option<Span>,
    since: Instant,
    /// The latest medians of a queue that is not our own.
    strange: Vec<Span>,
    competing: bool,
}

impl Path {
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

    /// A single round trip is long enough to show that the queue fills.
    pub fn is_filling(&self, rtt: Span, w: f64, alpha: f64) -> bool {
        let long = self.base().as_secs_f64();
        let excess = (rtt - self.base()).as_secs_f64();
        excess > FILLING * long && w * excess > 2.0 * alpha * long
    }

    /// A round trip is over; the window is `w` and what this connection wants to keep in the queue `alpha` segments.
    pub fn end_round(&mut self, now: Instant, w: f64, alpha: f64) -> Queue {
        self.stride = 0;
        self.passed = 0;
        let mut samples = std::mem::take(&mut self.samples);
        samples.sort_unstable();
        let Some(rtt) = samples.get(samples.len() / 2).copied() else {
            return if self.competing { Queue::Foreign } else { Queue::Own };
        };
        samples.clear();
        self.samples = samples;
        self.latest = Some(rtt);
        if self.current.is_none() {
            self.since = now;
        } else if now.since(self.since) >= WINDOW / 2 {
            (self.before, self.current) = (self.current, None);
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
        self.judge(now, rtt, w, alpha)
    }

    fn judge(&mut self, now: Instant, rtt: Span, w: f64, alpha: f64) -> Queue {
        let long = self.base().as_secs_f64();
        let excess = (rtt - self.base()).as_secs_f64();
        let own = w * excess / rtt.as_secs_f64().max(1e-9);
        if own <= alpha / 2.0 || excess <= NOISE * long {
            self.strange.clear();
            self.competing = false;
            return Queue::Empty;
        }
        if excess < FOREIGN * long {
            self.strange.clear();
            self.competing = false;
            return Queue::Own;
        }
        if self.competing {
            return Queue::Foreign;
        }
        if own > 2.0 * alpha {
            self.strange.clear();
            return Queue::Own;
        }
        // We hold next to nothing of it, and it stays.
        self.strange.push(rtt);
        if self.strange.len() < ROUNDS {
            return Queue::Own;
        }
        let least = self.strange.iter().min().copied().unwrap_or(rtt);
        let most = self.strange.iter().max().copied().unwrap_or(rtt);
        self.strange.clear();
        if (most - least).as_secs_f64() < STEADY * long {
            // The queues of others move. This does not: the path is longer now.
            (self.current, self.before, self.since) = (Some(least), None, now);
            return Queue::Empty;
        }
        self.competing = true;
        Queue::Foreign
    }
}
