//! Properties of protocols other than TCP: both IP versions, UDP, ICMP, ARP, extension headers and fragments.

mod common;

use bytes::Bytes;
use common::{any_packet, below, fitting, frame, header, icmp, mac, version};
use farpace_wire::ipv6::{MAX_EXTENSIONS, MAX_EXTENSIONS_LEN};
use farpace_wire::{
    AddressPair, Arp, ArpOperation, Checksum, Ecn, Icmp, IpVersion, IpView, Ipv6View, Layer, MacAddr, Packet,
    Quoted, UdpHeader, UdpView, WireError, fragment, join,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Damaged frames of any kind that this crate knows.
fn near_frame() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec((any::<Index>(), any::<u8>()), 0..4);
    (any_packet(), noise, 0usize..260).prop_map(|(packet, noise, len)| {
        let mut bytes = frame(&packet);
        for (at, value) in noise {
            *at.get_mut(&mut bytes) = value;
        }
        bytes.truncate(len);
        bytes
    })
}

/// A chain of extension headers that ends with `protocol`: numbers and lengths in units of 8 bytes.
fn chain(kinds: &[(u8, u8)], protocol: u8) -> (u8, Vec<u8>) {
    let mut bytes = Vec::new();
    for (n, &(_, units)) in kinds.iter().enumerate() {
        bytes.push(kinds.get(n + 1).map_or(protocol, |(next, _)| *next));
        bytes.push(units);
        bytes.resize(bytes.len() + 6 + 8 * usize::from(units), 0);
    }
    (kinds.first().map_or(protocol, |(kind, _)| *kind), bytes)
}

/// `packet` (IPv6) with `extensions` between its IP header and its payload.
fn extended(packet: &Packet, (first, extensions): (u8, Vec<u8>)) -> Vec<u8> {
    let mut bytes = frame(packet);
    bytes[14 + 6] = first;
    let len = u16::from_be_bytes([bytes[18], bytes[19]]) + extensions.len() as u16;
    bytes[18..20].copy_from_slice(&len.to_be_bytes());
    bytes.splice(54..54, extensions);
    bytes
}

