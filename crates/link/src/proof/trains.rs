//! Back-to-back frames of a flow.

use crate::pacing::PREAMBLE_AND_GAP;
use farpace_units::{ByteCount, Instant, Rate, Span};

/// Frames that follow each other as closely as the link allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureTrain {
    /// Number of frames; a single frame is a train of one.
    pub packets: u64,
    /// Bytes of layer 2.
    pub bytes: ByteCount,
    /// Number of the first frame in the capture.
    pub number: u64,
    /// When it began.
    pub time: Instant,
}

/// Finds the longest train.
#[derive(Clone, Debug, Default)]
pub(super) struct Trains {
    /// None: the rate of the link is unknown, and only frames with the same time are back to back.
    link_rate: Option<Rate>,
    tick: Span,
    now: CaptureTrain,
    longest: CaptureTrain,
    last: (Instant, ByteCount),
}

impl Trains {
    pub fn new(link_rate: Option<Rate>, tick: Span) -> Self {
        Trains { link_rate, tick, ..Trains::default() }
    }
    /// A frame of `bytes` of layer 2, not earlier than the previous one.
    pub fn packet(&mut self, number: u64, time: Instant, bytes: ByteCount) {
        let (before, len) = self.last;
        let transmission = self.link_rate.map_or(Span::ZERO, |rate| rate.time_for(len + PREAMBLE_AND_GAP));
        self.last = (time, bytes);
        if self.now.packets > 0 && time.since(before) <= transmission + self.tick {
            self.now.packets += 1;
            self.now.bytes += bytes;
        } else {
            self.now = CaptureTrain { packets: 1, bytes, number, time };
        }
        if self.now.packets > self.longest.packets {
            self.longest = self.now;
        }
    }
    pub fn longest(&self) -> CaptureTrain {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the resolution of the clock does not split a train, and frames with room for another in
    /// between are not one train.
    #[test]
    fn the_longest_is_found() {
        // A full frame of 1,538 B takes 12,304 ns at 1 Gbit/s.
        let find = |rate, tick, gaps: &[u64]| {
            let mut trains = Trains::new(rate, Span::from_nanos(tick));
            let mut now = 1_000;
            for (gap, number) in gaps.iter().zip(1..) {
                now += gap;
                trains.packet(number, Instant::from_nanos(now), ByteCount::new(1_518));
            }
            let train = trains.longest();
            (train.packets, train.number, train.bytes.get())
        };
        let gigabit = Some(Rate::from_mbit(1_000));
        let gaps = [0, 12_304, 30_000, 12_304, 12_304, 12_305, 50_000, 12_304];
        assert_eq!(find(gigabit, 0, &gaps), (3, 3, 3 * 1_518));
        assert_eq!(find(gigabit, 60, &gaps), (4, 3, 4 * 1_518));
        assert_eq!(find(None, 0, &gaps), (1, 1, 1_518));
        assert_eq!(find(None, 0, &[0, 9, 0, 0, 5]), (3, 2, 3 * 1_518));
        assert_eq!(find(gigabit, 0, &[]), (0, 0, 0));
    }
}
