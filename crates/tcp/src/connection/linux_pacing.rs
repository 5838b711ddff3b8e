//! Pacing as Linux does it without a qdisc that paces (`tcp_pacing_check`, `tcp_update_skb_after_send`): what
//! leaves at one instant is what a device gets at once, the next may leave when that would have left at the
//! rate, and who is late may hurry.

use farpace_units::{ByteCount, Instant, Rate, Serialiser, Span};

/// A burst in which fewer segments of a connection have left is not paced.
const UNPACED_SEGMENTS: u8 = 10;
/// Below this rate a congestion control that paces sends single segments (`bbr_min_tso_rate`).
pub(super) const SINGLE_SEGMENT_RATE: Rate = Rate::from_bits_per_sec(1_200_000);

/// The burst under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinuxPacing {
    began: Instant,
    /// For how long it could have left already.
    late: Span,
    sent: ByteCount,
    /// Segments until bursts are paced.
    unpaced: u8,
}

impl LinuxPacing {
    /// Of a connection that has sent so many segments with data.
    pub fn after(segments: u64) -> Self {
        LinuxPacing {
            began: Instant::ZERO,
            late: Span::ZERO,
            sent: ByteCount::ZERO,
            unpaced: UNPACED_SEGMENTS.saturating_sub(u8::try_from(segments).unwrap_or(u8::MAX)),
        }
    }
    /// A burst may begin at `now`, which it does then.
    pub fn begins(&mut self, now: Instant, line: &Serialiser) -> bool {
        let free = line.busy_until() <= now;
        if free {
            (self.began, self.late, self.sent) = (now, now.since(line.busy_until()), ByteCount::ZERO);
        }
        free
    }
    /// `len` more bytes belong to a burst of at most `most` that began at `now`.
    pub fn continues(&self, now: Instant, len: ByteCount, most: ByteCount) -> bool {
        self.began == now && self.sent + len <= most
    }
    /// A segment has left. Of the time of its burst up to half is made up for, if the burst was late.
    pub fn on_sent(&mut self, len: ByteCount, line: &mut Serialiser) {
        self.sent += len;
        self.unpaced = self.unpaced.saturating_sub(1);
        let time = if self.unpaced == 0 { line.rate().time_for(self.sent) } else { Span::ZERO };
        line.stay_busy_until(self.began + (time - self.late.min(time / 2)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the rate of bursts, their size, what a late one may make up for, or the first window.
    #[test]
    fn bursts_follow_each_other_at_the_rate() {
        let (at, len) = (|us| Instant::ZERO + Span::from_micros(us), ByteCount::new(1_000));
        // A segment takes 1 ms.
        let mut line = Serialiser::new(Rate::from_mbit(8));
        let mut pacing = LinuxPacing::after(0);
        for _ in 0..2 {
            assert!(pacing.begins(at(5_000), &line), "the first window");
            (0..5).for_each(|_| pacing.on_sent(len, &mut line));
        }
        // As Linux 6.18 does: the burst with the tenth segment is paced as a whole.
        assert_eq!(line.busy_until(), at(10_000));
        assert!(!pacing.begins(at(9_999), &line) && pacing.begins(at(10_000), &line));
        pacing.on_sent(len, &mut line);
        assert!(pacing.continues(at(10_000), len, ByteCount::new(2_000)));
        assert!(!pacing.continues(at(10_000), len, ByteCount::new(1_999)));
        assert!(!pacing.continues(at(10_001), len, ByteCount::new(2_000)));
        pacing.on_sent(len, &mut line);
        assert_eq!(line.busy_until(), at(12_000), "two segments in time");
        assert!(pacing.begins(at(12_200), &line));
        pacing.on_sent(len, &mut line);
        assert_eq!(line.busy_until(), at(13_000), "200 us late");
        assert!(pacing.begins(at(20_000), &line));
        pacing.on_sent(len, &mut line);
        assert_eq!(line.busy_until(), at(20_500), "half is made up for at most");
    }
}
