//! A common form of ARP and neighbour discovery messages.

use farpace_wire::icmp::{neighbour_nics, with_nics};
use farpace_wire::ip::PROTOCOL_ICMPV6;
use farpace_wire::{
    AddressPair, Arp, ArpOperation, Below, Extension, ExtensionError, Icmp, IpView, MacAddr,
    NeighbourDiscovery, Packet,
};
use std::net::{IpAddr, Ipv6Addr};

/// Hop limit of neighbour discovery. A packet from beyond a router cannot have it (RFC 4861 §7.1).
const HOP_LIMIT: u8 = 255;
/// The all-nodes multicast address of a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

/// The content of an address resolution message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArpMessage {
    /// IP and MAC address of the sender. None in a probe, or if the message contains no MAC address.
    pub(super) from: Option<(IpAddr, MacAddr)>,
    /// True for a request or solicitation; false for a reply or announcement.
    pub(super) is_request: bool,
    /// The requested address, or the destination of a reply.
    pub(super) target: IpAddr,
}

impl ArpMessage {
    /// Parses `packet`. None if it is not address resolution, is damaged, or comes from beyond a router.
    pub(super) fn read(packet: &Packet) -> Option<ArpMessage> {
        let ip = match packet.ip() {
            None => return ArpMessage::of_arp(&packet.arp().ok()?),
            Some(IpView::V6(ip)) if ip.protocol() == PROTOCOL_ICMPV6 => ip,
            Some(_) => return None,
        };
        let Ok(Icmp::Neighbour(message)) = packet.icmp() else { return None };
        if ip.hop_limit() != HOP_LIMIT || packet.verify_checksums().is_err() {
            return None;
        }
        Some(match message {
            NeighbourDiscovery::Solicitation { target, source_link } => {
                let source_link = source_link.filter(|_| !ip.src().is_unspecified());
                let from = source_link.map(|mac| (ip.src().into(), mac));
                ArpMessage { from, is_request: true, target: target.into() }
            }
            NeighbourDiscovery::Advertisement { target, target_link, .. } => {
                let from = target_link.map(|mac| (target.into(), mac));
                ArpMessage { from, is_request: false, target: ip.dst().into() }
            }
        })
    }

    fn of_arp(arp: &Arp) -> Option<ArpMessage> {
        let is_request = match arp.operation {
            ArpOperation::Request => true,
            ArpOperation::Reply => false,
            ArpOperation::Other(_) => return None,
        };
        let from = (!arp.sender.is_unspecified()).then_some((arp.sender.into(), arp.sender_mac));
        Some(ArpMessage { from, is_request, target: arp.target.into() })
    }

    /// True for a reply that does not answer a request.
    pub(super) fn is_unsolicited(&self) -> bool {
        let is_own = self.from.is_some_and(|(from, _)| from == self.target);
        is_own || self.target.is_multicast() || self.target.is_unspecified()
    }
}

/// The list of NICs that a message carries.
pub(super) fn list(packet: &Packet) -> Result<Option<Extension>, ExtensionError> {
    if packet.arp().is_ok() { Extension::parse_arp(packet.payload()) } else { neighbour_nics(packet) }
}

/// The message with `mac` as sender, and with `list` if given. Unchanged if it cannot carry that.
pub(super) fn with_sender(packet: Packet, mac: MacAddr, list: Option<&Extension>) -> Packet {
    let other = match (packet.arp(), list) {
        (Ok(arp), list) => {
            let arp = Arp { sender_mac: mac, ..arp };
            with_payload(&packet, &list.map_or_else(|| arp.encode().to_vec(), |list| arp.encode_with(list)))
        }
        (Err(_), list) => with_nics(&packet, mac, list),
    };
    other.unwrap_or(packet)
}

/// An ARP packet without a list.
pub(super) fn strip_list(packet: Packet) -> Packet {
    let plain = packet.arp().ok().and_then(|arp| with_payload(&packet, &arp.encode()));
    plain.unwrap_or(packet)
}

/// An announcement that `own` is at `mac` (RFC 5227 §2.3, RFC 4861 §7.2.6).
pub(super) fn announcement(own: IpAddr, mac: MacAddr) -> Option<Packet> {
    match own {
        IpAddr::V4(own) => Some(Arp::request(mac, own, own).packet(MacAddr::BROADCAST)),
        IpAddr::V6(own) => {
            let message = NeighbourDiscovery::Advertisement {
                target: own,
                target_link: Some(mac),
                router: false,
                solicited: false,
                overrides: true,
            };
            let below = Below::new(mac, ALL_NODES_MAC, AddressPair::V6(own, ALL_NODES), HOP_LIMIT);
            below.icmp(0, &Icmp::Neighbour(message)).ok()
        }
    }
}

/// A packet with the same headers, including VLAN tags, and another payload.
fn with_payload(packet: &Packet, payload: &[u8]) -> Option<Packet> {
    Packet::from_frame(&[packet.headers(), payload].concat()).ok()
}
