//! Packets at devices: without Ethernet headers, without copies where possible, and as super-segments (TSO,
//! GRO).

use super::{Checksum, HEADER_ROOM, Packet, PacketInner};
use crate::departure::OfOriginal;
use crate::error::{Layer, WireError};
use crate::ethernet::{self, ETHERNET_LEN, EtherType, MacAddr};
use crate::ip::{IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv4::Ipv4View;
use crate::ipv6::Ipv6View;
use crate::tcp::{self, TcpView};
use crate::udp::{self, UDP_LEN, UdpView};
use bytes::Bytes;
use farpace_units::Instant;

/// A transport checksum that a device is to compute, as in virtio 1.2 §5.1.6: where the covered bytes begin,
/// and where the checksum is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialSum {
    /// Offset of the transport header in the bytes that [`Packet::headers`] returns.
    pub start: u16,
    /// Offset of the checksum field from `start`.
    pub offset: u16,
}

impl Packet {
    /// Parses a whole frame without FCS, like [`from_frame`](Packet::from_frame), but references the payload
    /// in `frame` instead of copying it. The packet keeps all of `frame` in memory.
    ///
    /// # Errors
    /// As [`from_frame`](Packet::from_frame).
    pub fn from_shared_frame(frame: Bytes) -> Result<Packet, WireError> {
        let (ether_type, network) = ethernet::extent(&frame)?;
        Self::assemble([0; ETHERNET_LEN], ether_type, network, frame, 0)
    }

    /// Parses an IP packet of a device without Ethernet headers, such as TUN. It gets an Ethernet header from
    /// `src` to `dst`. The payload references `packet`.
    ///
    /// # Errors
    /// Neither IPv4 nor IPv6, or a header is truncated or has invalid lengths.
    pub fn from_shared_ip(src: MacAddr, dst: MacAddr, packet: Bytes) -> Result<Packet, WireError> {
        let ether_type = match packet.first().map(|byte| byte >> 4) {
            Some(4) => EtherType::IPV4,
            Some(6) => EtherType::IPV6,
            _ => return Err(WireError::NotIp(0)),
        };
        let mut below = [0; ETHERNET_LEN];
        below[0..6].copy_from_slice(&dst.0);
        below[6..12].copy_from_slice(&src.0);
        below[12..14].copy_from_slice(&ether_type.0.to_be_bytes());
        Self::assemble(below, ether_type, 0, packet, ETHERNET_LEN)
    }

    /// `bytes` begin with `network` bytes of Ethernet header. If `network` is zero, the first `extra` bytes
    /// of `below` precede them.
    fn assemble(
        below: [u8; ETHERNET_LEN],
        ether_type: EtherType,
        network: usize,
        bytes: Bytes,
        extra: usize,
    ) -> Result<Packet, WireError> {
        let ip = &bytes[network..];
        let (view, layer) = match ether_type {
            EtherType::IPV4 => (Some(IpView::V4(Ipv4View::parse(ip)?)), Layer::Ipv4),
            EtherType::IPV6 => (Some(IpView::V6(Ipv6View::parse(ip)?)), Layer::Ipv6),
            _ => (None, Layer::Ethernet),
        };
        let end = view.map_or(ip.len(), |view| view.total_len());
        let ip_header = view.map_or(0, |view| view.header_len());
        let Some(rest) = ip.get(..end).and_then(|ip| ip.get(ip_header..)) else {
            return Err(WireError::TotalLength { layer, length: end, have: ip.len() });
        };
        let protocol = view.filter(|view| view.fragment().is_none()).map(|view| view.protocol());
        let transport_header = match protocol {
            Some(PROTOCOL_TCP) => TcpView::parse(rest)?.header_len(),
            Some(PROTOCOL_UDP) => UdpView::parse(rest).map(|_| UDP_LEN)?,
            _ => 0,
        };
        let found = network + ip_header + transport_header;
        let mut header = [0; HEADER_ROOM];
        header[..extra].copy_from_slice(&below[..extra]);
        header[extra..extra + found].copy_from_slice(&bytes[..found]);
        Ok(Packet(Box::new(PacketInner {
            payload: bytes.slice(found..network + end),
            header,
            header_len: (extra + found) as u8,
            network_offset: (extra + network) as u8,
            transport_offset: (extra + network + ip_header) as u8,
            checksum: Checksum::Complete,
            segment_size: 0,
            pacing_rate: 0,
            departure: OfOriginal::default(),
            queued_ns: 0,
            entered: Instant::ZERO,
            multipath: None,
            loss_tolerant: false,
        })))
    }

    /// The headers from IP on, for devices without Ethernet headers.
    pub fn headers_from_ip(&self) -> &[u8] {
        &self.headers()[usize::from(self.0.network_offset)..]
    }

    /// True for a frame whose Ethernet header is followed by IP.
    pub fn has_ip(&self) -> bool {
        self.0.transport_offset > self.0.network_offset
    }

    /// Payload bytes of each segment of a super-segment; the last may be shorter. None for an ordinary
    /// packet.
    ///
    /// A super-segment may exceed the MTU. Devices with TSO or GRO accept it. Before other devices, and
    /// before elements that count packets, [`split_segments`](Packet::split_segments) splits it.
    #[inline]
    pub fn segment_size(&self) -> Option<u16> {
        (self.0.segment_size > 0).then_some(self.0.segment_size)
    }

    /// Sets the segment size. Zero, or a size not below the payload length, makes it an ordinary packet.
    #[inline]
    pub fn set_segment_size(&mut self, size: u16) {
        self.0.segment_size = if usize::from(size) < self.0.payload.len() { size } else { 0 };
    }

