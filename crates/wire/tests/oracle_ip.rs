//! Comparison with etherparse: UDP, ICMP, ARP and IPv6 extension headers.

mod common;

use bytes::Bytes;
use common::{below, frame, icmp, mac, version};
use etherparse::{Icmpv4Slice, Icmpv6Slice, IpNumber, NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use farpace_wire::{AddressPair, Arp, Icmp, IpVersion, Packet, Quoted, TcpHeader, UdpHeader, fragment};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    /// Breaks: datagrams in captures have valid checksums and lengths.
    #[test]
    fn etherparse_parses_udp(
        below in below(), src_port in any::<u16>(), dst_port in any::<u16>(), payload in vec(any::<u8>(), 0..1500),
    ) {
        let packet = below.udp(3, UdpHeader { src_port, dst_port }, Bytes::from(payload.clone())).unwrap();
        let bytes = frame(&packet);
        let seen = SlicedPacket::from_ethernet(&bytes).unwrap();
        let Some(TransportSlice::Udp(udp)) = &seen.transport else { panic!("UDP") };
        let header = udp.to_header();
        prop_assert_eq!((header.source_port, header.destination_port), (src_port, dst_port));
        prop_assert_eq!(udp.payload(), &payload[..]);
        let sum = match seen.net {
            Some(NetSlice::Ipv4(ip)) => header.calc_checksum_ipv4(&ip.header().to_header(), &payload),
            Some(NetSlice::Ipv6(ip)) => header.calc_checksum_ipv6(&ip.header().to_header(), &payload),
            _ => panic!("IP"),
        };
        prop_assert_eq!(header.checksum, sum.unwrap());
    }

    /// Breaks: other implementations understand ICMP messages.
    #[test]
    fn etherparse_parses_icmp((below, message) in below().prop_flat_map(|b| (Just(b), icmp(version(&b))))) {
        let bytes = frame(&below.icmp(1, &message).unwrap());
        let seen = SlicedPacket::from_ethernet(&bytes).unwrap();
        use etherparse::{Icmpv4Type as V4, Icmpv6Type as V6, icmpv4, icmpv6};
        match seen.transport {
            Some(TransportSlice::Icmpv4(theirs)) => {
                let read = Icmpv4Slice::from_slice(theirs.slice()).unwrap();
                let header = read.header();
                // Over the bytes, because the header types of etherparse do not keep all of them.
                let sum = etherparse::checksum::Sum16BitWords::new().add_slice(theirs.slice());
                prop_assert_eq!(sum.ones_complement(), 0);
                match (header.icmp_type, message) {
                    (V4::EchoRequest(e), Icmp::EchoRequest { ident, seq, data })
                    | (V4::EchoReply(e), Icmp::EchoReply { ident, seq, data }) => {
                        prop_assert_eq!((e.id, e.seq, read.payload()), (ident, seq, data));
                    }
                    (V4::DestinationUnreachable(icmpv4::DestUnreachableHeader::FragmentationNeeded { next_hop_mtu }),
                        Icmp::TooBig { mtu, quoted }) => {
                        prop_assert_eq!((u32::from(next_hop_mtu), read.payload()), (mtu, quoted));
                    }
                    (V4::DestinationUnreachable(theirs), Icmp::Unreachable { why, .. }) => {
                        prop_assert_eq!(Some(theirs.code_u8()), why.code(IpVersion::V4));
                    }
                    (V4::TimeExceeded(theirs), Icmp::TimeExceeded { code, .. }) => {
                        prop_assert_eq!(theirs.code_u8(), code);
                    }
                    (V4::ParameterProblem(icmpv4::ParameterProblemHeader::PointerIndicatesError(at)),
                        Icmp::ParameterProblem { pointer, code: 0, .. }) => prop_assert_eq!(u32::from(at), pointer),
                    (V4::ParameterProblem(_), Icmp::ParameterProblem { .. }) => {}
                    // Codes and types that etherparse does not know.
                    (V4::Unknown { .. }, _) => {}
                    other => panic!("{other:?}"),
                }
            }
            Some(TransportSlice::Icmpv6(theirs)) => {
                let read = Icmpv6Slice::from_slice(theirs.slice()).unwrap();
                let Some(NetSlice::Ipv6(ip)) = seen.net else { panic!("IPv6") };
                let ip = ip.header();
                prop_assert!(read.is_checksum_valid(ip.source(), ip.destination()));
                match (read.header().icmp_type, message) {
                    (V6::EchoRequest(e), Icmp::EchoRequest { ident, seq, data })
                    | (V6::EchoReply(e), Icmp::EchoReply { ident, seq, data }) => {
                        prop_assert_eq!((e.id, e.seq, read.payload()), (ident, seq, data));
                    }
                    (V6::PacketTooBig { mtu: theirs }, Icmp::TooBig { mtu, quoted }) => {
                        prop_assert_eq!((theirs, read.payload()), (mtu, quoted));
                    }
                    (V6::DestinationUnreachable(theirs), Icmp::Unreachable { why, .. }) => {
                        prop_assert_eq!(Some(theirs.code_u8()), why.code(IpVersion::V6));
                    }
                    (V6::TimeExceeded(theirs), Icmp::TimeExceeded { code, .. }) => {
                        prop_assert_eq!(theirs.code_u8(), code);
                    }
                    (V6::ParameterProblem(icmpv6::ParameterProblemHeader { code: theirs, pointer: at }),
                        Icmp::ParameterProblem { code, pointer, .. }) => {
                        prop_assert_eq!((theirs.code_u8(), at), (code, pointer));
                    }
                    (V6::NeighborSolicitation, Icmp::Neighbour(_)) => {}
                    (V6::NeighborAdvertisement(_), Icmp::Neighbour(_)) => {}
                    (V6::Unknown { .. }, _) => {}
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// Breaks: datagrams and echoes of other stacks are parsed.
    #[test]
    fn messages_of_etherparse_are_parsed(
        src in any::<[u8; 4]>(), dst in any::<[u8; 4]>(), v6 in any::<bool>(), which in 0u8..3,
        a in any::<u16>(), b in any::<u16>(), payload in vec(any::<u8>(), 0..300),
    ) {
        let link = PacketBuilder::ethernet2([1; 6], [2; 6]);
        let mapped = |a: [u8; 4]| std::net::Ipv4Addr::from(a).to_ipv6_mapped().octets();
        let ip = if v6 { link.ipv6(mapped(src), mapped(dst), 9) } else { link.ipv4(src, dst, 9) };
        let mut bytes = Vec::new();
        match (which, v6) {
            (0, _) => ip.udp(a, b).write(&mut bytes, &payload).unwrap(),
            (1, false) => ip.icmpv4_echo_request(a, b).write(&mut bytes, &payload).unwrap(),
            (1, true) => ip.icmpv6_echo_request(a, b).write(&mut bytes, &payload).unwrap(),
            (_, false) => ip.icmpv4_echo_reply(a, b).write(&mut bytes, &payload).unwrap(),
            (_, true) => ip.icmpv6_echo_reply(a, b).write(&mut bytes, &payload).unwrap(),
        }
        let packet = Packet::from_frame(&bytes).unwrap();
        prop_assert_eq!(packet.verify_checksums(), Ok(()));
        match which {
            0 => {
                prop_assert_eq!(packet.udp().unwrap().header(), UdpHeader { src_port: a, dst_port: b });
                prop_assert_eq!(packet.payload(), &payload);
            }
            1 => prop_assert_eq!(packet.icmp(), Ok(Icmp::EchoRequest { ident: a, seq: b, data: &payload })),
            _ => prop_assert_eq!(packet.icmp(), Ok(Icmp::EchoReply { ident: a, seq: b, data: &payload })),
        }
        // The same packet, quoted in an error.
        let quoted = Quoted::parse(&bytes[14..]).unwrap();
        prop_assert_eq!((quoted.ports, quoted.seq), ((which == 0).then_some((a, b)), None));
    }

    /// Breaks: other implementations understand ARP.
    #[test]
    fn etherparse_parses_arp(macs in (mac(), mac()), addresses in any::<([u8; 4], [u8; 4])>()) {
        let request = Arp::request(macs.0, addresses.0.into(), addresses.1.into());
        for arp in [request, request.reply(macs.1)] {
            let bytes = frame(&arp.packet(macs.1));
            let seen = SlicedPacket::from_ethernet(&bytes).unwrap();
            let Some(NetSlice::Arp(theirs)) = seen.net else { panic!("ARP") };
            prop_assert_eq!(theirs.operation().0, if arp == request { 1 } else { 2 });
            prop_assert_eq!((theirs.sender_hw_addr(), theirs.target_hw_addr()), (&arp.sender_mac.0[..], &arp.target_mac.0[..]));
            let (sender, target) = (arp.sender.octets(), arp.target.octets());
            prop_assert_eq!((theirs.sender_protocol_addr(), theirs.target_protocol_addr()), (&sender[..], &target[..]));
        }
    }

    /// Breaks: other implementations can reassemble fragments, in particular with the IPv6 fragment header.
    #[test]
    fn etherparse_parses_fragments(below in below(), len in 200usize..2000, mtu in 68usize..1500) {
        let packet = below.tcp(5, &TcpHeader::default(), Bytes::from(vec![7; len]));
        let mut at = 0;
        let parts = fragment(packet, mtu, 77).unwrap();
        let last = parts.len() - 1;
        for (n, part) in parts.iter().enumerate() {
            let bytes = frame(part);
            let seen = SlicedPacket::from_ethernet(&bytes).unwrap();
            let payload = match (&below.addresses, &seen.net) {
                (AddressPair::V4(..), Some(NetSlice::Ipv4(ip))) => {
                    let header = ip.header().to_header();
                    prop_assert_eq!(header.header_checksum, header.calc_header_checksum());
                    prop_assert_eq!((usize::from(header.fragment_offset.byte_offset()), header.more_fragments), (at, n < last));
                    ip.payload()
                }
                (AddressPair::V6(..), Some(NetSlice::Ipv6(ip))) if last > 0 => {
                    let extensions = etherparse::Ipv6Extensions::from_slice(IpNumber::IPV6_FRAGMENTATION_HEADER, &bytes[54..]).unwrap().0;
                    let header = extensions.fragment.unwrap();
                    prop_assert_eq!((usize::from(header.fragment_offset.byte_offset()), header.more_fragments), (at, n < last));
                    prop_assert_eq!((header.identification, header.next_header), (77, IpNumber::TCP));
                    ip.payload()
                }
                (_, Some(NetSlice::Ipv6(ip))) => ip.payload(),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(payload.fragmented, last > 0);
            at += payload.payload.len();
        }
        prop_assert_eq!(at, len + 20);
    }
}
