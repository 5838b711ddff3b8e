//! HyStart++ (RFC 9406): slow start ends when the round trip grows, before the queue overflows.
//!
//! One thing is added. A queue of our own grows with the window. Where the round trip has grown once and then
//! stays while the window grows by half, there is no such queue: the path has become longer, or a second and
//! longer link carries a part. Then conservative slow start goes on until the round trip grows again. RFC
//! 9406 alone ends it far below what the path carries. The window does not double again: the next queue would
//! be seen a round trip late, after an overshoot of all links.

use super::AckSample;
use farpace_units::{Packets, Seq, Span};

/// Least growth of the round trip that counts (RFC 9406 §4.3).
const MIN_RTT_THRESH: Span = Span::from_millis(4);
/// Growth that always counts.
const MAX_RTT_THRESH: Span = Span::from_millis(16);
/// Between these two: this part of the round trip.
const MIN_RTT_DIVISOR: u64 = 8;
/// Samples that a round needs before its least one is believed.
const N_RTT_SAMPLE: u32 = 8;
/// In conservative slow start the window grows by this part.
const CSS_GROWTH_DIVISOR: u32 = 4;
/// Rounds of conservative slow start before slow start is over.
const CSS_ROUNDS: u32 = 5;
/// Rounds of conservative slow start in a row, with a window that grew by a quarter in each, ...
const FLAT_ROUNDS: u32 = 2;
/// ... whose least round trips differ by no more than this part.
const FLAT_DIVISOR: u64 = 64;
/// Rounds before the end where the round trip has grown a second time.
const LAST_ROUNDS: u32 = 2;
/// Growth per ACK where segments are not paced.
const UNPACED_LIMIT: Packets = Packets::new(8);

/// The doubtful part: the round trip has grown, and has to stay so.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// A round trip below this proves the doubt wrong.
    baseline: Span,
    rounds: u32,
    /// Of these, the last ones in which the round trip did not grow.
    flat: u32,
    /// The round trip of the longer path, once the window has grown without a queue. If it grows too, slow
    /// start ends soon.
    longer: Option<Span>,
    /// Segments acknowledged that no growth was given for yet.
    credit: u32,
    /// Segments acknowledged in this round, and those for which the window may have grown.
    acked: u32,
    used: u32,
}

impl Conservative {
    fn new(baseline: Span) -> Self {
        Conservative { baseline, rounds: 0, flat: 0, longer: None, credit: 0, acked: 0, used: 0 }
    }

    /// A round has ended. True: the round trip does not grow with the window.
    fn is_disproved(&mut self, before: Option<Span>, this: Option<Span>) -> bool {
        let limited = self.used > 0 && self.used >= self.acked / 2;
        let flat = match (before, this) {
            (Some(before), Some(this)) => limited && this <= before + before / FLAT_DIVISOR,
            _ => false,
        };
        self.flat = if flat { self.flat + 1 } else { 0 };
        (self.acked, self.used) = (0, 0);
        self.flat >= FLAT_ROUNDS
    }
}

