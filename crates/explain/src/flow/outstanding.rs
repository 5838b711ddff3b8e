//! The ranges of a stream that are sent and not acknowledged, in the order of their numbers.

use farpace_units::{Instant, Span};
use std::collections::VecDeque;

/// Ranges that are kept for one direction of a connection. What exceeds them is counted, and not followed.
pub const MAX_OUTSTANDING: usize = 65_536;
/// Ranges that each segment of a direction, or ACK for it, allows to be looked at or moved. SACK blocks and
/// retransmissions that cover more, again and again, are not followed: no real sender makes them.
pub const WORK_PER_SEGMENT: usize = 1_024;
/// Work that is saved up for the segments that need much.
pub const MAX_WORK: usize = 1 << 20;
/// Memory of an empty list that is kept for the next flight, in ranges.
const KEPT_CAPACITY: usize = 1_024;

/// A range that was sent, or one that is missing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub start: u64,
    pub end: u64,
    /// First sent; of a hole: when it was seen.
    pub first: Instant,
    /// Last sent.
    pub last: Instant,
    pub frame: u64,
    pub last_frame: u64,
    /// Transmissions seen; a hole that was filled counts the one that was not seen.
    pub sent: u32,
    /// Its number was passed over when later data came: lost or late before the capture point.
    pub hole: bool,
    pub sacked: bool,
    /// TSval of the last transmission; of a hole, that of the segment that showed it.
    pub tsval: Option<u32>,
    /// TSval of the first transmission.
    pub first_tsval: Option<u32>,
    pub ip_id: u16,
    /// Packets sent back to back before this one.
    pub burst: u8,
    /// SND.NXT when it was last sent.
    pub nxt: u64,
    /// Bytes of data that had passed the capture point before it was first sent.
    pub passed: u64,
    /// Number of its loss; 0 if it has none.
    pub loss: u64,
    /// Bytes in flight when it was first sent.
    pub flight: u32,
    /// Delay in queues between the sender and the capture point when it passed, or was found missing.
    pub queued: Span,
    /// Of a hole: how long nothing had come before it was seen.
    pub silence: Span,
    /// Of a hole: when the segment before it passed.
    pub before: Instant,
}

impl Range {
    pub fn len(&self) -> u64 {
        self.end - self.start
    }
}

/// All ranges from SND.UNA to SND.NXT.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    ranges: VecDeque<Range>,
    /// Work that is left, in ranges.
    credit: usize,
    /// Ranges that were not kept, or not looked at.
    pub overflow: u64,
}

impl Outstanding {
    /// Memory on the heap, in bytes.
    pub fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
    }

    /// Gives the memory back.
    pub fn forget(&mut self) {
        self.ranges = VecDeque::new();
    }

    /// A segment passed, which allows some work.
    pub fn earn(&mut self) {
        self.credit = (self.credit + WORK_PER_SEGMENT).min(MAX_WORK);
    }

    fn pay(&mut self, work: usize) -> bool {
        let enough = self.credit >= work;
        if enough {
            self.credit -= work;
        } else {
            self.overflow += 1;
        }
        enough
    }

    pub fn push(&mut self, range: Range) {
        if self.ranges.len() >= MAX_OUTSTANDING {
            self.overflow += 1;
            self.ranges.pop_front();
        }
        self.ranges.push_back(range);
    }

    pub fn front(&self) -> Option<&Range> {
        self.ranges.front()
    }

    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Takes what lies below `una`, giving each whole or partial range to `each`.
    pub fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&Range)) {
        while let Some(front) = self.ranges.front_mut() {
            if front.end <= una {
                each(front);
                self.ranges.pop_front();
            } else {
                if front.start < una {
                    let part = Range { end: una, ..*front };
                    each(&part);
                    front.start = una;
                }
                return;
            }
        }
        if self.ranges.capacity() > KEPT_CAPACITY {
            self.ranges = VecDeque::new();
        }
    }

    /// Changes each range within `start..end`, which is so much work for each; ranges are cut at its edges,
    /// so that none is changed beyond them.
    pub fn each_within(&mut self, start: u64, end: u64, work: usize, mut change: impl FnMut(&mut Range)) {
        let mut at = self.ranges.partition_point(|r| r.end <= start);
        while let Some(range) = self.ranges.get(at).copied() {
            if range.start >= end || !self.pay(work) {
                return;
            }
            if range.start < start {
                at += self.cut(at, start);
                if self.ranges.get(at).is_none_or(|r| r.start < start) {
                    // No room to cut: what is only partly inside is left alone.
                    at += 1;
                    continue;
                }
                continue;
            }
            if range.end > end && self.cut(at, end) == 0 {
                return;
            }
            if let Some(range) = self.ranges.get_mut(at) {
                change(range);
            }
            at += 1;
        }
    }

    /// Cuts the range at `at` in two at number `to`; 1 if there was room.
    fn cut(&mut self, at: usize, to: u64) -> usize {
        if self.ranges.len() >= MAX_OUTSTANDING {
            self.overflow += 1;
            return 0;
        }
        // Inserting moves what lies behind, or before.
        if !self.pay(at.min(self.ranges.len() - at)) {
            return 0;
        }
        let Some(range) = self.ranges.get_mut(at) else { return 0 };
        let second = Range { start: to, ..*range };
        range.end = to;
        self.ranges.insert(at + 1, second);
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range {
            start,
            end,
            first: Instant::ZERO,
            last: Instant::ZERO,
            frame: 1,
            last_frame: 1,
            sent: 1,
            hole: false,
            sacked: false,
            tsval: None,
            first_tsval: None,
            ip_id: 0,
            burst: 0,
            nxt: end,
            passed: 0,
            loss: 0,
            flight: 0,
            queued: Span::ZERO,
            silence: Span::ZERO,
            before: Instant::ZERO,
        }
    }

    // Breaks: memory for data that is never acknowledged.
    #[test]
    fn no_more_ranges_are_kept_than_the_limit() {
        let mut out = Outstanding::default();
        let all = MAX_OUTSTANDING as u64 + 10;
        (0..all).for_each(|n| out.push(range(n * 10, n * 10 + 10)));
        assert_eq!((out.len(), out.overflow), (MAX_OUTSTANDING, 10));
        out.acknowledge(all * 10, |_| {});
        assert_eq!((out.len(), out.memory()), (0, 0));
    }

    // Breaks: time in proportion to the segments. ACKs that cover everything, again and again, cost no more
    // each.
    #[test]
    fn the_work_for_a_segment_has_a_limit() {
        let mut out = Outstanding::default();
        (0..50_000).for_each(|n| out.push(range(n * 10, n * 10 + 10)));
        (0..10_000).for_each(|_| out.earn());
        let mut looked_at = 0;
        for _ in 0..1_000 {
            out.earn();
            out.each_within(0, 500_000, 1, |_| looked_at += 1);
        }
        assert!(looked_at >= 50_000, "{looked_at}");
        assert!(looked_at <= MAX_WORK + 1_001 * WORK_PER_SEGMENT, "{looked_at}");
        assert!(out.overflow > 0);
        // Cutting in the middle moves 25,000 ranges.
        let before = out.len();
        (0..1_000).for_each(|n| out.each_within(250_005 + n * 10, 250_006 + n * 10, 1, |_| ()));
        assert_eq!(out.len(), before);
    }
}
