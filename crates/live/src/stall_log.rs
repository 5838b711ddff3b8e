//! Stalls of a driver: the times in which something was due and the machine did not run it.

use farpace_units::{Instant, Span};
use std::ops::Range;

/// Most stalls that are kept: 1.6 MB.
const MAX_STALLS: usize = 100_000;

/// Stalls in the order of time, without overlap.
#[derive(Clone, Debug)]
pub(crate) struct StallLog {
    /// Shorter ones are left out.
    min: Span,
    all: Vec<Range<Instant>>,
    /// There were more than are kept.
    overflowed: bool,
}

impl StallLog {
    /// Of stalls of at least `min`.
    pub const fn new(min: Span) -> Self {
        StallLog { min, all: Vec::new(), overflowed: false }
    }
    /// What was due at `due` is done at `now`, which does not go back.
    pub fn add(&mut self, mut due: Instant, now: Instant) {
        if now.since(due) < self.min || due >= now {
            return;
        }
        while let Some(last) = self.all.pop_if(|last| last.end >= due) {
            due = due.min(last.start);
        }
        match self.all.len() < MAX_STALLS {
            true => self.all.push(due..now),
            false => self.overflowed = true,
        }
    }
    /// All of them; none if they were too many.
    pub fn all(&self) -> Option<&[Range<Instant>]> {
        (!self.overflowed).then_some(&self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Span::from_micros(us)
    }

    /// Breaks: stalls that touch are counted twice, short ones fill the memory, or a list that lacks some
    /// passes for whole.
    #[test]
    fn stalls_are_joined_and_bounded() {
        let mut log = StallLog::new(Span::from_micros(50));
        for (due, now) in [(0, 49), (100, 150), (140, 200), (200, 260), (300, 340), (310, 400), (290, 401)] {
            log.add(at(due), at(now));
        }
        assert_eq!(log.all(), Some(&[at(100)..at(260), at(290)..at(401)][..]));
        log.add(at(402), at(402));
        for n in 0..MAX_STALLS as u64 {
            assert_eq!(log.all().map(<[_]>::len), Some(2 + n as usize).filter(|n| *n <= MAX_STALLS));
            log.add(at(1_000 + n * 100), at(1_060 + n * 100));
        }
        assert_eq!(log.all(), None);
    }
}
