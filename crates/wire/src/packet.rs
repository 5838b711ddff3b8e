//! One Ethernet frame in flight.

use crate::checksum::Sum;
use crate::error::{Layer, WireError};
use crate::ethernet::{self, EtherType, EthernetHeader, MAX_ETHERNET_LEN};
use crate::ipv4::{Ipv4View, MAX_IPV4_LEN, PROTOCOL_TCP};
use crate::ipv6::{IPV6_LEN, Ipv6View};
use crate::tcp::{CHECKSUM_AT, MAX_TCP_LEN, TcpView};
use bytes::Bytes;
use farpace_units::ByteCount;
use std::fmt;
use std::net::SocketAddr;

/// Room for the longest headers: Ethernet with its tags, IPv4 and TCP, both with 40 bytes of options.
pub(crate) const HEADER_ROOM: usize = 144;
const _: () = assert!(MAX_ETHERNET_LEN + MAX_IPV4_LEN + MAX_TCP_LEN <= HEADER_ROOM);

/// One Ethernet frame (without FCS) in flight: real header bytes, and the payload by reference. Moving it moves
/// one pointer; on its way the payload is never copied, except to damage it.
///
/// The headers are what was found when the packet was made: Ethernet, then IP if it is IP, then TCP if it is a
/// whole TCP segment. Everything after them is the payload. If [`flip_bit`](Packet::flip_bit) makes the bytes
/// tell another story, the views refuse them.
#[derive(Clone)]
pub struct Packet(Box<Inner>);

#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) payload: Bytes,
    pub(crate) header: [u8; HEADER_ROOM],
    pub(crate) header_len: u8,
    /// Where the IP header begins, or whatever follows Ethernet.
    pub(crate) network_offset: u8,
    /// Where the bytes after the IP header begin; `header_len` if the headers end there.
    pub(crate) transport_offset: u8,
    pub(crate) checksum: Checksum,
}

/// What the transport checksum field is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// The field is as it came, or as it was worked out; a receiver verifies it.
    Complete,
    /// The field is not yet right, as with checksum offload: it is worked out when the packet is written or
    /// damaged. A receiver trusts such a packet.
    Partial,
}

