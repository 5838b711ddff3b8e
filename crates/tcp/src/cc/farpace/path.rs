//! Round trips: how long the empty path is, and whose queue there is.

use farpace_units::{Instant, Span};

/// The least round trip of this time is the empty path's; the windows overlap by half.
const WINDOW: Span = Span::from_secs(60);
/// A queue of others, or a path that has become longer, is at least this part of the base ...
const FOREIGN: f64 = 0.05;
/// ... for so many round trips ...
const ROUNDS: usize = 4;
/// ... and if it varies by less than this part, it is the path.
const STEADY: f64 = 0.02;
/// Queues shorter than this part of the base cannot be told from jitter.
const NOISE: f64 = 0.002;

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
    /// Least round trips of this window and the one before, and when this one began.
    current: Option<Span>,
    before: Option<Span>,
    since: Instant,
    /// The least of the last rounds in which the queue was not our own.
    strange: Vec<Span>,
    competing: bool,
}

impl Path {
    /// A round trip was measured.
    pub fn sample(&mut self, now: Instant, rtt: Span) {
        if self.current.is_none() {
            self.since = now;
        } else if now.since(self.since) >= WINDOW / 2 {
            (self.before, self.current) = (self.current, None);
            self.since = now;
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }

    /// The empty path's round trip; zero before the first sample.
    pub fn base(&self) -> Span {
        match (self.current, self.before) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b).unwrap_or_default(),
        }
    }

    /// The round trip is over; its least was `rtt`, the window `w` and what we want to keep in the queue `alpha` segments.
    pub fn end_round(&mut self, now: Instant, rtt: Option<Span>, w: f64, alpha: f64) -> Queue {
        let (Some(rtt), base) = (rtt, self.base()) else { return Queue::Own };
        let excess = (rtt - base).as_secs_f64();
        let own = w * excess / rtt.as_secs_f64().max(1e-9);
        let long = base.as_secs_f64();
        if own <= alpha / 2.0 || excess <= NOISE * long / 2.0 {
            self.strange.clear();
            self.competing = false;
            return Queue::Empty;
        }
        if own > 2.0 * alpha && !self.competing || excess < FOREIGN * long {
            self.strange.clear();
            self.competing &= excess >= FOREIGN * long;
            return Queue::Own;
        }
        // We hold next to nothing of it, and it stays.
        self.strange.push(rtt);
        if self.competing || self.strange.len() < ROUNDS {
            return if self.competing { Queue::Foreign } else { Queue::Own };
        }
        let least = self.strange.iter().min().copied().unwrap_or(rtt);
        let most = self.strange.iter().max().copied().unwrap_or(rtt);
        self.strange.clear();
        if (most - least).as_secs_f64() < STEADY * long {
            // Others' queues move; this does not: the path is longer now.
            (self.current, self.before, self.since) = (Some(least), None, now);
            return Queue::Empty;
        }
        self.competing = true;
        Queue::Foreign
    }
}
