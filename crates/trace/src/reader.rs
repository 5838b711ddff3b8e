//! Reads captures in pcapng and classic pcap format.
//!
//! This module reads the block headers, so that lengths are checked before memory is allocated. `pcap-parser`
//! parses the blocks.

mod classic;

use crate::pcapng::InterfaceId;
use farpace_units::{ByteCount, Instant, Span};
use pcap_parser::pcapng::{
    Block, InterfaceDescriptionBlock, OptionCode, PcapNGOption, parse_block_be, parse_block_le,
};
use std::io::{self, Read};
use std::ops::Range;

/// Maximum length of a block: more than four times the largest frame with segmentation offload.
pub const MAX_BLOCK: usize = 1 << 20;
/// Maximum number of interfaces of a file.
pub const MAX_INTERFACES: usize = 65_536;

const SECTION_HEADER: [u8; 4] = 0x0a0d_0d0a_u32.to_le_bytes();
const ENHANCED_PACKET_HEADER: usize = 28;
/// if_fcslen.
const IF_FCSLEN: OptionCode = OptionCode(13);

/// An interface that a capture declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Its name, if present.
    pub name: Option<String>,
    /// Its description, if present.
    pub description: Option<String>,
    /// The link type: 1 for Ethernet, 101 for bare IP.
    pub link_type: u16,
    /// Number of bytes stored of each frame; none if all.
    pub snaplen: Option<u32>,
    /// Length of the frame check sequence at the end of its frames; 0 if there is none or it is not declared.
    pub fcs_bytes: u8,
    /// if_tsresol: units of time per second, 10^n, or 2^n if the highest bit is set.
    resolution: u8,
    /// if_tsoffset: seconds to add.
    offset: i64,
}

/// A packet of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// The interface; see [`CaptureReader::interface`].
    pub interface: InterfaceId,
    /// Time stamp: nanoseconds since the epoch of the file, which is 1970 for captures of real networks.
    pub time: Instant,
    /// Length of the frame before truncation.
    pub original_len: ByteCount,
    /// The stored bytes.
    pub data: &'a [u8],
    /// The first comment, if there is one.
    pub comment: Option<String>,
}

/// A capture could not be read. Offsets are those of the faulty block, in bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
pub enum CaptureReadError {
    /// The file could not be read.
    #[error("cannot read the capture at byte {offset}: {source}")]
    Io {
        /// Offset in the file.
        offset: u64,
        /// The error.
        source: io::Error,
    },
    /// The file begins neither like pcapng nor like pcap.
    #[error("not a capture: the file is neither pcapng nor pcap (editcap converts other formats)")]
    NotACapture,
    /// The file ends within a block.
    #[error("the capture is truncated within the block at byte {offset}")]
    Truncated {
        /// Offset of the block.
        offset: u64,
    },
    /// A block is longer than [`MAX_BLOCK`].
    #[error("the block at byte {offset} has a length of {length} bytes; the maximum is {MAX_BLOCK}")]
    BlockTooLong {
        /// Offset of the block.
        offset: u64,
        /// Its length field.
        length: u32,
    },
    /// A block violates the format.
    #[error("the block at byte {offset} is malformed: {what}")]
    Malformed {
        /// Offset of the block.
        offset: u64,
        /// The problem.
        what: &'static str,
    },
    /// A packet refers to an interface that its section has not declared.
    #[error("the packet at byte {offset} refers to interface {interface}, which is not declared")]
    UnknownInterface {
        /// Offset of the block.
        offset: u64,
        /// The number of the interface.
        interface: u32,
    },
    /// The file declares more than [`MAX_INTERFACES`].
    #[error("the capture declares more than {MAX_INTERFACES} interfaces")]
    TooManyInterfaces,
    /// A time stamp is outside of the range of nanoseconds from 1970 to 2554.
    #[error("the packet at byte {offset} has a time outside of the years 1970 to 2554")]
    TimeOutOfRange {
        /// Offset of the block.
        offset: u64,
    },
}

