//! Format of repair requests and refusals.

use crate::multi_nic::segment::MultiNicFlowKey;
use arrayvec::ArrayVec;
use crc::{CRC_32_ISCSI, Crc};
use farpace_units::Seq;
use farpace_wire::{AddressPair, EtherType, MacAddr, Packet};
use std::net::{Ipv4Addr, Ipv6Addr};
use thiserror::Error;

/// Maximum number of holes in a message.
pub const MAX_HOLES: usize = 16;

/// A repair request, or its refusal: holes in one flow.
///
/// It is the payload of a frame with the experimental EtherType. All numbers are big-endian:
///
/// | bytes | content |
/// |---|---|
/// | 4 | `fpms` |
/// | 1, 1 | version 1; 1: repair request, 2: refusal |
/// | 1, 1 | IP version, 4 or 6; number of holes, 1 to 16 |
/// | 4, 4 or 16, 16 | source and destination address of the missing segments |
/// | 2, 2 | source and destination port |
/// | 4 | end of the range that the message covers: outside of the holes, all up to here has arrived |
/// | 4, 4 each | first sequence number of a hole, first sequence number behind it |
/// | 4 | CRC-32C of all preceding bytes |
///
/// Whatever follows is padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairMessage {
    /// True for a refusal: the sender no longer has these segments.
    pub refused: bool,
    /// The flow.
    pub flow: MultiNicFlowKey,
    /// End of the covered range: outside of the holes, all up to here has arrived.
    pub upto: Seq,
    /// The holes; none of them is empty.
    pub holes: ArrayVec<MissingRange, MAX_HOLES>,
}

/// A range of missing sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingRange {
    /// The first sequence number.
    pub start: Seq,
    /// The sequence number behind the last.
    pub end: Seq,
}

/// Why a frame is not a valid repair message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RepairMessageError {
    /// It is too short.
    #[error("{have} bytes of a message of {need}")]
    Truncated {
        /// Required bytes.
        need: usize,
        /// Available bytes.
        have: usize,
    },
    /// The version is unknown.
    #[error("version {0} of repair messages")]
    Version(u8),
    /// It is neither a request nor a refusal.
    #[error("kind {0} of repair messages")]
    Kind(u8),
    /// It is neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Family(u8),
    /// The number of holes is out of range.
    #[error("{0} holes in one message")]
    Holes(u8),
    /// A hole ends where it begins, or before.
    #[error("an empty hole")]
    Empty,
    /// The CRC is wrong.
    #[error("wrong check sequence")]
    Damaged,
}

const MAGIC: [u8; 4] = *b"fpms";
const VERSION: u8 = 1;
const REQUEST: u8 = 1;
const REFUSAL: u8 = 2;
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// Length of the part before the addresses.
const FIXED: usize = 8;
const PORTS: usize = 4;
const UPTO: usize = 4;
const HOLE: usize = 8;
const CHECK: usize = 4;
/// Payload length of the minimum Ethernet frame.
const MIN_PAYLOAD: usize = 46;

