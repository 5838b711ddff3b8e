//! Fragmentation and reassembly of IP packets (RFC 791 §3.2, RFC 8200 §4.5).

use crate::departure::OfOriginal;
use crate::error::{Layer, WireError};
use crate::ethernet::MAX_ETHERNET_LEN;
use crate::fragment_position::Fragment;
use crate::ip::IpView;
use crate::ipv4::{IPV4_LEN, Ipv4Header, MAX_IPV4_LEN};
use crate::ipv6::{FRAGMENT, FRAGMENT_LEN, IPV6_LEN, Ipv6Header};
use crate::packet::{Checksum, HEADER_ROOM, Packet, PacketInner};
use bytes::Bytes;
use farpace_units::{Instant, Rate};

/// The "copied" flag of an option (RFC 791 §3.1).
const COPIED: u8 = 0x80;

/// Fragments an IP packet to at most `mtu` bytes, without regard to the don't fragment flag, which the caller
/// must check. A packet that fits is returned unchanged. In IPv6 only the source may fragment; `ident` is the
/// identification for the fragment header, while IPv4 fragments keep that of the packet. IPv4 fragments can
/// be fragmented again.
///
/// # Errors
/// The packet is not IP or malformed, the MTU leaves no room for 8 bytes of data, or the packet is IPv6 with
/// extension headers, which are not supported here.
pub fn fragment(packet: Packet, mtu: usize, ident: u32) -> Result<Vec<Packet>, WireError> {
    if packet.network_len().as_len() <= mtu {
        return Ok(vec![packet]);
    }
    let mut packet = packet;
    packet.complete_checksum();
    let (ethernet, ethernet_len) = crate::ethernet::EthernetHeader::parse(packet.headers())?;
    let Some(ip) = packet.ip() else { return Err(WireError::NotIp(ethernet.ether_type.0)) };
    let layer = match ip {
        IpView::V4(_) => Layer::Ipv4,
        IpView::V6(_) => Layer::Ipv6,
    };
    let cannot = WireError::CannotEncode { layer };
    let header_len = match ip {
        IpView::V4(ip) => ip.header_len(),
        IpView::V6(ip) if ip.extensions().is_empty() => IPV6_LEN + FRAGMENT_LEN,
        IpView::V6(_) => return Err(cannot),
    };
    // All fragments but the last carry a multiple of 8 bytes.
    let room = mtu.saturating_sub(header_len) / 8 * 8;
    if room == 0 {
        return Err(cannot);
    }
    let data = joined(&packet, ethernet_len + ip.header_len());
    let (first, more_follow) = match ip {
        IpView::V4(ip) => (usize::from(ip.fragment_offset()) * 8, ip.more_fragments()),
        IpView::V6(_) => (0, false),
    };
    let mut parts = Vec::with_capacity(data.len().div_ceil(room));
    for start in (0..data.len()).step_by(room) {
        let end = data.len().min(start + room);
        let part = Fragment { ident, offset: (first + start) as u32, more: more_follow || end < data.len() };
        let mut header = [0; HEADER_ROOM];
        header[..ethernet_len].copy_from_slice(&packet.headers()[..ethernet_len]);
        let ip_len = match write_ip(&ip, part, end - start, &mut header[ethernet_len..])? {
            Some(len) => len,
            None => return Err(cannot),
        };
        parts.push(Packet::from_inner(Box::new(PacketInner {
            payload: data.slice(start..end),
            header,
            header_len: (ethernet_len + ip_len) as u8,
            network_offset: ethernet_len as u8,
            transport_offset: (ethernet_len + ip_len) as u8,
            checksum: Checksum::Complete,
            segment_size: 0,
            pacing_rate: packet.pacing_rate().map_or(0, Rate::bits_per_sec),
            departure: OfOriginal::default(),
            queued_ns: 0,
            entered: Instant::ZERO,
            multipath: None,
            loss_tolerant: packet.loss_tolerant(),
        })));
    }
    Ok(parts)
}

