//! Whether connections to a neighbour are young.

use super::lanes::FULL_FRAME;
use farpace_units::{Instant, Span};

/// A window that grows by less than this in a round trip, so many times in a row, grows fast no more. What is sent in a moment, or in
/// fewer frames than so many, does not tell.
const GROWS: f64 = 1.3;
const ROUNDS: u32 = 2;
const SHORTEST_ROUND: Span = Span::from_millis(20);
const FEWEST_FRAMES: u64 = 10;
/// After so long without a frame connections begin anew.
const QUIET: Span = Span::from_secs(1);

/// Whether what is sent to a neighbour grows as it does while a connection is young, from one round trip to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth {
    /// The present round trip: since when, and what had been sent until then.
    since: Instant,
    sent: u64,
    /// Bytes per second in the last one.
    last: f64,
    /// So many in a row have brought next to nothing more.
    flat: u32,
    over: bool,
    /// When something was sent last, and what has been sent in all.
    sent_at: Instant,
    seen: u64,
}

impl Growth {
    /// So many bytes have been sent to the neighbour until now. `full`: what its lanes carry is less than what is to be sent.
    pub(super) fn look(&mut self, now: Instant, sent: u64, rtt: Span, full: bool) {
        if sent != self.seen {
            if now.since(self.sent_at) >= QUIET {
                *self = Growth { since: now, sent: self.seen, ..Growth::default() };
            }
            (self.sent_at, self.seen) = (now, sent);
        }
        self.over |= full;
        let took = now.since(self.since);
        if took < rtt.max(SHORTEST_ROUND) {
            return;
        }
        let bytes = sent.saturating_sub(self.sent);
        let rate = bytes as f64 / took.as_secs_f64();
        let many = bytes >= FULL_FRAME.get() * FEWEST_FRAMES;
        self.flat = if many && rate < self.last * GROWS { self.flat + 1 } else { 0 };
        self.over |= self.flat >= ROUNDS;
        (self.since, self.sent, self.last) = (now, sent, rate);
    }
    /// What was sent in the last round trip, in Mbit/s.
    pub(super) fn mbit(&self) -> f64 {
        self.last * 8.0 / 1e6
    }
    /// It still does.
    pub(super) const fn goes_on(&self) -> bool {
        !self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: other lanes are never added, or while the first one is not even full.
    #[test]
    fn growth_is_over_when_a_round_trip_brings_no_more() {
        let rtt = Span::from_millis(50);
        let over = |sent: &[u64], full| {
            let (mut growth, mut now, mut all) = (Growth::default(), Instant::from_nanos(9_000_000_000), 0);
            growth.look(now, all, rtt, false);
            let each = sent.iter().map(|frames| {
                (now, all) = (now + rtt, all + frames * FULL_FRAME.get());
                growth.look(now, all, rtt, full);
                !growth.goes_on()
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(over(&[10, 20, 40, 80, 160], false), [false; 5]);
        assert_eq!(over(&[20, 40, 44, 46, 90], false), [false, false, false, true, true]);
        assert_eq!(over(&[20, 1, 1, 1], false), [false; 4], "too little to tell");
        assert_eq!(over(&[20, 40], true), [true; 2]);
        // A connection that begins after a pause grows anew.
        let mut growth = Growth::default();
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        growth.look(at(0), 1_000, rtt, true);
        growth.look(at(500), 2_000, rtt, false);
        assert!(!growth.goes_on());
        growth.look(at(1_600), 3_000, rtt, false);
        assert!(growth.goes_on());
    }
}
