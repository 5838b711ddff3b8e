//! The common parts of IPv4 and IPv6.

use crate::checksum::Sum;
use crate::fragment_position::Fragment;
use crate::ipv4::Ipv4View;
use crate::ipv6::{ExtensionFault, Ipv6View};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol number of ICMP for IPv4 (RFC 792).
pub const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of TCP, in IPv4 and IPv6 alike.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP, in IPv4 and IPv6 alike.
pub const PROTOCOL_UDP: u8 = 17;
/// Protocol number of ICMP for IPv6 (RFC 4443).
pub const PROTOCOL_ICMPV6: u8 = 58;

/// The two bits of explicit congestion notification (RFC 3168 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Ecn {
    /// The sender does not support ECN.
    #[default]
    NotEct = 0,
    /// ECT(1): supports ECN; also the identifier of L4S (RFC 9331).
    Ect1 = 1,
    /// ECT(0): supports ECN.
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the two lowest bits of the traffic class byte.
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }
    /// The two bits.
    pub const fn bits(self) -> u8 {
        self as u8
    }
    /// True if a router may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// Source and destination of a packet, of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressPair {
    /// Source and destination.
    V4(Ipv4Addr, Ipv4Addr),
    /// Source and destination.
    V6(Ipv6Addr, Ipv6Addr),
}

impl AddressPair {
    /// A pair; none if the families differ.
    pub const fn new(src: IpAddr, dst: IpAddr) -> Option<AddressPair> {
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Some(AddressPair::V4(src, dst)),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Some(AddressPair::V6(src, dst)),
            _ => None,
        }
    }
    /// Source.
    pub const fn src(&self) -> IpAddr {
        match self {
            AddressPair::V4(src, _) => IpAddr::V4(*src),
            AddressPair::V6(src, _) => IpAddr::V6(*src),
        }
    }
    /// Destination.
    pub const fn dst(&self) -> IpAddr {
        match self {
            AddressPair::V4(_, dst) => IpAddr::V4(*dst),
            AddressPair::V6(_, dst) => IpAddr::V6(*dst),
        }
    }
    /// The pair of the reverse direction.
    #[must_use]
    pub const fn reversed(self) -> AddressPair {
        match self {
            AddressPair::V4(src, dst) => AddressPair::V4(dst, src),
            AddressPair::V6(src, dst) => AddressPair::V6(dst, src),
        }
    }
    /// Bytes of the IP header without options or extension headers: 20 or 40.
    pub const fn ip_header_len(&self) -> usize {
        match self {
            AddressPair::V4(..) => crate::ipv4::IPV4_LEN,
            AddressPair::V6(..) => crate::ipv6::IPV6_LEN,
        }
    }
    /// The pseudo header that transport checksums begin with (RFC 9293 §3.1, RFC 8200 §8.1), for `len` bytes
    /// of header and payload.
    pub fn pseudo_header(&self, protocol: u8, len: u32) -> Sum {
        let addresses = match self {
            AddressPair::V4(src, dst) => Sum::new().bytes(&src.octets()).bytes(&dst.octets()),
            AddressPair::V6(src, dst) => Sum::new().bytes(&src.octets()).bytes(&dst.octets()),
        };
        addresses.word((len >> 16) as u16).word(len as u16).word(u16::from(protocol))
    }
}

