//! The packet inside an ICMP error, of which often only the beginning is there.

use crate::error::WireError;
use crate::ip::{AddressPair, IpView, PROTOCOL_TCP, PROTOCOL_UDP};
use crate::ipv4::Ipv4View;
use crate::ipv6::Ipv6View;
use farpace_units::Seq;

/// What a quoted packet says about itself: enough to find the connection it belonged to and to judge whether
/// that connection can have sent it (RFC 5927 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Whence and whither it was going.
    pub addresses: AddressPair,
    /// What it carried.
    pub protocol: u8,
    /// Source and destination port; none if it is neither TCP nor UDP, not the first fragment, or cut off.
    pub ports: Option<(u16, u16)>,
    /// SEG.SEQ; none if it is not TCP, not the first fragment, or cut off.
    pub seq: Option<Seq>,
    /// Its length in bytes, as its IP header says: an MTU is below it when a router says "too big" without
    /// saying more (RFC 1191 §5).
    pub total_len: usize,
}

impl Quoted {
    /// Reads what an error quotes: an IP header of either version and, as far as it is there, what follows.
    /// Neither lengths nor checksums of the quoted packet are judged: routers change and cut it.
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
