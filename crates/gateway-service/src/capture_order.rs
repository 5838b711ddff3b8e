//! Packets of several threads in the order of their times.
//!
//! Threads put packets into one buffer, each with the time of its own round. So a packet may come a little
//! later than one with a later time. The buffer keeps the latest ones back until it can sort them.

use farpace_trace::{InterfaceId, PcapngWriter};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;

/// A packet comes at most so much later than others with later times, unless its thread has stood still.
const MAX_LATENESS: Span = Span::from_millis(100);
/// What is kept back at most, in bytes. At higher rates the order may be violated.
const MAX_KEPT: usize = 4 << 20;
/// What is taken at once, in bytes.
const CHUNK: usize = 64 << 10;

/// Blocks of pcapng of one side.
pub struct OrderedBlocks {
    writer: PcapngWriter<Vec<u8>>,
    /// Time and end of each block in the writer.
    blocks: Vec<(Instant, usize)>,
    newest: Instant,
    is_sorted: bool,
    /// With so many bytes there may be a chunk to take.
    look_at: usize,
}

/// Blocks to write, and the number of packets in them.
pub type TakenBlocks = (Vec<u8>, u64);

impl OrderedBlocks {
    /// For packets that `writer` writes to memory.
    pub fn new(mut writer: PcapngWriter<Vec<u8>>) -> Self {
        writer.get_mut().clear(); // the files have the beginning
        OrderedBlocks { writer, blocks: Vec::new(), newest: Instant::ZERO, is_sorted: true, look_at: CHUNK }
    }

    /// Puts the first `keep` bytes of a packet in. Returns a chunk, if there is one.
    pub fn put(&mut self, time: Instant, packet: &Packet, keep: usize) -> Option<TakenBlocks> {
        // Writing to memory does not fail, and the interface is declared.
        let _ = self.writer.start_of_packet(InterfaceId(0), time, packet, keep, None);
        let end = self.writer.get_mut().len();
        self.blocks.push((time, end));
        self.is_sorted &= time >= self.newest;
        self.newest = self.newest.max(time);
        (end >= self.look_at).then(|| self.take(false)).flatten()
    }

    /// Takes what is old enough to be in order, or all.
    pub fn take(&mut self, all: bool) -> Option<TakenBlocks> {
        let bytes = std::mem::take(self.writer.get_mut());
        let mut begin = 0;
        let with_begin = std::mem::take(&mut self.blocks).into_iter().map(|(time, end)| {
            let block = (time, begin..end);
            begin = end;
            block
        });
        let mut blocks: Vec<_> = with_begin.collect();
        if !std::mem::replace(&mut self.is_sorted, true) {
            blocks.sort_by_key(|(time, _)| *time);
        }
        let is_ready = |time: Instant| self.newest.since(time) >= MAX_LATENESS;
        let ready = match all || bytes.len() >= MAX_KEPT {
            true => blocks.len(),
            false => blocks.partition_point(|(time, _)| is_ready(*time)),
        };
        let mut taken = Vec::with_capacity(bytes.len());
        blocks.iter().take(ready).for_each(|(_, range)| taken.extend_from_slice(&bytes[range.clone()]));
        for (time, range) in &blocks[ready..] {
            let kept = self.writer.get_mut();
            kept.extend_from_slice(&bytes[range.clone()]);
            self.blocks.push((*time, kept.len()));
        }
        self.look_at = self.writer.get_mut().len() + CHUNK;
        (ready > 0).then_some((taken, ready as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::RandomStream;
    use farpace_wire::{EtherType, MacAddr};

    fn packet(n: u32) -> Packet {
        let payload = n.to_be_bytes().to_vec().into();
        Packet::from_link(MacAddr::default(), MacAddr::default(), EtherType(0x88b5), payload)
    }

    fn writer() -> PcapngWriter<Vec<u8>> {
        let mut writer = PcapngWriter::new(Vec::new(), "test").unwrap();
        writer.add_interface("side", "a side", None).unwrap();
        writer
    }

    /// Breaks: packets of several threads stand in a capture in another order than that of their times, are
    /// lost, doubled, or get the content of another one; or one that is very late is not written.
    #[test]
    fn packets_are_sorted_by_time() {
        let mut random = RandomStream::new(1, "test");
        let mut ordered = OrderedBlocks::new(writer());
        let mut file = writer().finish().unwrap();
        let mut packets = 0;
        let count = 20_000;
        for n in 0..count {
            // Each 100 us, up to 50 ms late.
            let late = random.below(500) * 100;
            let time = Instant::ZERO + Span::from_micros(1_000_000 + u64::from(n) * 100 - late);
            if let Some((blocks, number)) = ordered.put(time, &packet(n), usize::MAX) {
                assert!(blocks.len() < 2 * CHUNK);
                file.extend(blocks);
                packets += number;
            }
        }
        let (blocks, number) = ordered.take(true).unwrap();
        file.extend(blocks);
        assert_eq!(packets + number, u64::from(count));
        assert!(ordered.take(true).is_none());
        let (mut last, mut seen) = (Instant::ZERO, vec![false; count as usize]);
        let mut reader = farpace_trace::CaptureReader::new(file.as_slice()).unwrap();
        while let Some(record) = reader.next_packet().unwrap() {
            assert!(record.time >= last);
            last = record.time;
            let n = u32::from_be_bytes(record.data[14..18].try_into().unwrap());
            assert!(!std::mem::replace(&mut seen[n as usize], true));
        }
        assert!(seen.iter().all(|seen| *seen));
    }

    /// Breaks: a flood makes the buffer grow without bound.
    #[test]
    fn what_is_kept_back_is_bounded() {
        let mut ordered = OrderedBlocks::new(writer());
        let payload = vec![7; 60_000].into();
        let packet = Packet::from_link(MacAddr::default(), MacAddr::default(), EtherType(0x88b5), payload);
        let mut taken = 0;
        for _ in 0..200 {
            taken += ordered.put(Instant::ZERO, &packet, usize::MAX).map_or(0, |(_, number)| number);
            assert!(ordered.writer.get_mut().len() <= MAX_KEPT + CHUNK);
        }
        assert!(taken > 100, "{taken}");
    }
}