impl RepairMessage {
    /// The message in a frame; none if the frame carries something else.
    pub fn of(packet: &Packet) -> Option<Result<RepairMessage, RepairMessageError>> {
        let carries = packet.ethernet().is_ok_and(|header| header.ether_type == EtherType::EXPERIMENTAL);
        let ours = carries && packet.payload().starts_with(&MAGIC) && !farpace_path::ends_at_port(packet);
        ours.then(|| RepairMessage::parse(packet.payload()))
    }
    /// Parses a message.
    ///
    /// # Errors
    /// See [`RepairMessageError`]. An invalid message has no effect.
    pub fn parse(bytes: &[u8]) -> Result<RepairMessage, RepairMessageError> {
        let have = bytes.len();
        let short = |need: usize| RepairMessageError::Truncated { need, have };
        let (fixed, rest) = bytes.split_first_chunk::<FIXED>().ok_or(short(FIXED))?;
        let [_, _, _, _, version, kind, family, count] = *fixed;
        if version != VERSION {
            return Err(RepairMessageError::Version(version));
        }
        let gone = match kind {
            REQUEST => false,
            REFUSAL => true,
            other => return Err(RepairMessageError::Kind(other)),
        };
        let addresses = match family {
            4 => 8,
            6 => 32,
            other => return Err(RepairMessageError::Family(other)),
        };
        if count == 0 || usize::from(count) > MAX_HOLES {
            return Err(RepairMessageError::Holes(count));
        }
        let covered = FIXED + addresses + PORTS + UPTO + usize::from(count) * HOLE;
        let need = covered + CHECK;
        let check = bytes.get(covered..).and_then(<[u8]>::first_chunk::<CHECK>).ok_or(short(need))?;
        if bytes.get(..covered).is_none_or(|bytes| CRC.checksum(bytes) != u32::from_be_bytes(*check)) {
            return Err(RepairMessageError::Damaged);
        }
        let (addresses, rest) = addresses_of(family, rest).ok_or(short(need))?;
        let (ports, rest) = rest.split_first_chunk::<PORTS>().ok_or(short(need))?;
        let (upto, mut rest) = rest.split_first_chunk::<UPTO>().ok_or(short(need))?;
        let mut holes = ArrayVec::new();
        for _ in 0..count {
            let (start, behind) = rest.split_first_chunk::<4>().ok_or(short(need))?;
            let (end, behind) = behind.split_first_chunk::<4>().ok_or(short(need))?;
            let number = |bytes: &[u8; 4]| Seq::new(u32::from_be_bytes(*bytes));
            let hole = MissingRange { start: number(start), end: number(end) };
            if hole.end.before_eq(hole.start) {
                return Err(RepairMessageError::Empty);
            }
            holes.push(hole);
            rest = behind;
        }
        let upto = Seq::new(u32::from_be_bytes(*upto));
        Ok(RepairMessage {
            refused: gone,
            flow: MultiNicFlowKey::new(addresses, u32::from_be_bytes(*ports)),
            upto,
            holes,
        })
    }
    /// The message in a frame.
    pub fn frame(&self, from: MacAddr, to: MacAddr) -> Packet {
        let (addresses, ports) = self.flow.parts();
        let mut out = Vec::with_capacity(FIXED + 32 + PORTS + UPTO + self.holes.len() * HOLE + CHECK);
        let family = if matches!(addresses, AddressPair::V4(..)) { 4 } else { 6 };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[
            VERSION,
            if self.refused { REFUSAL } else { REQUEST },
            family,
            self.holes.len() as u8,
        ]);
        match addresses {
            AddressPair::V4(src, dst) => out.extend([src, dst].iter().flat_map(Ipv4Addr::octets)),
            AddressPair::V6(src, dst) => out.extend([src, dst].iter().flat_map(Ipv6Addr::octets)),
        }
        out.extend_from_slice(&ports.to_be_bytes());
        out.extend_from_slice(&self.upto.get().to_be_bytes());
        for hole in &self.holes {
            out.extend_from_slice(&hole.start.get().to_be_bytes());
            out.extend_from_slice(&hole.end.get().to_be_bytes());
        }
        let check = CRC.checksum(&out);
        out.extend_from_slice(&check.to_be_bytes());
        out.resize(out.len().max(MIN_PAYLOAD), 0);
        Packet::from_link(from, to, EtherType::EXPERIMENTAL, out.into())
    }
}

