#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use super::*;
use farpace_wire::icmp::{neighbour_nics, solicited_node, solicited_node_mac};
use farpace_wire::{AddressPair, Arp, Below, EtherType, ExtensionError, Icmp, NeighbourDiscovery};
use std::net::{Ipv4Addr, Ipv6Addr};

const G: NicKind = NicKind(3);
const M: NicKind = NicKind(2);
const BOTH: NicFlags = NicFlags::ANSWERS_PROBES.with(NicFlags::RESEQUENCES);

fn at(ms: u64) -> Instant {
    Instant::ZERO + Span::from_millis(ms)
}

/// A host on a LAN: a stack that resolves addresses, with or without an announcer. Host 1 is 10.0.0.1 and
/// fe80::1 with the NICs 11 and 12, and so on.
struct LanHost {
    n: u8,
    announcer: Option<ArpAnnouncer>,
    /// Learned neighbours: first NIC, number of NICs.
    learned: Vec<(u8, usize)>,
    /// Frames that its stack has seen.
    seen: Vec<Packet>,
}

impl LanHost {
    fn mac(&self, nic: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, self.n * 16 + nic])
    }
    fn ip(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, self.n)
    }
    fn ip6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, self.n.into())
    }
    fn ordinary(n: u8) -> LanHost {
        LanHost { n, announcer: None, learned: Vec::new(), seen: Vec::new() }
    }
    fn multi_nic(n: u8, generation: u16) -> LanHost {
        let mut host = LanHost::ordinary(n);
        let nics = [(host.mac(1), G), (host.mac(2), M)];
        host.announcer = Some(ArpAnnouncer::new(host.mac(1), &nics, BOTH, generation));
        host
    }
    /// The stack sends a packet. Returns the frames that leave.
    fn send(&mut self, now: Instant, packet: Packet) -> Vec<Packet> {
        let Some(announcer) = &mut self.announcer else { return vec![packet] };
        let mut out = vec![announcer.outgoing(now, packet)];
        out.extend(self.poll());
        out
    }
    fn poll(&mut self) -> Vec<Packet> {
        let mut out = Vec::new();
        while let Some(action) = self.announcer.as_mut().and_then(ArpAnnouncer::poll) {
            match action {
                AnnouncerAction::Send(packet) => out.push(packet),
                AnnouncerAction::Learned(Learned::Extended { first, nics, .. }) => {
                    self.learned.push((first.0[5], nics.len()));
                }
                AnnouncerAction::Learned(Learned::Ordinary { first }) => self.learned.push((first.0[5], 0)),
            }
        }
        out
    }
    /// A frame arrives. The stack answers requests for its addresses.
    fn receive(&mut self, now: Instant, packet: Packet) -> Vec<Packet> {
        let (ip, ip6, mac) = (self.ip(), self.ip6(), self.mac(1));
        let packet = match &mut self.announcer {
            Some(announcer) => announcer.incoming(now, packet),
            None => packet,
        };
        let mut out = self.poll();
        if let Ok(arp) = packet.arp()
            && arp.target == ip
            && arp.operation == farpace_wire::ArpOperation::Request
        {
            out.extend(self.send(now, arp.reply(mac).packet(arp.sender_mac)));
        }
        if let Ok(Icmp::Neighbour(NeighbourDiscovery::Solicitation { target, source_link })) = packet.icmp()
            && target == ip6
        {
            let (src, to) = (packet.ipv6().unwrap().src(), source_link.unwrap());
            out.extend(self.send(now, advertisement(ip6, mac, src, to)));
        }
        self.seen.push(packet);
        out
    }
    /// Number of known NICs of host `n`.
    fn knows(&self, n: u8, v6: bool) -> usize {
        let other = LanHost::ordinary(n);
        let address = if v6 { IpAddr::V6(other.ip6()) } else { other.ip().into() };
        self.announcer.as_ref().unwrap().cache().host(address).map_or(0, |host| host.nics.len())
    }
    fn stats(&self) -> &ArpStats {
        self.announcer.as_ref().unwrap().stats()
    }
}