    /// Number of segments.
    #[inline]
    pub fn segments(&self) -> usize {
        self.segment_size().map_or(1, |size| self.0.payload.len().div_ceil(usize::from(size)))
    }

    /// Splits a super-segment of TCP or UDP into its segments or datagrams, as a NIC does. The IPv4
    /// identification counts up. FIN and PSH are set in the last segment only, CWR in the first only (as with
    /// TSO and USO in Linux). Any other packet is returned as it is, as one ordinary packet. The checksums
    /// are [`Checksum::Partial`].
    pub fn split_segments(mut self, mut take: impl FnMut(Packet)) {
        let Some(size) = self.segment_size() else { return take(self) };
        let is_tcp = self.tcp().is_ok();
        if !is_tcp && self.udp().is_err() {
            // A caller that splits packets until none is a super-segment must terminate.
            self.0.segment_size = 0;
            return take(self);
        }
        for number in 0..self.segments() {
            let mut part = self.clone();
            self.segment_into(usize::from(size), number, is_tcp, &mut part);
            take(part);
        }
    }

    /// Segment `number` (from 0) of a super-segment of TCP or UDP, in `part`: for devices that write segment
    /// after segment and reuse one packet for all of them. `part` must be a clone of this packet, or what
    /// this has made of one. False, with `part` unchanged: there is no such segment. A packet that is no
    /// super-segment has one, itself.
    pub fn nth_segment(&self, number: usize, part: &mut Packet) -> bool {
        let Some(size) = self.segment_size() else { return number == 0 };
        let is_tcp = self.tcp().is_ok();
        if number >= self.segments() || (!is_tcp && self.udp().is_err()) {
            return false;
        }
        self.segment_into(usize::from(size), number, is_tcp, part);
        true
    }

    fn segment_into(&self, size: usize, number: usize, is_tcp: bool, part: &mut Packet) {
        let whole = &self.0.payload;
        let (network, transport) = (usize::from(self.0.network_offset), usize::from(self.0.transport_offset));
        let headers_from_network = usize::from(self.0.header_len) - network;
        let at = number * size;
        let end = (at + size).min(whole.len());
        let inner = &mut part.0;
        inner.header[..usize::from(self.0.header_len)].copy_from_slice(self.headers());
        inner.payload = whole.slice(at..end);
        inner.segment_size = 0;
        inner.checksum = Checksum::Partial;
        let len = (headers_from_network + end - at) as u16;
        let checksum = transport + if is_tcp { tcp::CHECKSUM_AT } else { udp::CHECKSUM_AT };
        inner.header[checksum..checksum + 2].fill(0);
        if !is_tcp {
            let len = (UDP_LEN + end - at) as u16;
            inner.header[transport + 4..transport + 6].copy_from_slice(&len.to_be_bytes());
        } else if let Some(seq) = inner.header[transport + 4..].first_chunk_mut::<4>() {
            *seq = u32::from_be_bytes(*seq).wrapping_add(at as u32).to_be_bytes();
            let (first, last) = (at == 0, end == whole.len());
            // FIN and PSH; CWR.
            let keep = if last { 0xff } else { !0x09 } & if first { 0xff } else { !0x80u8 };
            inner.header[transport + 13] &= keep;
        }
        if self.ipv4().is_some() {
            let ident = u16::from_be_bytes([inner.header[network + 4], inner.header[network + 5]]);
            part.set_ipv4_word(4, ident.wrapping_add(number as u16));
            part.set_ipv4_word(2, len);
        } else {
            let payload = len.saturating_sub(crate::ipv6::IPV6_LEN as u16);
            inner.header[network + 4..network + 6].copy_from_slice(&payload.to_be_bytes());
        }
    }

    /// Copies the payload, so that the packet does not keep a larger buffer in memory.
    pub fn detach_payload(&mut self) {
        self.0.payload = Bytes::copy_from_slice(&self.0.payload);
    }

    /// Prepares checksum offload: stores the sum of the pseudo header in the checksum field, and returns
    /// where the device computes and stores the checksum. None if the checksum is already complete, or not of
    /// TCP or UDP. Afterwards the packet is valid for that device only.
    pub fn partial_sum(&mut self) -> Option<PartialSum> {
        if self.0.checksum == Checksum::Complete {
            return None;
        }
        let transport = usize::from(self.0.transport_offset);
        let (len, field) = {
            let ip = self.ip()?;
            let at = match ip.protocol() {
                PROTOCOL_TCP => tcp::CHECKSUM_AT,
                PROTOCOL_UDP => udp::CHECKSUM_AT,
                _ => return None,
            };
            let len = self.frame_len() - transport;
            // Not complemented: the device continues the sum.
            (at, !ip.pseudo_header(ip.protocol(), len).finish())
        };
        self.0.header[transport + len..transport + len + 2].copy_from_slice(&field.to_be_bytes());
        Some(PartialSum { start: transport as u16, offset: len as u16 })
    }

    /// Marks a received packet as trusted: its checksum field contains only the sum of the pseudo header, as
    /// with a device that trusts its driver. The packet becomes [`Checksum::Partial`] with a zero field.
    /// Packets that are neither TCP nor UDP stay unchanged.
    pub fn trust_checksum(&mut self) {
        let transport = usize::from(self.0.transport_offset);
        let at = match self.ip().map(|ip| ip.protocol()) {
            Some(PROTOCOL_TCP) => tcp::CHECKSUM_AT,
            Some(PROTOCOL_UDP) => udp::CHECKSUM_AT,
            _ => return,
        };
        if transport + at + 2 <= usize::from(self.0.header_len) {
            self.0.header[transport + at..transport + at + 2].fill(0);
            self.0.checksum = Checksum::Partial;
        }
    }
}