fn addresses_of(family: u8, bytes: &[u8]) -> Option<(AddressPair, &[u8])> {
    if family == 4 {
        let (src, rest) = bytes.split_first_chunk::<4>()?;
        let (dst, rest) = rest.split_first_chunk::<4>()?;
        return Some((AddressPair::V4((*src).into(), (*dst).into()), rest));
    }
    let (src, rest) = bytes.split_first_chunk::<16>()?;
    let (dst, rest) = rest.split_first_chunk::<16>()?;
    Some((AddressPair::V6((*src).into(), (*dst).into()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn missing(v6: bool, gone: bool, holes: &[(u32, u32)]) -> RepairMessage {
        let addresses = match v6 {
            false => AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
            true => AddressPair::V6(Ipv6Addr::from_bits(1), Ipv6Addr::from_bits(2)),
        };
        let hole = |&(start, end): &(u32, u32)| MissingRange { start: Seq::new(start), end: Seq::new(end) };
        let flow = MultiNicFlowKey::new(addresses, 0x1234_0050);
        RepairMessage {
            refused: gone,
            flow,
            upto: Seq::new(0x0102_0304),
            holes: holes.iter().map(hole).collect(),
        }
    }

    /// Breaks: messages have the documented format, so that hosts of the same version understand each other.
    #[test]
    fn messages_have_the_documented_format() {
        let frame = missing(false, false, &[(0xffff_fff0, 0x10)]).frame(A, B);
        assert_eq!(frame.macs(), (A, B));
        let bytes = frame.payload();
        assert_eq!(bytes.len(), MIN_PAYLOAD);
        assert_eq!(&bytes[..16], b"fpms\x01\x01\x04\x01\x0a\x00\x00\x01\x0a\x00\x00\x02");
        assert_eq!(&bytes[16..32], b"\x12\x34\x00\x50\x01\x02\x03\x04\xff\xff\xff\xf0\x00\x00\x00\x10");
        let many: Vec<_> = (0..MAX_HOLES as u32).map(|n| (n * 10, n * 10 + 5)).collect();
        for (v6, gone) in [(false, false), (false, true), (true, false), (true, true)] {
            let message = missing(v6, gone, &many);
            assert_eq!(RepairMessage::of(&message.frame(A, B)), Some(Ok(message)));
        }
    }

    /// Breaks: truncated, damaged and forged messages neither cause retransmissions nor release waiting
    /// frames.
    #[test]
    fn faulty_messages_are_refused() {
        let good = missing(false, false, &[(5, 9)]).frame(A, B).into_payload();
        for len in 0..36 {
            assert!(RepairMessage::parse(&good[..len]).is_err(), "{len} bytes");
        }
        for bit in 32..36 * 8 {
            let mut bad = good.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(RepairMessage::parse(&bad).is_err(), "bit {bit}");
        }
        let with = |at: usize, value: u8| {
            let mut bytes = good[..32].to_vec();
            bytes[at] = value;
            let check = CRC.checksum(&bytes);
            bytes.extend_from_slice(&check.to_be_bytes());
            RepairMessage::parse(&bytes)
        };
        assert_eq!(with(4, 2), Err(RepairMessageError::Version(2)));
        assert_eq!(with(5, 3), Err(RepairMessageError::Kind(3)));
        assert_eq!(with(6, 5), Err(RepairMessageError::Family(5)));
        assert_eq!(with(7, 0), Err(RepairMessageError::Holes(0)));
        assert_eq!(with(7, 17), Err(RepairMessageError::Holes(17)));
        assert_eq!(with(31, 5), Err(RepairMessageError::Empty));
        let other = Packet::from_link(A, B, EtherType::EXPERIMENTAL, b"fpwy".to_vec().into());
        assert_eq!(RepairMessage::of(&other), None);
    }

    proptest! {
        /// Breaks: no input causes a panic, and valid messages read back unchanged.
        #[test]
        fn any_bytes_are_refused_or_read_without_loss(bytes in prop::collection::vec(any::<u8>(), 0..200), valid in any::<bool>()) {
            let mut bytes = bytes;
            if valid && bytes.len() >= 32 {
                bytes[..8].copy_from_slice(&[b'f', b'p', b'm', b's', VERSION, REQUEST, 4, 1]);
                let check = CRC.checksum(&bytes[..32]);
                bytes.truncate(32);
                bytes.extend_from_slice(&check.to_be_bytes());
            }
            match RepairMessage::parse(&bytes) {
                Ok(message) => {
                    let frame = message.frame(A, B);
                    prop_assert_eq!(&frame.payload()[..bytes.len().min(36)], &bytes[..bytes.len().min(36)]);
                }
                Err(RepairMessageError::Empty) => {}
                Err(_) => prop_assert!(!valid || bytes.len() < 32),
            }
        }
    }
}
