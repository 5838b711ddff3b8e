//! One Ethernet frame in flight.

mod arp;
pub(crate) mod device;
mod edit;
mod join;
mod show;

use crate::checksum::Sum;
use crate::departure::{Departure, OfOriginal};
use crate::error::{Layer, WireError};
use crate::ethernet::{self, ETHERNET_LEN, EtherType, EthernetHeader, MAX_ETHERNET_LEN, MacAddr};
use crate::icmp::{Icmp, IpVersion};
use crate::ip::{IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv4::{Ipv4View, MAX_IPV4_LEN};
use crate::ipv6::{Ipv6View, MAX_IPV6_LEN};
use crate::multipath::MultipathInfo;
use crate::tcp::{self, MAX_TCP_LEN, TcpFlags, TcpView};
use crate::udp::{self, UdpView};
use bytes::Bytes;
use farpace_units::{ByteCount, Instant, Rate, Span};

/// Room for the longest headers: Ethernet with tags, IPv6 with the extension headers that are parsed or IPv4
/// with 40 bytes of options, and TCP with 40 bytes of options.
pub(crate) const HEADER_ROOM: usize = 192;
const _: () = assert!(MAX_ETHERNET_LEN + MAX_IPV4_LEN + MAX_TCP_LEN <= HEADER_ROOM);
const _: () = assert!(MAX_ETHERNET_LEN + MAX_IPV6_LEN + MAX_TCP_LEN <= HEADER_ROOM);

/// One Ethernet frame (without FCS) in flight: real header bytes, and the payload by reference. Moving it
/// moves one pointer. The payload is not copied, except when a bit of it is flipped.
///
/// The extents of the headers are fixed when the packet is created: Ethernet, then IP with its options and
/// extension headers, then TCP or UDP if the packet contains a whole segment or datagram. Everything after
/// them is the payload, including ICMP and ARP messages and the contents of fragments. If
/// [`flip_bit`](Packet::flip_bit) makes the headers contradict the extents, the views return errors.
#[derive(Clone)]
pub struct Packet(Box<PacketInner>);

#[derive(Clone)]
pub(crate) struct PacketInner {
    pub(crate) payload: Bytes,
    pub(crate) header: [u8; HEADER_ROOM],
    pub(crate) header_len: u8,
    /// Offset of the IP header, or of what follows Ethernet.
    pub(crate) network_offset: u8,
    /// Offset of what follows the IP header; `header_len` if the headers end there.
    pub(crate) transport_offset: u8,
    pub(crate) checksum: Checksum,
    /// Payload length of each segment of a super-segment; zero for an ordinary packet.
    pub(crate) segment_size: u16,
    /// In bit/s; zero if not set.
    pub(crate) pacing_rate: u64,
    /// None: no [`Departures`](crate::Departures) count it, or it has left.
    pub(crate) departure: OfOriginal,
    /// Time in queues so far, in ns; while the packet waits, less the instant at which it came. Modulo 2^64.
    pub(crate) queued_ns: u64,
    /// When the packet entered the last queue.
    pub(crate) entered: Instant,
    pub(crate) multipath: Option<MultipathInfo>,
    pub(crate) loss_tolerant: bool,
}

/// State of the transport checksum field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// The field is as received or as computed; a receiver verifies it.
    Complete,
    /// The field is not yet computed, as with checksum offload. It is computed when the packet is written or
    /// damaged. A receiver accepts such a packet.
    Partial,
}

/// What follows Ethernet, consistent with the extents of the packet.
enum NetworkHeader<'a> {
    Ip(IpView<'a>),
    Other(EtherType),
}

impl Packet {
    pub(crate) const fn from_inner(inner: Box<PacketInner>) -> Self {
        Packet(inner)
    }