proptest! {
    /// Breaks: a TCP segment is encoded and parsed without change over both IP versions.
    #[test]
    fn tcp_survives_either_ip(
        below in below(), ident in any::<u16>(), header in header(), payload in vec(any::<u8>(), 0..200),
    ) {
        let packet = below.tcp(ident, &header, Bytes::from(payload.clone()));
        prop_assert_eq!((packet.checksum(), packet.verify_checksums()), (Checksum::Partial, Ok(())));
        for packet in [packet.clone(), Packet::from_frame(&frame(&packet)).unwrap()] {
            prop_assert_eq!(packet.verify_checksums(), Ok(()));
            let (ip, tcp) = packet.ip_tcp().unwrap();
            prop_assert_eq!(tcp.header(), fitting(&header));
            prop_assert_eq!((ip.addresses(), ip.ttl(), ip.tos()), (below.addresses, below.ttl, below.tos));
            prop_assert_eq!((ip.src(), ip.dst()), (below.addresses.src(), below.addresses.dst()));
            prop_assert_eq!((ip.ecn().bits(), ip.dscp()), (below.tos & 3, below.tos >> 2));
            prop_assert_eq!((ip.total_len(), ip.fragment()), (packet.network_len().as_len(), None));
            match ip {
                IpView::V4(ip) => prop_assert_eq!((ip.ident(), ip.dont_fragment()), (ident, below.dont_fragment)),
                IpView::V6(ip) => prop_assert_eq!(ip.flow_label(), below.flow_label),
            }
            let ethernet = packet.ethernet().unwrap();
            prop_assert_eq!((ethernet.src, ethernet.dst), (below.src_mac, below.dst_mac));
            prop_assert_eq!(packet.payload(), &payload);
        }
    }

    /// Breaks: ports, data and checksums of datagrams.
    #[test]
    fn udp_survives_either_ip(below in below(), ports in any::<(u16, u16)>(), payload in vec(any::<u8>(), 0..200)) {
        let header = UdpHeader { src_port: ports.0, dst_port: ports.1 };
        let payload = Bytes::from(payload);
        let packet = below.udp(7, header, payload.clone()).unwrap();
        prop_assert_eq!(packet.payload().as_ptr(), payload.as_ptr(), "by reference");
        let again = Packet::from_frame(&frame(&packet)).unwrap();
        prop_assert_eq!(again.verify_checksums(), Ok(()));
        prop_assert_eq!((again.udp().unwrap().header(), again.payload()), (header, &payload));
        prop_assert_ne!(again.udp().unwrap().checksum(), 0, "zero would mean no checksum");
        prop_assert_eq!(again.tcp().map(|_| ()), Err(WireError::NotTcp(17)));

        // Without a checksum: allowed in IPv4 only.
        let mut bytes = frame(&packet);
        let at = 14 + below.addresses.ip_header_len() + 6;
        bytes[at..at + 2].fill(0);
        let none = Packet::from_frame(&bytes).unwrap().verify_checksums();
        prop_assert_eq!(none.is_ok(), matches!(below.addresses, AddressPair::V4(..)));
    }

    /// Breaks: an ICMP message is encoded and parsed without change, with a valid checksum.
    #[test]
    fn icmp_survives_the_wire((below, message) in below().prop_flat_map(|b| (Just(b), icmp(version(&b))))) {
        let packet = below.icmp(1, &message).unwrap();
        let again = Packet::from_frame(&frame(&packet)).unwrap();
        prop_assert_eq!(again.verify_checksums(), Ok(()));
        prop_assert_eq!(again.icmp(), Ok(message));
        prop_assert_eq!(again.ip().unwrap().protocol(), again.ip().unwrap().icmp_protocol());
    }

    /// Breaks: a damaged datagram or message is detected, also over IPv6, whose header has no checksum.
    #[test]
    fn damage_above_ip_is_detected(packet in any_packet(), bit in any::<u64>()) {
        let first = (14 + packet.ip().unwrap().header_len() as u64) * 8;
        let mut damaged = packet.clone();
        let zero_checksum = |p: &Packet| p.udp().is_ok_and(|udp| udp.checksum() == 0);
        damaged.flip_bit(first + bit % (packet.len().bits() - first));
        // One flip in a thousand turns a UDP checksum of one bit into "none".
        prop_assume!(!zero_checksum(&damaged));
        prop_assert!(damaged.verify_checksums().is_err());
    }

    /// Breaks: an ARP packet is encoded and parsed without change.
    #[test]
    fn arp_survives_the_wire(
        operation in any::<u16>(), macs in (mac(), mac(), mac()), addresses in any::<([u8; 4], [u8; 4])>(),
        padding in 0usize..20,
    ) {
        let operation = match operation {
            0..0x4000 => ArpOperation::Request,
            0x4000..0x8000 => ArpOperation::Reply,
            other => ArpOperation::Other(other),
        };
        let arp = Arp {
            operation, sender_mac: macs.0, sender: addresses.0.into(), target_mac: macs.1, target: addresses.1.into(),
        };
        let packet = arp.packet(macs.2);
        prop_assert_eq!(packet.ethernet().unwrap().dst, macs.2);
        let mut bytes = frame(&packet);
        prop_assert_eq!(bytes.len(), 42);
        bytes.resize(42 + padding, 0);
        let again = Packet::from_frame(&bytes).unwrap();
        prop_assert_eq!((again.arp(), again.verify_checksums()), (Ok(arp), Ok(())));
        let reply = arp.reply(MacAddr([9; 6]));
        prop_assert_eq!((reply.sender, reply.target, reply.target_mac), (arp.target, arp.sender, arp.sender_mac));
    }

    /// Breaks: no bytes of a peer or a capture cause a panic, and unknown bytes are kept.
    #[test]
    fn no_bytes_cause_a_panic(bytes in prop_oneof![near_frame(), vec(any::<u8>(), 0..200)], n in any::<u64>()) {
        for version in [IpVersion::V4, IpVersion::V6] {
            if let Ok(message) = Icmp::parse(version, &bytes) {
                let _ = (message.quoted(), message.is_error(version));
            }
        }
        let _ = (Arp::parse(&bytes), Quoted::parse(&bytes), UdpView::parse(&bytes).is_ok());
        if let Ok(ip) = Ipv6View::parse(&bytes) {
            prop_assert!(ip.extensions().len() <= MAX_EXTENSIONS_LEN);
            prop_assert!(ip.protocol_at() < ip.header_len());
        }
        if let Ok(mut packet) = Packet::from_frame(&bytes) {
            let whole = frame(&packet);
            prop_assert_eq!(&whole[..], &bytes[..whole.len()], "only padding may be omitted");
            for _ in 0..2 {
                let _ = (packet.udp().is_ok(), packet.icmp().is_ok(), packet.arp(), format!("{packet:?}"));
                let _ = (packet.verify_checksums(), packet.ip().map(|ip| ip.fragment()), packet.ip_tcp().is_ok());
                let _ = fragment(packet.clone(), (n % 100) as usize, n as u32);
                packet.flip_bit(n);
            }
            packet.decrement_ttl();
            packet.set_ecn(Ecn::Ce);
            prop_assert_eq!(packet.len().as_len(), whole.len());
        }
    }

    /// Breaks: a router changes only TTL and ECN, and keeps checksums valid.
    #[test]
    fn routers_change_only_what_they_should(packet in any_packet(), ecn in 0u8..4) {
        let ttl = packet.ip().unwrap().ttl();
        let mut changed = packet.clone();
        changed.decrement_ttl();
        changed.set_ecn(Ecn::from_bits(ecn));
        changed.complete_checksum();
        prop_assert_eq!(changed.verify_checksums(), Ok(()));
        let ip = changed.ip().unwrap();
        prop_assert_eq!((ip.ttl(), ip.ecn().bits()), (ttl.saturating_sub(1), ecn));
        prop_assert_eq!((ip.dscp(), ip.addresses()), {
            let was = packet.ip().unwrap();
            (was.dscp(), was.addresses())
        });
        let mut marked = changed.clone();
        prop_assert_eq!(marked.mark_ce(), ecn != 0);
        prop_assert_eq!(marked.ip().unwrap().ecn(), if ecn == 0 { Ecn::NotEct } else { Ecn::Ce });
        prop_assert_eq!(marked.verify_checksums(), Ok(()));

        let (to, at) = (MacAddr([1; 6]), 14 + if packet.ipv4().is_some() { 20 } else { 40 });
        changed.set_macs(to, to);
        prop_assert_eq!(changed.ethernet().unwrap().dst, to);
        prop_assert_eq!(&frame(&changed)[at..], &frame(&packet)[at..]);
    }

    /// Breaks: fragments add up to the datagram, and do not exceed the MTU.
    #[test]
    fn fragments_add_up_to_the_datagram(packet in any_packet(), mtu in 68usize..150, again in 68usize..150) {
        let whole = frame(&packet);
        let header_len = 14 + packet.ip().unwrap().header_len();
        let parts = fragment(packet.clone(), mtu, 99).unwrap();
        let v4 = packet.ipv4().is_some();
        // A router with a smaller MTU fragments IPv4 fragments again.
        let parts: Vec<_> = parts
            .into_iter()
            .flat_map(|part| if v4 { fragment(part, again, 0).unwrap() } else { vec![part] })
            .collect();
        let mtu = if v4 { mtu.min(again) } else { mtu };
        prop_assert_eq!(parts.len() == 1, packet.network_len().as_len() <= mtu);
        let mut data = Vec::new();
        for (n, part) in parts.iter().enumerate() {
            prop_assert!(part.network_len().as_len() <= mtu);
            let part = Packet::from_frame(&frame(part)).unwrap();
            prop_assert_eq!(part.verify_checksums(), Ok(()));
            let ip = part.ip().unwrap();
            prop_assert_eq!(ip.addresses(), packet.ip().unwrap().addresses());
            prop_assert_eq!(ip.protocol(), packet.ip().unwrap().protocol());
            if parts.len() > 1 {
                let fragment = ip.fragment().unwrap();
                prop_assert_eq!((fragment.offset as usize, fragment.more), (data.len(), n + 1 < parts.len()));
                prop_assert_eq!(fragment.ident, packet.ipv4().map_or(99, |ip| ip.ident().into()));
                prop_assert_eq!(part.tcp().map(|_| ()), Err(WireError::Fragment));
            }
            data.extend_from_slice(&frame(&part)[14 + ip.header_len()..]);
        }
        prop_assert_eq!(&data[..], &whole[header_len..]);
        if parts.len() > 1 {
            let joined = join(&parts[0], &data).unwrap();
            prop_assert_eq!(joined.verify_checksums(), Ok(()));
            prop_assert_eq!(frame(&joined), whole);
        }
    }

    /// Breaks: a segment behind extension headers is found, and parsing of extension headers is bounded.
    #[test]
    fn extension_headers_are_parsed(
        below in below(), header in header(),
        kinds in vec((prop::sample::select(vec![0u8, 43, 60]), 0u8..4), 0..12), atomic in any::<bool>(),
    ) {
        let AddressPair::V6(..) = below.addresses else { return Ok(()) };
        let mut kinds = kinds;
        if atomic {
            kinds.insert(0, (44, 0)); // An atomic fragment.
        }
        let packet = below.tcp(0, &header, Bytes::from_static(b"payload"));
        let bytes = extended(&packet, chain(&kinds, 6));
        let read = Packet::from_frame(&bytes).unwrap();
        prop_assert_eq!(frame(&read), bytes);
        let ip = read.ipv6().unwrap();
        let mut parsed = 0;
        let ends = |n: &usize| {
            let len: usize = kinds[..=*n].iter().map(|(_, units)| 8 + 8 * usize::from(*units)).sum();
            *n >= MAX_EXTENSIONS || len > MAX_EXTENSIONS_LEN
        };
        match (0..kinds.len()).find(ends) {
            Some(end) => {
                prop_assert_eq!(ip.protocol(), kinds[end].0, "the type is reported");
                prop_assert_eq!(read.tcp().map(|_| ()), Err(WireError::NotTcp(kinds[end].0)));
                parsed += kinds[..end].iter().map(|(_, units)| 8 + 8 * usize::from(*units)).sum::<usize>();
            }
            None => {
                prop_assert_eq!(read.tcp().unwrap().header(), fitting(&header));
                prop_assert_eq!(read.verify_checksums(), Ok(()));
                prop_assert_eq!(read.payload(), "payload");
                parsed = ip.extensions().len();
            }
        }
        prop_assert_eq!(ip.header_len(), 40 + parsed);
        prop_assert_eq!(read.headers()[14 + ip.protocol_at()], ip.protocol());
    }

    /// Breaks: an ICMP error is matched with its connection, even if the quoted packet is truncated.
    #[test]
    fn a_truncated_quote_is_parsed_as_far_as_possible(below in below(), header in header(), keep in 0usize..80) {
        let packet = below.tcp(1, &header, Bytes::from_static(&[0; 100]));
        let ip_len = below.addresses.ip_header_len();
        let bytes = frame(&packet);
        let quoted = &bytes[14..14 + keep];
        let Ok(read) = Quoted::parse(quoted) else {
            prop_assert!(keep < ip_len);
            return Ok(());
        };
        prop_assert!(keep >= ip_len);
        prop_assert_eq!((read.addresses, read.protocol), (below.addresses, 6));
        prop_assert_eq!(read.ports, (keep >= ip_len + 4).then_some((header.src_port, header.dst_port)));
        prop_assert_eq!(read.seq, (keep >= ip_len + 8).then_some(header.seq));
        prop_assert_eq!(read.total_len, packet.network_len().as_len());
    }
}

