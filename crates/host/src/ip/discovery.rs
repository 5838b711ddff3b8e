//! The messages of ARP (RFC 826, RFC 5227) and neighbour discovery (RFC 4861 §7) at a host: what was heard,
//! what is answered, and how a question looks.

use super::neighbours::NeighbourFact;
use farpace_wire::icmp::{solicited_node, solicited_node_mac};
use farpace_wire::{AddressPair, Arp, ArpOperation, Below, Icmp, MacAddr, NeighbourDiscovery, Packet};
use std::net::{IpAddr, Ipv6Addr};

/// The hop limit of neighbour discovery: a packet from beyond a router cannot have it (RFC 4861 §7.1).
pub(super) const HOP_LIMIT: u8 = 255;
/// All nodes of a link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: MacAddr = MacAddr([0x33, 0x33, 0, 0, 0, 1]);

/// What an ARP packet or a message of neighbour discovery means to a host.
#[derive(Debug)]
pub enum DiscoveryMessage {
    /// A neighbour has shown its MAC address.
    Shown {
        /// Who.
        from: IpAddr,
        /// Where.
        mac: MacAddr,
        /// How: for [`Neighbours::on_heard`](super::neighbours::Neighbours::on_heard).
        heard: NeighbourFact,
        /// What is to be sent, if it asked for us.
        answer: Option<Packet>,
    },
    /// Somebody asked for us without showing itself: one that has no address yet and asks whether ours is
    /// taken (RFC 5227 §2.1, RFC 4862 §5.4.3), or one that knows us and asks whether we are still there.
    Asked {
        /// What is to be sent.
        answer: Packet,
    },
    /// Somebody else uses this address of ours (RFC 5227 §2.4).
    Conflict(IpAddr),
    /// Nothing: not for us, or not to be believed.
    Nothing,
}

/// What `packet` means to the host with the MAC address `mac`, where `is_ours` knows its IP addresses. None
/// if it is neither ARP nor a message of neighbour discovery. Checksums have been verified.
pub fn read(packet: &Packet, mac: MacAddr, is_ours: impl Fn(IpAddr) -> bool) -> Option<DiscoveryMessage> {
    if let Ok(arp) = packet.arp() {
        return Some(read_arp(&arp, mac, is_ours));
    }
    let Ok(Icmp::Neighbour(message)) = packet.icmp() else { return None };
    let (ip, ethernet) = (packet.ipv6()?, packet.ethernet().ok()?);
    if ip.hop_limit() != HOP_LIMIT {
        return Some(DiscoveryMessage::Nothing);
    }
    Some(match message {
        NeighbourDiscovery::Solicitation { target, source_link } => {
            let answer_to = source_link.unwrap_or(ethernet.src);
            read_solicitation(target, source_link, answer_to, (ip.src(), ip.dst()), mac, is_ours)
        }
        NeighbourDiscovery::Advertisement { target, target_link, solicited, overrides, .. } => {
            // RFC 4861 §7.1.2: an answer to everybody answers nobody's question.
            if target.is_multicast() || (solicited && ip.dst().is_multicast()) {
                return Some(DiscoveryMessage::Nothing);
            }
            let heard = NeighbourFact::Answered { solicited, overrides };
            read_advertisement(target, target_link, heard, mac, is_ours)
        }
    })
}

fn read_arp(arp: &Arp, mac: MacAddr, is_ours: impl Fn(IpAddr) -> bool) -> DiscoveryMessage {
    let (from, for_us) = (IpAddr::V4(arp.sender), is_ours(arp.target.into()));
    if is_ours(from) {
        return if arp.sender_mac == mac {
            DiscoveryMessage::Nothing
        } else {
            DiscoveryMessage::Conflict(from)
        };
    }
    let answer =
        (for_us && arp.operation == ArpOperation::Request).then(|| arp.reply(mac).packet(arp.sender_mac));
    if arp.sender.is_unspecified() {
        return answer.map_or(DiscoveryMessage::Nothing, |answer| DiscoveryMessage::Asked { answer });
    }
    let heard = match arp.operation {
        ArpOperation::Request if for_us => NeighbourFact::AskedUs,
        // A request to somebody else and a gratuitous one say where their sender is (RFC 826).
        ArpOperation::Request => NeighbourFact::Answered { solicited: false, overrides: true },
        ArpOperation::Reply => NeighbourFact::Answered { solicited: for_us, overrides: true },
        ArpOperation::Other(_) => return DiscoveryMessage::Nothing,
    };
    DiscoveryMessage::Shown { from, mac: arp.sender_mac, heard, answer }
}

