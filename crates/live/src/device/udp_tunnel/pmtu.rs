//! How long a packet may be on one path: packetization layer path MTU discovery for datagrams (RFC 8899).
//!
//! The path is probed with packets of several sizes that the other end answers. Nothing depends on ICMP
//! messages of routers. All sizes are those of the packet inside the tunnel, in bytes.

use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// Outer IP packets that are tried, in bytes: what Ethernet, PPPoE, other tunnels, and NICs with jumbo frames
/// leave.
const OUTER: [u16; 14] =
    [1_200, 1_280, 1_340, 1_400, 1_420, 1_440, 1_452, 1_460, 1_472, 1_480, 1_492, 1_500, 4_352, 9_000];
/// Used where the other end answers no probes: what every path of IPv6 carries (RFC 8200 §5), as WireGuard
/// assumes.
const UNPROBED: u16 = 1_280;
/// RFC 8899 §5.1.2, MAX_PROBES: so many probes of a size without an answer mean that it does not pass.
const MAX_PROBES: u8 = 3;
/// How long to wait for an answer while no round trip is known.
const FIRST_WAIT: Span = Span::from_secs(1);
/// RFC 8899 §5.1.1, PMTU_RAISE_TIMER: after this a larger size is tried again.
const RAISE: Span = Span::from_secs(600);
/// From one check that the present size still passes to the next, while data is sent.
const CONFIRM: Span = Span::from_secs(2);
/// Probes that may be under way; of more, the oldest are forgotten.
const MAX_SENT: usize = 64;

/// What is known of one path.
#[derive(Debug)]
pub(super) struct Pmtu {
    /// Sizes that are tried, ascending. The first is taken to pass.
    sizes: Vec<u16>,
    /// Bytes from the inner packet to the outer one.
    overhead: u16,
    /// Nothing above it can leave this machine.
    max: u16,
    current: u16,
    phase: PmtuPhase,
    /// Probes that are due now.
    due: VecDeque<u16>,
    sent: VecDeque<SentProbe>,
    next_seq: u16,
    rtt: Option<Span>,
    /// Data has left since the last check.
    used: bool,
    answered: bool,
}

#[derive(Clone, Copy, Debug)]
struct SentProbe {
    seq: u16,
    size: u16,
    at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PmtuPhase {
    /// RFC 8899 §5.2, Search.
    Search { round: u8, until: Instant },
    /// Search Complete.
    Complete { confirm_at: Instant, raise_at: Instant, misses: u8 },
    /// The same, while a check is under way.
    Confirm { until: Instant, raise_at: Instant, misses: u8, small: bool },
}

impl Pmtu {
    /// A path of which nothing is known. `overhead`: bytes from the inner packet to the outer one; `max`: the
    /// largest inner packet that can leave this machine.
    pub fn new(now: Instant, overhead: u16, max: u16) -> Self {
        let mut pmtu = Pmtu {
            sizes: Vec::new(),
            overhead,
            max,
            current: 0,
            phase: PmtuPhase::Search { round: 0, until: now },
            due: VecDeque::new(),
            sent: VecDeque::new(),
            next_seq: 0,
            rtt: None,
            used: false,
            answered: false,
        };
        pmtu.restart(now);
        pmtu
    }

    /// The path is another one now: all is found out anew.
    pub fn restart(&mut self, now: Instant) {
        let max = self.max;
        let inner = OUTER.iter().map(|outer| outer - self.overhead);
        self.sizes = inner.filter(|size| *size < max).chain([max]).collect();
        self.current = self.sizes.first().copied().unwrap_or(max);
        self.answered = false;
        self.begin_round(now, 0);
    }

    fn begin_round(&mut self, now: Instant, round: u8) {
        let from = if self.answered { self.current + 1 } else { 0 };
        // The largest first: if it is answered, the search is over.
        self.due = self.sizes.iter().rev().copied().filter(|size| *size >= from).collect();
        let wait = self.rtt.map_or(FIRST_WAIT, |rtt| rtt + rtt / 2 + Span::from_millis(50));
        self.phase = PmtuPhase::Search { round, until: now + wait };
    }

    fn complete(&mut self, now: Instant, raise_at: Instant, misses: u8) {
        self.due.clear();
        let confirm_at = if misses > 0 { now } else { now + CONFIRM };
        self.phase = PmtuPhase::Complete { confirm_at, raise_at, misses };
    }

    /// The longest packet that is known to pass.
    pub fn mtu(&self) -> u16 {
        if self.answered || !self.is_settled() {
            self.current
        } else {
            self.current.max(UNPROBED.min(self.max))
        }
    }
    /// The longest packet that may be sent now; none while nothing is known of the path. During a search it
    /// is the longest that was answered, so that none is sent that may vanish.
    pub fn limit(&self) -> Option<u16> {
        (self.answered || self.is_settled()).then(|| self.mtu())
    }
    /// True when the search is over.
    pub const fn is_settled(&self) -> bool {
        !matches!(self.phase, PmtuPhase::Search { .. })
    }
    /// The last round trip of a probe.
    pub const fn rtt(&self) -> Option<Span> {
        self.rtt
    }
    /// Data is sent over the path.
    pub const fn on_data(&mut self) {
        self.used = true;
    }

