use super::*;
use farpace_units::{Seq, Span};
use farpace_wire::{MacAddr, TcpHeader, UdpHeader, fragment};

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn way(v6: bool) -> Below {
    let addresses = match v6 {
        true => AddressPair::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
        false => AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
    };
    Below::new(A, B, addresses, 9)
}

fn datagram(below: Below, len: usize) -> Packet {
    below.udp(1, UdpHeader { src_port: 1000, dst_port: 2000 }, vec![1; len].into()).unwrap()
}

/// `packet` as it comes out of a cable.
fn through(packet: &Packet) -> Packet {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    let packet = Packet::from_frame(&frame).unwrap();
    packet.verify_checksums().unwrap();
    packet
}

fn complain(error: IcmpError, packet: &Packet) -> Option<Packet> {
    let from = packet.ip().unwrap().dst();
    let from = if from.is_multicast() { way(from.is_ipv6()).addresses.dst() } else { from };
    ErrorSource::default().error(Instant::ZERO, error, packet, from)
}

fn at_a(packet: &Packet) -> PathMessage {
    path_message(&through(packet)).unwrap()
}

/// Breaks: ping.
#[test]
fn an_echo_comes_back() {
    for v6 in [false, true] {
        let below = Below { tos: 0xb9, ..way(v6) };
        let own = below.addresses.dst();
        let request =
            through(&below.icmp(1, &Icmp::EchoRequest { ident: 3, seq: 4, data: b"data" }).unwrap());
        let reply = echo_reply(&request, 77).unwrap();
        assert_eq!(reply.ipv4().map(|ip| (ip.ident(), ip.dont_fragment())), (!v6).then_some((77, false)));
        let reply = through(&reply);
        let (ip, ethernet) = (reply.ip().unwrap(), reply.ethernet().unwrap());
        assert_eq!(ip.addresses(), below.addresses.reversed());
        assert_eq!((ethernet.src, ethernet.dst), (B, A));
        assert_eq!((ip.tos(), ip.ttl()), (0xb8, 64), "the same service, without the mark of the request");
        assert_eq!(reply.icmp(), Ok(Icmp::EchoReply { ident: 3, seq: 4, data: b"data" }));
        assert!(echo_reply(&reply, 0).is_none() && path_message(&reply).is_none());
        // To everybody, and from nobody.
        let mut broadcast = request.clone();
        broadcast.set_macs(A, MacAddr::BROADCAST);
        assert!(echo_reply(&broadcast, 77).is_none());
        let nobody = if v6 { "::".parse().unwrap() } else { [0; 4].into() };
        let group: IpAddr = if v6 { "ff02::1".parse().unwrap() } else { [255; 4].into() };
        for (src, dst) in [(nobody, own), (way(v6).addresses.src(), group)] {
            let below = Below { addresses: AddressPair::new(src, dst).unwrap(), ..below };
            let request = below.icmp(1, &Icmp::EchoRequest { ident: 3, seq: 4, data: &[] }).unwrap();
            assert!(echo_reply(&request, 77).is_none());
        }
    }
}

/// Breaks: what one host complains about, the other does not understand; the connection that is meant is not
/// found.
#[test]
fn complaints_are_understood() {
    let unreachable = |why, hard| SoftError::Unreachable { why, hard };
    let mtu = ByteCount::new(1400);
    for v6 in [false, true] {
        let header =
            TcpHeader { src_port: 1000, dst_port: 80, seq: Seq::new(0x1234_5678), ..Default::default() };
        let segment = way(v6).tcp(1, &header, vec![1; 1460].into());
        for (complaint, soft_error) in [
            (IcmpError::PortUnreachable, unreachable(Unreachable::Port, true)),
            (IcmpError::ProtocolUnreachable, unreachable(Unreachable::Protocol, true)),
            (IcmpError::NoRoute, unreachable(Unreachable::Route, false)),
            (IcmpError::HostUnreachable, unreachable(Unreachable::Host, false)),
            (IcmpError::TooBig { mtu }, SoftError::TooBig { mtu }),
            (IcmpError::TtlExceeded, SoftError::TimeExceeded),
            (IcmpError::ReassemblyTimeExceeded, SoftError::TimeExceeded),
        ] {
            let error = complain(complaint, &segment).unwrap();
            let longest = if v6 { MAX_ERROR_V6 } else { MAX_ERROR_V4 };
            assert_eq!(error.network_len().as_len(), longest, "as much as may be quoted");
            assert_eq!(error.ip().unwrap().addresses(), way(v6).addresses.reversed());
            assert_eq!(error.ethernet().unwrap().dst, A);
            let message = at_a(&error);
            assert_eq!(message.soft_error, soft_error, "{complaint:?}");
            assert_eq!(message.quoted.addresses, way(v6).addresses);
            assert_eq!((message.quoted.ports, message.quoted.seq), (Some((1000, 80)), Some(header.seq)));
            assert_eq!(message.quoted.total_len, segment.network_len().as_len());
        }
    }
}

