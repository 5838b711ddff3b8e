//! The short way to a packet: a TCP segment over IPv4 and Ethernet between two fixed addresses.

use crate::ethernet::{ETHERNET_LEN, EtherType, MacAddr};
use crate::ipv4::{IPV4_LEN, Ipv4Header, PROTOCOL_TCP};
use crate::packet::{Checksum, HEADER_ROOM, Inner, Packet};
use crate::tcp::TcpHeader;
use bytes::Bytes;
use std::net::Ipv4Addr;

const TCP_AT: usize = ETHERNET_LEN + IPV4_LEN;

/// What all packets of one connection have in common below TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Tcp {
    /// Ethernet source.
    pub src_mac: MacAddr,
    /// Ethernet destination.
    pub dst_mac: MacAddr,
    /// IPv4 source.
    pub src: Ipv4Addr,
    /// IPv4 destination.
    pub dst: Ipv4Addr,
    /// Time to live.
    pub ttl: u8,
    /// DSCP and ECN: the byte as on the wire.
    pub tos: u8,
}

impl Ipv4Tcp {
    /// The packet for one segment, with the don't fragment flag set. Its IPv4 checksum is right, its TCP checksum
    /// is [`Checksum::Partial`]. A payload that is too long for an IPv4 packet (65535 bytes with its headers) is
    /// cut to what fits: cutting streams into segments is TCP's business.
    #[inline]
    pub fn build(&self, ident: u16, header: &TcpHeader, mut payload: Bytes) -> Packet {
        // Filled in place: the headers are not moved once more.
        let mut inner = Box::new(Inner {
            payload: Bytes::new(),
            header: [0; HEADER_ROOM],
            header_len: 0,
            network_offset: ETHERNET_LEN as u8,
            transport_offset: TCP_AT as u8,
            checksum: Checksum::Partial,
        });
        let bytes = &mut inner.header;
        bytes[0..6].copy_from_slice(&self.dst_mac.0);
        bytes[6..12].copy_from_slice(&self.src_mac.0);
        bytes[12..14].copy_from_slice(&EtherType::IPV4.0.to_be_bytes());
        // Both rooms are there (`HEADER_ROOM` counts the longest headers).
        let tcp_len = bytes[TCP_AT..].first_chunk_mut().map_or(0, |room| header.encode(room));
        payload.truncate(usize::from(u16::MAX) - IPV4_LEN - tcp_len);
        let ip = Ipv4Header {
            tos: self.tos,
            ident,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            ttl: self.ttl,
            protocol: PROTOCOL_TCP,
            src: self.src,
            dst: self.dst,
            options: &[],
        };
        if let Some(room) = bytes[ETHERNET_LEN..].first_chunk_mut() {
            // The length was made to fit above; without options nothing else can be refused.
            let written = ip.encode(tcp_len + payload.len(), room);
            debug_assert_eq!(written, Ok(IPV4_LEN));
        }
        inner.header_len = (TCP_AT + tcp_len) as u8;
        inner.payload = payload;
        Packet::from_inner(inner)
    }
}
