//! Captures as pcapng (draft-ietf-opsawg-pcapng) with nanosecond time stamps, for Wireshark and tshark.
//!
//! A file has one section, an interface per tap, and enhanced packet blocks. It is little-endian.

use farpace_units::{ByteCount, Instant, Packets, Span};
use farpace_wire::Packet;
use std::io::{self, Write};

/// Default limit of the size of a capture.
pub const DEFAULT_CAPTURE_LIMIT: ByteCount = ByteCount::new(4_000_000_000);
/// Maximum length of a name, description or comment in bytes; longer ones are truncated.
pub const MAX_TEXT: usize = 4_000;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const LINKTYPE_ETHERNET: u16 = 1;

// Option codes. The meaning of a code depends on the block.
const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const SHB_HARDWARE: u16 = 2;
const SHB_USER_APPLICATION: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;

/// Resolution of the time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// 1 ns.
    #[default]
    Nanoseconds,
    /// 2^-24 s, 59.6 ns: the clock of GtrcNET-1. Times are rounded down.
    Gtrcnet,
}

impl Resolution {
    /// if_tsresol: units per second as a power of ten, or of two if the highest bit is set.
    const fn code(self) -> u8 {
        match self {
            Resolution::Nanoseconds => 9,
            Resolution::Gtrcnet => 0x80 | 24,
        }
    }
    fn ticks(self, time: Instant) -> u64 {
        let ns = time.as_nanos();
        match self {
            Resolution::Nanoseconds => ns,
            // Below 2^58, as there are fewer ticks than nanoseconds.
            Resolution::Gtrcnet => ((u128::from(ns) << 24) / 1_000_000_000) as u64,
        }
    }
}

/// An interface of one capture file, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u32);

/// Writes packets to a pcapng file.
///
/// It writes one block at a time, so use a `BufWriter` for a file. When the next block would exceed the
/// limit, or after an error, the capture stops for good. The file remains well-formed with the first packets,
/// and [`skipped`](Self::skipped) counts the rest.
pub struct PcapngWriter<W: Write> {
    out: W,
    /// The block under construction; its allocation is reused.
    block: Vec<u8>,
    /// Snap length of each interface.
    snaplens: Vec<Option<u32>>,
    epoch: Span,
    resolution: Resolution,
    limit: ByteCount,
    written: ByteCount,
    stopped: bool,
    skipped: Packets,
}

impl<W: Write> PcapngWriter<W> {
    /// Starts a capture. `info` describes its origin, such as the scenario and its seed. Wireshark shows it
    /// in the capture file properties.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(out: W, info: &str) -> io::Result<Self> {
        let mut writer = PcapngWriter {
            out,
            block: Vec::new(),
            snaplens: Vec::new(),
            epoch: Span::ZERO,
            resolution: Resolution::Nanoseconds,
            limit: DEFAULT_CAPTURE_LIMIT,
            written: ByteCount::ZERO,
            stopped: false,
            skipped: Packets::ZERO,
        };
        writer.begin(SECTION_HEADER);
        writer.u32(BYTE_ORDER_MAGIC);
        writer.u16(1); // version 1.0
        writer.u16(0);
        writer.block.extend_from_slice(&(-1i64).to_le_bytes()); // section length not given
        writer.text(COMMENT, info);
        writer.text(SHB_HARDWARE, "none: virtual time");
        writer.text(SHB_USER_APPLICATION, concat!("farpace ", env!("CARGO_PKG_VERSION")));
        writer.option(END_OF_OPTIONS, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Sets the time since 1970-01-01 at which the run starts. By default it is zero, so that Wireshark shows
    /// times of the run.
    #[must_use]
    pub fn with_epoch(mut self, epoch: Span) -> Self {
        self.epoch = epoch;
        self
    }

    /// Sets the resolution of time stamps; the default is nanoseconds. Call it before interfaces are
    /// declared.
    #[must_use]
    pub fn with_resolution(mut self, resolution: Resolution) -> Self {
        self.resolution = resolution;
        self
    }

    /// Sets the maximum size of the file; the default is [`DEFAULT_CAPTURE_LIMIT`].
    #[must_use]
    pub fn with_limit(mut self, limit: ByteCount) -> Self {
        self.limit = limit;
        self
    }

    /// Declares a tap, before or between packets. `snaplen` is the number of bytes to store of each frame;
    /// all of them if `None` or 0. The limit does not apply to the declaration.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_interface(
        &mut self,
        name: &str,
        description: &str,
        snaplen: Option<u32>,
    ) -> io::Result<InterfaceId> {
        let snaplen = snaplen.filter(|&n| n > 0);
        let id = u32::try_from(self.snaplens.len()).map_err(io::Error::other)?;
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(LINKTYPE_ETHERNET);
        self.u16(0);
        self.u32(snaplen.unwrap_or(0)); // 0: no limit
        self.text(IF_NAME, name);
        self.text(IF_DESCRIPTION, description);
        self.option(IF_TSRESOL, &[self.resolution.code()]);
        self.option(END_OF_OPTIONS, &[]);
        self.end()?;
        self.snaplens.push(snaplen);
        Ok(InterfaceId(id))
    }

