//! Exact bytes of protocols other than TCP, and text output.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bytes::Bytes;
use farpace_wire::icmp::{solicited_node, solicited_node_mac};
use farpace_wire::{
    AddressPair, Arp, Below, Icmp, IpVersion, Ipv6View, Layer, MacAddr, NeighbourDiscovery, Packet, Quoted,
    TcpHeader, UdpHeader, Unreachable, WireError, fragment,
};

const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn v4() -> Below {
    Below::new(A, B, AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()), 64)
}

fn v6() -> Below {
    Below::new(A, B, AddressPair::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()), 255)
}

fn frame(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame
}

/// Breaks: the bytes of ARP frames.
#[test]
fn an_arp_request_byte_by_byte() {
    let packet = Arp::request(A, [10, 0, 0, 1].into(), [10, 0, 0, 2].into()).packet(MacAddr::BROADCAST);
    #[rustfmt::skip]
    let expected = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6,
        0, 1, 8, 0, 6, 4, 0, 1,
        2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
        0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
    ];
    assert_eq!(frame(&packet), expected);
    let mut token_ring = expected;
    token_ring[15] = 6;
    assert_eq!(Packet::from_frame(&token_ring).unwrap().arp(), Err(WireError::ForeignArp));
}

/// Breaks: path MTU discovery: the type and code of "too big" in both versions.
#[test]
fn too_big_byte_by_byte() {
    let message = Icmp::TooBig { mtu: 1400, quoted: b"quoted!!" };
    let packet = v4().icmp(0, &message).unwrap();
    assert_eq!(packet.payload()[..], [b"\x03\x04\x90\x14\x00\x00\x05\x78".as_slice(), b"quoted!!"].concat());
    let packet = v6().icmp(0, &message).unwrap();
    assert_eq!(packet.payload()[..2], [2, 0]);
    assert_eq!(packet.payload()[4..8], [0, 0, 5, 0x78]);
    assert_eq!(packet.headers()[14 + 6], 58);
    // IPv4 has a field of 16 bits.
    let packet = v4().icmp(0, &Icmp::TooBig { mtu: 70_000, quoted: &[] }).unwrap();
    assert_eq!(packet.icmp(), Ok(Icmp::TooBig { mtu: 65_535, quoted: &[] }));
}

/// Breaks: neighbour discovery uses the solicited-node group (the example of RFC 4291 §2.7.1).
#[test]
fn the_solicited_node_group() {
    let target = "4037::01:800:200e:8c6c".parse().unwrap();
    assert_eq!(solicited_node(target), "ff02::1:ff0e:8c6c".parse::<std::net::Ipv6Addr>().unwrap());
    assert_eq!(solicited_node_mac(target), MacAddr([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]));
}