    /// A probe to be sent now: its number and its size.
    pub fn poll(&mut self, now: Instant) -> Option<(u16, u16)> {
        let size = self.due.pop_front()?;
        let seq = self.next_seq;
        self.next_seq = self.next_seq.wrapping_add(1);
        if self.sent.len() == MAX_SENT {
            self.sent.pop_front();
        }
        self.sent.push_back(SentProbe { seq, size, at: now });
        Some((seq, size))
    }

    /// The system says that a packet of this size is too long for the interface by which it would leave.
    pub fn on_too_long(&mut self, now: Instant, size: u16) {
        self.due.retain(|due| *due < size);
        self.sizes.retain(|other| *other < size);
        if self.sizes.is_empty() {
            self.sizes.push(size.saturating_sub(1));
        }
        if self.current >= size {
            self.current = self.sizes.first().copied().unwrap_or(self.current);
            self.begin_round(now, 0);
        }
    }

    /// An answer to the probe with this number.
    pub fn on_reply(&mut self, now: Instant, seq: u16) {
        let Some(at) = self.sent.iter().position(|sent| sent.seq == seq) else { return };
        let Some(sent) = self.sent.remove(at) else { return };
        self.rtt = Some(now.since(sent.at));
        match self.phase {
            PmtuPhase::Search { .. } => {
                if sent.size >= self.current || !self.answered {
                    self.current = sent.size.max(if self.answered { self.current } else { 0 });
                }
                self.answered = true;
                let current = self.current;
                self.due.retain(|size| *size > current);
                if self.sizes.last().is_none_or(|largest| *largest <= current) {
                    self.complete(now, now + RAISE, 0);
                } else if let (PmtuPhase::Search { until, .. }, Some(rtt)) = (&mut self.phase, self.rtt) {
                    // The larger ones were sent before this one.
                    *until = (*until).min(now + rtt / 2 + Span::from_millis(50));
                }
            }
            PmtuPhase::Confirm { raise_at, .. } if sent.size >= self.current => {
                self.complete(now, raise_at, 0)
            }
            PmtuPhase::Confirm { until, raise_at, misses, .. } => {
                self.phase = PmtuPhase::Confirm { until, raise_at, misses, small: true };
            }
            PmtuPhase::Complete { .. } => {}
        }
    }

    /// Does what is due.
    pub fn on_deadline(&mut self, now: Instant) {
        match self.phase {
            PmtuPhase::Search { round, until } if now >= until => {
                if round + 1 < MAX_PROBES {
                    self.begin_round(now, round + 1);
                } else {
                    self.complete(now, now + RAISE, 0);
                }
            }
            PmtuPhase::Complete { raise_at, .. } if now >= raise_at && self.used => {
                self.used = false;
                self.begin_round(now, 0);
            }
            PmtuPhase::Complete { confirm_at, raise_at, misses }
                if now >= confirm_at && (self.used || misses > 0) =>
            {
                self.used = false;
                let smallest = self.sizes.first().copied().unwrap_or(self.current);
                self.due = VecDeque::from([self.current, smallest.min(self.current - 1)]);
                let wait = self.rtt.map_or(FIRST_WAIT, |rtt| (rtt * 3).max(Span::from_millis(200)));
                self.phase = PmtuPhase::Confirm { until: now + wait, raise_at, misses, small: false };
            }
            PmtuPhase::Confirm { until, raise_at, misses, small } if now >= until => {
                // Without an answer to the small one nothing passes, whatever its size.
                match misses + u8::from(small) {
                    MAX_PROBES.. => self.restart(now),
                    misses if small => self.complete(now, raise_at, misses),
                    _ => self.complete(now, raise_at, 0),
                }
            }
            _ => {}
        }
    }

