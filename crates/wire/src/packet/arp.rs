//! ARP messages and packets.

use super::{NetworkHeader, Packet};
use crate::arp::Arp;
use crate::error::WireError;
use crate::ethernet::{EtherType, MacAddr};
use crate::ip::IpView;
use bytes::Bytes;

impl Packet {
    /// The ARP message.
    ///
    /// # Errors
    /// The frame contains no ARP message, or a malformed one.
    pub fn arp(&self) -> Result<Arp, WireError> {
        match self.network()? {
            NetworkHeader::Other(EtherType::ARP) => Arp::parse(&self.0.payload),
            NetworkHeader::Other(other) => Err(WireError::NotArp(other.0)),
            NetworkHeader::Ip(IpView::V4(_)) => Err(WireError::NotArp(EtherType::IPV4.0)),
            NetworkHeader::Ip(IpView::V6(_)) => Err(WireError::NotArp(EtherType::IPV6.0)),
        }
    }
}

impl Arp {
    /// The packet with this message, to the MAC address `to`.
    pub fn packet(&self, to: MacAddr) -> Packet {
        Packet::from_link(self.sender_mac, to, EtherType::ARP, Bytes::copy_from_slice(&self.encode()))
    }
}