    /// A frame that is not IP, or whose contents need not be parsed.
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
            pacing_rate: 0,
            departure: OfOriginal::default(),
            queued_ns: 0,
            entered: Instant::ZERO,
            multipath: None,
            loss_tolerant: false,
        }))
    }

    /// Parses a whole frame without FCS, of any EtherType and protocol. Unknown protocols and IP fragments
    /// become payload after the last known header. Bytes beyond the IP length (Ethernet padding) are
    /// discarded. Checksums are not verified; the packet is [`Checksum::Complete`].
    ///
    /// # Errors
    /// An Ethernet, IP, TCP or UDP header is truncated, or its lengths are invalid.
    pub fn from_frame(frame: &[u8]) -> Result<Packet, WireError> {
        Packet::from_shared_frame(Bytes::copy_from_slice(frame))
    }

    /// Length of the frame, without FCS, preamble and padding.
    #[inline]
    pub fn len(&self) -> ByteCount {
        ByteCount::of_len(self.frame_len())
    }
    /// Length of the IP packet (from its header), or of what follows the Ethernet header.
    #[inline]
    pub fn network_len(&self) -> ByteCount {
        ByteCount::of_len(self.frame_len() - usize::from(self.0.network_offset))
    }
    /// False: a packet has at least an Ethernet header.
    pub fn is_empty(&self) -> bool {
        false
    }
    /// The bytes of all headers. With [`Checksum::Partial`], the TCP or UDP checksum field is not valid.
    #[inline]
    pub fn headers(&self) -> &[u8] {
        &self.0.header[..usize::from(self.0.header_len)]
    }
    /// What follows the headers.
    #[inline]
    pub fn payload(&self) -> &Bytes {
        &self.0.payload
    }
    /// Returns the payload.
    #[inline]
    pub fn into_payload(self) -> Bytes {
        self.0.payload
    }
    /// The pacing rate that the sender requests for this flow, in layer 2. The transport of a host passes it
    /// to the NIC, like `sk_pacing_rate` in Linux. It is not on the wire.
    pub fn pacing_rate(&self) -> Option<Rate> {
        (self.0.pacing_rate > 0).then_some(Rate::from_bits_per_sec(self.0.pacing_rate))
    }
    /// Sets the pacing rate. None or zero removes it.
    pub fn set_pacing_rate(&mut self, rate: Option<Rate>) {
        self.0.pacing_rate = rate.map_or(0, Rate::bits_per_sec);
    }
    /// Counts the packet as waiting in its host until it [departs](Self::depart) or is dropped. Clones do not
    /// count.
    pub fn set_departure(&mut self, departure: Option<Departure>) {
        self.0.departure = OfOriginal(departure);
    }
    /// A link has accepted the packet: it has left its host.
    #[inline]
    pub fn depart(&mut self) {
        self.0.departure = OfOriginal(None);
    }
    /// The packet enters a queue at `now`. [`leave_queue`](Self::leave_queue) must follow.
    #[inline]
    pub fn enter_queue(&mut self, now: Instant) {
        self.0.queued_ns = self.0.queued_ns.wrapping_sub(now.as_nanos());
        self.0.entered = now;
    }
    /// The packet leaves the queue that it [entered](Self::enter_queue), at `now`. Returns how long it has
    /// waited there.
    #[inline]
    pub fn leave_queue(&mut self, now: Instant) -> Span {
        self.0.queued_ns = self.0.queued_ns.wrapping_add(now.as_nanos());
        now.since(self.0.entered)
    }
    /// How long the packet has waited in the queues of links so far, all together. Transmission is not
    /// waiting. It is not on the wire; a packet that is made from the bytes of another has waited nowhere.
    #[inline]
    pub fn queued(&self) -> Span {
        Span::from_nanos(self.0.queued_ns)
    }
    /// What the layer that has passed the packet up knows of the paths to its source; none: it came by the
    /// only one. It is not on the wire.
    #[inline]
    pub fn multipath(&self) -> Option<MultipathInfo> {
        self.0.multipath
    }
    /// Sets what a transport is to know of the paths to the source of the packet.
    #[inline]
    pub fn set_multipath(&mut self, info: Option<MultipathInfo>) {
        self.0.multipath = info;
    }
    /// True if the transport that has sent the packet does not take each loss for congestion, so that a path
    /// that loses packets is of use to it. It is not on the wire.
    #[inline]
    pub fn loss_tolerant(&self) -> bool {
        self.0.loss_tolerant
    }
    /// Sets whether the transport tolerates losses.
    #[inline]
    pub fn set_loss_tolerant(&mut self, tolerant: bool) {
        self.0.loss_tolerant = tolerant;
    }
    /// The state of the transport checksum field.
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
    /// The Ethernet header.
    ///
    /// # Errors
    /// Damage has changed its length.
    pub fn ethernet(&self) -> Result<EthernetHeader, WireError> {
        let (header, len) = EthernetHeader::parse(self.headers())?;
        match len == usize::from(self.0.network_offset) {
            true => Ok(header),
            false => Err(WireError::HeaderLength { layer: Layer::Ethernet, len }),
        }
    }
    /// The IP header of either version, if the packet has one and its lengths are consistent.
    #[inline]
    pub fn ip(&self) -> Option<IpView<'_>> {
        match self.network() {
            Ok(NetworkHeader::Ip(view)) => Some(view),
            _ => None,
        }
    }
    /// The IPv4 header, if the packet has one and its lengths are consistent.
    #[inline]
    pub fn ipv4(&self) -> Option<Ipv4View<'_>> {
        match self.network() {
            Ok(NetworkHeader::Ip(IpView::V4(view))) => Some(view),
            _ => None,
        }
    }
    /// The IPv6 header, if the packet has one and its length is consistent.
    pub fn ipv6(&self) -> Option<Ipv6View<'_>> {
        match self.network() {
            Ok(NetworkHeader::Ip(IpView::V6(view))) => Some(view),
            _ => None,
        }
    }
    /// The TCP header.
    ///
    /// # Errors
    /// The packet is not a whole TCP segment in IPv4 or IPv6, or damage has made its lengths inconsistent.
    #[inline]
    pub fn tcp(&self) -> Result<TcpView<'_>, WireError> {
        self.tcp_within(&self.network()?)
    }
    /// The IP and TCP headers, like [`ip`](Self::ip) and [`tcp`](Self::tcp), but parsed only once.
    #[inline]
    pub fn ip_tcp(&self) -> Result<(IpView<'_>, TcpView<'_>), WireError> {
        let network = self.network()?;
        let tcp = self.tcp_within(&network)?;
        match network {
            NetworkHeader::Ip(ip) => Ok((ip, tcp)),
            NetworkHeader::Other(other) => Err(WireError::NotIp(other.0)),
        }
    }
    /// True for a TCP segment with ACK but no data, SYN, FIN or RST.
    pub fn is_pure_ack(&self) -> bool {
        let control = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        self.0.payload.is_empty()
            && self
                .tcp()
                .is_ok_and(|tcp| tcp.flags().contains(TcpFlags::ACK) && !tcp.flags().intersects(control))
    }
    /// The UDP header.
    ///
    /// # Errors
    /// The packet is not a whole UDP datagram, or its length field disagrees with the IP packet.
    #[inline]
    pub fn udp(&self) -> Result<UdpView<'_>, WireError> {
        self.udp_within(&self.network()?)
    }
    /// The ICMP message, of the IP version of the packet.
    ///
    /// # Errors
    /// The packet contains no ICMP message, a fragment of one, or a malformed one.
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

    /// Verifies the checksums: of the IPv4 header, and of whole TCP, UDP and ICMP messages. A packet without
    /// a checksum is accepted, and so is one with [`Checksum::Partial`], which has not left this program. UDP
    /// over IPv4 may omit the checksum (RFC 768), over IPv6 not (RFC 8200 §8.1).
    ///
    /// # Errors
    /// The first wrong checksum, or a header that cannot be parsed.
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

    /// Appends the whole frame, without FCS, to `out`. A [`Checksum::Partial`] is computed.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        self.write_start(usize::MAX, out);
    }

    /// Appends the first `len` bytes of the frame to `out`, or all of it if it is shorter. A
    /// [`Checksum::Partial`] is that of the whole frame.
    pub fn write_start(&self, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        let len = len.min(self.frame_len());
        out.reserve(len);
        out.extend_from_slice(self.headers());
        if let Some((at, sum)) = self.missing_checksum() {
            out[start + at..start + at + 2].copy_from_slice(&sum);
        }
        out.truncate(start + len);
        let rest = len.saturating_sub(self.headers().len());
        out.extend_from_slice(&self.0.payload[..rest]);
    }

    fn frame_len(&self) -> usize {
        usize::from(self.0.header_len) + self.0.payload.len()
    }

    /// The network header, if its bytes are consistent with the extents of the packet.
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
        let (length, have) = (view.total_len(), self.frame_len() - network);
        if length != have {
            return Err(WireError::TotalLength { layer, length, have });
        }
        Ok(NetworkHeader::Ip(view))
    }

    /// The transport header, if the packet is not a fragment and contains `protocol`.
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
        let (length, have) = (usize::from(view.total_len()), bytes.len() + self.0.payload.len());
        if length != have {
            return Err(WireError::TotalLength { layer: Layer::Udp, length, have });
        }
        Ok(view)
    }

    /// The sum over what the checksum of `protocol` covers, including the checksum field: pseudo header
    /// (except for ICMP over IPv4), transport header and payload.
    fn transport_sum(&self, ip: &IpView<'_>, protocol: u8) -> Sum {
        let header = &self.headers()[usize::from(self.0.transport_offset)..];
        let len = header.len() + self.0.payload.len();
        let pseudo = match ip {
            IpView::V4(_) if protocol == ip.icmp_protocol() => Sum::new(),
            _ => ip.pseudo_header(protocol, len),
        };
        pseudo.bytes(header).bytes(&self.0.payload)
    }

    /// Offset and value of the checksum, if it is not yet computed. Until then the field is zero.
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