fn read_solicitation(
    target: Ipv6Addr,
    source_link: Option<MacAddr>,
    answer_to: MacAddr,
    (src, dst): (Ipv6Addr, Ipv6Addr),
    mac: MacAddr,
    is_ours: impl Fn(IpAddr) -> bool,
) -> DiscoveryMessage {
    if target.is_multicast() || !is_ours(target.into()) || is_ours(src.into()) {
        return DiscoveryMessage::Nothing;
    }
    if src.is_unspecified() {
        // RFC 4861 §7.1.1: who has no address yet asks the group, and gives no MAC address.
        if source_link.is_some() || dst != solicited_node(target) {
            return DiscoveryMessage::Nothing;
        }
        return match advertisement(target, mac, ALL_NODES, ALL_NODES_MAC, false) {
            Some(answer) => DiscoveryMessage::Asked { answer },
            None => DiscoveryMessage::Nothing,
        };
    }
    match (advertisement(target, mac, src, answer_to, true), source_link) {
        (Some(answer), None) => DiscoveryMessage::Asked { answer },
        (Some(answer), Some(mac)) => DiscoveryMessage::Shown {
            from: src.into(),
            mac,
            heard: NeighbourFact::AskedUs,
            answer: Some(answer),
        },
        (None, _) => DiscoveryMessage::Nothing,
    }
}

/// An advertisement without a MAC address says nothing that could be used.
fn read_advertisement(
    target: Ipv6Addr,
    target_link: Option<MacAddr>,
    heard: NeighbourFact,
    mac: MacAddr,
    is_ours: impl Fn(IpAddr) -> bool,
) -> DiscoveryMessage {
    let from = IpAddr::V6(target);
    match target_link {
        Some(theirs) if is_ours(from) && theirs != mac => DiscoveryMessage::Conflict(from),
        Some(theirs) if !is_ours(from) => DiscoveryMessage::Shown { from, mac: theirs, heard, answer: None },
        _ => DiscoveryMessage::Nothing,
    }
}

fn advertisement(
    target: Ipv6Addr,
    mac: MacAddr,
    to: Ipv6Addr,
    to_mac: MacAddr,
    solicited: bool,
) -> Option<Packet> {
    let message = NeighbourDiscovery::Advertisement {
        target,
        target_link: Some(mac),
        router: false,
        solicited,
        overrides: true,
    };
    let below = Below::new(mac, to_mac, AddressPair::V6(target, to), HOP_LIMIT);
    below.icmp(0, &Icmp::Neighbour(message)).ok()
}

/// The question for `target`, from our address `own` with the MAC address `mac`: to `to` alone or, if that is
/// none, to everybody. None if the two are not of one family.
pub fn question(target: IpAddr, to: Option<MacAddr>, own: IpAddr, mac: MacAddr) -> Option<Packet> {
    match AddressPair::new(own, target)? {
        AddressPair::V4(own, target) => {
            Some(Arp::request(mac, own, target).packet(to.unwrap_or(MacAddr::BROADCAST)))
        }
        AddressPair::V6(own, target) => {
            let message =
                Icmp::Neighbour(NeighbourDiscovery::Solicitation { target, source_link: Some(mac) });
            let (to, group) = match to {
                Some(to) => (to, target),
                None => (solicited_node_mac(target), solicited_node(target)),
            };
            Below::new(mac, to, AddressPair::V6(own, group), HOP_LIMIT).icmp(0, &message).ok()
        }
    }
}

/// What a host tells everybody when it gets the address `own`: a gratuitous ARP request (RFC 5227 §2.3) or an
/// unsolicited advertisement (RFC 4861 §7.2.6).
pub fn announcement(own: IpAddr, mac: MacAddr) -> Option<Packet> {
    match own {
        IpAddr::V4(own) => Some(Arp::request(mac, own, own).packet(MacAddr::BROADCAST)),
        IpAddr::V6(own) => advertisement(own, mac, ALL_NODES, ALL_NODES_MAC, false),
    }
}

#[cfg(test)]
mod tests;