/// Reads a pcapng file block by block, or a pcap file packet by packet. [`MAX_BLOCK`] and [`MAX_INTERFACES`]
/// bound its memory.
///
/// After an error, the position in the file is undefined: do not continue.
pub struct CaptureReader<R: Read> {
    input: R,
    /// Offset of the block in `block`.
    offset: u64,
    block: Vec<u8>,
    /// True for pcap, false for pcapng.
    classic: bool,
    big_endian: bool,
    interfaces: Vec<CaptureInterface>,
    /// Interfaces before this one belong to earlier sections.
    section_start: usize,
}

impl<R: Read> CaptureReader<R> {
    /// Opens a capture. Use a `BufReader` for a file.
    ///
    /// # Errors
    /// [`CaptureReadError::NotACapture`], and errors of the first block.
    pub fn new(input: R) -> Result<Self, CaptureReadError> {
        let mut reader = CaptureReader {
            input,
            offset: 0,
            block: Vec::new(),
            classic: false,
            big_endian: false,
            interfaces: Vec::new(),
            section_start: 0,
        };
        reader.fill(4)?;
        if reader.begin_classic()? {
            return Ok(reader);
        }
        if !reader.block.starts_with(&SECTION_HEADER) {
            return Err(CaptureReadError::NotACapture);
        }
        reader.read_rest()?;
        reader.take_block()?;
        Ok(reader)
    }

    /// The interface with this number.
    pub fn interface(&self, id: InterfaceId) -> Option<&CaptureInterface> {
        self.interfaces.get(id.0 as usize)
    }

    /// All interfaces declared so far. Those of a later section follow those of earlier ones.
    pub fn interfaces(&self) -> &[CaptureInterface] {
        &self.interfaces
    }

    /// The next packet, or none at the end of the file. Blocks that are neither packets nor interfaces are
    /// skipped.
    ///
    /// # Errors
    /// The file is malformed or cannot be read.
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureReadError> {
        if self.classic {
            return self.next_classic();
        }
        while self.read_block()? {
            if let Some(found) = self.take_block()? {
                return Ok(Some(CapturedPacket {
                    interface: found.interface,
                    time: found.time,
                    original_len: found.original_len,
                    data: self.block.get(found.data).unwrap_or_default(),
                    comment: found.comment,
                }));
            }
        }
        Ok(None)
    }

    /// Reads the whole next block. False at the end of the file.
    fn read_block(&mut self) -> Result<bool, CaptureReadError> {
        self.offset += self.block.len() as u64;
        self.block.clear();
        self.read_rest()
    }

    /// Reads the rest of a block, whose first bytes may have been read.
    fn read_rest(&mut self) -> Result<bool, CaptureReadError> {
        let offset = self.offset;
        // Type, length, and the byte order of a section.
        if !self.fill(12)? {
            return if self.block.is_empty() {
                Ok(false)
            } else {
                Err(CaptureReadError::Truncated { offset })
            };
        }
        if self.block.starts_with(&SECTION_HEADER) {
            self.big_endian = match self.block.get(8..12) {
                Some([0x4d, 0x3c, 0x2b, 0x1a]) => false,
                Some([0x1a, 0x2b, 0x3c, 0x4d]) => true,
                _ => return Err(CaptureReadError::Malformed { offset, what: "unknown byte order" }),
            };
        }
        let length = self.u32_at(4);
        let bytes = length as usize;
        if bytes > MAX_BLOCK {
            return Err(CaptureReadError::BlockTooLong { offset, length });
        }
        if bytes < 12 || !bytes.is_multiple_of(4) {
            return Err(CaptureReadError::Malformed { offset, what: "invalid block length" });
        }
        if !self.fill(bytes)? {
            return Err(CaptureReadError::Truncated { offset });
        }
        if self.u32_at(bytes - 4) != length {
            return Err(CaptureReadError::Malformed {
                offset,
                what: "the lengths at its start and end differ",
            });
        }
        Ok(true)
    }

