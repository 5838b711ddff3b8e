//! Whether an address is free, asked before it is used (RFC 5227 §2.1.1, RFC 4862 §5.4).

use super::discovery::HOP_LIMIT;
use farpace_wire::icmp::{solicited_node, solicited_node_mac};
use farpace_wire::{AddressPair, Arp, Below, Icmp, MacAddr, NeighbourDiscovery, Packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The question whether anybody has `address`, from a station with the MAC address `mac` that does not have
/// it yet. It leaves no trace in the tables of those who hear it. None: no link can carry it.
pub fn probe(address: IpAddr, mac: MacAddr) -> Option<Packet> {
    match address {
        IpAddr::V4(target) => {
            Some(Arp::request(mac, Ipv4Addr::UNSPECIFIED, target).packet(MacAddr::BROADCAST))
        }
        IpAddr::V6(target) => {
            let message = Icmp::Neighbour(NeighbourDiscovery::Solicitation { target, source_link: None });
            let pair = AddressPair::V6(Ipv6Addr::UNSPECIFIED, solicited_node(target));
            Below::new(mac, solicited_node_mac(target), pair, HOP_LIMIT).icmp(0, &message).ok()
        }
    }
}

/// Who has `address`, or is about to take it, as `packet` tells the station with the MAC address `mac` that
/// wants it.
pub fn taken_by(packet: &Packet, address: IpAddr, mac: MacAddr) -> Option<MacAddr> {
    let who = match address {
        IpAddr::V4(address) => {
            let arp = packet.arp().ok()?;
            // Whoever sends from it has it; who asks for it without an address wants it, too.
            let has = arp.sender == address;
            let wants = arp.sender.is_unspecified() && arp.target == address;
            (has || wants).then_some(arp.sender_mac)?
        }
        IpAddr::V6(address) => {
            let Ok(Icmp::Neighbour(message)) = packet.icmp() else { return None };
            let (ip, ethernet) = (packet.ipv6()?, packet.ethernet().ok()?);
            let tells = match message {
                NeighbourDiscovery::Advertisement { target, .. } => target == address,
                NeighbourDiscovery::Solicitation { target, .. } => {
                    target == address && ip.src().is_unspecified()
                }
            };
            (tells && ip.hop_limit() == HOP_LIMIT).then_some(ethernet.src)?
        }
    };
    (who != mac).then_some(who)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::discovery::{self, DiscoveryMessage};

    const US: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THEM: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

    fn addresses() -> [[IpAddr; 2]; 2] {
        [["10.0.0.1", "10.0.0.3"], ["fd77::1", "fd77::3"]].map(|pair| pair.map(|text| text.parse().unwrap()))
    }

    /// Breaks: an address that a farpace host, or any other, has on a network is taken for free, and both get
    /// the packets of one.
    #[test]
    fn who_has_the_address_says_so() {
        for [wanted, other] in addresses() {
            let asked = probe(wanted, US).unwrap();
            asked.verify_checksums().unwrap();
            let heard = discovery::read(&asked, THEM, |address| address == wanted).unwrap();
            let DiscoveryMessage::Asked { answer } = heard else { panic!("{heard:?}") };
            assert_eq!(taken_by(&answer, wanted, US), Some(THEM));
            assert_eq!(taken_by(&answer, other, US), None);
            assert_eq!(taken_by(&answer, wanted, THEM), None, "that would be ourselves");
            let announced = discovery::announcement(wanted, THEM).unwrap();
            assert_eq!(taken_by(&announced, wanted, US), Some(THEM));
        }
    }

    /// Breaks: two that begin at once with one address both believe that it is theirs; or a question to an
    /// address is taken for somebody who has it.
    #[test]
    fn who_asks_at_the_same_time_is_heard() {
        for [wanted, other] in addresses() {
            assert_eq!(taken_by(&probe(wanted, THEM).unwrap(), wanted, US), Some(THEM));
            assert_eq!(taken_by(&probe(wanted, US).unwrap(), wanted, US), None, "our own");
            let question = discovery::question(wanted, None, other, THEM).unwrap();
            assert_eq!(taken_by(&question, wanted, US), None, "a host looks for whoever has it");
        }
    }
}
