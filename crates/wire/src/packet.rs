//! One Ethernet frame in flight.

pub(crate) mod device;
mod edit;
mod show;

use crate::arp::Arp;
use crate::checksum::Sum;
use crate::departure::{Departure, OfOriginal};
use crate::error::{Layer, WireError};
use crate::ethernet::{self, ETHERNET_LEN, EtherType, EthernetHeader, MAX_ETHERNET_LEN, MacAddr};
use crate::icmp::{Icmp, IpVersion};
use crate::ip::{IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv4::{Ipv4View, MAX_IPV4_LEN};
use crate::ipv6::{Ipv6View, MAX_IPV6_LEN};
use crate::tcp::{self, MAX_TCP_LEN, TcpFlags, TcpView};
use crate::udp::{self, UdpView};
use bytes::Bytes;
use farpace_units::{ByteCount, Rate};

/// Room for the longest headers: Ethernet with its tags, IPv6 with the extension headers that are walked or
/// IPv4 with 40 bytes of options, and TCP with 40 bytes of options.
pub(crate) const HEADER_ROOM: usize = 192;
const _: () = assert!(MAX_ETHERNET_LEN + MAX_IPV4_LEN + MAX_TCP_LEN <= HEADER_ROOM);
const _: () = assert!(MAX_ETHERNET_LEN + MAX_IPV6_LEN + MAX_TCP_LEN <= HEADER_ROOM);

/// One Ethernet frame (without FCS) in flight: real header bytes, and the payload by reference. Moving it moves
/// one pointer; on its way the payload is never copied, except to damage it.
///
/// The headers are what was found when the packet was made: Ethernet, then IP with its options and extension
/// headers if it is IP, then TCP or UDP if it is a whole segment or datagram. Everything after them is the
/// payload: ICMP and ARP messages too, and what a fragment carries. If [`flip_bit`](Packet::flip_bit) makes the bytes
/// tell another story, the views refuse them.
#[derive(Clone)]
pub struct Packet(Box<PacketInner>);

#[derive(Clone)]
pub(crate) struct PacketInner {
    pub(crate) payload: Bytes,
    pub(crate) header: [u8; HEADER_ROOM],
    pub(crate) header_len: u8,
    /// Where the IP header begins, or whatever follows Ethernet.
    pub(crate) network_offset: u8,
    /// Where the bytes after the IP header begin; `header_len` if the headers end there.
    pub(crate) transport_offset: u8,
    pub(crate) checksum: Checksum,
    /// Payload of each of the segments that it is made of; zero for one.
    pub(crate) segment_size: u16,
    /// Bit/s; zero if its sender has not said.
    pub(crate) wanted_rate: u64,
    /// None: nobody waits for it to leave, or it has left.
    pub(crate) departure: OfOriginal,
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

/// What follows Ethernet, found to agree with the packet's extents.
enum NetworkHeader<'a> {
    Ip(IpView<'a>),
    Other(EtherType),
}

impl Packet {
    pub(crate) const fn from_inner(inner: Box<PacketInner>) -> Self {
        Packet(inner)
    }

    /// A frame of anything that is not IP, or that nobody needs to look into.
    pub fn from_link(src: MacAddr, dst: MacAddr, ether_type: EtherType, payload: Bytes) -> Packet {
        let mut header = [0; HEADER_ROOM];
        header[0..6].copy_from_slice(&dst.0);
        header[6..12].copy_from_slice(&src.0);
        header[12..14].copy_from_slice(&ether_type.0.to_be_bytes());
        Packet(Box::new(PacketInner {
            payload,
            header,
            header_len: ETHERNET_LEN as u8,
            network_offset: ETHERNET_LEN as u8,
            transport_offset: ETHERNET_LEN as u8,
            checksum: Checksum::Complete,
            segment_size: 0,
            wanted_rate: 0,
            departure: OfOriginal::default(),
        }))
    }

    /// Reads a whole frame without FCS, of any EtherType and protocol. What this crate does not know, and every
    /// IP fragment, is payload after the last known header. Bytes beyond the IP length (Ethernet padding) are
    /// not part of the packet. Checksums are not looked at; the packet is [`Checksum::Complete`].
    ///
    /// An Ethernet, IP, TCP or UDP header that is cut short or whose lengths are impossible is an error.
    pub fn from_frame(frame: &[u8]) -> Result<Packet, WireError> {
        Packet::from_shared_frame(Bytes::copy_from_slice(frame))
    }

    /// Bytes of the frame, without FCS, preamble and padding.
    #[inline]
    pub fn len(&self) -> ByteCount {
        ByteCount::of_len(self.frame_len())
    }
    /// Bytes of the IP packet (the length that the IP header says), or of whatever follows the Ethernet header.
    #[inline]
    pub fn network_len(&self) -> ByteCount {
        ByteCount::of_len(self.frame_len() - usize::from(self.0.network_offset))
    }
    /// Never: a packet has at least an Ethernet header.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The bytes of all headers. With [`Checksum::Partial`] the TCP or UDP checksum field among them is not right.
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
    /// The rate at which whatever sent it would like to send, in layer 2: a word from a machine's transport to its network
    /// card, like the pacing rate of a socket that a kernel shows to its queues. It is not on the wire.
    pub fn wanted_rate(&self) -> Option<Rate> {
        (self.0.wanted_rate > 0).then_some(Rate::from_bits_per_sec(self.0.wanted_rate))
    }
    /// Says so. None, and a rate of zero, take it back.
    pub fn set_wanted_rate(&mut self, rate: Option<Rate>) {
        self.0.wanted_rate = rate.map_or(0, Rate::bits_per_sec);
    }
    /// From now on it counts as waiting in its host, until it [departs](Self::depart), or ends. Copies do not count.
    pub fn set_departure(&mut self, departure: Option<Departure>) {
        self.0.departure = OfOriginal(departure);
    }
    /// A line has taken it: it has left its host.
    #[inline]
    pub fn depart(&mut self) {
        self.0.departure = OfOriginal(None);
    }
    /// What the transport checksum field is worth.
    #[inline]
    pub fn checksum(&self) -> Checksum {
        self.0.checksum
    }

    /// Ethernet source and destination.
    #[inline]
    pub fn macs(&self) -> (MacAddr, MacAddr) {
        let [d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, ..] = self.0.header;
        (MacAddr([s0, s1, s2, s3, s4, s5]), MacAddr([d0, d1, d2, d3, d4, d5]))
    }
    /// The Ethernet header. An error only if damage made it another length.
    pub fn ethernet(&self) -> Result<EthernetHeader, WireError> {
        let (header, len) = EthernetHeader::parse(self.headers())?;
        match len == usize::from(self.0.network_offset) {
            true => Ok(header),
            false => Err(WireError::HeaderLength { layer: Layer::Ethernet, len }),
        }
    }
    /// The IP header of either version, if the packet has one and its lengths agree with the packet.
    #[inline]
    pub fn ip(&self) -> Option<IpView<'_>> {
        match self.network() {
            Ok(NetworkHeader::Ip(view)) => Some(view),
            _ => None,
        }
    }
    /// The IPv4 header, if the packet has one and its lengths agree with the packet.
    #[inline]
    pub fn ipv4(&self) -> Option<Ipv4View<'_>> {
        match self.network() {
            Ok(NetworkHeader::Ip(IpView::V4(view))) => Some(view),
            _ => None,
        }
    }
    /// The IPv6 header, if the packet has one and its length agrees with the packet.
    pub fn ipv6(&self) -> Option<Ipv6View<'_>> {
        match self.network() {
            Ok(NetworkHeader::Ip(IpView::V6(view))) => Some(view),
            _ => None,
        }
    }
    /// The TCP header. An error if the packet is not a whole TCP segment in IPv4 or IPv6, or if damage made a
    /// length disagree with the packet.
    #[inline]
    pub fn tcp(&self) -> Result<TcpView<'_>, WireError> {
        self.tcp_within(&self.network()?)
    }
    /// IP and TCP headers together, as [`ip`](Self::ip) and [`tcp`](Self::tcp) would give them, for the price
    /// of one look.
    #[inline]
    pub fn ip_tcp(&self) -> Result<(IpView<'_>, TcpView<'_>), WireError> {
        let network = self.network()?;
        let tcp = self.tcp_within(&network)?;
        match network {
            NetworkHeader::Ip(ip) => Ok((ip, tcp)),
            NetworkHeader::Other(other) => Err(WireError::NotIp(other.0)),
        }
    }
    /// True for a TCP segment that carries nothing but an acknowledgment: no data, and neither SYN nor FIN nor RST.
    pub fn is_pure_ack(&self) -> bool {
        let turn = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        self.0.payload.is_empty()
            && self
                .tcp()
                .is_ok_and(|tcp| tcp.flags().contains(TcpFlags::ACK) && !tcp.flags().intersects(turn))
    }
    /// The UDP header. An error if the packet is not a whole UDP datagram, or if its length field is not that
    /// of the IP packet.
    #[inline]
    pub fn udp(&self) -> Result<UdpView<'_>, WireError> {
        self.udp_within(&self.network()?)
    }
    /// The ICMP message, of the packet's own IP version. An error if the packet carries none or a fragment of
    /// one, or if it is malformed.
    pub fn icmp(&self) -> Result<Icmp<'_>, WireError> {
        let ip = match self.network()? {
            NetworkHeader::Ip(ip) => ip,
            NetworkHeader::Other(other) => return Err(WireError::NotIp(other.0)),
        };
        let version = match ip {
            IpView::V4(_) => IpVersion::V4,
            IpView::V6(_) => IpVersion::V6,
        };
        if ip.protocol() != ip.icmp_protocol() {
            return Err(WireError::NotIcmp(ip.protocol()));
        }
        if ip.fragment().is_some() {
            return Err(WireError::Fragment);
        }
        Icmp::parse(version, &self.0.payload)
    }
    /// The ARP packet.
    pub fn arp(&self) -> Result<Arp, WireError> {
        match self.network()? {
            NetworkHeader::Other(EtherType::ARP) => Arp::parse(&self.0.payload),
            NetworkHeader::Other(other) => Err(WireError::NotArp(other.0)),
            NetworkHeader::Ip(IpView::V4(_)) => Err(WireError::NotArp(EtherType::IPV4.0)),
            NetworkHeader::Ip(IpView::V6(_)) => Err(WireError::NotArp(EtherType::IPV6.0)),
        }
    }

    /// Whether the checksums are right: of the IPv4 header, and of TCP, UDP or ICMP that is whole. The first
    /// wrong one is the error, or the header that cannot be read. A packet that has no checksum is right,
    /// and so is one with [`Checksum::Partial`]: it has not left the hands of this program. UDP over IPv4 may
    /// go without (RFC 768), over IPv6 not (RFC 8200 §8.1).
    #[inline]
    pub fn verify_checksums(&self) -> Result<(), WireError> {
        if self.0.checksum == Checksum::Partial { Ok(()) } else { self.verify_complete() }
    }

    fn verify_complete(&self) -> Result<(), WireError> {
        let network = self.network()?;
        let NetworkHeader::Ip(ip) = &network else { return Ok(()) };
        if let IpView::V4(view) = ip {
            view.verify_checksum()?;
        }
        let protocol = ip.protocol();
        let layer = match protocol {
            _ if ip.fragment().is_some() => return Ok(()),
            PROTOCOL_TCP => self.tcp_within(&network).map(|_| Layer::Tcp)?,
            PROTOCOL_UDP => match (self.udp_within(&network)?.checksum(), ip) {
                (0, IpView::V4(_)) => return Ok(()),
                (0, IpView::V6(_)) => return Err(WireError::Checksum { layer: Layer::Udp }),
                _ => Layer::Udp,
            },
            icmp if icmp == ip.icmp_protocol() => Layer::Icmp,
            _ => return Ok(()),
        };
        match self.transport_sum(ip, protocol).finish() {
            0 => Ok(()),
            _ => Err(WireError::Checksum { layer }),
        }
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
    fn network(&self) -> Result<NetworkHeader<'_>, WireError> {
        let (network, transport) = (usize::from(self.0.network_offset), usize::from(self.0.transport_offset));
        let headers = self.headers();
        let (ether_type, len) = ethernet::extent(headers)?;
        if len != network {
            return Err(WireError::HeaderLength { layer: Layer::Ethernet, len });
        }
        let bytes = &headers[network..transport];
        let (layer, view) = match ether_type {
            EtherType::IPV4 => (Layer::Ipv4, IpView::V4(Ipv4View::parse(bytes)?)),
            EtherType::IPV6 => (Layer::Ipv6, IpView::V6(Ipv6View::parse(bytes)?)),
            other => return Ok(NetworkHeader::Other(other)),
        };
        if view.header_len() != transport - network {
            return Err(WireError::HeaderLength { layer, len: view.header_len() });
        }
        let (says, have) = (view.total_len(), self.frame_len() - network);
        if says != have {
            return Err(WireError::TotalLength { layer, says, have });
        }
        Ok(NetworkHeader::Ip(view))
    }

    /// The bytes after the IP header among the headers, if the packet is whole and carries `protocol`.
    #[inline]
    fn transport(
        &self,
        network: &NetworkHeader<'_>,
        protocol: u8,
        other: fn(u8) -> WireError,
    ) -> Result<&[u8], WireError> {
        match network {
            NetworkHeader::Ip(ip) if ip.is_fragment() => Err(WireError::Fragment),
            NetworkHeader::Ip(ip) if ip.protocol() != protocol => Err(other(ip.protocol())),
            NetworkHeader::Ip(_) => Ok(&self.headers()[usize::from(self.0.transport_offset)..]),
            NetworkHeader::Other(ether_type) => Err(WireError::NotIp(ether_type.0)),
        }
    }

    #[inline]
    fn tcp_within(&self, network: &NetworkHeader<'_>) -> Result<TcpView<'_>, WireError> {
        let bytes = self.transport(network, PROTOCOL_TCP, WireError::NotTcp)?;
        let view = TcpView::parse(bytes)?;
        if view.header_len() != bytes.len() {
            return Err(WireError::HeaderLength { layer: Layer::Tcp, len: view.header_len() });
        }
        Ok(view)
    }

    #[inline]
    fn udp_within(&self, network: &NetworkHeader<'_>) -> Result<UdpView<'_>, WireError> {
        let bytes = self.transport(network, PROTOCOL_UDP, WireError::NotUdp)?;
        let view = UdpView::parse(bytes)?;
        let (says, have) = (usize::from(view.total_len()), bytes.len() + self.0.payload.len());
        if says != have {
            return Err(WireError::TotalLength { layer: Layer::Udp, says, have });
        }
        Ok(view)
    }

    /// The sum over what the checksum of `protocol` covers, with the checksum field as it is: pseudo header
    /// (but for ICMP over IPv4), transport header and payload.
    fn transport_sum(&self, ip: &IpView<'_>, protocol: u8) -> Sum {
        let header = &self.headers()[usize::from(self.0.transport_offset)..];
        let len = header.len() + self.0.payload.len();
        let pseudo = match ip {
            IpView::V4(_) if protocol == ip.icmp_protocol() => Sum::new(),
            _ => ip.pseudo_header(protocol, len),
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
        let NetworkHeader::Ip(ip) = &network else { return None };
        let sum = self.transport_sum(ip, ip.protocol()).finish();
        let (at, sum) = match ip.protocol() {
            PROTOCOL_UDP => {
                self.udp_within(&network).ok()?;
                (udp::CHECKSUM_AT, udp::checksum_field(sum))
            }
            _ => {
                self.tcp_within(&network).ok()?;
                (tcp::CHECKSUM_AT, sum)
            }
        };
        Some((usize::from(self.0.transport_offset) + at, sum.to_be_bytes()))
    }
}