fn solicitation(from: &LanHost, to: &LanHost) -> Packet {
    let message = NeighbourDiscovery::Solicitation { target: to.ip6(), source_link: Some(from.mac(1)) };
    let (group, mac) = (solicited_node(to.ip6()), solicited_node_mac(to.ip6()));
    let below = Below::new(from.mac(1), mac, AddressPair::V6(from.ip6(), group), 255);
    below.icmp(0, &Icmp::Neighbour(message)).unwrap()
}
fn advertisement(own: Ipv6Addr, mac: MacAddr, to: Ipv6Addr, to_mac: MacAddr) -> Packet {
    let (target_link, router, solicited, overrides) = (Some(mac), false, true, true);
    let message =
        NeighbourDiscovery::Advertisement { target: own, target_link, router, solicited, overrides };
    Below::new(mac, to_mac, AddressPair::V6(own, to), 255).icmp(0, &Icmp::Neighbour(message)).unwrap()
}
fn request(from: &LanHost, to: &LanHost) -> Packet {
    Arp::request(from.mac(1), from.ip(), to.ip()).packet(MacAddr::BROADCAST)
}

/// Host `from` sends `packet`, and all hosts answer until no frame is left. Returns all frames on the wire.
fn exchange(lan: &mut [LanHost], now: Instant, from: u8, packet: Packet) -> Vec<Packet> {
    let sent = lan.iter_mut().find(|m| m.n == from).map(|m| m.send(now, packet)).unwrap();
    deliver(lan, now, sent)
}
fn deliver(lan: &mut [LanHost], now: Instant, mut on_wire: Vec<Packet>) -> Vec<Packet> {
    let mut at = 0;
    while at < on_wire.len() {
        let packet = on_wire[at].clone();
        let (src, dst) = packet.macs();
        for host in lan.iter_mut().filter(|m| m.mac(1) != src && m.mac(2) != src) {
            if dst.is_multicast() || dst == host.mac(1) || dst == host.mac(2) {
                on_wire.extend(host.receive(now, packet.clone()));
            }
        }
        at += 1;
        assert!(at < 1000, "the exchange does not end");
    }
    on_wire
}

/// Breaks: hosts with lists learn each other's NICs, and hosts without lists see ordinary ARP only.
#[test]
fn a_lan_of_both_kinds() {
    let mut lan =
        [LanHost::multi_nic(1, 7), LanHost::multi_nic(2, 9), LanHost::ordinary(3), LanHost::multi_nic(4, 1)];
    let request_to = |lan: &mut [LanHost], from: usize, to: usize| {
        let packet = request(&lan[from], &lan[to]);
        exchange(lan, at(0), lan[from].n, packet)
    };
    request_to(&mut lan, 0, 1);
    assert_eq!((lan[0].knows(2, false), lan[1].knows(1, false)), (2, 2));
    assert_eq!(lan[3].knows(1, false), 0, "the request was not for this host");
    assert_eq!(
        (&lan[0].learned[..], &lan[1].learned[..]),
        (&[(0x21, 2)][..], &[(0x11, 2)][..]),
        "each change is reported once"
    );
    // A reply lists the NICs that its sender knows of the requester.
    let frames = request_to(&mut lan, 0, 1);
    let lists: Vec<_> =
        frames.iter().map(|frame| Extension::parse_arp(frame.payload()).unwrap().unwrap()).collect();
    assert_eq!(lists.len(), 2);
    assert_eq!(lists[1].targets.as_slice(), [(lan[0].mac(1), G), (lan[0].mac(2), M)]);
    assert_eq!((lists[1].flags, lists[1].generation), (BOTH, 9));

    request_to(&mut lan, 0, 2);
    request_to(&mut lan, 2, 3);
    assert_eq!((lan[0].knows(3, false), lan[3].knows(3, false)), (0, 0));
    // The ordinary host received a valid reply.
    let answers = lan[2].seen.iter().filter(|frame| frame.macs().1 == lan[2].mac(1));
    let answers: Vec<_> = answers.map(|frame| frame.arp().unwrap().sender).collect();
    assert_eq!(answers, [lan[3].ip()]);
    request_to(&mut lan, 3, 0);
    assert_eq!((lan[0].knows(4, false), lan[3].knows(1, false)), (2, 2));
    assert_eq!(lan[3].knows(2, false), 0);
    for host in [0, 1, 3] {
        let refused = &lan[host].stats().refused;
        assert!(refused.keys().all(|why| *why == ArpRefusal::Unsolicited), "{refused:?}");
        let strip_list = lan[host].seen.iter().filter(|f| f.arp().is_ok()).all(|f| f.payload().len() == 28);
        assert!(strip_list, "the stack sees ordinary ARP");
    }
}

