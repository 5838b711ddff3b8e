//! The IPv6 header (RFC 8200 §3). Extension headers are not followed: the next header is reported as it is.

use crate::checksum::Sum;
use crate::error::{Layer, WireError};
use crate::ipv4::PROTOCOL_TCP;
use std::net::Ipv6Addr;

/// Bytes of the header.
pub const IPV6_LEN: usize = 40;

/// An IPv6 header as it stands in a packet. The version has been found to be 6.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    bytes: &'a [u8; IPV6_LEN],
}

impl<'a> Ipv6View<'a> {
    /// Finds the header at the start of `bytes`. What follows it need not be there.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let layer = Layer::Ipv6;
        let Some(header) = bytes.first_chunk::<IPV6_LEN>() else {
            return Err(WireError::Truncated { layer, need: IPV6_LEN, have: bytes.len() });
        };
        match header[0] >> 4 {
            6 => Ok(Ipv6View { bytes: header }),
            version => Err(WireError::Version { layer, version }),
        }
    }

    /// Traffic class: DSCP and ECN as in IPv4.
    pub const fn traffic_class(&self) -> u8 {
        self.bytes[0] << 4 | self.bytes[1] >> 4
    }
    /// Flow label, 20 bits.
    pub const fn flow_label(&self) -> u32 {
        u32::from_be_bytes([0, self.bytes[1] & 15, self.bytes[2], self.bytes[3]])
    }
    /// Bytes after this header, as the header says.
    pub const fn payload_len(&self) -> u16 {
        u16::from_be_bytes([self.bytes[4], self.bytes[5]])
    }
    /// What follows: a protocol or an extension header.
    pub const fn next_header(&self) -> u8 {
        self.bytes[6]
    }
    /// Hop limit.
    pub const fn hop_limit(&self) -> u8 {
        self.bytes[7]
    }
    /// Source.
    pub fn src(&self) -> Ipv6Addr {
        self.address(8)
    }
    /// Destination.
    pub fn dst(&self) -> Ipv6Addr {
        self.address(24)
    }
    /// The pseudo header that TCP's checksum begins with (RFC 8200 §8.1).
    pub(crate) fn pseudo_header(&self, tcp_len: u32) -> Sum {
        Sum::new().bytes(&self.bytes[8..40]).bytes(&tcp_len.to_be_bytes()).word(u16::from(PROTOCOL_TCP))
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.bytes[at..at + 16]);
        Ipv6Addr::from(octets)
    }
}

/// What an IPv6 header says, for writing one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// DSCP and ECN as in IPv4.
    pub traffic_class: u8,
    /// Flow label; bits beyond 20 are ignored.
    pub flow_label: u32,
    /// What follows.
    pub next_header: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Source.
    pub src: Ipv6Addr,
    /// Destination.
    pub dst: Ipv6Addr,
}

impl Ipv6Header {
    /// Writes the header for `payload_len` bytes after it. Refuses more than 65535 (no jumbograms).
    pub fn encode(&self, payload_len: usize, out: &mut [u8; IPV6_LEN]) -> Result<(), WireError> {
        let Ok(payload_len) = u16::try_from(payload_len) else {
            return Err(WireError::CannotEncode { layer: Layer::Ipv6 });
        };
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label & 0xf_ffff;
        out[..4].copy_from_slice(&first.to_be_bytes());
        out[4..6].copy_from_slice(&payload_len.to_be_bytes());
        out[6] = self.next_header;
        out[7] = self.hop_limit;
        out[8..24].copy_from_slice(&self.src.octets());
        out[24..40].copy_from_slice(&self.dst.octets());
        Ok(())
    }
}
