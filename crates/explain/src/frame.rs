//! From the bytes of a captured frame to its innermost TCP segment, through whatever carries it.

mod carrier;
mod tcp;

use arrayvec::ArrayVec;
use farpace_units::Instant;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Headers of other layers that are passed over before TCP: VLAN tags, tunnels, extension headers.
pub const MAX_LAYERS: usize = 16;
/// SACK blocks that fit a TCP header.
pub const MAX_SACK_BLOCKS: usize = 4;

/// FIN, SYN, RST, PSH, ACK, URG, ECE and CWR as in the 14th byte of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data comes from the sender.
    pub const FIN: u8 = 1;
    /// Sequence numbers begin here.
    pub const SYN: u8 = 2;
    /// The connection ends at once.
    pub const RST: u8 = 4;
    /// The end of what a program has written.
    pub const PSH: u8 = 8;
    /// The acknowledgment number is valid.
    pub const ACK: u8 = 16;
    /// ECN echo.
    pub const ECE: u8 = 64;

    /// True if all bits of `mask` are set.
    pub const fn has(self, mask: u8) -> bool {
        self.0 & mask == mask
    }
}

/// One TCP segment as captured.
#[derive(Clone, Debug)]
pub struct CapturedSegment {
    /// Number of the frame in the capture, from 1, as Wireshark counts.
    pub frame: u64,
    /// When it was captured.
    pub time: Instant,
    /// Interface of the capture.
    pub interface: u32,
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ.
    pub seq: u32,
    /// SEG.ACK.
    pub ack: u32,
    /// The flags.
    pub flags: Flags,
    /// SEG.WND, not scaled; of records, as it is.
    pub window: u32,
    /// Payload bytes, also those that were not captured.
    pub len: u32,
    /// The options.
    pub options: Options,
    /// IPv4 identification; 0 over IPv6.
    pub ip_id: u16,
    /// Time to live or hop limit.
    pub ttl: u8,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// Length of the IP packet, in bytes.
    pub ip_len: u32,
    /// The whole segment was captured and its checksum is wrong; none if that cannot be said.
    pub damaged: Option<bool>,
}

/// TCP options that the analysis uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// TSval and TSecr.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks in wire order: left edge, right edge.
    pub sack: ArrayVec<(u32, u32), MAX_SACK_BLOCKS>,
    /// The header was cut off by the snap length, so options may be missing.
    pub cut: bool,
}

impl Options {
    /// TSval.
    pub fn tsval(&self) -> Option<u32> {
        self.timestamps.map(|(value, _)| value)
    }
}

/// What was found in a frame.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "it lives for one packet")]
pub enum Found {
    /// A TCP segment. Frame number, time and interface are the caller's.
    Tcp(CapturedSegment),
    /// ICMP that says that a packet was too big: its source's next hop takes so many bytes (0: not said).
    TooBig {
        /// The sender of the packet that was too big.
        src: IpAddr,
        /// Its destination.
        dst: IpAddr,
        /// Bytes of the next hop.
        mtu: u32,
    },
    /// A link type that is not known.
    Foreign,
    /// Anything else.
    Other,
    /// Too little was captured to see whether it is TCP.
    TooShort,
    /// A fragment after the first, which has no TCP header.
    Fragment,
}

/// Looks into a frame of link type `link_type` (as in pcap) that had `original_len` bytes on the wire.
pub fn read(link_type: u16, bytes: &[u8], original_len: u64) -> Found {
    carrier::read(link_type, bytes, u32::try_from(original_len).unwrap_or(u32::MAX))
}

/// IP addresses of a header, where there are enough bytes.
pub(crate) fn v4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let four: [u8; 4] = *bytes.get(at..)?.first_chunk()?;
    Some(IpAddr::V4(Ipv4Addr::from(four)))
}

pub(crate) fn v6(bytes: &[u8], at: usize) -> Option<IpAddr> {
    let sixteen: [u8; 16] = *bytes.get(at..)?.first_chunk()?;
    Some(IpAddr::V6(Ipv6Addr::from(sixteen)))
}

pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