/// The network header, found to agree with the packet's extents.
enum Network<'a> {
    V4(Ipv4View<'a>),
    V6(Ipv6View<'a>),
    Other(EtherType),
}

impl Packet {
    pub(crate) const fn from_inner(inner: Box<Inner>) -> Self {
        Packet(inner)
    }

    /// Reads a whole frame without FCS, of any EtherType and protocol. What this crate does not know, and every
    /// IP fragment, is payload after the last known header. Bytes beyond the IP length (Ethernet padding) are
    /// not part of the packet. Checksums are not looked at; the packet is [`Checksum::Complete`].
    ///
    /// An Ethernet, IP or TCP header that is cut short or whose lengths are impossible is an error.
    pub fn from_frame(frame: &[u8]) -> Result<Packet, WireError> {
        let (ether_type, network) = ethernet::extent(frame)?;
        let ip = &frame[network..];
        let (ip_header, end, is_tcp) = match ether_type {
            EtherType::IPV4 => {
                let view = Ipv4View::parse(ip)?;
                let is_tcp = view.protocol() == PROTOCOL_TCP && !view.is_fragment();
                (view.header_len(), usize::from(view.total_len()), is_tcp)
            }
            EtherType::IPV6 => {
                let view = Ipv6View::parse(ip)?;
                (IPV6_LEN, IPV6_LEN + usize::from(view.payload_len()), view.next_header() == PROTOCOL_TCP)
            }
            _ => (0, ip.len(), false),
        };
        let Some(ip) = ip.get(..end) else {
            let layer = if ether_type == EtherType::IPV4 { Layer::Ipv4 } else { Layer::Ipv6 };
            return Err(WireError::TotalLength { layer, says: end, have: ip.len() });
        };
        let tcp_header = if is_tcp { TcpView::parse(&ip[ip_header..])?.header_len() } else { 0 };
        let header_len = network + ip_header + tcp_header;
        let mut header = [0; HEADER_ROOM];
        header[..header_len].copy_from_slice(&frame[..header_len]);
        Ok(Packet(Box::new(Inner {
            payload: Bytes::copy_from_slice(&ip[ip_header + tcp_header..]),
            header,
            header_len: header_len as u8,
            network_offset: network as u8,
            transport_offset: (network + ip_header) as u8,
            checksum: Checksum::Complete,
        })))
    }

    /// Bytes of the frame, without FCS, preamble and padding.
    #[inline]
    pub fn len(&self) -> ByteCount {
        ByteCount::of_len(self.frame_len())
    }
    /// Bytes of the IP packet (the IPv4 total length), or of whatever follows the Ethernet header.
    #[inline]
    pub fn network_len(&self) -> ByteCount {
        ByteCount::of_len(self.frame_len() - usize::from(self.0.network_offset))
    }
    /// Never: a packet has at least an Ethernet header.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The bytes of all headers. With [`Checksum::Partial`] the TCP checksum field among them is not right.
    #[inline]
    pub fn headers(&self) -> &[u8] {
        &self.0.header[..usize::from(self.0.header_len)]
    }
    /// What follows the headers.
    #[inline]
    pub fn payload(&self) -> &Bytes {
        &self.0.payload
    }
    /// Keeps the payload alone.
    #[inline]
    pub fn into_payload(self) -> Bytes {
        self.0.payload
    }
    /// What the TCP checksum field is worth.
    #[inline]
    pub fn checksum(&self) -> Checksum {
        self.0.checksum
    }

    /// The Ethernet header. An error only if damage made it another length.
    pub fn ethernet(&self) -> Result<EthernetHeader, WireError> {
        let (header, len) = EthernetHeader::parse(self.headers())?;
        match len == usize::from(self.0.network_offset) {
            true => Ok(header),
            false => Err(WireError::HeaderLength { layer: Layer::Ethernet, len }),
        }
    }
    /// The IPv4 header, if the packet has one and its lengths agree with the packet.
    #[inline]
    pub fn ipv4(&self) -> Option<Ipv4View<'_>> {
        match self.network() {
            Ok(Network::V4(view)) => Some(view),
            _ => None,
        }
    }
    /// The IPv6 header, if the packet has one and its length agrees with the packet.
    pub fn ipv6(&self) -> Option<Ipv6View<'_>> {
        match self.network() {
            Ok(Network::V6(view)) => Some(view),
            _ => None,
        }
    }
    /// The TCP header. An error if the packet is not a whole TCP segment in IPv4 or IPv6, or if damage made a
    /// length disagree with the packet.
    #[inline]
    pub fn tcp(&self) -> Result<TcpView<'_>, WireError> {
        self.tcp_within(&self.network()?)
    }

    /// IPv4 and TCP headers together, as [`ipv4`](Self::ipv4) and [`tcp`](Self::tcp) would give them, for the
    /// price of one look.
    #[inline]
    pub fn ipv4_tcp(&self) -> Result<(Ipv4View<'_>, TcpView<'_>), WireError> {
        let network = self.network()?;
        let tcp = self.tcp_within(&network)?;
        match network {
            Network::V4(ip) => Ok((ip, tcp)),
            Network::V6(_) | Network::Other(_) => Err(WireError::NotIp(EtherType::IPV6.0)),
        }
    }

    /// Whether the IPv4 header checksum and, for a whole TCP segment, the TCP checksum are right. The first
    /// wrong one is the error, or the header that cannot be read. A packet that has neither checksum is right,
    /// and so is one with [`Checksum::Partial`]: it has not left the hands of this program.
    #[inline]
    pub fn verify_checksums(&self) -> Result<(), WireError> {
        if self.0.checksum == Checksum::Partial { Ok(()) } else { self.verify_complete() }
    }

    fn verify_complete(&self) -> Result<(), WireError> {
        let network = self.network()?;
        if let Network::V4(view) = &network {
            view.verify_checksum()?;
        }
        match self.tcp_within(&network) {
            Ok(_) if self.tcp_sum(&network).finish() == 0 => Ok(()),
            Ok(_) => Err(WireError::Checksum { layer: Layer::Tcp }),
            Err(WireError::NotIp(_) | WireError::NotTcp(_) | WireError::Fragment) => Ok(()),
            Err(malformed) => Err(malformed),
        }
    }

    /// Works the TCP checksum out and writes it into its field, if that is still to be done.
    pub fn complete_checksum(&mut self) {
        if let Some((at, sum)) = self.missing_checksum() {
            self.0.header[at..at + 2].copy_from_slice(&sum);
        }
        self.0.checksum = Checksum::Complete;
    }

    /// Inverts one bit of the frame, number `bit` modulo the bits there are, counted as they stand on the wire:
    /// bit 0 is the top bit of the first byte. The checksum is completed first, so that a receiver sees the
    /// damage. The payload is copied only if the bit lies in it.
    ///
    /// Nothing is found anew: what the headers and the payload are stays as it was, and the views refuse header
    /// bytes that now say otherwise.
    pub fn flip_bit(&mut self, bit: u64) {
        self.complete_checksum();
        let bit = bit % self.len().bits();
        let (byte, mask) = ((bit / 8) as usize, 0x80 >> (bit % 8));
        let header_len = usize::from(self.0.header_len);
        if byte < header_len {
            self.0.header[byte] ^= mask;
        } else {
            let mut payload = self.0.payload.to_vec();
            payload[byte - header_len] ^= mask;
            self.0.payload = Bytes::from(payload);
        }
    }

    /// Counts the IPv4 time to live down, as a router does, and adjusts the header checksum by the difference
    /// alone (RFC 1624 eq. 3), so that a header that came in wrong goes out wrong. A packet that is not IPv4,
    /// or whose time is over, stays as it is.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        let Some(ip) = self.ipv4() else { return };
        if ip.ttl() == 0 {
            return;
        }
        let was = u16::from_be_bytes([ip.ttl(), ip.protocol()]);
        let sum = u32::from(!ip.checksum()) + u32::from(!was) + u32::from(was - 0x100);
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        let at = usize::from(self.0.network_offset);
        self.0.header[at + 8] -= 1;
        self.0.header[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }

    /// Appends the whole frame, without FCS, to `out`. A [`Checksum::Partial`] is worked out on the way.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.reserve(self.frame_len());
        out.extend_from_slice(self.headers());
        if let Some((at, sum)) = self.missing_checksum() {
            out[start + at..start + at + 2].copy_from_slice(&sum);
        }
        out.extend_from_slice(&self.0.payload);
    }

    fn frame_len(&self) -> usize {
        usize::from(self.0.header_len) + self.0.payload.len()
    }

    /// The network header, if its bytes still agree with the extents found when the packet was made.
    #[inline]
    fn network(&self) -> Result<Network<'_>, WireError> {
        let (network, transport) = (usize::from(self.0.network_offset), usize::from(self.0.transport_offset));
        let headers = self.headers();
        let (ether_type, len) = ethernet::extent(headers)?;
        if len != network {
            return Err(WireError::HeaderLength { layer: Layer::Ethernet, len });
        }
        let have = self.frame_len() - network;
        let ip = &headers[network..transport];
        match ether_type {
            EtherType::IPV4 => {
                let (layer, view) = (Layer::Ipv4, Ipv4View::parse(ip)?);
                if view.header_len() != transport - network {
                    return Err(WireError::HeaderLength { layer, len: view.header_len() });
                }
                let says = usize::from(view.total_len());
                if says != have {
                    return Err(WireError::TotalLength { layer, says, have });
                }
                Ok(Network::V4(view))
            }
            EtherType::IPV6 => {
                let view = Ipv6View::parse(ip)?;
                let says = IPV6_LEN + usize::from(view.payload_len());
                if says != have {
                    return Err(WireError::TotalLength { layer: Layer::Ipv6, says, have });
                }
                Ok(Network::V6(view))
            }
            other => Ok(Network::Other(other)),
        }
    }

    #[inline]
    fn tcp_within(&self, network: &Network<'_>) -> Result<TcpView<'_>, WireError> {
        let protocol = match network {
            Network::V4(view) if view.is_fragment() => return Err(WireError::Fragment),
            Network::V4(view) => view.protocol(),
            Network::V6(view) => view.next_header(),
            Network::Other(ether_type) => return Err(WireError::NotIp(ether_type.0)),
        };
        if protocol != PROTOCOL_TCP {
            return Err(WireError::NotTcp(protocol));
        }
        let bytes = &self.headers()[usize::from(self.0.transport_offset)..];
        let view = TcpView::parse(bytes)?;
        if view.header_len() != bytes.len() {
            return Err(WireError::HeaderLength { layer: Layer::Tcp, len: view.header_len() });
        }
        Ok(view)
    }

    /// The sum over pseudo header, TCP header with its checksum field as it is, and payload.
    fn tcp_sum(&self, network: &Network<'_>) -> Sum {
        let header = &self.headers()[usize::from(self.0.transport_offset)..];
        let len = header.len() + self.0.payload.len();
        let pseudo = match network {
            Network::V4(view) => view.pseudo_header(len as u16),
            Network::V6(view) => view.pseudo_header(len as u32),
            Network::Other(_) => Sum::new(),
        };
        pseudo.bytes(header).bytes(&self.0.payload)
    }

    /// Where the checksum goes and what it is, if it is still to be worked out. A field that is to be filled
    /// holds zero until then.
    fn missing_checksum(&self) -> Option<(usize, [u8; 2])> {
        if self.0.checksum == Checksum::Complete {
            return None;
        }
        let network = self.network().ok()?;
        self.tcp_within(&network).ok()?;
        let sum = self.tcp_sum(&network).finish();
        Some((usize::from(self.0.transport_offset) + CHECKSUM_AT, sum.to_be_bytes()))
    }
}

