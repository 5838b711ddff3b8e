//! Builds packets: TCP, UDP or ICMP over IPv4 or IPv6 and Ethernet between two fixed addresses.

use crate::checksum::Sum;
use crate::departure::OfOriginal;
use crate::error::{Layer, WireError};
use crate::ethernet::{ETHERNET_LEN, EtherType, MacAddr};
use crate::icmp::{Icmp, IpVersion};
use crate::ip::{AddressPair, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv4::{IPV4_LEN, Ipv4Header};
use crate::ipv6::{IPV6_LEN, Ipv6Header};
use crate::packet::{Checksum, HEADER_ROOM, Packet, PacketInner};
use crate::tcp::TcpHeader;
use crate::udp::{UDP_LEN, UdpHeader};
use bytes::Bytes;
use farpace_units::Instant;

/// The fields that all packets of a connection share below the transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// Ethernet source.
    pub src_mac: MacAddr,
    /// Ethernet destination.
    pub dst_mac: MacAddr,
    /// IP source and destination.
    pub addresses: AddressPair,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// DSCP and ECN: the byte as on the wire.
    pub tos: u8,
    /// The don't fragment flag of IPv4. Routers never fragment IPv6 packets.
    pub dont_fragment: bool,
    /// Flow label of IPv6, 20 bits.
    pub flow_label: u32,
}

impl Below {
    /// Between two hosts, with the don't fragment flag, without ECN or flow label.
    pub const fn new(src_mac: MacAddr, dst_mac: MacAddr, addresses: AddressPair, ttl: u8) -> Self {
        Below { src_mac, dst_mac, addresses, ttl, tos: 0, dont_fragment: true, flow_label: 0 }
    }

    /// The reverse direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        let (src_mac, dst_mac) = (self.dst_mac, self.src_mac);
        Below { src_mac, dst_mac, addresses: self.addresses.reversed(), ..self }
    }

    /// The packet of a TCP segment. The IPv4 checksum is complete, the TCP checksum is [`Checksum::Partial`].
    /// `ident` is used in IPv4 only. A payload that is too long for an IP packet (65535 bytes with its
    /// headers) is truncated: segmentation is the task of TCP.
    #[inline]
    pub fn tcp(&self, ident: u16, header: &TcpHeader, mut payload: Bytes) -> Packet {
        let mut inner = self.frame(Checksum::Partial);
        let at = ETHERNET_LEN + self.addresses.ip_header_len();
        // The room is there: `HEADER_ROOM` counts the longest headers.
        let len = inner.header[at..].first_chunk_mut().map_or(0, |room| header.encode(room));
        payload.truncate(usize::from(u16::MAX) - IPV4_LEN - len);
        self.finish(inner, ident, PROTOCOL_TCP, len, payload)
    }

    /// The packet of a UDP datagram, with checksum [`Checksum::Partial`]. It may exceed the MTU of a link;
    /// see [`fragment`](crate::fragment).
    ///
    /// # Errors
    /// The payload is too long for an IPv4 packet: more than 65507 bytes, for IPv6 as well.
    #[inline]
    pub fn udp(&self, ident: u16, header: UdpHeader, payload: Bytes) -> Result<Packet, WireError> {
        if payload.len() > usize::from(u16::MAX) - IPV4_LEN - UDP_LEN {
            return Err(WireError::CannotEncode { layer: Layer::Udp });
        }
        let mut inner = self.frame(Checksum::Partial);
        let at = ETHERNET_LEN + self.addresses.ip_header_len();
        if let Some(room) = inner.header[at..].first_chunk_mut() {
            header.encode(payload.len(), room)?;
        }
        Ok(self.finish(inner, ident, PROTOCOL_UDP, UDP_LEN, payload))
    }

    /// The packet of an ICMP message, with its checksum. The message is copied.
    ///
    /// # Errors
    /// A message that this IP version does not have, or one too long for an IP packet.
    pub fn icmp(&self, ident: u16, message: &Icmp<'_>) -> Result<Packet, WireError> {
        let (version, protocol) = match self.addresses {
            AddressPair::V4(..) => (IpVersion::V4, PROTOCOL_ICMP),
            AddressPair::V6(..) => (IpVersion::V6, PROTOCOL_ICMPV6),
        };
        let message = message.encode(version, |len| match version {
            IpVersion::V4 => Sum::new(),
            IpVersion::V6 => self.addresses.pseudo_header(PROTOCOL_ICMPV6, len as u32),
        });
        let message = message.filter(|m| m.len() <= usize::from(u16::MAX) - IPV4_LEN);
        let message = message.ok_or(WireError::CannotEncode { layer: Layer::Icmp })?;
        Ok(self.finish(self.frame(Checksum::Complete), ident, protocol, 0, message.into()))
    }

    /// A frame that is filled in place, so that headers are not moved again.
    #[inline]
    fn frame(&self, checksum: Checksum) -> Box<PacketInner> {
        let ip_len = self.addresses.ip_header_len();
        Box::new(PacketInner {
            payload: Bytes::new(),
            header: [0; HEADER_ROOM],
            header_len: 0,
            network_offset: ETHERNET_LEN as u8,
            transport_offset: (ETHERNET_LEN + ip_len) as u8,
            checksum,
            segment_size: 0,
            pacing_rate: 0,
            departure: OfOriginal::default(),
            queued_ns: 0,
            entered: Instant::ZERO,
            multipath: None,
            loss_tolerant: false,
        })
    }

    /// Writes the headers below a transport header of `transport_len` bytes. The caller has checked the
    /// lengths.
    #[inline]
    fn finish(
        &self,
        mut inner: Box<PacketInner>,
        ident: u16,
        protocol: u8,
        transport_len: usize,
        payload: Bytes,
    ) -> Packet {
        let bytes = &mut inner.header;
        bytes[0..6].copy_from_slice(&self.dst_mac.0);
        bytes[6..12].copy_from_slice(&self.src_mac.0);
        let (ether_type, ip_len) = match self.addresses {
            AddressPair::V4(src, dst) => {
                let ip = Ipv4Header {
                    tos: self.tos,
                    ident,
                    dont_fragment: self.dont_fragment,
                    more_fragments: false,
                    fragment_offset: 0,
                    ttl: self.ttl,
                    protocol,
                    src,
                    dst,
                    options: &[],
                };
                if let Some(room) = bytes[ETHERNET_LEN..].first_chunk_mut() {
                    let written = ip.encode(transport_len + payload.len(), room);
                    debug_assert_eq!(written, Ok(IPV4_LEN));
                }
                (EtherType::IPV4, IPV4_LEN)
            }
            AddressPair::V6(src, dst) => {
                let (traffic_class, flow_label) = (self.tos, self.flow_label);
                let ip = Ipv6Header {
                    traffic_class,
                    flow_label,
                    next_header: protocol,
                    hop_limit: self.ttl,
                    src,
                    dst,
                };
                if let Some(room) = bytes[ETHERNET_LEN..].first_chunk_mut() {
                    let written = ip.encode(transport_len + payload.len(), room);
                    debug_assert_eq!(written, Ok(()));
                }
                (EtherType::IPV6, IPV6_LEN)
            }
        };
        bytes[12..14].copy_from_slice(&ether_type.0.to_be_bytes());
        inner.header_len = (ETHERNET_LEN + ip_len + transport_len) as u8;
        inner.payload = payload;
        Packet::from_inner(inner)
    }
}
