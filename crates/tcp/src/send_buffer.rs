//! Bytes the application has written and the peer has not acknowledged yet, by reference.

use crate::trim::trim;
use bytes::{Bytes, BytesMut};
use farpace_units::ByteCount;
use std::collections::VecDeque;

/// A chunk with so many segments left is long: a super-segment ends with it rather than to be copied
/// together.
const FEW_SEGMENTS: u64 = 4;

/// A rope of the application's own chunks: nothing is copied, unless a segment spans two chunks.
#[derive(Debug, Default)]
pub struct SendBuffer {
    /// Chunks with the stream offset of their first byte, ascending and without gaps.
    chunks: VecDeque<(u64, Bytes)>,
    /// Stream offset of the first byte that is kept.
    start: u64,
    /// Stream offset after the last byte written.
    end: u64,
    limit: u64,
    /// Chunks released so far: the number of the first one that is kept.
    first: u64,
    /// Number of the chunk that was read last: new data is read in order.
    cursor: u64,
}

impl SendBuffer {
    /// A buffer that accepts at most `limit` unacknowledged bytes.
    pub fn new(limit: ByteCount) -> Self {
        SendBuffer { limit: limit.get(), ..SendBuffer::default() }
    }
    /// Most bytes that are kept.
    pub fn limit(&self) -> ByteCount {
        ByteCount::new(self.limit)
    }
    /// At most `limit` bytes are kept from now on; what is kept already stays.
    pub fn set_limit(&mut self, limit: ByteCount) {
        self.limit = limit.get();
    }
    /// Bytes that would be accepted now.
    pub fn room(&self) -> ByteCount {
        ByteCount::new(self.limit.saturating_sub(self.end - self.start))
    }
    /// Stream offset after the last byte written.
    pub fn end(&self) -> u64 {
        self.end
    }
    /// Bytes kept.
    pub fn len(&self) -> ByteCount {
        ByteCount::new(self.end - self.start)
    }
    /// Chunks they are in.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }
    /// Takes as much of the front of `data` as there is room for; `data` keeps the rest.
    pub fn write(&mut self, data: &mut Bytes) -> ByteCount {
        let take = data.len().min(self.room().as_len());
        if take > 0 {
            self.chunks.push_back((self.end, data.split_to(take)));
            self.end += take as u64;
        }
        ByteCount::of_len(take)
    }
    /// Takes all of `data`, beyond the limit if need be.
    pub fn write_last(&mut self, data: Bytes) {
        if !data.is_empty() {
            let at = self.end;
            self.end += data.len() as u64;
            self.chunks.push_back((at, data));
        }
    }
    /// The bytes from stream offset `at`, at most `len` of them.
    pub fn slice(&mut self, at: u64, len: usize) -> Bytes {
        let len = len.min(self.end.saturating_sub(at) as usize);
        if len == 0 || at < self.start {
            return Bytes::new();
        }
        let index = self.chunk_at(at);
        let Some((start, chunk)) = self.chunks.get(index) else { return Bytes::new() };
        let from = (at - start) as usize;
        if from + len <= chunk.len() {
            return chunk.slice(from..from + len);
        }
        let mut joined = BytesMut::with_capacity(len);
        let mut skip = from;
        for (_, chunk) in self.chunks.range(index..) {
            let part = &chunk[skip..];
            joined.extend_from_slice(&part[..part.len().min(len - joined.len())]);
            skip = 0;
            if joined.len() == len {
                break;
            }
        }
        joined.freeze()
    }
    /// How much of the bytes from stream offset `at` on, `most` or less, should leave together in segments of
    /// `size` bytes: so much that none of it has to be copied, in whole segments. Where chunks are short,
    /// they are copied together up to the next long one.
    pub fn run(&mut self, at: u64, size: u32, most: u32) -> u32 {
        let few = u64::from(size) * FEW_SEGMENTS;
        let first = self.chunk_at(at).min(self.chunks.len());
        let mut len = 0;
        for (start, chunk) in self.chunks.range(first..) {
            let here = (start + chunk.len() as u64).saturating_sub(at + len);
            let long = here >= few;
            if long && len > 0 {
                break;
            }
            len += here;
            if len >= u64::from(most) || start + chunk.len() as u64 == self.end {
                return most;
            }
            if long {
                return (len / u64::from(size)) as u32 * size;
            }
        }
        len.next_multiple_of(u64::from(size)).min(u64::from(most)) as u32
    }

    /// Number, among those kept, of the chunk that holds stream offset `at`, which is looked up where the
    /// last one was.
    fn chunk_at(&mut self, at: u64) -> usize {
        let holds = |(start, chunk): &(u64, Bytes)| *start <= at && at - *start < chunk.len() as u64;
        let index = self.cursor.saturating_sub(self.first) as usize;
        if self.chunks.get(index).is_some_and(holds) {
            return index;
        }
        let index = self.chunks.partition_point(|(start, _)| *start <= at).saturating_sub(1);
        self.cursor = self.first + index as u64;
        index
    }

    /// Forgets everything before stream offset `upto`.
    pub fn release(&mut self, upto: u64) {
        self.start = upto.clamp(self.start, self.end);
        while self.chunks.front().is_some_and(|(start, c)| start + c.len() as u64 <= self.start) {
            self.chunks.pop_front();
            self.first += 1;
        }
        trim(&mut self.chunks);
    }
    /// Forgets everything (the connection is gone).
    pub fn clear(&mut self) {
        self.first += self.chunks.len() as u64;
        self.chunks.clear();
        self.start = self.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: what a segment carries, wherever it lies among the chunks.
        #[test]
        fn slices_equal_the_stream(
            sizes in prop::collection::vec(1usize..40, 1..12),
            cuts in prop::collection::vec((0u64..400, 1usize..60), 0..20),
            released in 0u64..200,
        ) {
            let total: usize = sizes.iter().sum();
            let stream: Vec<u8> = (0..total).map(|i| i as u8).collect();
            let mut buffer = SendBuffer::new(ByteCount::new(1000));
            let mut at = 0;
            for s in sizes {
                let mut chunk = Bytes::copy_from_slice(&stream[at..at + s]);
                buffer.write(&mut chunk);
                at += s;
            }
            buffer.release(released);
            let kept = released.min(total as u64);
            for (from, len) in cuts {
                let from = from.max(kept);
                let expected = stream.get(from as usize..).unwrap_or(&[]);
                let expected = &expected[..expected.len().min(len)];
                prop_assert_eq!(&buffer.slice(from, len)[..], expected);
            }
        }
    }

    /// Breaks: the limit on what an application can pile up.
    #[test]
    fn the_limit_holds_and_the_rest_stays_with_the_caller() {
        let mut buffer = SendBuffer::new(ByteCount::new(10));
        let mut data = Bytes::from_static(b"0123456789abc");
        assert_eq!(buffer.write(&mut data).get(), 10);
        assert_eq!(&data[..], b"abc");
        assert_eq!(buffer.write(&mut data).get(), 0);
        buffer.release(2);
        assert_eq!(buffer.write(&mut data).get(), 2);
    }
}
