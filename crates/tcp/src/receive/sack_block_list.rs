//! Which out-of-order blocks the receiver reports as SACK blocks (RFC 2018 §4), as Linux remembers them.

use farpace_units::Seq;
use farpace_wire::tcp::{SackBlock, SackBlocks};

/// Blocks that are remembered; older ones are forgotten even though their data stays queued.
const REMEMBERED: usize = 4;
/// Blocks that any ACK has room for.
const EXPECTED: usize = 2;

/// Up to four blocks, the most recently changed first, and a D-SACK (RFC 2883) waiting to be sent.
#[derive(Clone, Debug, Default)]
pub struct SackBlockList {
    /// Most recent first.
    blocks: SackBlocks,
    duplicate: Option<SackBlock>,
}

impl SackBlockList {
    /// Data arrived out of order. It extends an block, which moves to the front, or makes a new one, which
    /// pushes out the oldest.
    pub fn add(&mut self, start: Seq, end: Seq) {
        let touching = self.blocks.iter().position(|i| !start.after(i.end) && !i.start.after(end));
        let mut block = SackBlock { start, end };
        match touching {
            Some(at) => {
                let old = self.blocks.remove(at);
                block = SackBlock { start: old.start.earlier(start), end: old.end.later(end) };
            }
            None => self.blocks.truncate(REMEMBERED - 1),
        }
        // The grown block may have reached others: they are one now.
        self.blocks.retain(|i| {
            let apart = block.start.after(i.end) || i.start.after(block.end);
            if !apart {
                block = SackBlock { start: block.start.earlier(i.start), end: block.end.later(i.end) };
            }
            apart
        });
        self.blocks.insert(0, block);
    }

    /// Data from `start` to `end` changes another block than the two that were reported first, or makes a
    /// third or later one (`TCP_SACK_BLOCKS_EXPECTED`).
    pub fn is_crowded_by(&self, start: Seq, end: Seq) -> bool {
        let touching = self.blocks.iter().position(|i| !start.after(i.end) && !i.start.after(end));
        touching.unwrap_or(self.blocks.len()) >= EXPECTED
    }

    /// RCV.NXT moved: blocks that it has reached are gone.
    pub fn advance(&mut self, rcv_nxt: Seq) {
        if !self.blocks.is_empty() {
            self.blocks.retain(|i| rcv_nxt.before(i.start));
        }
    }

    /// What waits from `start` on was dropped: it is not reported any more (RFC 2018 §8 allows it).
    pub fn forget_from(&mut self, start: Seq) {
        self.blocks.retain(|i| i.start.before(start));
    }

    /// Data arrived that was there already: the next ACK says so, once.
    pub fn set_duplicate(&mut self, start: Seq, end: Seq) {
        self.duplicate = Some(SackBlock { start, end });
    }

    /// Data arrived out of order of which a part was there: the next ACK says so, once.
    pub fn set_overlap(&mut self, start: Seq, end: Seq) {
        let overlaps = self.blocks.iter().filter(|i| start.before(i.end) && i.start.before(end));
        let first = overlaps.min_by_key(|i| i.start.bytes_since(start) as i32);
        if let Some(i) = first {
            self.duplicate = Some(SackBlock { start: i.start.later(start), end: i.end.earlier(end) });
        }
    }

    /// Data in order reaches to `end`, into what had arrived before: the next ACK says so, once.
    pub fn set_filled(&mut self, end: Seq) {
        let first = self.blocks.iter().min_by(|a, b| a.start.distance(b.start).cmp(&0));
        if let Some(i) = first.filter(|i| i.start.before(end)) {
            self.duplicate = Some(SackBlock { start: i.start, end: i.end.earlier(end) });
        }
    }

    /// What was to be told of a duplicate is not told any more.
    pub fn forget_duplicate(&mut self) {
        self.duplicate = None;
    }

    /// The right end of them all.
    pub fn end(&self) -> Option<Seq> {
        self.blocks.iter().map(|i| i.end).reduce(Seq::later)
    }

    /// Blocks that the next segment would carry.
    pub fn count(&self) -> usize {
        (self.blocks.len() + usize::from(self.duplicate.is_some())).min(REMEMBERED)
    }

    /// The blocks of the next ACK, at most `room` of them: D-SACK first, then the blocks.
    pub fn take_blocks(&mut self, room: usize) -> SackBlocks {
        self.duplicate
            .take()
            .into_iter()
            .chain(self.blocks.iter().copied())
            .take(room.min(REMEMBERED))
            .collect()
    }

    /// True while something is to be told.
    pub fn any(&self) -> bool {
        !self.blocks.is_empty() || self.duplicate.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(blocks: &mut SackBlockList, room: usize) -> Vec<(u32, u32)> {
        blocks.take_blocks(room).iter().map(|b| (b.start.get(), b.end.get())).collect()
    }

    fn add(blocks: &mut SackBlockList, start: u32, end: u32) {
        blocks.add(Seq::new(start), Seq::new(end));
    }

    /// Breaks: the block order that the paper's defects depend on.
    #[test]
    fn recent_first_rotation_and_forgetting() {
        let mut i = SackBlockList::default();
        for start in [10, 20, 30, 40] {
            add(&mut i, start, start + 2);
        }
        assert_eq!(blocks(&mut i, 3), [(40, 42), (30, 32), (20, 22)], "three with timestamps");
        add(&mut i, 12, 14);
        assert_eq!(blocks(&mut i, 4), [(10, 14), (40, 42), (30, 32), (20, 22)], "extended: to the front");
        add(&mut i, 50, 52);
        assert_eq!(blocks(&mut i, 4), [(50, 52), (10, 14), (40, 42), (30, 32)], "the oldest is forgotten");
        add(&mut i, 32, 40);
        assert_eq!(blocks(&mut i, 4), [(30, 42), (50, 52), (10, 14)], "two islands grew together");
        i.advance(Seq::new(14));
        assert_eq!(blocks(&mut i, 4), [(30, 42), (50, 52)]);
    }

    /// Breaks: D-SACK comes first, once (RFC 2883 §4).
    #[test]
    fn duplicates_are_told_once() {
        let mut i = SackBlockList::default();
        add(&mut i, 10, 12);
        i.set_duplicate(Seq::new(1), Seq::new(3));
        assert_eq!(blocks(&mut i, 3), [(1, 3), (10, 12)]);
        assert_eq!(blocks(&mut i, 3), [(10, 12)]);
    }
}