/// Breaks: neighbour discovery carries lists too, and the messages of the stack stay valid.
#[test]
fn neighbour_discovery_carries_lists() {
    let mut lan = [LanHost::multi_nic(1, 7), LanHost::multi_nic(2, 9), LanHost::ordinary(3)];
    for to in [1, 2] {
        let packet = solicitation(&lan[0], &lan[to]);
        exchange(&mut lan, at(0), 1, packet);
    }
    assert_eq!((lan[0].knows(2, true), lan[1].knows(1, true), lan[0].knows(3, true)), (2, 2, 0));
    let seen = lan[2].seen.iter().filter(|frame| matches!(frame.icmp(), Ok(Icmp::Neighbour(_))));
    assert_eq!(seen.count(), lan[2].seen.len());
    // Over IPv4 the same hosts have nothing new to learn, and an eviction applies to both families.
    let learned = lan[0].learned.clone();
    assert_eq!(learned, [(0x21, 2)]);
    let packet = request(&lan[0], &lan[1]);
    exchange(&mut lan, at(0), 1, packet);
    assert_eq!((lan[0].knows(2, false), &lan[0].learned), (2, &learned));
    let plain = Arp::request(lan[1].mac(1), lan[1].ip(), lan[1].ip()).packet(MacAddr::BROADCAST);
    lan[0].receive(at(1), plain);
    assert_eq!((lan[0].knows(2, false), lan[0].knows(2, true)), (0, 0));

    // Messages from beyond a router and damaged ones are ignored.
    let mut announcer = LanHost::multi_nic(4, 1);
    let far = Below::new(lan[1].mac(1), lan[0].mac(1), AddressPair::V6(lan[1].ip6(), lan[0].ip6()), 254);
    let message = NeighbourDiscovery::Solicitation { target: lan[0].ip6(), source_link: Some(lan[1].mac(1)) };
    let far = far.icmp(0, &Icmp::Neighbour(message)).unwrap();
    let mut damaged = lan[0].send(at(2), solicitation(&lan[0], &lan[1])).remove(0);
    damaged.flip_bit(damaged.len().bits() - 1);
    for packet in [far, damaged] {
        assert!(ArpMessage::read(&packet).is_none());
        announcer.receive(at(2), packet);
    }
    assert_eq!(announcer.stats(), &ArpStats::default());
}

