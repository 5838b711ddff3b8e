//! How packets meet devices: without an Ethernet header where there is none, without copies where that can be, and as
//! super-segments that a card cuts or has put together.

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

/// A transport checksum that is still to be worked out by whoever sends the packet on, as a virtual card is told of it
/// (virtio 1.2 §5.1.6): where the bytes that it covers begin, and where in them it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartialSum {
    /// Offset of the transport header in the bytes that [`Packet::headers`] returns.
    pub start: u16,
    /// Offset of the checksum field from there.
    pub offset: u16,
}

impl Packet {
    /// Reads a whole frame without FCS, as [`from_frame`](Packet::from_frame) does, but keeps the payload as a part of
    /// `frame` rather than to copy it. So the packet keeps all of `frame` in memory.
    ///
    /// # Errors
    /// As [`from_frame`](Packet::from_frame).
    pub fn from_shared_frame(frame: Bytes) -> Result<Packet, WireError> {
        let (ether_type, network) = ethernet::extent(&frame)?;
        Self::assemble([0; ETHERNET_LEN], ether_type, network, frame, 0)
    }

    /// Reads an IP packet as it comes from a device without an Ethernet header, such as TUN. It gets one from `src` to
    /// `dst`. The payload stays a part of `packet`.
    ///
    /// # Errors
    /// Neither IPv4 nor IPv6, or a header that is cut short or whose lengths are impossible.
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

    /// `bytes` begin with `network` bytes of Ethernet header; if that is none, `below` (of which `extra` bytes count) goes
    /// before them.
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
            return Err(WireError::TotalLength { layer, says: end, have: ip.len() });
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
            wanted_rate: 0,
            departure: OfOriginal::default(),
        })))
    }

    /// The headers without those below IP, for devices that have none.
    pub fn headers_from_ip(&self) -> &[u8] {
        &self.headers()[usize::from(self.0.network_offset)..]
    }

    /// True for a frame whose Ethernet header is followed by IP.
    pub fn has_ip(&self) -> bool {
        self.0.transport_offset > self.0.network_offset
    }

    /// Payload bytes of each segment that this packet is to be cut into, or was put together from; the last may be shorter.
    /// None: it is one segment.
    ///
    /// Such a super-segment is longer than a link takes. Devices that can (TSO, GRO) take it as it is; before all others,
    /// and before elements that count packets, it is cut by [`cut`](Packet::cut).
    #[inline]
    pub fn segment_size(&self) -> Option<u16> {
        (self.0.segment_size > 0).then_some(self.0.segment_size)
    }

    /// Says so. Zero, and a size that is not below that of the payload, take it back.
    #[inline]
    pub fn set_segment_size(&mut self, size: u16) {
        self.0.segment_size = if usize::from(size) < self.0.payload.len() { size } else { 0 };
    }

    /// Segments it counts for.
    #[inline]
    pub fn segments(&self) -> usize {
        self.segment_size().map_or(1, |size| self.0.payload.len().div_ceil(usize::from(size)))
    }

    /// Cuts a super-segment of TCP or UDP into its segments or datagrams, as a card does: IPv4 numbers count up, and the
    /// flags FIN and PSH of TCP go with the last, CWR with the first (as TSO and USO in Linux). Anything else comes back as it
    /// is, and as one packet. The checksums are still to be worked out.
    pub fn cut(mut self, mut take: impl FnMut(Packet)) {
        let Some(size) = self.segment_size() else { return take(self) };
        let is_tcp = self.tcp().is_ok();
        if !is_tcp && self.udp().is_err() {
            // Whoever cuts until nothing is left to be cut must come to an end.
            self.0.segment_size = 0;
            return take(self);
        }
        for number in 0..self.segments() {
            let mut part = self.clone();
            self.segment_into(usize::from(size), number, is_tcp, &mut part);
            take(part);
        }
    }

    /// Segment `number` (from 0) of a super-segment of TCP or UDP, in `part`: for devices that write segment after segment
    /// and reuse one packet for all of them. `part` must be a clone of this packet, or what this has made of one. False, with
    /// `part` unchanged: there is no such segment. A packet that is no super-segment has one, itself.
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

    /// Copies the payload out of whatever larger memory it is a part of, so that keeping the packet does not keep that.
    pub fn detach_payload(&mut self) {
        self.0.payload = Bytes::copy_from_slice(&self.0.payload);
    }

    /// Leaves the transport checksum to a device that works it out: the field then holds the sum of the pseudo header, and
    /// the answer says where. None if there is nothing to leave; the checksum is right then. After this the packet is good
    /// for that device alone.
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
            // Not complemented: the device goes on from it.
            (at, !ip.pseudo_header(ip.protocol(), len).finish())
        };
        self.0.header[transport + len..transport + len + 2].copy_from_slice(&field.to_be_bytes());
        Some(PartialSum { start: transport as u16, offset: len as u16 })
    }

    /// The checksum field holds the sum of the pseudo header alone, as a device that trusts its driver hands packets up:
    /// the packet becomes [`Checksum::Partial`], whose field holds zero. Nothing happens to a packet that is neither TCP nor
    /// UDP.
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