/// Breaks: a solicitation with malformed options is refused, and one with unknown options is accepted.
#[test]
fn options_of_neighbour_discovery() {
    let solicitation = |options: &[u8]| {
        let mut bytes = vec![135, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&[9; 16]);
        bytes.extend_from_slice(options);
        match Icmp::parse(IpVersion::V6, &bytes) {
            Ok(Icmp::Neighbour(NeighbourDiscovery::Solicitation { source_link, .. })) => Ok(source_link),
            Ok(other) => panic!("{other:?}"),
            Err(why) => Err(why),
        }
    };
    let nonce = [14, 1, 1, 2, 3, 4, 5, 6];
    let link = [1, 1, 2, 0, 0, 0, 0, 1];
    assert_eq!(solicitation(&[]), Ok(None));
    assert_eq!(solicitation(&[nonce, link].concat()), Ok(Some(A)));
    assert_eq!(solicitation(&[link, nonce].concat()), Ok(Some(A)));
    assert_eq!(solicitation(&[1, 0, 0, 0, 0, 0, 0, 0]), Err(WireError::NeighbourOption { kind: 1 }));
    assert_eq!(
        solicitation(&[&link[..], &[14, 2, 0]].concat()),
        Err(WireError::NeighbourOption { kind: 14 })
    );
    let cut = Icmp::parse(IpVersion::V6, &[135, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(cut, Err(WireError::Truncated { layer: Layer::Icmp, need: 24, have: 9 }));
}

/// Breaks: a message that an IP version does not have is refused.
#[test]
fn messages_of_the_other_version_are_refused() {
    let cannot = Err(WireError::CannotEncode { layer: Layer::Icmp });
    let advertisement = Icmp::Neighbour(NeighbourDiscovery::Advertisement {
        target: "fd00::1".parse().unwrap(),
        target_link: None,
        router: false,
        solicited: true,
        overrides: false,
    });
    assert_eq!(v4().icmp(0, &advertisement).map(|_| ()), cannot);
    assert!(v6().icmp(0, &advertisement).is_ok());
    let no_protocol = Icmp::Unreachable { why: Unreachable::Protocol, quoted: &[] };
    assert_eq!(v6().icmp(0, &no_protocol).map(|_| ()), cannot);
    assert!(v4().icmp(0, &no_protocol).is_ok());
    assert_eq!(v4().icmp(0, &Icmp::EchoReply { ident: 1, seq: 1, data: &[0; 65_508] }).map(|_| ()), cannot);
}

/// Breaks: logs and test failures show packets readably.
#[test]
fn debug_is_one_readable_line() {
    let show = |packet: &Packet| format!("{packet:?}");
    let header = TcpHeader { src_port: 5001, dst_port: 80, ..TcpHeader::default() };
    let tcp = v6().tcp(0, &header, Bytes::from_static(b"abc"));
    assert_eq!(show(&tcp), "[fd00::1]:5001 > [fd00::2]:80 - seq 0 ack 0 win 0 len 3");
    let udp = v4().udp(0, UdpHeader { src_port: 5001, dst_port: 53 }, Bytes::from_static(b"abc")).unwrap();
    assert_eq!(show(&udp), "10.0.0.1:5001 > 10.0.0.2:53 UDP len 3");
    let request = Arp::request(A, [10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    assert_eq!(
        show(&request.packet(MacAddr::BROADCAST)),
        "ARP who has 10.0.0.2, tell 10.0.0.1 at 02:00:00:00:00:01"
    );
    let bytes = frame(&tcp);
    let error = Icmp::TooBig { mtu: 1280, quoted: &bytes[14..] };
    assert_eq!(
        show(&v6().icmp(0, &error).unwrap()),
        "fd00::1 > fd00::2 ICMP too big, MTU 1280 ([fd00::1]:5001 > [fd00::2]:80) len 71"
    );
    let mut big = v4().udp(7, UdpHeader::default(), Bytes::from(vec![0; 200])).unwrap();
    big.set_loss_tolerant(true);
    let parts = fragment(big, 120, 0).unwrap();
    assert!(
        parts.len() > 1 && parts.iter().all(Packet::loss_tolerant),
        "fragments are of the same transport"
    );
    let lines: Vec<_> = parts.iter().map(show).collect();
    assert_eq!(
        lines,
        [
            "10.0.0.1 > 10.0.0.2 protocol 17 fragment 7@0+ len 96",
            "10.0.0.1 > 10.0.0.2 protocol 17 fragment 7@96+ len 96",
            "10.0.0.1 > 10.0.0.2 protocol 17 fragment 7@192 len 16"
        ]
    );
}

/// Breaks: fragments contain exactly the options that must be copied (RFC 791 §3.1).
#[test]
fn options_that_are_copied() {
    let ip = farpace_wire::Ipv4Header {
        tos: 0,
        ident: 5,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 9,
        protocol: 99,
        src: [1; 4].into(),
        dst: [2; 4].into(),
        // Record route is not copied, router alert is.
        options: &[7, 7, 4, 0, 0, 0, 0, 1, 148, 4, 0, 0],
    };
    let mut out = [0; 60];
    let len = ip.encode(64, &mut out).unwrap();
    let mut bytes = frame(&v4().tcp(0, &TcpHeader::default(), Bytes::new()))[..14].to_vec();
    bytes.extend_from_slice(&out[..len]);
    bytes.resize(bytes.len() + 64, 7);
    let parts = fragment(Packet::from_frame(&bytes).unwrap(), 72, 0).unwrap();
    let options: Vec<_> = parts.iter().map(|part| part.ipv4().unwrap().options().to_vec()).collect();
    assert_eq!(options, [ip.options.to_vec(), vec![148, 4, 0, 0]]);
    assert_eq!(parts[1].ipv4().unwrap().fragment_offset(), 5);
    assert!(parts.iter().all(|part| part.verify_checksums().is_ok()));
}

/// Breaks: a checksum of zero is sent as 0xffff. Zero would mean no checksum, and IPv6 hosts refuse it.
#[test]
fn a_sum_of_zero_is_sent_as_ones() {
    for below in [v4(), v6()] {
        let with = |n: u16| below.udp(0, UdpHeader::default(), n.to_be_bytes().to_vec().into()).unwrap();
        // One of all 16-bit words makes the sum zero.
        let ones = (0..=u16::MAX).map(with).map(|packet| Packet::from_frame(&frame(&packet)).unwrap());
        let ones: Vec<_> = ones.filter(|packet| packet.udp().unwrap().checksum() == 0xffff).collect();
        assert_eq!(ones.len(), 1);
        assert_eq!(ones[0].verify_checksums(), Ok(()));
    }
}

/// Breaks: data of a fragment is not parsed as extension headers or ports. Only the first fragment begins
/// with headers, and even there parsing ends, because they may continue in the next one.
#[test]
fn nothing_is_parsed_behind_a_fragment_header() {
    let big = v6().udp(0, UdpHeader { src_port: 5, dst_port: 6 }, vec![0; 2000].into()).unwrap();
    let parts = fragment(big, 1280, 9).unwrap();
    let ports = |packet: &Packet| Quoted::parse(&frame(packet)[14..]).unwrap().ports;
    assert_eq!([ports(&parts[0]), ports(&parts[1])], [Some((5, 6)), None]);
    let mut bytes = frame(&parts[1]);
    bytes[54] = 60; // The payload of the datagram begins with destination options.
    let ip = Ipv6View::parse(&bytes[14..]).unwrap();
    assert_eq!((ip.protocol(), ip.header_len()), (60, 48));
}

/// Breaks: error messages are distinguished from others (RFC 1122 §3.2.2, RFC 4443 §2.1).
#[test]
fn which_messages_are_errors() {
    let errors = |version| -> Vec<u8> {
        let is_error = |kind: &u8| {
            let bytes = [&[*kind, 99, 0, 0, 0, 0, 0, 0][..], &[0; 40]].concat();
            Icmp::parse(version, &bytes).unwrap().is_error(version)
        };
        (0..=u8::MAX).filter(is_error).collect()
    };
    assert_eq!(errors(IpVersion::V4), [3, 4, 5, 11, 12]);
    assert_eq!(errors(IpVersion::V6), (0..128).collect::<Vec<_>>());
}
