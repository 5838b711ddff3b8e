//! The Ethernet header (IEEE 802.3) with its 802.1Q tags, which are not interpreted.

use crate::error::{Layer, WireError};
use arrayvec::ArrayVec;
use std::fmt;

/// Maximum number of VLAN tags. A frame with more has an unknown EtherType.
pub const MAX_VLAN_TAGS: usize = 2;
/// Bytes of the header without tags.
pub const ETHERNET_LEN: usize = 14;
/// Bytes of the longest header.
pub const MAX_ETHERNET_LEN: usize = ETHERNET_LEN + 4 * MAX_VLAN_TAGS;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// The broadcast address.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);
    /// Destination of PAUSE frames (IEEE 802.3 Annex 31B): the port at the other end of the link.
    pub const MAC_CONTROL: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x01]);
    /// The nearest bridge (IEEE 802.1Q Table 8-1). No relay forwards frames to it, not even a two-port relay,
    /// whatever their EtherType.
    pub const NEAREST_BRIDGE: MacAddr = MacAddr([0x01, 0x80, 0xc2, 0, 0, 0x0e]);
    /// True for a group address, broadcast included.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }
    /// True for 01-80-C2-00-00-00 to 01-80-C2-00-00-0F, which bridges do not forward (IEEE 802.1Q §8.6.3).
    #[inline]
    pub const fn is_link_local_group(self) -> bool {
        matches!(self.0, [0x01, 0x80, 0xc2, 0, 0, 0..=0x0f])
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// What an Ethernet frame carries. Below 1536 it is a length (IEEE 802.3) and the frame carries LLC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// Address resolution.
    pub const ARP: EtherType = EtherType(0x0806);
    /// An 802.1Q tag follows.
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// MAC control: PAUSE.
    pub const MAC_CONTROL: EtherType = EtherType(0x8808);
    /// Local experimental EtherType 1 (IEEE 802).
    pub const EXPERIMENTAL: EtherType = EtherType(0x88b5);
    /// An 802.1ad service tag follows.
    pub const SERVICE_VLAN: EtherType = EtherType(0x88a8);

    const fn is_tag(self) -> bool {
        self.0 == EtherType::VLAN.0 || self.0 == EtherType::SERVICE_VLAN.0
    }
}

impl fmt::Debug for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x}", self.0)
    }
}

/// A VLAN tag, not interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VlanTag {
    /// [`EtherType::VLAN`] or [`EtherType::SERVICE_VLAN`].
    pub kind: EtherType,
    /// Priority, drop eligibility and VLAN number as on the wire.
    pub control: u16,
}

/// The Ethernet header in parsed form.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EthernetHeader {
    /// Destination.
    pub dst: MacAddr,
    /// Source.
    pub src: MacAddr,
    /// Tags, outermost first.
    pub tags: ArrayVec<VlanTag, MAX_VLAN_TAGS>,
    /// The EtherType after the tags.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Parses the header at the start of `bytes` and returns its length.
    pub fn parse(bytes: &[u8]) -> Result<(EthernetHeader, usize), WireError> {
        let (ether_type, len) = extent(bytes)?;
        let mut header = EthernetHeader { ether_type, ..EthernetHeader::default() };
        if let Some((dst, rest)) = bytes.split_first_chunk() {
            header.dst = MacAddr(*dst);
            if let Some(src) = rest.first_chunk() {
                header.src = MacAddr(*src);
            }
        }
        let (tags, _) = bytes[12..len - 2].as_chunks::<4>();
        for &[k0, k1, c0, c1] in tags.iter().take(MAX_VLAN_TAGS) {
            let kind = EtherType(u16::from_be_bytes([k0, k1]));
            header.tags.push(VlanTag { kind, control: u16::from_be_bytes([c0, c1]) });
        }
        Ok((header, len))
    }

    /// Writes the header and returns its length.
    #[inline]
    pub fn encode(&self, out: &mut [u8; MAX_ETHERNET_LEN]) -> usize {
        out[..6].copy_from_slice(&self.dst.0);
        out[6..12].copy_from_slice(&self.src.0);
        let mut at = 12;
        for tag in &self.tags {
            out[at..at + 2].copy_from_slice(&tag.kind.0.to_be_bytes());
            out[at + 2..at + 4].copy_from_slice(&tag.control.to_be_bytes());
            at += 4;
        }
        out[at..at + 2].copy_from_slice(&self.ether_type.0.to_be_bytes());
        at + 2
    }
}

/// The EtherType after the tags, and the offset of the payload.
#[inline]
pub(crate) fn extent(bytes: &[u8]) -> Result<(EtherType, usize), WireError> {
    let mut len = ETHERNET_LEN;
    loop {
        let Some(&[a, b]) = bytes.get(len - 2..len).and_then(|field| field.first_chunk()) else {
            return Err(WireError::Truncated { layer: Layer::Ethernet, need: len, have: bytes.len() });
        };
        let ether_type = EtherType(u16::from_be_bytes([a, b]));
        if !ether_type.is_tag() || len == MAX_ETHERNET_LEN {
            return Ok((ether_type, len));
        }
        len += 4;
    }
}