    /// Reads until `block` has `len` bytes. False if the file ends before.
    fn fill(&mut self, len: usize) -> Result<bool, CaptureReadError> {
        let missing = len.saturating_sub(self.block.len()) as u64;
        let read = self.input.by_ref().take(missing).read_to_end(&mut self.block);
        let read = read.map_err(|source| CaptureReadError::Io { offset: self.offset, source })?;
        Ok(read as u64 == missing)
    }

    fn u32_at(&self, at: usize) -> u32 {
        let bytes = self.block.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
        if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Parses the block that was just read. Returns the packet if it is one.
    fn take_block(&mut self) -> Result<Option<FoundPacket>, CaptureReadError> {
        let offset = self.offset;
        let malformed = |what| CaptureReadError::Malformed { offset, what };
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        // The block is complete, so an incomplete parse means that lengths inside exceed it.
        let (_, block) = parse(&self.block).map_err(|_| malformed("its contents exceed its length"))?;
        match block {
            Block::SectionHeader(header) => {
                if header.major_version != 1 {
                    return Err(malformed("unsupported version of the format"));
                }
                self.section_start = self.interfaces.len();
                Ok(None)
            }
            Block::InterfaceDescription(description) => {
                if self.interfaces.len() >= MAX_INTERFACES {
                    return Err(CaptureReadError::TooManyInterfaces);
                }
                let interface = CaptureInterface::parse(&description, self.big_endian).map_err(malformed)?;
                self.interfaces.push(interface);
                Ok(None)
            }
            Block::EnhancedPacket(packet) => {
                let at = self.section_start.saturating_add(packet.if_id as usize);
                let interface = self
                    .interfaces
                    .get(at)
                    .ok_or(CaptureReadError::UnknownInterface { offset, interface: packet.if_id })?;
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let time = interface.time(ticks).ok_or(CaptureReadError::TimeOutOfRange { offset })?;
                Ok(Some(FoundPacket {
                    interface: InterfaceId(at as u32),
                    time,
                    original_len: ByteCount::new(u64::from(packet.origlen)),
                    data: ENHANCED_PACKET_HEADER..ENHANCED_PACKET_HEADER + packet.caplen as usize,
                    comment: text(&packet.options, OptionCode::Comment).map_err(malformed)?,
                }))
            }
            Block::SimplePacket(_) => {
                Err(malformed("simple packet blocks have no time and are not supported"))
            }
            _ => Ok(None),
        }
    }
}

/// A packet whose bytes are in the block buffer.
struct FoundPacket {
    interface: InterfaceId,
    time: Instant,
    original_len: ByteCount,
    data: Range<usize>,
    comment: Option<String>,
}

impl CaptureInterface {
    fn parse(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Result<Self, &'static str> {
        let bytes = |code| block.options.iter().find(|o| o.code == code).map(|o| o.as_bytes());
        let resolution = match bytes(OptionCode::IfTsresol) {
            None => 6, // microseconds
            Some(Ok(&[n])) => n,
            Some(_) => return Err("if_tsresol must have one byte"),
        };
        let offset = match bytes(OptionCode::IfTsoffset) {
            None => 0,
            Some(Ok(bytes)) => {
                let bytes = <[u8; 8]>::try_from(bytes).map_err(|_| "if_tsoffset must have eight bytes")?;
                if big_endian { i64::from_be_bytes(bytes) } else { i64::from_le_bytes(bytes) }
            }
            Some(Err(_)) => return Err("an option exceeds its block"),
        };
        Ok(CaptureInterface {
            name: text(&block.options, OptionCode::IfName)?,
            description: text(&block.options, OptionCode::IfDescription)?,
            // The field has 16 bits; the library widens it.
            link_type: block.linktype.0 as u16,
            snaplen: Some(block.snaplen).filter(|&n| n > 0),
            fcs_bytes: match bytes(IF_FCSLEN) {
                // The standard defines bits; many programs write bytes.
                Some(Ok(&[bits @ (16 | 32 | 64)])) => bits / 8,
                Some(Ok(&[bytes @ 1..=8])) => bytes,
                _ => 0,
            },
            resolution,
            offset,
        })
    }

