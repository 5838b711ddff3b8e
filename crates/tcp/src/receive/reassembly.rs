//! Puts segments in order: what is in order can be read, what is not waits in ranges beyond holes.

use crate::trim::trim;
use bytes::{Bytes, BytesMut};
use farpace_units::ByteCount;
use std::collections::{BTreeMap, VecDeque};

/// Chunks may wait out of order until they are shorter than this on average. A peer that sends tiny segments
/// with holes reaches this limit before it reaches the window; what comes then is not kept, and the peer has
/// to send it again.
pub const SMALLEST_MEAN_CHUNK: u64 = 256;
/// So many chunks may wait however small the window is.
const ALWAYS_WAITING: usize = 1024;

/// Contiguous data beyond a hole.
#[derive(Debug, Default)]
struct QueuedRange {
    end: u64,
    chunks: VecDeque<Bytes>,
}

/// What became of a segment's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivedData {
    /// It moved the front of the stream.
    InOrder,
    /// It waits beyond a hole.
    OutOfOrder,
    /// Every byte was there already.
    Duplicate,
    /// Too many small pieces wait already: see [`SMALLEST_MEAN_CHUNK`].
    Refused,
}

/// The receive stream. Offsets count payload bytes from the first one of the connection.
#[derive(Debug, Default)]
pub struct StreamReassembly {
    /// In order, not read yet.
    ready: VecDeque<Bytes>,
    ready_bytes: u64,
    /// First byte that has not arrived: RCV.NXT as an offset.
    next: u64,
    ranges: BTreeMap<u64, QueuedRange>,
    waiting_chunks: usize,
    waiting_bytes: u64,
    /// Bytes of the receive window.
    buffer: u64,
}