/// Breaks: a datagram with a wrong length field is refused.
#[test]
fn a_wrong_udp_length_is_refused() {
    let here = MacAddr([2; 6]);
    let below = farpace_wire::Below::new(here, here, AddressPair::V4([1; 4].into(), [2; 4].into()), 64);
    let packet = below.udp(1, UdpHeader { src_port: 1, dst_port: 2 }, Bytes::from_static(b"abcd")).unwrap();
    let with_len = |len: u8| {
        let mut bytes = frame(&packet);
        bytes[14 + 20 + 5] = len;
        Packet::from_frame(&bytes).and_then(|packet| packet.udp().map(|udp| udp.total_len()))
    };
    let wrong_length = |length, have| Err(WireError::TotalLength { layer: Layer::Udp, length, have });
    assert_eq!(with_len(12), Ok(12));
    assert_eq!(with_len(11), wrong_length(11, 12));
    assert_eq!(with_len(13), wrong_length(13, 12));
    assert_eq!(with_len(7), wrong_length(7, 12));
    assert!(below.udp(1, UdpHeader::default(), Bytes::from(vec![0; 65_508])).is_err());
    assert!(below.udp(1, UdpHeader::default(), Bytes::from(vec![0; 65_507])).is_ok());
}

/// Breaks: datagrams keep extension headers before the fragment header of other senders, and the transport
/// header is found behind them.
#[test]
fn a_datagram_keeps_the_headers_before_its_fragment_header() {
    let here = MacAddr([2; 6]);
    let below = farpace_wire::Below::new(here, here, AddressPair::V6([1; 16].into(), [2; 16].into()), 64);
    let packet = below.udp(1, UdpHeader { src_port: 1, dst_port: 2 }, vec![7; 100].into()).unwrap();
    let with_options = extended(&packet, chain(&[(0, 0), (60, 1)], 17));
    // The first 56 bytes of the datagram, with a fragment header behind the options.
    let (_, mut extensions) = chain(&[(0, 0), (60, 1), (44, 0)], 17);
    extensions[24 + 3] = 1;
    let mut first = extended(&packet, (0, extensions));
    first.truncate(14 + 40 + 32 + 56);
    first[18..20].copy_from_slice(&(32u16 + 56).to_be_bytes());
    let first = Packet::from_frame(&first).unwrap();
    assert_eq!((first.ip().unwrap().fragment().unwrap().more, first.payload().len()), (true, 56));
    let joined = join(&first, &frame(&packet)[54..]).unwrap();
    assert_eq!(frame(&joined), with_options);
    assert_eq!((joined.udp().unwrap().dst_port(), joined.verify_checksums()), (2, Ok(())));
    assert_eq!(join(&joined, &[]).map(|_| ()), Err(WireError::Fragment));
    assert_eq!(
        join(&first, &vec![0; 70_000]).map(|_| ()),
        Err(WireError::CannotEncode { layer: Layer::Ipv6 })
    );
}