/// Reassembles the datagram that begins with the fragment `first` and carries `data` in total, with the
/// header of the first fragment. The caller must know that all fragments are present.
///
/// # Errors
/// `first` is not a fragment, or the data does not fit into an IP packet or begins with an invalid transport
/// header.
pub fn join(first: &Packet, data: &[u8]) -> Result<Packet, WireError> {
    let (_, at) = crate::ethernet::EthernetHeader::parse(first.headers())?;
    let mut frame = first.headers().to_vec();
    match first.ip() {
        Some(IpView::V4(ip)) if ip.is_fragment() => {
            let header = Ipv4Header {
                tos: ip.tos(),
                ident: ip.ident(),
                dont_fragment: ip.dont_fragment(),
                more_fragments: false,
                fragment_offset: 0,
                ttl: ip.ttl(),
                protocol: ip.protocol(),
                src: ip.src(),
                dst: ip.dst(),
                options: ip.options(),
            };
            let mut out = [0; MAX_IPV4_LEN];
            let len = header.encode(data.len(), &mut out)?;
            frame.truncate(at);
            frame.extend_from_slice(&out[..len]);
        }
        Some(IpView::V6(ip)) if first.ip().is_some_and(|ip| ip.is_fragment()) => {
            // The fragment header is the last one parsed.
            frame.truncate(at + ip.header_len() - FRAGMENT_LEN);
            let payload_len = frame.len() - at - IPV6_LEN + data.len();
            let payload_len = u16::try_from(payload_len);
            let payload_len = payload_len.map_err(|_| WireError::CannotEncode { layer: Layer::Ipv6 })?;
            frame[at + 4..at + 6].copy_from_slice(&payload_len.to_be_bytes());
            frame[at + ip.before_at()] = ip.protocol();
        }
        _ => return Err(WireError::Fragment),
    }
    frame.extend_from_slice(data);
    Packet::from_frame(&frame)
}

/// All bytes of the packet from `from` on, contiguous.
fn joined(packet: &Packet, from: usize) -> Bytes {
    let transport = packet.headers().get(from..).unwrap_or(&[]);
    if transport.is_empty() {
        return packet.payload().clone();
    }
    [transport, packet.payload()].concat().into()
}

/// Writes the IP header of a fragment and returns its length; none if there is no room.
fn write_ip(ip: &IpView<'_>, part: Fragment, len: usize, out: &mut [u8]) -> Result<Option<usize>, WireError> {
    const _: () = assert!(MAX_ETHERNET_LEN + MAX_IPV4_LEN <= HEADER_ROOM);
    match ip {
        IpView::V4(ip) => {
            let copied;
            let options = match part.offset {
                0 => ip.options(),
                _ => {
                    copied = copied_options(ip.options());
                    &copied
                }
            };
            let header = Ipv4Header {
                tos: ip.tos(),
                ident: ip.ident(),
                dont_fragment: ip.dont_fragment(),
                more_fragments: part.more,
                fragment_offset: (part.offset / 8) as u16,
                ttl: ip.ttl(),
                protocol: ip.protocol(),
                src: ip.src(),
                dst: ip.dst(),
                options,
            };
            let Some(room) = out.first_chunk_mut() else { return Ok(None) };
            Ok(Some(header.encode(len, room)?))
        }
        IpView::V6(ip) => {
            let header = Ipv6Header {
                traffic_class: ip.traffic_class(),
                flow_label: ip.flow_label(),
                next_header: FRAGMENT,
                hop_limit: ip.hop_limit(),
                src: ip.src(),
                dst: ip.dst(),
            };
            let Some((room, rest)) = out.split_first_chunk_mut() else { return Ok(None) };
            header.encode(FRAGMENT_LEN + len, room)?;
            let Some(extension) = rest.first_chunk_mut::<FRAGMENT_LEN>() else { return Ok(None) };
            let field = part.offset as u16 | u16::from(part.more);
            extension[0] = ip.next_header();
            extension[1] = 0;
            extension[2..4].copy_from_slice(&field.to_be_bytes());
            extension[4..8].copy_from_slice(&part.ident.to_be_bytes());
            Ok(Some(IPV6_LEN + FRAGMENT_LEN))
        }
    }
}

/// The options that every fragment carries, padded to whole words.
fn copied_options(mut options: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(MAX_IPV4_LEN - IPV4_LEN);
    while let Some(&kind) = options.first() {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => usize::from(options.get(1).copied().unwrap_or(0)),
        };
        let Some((option, rest)) = options.split_at_checked(len).filter(|_| len > 0) else { break };
        if kind & COPIED != 0 {
            kept.extend_from_slice(option);
        }
        options = rest;
    }
    kept.resize(kept.len().next_multiple_of(4), 0);
    kept
}
