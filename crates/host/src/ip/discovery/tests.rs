use super::*;
use crate::ip::neighbours::{NeighbourAction, Neighbours, Resolved};
use farpace_units::Instant;
use farpace_wire::EtherType;

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn pairs() -> [(IpAddr, IpAddr); 2] {
    [([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap())]
}

/// `packet` as it comes out of a cable.
fn through(packet: &Packet) -> Packet {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    let packet = Packet::from_frame(&frame).unwrap();
    packet.verify_checksums().unwrap();
    packet
}

fn at_b(packet: &Packet, b: IpAddr) -> DiscoveryMessage {
    read(&through(packet), B, |address| address == b).unwrap()
}

/// Breaks: two hosts on one link do not find each other, over either version of IP.
#[test]
fn two_hosts_find_each_other() {
    for (a, b) in pairs() {
        let now = Instant::from_nanos(1);
        let (mut of_a, mut of_b) = (Neighbours::default(), Neighbours::default());
        let packet = Packet::from_link(A, MacAddr::default(), EtherType(0x1234), "data".into());
        assert!(matches!(of_a.resolve(now, b, packet), Resolved::Waits));
        let Some(NeighbourAction::Ask { target, to }) = of_a.poll() else { panic!("a question") };
        let asked = question(target, to, a, A).unwrap();
        assert!(asked.ethernet().unwrap().dst.is_multicast());
        let DiscoveryMessage::Shown { from, mac, heard, answer } = at_b(&asked, b) else { panic!("for b") };
        assert_eq!((from, mac, heard), (a, A, NeighbourFact::AskedUs));
        of_b.on_heard(now, from, mac, heard);
        assert_eq!(of_b.lookup(now, a), Some(A), "whoever asks will be talked to");
        let answer = through(&answer.unwrap());
        assert_eq!(answer.ethernet().unwrap().dst, A);
        let DiscoveryMessage::Shown { from, mac, heard, answer } = read(&answer, A, |ip| ip == a).unwrap()
        else {
            panic!("for a")
        };
        assert_eq!((from, mac, answer.is_none()), (b, B, true));
        of_a.on_heard(now, from, mac, heard);
        assert!(matches!(of_a.poll(), Some(NeighbourAction::Send { to: B, .. })));
        // Later, to b alone.
        let asked = question(b, Some(B), a, A).unwrap();
        assert_eq!(asked.ethernet().unwrap().dst, B);
        assert!(matches!(
            at_b(&asked, b),
            DiscoveryMessage::Shown { heard: NeighbourFact::AskedUs, answer: Some(_), .. }
        ));
    }
}

/// Breaks: a host answers questions that are not for it, or makes entries of everybody it overhears.
#[test]
fn questions_to_others() {
    let other = "10.0.0.3".parse().unwrap();
    let asked = question(other, None, [10, 0, 0, 1].into(), A).unwrap();
    let DiscoveryMessage::Shown { heard, answer, .. } = at_b(&asked, [10, 0, 0, 2].into()) else {
        panic!("shown")
    };
    assert_eq!(
        (heard, answer.is_none()),
        (NeighbourFact::Answered { solicited: false, overrides: true }, true)
    );
    let asked = question("fe80::3".parse().unwrap(), None, "fe80::1".parse().unwrap(), A).unwrap();
    assert!(matches!(at_b(&asked, "fe80::2".parse().unwrap()), DiscoveryMessage::Nothing));
    assert!(question(other, None, "fe80::1".parse().unwrap(), A).is_none());
}

/// Breaks: two hosts with one address go unnoticed, or a host takes its own words for another's.
#[test]
fn one_address_twice() {
    for (a, b) in pairs() {
        // Told to everybody.
        assert!(
            matches!(at_b(&announcement(b, A).unwrap(), b), DiscoveryMessage::Conflict(address) if address == b)
        );
        assert!(matches!(at_b(&announcement(b, B).unwrap(), b), DiscoveryMessage::Nothing));
        let DiscoveryMessage::Shown { from, mac, heard, answer: None } =
            at_b(&announcement(a, A).unwrap(), b)
        else {
            panic!("shown")
        };
        assert_eq!((from, mac, heard), (a, A, NeighbourFact::Answered { solicited: false, overrides: true }));
    }
    // A probe for our address (RFC 5227 §2.1, RFC 4862 §5.4.3).
    let probe = Arp::request(A, [0; 4].into(), [10, 0, 0, 2].into()).packet(MacAddr::BROADCAST);
    assert!(matches!(at_b(&probe, [10, 0, 0, 2].into()), DiscoveryMessage::Asked { .. }));
    let target: Ipv6Addr = "fe80::2".parse().unwrap();
    let probe = |source_link| {
        let message = Icmp::Neighbour(NeighbourDiscovery::Solicitation { target, source_link });
        let addresses = AddressPair::V6(Ipv6Addr::UNSPECIFIED, solicited_node(target));
        Below::new(A, solicited_node_mac(target), addresses, 255).icmp(0, &message).unwrap()
    };
    let DiscoveryMessage::Asked { answer } = at_b(&probe(None), target.into()) else { panic!("answered") };
    let answer = through(&answer);
    assert_eq!(answer.ip().unwrap().dst(), IpAddr::from(ALL_NODES));
    let Ok(Icmp::Neighbour(NeighbourDiscovery::Advertisement { solicited, .. })) = answer.icmp() else {
        panic!("advertisement")
    };
    assert!(!solicited, "to everybody");
    assert!(matches!(at_b(&probe(Some(A)), target.into()), DiscoveryMessage::Nothing), "RFC 4861 §7.1.1");
}

/// Breaks: neighbour discovery is believed from beyond a router (RFC 4861 §7.1), or an answer to everybody
/// for one that was asked for.
#[test]
fn what_is_not_believed() {
    let (a, b): (Ipv6Addr, Ipv6Addr) = ("fe80::1".parse().unwrap(), "fe80::2".parse().unwrap());
    let advertisement = |dst: Ipv6Addr, hop_limit: u8, target_link| {
        let message = NeighbourDiscovery::Advertisement {
            target: a,
            target_link,
            router: false,
            solicited: true,
            overrides: true,
        };
        let below = Below::new(A, B, AddressPair::V6(a, dst), hop_limit);
        at_b(&below.icmp(0, &Icmp::Neighbour(message)).unwrap(), b.into())
    };
    assert!(matches!(advertisement(b, 255, Some(A)), DiscoveryMessage::Shown { .. }));
    assert!(matches!(advertisement(b, 254, Some(A)), DiscoveryMessage::Nothing));
    assert!(matches!(advertisement(ALL_NODES, 255, Some(A)), DiscoveryMessage::Nothing));
    assert!(matches!(advertisement(b, 255, None), DiscoveryMessage::Nothing));
    let echo = Below::new(A, B, AddressPair::V6(a, b), 255)
        .icmp(0, &Icmp::EchoRequest { ident: 1, seq: 1, data: &[] })
        .unwrap();
    assert!(read(&echo, B, |_| true).is_none());
}
