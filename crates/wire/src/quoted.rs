//! The packet quoted in an ICMP error. It is often truncated.

use crate::error::WireError;
use crate::ip::{AddressPair, IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv4::Ipv4View;
use crate::ipv6::Ipv6View;
use farpace_units::Seq;

/// A quoted packet: enough to find the connection, and to check whether that connection can have sent the
/// packet (RFC 5927 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Source and destination address.
    pub addresses: AddressPair,
    /// The protocol of the payload.
    pub protocol: u8,
    /// Source and destination port; none if it is neither TCP nor UDP, not the first fragment, or truncated.
    pub ports: Option<(u16, u16)>,
    /// SEG.SEQ; none if it is not TCP, not the first fragment, or truncated.
    pub seq: Option<Seq>,
    /// Its length in bytes, from the IP header. A router that reports "too big" without an MTU has an MTU
    /// below it (RFC 1191 §5).
    pub total_len: usize,
}

impl Quoted {
    /// Parses the quoted packet: an IP header of either version, and what follows as far as it is present.
    /// Lengths and checksums are not verified, because routers change and truncate quoted packets.
    pub fn parse(bytes: &[u8]) -> Result<Quoted, WireError> {
        let ip = match bytes.first().map(|byte| byte >> 4) {
            Some(6) => IpView::V6(Ipv6View::parse(bytes)?),
            _ => IpView::V4(Ipv4View::parse(bytes)?),
        };
        let protocol = ip.protocol();
        let begins_here = ip.fragment().is_none_or(|fragment| fragment.offset == 0);
        let rest = bytes.get(ip.header_len()..).filter(|_| begins_here).unwrap_or(&[]);
        let ports = match (protocol, rest.first_chunk()) {
            (PROTOCOL_TCP | PROTOCOL_UDP, Some(&[a, b, c, d])) => {
                Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
            }
            _ => None,
        };
        let seq = match (protocol, rest.first_chunk()) {
            (PROTOCOL_TCP, Some(&[_, _, _, _, a, b, c, d])) => {
                Some(Seq::new(u32::from_be_bytes([a, b, c, d])))
            }
            _ => None,
        };
        Ok(Quoted { addresses: ip.addresses(), protocol, ports, seq, total_len: ip.total_len() })
    }
}