impl fmt::Debug for Packet {
    /// One line: `10.0.0.1:5001 > 10.0.0.2:80 PSH|ACK seq 1 ack 1 win 229 len 1448`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (src, dst, protocol) = match self.network() {
            Ok(Network::V4(ip)) => (ip.src().into(), ip.dst().into(), ip.protocol()),
            Ok(Network::V6(ip)) => (ip.src().into(), ip.dst().into(), ip.next_header()),
            Ok(Network::Other(ether_type)) => {
                return write!(f, "EtherType {ether_type:?} len {}", self.0.payload.len());
            }
            Err(why) => return write!(f, "malformed ({why}) len {}", self.frame_len()),
        };
        let len = self.0.payload.len();
        match self.tcp() {
            Ok(tcp) => {
                let (src, dst) = (SocketAddr::new(src, tcp.src_port()), SocketAddr::new(dst, tcp.dst_port()));
                write!(f, "{src} > {dst} {} seq {} ack {}", tcp.flags(), tcp.seq(), tcp.ack())?;
                write!(f, " win {} len {len}", tcp.window())
            }
            Err(WireError::NotTcp(_)) => write!(f, "{src} > {dst} protocol {protocol} len {len}"),
            Err(why) => write!(f, "{src} > {dst} ({why}) len {len}"),
        }
    }
}