    /// Resolution of its time stamps, rounded up to a nanosecond. The clock itself may be coarser.
    pub fn tick(&self) -> Span {
        let per_second = self.per_second().and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX);
        Span::from_nanos(1_000_000_000u64.div_ceil(per_second.max(1)))
    }

    /// Time units per second; none if there are too many.
    fn per_second(&self) -> Option<u128> {
        let exponent = u32::from(self.resolution & 0x7f);
        if self.resolution & 0x80 == 0 { 10u128.checked_pow(exponent) } else { 1u128.checked_shl(exponent) }
    }

    /// The instant of `ticks`; none if it is before 1970 or after 2554.
    fn time(&self, ticks: u64) -> Option<Instant> {
        const NANOS: u128 = 1_000_000_000;
        let per_second = self.per_second()?;
        let nanos = i128::try_from(u128::from(ticks) * NANOS / per_second).ok()?;
        let nanos = nanos + i128::from(self.offset) * 1_000_000_000;
        u64::try_from(nanos).ok().map(Instant::from_nanos)
    }
}

/// The first option with `code` as text. Bytes that are not UTF-8 are replaced, because some programs write
/// them.
fn text(options: &[PcapNGOption<'_>], code: OptionCode) -> Result<Option<String>, &'static str> {
    let Some(option) = options.iter().find(|o| o.code == code) else { return Ok(None) };
    let bytes = option.as_bytes().map_err(|_| "an option exceeds its block")?;
    Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng::PcapngWriter;
    use crate::test_records::packet;
    use proptest::prelude::*;

    /// A block with `body`, in either byte order.
    fn block(big_endian: bool, block_type: u32, body: &[u8]) -> Vec<u8> {
        let number = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
        let length = number(body.len() as u32 + 12);
        [&number(block_type), &length, body, &length].concat()
    }

    fn section(big_endian: bool) -> Vec<u8> {
        let body: Vec<u8> = if big_endian {
            [&[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0][..], &[0xff; 8]].concat()
        } else {
            [&[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..], &[0xff; 8]].concat()
        };
        block(big_endian, 0x0a0d_0d0a, &body)
    }

    fn sample() -> Vec<u8> {
        let mut capture = PcapngWriter::new(Vec::new(), "test").unwrap();
        let tap = capture.add_interface("tap", "a tap", Some(100)).unwrap();
        for n in 0..3 {
            let comment = (n == 1).then_some("dropped: policed");
            capture.packet(tap, Instant::from_nanos(n), &packet(0, 60), comment).unwrap();
        }
        capture.finish().unwrap()
    }

    fn read_all(bytes: &[u8]) -> Result<usize, CaptureReadError> {
        let mut reader = CaptureReader::new(bytes)?;
        let mut packets = 0;
        while reader.next_packet()?.is_some() {
            packets += 1;
        }
        Ok(packets)
    }

    fn error(bytes: &[u8]) -> String {
        read_all(bytes).unwrap_err().to_string()
    }

    proptest! {
        /// Breaks: a damaged capture causes neither a panic nor an endless loop.
        #[test]
        fn no_damage_panics(
            changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..8),
            end in any::<proptest::sample::Index>(),
        ) {
            let mut bytes = sample();
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            bytes.truncate(end.index(bytes.len()) + 1);
            // There are three packets. Damage may split a block into several well-formed ones, but not into
            // many.
            prop_assert!(read_all(&bytes).is_ok_and(|n| n <= 3) || read_all(&bytes).is_err());
        }

        /// Breaks: blocks of any type with any contents do not cause a panic.
        #[test]
        fn no_block_panics(
            big_endian in any::<bool>(),
            block_type in prop_oneof![0..16u32, Just(0x0bad), Just(0x4000_0bad), Just(0x8000_0001), any::<u32>()],
            words in proptest::collection::vec(prop_oneof![any::<u32>(), 0..20u32, 0xffff_fff0..=u32::MAX], 0..16),
        ) {
            let body: Vec<u8> = words.iter().flat_map(|n| n.to_le_bytes()).collect();
            let interface = block(big_endian, 1, &[0; 8]);
            let bytes = [section(big_endian), interface, block(big_endian, block_type, &body)].concat();
            prop_assert!(read_all(&bytes).is_ok_and(|n| n <= 1) || read_all(&bytes).is_err());
        }
    }

    /// Breaks: a capture that is truncated within a block is reported.
    #[test]
    fn truncation_within_a_block_is_reported() {
        let whole = sample();
        let mut ends = vec![];
        let mut at = 0;
        while at < whole.len() {
            at += u32::from_le_bytes(whole[at + 4..at + 8].try_into().unwrap()) as usize;
            ends.push(at);
        }
        assert_eq!(ends.len(), 5);
        for cut in 1..=whole.len() {
            let result = read_all(&whole[..cut]);
            match ends.iter().position(|&end| end == cut) {
                Some(blocks) => assert_eq!(result.unwrap(), blocks.saturating_sub(1), "{cut}"),
                None if cut < 4 => assert!(matches!(result, Err(CaptureReadError::NotACapture)), "{cut}"),
                None => assert!(matches!(result, Err(CaptureReadError::Truncated { .. })), "{cut}"),
            }
        }
    }

    /// Breaks: errors state the problem and its offset.
    #[test]
    fn errors_state_problem_and_offset() {
        let start = section(false);
        let after = |bytes: &[u8]| error(&[start.as_slice(), bytes].concat());
        assert_eq!(
            error(b""),
            "not a capture: the file is neither pcapng nor pcap (editcap converts other formats)"
        );
        assert_eq!(error(b"PAR1 and so on"), error(b""));
        assert_eq!(
            after(&[1, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]),
            "the block at byte 28 has a length of 2147483647 bytes; the maximum is 1048576"
        );
        assert_eq!(
            after(&[1, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0]),
            "the block at byte 28 is malformed: invalid block length"
        );
        let mut uneven = block(false, 1, &[0; 8]);
        uneven[16] += 4;
        assert_eq!(
            after(&uneven),
            "the block at byte 28 is malformed: the lengths at its start and end differ"
        );
        assert_eq!(
            after(&block(false, 6, &[0; 20])),
            "the packet at byte 28 refers to interface 0, which is not declared"
        );
        let mut too_long = block(false, 6, &[0; 20]);
        too_long[20] = 200; // captured length
        let interface = block(false, 1, &[0; 8]);
        assert_eq!(
            after(&[interface.clone(), too_long].concat()),
            "the block at byte 48 is malformed: its contents exceed its length"
        );
        // 2^64 - 1 microseconds.
        let late = block(false, 6, &[&[0; 4][..], &[0xff; 8], &[0; 8]].concat());
        assert_eq!(
            after(&[interface, late].concat()),
            "the packet at byte 48 has a time outside of the years 1970 to 2554"
        );
        assert!(after(&block(false, 3, &[0; 4])).contains("simple packet blocks have no time"));
    }

    /// Breaks: the number of interfaces is limited, and so is memory.
    #[test]
    fn interfaces_are_limited() {
        let mut bytes = section(false);
        let interface = block(false, 1, &[1, 0, 0, 0, 0, 0, 0, 0]);
        for _ in 0..MAX_INTERFACES {
            bytes.extend_from_slice(&interface);
        }
        assert_eq!(read_all(&bytes).unwrap(), 0);
        bytes.extend_from_slice(&interface);
        assert!(matches!(read_all(&bytes), Err(CaptureReadError::TooManyInterfaces)));
    }

    fn interface() -> CaptureInterface {
        CaptureInterface {
            name: None,
            description: None,
            link_type: 1,
            snaplen: None,
            fcs_bytes: 0,
            resolution: 6,
            offset: 0,
        }
    }

    /// Breaks: frame check sequences in a capture are not counted twice.
    #[test]
    fn frame_check_sequences_are_recognised() {
        for (value, expected) in [(0u8, 0), (4, 4), (32, 4), (200, 0)] {
            let option = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &[13, 0, 1, 0, value, 0, 0, 0]].concat();
            let bytes = [section(false), block(false, 1, &option)].concat();
            let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
            assert_eq!(reader.next_packet().unwrap(), None);
            assert_eq!(reader.interfaces()[0].fcs_bytes, expected, "{value}");
        }
    }

    /// Breaks: time stamps of other hosts and programs: big-endian, microseconds, powers of two, offsets.
    #[test]
    fn times_of_other_programs_are_understood() {
        let tick = |resolution| CaptureInterface { resolution, ..interface() }.tick().as_nanos();
        let ticks = [6, 9, 12, 0, 0x80 | 24, 0x80 | 10, 0xff, 0x7f].map(tick);
        assert_eq!(ticks, [1_000, 1, 1, 1_000_000_000, 60, 976_563, 1, 1]);
        // (if_tsresol, if_tsoffset, ticks, nanoseconds)
        let cases = [
            (None, None, 1_500_000, Some(1_500_000_000)),
            (Some(9), None, 1_500_000, Some(1_500_000)),
            (Some(0), None, 2, Some(2_000_000_000)),
            (Some(12), None, 5_999, Some(5)),
            (Some(0x80 | 10), None, 1_536, Some(1_500_000_000)),
            (Some(6), Some(3), 7, Some(3_000_007_000)),
            (Some(6), Some(-1), 1_000_001, Some(1_000)),
            (Some(6), Some(-1), 999_999, None),
            (Some(39), None, 1, None),
        ];
        for big_endian in [false, true] {
            for (resolution, offset, ticks, expected) in cases {
                let (n16, n32) = if big_endian {
                    (u16::to_be_bytes as fn(u16) -> [u8; 2], u32::to_be_bytes as fn(u32) -> [u8; 4])
                } else {
                    (u16::to_le_bytes as fn(u16) -> [u8; 2], u32::to_le_bytes as fn(u32) -> [u8; 4])
                };
                let mut interface = [&n16(1)[..], &[0; 6]].concat();
                if let Some(resolution) = resolution {
                    interface.extend([&n16(9)[..], &n16(1), &[resolution, 0, 0, 0]].concat());
                }
                if let Some(offset) = offset {
                    let value: i64 = offset;
                    let value = if big_endian { value.to_be_bytes() } else { value.to_le_bytes() };
                    interface.extend([&n16(14)[..], &n16(8), &value].concat());
                }
                let ticks: u64 = ticks;
                let words = [0, (ticks >> 32) as u32, ticks as u32, 3, 60];
                let packet = [words.map(n32).concat(), b"abc\0".to_vec()].concat();
                let bytes =
                    [section(big_endian), block(big_endian, 1, &interface), block(big_endian, 6, &packet)]
                        .concat();
                let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
                match (reader.next_packet(), expected) {
                    (Ok(Some(packet)), Some(nanos)) => {
                        assert_eq!(packet.time, Instant::from_nanos(nanos));
                        assert_eq!((packet.data, packet.original_len), (&b"abc"[..], ByteCount::new(60)));
                    }
                    (Err(CaptureReadError::TimeOutOfRange { .. }), None) => {}
                    (other, _) => panic!("{resolution:?} {offset:?} {ticks}: {other:?}"),
                }
            }
        }
    }

    /// Breaks: in concatenated captures, packets belong to the interfaces of their own section.
    #[test]
    fn a_new_section_has_its_own_interfaces() {
        let both = [sample(), sample()].concat();
        let mut reader = CaptureReader::new(both.as_slice()).unwrap();
        let mut seen = vec![];
        while let Some(packet) = reader.next_packet().unwrap() {
            seen.push(packet.interface.0);
        }
        assert_eq!(seen, [0, 0, 0, 1, 1, 1]);
        assert_eq!(reader.interface(InterfaceId(1)).unwrap().name.as_deref(), Some("tap"));
    }
}
