//! Comparison with etherparse: it parses what this crate encodes, and the reverse.

mod common;

use bytes::Bytes;
use common::{fitting, frame, ipv4, lower};
use etherparse::{
    Ethernet2Header, IpNumber, Ipv4Header, Ipv6Header, LinkSlice, NetSlice, SingleVlanHeader, SlicedPacket,
    TransportSlice, VlanId,
};
use farpace_units::Seq;
use farpace_wire::tcp::AckControl;
use farpace_wire::{Below, EtherType, MacAddr, Packet, PauseFrame, TcpFlags, TcpHeader};
use proptest::collection::vec;
use proptest::prelude::*;

/// Any header without the three reserved bits above AE, which etherparse omits from its checksums, and
/// without options of experimental kinds, at which it stops parsing.
fn header() -> impl Strategy<Value = TcpHeader> {
    common::header().prop_map(|mut header| {
        header.flags = TcpFlags::from_bits(header.flags.bits() & 0x1ff);
        header.options.ack_control = AckControl::default();
        header
    })
}

proptest! {
    /// Breaks: other implementations recognise PAUSE frames.
    #[test]
    fn etherparse_parses_pause_frames(opcode: u16, time: u16, src: [u8; 6]) {
        let bytes = frame(&PauseFrame { opcode, time }.packet(MacAddr(src)));
        let seen = SlicedPacket::from_ethernet(&bytes).unwrap();
        let Some(LinkSlice::Ethernet2(link)) = seen.link else { panic!("Ethernet") };
        prop_assert_eq!((link.source(), link.destination()), (src, [0x01, 0x80, 0xc2, 0, 0, 1]));
        prop_assert_eq!(link.ether_type().0, 0x8808);
        let payload = link.payload_slice();
        prop_assert_eq!(&payload[..4], &[opcode.to_be_bytes(), time.to_be_bytes()].concat()[..]);
        prop_assert!(payload.len() == 46 && payload[4..].iter().all(|byte| *byte == 0));
    }

    /// Breaks: frames in captures contain the segments that were sent, with valid checksums.
    #[test]
    fn etherparse_parses_encoded_segments(
        lower in lower(), ident in any::<u16>(), header in header(), payload in vec(any::<u8>(), 0..1500),
    ) {
        let bytes = frame(&lower.tcp(ident, &header, Bytes::from(payload.clone())));
        let seen = SlicedPacket::from_ethernet(&bytes).unwrap();

        let Some(LinkSlice::Ethernet2(link)) = seen.link else { panic!("Ethernet") };
        prop_assert_eq!((MacAddr(link.source()), MacAddr(link.destination())), (lower.src_mac, lower.dst_mac));
        let Some(NetSlice::Ipv4(net)) = seen.net else { panic!("IPv4") };
        let ip = net.header().to_header();
        prop_assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        prop_assert_eq!((ip.source, ip.destination), (ipv4(&lower).0.octets(), ipv4(&lower).1.octets()));
        prop_assert_eq!((ip.time_to_live, ip.identification), (lower.ttl, ident));
        prop_assert_eq!(ip.dscp.value() << 2 | ip.ecn.value(), lower.tos);
        prop_assert_eq!((ip.dont_fragment, ip.more_fragments, ip.fragment_offset.value()), (true, false, 0));
        prop_assert_eq!(usize::from(ip.total_len), bytes.len() - 14);

        let Some(TransportSlice::Tcp(tcp)) = seen.transport else { panic!("TCP") };
        prop_assert_eq!(tcp.payload(), &payload[..]);
        let theirs = tcp.to_header();
        prop_assert_eq!(theirs.checksum, theirs.calc_checksum_ipv4(&ip, &payload).unwrap());
        prop_assert_eq!((theirs.source_port, theirs.destination_port), (header.src_port, header.dst_port));
        prop_assert_eq!(Seq::new(theirs.sequence_number), header.seq);
        prop_assert_eq!(Seq::new(theirs.acknowledgment_number), header.ack);
        prop_assert_eq!((theirs.window_size, theirs.urgent_pointer), (header.window, header.urgent));
        let flags = [
            (theirs.fin, TcpFlags::FIN), (theirs.syn, TcpFlags::SYN), (theirs.rst, TcpFlags::RST),
            (theirs.psh, TcpFlags::PSH), (theirs.ack, TcpFlags::ACK), (theirs.urg, TcpFlags::URG),
            (theirs.ece, TcpFlags::ECE), (theirs.cwr, TcpFlags::CWR), (theirs.ns, TcpFlags::AE),
        ];
        for (theirs, ours) in flags {
            prop_assert_eq!(theirs, header.flags.contains(ours), "{}", ours);
        }
        compare_options(theirs.options_iterator(), &fitting(&header).options)?;
    }

    /// Breaks: segments of other stacks are parsed: IPv4 with options, IPv6, VLAN tags and padding.
    #[test]
    fn segments_of_etherparse_are_parsed(
        lower in lower(), header in header(), payload in vec(any::<u8>(), 0..300),
        ip_options in prop::sample::select(vec![0usize, 4, 40]), v6 in any::<bool>(),
        vlan in prop::option::of(0u16..4096), padding in 0usize..20,
    ) {
        let mut theirs = etherparse::TcpHeader::new(
            header.src_port, header.dst_port, header.seq.get(), header.window);
        theirs.acknowledgment_number = header.ack.get();
        theirs.urgent_pointer = header.urgent;
        for (bit, ours) in [
            (&mut theirs.fin, TcpFlags::FIN), (&mut theirs.syn, TcpFlags::SYN), (&mut theirs.rst, TcpFlags::RST),
            (&mut theirs.psh, TcpFlags::PSH), (&mut theirs.ack, TcpFlags::ACK), (&mut theirs.urg, TcpFlags::URG),
            (&mut theirs.ece, TcpFlags::ECE), (&mut theirs.cwr, TcpFlags::CWR), (&mut theirs.ns, TcpFlags::AE),
        ] {
            *bit = header.flags.contains(ours);
        }
        let mut encoded = [0; 60];
        let encoded_len = header.encode(&mut encoded);
        theirs.set_options_raw(&encoded[20..encoded_len]).unwrap();

        let mut bytes = Vec::new();
        let network = if v6 { etherparse::EtherType::IPV6 } else { etherparse::EtherType::IPV4 };
        let link = Ethernet2Header {
            source: lower.src_mac.0,
            destination: lower.dst_mac.0,
            ether_type: if vlan.is_some() { etherparse::EtherType::VLAN_TAGGED_FRAME } else { network },
        };
        link.write(&mut bytes).unwrap();
        if let Some(id) = vlan {
            let vlan_id = VlanId::try_new(id).unwrap();
            bytes.extend(SingleVlanHeader { vlan_id, ether_type: network, ..Default::default() }.to_bytes());
        }
        let tcp_len = theirs.header_len() + payload.len();
        write_ip(&mut bytes, v6.then_some(0xabcde), ip_options, &lower, &mut theirs, &payload).unwrap();
        theirs.write(&mut bytes).unwrap();
        bytes.extend_from_slice(&payload);
        let unpadded = bytes.len();
        bytes.resize(unpadded + padding, 0xee);

        let packet = Packet::from_frame(&bytes).unwrap();
        prop_assert_eq!(packet.len().as_len(), unpadded);
        prop_assert_eq!(packet.verify_checksums(), Ok(()));
        prop_assert_eq!(packet.payload(), &payload);
        let ours = packet.tcp().unwrap();
        prop_assert_eq!(ours.checksum(), theirs.checksum);
        prop_assert_eq!(ours.header(), fitting(&header));

        let ethernet = packet.ethernet().unwrap();
        prop_assert_eq!(ethernet.tags.first().map(|t| t.control), vlan);
        prop_assert_eq!((ethernet.src, ethernet.dst), (lower.src_mac, lower.dst_mac));
        prop_assert_eq!(ethernet.ether_type, if v6 { EtherType::IPV6 } else { EtherType::IPV4 });
        let mut again = [0; 22];
        let len = ethernet.encode(&mut again);
        prop_assert_eq!(&again[..len], &bytes[..len]);
        if v6 {
            let ip = packet.ipv6().unwrap();
            prop_assert_eq!((ip.hop_limit(), ip.traffic_class()), (lower.ttl, lower.tos));
            prop_assert_eq!((ip.flow_label(), ip.next_header()), (0xabcde, 6));
            prop_assert_eq!((ip.src(), ip.dst()), (ipv4(&lower).0.to_ipv6_mapped(), ipv4(&lower).1.to_ipv6_mapped()));
            let header = farpace_wire::Ipv6Header {
                traffic_class: ip.traffic_class(),
                flow_label: ip.flow_label(),
                next_header: ip.next_header(),
                hop_limit: ip.hop_limit(),
                src: ip.src(),
                dst: ip.dst(),
            };
            let mut again = [0; 40];
            header.encode(tcp_len, &mut again).unwrap();
            prop_assert_eq!(&again[..], &bytes[len..len + 40]);
        } else {
            let ip = packet.ipv4().unwrap();
            prop_assert_eq!((ip.src(), ip.dst(), ip.ttl()), (ipv4(&lower).0, ipv4(&lower).1, lower.ttl));
            prop_assert_eq!(ip.options(), &vec![1; ip_options]);
        }
    }

    /// Breaks: encoded IPv4 headers with any fields are valid.
    #[test]
    fn etherparse_parses_ipv4_headers(
        lower in lower(), ident in any::<u16>(), flags in any::<(bool, bool)>(), fragment_offset in 0u16..8192,
        protocol in any::<u8>(), options in 0usize..=10, payload_len in 0usize..65_000,
    ) {
        let options = vec![1; options * 4];
        let header = farpace_wire::Ipv4Header {
            tos: lower.tos, ident, dont_fragment: flags.0, more_fragments: flags.1, fragment_offset,
            ttl: lower.ttl, protocol, src: ipv4(&lower).0, dst: ipv4(&lower).1, options: &options,
        };
        let mut out = [0xaa; 60];
        let len = header.encode(payload_len, &mut out).unwrap();
        let (theirs, _) = Ipv4Header::from_slice(&out[..len]).unwrap();
        prop_assert_eq!(theirs.header_checksum, theirs.calc_header_checksum());
        prop_assert_eq!(usize::from(theirs.total_len), len + payload_len);
        prop_assert_eq!(&theirs.options[..], &options[..]);
        let ours = farpace_wire::Ipv4View::parse(&out[..len]).unwrap();
        prop_assert_eq!(ours.verify_checksum(), Ok(()));
        prop_assert_eq!((theirs.dscp.value(), theirs.ecn.value()), (ours.dscp(), ours.ecn()));
        prop_assert_eq!((theirs.dont_fragment, theirs.more_fragments), (ours.dont_fragment(), ours.more_fragments()));
        prop_assert_eq!((theirs.dont_fragment, theirs.more_fragments), flags);
        prop_assert_eq!(theirs.fragment_offset.value(), ours.fragment_offset());
        prop_assert_eq!(theirs.identification, ours.ident());
        prop_assert_eq!((theirs.protocol.0, theirs.time_to_live), (ours.protocol(), ours.ttl()));
    }
}