    /// When something is due next; at once, if a probe is to be sent.
    pub fn deadline(&self, now: Instant) -> Instant {
        if !self.due.is_empty() {
            return now;
        }
        match self.phase {
            PmtuPhase::Search { until, .. } | PmtuPhase::Confirm { until, .. } => until,
            // Nothing is found out about a path that nobody uses.
            PmtuPhase::Complete { confirm_at, raise_at, misses } if self.used || misses > 0 => {
                confirm_at.min(raise_at)
            }
            PmtuPhase::Complete { .. } => Instant::FAR_FUTURE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over IPv4: IP 20, UDP 8, WireGuard 32.
    const OVERHEAD: u16 = 60;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Plays a path that loses what is longer than `pass` outside, from `from` on for so many milliseconds.
    fn play(pmtu: &mut Pmtu, pass: u16, rtt: u64, from: u64, time: u64) {
        let mut replies: Vec<(u64, u16)> = Vec::new();
        for now in from..from + time {
            pmtu.on_data();
            pmtu.on_deadline(ms(now));
            while let Some((seq, size)) = pmtu.poll(ms(now)) {
                if size + OVERHEAD <= pass {
                    replies.push((now + rtt, seq));
                }
            }
            for (_, seq) in replies.extract_if(.., |(at, _)| *at <= now) {
                pmtu.on_reply(ms(now), seq);
            }
        }
    }

    /// Breaks: a path with a small MTU swallows all full packets, or one with a large MTU carries small ones.
    #[test]
    fn the_largest_size_that_passes_is_found() {
        for (pass, mtu) in
            [(1_500, 1_440), (1_492, 1_432), (1_499, 1_432), (1_400, 1_340), (1_280, 1_220), (1_200, 1_140)]
        {
            let mut pmtu = Pmtu::new(ms(0), OVERHEAD, 1_440);
            play(&mut pmtu, pass, 40, 0, 1_000);
            assert!(pmtu.is_settled() && pmtu.mtu() == mtu, "{pass}: {}", pmtu.mtu());
            assert_eq!(pmtu.rtt(), Some(Span::from_millis(40)));
        }
        let mut jumbo = Pmtu::new(ms(0), OVERHEAD, 8_940);
        play(&mut jumbo, 9_000, 1, 0, 10);
        assert_eq!((jumbo.mtu(), jumbo.is_settled()), (8_940, true), "one round trip is enough");
    }

    /// Breaks: a peer that answers no pings cannot be sent to, or is waited for without end.
    #[test]
    fn without_answers_the_minimum_of_ipv6_is_used() {
        let mut pmtu = Pmtu::new(ms(0), OVERHEAD, 1_440);
        play(&mut pmtu, 0, 40, 0, 3_100);
        assert!(pmtu.is_settled());
        assert_eq!(pmtu.mtu(), 1_280);
    }

    /// Breaks: a lost probe makes all packets small for ten minutes.
    #[test]
    fn a_lost_probe_is_repeated() {
        let mut pmtu = Pmtu::new(ms(0), OVERHEAD, 1_440);
        let first: Vec<_> = std::iter::from_fn(|| pmtu.poll(ms(0))).collect();
        let (smallest, _) = first[first.len() - 1];
        pmtu.on_reply(ms(20), smallest);
        play(&mut pmtu, 1_500, 20, 21, 300);
        assert_eq!((pmtu.mtu(), pmtu.is_settled()), (1_440, true));
    }

    /// Breaks: a route that changes to a smaller MTU stops the connection (a black hole), or a dead path is
    /// taken for one.
    #[test]
    fn a_smaller_mtu_is_noticed_and_silence_is_not_taken_for_one() {
        let mut pmtu = Pmtu::new(ms(0), OVERHEAD, 1_440);
        play(&mut pmtu, 1_500, 20, 0, 1_000);
        play(&mut pmtu, 0, 20, 1_000, 20_000);
        assert_eq!(pmtu.mtu(), 1_440, "nothing passed at all");
        play(&mut pmtu, 1_400, 20, 21_000, 5_000);
        assert_eq!(pmtu.mtu(), 1_340);
        // After the raise timer the larger size is tried again.
        play(&mut pmtu, 1_500, 20, 26_000, 602_000);
        assert_eq!(pmtu.mtu(), 1_440);
    }

    /// Breaks: an idle tunnel keeps a processor busy, or sends packets for nothing.
    #[test]
    fn an_idle_path_wants_nothing() {
        let mut pmtu = Pmtu::new(ms(0), OVERHEAD, 1_440);
        play(&mut pmtu, 1_500, 20, 0, 5_000);
        let mut probes = 0;
        for at in 5..700 {
            pmtu.on_deadline(ms(at * 1_000));
            while let Some((seq, _)) = pmtu.poll(ms(at * 1_000)) {
                probes += 1;
                pmtu.on_reply(ms(at * 1_000), seq);
            }
        }
        // The last data is followed by one check, of two sizes.
        assert!(probes <= 2, "{probes}");
        assert_eq!(pmtu.deadline(ms(700_000)), Instant::FAR_FUTURE);
    }

    /// Breaks: an interface with a small MTU refuses every packet.
    #[test]
    fn what_the_interface_refuses_is_not_tried_again() {
        let mut pmtu = Pmtu::new(ms(0), OVERHEAD, 1_440);
        while let Some((_, size)) = pmtu.poll(ms(0)) {
            if size + OVERHEAD > 1_400 {
                pmtu.on_too_long(ms(0), size);
            }
        }
        // What was sent above is lost; the next round is answered.
        play(&mut pmtu, 1_400, 5, 0, 1_500);
        assert_eq!((pmtu.mtu(), pmtu.is_settled()), (1_340, true));
    }
}
