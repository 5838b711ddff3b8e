//! The receiver's half: which requests are answered at once.
//!
//! Whoever asks makes us send. A sender that keeps to its window has at most one window of segments in a
//! round trip; twice as many answers are there for it, spread over the round trip. What goes beyond is
//! acknowledged as if nobody had asked.

use farpace_units::{Instant, Span};

/// Answers in a round trip for each segment of the window.
const PER_SEGMENT: u64 = 2;
/// A round trip that is not known.
const UNKNOWN_RTT: Span = Span::from_millis(100);
/// The shortest that counts.
const MIN_RTT: Span = Span::from_micros(10);

/// Answers owed and answers left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// The segment at hand asks.
    pub asked: bool,
    /// It asks by the bit, and so does the answer: what is between may let only one of bit and option
    /// through.
    pub by_flag: bool,
    /// A request that arrived then is answered with the next ACK.
    pub owed: Option<Instant>,
    /// When the answers so far are paid for.
    paid_at: Instant,
    /// The round trip of the handshake: the only one that an end which sends nothing measures, and exact
    /// whatever its clock. The shorter it is taken, the more answers there are.
    rtt: Option<Span>,
}

impl Answers {
    /// The handshake took this long.
    pub fn on_handshake(&mut self, rtt: Span) {
        self.rtt = Some(rtt);
    }

    /// A request may be answered at once: then the answer is owed. `window`: segments that we offer to
    /// receive.
    pub fn take(&mut self, now: Instant, window: u32) -> bool {
        let rtt = self.rtt.map_or(UNKNOWN_RTT, |rtt| rtt.max(MIN_RTT));
        let price = rtt / (PER_SEGMENT * u64::from(window.max(1)));
        let paid_at = self.paid_at.max(now) + price;
        let may = paid_at <= now + rtt;
        if may {
            self.paid_at = paid_at;
            self.owed = Some(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the bound on ACKs that a peer can make us send: twice the window in a round trip, also for a
    /// flood.
    #[test]
    fn two_for_each_segment_of_the_window() {
        let mut answers = Answers::default();
        answers.on_handshake(Span::from_millis(100));
        let mut flood = |from: u64, n: u64| {
            // A request every 10 us.
            let at = |i| Instant::ZERO + Span::from_micros(from * 1000 + 10 * i);
            (0..n).filter(|i| answers.take(at(*i), 10)).count()
        };
        assert_eq!(flood(1000, 15), 15, "a sender within its window");
        assert_eq!(flood(1001, 9900), 24, "5 are left of 20, and 19 come in");
        assert_eq!(flood(2000, 100), 20, "after a rest");
    }

    /// Breaks: a connection whose round trip is unknown or nothing still answers, and still within bounds.
    #[test]
    fn odd_round_trips() {
        for rtt in [None, Some(Span::ZERO)] {
            let mut answers = Answers::default();
            if let Some(rtt) = rtt {
                answers.on_handshake(rtt);
            }
            let now = Instant::ZERO + Span::from_secs(1);
            assert_eq!((0..100).filter(|_| answers.take(now, 0)).count(), 2, "{rtt:?}");
        }
    }
}
