//! Silences: times in which a transfer stops, the paper's "communication stops".

use farpace_events::RecoveryState;
use farpace_units::{Instant, Span};

/// Most silences that are kept; all are counted.
const MAX_KEPT: usize = 10_000;

/// A time in which at most one packet arrived per round trip, although there was something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When it began.
    pub start: Instant,
    /// When it ended.
    pub end: Instant,
    /// Congestion state of the sender during most of it (sampled at the ends of bins).
    pub state: RecoveryState,
}

impl Silence {
    /// How long it lasted.
    pub fn span(&self) -> Span {
        self.end.since(self.start)
    }
}

/// Finds silences from counts of packets per bin, as a meter at the receiver would.
#[derive(Clone, Debug)]
pub struct SilenceMeter {
    /// Shorter ones do not count.
    at_least: Span,
    /// Packets that may arrive in one bin of a silence.
    limit: u64,
    open: Option<Silence>,
    /// Time of the open silence by [`RecoveryState`].
    states: [Span; 5],
    kept: Vec<Silence>,
    count: u64,
    total: Span,
    longest: Option<Silence>,
}

impl SilenceMeter {
    /// For bins of width `bin`, a round trip of `rtt`, and a path that carries `full` packets in a bin. At
    /// most one packet per round trip is silence. In a bin shorter than a round trip at most one packet is
    /// silence too, unless that is half of what the path can carry. Silences below ten round trips do not
    /// count.
    pub fn new(bin: Span, rtt: Span, full: u64) -> Self {
        let per_bin = bin.as_nanos() / rtt.as_nanos().max(1);
        SilenceMeter {
            at_least: (rtt * 10).max(bin * 2),
            limit: per_bin.max(1).min(full / 2),
            open: None,
            states: [Span::ZERO; 5],
            kept: Vec::new(),
            count: 0,
            total: Span::ZERO,
            longest: None,
        }
    }

    /// The bin from `start` to `end` is over: `packets` arrived in it, and the sender is in `state`.
    pub fn record(&mut self, start: Instant, end: Instant, packets: u64, state: RecoveryState) {
        if !self.is_quiet(packets) {
            self.close();
            return;
        }
        let open = self.open.get_or_insert_with(|| {
            self.states = [Span::ZERO; 5];
            Silence { start, end, state }
        });
        open.end = end;
        self.states[state as usize] += end.since(start);
        if self.states[state as usize] >= self.states[open.state as usize] {
            open.state = state;
        }
    }

    /// True if a bin in which `packets` arrived can be part of a silence.
    pub const fn is_quiet(&self, packets: u64) -> bool {
        packets <= self.limit
    }

    /// The open silence ends here.
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

    /// The silences, up to 10,000 of them.
    pub fn silences(&self) -> &[Silence] {
        &self.kept
    }
    /// Their number.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// Their total time.
    pub fn total(&self) -> Span {
        self.total
    }
    /// The longest one.
    pub fn longest(&self) -> Option<Silence> {
        self.longest
    }
    /// Shorter silences do not count.
    pub fn at_least(&self) -> Span {
        self.at_least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a silence is attributed to the state at its end, not to the state of most of its time.
    #[test]
    fn the_state_is_that_of_most_of_the_time() {
        let bin = Span::from_millis(10);
        let mut m = SilenceMeter::new(bin, bin, 400);
        let states = [RecoveryState::Recovery; 3].into_iter().chain([RecoveryState::Loss; 40]);
        for (n, state) in (0u64..).zip(states.chain([RecoveryState::Open; 2])) {
            m.record(Instant::ZERO + bin * n, Instant::ZERO + bin * (n + 1), 1, state);
        }
        m.close();
        assert_eq!(m.longest().unwrap().state, RecoveryState::Loss);
    }

    /// Breaks: the definition of a silence in reports.
    #[test]
    fn one_packet_per_round_trip_is_silence() {
        let bin = Span::from_millis(10);
        let mut m = SilenceMeter::new(bin, Span::from_millis(10), 400);
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
    /// Breaks: a slow link that is full, with a packet in every second bin, counts as silent.
    #[test]
    fn a_slow_link_is_not_silent() {
        let bin = Span::from_millis(10);
        let mut m = SilenceMeter::new(bin, Span::from_millis(80), 0);
        for n in 0..200 {
            let packets = if n > 100 { 0 } else { n % 2 };
            let (from, to) = (Instant::ZERO + bin * n, Instant::ZERO + bin * (n + 1));
            m.record(from, to, packets, RecoveryState::Open);
        }
        m.close();
        assert_eq!((m.count(), m.total()), (1, Span::from_millis(1_000)));
    }
}
