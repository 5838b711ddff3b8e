//! Stretches in which a transfer stood still: the paper's "communication stops".

use farpace_trace::RecoveryState;
use farpace_units::{Instant, Span};

/// Most stretches that are kept; all are counted.
pub const MAX_KEPT: usize = 10_000;

/// A stretch in which at most one packet arrived per round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// Congestion state of the sender when it ended.
    pub state: RecoveryState,
}

impl Silence {
    /// How long it lasted.
    pub fn span(&self) -> Span {
        self.end.since(self.start)
    }
}

/// Finds silences from counts of packets per bin, the way a meter at the receiver would.
#[derive(Clone, Debug)]
pub struct SilenceMeter {
    /// Shorter stretches are waiting, not stopping.
    at_least: Span,
    /// Packets that may arrive in one bin of a silence.
    limit: u64,
    open: Option<Silence>,
    kept: Vec<Silence>,
    count: u64,
    total: Span,
    longest: Option<Silence>,
}

impl SilenceMeter {
    /// For bins of width `bin` and a round trip of `rtt`: at most one packet per round trip is silence, and
    /// so is none in a bin that is shorter than a round trip. Stretches below ten round trips do not count.
    pub fn new(bin: Span, rtt: Span) -> Self {
        let per_bin = bin.as_nanos() / rtt.as_nanos().max(1);
        SilenceMeter {
            at_least: (rtt * 10).max(bin * 2),
            limit: per_bin.max(1),
            open: None,
            kept: Vec::new(),
            count: 0,
            total: Span::ZERO,
            longest: None,
        }
    }

    /// The bin from `start` to `end` is over: `packets` arrived in it, and the sender is in `state`.
    pub fn record(&mut self, start: Instant, end: Instant, packets: u64, state: RecoveryState) {
        if packets > self.limit {
            self.close();
            return;
        }
        let begun = self.open.map_or(start, |s| s.start);
        self.open = Some(Silence { start: begun, end, state });
    }

    /// The stretch that was open ends here.
    pub fn close(&mut self) {
        let Some(silence) = self.open.take().filter(|s| s.span() >= self.at_least) else { return };
        self.count += 1;
        self.total += silence.span();
        if self.longest.is_none_or(|l| silence.span() > l.span()) {
            self.longest = Some(silence);
        }
        if self.kept.len() < MAX_KEPT {
            self.kept.push(silence);
        }
    }

    /// The stretches, up to [`MAX_KEPT`].
    pub fn silences(&self) -> &[Silence] {
        &self.kept
    }
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// All of them together.
    pub fn total(&self) -> Span {
        self.total
    }
    /// The longest one.
    pub fn longest(&self) -> Option<Silence> {
        self.longest
    }
    /// Below this a stretch does not count.
    pub fn at_least(&self) -> Span {
        self.at_least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: what the reports call a stop.
    #[test]
    fn one_packet_per_round_trip_is_silence() {
        let bin = Span::from_millis(10);
        let mut m = SilenceMeter::new(bin, Span::from_millis(10));
        let mut now = Instant::ZERO;
        let mut bins = |m: &mut SilenceMeter, n: u64, packets: u64| {
            for _ in 0..n {
                m.record(now, now + bin, packets, RecoveryState::Recovery);
                now += bin;
            }
        };
        bins(&mut m, 50, 400);
        bins(&mut m, 100, 1);
        bins(&mut m, 1, 2);
        bins(&mut m, 9, 0);
        bins(&mut m, 1, 50);
        m.close();
        assert_eq!(m.count(), 1, "90 ms is waiting, 1 s is a stop");
        let longest = m.longest().unwrap();
        assert_eq!((longest.start, longest.span()), (Instant::ZERO + bin * 50, Span::from_secs(1)));
        assert_eq!(longest.state, RecoveryState::Recovery);
    }
}
