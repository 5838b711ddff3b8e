//! Silences: times in which a transfer stops, the paper's "communication stops".

use farpace_events::RecoveryState;
use farpace_units::{Instant, Span};

/// Most silences that are kept; all are counted.
const MAX_KEPT: usize = 10_000;
/// Packets in a measured round trip of a silence. A retransmission and its neighbour may come together.
const SLACK: f64 = 2.0;

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

/// A stretch of bins in each of which next to nothing arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QuietStretch {
    /// How long it has lasted.
    pub span: Span,
    /// Packets that arrived in it.
    packets: u64,
    /// Round trips that it has lasted, as long as they are with the queues of the moment.
    round_trips: f64,
}

impl QuietStretch {
    /// Another bin of it, in which `packets` arrived, with a round trip of `rtt`.
    pub fn add(&mut self, bin: Span, packets: u64, rtt: Span) {
        self.span += bin;
        self.packets += packets;
        self.round_trips += bin.as_secs_f64() / rtt.as_secs_f64().max(1e-9);
    }
}

/// Finds silences from counts of packets per bin, as a meter at the receiver would.
#[derive(Clone, Debug)]
pub struct SilenceMeter {
    /// Shorter ones do not count.
    at_least: Span,
    /// Packets that may arrive in one bin of a silence.
    limit: u64,
    /// The round trip of the empty path.
    rtt: Span,
    open: Option<Silence>,
    stretch: QuietStretch,
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
            rtt,
            open: None,
            stretch: QuietStretch::default(),
            states: [Span::ZERO; 5],
            kept: Vec::new(),
            count: 0,
            total: Span::ZERO,
            longest: None,
        }
    }

    /// The bin from `start` to `end` is over: `packets` arrived in it, and the sender is in `state` and has
    /// measured a round trip of `srtt`.
    pub fn record(&mut self, start: Instant, end: Instant, packets: u64, state: RecoveryState, srtt: Span) {
        if !self.is_quiet(packets) {
            self.close();
            return;
        }
        let rtt = self.round_trip(srtt);
        let open = self.open.get_or_insert_with(|| {
            self.states = [Span::ZERO; 5];
            self.stretch = QuietStretch::default();
            Silence { start, end, state }
        });
        open.end = end;
        self.stretch.add(end.since(start), packets, rtt);
        self.states[state as usize] += end.since(start);
        if self.states[state as usize] >= self.states[open.state as usize] {
            open.state = state;
        }
    }

    /// True if a bin in which `packets` arrived can be part of a silence.
    pub const fn is_quiet(&self, packets: u64) -> bool {
        packets <= self.limit
    }

    /// True if a stretch of quiet bins is a silence. Where a queue makes round trips longer than a bin, one
    /// packet in each bin is no silence.
    pub fn is_silence(&self, stretch: &QuietStretch) -> bool {
        stretch.span >= self.at_least && stretch.packets as f64 <= SLACK * stretch.round_trips + 1.0
    }

    /// The round trip that a bin of a [`QuietStretch`] counts with, where the sender has measured `srtt`.
    pub fn round_trip(&self, srtt: Span) -> Span {
        srtt.max(self.rtt)
    }

    /// The open silence ends here.
    pub fn close(&mut self) {
        let stretch = self.stretch;
        let Some(silence) = self.open.take().filter(|_| self.is_silence(&stretch)) else { return };
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
            m.record(Instant::ZERO + bin * n, Instant::ZERO + bin * (n + 1), 1, state, bin);
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
                m.record(now, now + bin, packets, RecoveryState::Recovery, bin);
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
            m.record(from, to, packets, RecoveryState::Open, Span::from_millis(80));
        }
        m.close();
        assert_eq!((m.count(), m.total()), (1, Span::from_millis(1_000)));
    }

    /// Breaks: a flow that delivers all the time behind a long queue is said to have stood still.
    #[test]
    fn a_slow_flow_behind_a_queue_is_not_silent() {
        let bin = Span::from_millis(100);
        let of = |srtt: Span| {
            let mut m = SilenceMeter::new(bin, Span::from_millis(40), 120);
            for n in 0..80 {
                let (from, to) = (Instant::ZERO + bin * n, Instant::ZERO + bin * (n + 1));
                m.record(from, to, u64::from(n % 2 == 0), RecoveryState::Open, srtt);
            }
            m.close();
            m.count()
        };
        assert_eq!(of(Span::from_millis(1_000)), 0, "5 packets a round trip");
        assert_eq!(of(Span::from_millis(40)), 1, "one packet in five round trips");
    }
}