/// Breaks: a failed NIC is announced immediately, so that neighbours stop sending to it.
#[test]
fn failed_nics_are_announced_at_once() {
    let mut lan = [LanHost::multi_nic(1, 7), LanHost::multi_nic(2, 9)];
    for packet in [request(&lan[0], &lan[1]), solicitation(&lan[0], &lan[1])] {
        exchange(&mut lan, at(0), 1, packet);
    }
    let (first, second) = (lan[0].mac(1), lan[0].mac(2));
    // Send the pending repetitions of the first announcements.
    for host in &mut lan {
        host.announcer.as_mut().unwrap().on_deadline(at(40));
        host.announcer.as_mut().unwrap().on_deadline(at(3000));
        host.poll();
    }
    for (ms, nics, expected) in [
        (10_000, &[(second, M)][..], (second, 1)),
        (20_000, &[(first, G), (second, M)][..], (first, 2)),
        (30_000, &[(first, G)][..], (first, 1)),
    ] {
        let lists_sent = lan[0].stats().lists_sent;
        lan[0].announcer.as_mut().unwrap().set_nics(at(ms), nics);
        let frames = lan[0].poll();
        assert_eq!(frames.len(), 2, "IPv4 and IPv6");
        assert!(frames.iter().all(|frame| frame.macs().0 == expected.0 && frame.macs().1.is_multicast()));
        deliver(&mut lan[1..], at(ms), frames);
        assert_eq!((lan[1].knows(1, false), lan[1].knows(1, true)), (expected.1, expected.1));
        assert_eq!(lan[1].learned.last(), Some(&(expected.0.0[5], expected.1)));
        // The announcement is repeated exactly twice.
        for repeat in [40, 2040] {
            let announcer = lan[0].announcer.as_mut().unwrap();
            assert_eq!(announcer.deadline(), Some(at(ms + repeat)));
            announcer.on_deadline(at(ms + repeat));
            let frames = lan[0].poll();
            assert_eq!(frames.len(), 2);
            deliver(&mut lan[1..], at(ms + repeat), frames);
        }
        assert_eq!(lan[1].learned.last(), Some(&(expected.0.0[5], expected.1)));
        assert_eq!(lan[0].stats().lists_sent, lists_sent + 6);
        let announcer = lan[0].announcer.as_mut().unwrap();
        assert!(announcer.deadline().is_none_or(|at| at > Instant::ZERO + Span::from_secs(1000)));
        announcer.set_nics(at(ms + 5000), nics);
        assert!(announcer.poll().is_none(), "no change, no announcement");
    }
    assert!(!lan[1].learned.contains(&(0x11, 0)), "the paths were never removed");
    assert_eq!(lan[1].stats().refused, [].into());
}

/// Breaks: the requests of a stack whose first NIC has failed name a working NIC, so that replies arrive.
#[test]
fn the_stack_sends_with_the_first_working_nic() {
    let mut host = LanHost::multi_nic(1, 7);
    let other = LanHost::ordinary(3);
    let second = host.mac(2);
    host.announcer.as_mut().unwrap().set_nics(at(0), &[(second, M)]);
    let frames = host.send(at(0), request(&host, &other));
    assert_eq!(frames[0].arp().unwrap(), Arp::request(second, host.ip(), other.ip()));
    let probe = Arp::request(host.mac(1), Ipv4Addr::UNSPECIFIED, host.ip());
    let frames = host.send(at(0), probe.packet(MacAddr::BROADCAST));
    assert_eq!(frames[0].arp().unwrap(), Arp { sender_mac: second, ..probe });
    assert_eq!(frames[0].payload().len(), 28, "a probe carries no list");
    // Without a NIC, messages pass unchanged.
    host.announcer.as_mut().unwrap().set_nics(at(1), &[]);
    let frames = host.send(at(1), request(&host, &other));
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].payload().len(), 28);
}

/// Breaks: neighbours accept the lists of a host that has restarted, instead of taking them for old ones for
/// half an hour.
#[test]
fn a_restarted_host_is_accepted() {
    for generation in [6, 7, 8, 7 + 0x8000, 0] {
        let mut lan = [LanHost::multi_nic(1, 7), LanHost::multi_nic(2, 9)];
        let packet = request(&lan[0], &lan[1]);
        exchange(&mut lan, at(0), 1, packet);
        lan[0] = LanHost::multi_nic(1, generation);
        let one_nic = [(lan[0].mac(1), G)];
        lan[0].announcer = Some(ArpAnnouncer::new(lan[0].mac(1), &one_nic, BOTH, generation));
        // Its first message is for a host that does not exist.
        let other = LanHost::ordinary(3);
        let packet = match generation % 2 {
            0 => request(&lan[0], &other),
            _ => request(&other, &lan[0]).arp().unwrap().reply(lan[0].mac(1)).packet(other.mac(1)),
        };
        exchange(&mut lan, at(10), 1, packet);
        assert_eq!(lan[1].knows(1, false), 1, "generation {generation}");
    }
}

