//! The classic pcap format (draft-ietf-opsawg-pcap): a header with one link type, then packets.

use super::{CaptureInterface, CaptureReadError, CaptureReader, CapturedPacket, MAX_BLOCK};
use crate::pcapng::InterfaceId;
use farpace_units::ByteCount;
use std::io::Read;

const FILE_HEADER: usize = 24;
const RECORD_HEADER: usize = 16;
/// Magic numbers of files with times in microseconds and in nanoseconds.
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// Byte order and resolution from the first four bytes of a classic file: whether it is big-endian, and the
/// decimal exponent of its time units.
fn magic(start: &[u8]) -> Option<(bool, u8)> {
    let &start = start.first_chunk()?;
    match (u32::from_be_bytes(start), u32::from_le_bytes(start)) {
        (MICROSECONDS, _) => Some((true, 6)),
        (NANOSECONDS, _) => Some((true, 9)),
        (_, MICROSECONDS) => Some((false, 6)),
        (_, NANOSECONDS) => Some((false, 9)),
        _ => None,
    }
}

impl<R: Read> CaptureReader<R> {
    /// Reads the header of a classic file, if the first bytes are one. Otherwise returns false.
    pub(super) fn begin_classic(&mut self) -> Result<bool, CaptureReadError> {
        let Some((big_endian, resolution)) = magic(&self.block) else { return Ok(false) };
        self.classic = true;
        self.big_endian = big_endian;
        if !self.fill(FILE_HEADER)? {
            return Err(CaptureReadError::Truncated { offset: self.offset });
        }
        let link = self.u32_at(20);
        self.interfaces.push(CaptureInterface {
            name: None,
            description: None,
            link_type: link as u16,
            snaplen: Some(self.u32_at(16)).filter(|&n| n > 0),
            // The upper half: whether the length of the frame check sequence is given, and that length in
            // 16-bit words.
            fcs_bytes: if link & 0x0400_0000 == 0 { 0 } else { (link >> 28) as u8 * 2 },
            resolution,
            offset: 0,
        });
        Ok(true)
    }

    /// The next packet of a classic file.
    pub(super) fn next_classic(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureReadError> {
        self.offset += self.block.len() as u64;
        let offset = self.offset;
        self.block.clear();
        if !self.fill(RECORD_HEADER)? {
            return if self.block.is_empty() {
                Ok(None)
            } else {
                Err(CaptureReadError::Truncated { offset })
            };
        }
        let [seconds, fraction, length, original] = [0, 4, 8, 12].map(|at| self.u32_at(at));
        if length as usize > MAX_BLOCK {
            return Err(CaptureReadError::BlockTooLong { offset, length });
        }
        if !self.fill(RECORD_HEADER + length as usize)? {
            return Err(CaptureReadError::Truncated { offset });
        }
        let late = CaptureReadError::TimeOutOfRange { offset };
        let interface =
            self.interfaces.first().ok_or(CaptureReadError::UnknownInterface { offset, interface: 0 })?;
        let ticks = 10u64.pow(u32::from(interface.resolution)) * u64::from(seconds) + u64::from(fraction);
        Ok(Some(CapturedPacket {
            interface: InterfaceId(0),
            time: interface.time(ticks).ok_or(late)?,
            original_len: ByteCount::new(u64::from(original)),
            data: self.block.get(RECORD_HEADER..).unwrap_or_default(),
            comment: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Instant;

    const PACKETS: [(u32, u32, &[u8], u32); 2] =
        [(3, 7, b"abcde", 5), (1_700_000_000, 999_999, b"xyz", 1514)];

    fn file(big_endian: bool, magic: u32) -> Vec<u8> {
        let n = |n: u32| if big_endian { n.to_be_bytes() } else { n.to_le_bytes() };
        let mut bytes = [n(magic), n(2 << 16 | 4), n(0), n(0), n(262_144), n(0x2400_0001)].concat();
        for (seconds, fraction, data, original) in PACKETS {
            let header = [n(seconds), n(fraction), n(data.len() as u32), n(original)];
            bytes.extend([&header.concat(), data].concat());
        }
        bytes
    }

    fn count(bytes: &[u8]) -> Result<usize, CaptureReadError> {
        let mut reader = CaptureReader::new(bytes)?;
        let mut packets = 0;
        while reader.next_packet()?.is_some() {
            packets += 1;
        }
        Ok(packets)
    }

    /// Breaks: captures of tcpdump are read, in either byte order and either resolution.
    #[test]
    fn all_four_variants_are_read() {
        for big_endian in [false, true] {
            for (magic, unit) in [(MICROSECONDS, 1_000), (NANOSECONDS, 1)] {
                let bytes = file(big_endian, magic);
                let mut reader = CaptureReader::new(bytes.as_slice()).unwrap();
                for (seconds, fraction, data, original) in PACKETS {
                    let packet = reader.next_packet().unwrap().unwrap();
                    let nanos = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * unit;
                    assert_eq!((packet.time, packet.data), (Instant::from_nanos(nanos), data));
                    assert_eq!(packet.original_len, ByteCount::new(original.into()));
                }
                assert_eq!(reader.next_packet().unwrap(), None);
                let interface = reader.interface(InterfaceId(0)).unwrap();
                assert_eq!((interface.link_type, interface.snaplen), (1, Some(262_144)));
                assert_eq!(interface.fcs_bytes, 4);
            }
        }
    }

    /// Breaks: truncation within a packet is reported, and a wrong length does not allocate memory.
    #[test]
    fn truncation_and_wrong_lengths_are_reported() {
        let whole = file(false, MICROSECONDS);
        let ends = [24, 24 + 16 + 5, whole.len()];
        for cut in 4..=whole.len() {
            match (count(&whole[..cut]), ends.iter().position(|&end| end == cut)) {
                (Ok(packets), Some(expected)) => assert_eq!(packets, expected),
                (Err(CaptureReadError::Truncated { .. }), None) => {}
                (other, _) => panic!("{cut}: {other:?}"),
            }
        }
        let mut wrong = whole;
        wrong[24 + 8..24 + 12].fill(0xff);
        assert_eq!(
            count(&wrong).unwrap_err().to_string(),
            "the block at byte 24 has a length of 4294967295 bytes; the maximum is 1048576"
        );
    }
}