/// A view of an IP header of either version in a packet.
#[derive(Clone, Copy, Debug)]
pub enum IpView<'a> {
    /// IPv4.
    V4(Ipv4View<'a>),
    /// IPv6, with the extension headers that were parsed.
    V6(Ipv6View<'a>),
}

impl<'a> IpView<'a> {
    /// Source.
    #[inline]
    pub fn src(&self) -> IpAddr {
        match self {
            IpView::V4(ip) => ip.src().into(),
            IpView::V6(ip) => ip.src().into(),
        }
    }
    /// Destination.
    #[inline]
    pub fn dst(&self) -> IpAddr {
        match self {
            IpView::V4(ip) => ip.dst().into(),
            IpView::V6(ip) => ip.dst().into(),
        }
    }
    /// Source and destination.
    #[inline]
    pub fn addresses(&self) -> AddressPair {
        match self {
            IpView::V4(ip) => AddressPair::V4(ip.src(), ip.dst()),
            IpView::V6(ip) => AddressPair::V6(ip.src(), ip.dst()),
        }
    }
    /// Length of the header, with options or parsed extension headers.
    #[inline]
    pub const fn header_len(&self) -> usize {
        match self {
            IpView::V4(ip) => ip.header_len(),
            IpView::V6(ip) => ip.header_len(),
        }
    }
    /// Length of header and payload according to the header: at most 65575.
    #[inline]
    pub const fn total_len(&self) -> usize {
        match self {
            IpView::V4(ip) => ip.total_len() as usize,
            IpView::V6(ip) => crate::ipv6::IPV6_LEN + ip.payload_len() as usize,
        }
    }
    /// Time to live, or hop limit.
    #[inline]
    pub const fn ttl(&self) -> u8 {
        match self {
            IpView::V4(ip) => ip.ttl(),
            IpView::V6(ip) => ip.hop_limit(),
        }
    }
    /// DSCP and ECN: the byte.
    #[inline]
    pub const fn tos(&self) -> u8 {
        match self {
            IpView::V4(ip) => ip.tos(),
            IpView::V6(ip) => ip.traffic_class(),
        }
    }
    /// Differentiated services code point (RFC 2474), 6 bits.
    #[inline]
    pub const fn dscp(&self) -> u8 {
        self.tos() >> 2
    }
    /// Explicit congestion notification.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.tos())
    }
    /// The protocol after the extension headers. For IPv6 this may be the number of an extension header that
    /// was not parsed (see [`Ipv6View::protocol`]).
    #[inline]
    pub const fn protocol(&self) -> u8 {
        match self {
            IpView::V4(ip) => ip.protocol(),
            IpView::V6(ip) => ip.protocol(),
        }
    }
    /// The position of a fragment; none for a whole datagram.
    #[inline]
    pub fn fragment(&self) -> Option<Fragment> {
        match self {
            IpView::V4(ip) if ip.is_fragment() => Some(Fragment {
                ident: ip.ident().into(),
                offset: u32::from(ip.fragment_offset()) * 8,
                more: ip.more_fragments(),
            }),
            IpView::V4(_) => None,
            IpView::V6(ip) => ip.fragment().filter(|fragment| !fragment.is_whole()),
        }
    }
    /// True for a fragment of a datagram.
    #[inline]
    pub const fn is_fragment(&self) -> bool {
        match self {
            IpView::V4(ip) => ip.is_fragment(),
            IpView::V6(ip) => match ip.fragment() {
                Some(fragment) => !fragment.is_whole(),
                None => false,
            },
        }
    }
    /// True if routers must not fragment the packet: always in IPv6.
    #[inline]
    pub const fn dont_fragment(&self) -> bool {
        match self {
            IpView::V4(ip) => ip.dont_fragment(),
            IpView::V6(_) => true,
        }
    }
    /// Why a host must discard the packet because of its IPv6 extension headers.
    pub const fn extension_fault(&self) -> Option<ExtensionFault> {
        match self {
            IpView::V4(_) => None,
            IpView::V6(ip) => ip.fault(),
        }
    }

    /// True for an IPv4 packet with a source route that has not ended here.
    pub fn is_source_routed(&self) -> bool {
        matches!(self, IpView::V4(ip) if ip.is_source_routed())
    }

    /// The protocol number of ICMP for this version.
    #[inline]
    pub const fn icmp_protocol(&self) -> u8 {
        match self {
            IpView::V4(_) => PROTOCOL_ICMP,
            IpView::V6(_) => PROTOCOL_ICMPV6,
        }
    }
    /// The pseudo-header for `len` bytes after the header.
    #[inline]
    pub fn pseudo_header(&self, protocol: u8, len: usize) -> Sum {
        match self {
            // The length of a packet in memory equals its length field of 16 bits.
            IpView::V4(ip) => ip.pseudo_header(protocol, len as u16),
            IpView::V6(ip) => ip.pseudo_header(protocol, len as u32),
        }
    }
}