/// Writes an IP header before the TCP header `tcp`, whose checksum it sets: IPv6 with this flow label, or
/// IPv4 with `ip_options` bytes of options.
fn write_ip(
    bytes: &mut Vec<u8>,
    flow_label: Option<u32>,
    ip_options: usize,
    lower: &Below,
    tcp: &mut etherparse::TcpHeader,
    payload: &[u8],
) -> Result<(), Box<dyn std::error::Error>> {
    let (src, dst) = ipv4(lower);
    let tcp_len = tcp.header_len() + payload.len();
    if let Some(flow_label) = flow_label {
        let ip = Ipv6Header {
            payload_length: tcp_len as u16,
            next_header: IpNumber::TCP,
            hop_limit: lower.ttl,
            traffic_class: lower.tos,
            flow_label: flow_label.try_into()?,
            source: src.to_ipv6_mapped().octets(),
            destination: dst.to_ipv6_mapped().octets(),
        };
        tcp.checksum = tcp.calc_checksum_ipv6(&ip, payload)?;
        ip.write(bytes)?;
    } else {
        let (src, dst) = (src.octets(), dst.octets());
        let mut ip = Ipv4Header::new(tcp_len as u16, lower.ttl, IpNumber::TCP, src, dst)?;
        ip.options = vec![1; ip_options].as_slice().try_into()?;
        ip.set_payload_len(tcp_len)?;
        ip.header_checksum = ip.calc_header_checksum();
        tcp.checksum = tcp.calc_checksum_ipv4(&ip, payload)?;
        ip.write(bytes)?;
    }
    Ok(())
}

fn compare_options(
    theirs: etherparse::TcpOptionsIterator<'_>,
    ours: &farpace_wire::TcpOptions,
) -> Result<(), TestCaseError> {
    use etherparse::TcpOptionElement::*;
    let mut seen = farpace_wire::TcpOptions::default();
    let block = |(start, end)| farpace_wire::SackBlock { start: Seq::new(start), end: Seq::new(end) };
    for option in theirs {
        match option.map_err(|why| TestCaseError::fail(format!("{why:?}")))? {
            Noop => {}
            MaximumSegmentSize(mss) => seen.mss = Some(mss),
            WindowScale(shift) => seen.window_scale = Some(shift),
            SelectiveAcknowledgementPermitted => seen.sack_permitted = true,
            SelectiveAcknowledgement(first, rest) => {
                seen.sack = [Some(first)].into_iter().chain(rest).flatten().map(block).collect();
            }
            Timestamp(value, echo) => seen.timestamps = Some(farpace_wire::Timestamps { value, echo }),
        }
    }
    prop_assert_eq!(&seen, ours);
    Ok(())
}
