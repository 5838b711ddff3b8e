//! ARP for IPv4 over Ethernet (RFC 826), and the list of NICs that may follow it.

mod extension;

pub use extension::{Extension, ExtensionError, MAX_LISTED_NICS, NicFlags, NicList};

use crate::error::{Layer, WireError};
use crate::ethernet::MacAddr;
use std::net::Ipv4Addr;

/// Bytes of an ARP packet for IPv4 over Ethernet.
pub const ARP_LEN: usize = 28;
/// Hardware type Ethernet, protocol type IPv4, and the lengths of their addresses.
const PREFIX: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// Operation of an ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArpOperation {
    /// Asks for the MAC address of the target.
    Request,
    /// Returns the MAC address of the sender.
    Reply,
    /// Any other operation.
    Other(u16),
}

impl ArpOperation {
    const fn from_number(number: u16) -> Self {
        match number {
            1 => ArpOperation::Request,
            2 => ArpOperation::Reply,
            other => ArpOperation::Other(other),
        }
    }
    const fn number(self) -> u16 {
        match self {
            ArpOperation::Request => 1,
            ArpOperation::Reply => 2,
            ArpOperation::Other(number) => number,
        }
    }
}

/// An ARP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arp {
    /// The operation.
    pub operation: ArpOperation,
    /// MAC address of the sender.
    pub sender_mac: MacAddr,
    /// IP address of the sender. Unspecified in a probe (RFC 5227).
    pub sender: Ipv4Addr,
    /// MAC address of the target; unused in a request.
    pub target_mac: MacAddr,
    /// IP address of the target.
    pub target: Ipv4Addr,
}

impl Arp {
    /// Parses the bytes after the Ethernet header and ignores padding. Refuses networks other than IPv4 over
    /// Ethernet.
    pub fn parse(bytes: &[u8]) -> Result<Arp, WireError> {
        let Some(fields) = bytes.first_chunk::<ARP_LEN>() else {
            return Err(WireError::Truncated { layer: Layer::Arp, need: ARP_LEN, have: bytes.len() });
        };
        if fields[..6] != PREFIX {
            return Err(WireError::ForeignArp);
        }
        let &[_, _, _, _, _, _, o0, o1, a, b, c, d, e, f, s0, s1, s2, s3, g, h, i, j, k, l, t0, t1, t2, t3] =
            fields;
        Ok(Arp {
            operation: ArpOperation::from_number(u16::from_be_bytes([o0, o1])),
            sender_mac: MacAddr([a, b, c, d, e, f]),
            sender: Ipv4Addr::new(s0, s1, s2, s3),
            target_mac: MacAddr([g, h, i, j, k, l]),
            target: Ipv4Addr::new(t0, t1, t2, t3),
        })
    }

    /// The bytes after the Ethernet header.
    pub fn encode(&self) -> [u8; ARP_LEN] {
        let mut out = [0; ARP_LEN];
        out[..6].copy_from_slice(&PREFIX);
        out[6..8].copy_from_slice(&self.operation.number().to_be_bytes());
        out[8..14].copy_from_slice(&self.sender_mac.0);
        out[14..18].copy_from_slice(&self.sender.octets());
        out[18..24].copy_from_slice(&self.target_mac.0);
        out[24..28].copy_from_slice(&self.target.octets());
        out
    }

    /// A request for `target`, to be broadcast.
    pub const fn request(sender_mac: MacAddr, sender: Ipv4Addr, target: Ipv4Addr) -> Arp {
        Arp { operation: ArpOperation::Request, sender_mac, sender, target_mac: MacAddr([0; 6]), target }
    }

    /// The reply of the target.
    #[must_use]
    pub const fn reply(&self, own_mac: MacAddr) -> Arp {
        Arp {
            operation: ArpOperation::Reply,
            sender_mac: own_mac,
            sender: self.target,
            target_mac: self.sender_mac,
            target: self.sender,
        }
    }
}