    /// Writes a packet that passed the tap `interface` at `now`, or counts it as skipped if the capture has
    /// stopped.
    ///
    /// # Errors
    /// `InvalidInput` if this writer has not declared `interface`; an error of the underlying writer, once.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        now: Instant,
        packet: &Packet,
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.start_of_packet(interface, now, packet, usize::MAX, comment)
    }

    /// Like [`packet`](Self::packet), but stores at most the first `keep` bytes of the frame, whatever the
    /// snap length of the interface.
    ///
    /// # Errors
    /// As [`packet`](Self::packet).
    pub fn start_of_packet(
        &mut self,
        interface: InterfaceId,
        now: Instant,
        packet: &Packet,
        keep: usize,
        comment: Option<&str>,
    ) -> io::Result<()> {
        let Some(&snaplen) = usize::try_from(interface.0).ok().and_then(|at| self.snaplens.get(at)) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no such interface in this capture"));
        };
        if self.stopped {
            self.skipped += Packets::new(1);
            return Ok(());
        }
        let ticks = self.resolution.ticks(now + self.epoch);
        self.begin(ENHANCED_PACKET);
        self.u32(interface.0);
        self.u32((ticks >> 32) as u32);
        self.u32(ticks as u32);
        let lengths_at = self.block.len();
        self.u32(0);
        self.u32(0);
        let frame_at = self.block.len();
        packet.write_start(snaplen.map_or(keep, |n| keep.min(n as usize)), &mut self.block);
        let original = u32::try_from(packet.len().get()).map_err(io::Error::other)?;
        let captured = length(self.block.len().saturating_sub(frame_at))?;
        self.patch(lengths_at, captured);
        self.patch(lengths_at + 4, original);
        self.pad();
        if let Some(comment) = comment {
            self.text(COMMENT, comment);
            self.option(END_OF_OPTIONS, &[]);
        }
        if self.written + ByteCount::of_len(self.block.len() + 4) > self.limit {
            self.stopped = true;
            self.skipped += Packets::new(1);
            return Ok(());
        }
        self.end().inspect_err(|_| self.skipped += Packets::new(1))
    }

    /// Number of packets omitted because the capture had reached its limit or could not be written.
    pub fn skipped(&self) -> Packets {
        self.skipped
    }

    /// Number of bytes written.
    pub fn written(&self) -> ByteCount {
        self.written
    }

    /// The underlying writer. What is written to it by others becomes part of the file.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes and returns the writer.
    ///
    /// # Errors
    /// An error of the underlying writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn begin(&mut self, block_type: u32) {
        self.block.clear();
        self.u32(block_type);
        self.u32(0); // the length, patched by `end`
    }

    fn end(&mut self) -> io::Result<()> {
        let total = length(self.block.len() + 4)?;
        self.patch(4, total);
        self.u32(total);
        // After an error it is unknown how much of the block is in the file.
        self.out.write_all(&self.block).inspect_err(|_| self.stopped = true)?;
        self.written += ByteCount::of_len(self.block.len());
        Ok(())
    }

    fn u16(&mut self, n: u16) {
        self.block.extend_from_slice(&n.to_le_bytes());
    }

    fn u32(&mut self, n: u32) {
        self.block.extend_from_slice(&n.to_le_bytes());
    }

    fn patch(&mut self, at: usize, n: u32) {
        if let Some(field) = self.block.get_mut(at..at + 4) {
            field.copy_from_slice(&n.to_le_bytes());
        }
    }

    /// Pads to a multiple of four bytes, as blocks and options require.
    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Appends an option. `value` has at most [`MAX_TEXT`] bytes.
    fn option(&mut self, code: u16, value: &[u8]) {
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn text(&mut self, code: u16, text: &str) {
        let cut = (0..=text.len().min(MAX_TEXT)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.option(code, &text.as_bytes()[..cut]);
    }
}

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "block beyond 4 GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::CaptureReader;
    use crate::test_records::{full_disk, packet};
    use proptest::prelude::*;

    fn writer() -> PcapngWriter<Vec<u8>> {
        PcapngWriter::new(Vec::new(), "test").unwrap()
    }

    fn frame(packet: &Packet) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.write_frame(&mut bytes);
        bytes
    }

    proptest! {
        /// Breaks: captured packets are read without change: bytes, times to the nanosecond, interfaces,
        /// comments, snap lengths, padding.
        #[test]
        fn written_packets_are_read_without_change(
            snaplens in proptest::collection::vec(proptest::option::of(1..200u32), 1..4),
            packets in proptest::collection::vec(
                (any::<u64>(), any::<u8>(), 0..100usize, proptest::option::of("\\PC{0,20}")),
                0..20,
            ),
        ) {
            let mut capture = writer();
            let taps: Vec<_> = snaplens
                .iter()
                .enumerate()
                .map(|(n, &snaplen)| capture.add_interface(&format!("tap{n}"), "a tap", snaplen).unwrap())
                .collect();
            for (time, tap, len, comment) in &packets {
                let tap = taps[usize::from(*tap) % taps.len()];
                let at = Instant::from_nanos(*time);
                capture.packet(tap, at, &packet(0, *len), comment.as_deref()).unwrap();
            }
            let written = capture.written();
            let bytes = capture.finish().unwrap();
            prop_assert_eq!(written, ByteCount::of_len(bytes.len()));
            let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
            for (time, tap, len, comment) in &packets {
                let tap = usize::from(*tap) % taps.len();
                let expected = frame(&packet(0, *len));
                let kept = snaplens[tap].map_or(expected.len(), |n| expected.len().min(n as usize));
                let read = reader.next_packet().unwrap().unwrap();
                prop_assert_eq!(read.interface, taps[tap]);
                prop_assert_eq!(read.time, Instant::from_nanos(*time));
                prop_assert_eq!(read.original_len, ByteCount::of_len(expected.len()));
                prop_assert_eq!(read.data, &expected[..kept]);
                prop_assert_eq!(&read.comment, comment);
            }
            prop_assert!(reader.next_packet().unwrap().is_none());
            // Blocks without packets have been read by now.
            for (n, (interface, snaplen)) in reader.interfaces().iter().zip(&snaplens).enumerate() {
                prop_assert_eq!(interface.name.clone(), Some(format!("tap{n}")));
                prop_assert_eq!(interface.description.as_deref(), Some("a tap"));
                prop_assert_eq!(interface.link_type, LINKTYPE_ETHERNET);
                prop_assert_eq!(interface.snaplen, *snaplen);
            }
        }
    }

    /// Breaks: a capture has a maximum size, and reports that it is incomplete.
    #[test]
    fn the_limit_stops_the_capture_for_good() {
        let mut capture = writer();
        let tap = capture.add_interface("tap", "", None).unwrap();
        let empty = capture.written();
        let block = ByteCount::of_len(32 + frame(&packet(0, 1000)).len().next_multiple_of(4));
        capture = capture.with_limit(empty + block + block);
        for n in 0..5 {
            capture.packet(tap, Instant::from_nanos(n), &packet(0, 1000), None).unwrap();
        }
        // It would fit, but a capture with gaps would be misleading.
        capture.packet(tap, Instant::from_nanos(5), &packet(0, 0), None).unwrap();
        assert_eq!(capture.skipped(), Packets::new(4));
        assert_eq!(capture.written(), empty + block + block);
        let bytes = capture.finish().unwrap();
        let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
        assert_eq!(reader.next_packet().unwrap().unwrap().time, Instant::from_nanos(0));
        assert_eq!(reader.next_packet().unwrap().unwrap().time, Instant::from_nanos(1));
        assert!(reader.next_packet().unwrap().is_none());
    }

    /// Breaks: after an error no partial blocks are written, and the error is reported.
    #[test]
    fn a_full_disk_is_reported_once_and_then_counted() {
        let mut capture = PcapngWriter::new(full_disk(), "test").unwrap();
        let tap = capture.add_interface("tap", "", None).unwrap();
        let mut errors = 0;
        for _ in 0..10 {
            errors += u32::from(capture.packet(tap, Instant::ZERO, &packet(0, 500), None).is_err());
        }
        assert_eq!(errors, 1);
        assert_eq!(capture.skipped(), Packets::new(9));
    }

    /// Breaks: texts that exceed an option are truncated at a character boundary.
    #[test]
    fn long_texts_are_truncated() {
        let long = "a".to_owned() + &"\u{e9}".repeat(40_000);
        let mut capture = PcapngWriter::new(Vec::new(), &long).unwrap();
        let tap = capture.add_interface(&long, &long, None).unwrap();
        capture.packet(tap, Instant::ZERO, &packet(0, 1), Some(&long)).unwrap();
        let bytes = capture.finish().unwrap();
        let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
        let comment = reader.next_packet().unwrap().unwrap().comment.unwrap();
        assert_eq!(comment.len(), MAX_TEXT - 1);
        assert!(long.starts_with(&comment));
    }

    /// Breaks: captures can have absolute dates.
    #[test]
    fn the_epoch_is_added() {
        let mut capture = writer().with_epoch(Span::from_secs(1_700_000_000));
        let tap = capture.add_interface("tap", "", None).unwrap();
        capture.packet(tap, Instant::from_nanos(5), &packet(0, 1), None).unwrap();
        let bytes = capture.finish().unwrap();
        let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
        let time = reader.next_packet().unwrap().unwrap().time;
        assert_eq!(time, Instant::from_nanos(1_700_000_000_000_000_005));
    }

    /// Breaks: a capture has the resolution that it declares.
    #[test]
    fn coarse_time_stamps_are_written_and_read() {
        let mut capture = writer().with_resolution(Resolution::Gtrcnet);
        let tap = capture.add_interface("tap", "", None).unwrap();
        // One tick is 59.604... ns; a second has 2^24.
        let cases = [(0, 0), (59, 0), (60, 59), (119, 59), (120, 119), (1_000_000_000, 1_000_000_000)];
        for (time, _) in cases {
            capture.packet(tap, Instant::from_nanos(time), &packet(0, 1), None).unwrap();
        }
        let bytes = capture.finish().unwrap();
        assert!(bytes.windows(5).any(|w| w == [9, 0, 1, 0, 0x98]), "if_tsresol is 2^-24 s");
        let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
        for (time, read) in cases {
            assert_eq!(reader.next_packet().unwrap().unwrap().time, Instant::from_nanos(read), "{time}");
        }
    }

    /// Breaks: more of a packet is stored than was asked for, or less; or its length or its checksum are
    /// those of the stored part.
    #[test]
    fn the_start_of_a_packet_is_that_of_the_whole() {
        let whole = packet(0, 1000);
        let bytes = frame(&whole);
        for (keep, snaplen) in [(0, None), (20, None), (60, Some(40)), (200, Some(300)), (usize::MAX, None)] {
            let mut capture = writer();
            let tap = capture.add_interface("tap", "", snaplen).unwrap();
            capture.start_of_packet(tap, Instant::ZERO, &whole, keep, None).unwrap();
            let written = capture.finish().unwrap();
            let mut reader = CaptureReader::new(written.as_slice()).unwrap();
            let read = reader.next_packet().unwrap().unwrap();
            let kept = keep.min(snaplen.map_or(usize::MAX, |n| n as usize)).min(bytes.len());
            assert_eq!((read.data, read.original_len.as_len()), (&bytes[..kept], bytes.len()), "{keep}");
        }
    }

    /// Breaks: a packet of an undeclared tap is refused.
    #[test]
    fn an_interface_of_another_capture_is_refused() {
        let error = writer().packet(InterfaceId(0), Instant::ZERO, &packet(0, 1), None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