/// Breaks: two hosts with the same address do not send announcements against each other without end.
#[test]
fn an_address_of_another_host_is_not_announced() {
    let mut host = LanHost::multi_nic(1, 7);
    host.send(at(0), request(&host, &LanHost::ordinary(3)));
    let other_host = LanHost::ordinary(5);
    let claim = Arp::request(other_host.mac(1), host.ip(), host.ip());
    assert!(
        host.receive(at(1), Arp { target: other_host.ip(), ..claim }.packet(MacAddr::BROADCAST)).is_empty()
    );
    let second = host.mac(2);
    host.announcer.as_mut().unwrap().set_nics(at(2), &[(second, M)]);
    assert!(host.poll().is_empty());
    let frames = host.send(at(3), request(&host, &LanHost::ordinary(3)));
    assert_eq!(frames.len(), 2, "the stack uses it again: its request, and an announcement");
    // Own frames that arrive on another NIC are no conflict.
    for frame in frames {
        host.receive(at(4), frame);
    }
    host.announcer.as_mut().unwrap().announce(at(5));
    assert_eq!(host.poll().len(), 1);
    assert_eq!(host.stats().refused.keys().copied().collect::<Vec<_>>(), [ArpRefusal::OwnNic]);
    let ip = host.ip().into();
    host.announcer.as_mut().unwrap().withdraw(ip);
    host.announcer.as_mut().unwrap().announce(at(6));
    assert!(host.poll().is_empty(), "the address is being probed again");
}

/// Breaks: the stack gets the ordinary ARP message around a bad list, and other packets pass unchanged.
#[test]
fn the_stack_gets_ordinary_messages() {
    let mut host = LanHost::multi_nic(1, 7);
    let other = LanHost::multi_nic(2, 9);
    let list = Extension::new(other.ip().into(), &[(other.mac(1), G)], BOTH, 3);
    let arp = Arp::request(other.mac(1), other.ip(), host.ip());
    let mut bytes = arp.encode_with(&list);
    *bytes.last_mut().unwrap() ^= 1;
    let bad = Packet::from_link(other.mac(1), MacAddr::BROADCAST, EtherType::ARP, bytes.into());
    let answers = host.receive(at(0), bad);
    assert_eq!(answers[0].arp().unwrap().target, other.ip());
    assert_eq!(host.seen[0].arp().unwrap(), arp);
    assert_eq!(host.stats().refused(ArpRefusal::Malformed(ExtensionError::Checksum)), 1);
    assert!(
        host.stats()
            .inspect()
            .iter()
            .any(|(what, n)| *what == "lists refused" && n == "1 (the CRC is wrong)")
    );

    let tagged = |packet: Packet| {
        let mut frame = packet.headers().to_vec();
        frame.splice(12..12, [0x81, 0, 0, 5]);
        frame.extend_from_slice(packet.payload());
        Packet::from_frame(&frame).unwrap()
    };
    // The VLAN tag stays.
    for packet in [request(&host, &other), solicitation(&host, &other)] {
        host.send(at(1), packet.clone());
        let sent = host.send(at(1), tagged(packet)).remove(0);
        assert_eq!(sent.ethernet().unwrap().tags.len(), 1);
        sent.verify_checksums().unwrap();
        let found =
            if sent.arp().is_ok() { Extension::parse_arp(sent.payload()) } else { neighbour_nics(&sent) };
        assert_eq!(found.unwrap().unwrap().senders.len(), 2);
    }
    let below = Below::new(host.mac(1), other.mac(1), AddressPair::V4(host.ip(), other.ip()), 64);
    let datagram =
        below.udp(1, farpace_wire::UdpHeader { src_port: 1, dst_port: 2 }, (&b"x"[..]).into()).unwrap();
    let foreign = Packet::from_link(other.mac(1), host.mac(1), EtherType::ARP, (&[9; 60][..]).into());
    for packet in [datagram, foreign] {
        let (mut was, mut is) = (Vec::new(), Vec::new());
        packet.write_frame(&mut was);
        let announcer = host.announcer.as_mut().unwrap();
        let out = announcer.outgoing(at(2), packet);
        announcer.incoming(at(2), out).write_frame(&mut is);
        assert_eq!(was, is);
    }
}