/// Breaks: path MTU discovery through routers that do not say how much fits, or that lie.
#[test]
fn what_fits_when_a_router_does_not_say() {
    let told = |v6: bool, len: usize, mtu: u32| {
        let mut frame = Vec::new();
        datagram(way(v6), len - if v6 { 48 } else { 28 }).write_frame(&mut frame);
        let error = way(v6).reversed().icmp(0, &Icmp::TooBig { mtu, quoted: &frame[14..] }).unwrap();
        match at_a(&error).soft_error {
            SoftError::TooBig { mtu } => mtu.get(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([told(false, 1500, 0), told(false, 1492, 0), told(false, 9000, 0)], [1492, 1006, 8166]);
    assert_eq!([told(false, 68, 0), told(false, 1500, 1), told(false, 1500, 1300)], [68, 68, 1300]);
    assert_eq!([told(true, 1500, 0), told(true, 1500, 600), told(true, 1500, 1400)], [1280, 1280, 1400]);
}

/// Breaks: errors about errors, which multiply without end, and storms after a packet to everybody (RFC 1122
/// §3.2.2, RFC 4443 §2.4(e)).
#[test]
fn what_is_never_complained_about() {
    for v6 in [false, true] {
        let fine = datagram(way(v6), 2000);
        let about = |packet: &Packet| complain(IcmpError::PortUnreachable, packet);
        let error = about(&fine).unwrap();
        for complaint in [
            IcmpError::PortUnreachable,
            IcmpError::TtlExceeded,
            IcmpError::TooBig { mtu: ByteCount::new(1400) },
        ] {
            assert!(complain(complaint, &error).is_none(), "an error");
        }
        let echo = way(v6).icmp(1, &Icmp::EchoRequest { ident: 1, seq: 1, data: &[] }).unwrap();
        assert!(complain(IcmpError::TtlExceeded, &echo).is_some(), "traceroute");
        let parts = fragment(fine.clone(), 1280, 1).unwrap();
        assert!(about(&parts[0]).is_some());
        assert!(about(&parts[1]).is_none(), "not the first fragment");
        let long = way(v6).icmp(1, &Icmp::EchoRequest { ident: 1, seq: 1, data: &[0; 2000] }).unwrap();
        let first = fragment(long, 1280, 1).unwrap().swap_remove(0);
        assert!(about(&first).is_none(), "ICMP of which the kind is not known");
        let mut to_all = fine.clone();
        to_all.set_macs(A, MacAddr::BROADCAST);
        assert!(about(&to_all).is_none(), "an Ethernet broadcast");
        let group: IpAddr = if v6 { "ff02::1".parse().unwrap() } else { [224, 0, 0, 1].into() };
        let way_to = |src, dst| Below { addresses: AddressPair::new(src, dst).unwrap(), ..way(v6) };
        let pair = way(v6).addresses;
        let to_group = datagram(way_to(pair.src(), group), 10);
        assert!(about(&to_group).is_none());
        let too_big = IcmpError::TooBig { mtu: ByteCount::new(1400) };
        assert_eq!(complain(too_big, &to_group).is_some(), v6, "RFC 4443 §2.4(e.3)");
        assert!(about(&datagram(way_to(group, pair.dst()), 10)).is_none(), "from a group");
        let nobody = if v6 { "::".parse().unwrap() } else { [0; 4].into() };
        assert!(about(&datagram(way_to(nobody, pair.dst()), 10)).is_none());
    }
    let arp = farpace_wire::Arp::request(A, [10, 0, 0, 1].into(), [10, 0, 0, 2].into()).packet(B);
    assert!(
        ErrorSource::default()
            .error(Instant::ZERO, IcmpError::PortUnreachable, &arp, [1; 4].into())
            .is_none()
    );
}

/// Breaks: a flood of packets to closed ports becomes a flood of errors.
#[test]
fn complaints_are_limited() {
    let mut complaints = ErrorSource::default();
    let packet = datagram(way(false), 10);
    let own = packet.ip().unwrap().dst();
    let mut sent = |seconds| {
        let now = Instant::ZERO + Span::from_secs(seconds);
        (0..1000)
            .filter(|_| complaints.error(now, IcmpError::PortUnreachable, &packet, own).is_some())
            .count() as u64
    };
    assert_eq!((sent(5), sent(5), sent(6)), (MAX_ERRORS_PER_SECOND, 0, MAX_ERRORS_PER_SECOND));
    assert_eq!(complaints.suppressed(), 3000 - 2 * MAX_ERRORS_PER_SECOND);
}