/// State of HyStart++: rounds by sequence number, the least round trip of this one and the last.
#[derive(Clone, Debug)]
pub struct HyStart {
    limit: Packets,
    /// SND.NXT when the round began; none before the first ACK.
    window_end: Option<Seq>,
    last_round_min: Option<Span>,
    /// The least of all rounds.
    least: Option<Span>,
    this_round_min: Option<Span>,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HyStart {
    /// The begin of a connection, whose segments are `paced` or leave as the window allows (RFC 9406 §4.3:
    /// L).
    pub fn new(paced: bool) -> Self {
        HyStart {
            limit: if paced { Packets::MAX } else { UNPACED_LIMIT },
            window_end: None,
            last_round_min: None,
            least: None,
            this_round_min: None,
            samples: 0,
            conservative: None,
        }
    }

    /// Segments by which an ACK for `acked` segments raises the window.
    pub fn growth(&mut self, acked: Packets) -> Packets {
        let acked = acked.min(self.limit);
        let Some(css) = &mut self.conservative else { return acked };
        css.used = css.used.saturating_add(acked.get());
        let credit = css.credit.saturating_add(acked.get());
        css.credit = credit % CSS_GROWTH_DIVISOR;
        Packets::new(credit / CSS_GROWTH_DIVISOR)
    }

    /// The round trip has grown: the window grows slowly.
    pub fn doubts(&self) -> bool {
        self.conservative.is_some()
    }

    /// Takes an ACK's round trip. True: slow start is over.
    pub fn on_ack(&mut self, ack: &AckSample) -> bool {
        if self.window_end.is_none_or(|end| ack.snd_una.after_eq(end)) && self.next_round(ack.snd_nxt) {
            return true;
        }
        if let Some(css) = &mut self.conservative {
            css.acked = css.acked.saturating_add(ack.acked.get());
        }
        let Some(rtt) = ack.rtt else { return false };
        let this = self.this_round_min.map_or(rtt, |min| min.min(rtt));
        self.this_round_min = Some(this);
        self.samples = self.samples.saturating_add(1);
        if self.samples < N_RTT_SAMPLE {
            return false;
        }
        match (&mut self.conservative, self.least) {
            (Some(css), _) if this < css.baseline => self.conservative = None,
            (Some(css), _) if css.longer.is_some_and(|longer| has_grown(longer, this)) => {
                css.rounds = css.rounds.max(CSS_ROUNDS - LAST_ROUNDS);
            }
            (Some(_), _) => {}
            (None, Some(least)) if has_grown(least, this) => {
                self.conservative = Some(Conservative::new(this));
            }
            (None, _) => {}
        }
        false
    }

    /// What was sent when the round began is acknowledged. True: slow start is over.
    fn next_round(&mut self, snd_nxt: Seq) -> bool {
        let first = self.window_end.is_none();
        self.window_end = Some(snd_nxt);
        if first {
            return false;
        }
        let before = std::mem::replace(&mut self.last_round_min, self.this_round_min.take());
        let enough = std::mem::take(&mut self.samples) >= N_RTT_SAMPLE;
        self.least = self.least.into_iter().chain(self.last_round_min).min();
        let Some(css) = &mut self.conservative else { return false };
        // The round in which the doubt arose counts, though it was not a whole one.
        css.rounds += 1;
        if css.is_disproved(before, self.last_round_min.filter(|_| enough)) {
            (css.rounds, css.longer) = (0, self.last_round_min);
        }
        css.rounds >= CSS_ROUNDS
    }
}

/// The round trip is longer by more than noise (RFC 9406 §4.2).
fn has_grown(from: Span, to: Span) -> bool {
    to >= from + (from / MIN_RTT_DIVISOR).min(MAX_RTT_THRESH).max(MIN_RTT_THRESH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Instant;

    /// Feeds rounds of ten ACKs with these round trips (ms); returns the rounds it took to end slow start.
    fn rounds(hystart: &mut HyStart, rtts: &[u64]) -> Option<usize> {
        for (round, rtt) in rtts.iter().enumerate() {
            for i in 0..10 {
                let mut ack = AckSample::of(Instant::ZERO, Packets::new(1));
                ack.snd_una = Seq::new(round as u32 * 10 + i + 1);
                ack.snd_nxt = ack.snd_una + 10;
                ack.rtt = Some(Span::from_millis(*rtt));
                if hystart.on_ack(&ack) {
                    return Some(round);
                }
            }
        }
        None
    }

    /// Breaks: the end of slow start before the queue overflows, and its patience with a single slow round.
    #[test]
    fn ends_when_the_round_trip_stays_long() {
        // Rises in round 2; the rest of that round and four more are conservative.
        assert_eq!(rounds(&mut HyStart::new(true), &[100, 100, 115, 115, 115, 115, 115, 115, 115]), Some(7));
        // Falls below the baseline again: slow start goes on.
        assert_eq!(rounds(&mut HyStart::new(true), &[100, 115, 115, 100, 100, 100, 100, 100, 100]), None);
        // Less than an eighth, and less than 4 ms: not believed.
        assert_eq!(rounds(&mut HyStart::new(true), &[100, 112, 112, 112, 112, 112, 112, 112]), None);
        assert_eq!(rounds(&mut HyStart::new(true), &[8, 11, 11, 11, 11, 11, 11, 11]), None);
        // 16 ms count on any path.
        assert_eq!(rounds(&mut HyStart::new(true), &[600, 617, 617, 617, 617, 617, 617]), Some(6));
    }

    /// Breaks: the bound on bursts of an unpaced sender, and the slow growth while in doubt.
    #[test]
    fn growth_per_ack() {
        let mut hystart = HyStart::new(false);
        assert_eq!(hystart.growth(Packets::new(20)).get(), 8);
        assert_eq!(HyStart::new(true).growth(Packets::new(20)).get(), 20);
        rounds(&mut hystart, &[100, 100, 120]);
        let given: u32 = (0..8).map(|_| hystart.growth(Packets::new(1)).get()).sum();
        assert_eq!(given, 2);
    }

    /// Rounds of ten ACKs, each of which lets the window grow; true: slow start is over.
    fn growing(hystart: &mut HyStart, rtts: &[u64]) -> bool {
        rtts.iter().enumerate().any(|(round, rtt)| {
            (0..10).any(|i| {
                let mut ack = AckSample::of(Instant::ZERO, Packets::new(1));
                ack.snd_una = Seq::new(round as u32 * 10 + i + 1);
                ack.snd_nxt = ack.snd_una + 10;
                ack.rtt = Some(Span::from_millis(*rtt));
                hystart.growth(ack.acked);
                hystart.on_ack(&ack)
            })
        })
    }

    /// Breaks: the start over several NICs, and over a path that has become longer: a window that grows there
    /// while the round trip does not has no queue, and slow start would end far too soon.
    #[test]
    fn a_round_trip_that_does_not_grow_with_the_window_is_no_queue() {
        let mut longer = HyStart::new(true);
        let flat = [22, 22, 70, 70, 70, 70, 71, 70, 70, 71];
        assert!(!growing(&mut longer, &flat), "it goes on");
        assert!(longer.doubts(), "slowly");
        let full = [flat.as_slice(), &[80, 80, 80]].concat();
        assert!(growing(&mut HyStart::new(true), &full), "a queue on the longer path ends it soon");
        let mut queue = HyStart::new(true);
        assert!(growing(&mut queue, &[22, 22, 30, 37, 46, 57, 71, 88]), "a queue grows with the window");
        // A window that is not used says nothing.
        let mut idle = HyStart::new(true);
        assert!(rounds(&mut idle, &[22, 22, 70, 70, 70, 70, 70, 70]).is_some());
    }

    /// Breaks: rounds with too few samples must not end slow start.
    #[test]
    fn needs_eight_samples() {
        let mut hystart = HyStart::new(true);
        for round in 0..20u32 {
            for i in 0..7 {
                let mut ack = AckSample::of(Instant::ZERO, Packets::new(1));
                ack.snd_una = Seq::new(round * 7 + i + 1);
                ack.snd_nxt = ack.snd_una + 7;
                ack.rtt = Some(Span::from_millis(100 + 30 * u64::from(round)));
                assert!(!hystart.on_ack(&ack));
            }
        }
    }
}