impl StreamReassembly {
    /// An empty stream with a window of `buffer` bytes.
    pub fn new(buffer: ByteCount) -> Self {
        StreamReassembly { buffer: buffer.get(), ..StreamReassembly::default() }
    }
    /// The window has `buffer` bytes now. What waits already stays.
    pub fn set_buffer(&mut self, buffer: ByteCount) {
        self.buffer = buffer.get();
    }
    /// Too many small pieces wait for another one.
    fn is_full_of_pieces(&self) -> bool {
        let allowed = ByteCount::new(self.buffer / SMALLEST_MEAN_CHUNK).as_len();
        self.waiting_chunks >= ALWAYS_WAITING && self.waiting_chunks >= ALWAYS_WAITING + allowed
    }
    /// First byte that has not arrived.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Bytes in order and not read.
    pub fn readable(&self) -> ByteCount {
        ByteCount::new(self.ready_bytes)
    }
    /// Bytes that wait beyond a hole.
    pub fn waiting(&self) -> ByteCount {
        ByteCount::new(self.waiting_bytes)
    }
    /// Pieces that wait beyond a hole.
    pub fn waiting_chunks(&self) -> usize {
        self.waiting_chunks
    }
    /// Stretches that wait beyond holes.
    pub fn out_of_order_ranges(&self) -> usize {
        self.ranges.len()
    }
    /// True while there is a hole.
    pub fn has_hole(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Takes the payload that begins at offset `start`. The caller has cut it to the window.
    pub fn insert(&mut self, start: u64, data: Bytes) -> ArrivedData {
        let end = start + data.len() as u64;
        if end <= self.next {
            return ArrivedData::Duplicate;
        }
        let fresh = start.max(self.next);
        if fresh == self.next && self.ranges.is_empty() {
            self.deliver(data.slice((fresh - start) as usize..));
            return ArrivedData::InOrder;
        }
        if fresh != self.next && self.is_full_of_pieces() {
            return ArrivedData::Refused;
        }
        if !self.fill(start, fresh, end, &data) {
            return ArrivedData::Duplicate;
        }
        if fresh > self.next {
            return ArrivedData::OutOfOrder;
        }
        self.join();
        ArrivedData::InOrder
    }

    fn deliver(&mut self, data: Bytes) {
        self.next += data.len() as u64;
        self.ready_bytes += data.len() as u64;
        self.ready.push_back(data);
        if self.ready.len() >= ALWAYS_WAITING
            && self.ready_bytes / (self.ready.len() as u64) < SMALLEST_MEAN_CHUNK
        {
            self.put_together();
        }
    }

    /// Many small pieces that nobody reads become one: each of them may keep a whole packet in memory.
    #[cold]
    fn put_together(&mut self) {
        let mut all = BytesMut::with_capacity(ByteCount::new(self.ready_bytes).as_len());
        self.ready.drain(..).for_each(|chunk| all.extend_from_slice(&chunk));
        self.ready.push_back(all.freeze());
    }

    /// Drops what waits beyond holes, the last of it first, until at most `allowed` bytes wait. The offset
    /// from which on nothing waits any more; none: nothing was dropped.
    pub fn prune(&mut self, allowed: ByteCount) -> Option<u64> {
        let mut from = None;
        while self.waiting_bytes > allowed.get()
            && let Some((start, range)) = self.ranges.pop_last()
        {
            self.waiting_chunks -= range.chunks.len();
            self.waiting_bytes -= range.end - start;
            from = Some(start);
        }
        from
    }

    /// Chunks in order and not read.
    pub fn readable_chunks(&self) -> usize {
        self.ready.len()
    }

    /// Adds what is new in `from..end` to the ranges; `data` begins at `origin`. False if nothing is new.
    fn fill(&mut self, origin: u64, from: u64, end: u64, data: &Bytes) -> bool {
        let mut at = from;
        let mut new = false;
        while at < end {
            // Skip what an range at or before `at` covers already.
            if let Some((_, range)) = self.ranges.range(..=at).next_back()
                && range.end > at
            {
                at = range.end;
                continue;
            }
            let gap_end = self.ranges.range(at..).next().map_or(end, |(s, _)| end.min(*s));
            self.add_piece(at, data.slice((at - origin) as usize..(gap_end - origin) as usize));
            new = true;
            at = gap_end;
        }
        new
    }

    /// Adds a piece that overlaps nothing, growing the neighbours it touches.
    fn add_piece(&mut self, start: u64, piece: Bytes) {
        let end = start + piece.len() as u64;
        self.waiting_chunks += 1;
        self.waiting_bytes += piece.len() as u64;
        let after = self.ranges.remove(&end);
        let before = self.ranges.range_mut(..start).next_back().map(|(_, i)| i).filter(|i| i.end == start);
        match (before, after) {
            (Some(b), None) => {
                b.end = end;
                b.chunks.push_back(piece);
            }
            (None, Some(mut a)) => {
                a.chunks.push_front(piece);
                self.ranges.insert(start, a);
            }
            (Some(b), Some(mut a)) => {
                b.end = a.end;
                b.chunks.push_back(piece);
                // The smaller side moves, so that filling many holes stays cheap.
                if b.chunks.len() < a.chunks.len() {
                    for chunk in b.chunks.drain(..).rev() {
                        a.chunks.push_front(chunk);
                    }
                    b.chunks = a.chunks;
                } else {
                    b.chunks.append(&mut a.chunks);
                }
            }
            (None, None) => {
                self.ranges.insert(start, QueuedRange { end, chunks: VecDeque::from([piece]) });
            }
        }
    }

    /// Delivers the range that the front has reached.
    fn join(&mut self) {
        while let Some(entry) = self.ranges.first_entry() {
            if *entry.key() > self.next {
                return;
            }
            let range = entry.remove();
            self.waiting_chunks -= range.chunks.len();
            for chunk in range.chunks {
                self.waiting_bytes -= chunk.len() as u64;
                self.deliver(chunk);
            }
        }
        self.ranges = BTreeMap::new(); // an empty map keeps its last node
    }

    /// Hands everything readable to `take`, in order; returns how much it was.
    pub fn read(&mut self, take: impl FnMut(Bytes)) -> ByteCount {
        self.read_up_to(ByteCount::MAX, take)
    }

    /// The same, but at most `limit` bytes.
    pub fn read_up_to(&mut self, limit: ByteCount, mut take: impl FnMut(Bytes)) -> ByteCount {
        let mut left = limit.as_len();
        while left > 0
            && let Some(chunk) = self.ready.front_mut()
        {
            let part = chunk.split_to(chunk.len().min(left));
            if chunk.is_empty() {
                self.ready.pop_front();
            }
            left -= part.len();
            self.ready_bytes -= part.len() as u64;
            take(part);
        }
        trim(&mut self.ready);
        ByteCount::of_len(limit.as_len() - left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: the stream itself: every byte once and in order, whatever arrives in whatever order.
        #[test]
        fn any_arrival_order_gives_the_stream(
            mut pieces in prop::collection::vec((0u64..300, 1usize..50), 1..60),
            seed in any::<u64>(),
        ) {
            let stream: Vec<u8> = (0..400u32).map(|i| (i * 7 + seed as u32) as u8).collect();
            // Everything arrives in the end.
            pieces.extend((0..400).step_by(40).map(|s| (s, 40)));
            let mut r = StreamReassembly::new(ByteCount::new(4_000));
            let mut got = Vec::new();
            for (start, len) in pieces {
                let end = (start as usize + len).min(stream.len());
                let before = r.next();
                let arrival = r.insert(start, Bytes::copy_from_slice(&stream[start as usize..end]));
                prop_assert_eq!(arrival == ArrivedData::InOrder, r.next() > before);
                if seed % 2 == 0 {
                    r.read(|b| got.extend_from_slice(&b));
                }
            }
            prop_assert!(!r.has_hole());
            prop_assert_eq!((r.waiting_chunks, r.waiting_bytes), (0, 0));
            r.read(|b| got.extend_from_slice(&b));
            prop_assert_eq!(got, stream);
        }
    }

    /// Breaks: D-SACK depends on knowing a complete duplicate.
    #[test]
    fn duplicates_are_told_apart() {
        let mut r = StreamReassembly::new(ByteCount::new(4_000));
        let data = |n| Bytes::from(vec![1u8; n]);
        assert_eq!(r.insert(10, data(10)), ArrivedData::OutOfOrder);
        assert_eq!(r.insert(12, data(4)), ArrivedData::Duplicate);
        assert_eq!(r.insert(15, data(10)), ArrivedData::OutOfOrder, "part of it is new");
        assert_eq!(r.insert(0, data(10)), ArrivedData::InOrder);
        assert_eq!(r.next(), 25);
        assert_eq!(r.insert(0, data(25)), ArrivedData::Duplicate);
    }

    /// Breaks: a program that reads slowly: what it did not ask for is lost, or read twice.
    #[test]
    fn what_is_not_read_stays() {
        let mut r = StreamReassembly::new(ByteCount::new(4_000));
        r.insert(0, Bytes::from_static(b"abc"));
        r.insert(3, Bytes::from_static(b"defgh"));
        let mut got = Vec::new();
        for (limit, whole) in [(0, ""), (2, "ab"), (4, "abcdef"), (99, "abcdefgh"), (1, "abcdefgh")] {
            r.read_up_to(ByteCount::new(limit), |b| got.extend_from_slice(&b));
            assert_eq!(got, whole.as_bytes());
            assert_eq!(r.readable().as_len(), 8 - whole.len());
        }
    }

    /// Breaks: a peer could make us hold any number of tiny chunks.
    #[test]
    fn tiny_segments_are_bounded() {
        let mut r = StreamReassembly::new(ByteCount::new(4_000));
        let most = ALWAYS_WAITING as u64 + 4_000 / SMALLEST_MEAN_CHUNK;
        for i in 0..most {
            assert_eq!(r.insert(10 + 2 * i, Bytes::from_static(b"x")), ArrivedData::OutOfOrder);
        }
        assert_eq!(r.insert(9, Bytes::from_static(b"x")), ArrivedData::Refused);
        assert_eq!(
            r.insert(0, Bytes::from_static(b"0123456789")),
            ArrivedData::InOrder,
            "the front always moves"
        );
    }
}
