//! Exact bytes: encoded headers, and headers that are refused.

use bytes::Bytes;
use farpace_units::{ByteCount, Seq};
use farpace_wire::checksum::checksum;
use farpace_wire::{
    AddressPair, Below, Checksum, Ipv4Header, Layer, MacAddr, Packet, SackBlock, TcpFlags, TcpHeader,
    TcpOptions, Timestamps, WireError,
};
use std::net::Ipv4Addr;

const SRC: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const LOWER: Below =
    Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), AddressPair::V4(SRC, DST), 64);
const IP: Ipv4Header<'static> = Ipv4Header {
    tos: 0,
    ident: 0,
    dont_fragment: false,
    more_fragments: false,
    fragment_offset: 0,
    ttl: 1,
    protocol: 6,
    src: SRC,
    dst: DST,
    options: &[],
};
const TS: Option<Timestamps> = Some(Timestamps { value: 0x0102_0304, echo: 0x0506_0708 });
const TS_BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

fn segment(options: TcpOptions) -> TcpHeader {
    let flags = TcpFlags::ACK | TcpFlags::PSH;
    TcpHeader { src_port: 5001, dst_port: 80, flags, window: 229, options, ..TcpHeader::default() }
}

fn option_bytes(options: TcpOptions) -> Vec<u8> {
    let mut out = [0; 60];
    let len = segment(options).encode(&mut out);
    out[20..len].to_vec()
}

fn blocks(n: u32) -> farpace_wire::SackBlocks {
    (0..n).map(|i| SackBlock { start: Seq::new(i), end: Seq::new(i + 1) }).collect()
}

/// The frame of `packet`.
fn frame(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame
}

/// Breaks: header lengths and the order of options are those of Linux, which the results of the paper depend
/// on.
#[test]
fn options_stand_in_linux_order() {
    let syn = TcpOptions {
        mss: Some(1460),
        window_scale: Some(7),
        sack_permitted: true,
        timestamps: TS,
        ..Default::default()
    };
    let with_sack = [&[2, 4, 5, 180, 4, 2, 8, 10][..], &TS_BYTES, &[1, 3, 3, 7]].concat();
    assert_eq!(option_bytes(syn.clone()), with_sack);
    let without_sack = [&[2, 4, 5, 180, 1, 1, 8, 10][..], &TS_BYTES, &[1, 3, 3, 7]].concat();
    assert_eq!(option_bytes(TcpOptions { sack_permitted: false, ..syn.clone() }), without_sack);
    assert_eq!(option_bytes(TcpOptions { timestamps: None, ..syn }), [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]);
    let ack = TcpOptions { timestamps: TS, sack: blocks(1), ..Default::default() };
    let ack_bytes = [&[1, 1, 8, 10][..], &TS_BYTES, &[1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 1]].concat();
    assert_eq!(option_bytes(ack), ack_bytes);
}

/// Breaks: SACK blocks that do not fit are omitted, last ones first.
#[test]
fn blocks_that_do_not_fit_are_omitted() {
    let all = TcpOptions {
        mss: Some(1),
        window_scale: Some(2),
        sack_permitted: true,
        timestamps: TS,
        sack: blocks(4),
        ..Default::default()
    };
    let mut out = [0; 60];
    segment(all.clone()).encode(&mut out);
    let (parsed, len) = TcpHeader::parse(&out).unwrap();
    assert_eq!((len, parsed.options), (20 + 20 + 4 + 16, TcpOptions { sack: blocks(2), ..all }));
    // RFC 2018 §3: three beside timestamps, four without.
    let beside = TcpOptions { timestamps: TS, sack: blocks(4), ..Default::default() };
    assert_eq!(option_bytes(beside).len(), 12 + 4 + 24);
    assert_eq!(option_bytes(TcpOptions { sack: blocks(4), ..Default::default() }).len(), 36);
}

/// Breaks: options of a known kind with a wrong length are skipped, and parsing continues.
#[test]
fn known_options_of_wrong_length_are_skipped() {
    let bytes = [2, 3, 9, 3, 4, 1, 1, 4, 3, 0, 8, 3, 0, 5, 9, 0, 0, 0, 0, 0, 0, 0, 2, 4, 1, 0];
    assert_eq!(TcpOptions::parse(&bytes), TcpOptions { mss: Some(256), ..Default::default() });
    // Options after the end-of-options option are ignored.
    assert_eq!(TcpOptions::parse(&[0, 2, 4, 5, 180]), TcpOptions::default());
    // Of repeated options the last one is used.
    assert_eq!(TcpOptions::parse(&[3, 3, 1, 3, 3, 2]).window_scale, Some(2));
}

/// Breaks: the checksum of the example of RFC 1071 §3.
#[test]
fn the_example_of_rfc_1071() {
    assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
}

/// Breaks: checksum offload: the checksum is computed when the packet is written.
#[test]
fn a_partial_checksum_is_trusted_and_then_completed() {
    let mut packet = LOWER.tcp(7, &segment(TcpOptions::default()), Bytes::from_static(b"abc"));
    assert_eq!((packet.checksum(), packet.verify_checksums()), (Checksum::Partial, Ok(())));
    assert_eq!(packet.tcp().unwrap().checksum(), 0);
    let written = frame(&packet);
    packet.complete_checksum();
    assert_eq!((packet.checksum(), packet.verify_checksums()), (Checksum::Complete, Ok(())));
    assert_eq!(frame(&packet), written);
    assert_ne!(packet.tcp().unwrap().checksum(), 0);
}

/// Breaks: lengths in bytes, on which rates, policers and queues depend.
#[test]
fn lengths_are_those_of_the_wire() {
    let header = segment(TcpOptions { timestamps: TS, ..Default::default() });
    let packet = LOWER.tcp(1, &header, Bytes::from(vec![0; 1448]));
    assert_eq!((packet.len(), packet.network_len()), (ByteCount::new(1514), ByteCount::new(1500)));
    assert_eq!(packet.ipv4().unwrap().total_len(), 1500);
    assert_eq!(packet.headers().len(), 66);
}

/// Breaks: moving a packet moves one pointer.
#[test]
fn a_packet_is_one_pointer() {
    assert_eq!(size_of::<Packet>(), size_of::<usize>());
    assert_eq!(size_of::<Option<Packet>>(), size_of::<usize>());
}

/// Breaks: a payload that exceeds an IPv4 packet is truncated to a readable packet.
#[test]
fn a_payload_too_long_is_truncated() {
    let packet = LOWER.tcp(1, &segment(TcpOptions::default()), Bytes::from(vec![1; 70_000]));
    assert_eq!(packet.network_len(), ByteCount::new(65_535));
    assert_eq!(Packet::from_frame(&frame(&packet)).unwrap().payload().len(), 65_495);
}

/// Breaks: invalid IP and TCP headers are refused.
#[test]
fn invalid_headers_are_refused() {
    let good = frame(&LOWER.tcp(1, &segment(TcpOptions::default()), Bytes::from_static(b"abc")));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Packet::from_frame(&bytes).map(|_| ())
    };
    let ip = Layer::Ipv4;
    assert_eq!(with(14, 0x55), Err(WireError::Version { layer: ip, version: 5 }));
    assert_eq!(with(14, 0x44), Err(WireError::HeaderLength { layer: ip, len: 16 }));
    assert_eq!(with(14, 0x4f), Err(WireError::Truncated { layer: ip, need: 60, have: 43 }));
    assert_eq!(with(17, 19), Err(WireError::TotalLength { layer: ip, length: 19, have: 43 }));
    assert_eq!(with(17, 44), Err(WireError::TotalLength { layer: ip, length: 44, have: 43 }));
    assert_eq!(with(46, 0x40), Err(WireError::HeaderLength { layer: Layer::Tcp, len: 16 }));
    assert_eq!(with(46, 0x60), Err(WireError::Truncated { layer: Layer::Tcp, need: 24, have: 23 }));
    let short = WireError::Truncated { layer: Layer::Ethernet, need: 14, have: 13 };
    assert_eq!(Packet::from_frame(&good[..13]).map(|_| ()), Err(short));
}

/// Breaks: frames without TCP pass through unchanged.
#[test]
fn other_frames_pass_through() {
    let mut arp = vec![0xff; 12];
    arp.extend_from_slice(&[0x08, 0x06, 1, 2, 3, 4, 5]);
    let packet = Packet::from_frame(&arp).unwrap();
    assert_eq!(packet.tcp().map(|_| ()), Err(WireError::NotIp(0x0806)));
    assert_eq!((packet.payload().len(), packet.verify_checksums()), (5, Ok(())));
    assert_eq!(frame(&packet), arp);

    let tcp = frame(&LOWER.tcp(1, &segment(TcpOptions::default()), Bytes::from_static(b"abc")));
    let rewrite = |header: Ipv4Header<'_>| {
        let mut bytes = tcp.clone();
        let mut out = [0; 60];
        let len = header.encode(23, &mut out).unwrap();
        bytes[14..14 + len].copy_from_slice(&out[..len]);
        Packet::from_frame(&bytes).unwrap()
    };
    let other = rewrite(Ipv4Header { protocol: 99, ..IP });
    assert_eq!((other.tcp().map(|_| ()), other.payload().len()), (Err(WireError::NotTcp(99)), 23));
    for fragment in [Ipv4Header { more_fragments: true, ..IP }, Ipv4Header { fragment_offset: 3, ..IP }] {
        let packet = rewrite(fragment);
        assert_eq!(packet.tcp().map(|_| ()), Err(WireError::Fragment));
        assert_eq!((packet.payload().len(), packet.verify_checksums()), (23, Ok(())));
    }
}

/// Breaks: a header that cannot be encoded is refused.
#[test]
fn headers_that_do_not_fit_into_ipv4_are_refused() {
    let header = |options| Ipv4Header { options, ..IP };
    let cannot = Err(WireError::CannotEncode { layer: Layer::Ipv4 });
    let mut out = [0; 60];
    assert_eq!(header(&[1; 3]).encode(0, &mut out), cannot);
    assert_eq!(header(&[1; 44]).encode(0, &mut out), cannot);
    assert_eq!(header(&[]).encode(65_516, &mut out), cannot);
    assert_eq!(header(&[]).encode(usize::MAX, &mut out), cannot);
    assert_eq!(header(&[]).encode(65_515, &mut out), Ok(20));
}

/// Breaks: logs and test failures show packets readably.
#[test]
fn debug_is_one_readable_line() {
    let mut packet = LOWER.tcp(1, &segment(TcpOptions::default()), Bytes::from_static(b"abc"));
    assert_eq!(format!("{packet:?}"), "10.0.0.1:5001 > 10.0.0.2:80 PSH|ACK seq 0 ack 0 win 229 len 3");
    packet.flip_bit(14 * 8);
    assert_eq!(format!("{packet:?}"), "malformed (IPv4 header has version 12) len 57");
    assert_eq!(format!("{:?}", TcpFlags::SYN | TcpFlags::ACK), "SYN|ACK");
    assert_eq!(
        format!("{:?}", TcpFlags::from_bits(0xffff)),
        "FIN|SYN|RST|PSH|ACK|URG|ECE|CWR|AE|0x200|0x400|0x800"
    );
    assert_eq!(format!("{:?}", TcpFlags::NONE), "-");
}

/// Breaks: after bit errors in lengths, headers are refused instead of read from the wrong offset.
#[test]
fn damaged_lengths_are_refused() {
    let bit = |byte: u64, mask: u8| byte * 8 + u64::from(mask.leading_zeros());
    let damaged = |frame: &[u8], bit| {
        let mut packet = Packet::from_frame(frame).unwrap();
        assert!(packet.tcp().is_ok());
        packet.flip_bit(bit);
        packet.tcp().map(|_| ())
    };
    let options = TcpOptions { mss: Some(1460), window_scale: Some(7), ..Default::default() };
    let good = frame(&LOWER.tcp(1, &segment(options), Bytes::from_static(b"abc")));
    // Data offset 7 becomes 5.
    assert_eq!(damaged(&good, bit(46, 0x20)), Err(WireError::HeaderLength { layer: Layer::Tcp, len: 20 }));
    // A total length of 51 becomes 50.
    let total = WireError::TotalLength { layer: Layer::Ipv4, length: 50, have: 51 };
    assert_eq!(damaged(&good, bit(17, 1)), Err(total));

    // A VLAN tag becomes another EtherType.
    let tagged = [&good[..12], &[0x81, 0, 0, 5], &good[12..]].concat();
    assert_eq!(
        damaged(&tagged, bit(13, 1)),
        Err(WireError::HeaderLength { layer: Layer::Ethernet, len: 14 })
    );
    let mut packet = Packet::from_frame(&tagged).unwrap();
    packet.flip_bit(bit(13, 1));
    assert!(packet.ethernet().is_err());

    // A header length of 28 becomes 20.
    let mut with_options = [&good[..14], &[0; 28], &good[34..]].concat();
    let ip = Ipv4Header { options: &[1; 8], ..IP };
    let mut out = [0; 60];
    let len = ip.encode(good.len() - 34, &mut out).unwrap();
    with_options[14..14 + len].copy_from_slice(&out[..len]);
    assert_eq!(
        damaged(&with_options, bit(14, 2)),
        Err(WireError::HeaderLength { layer: Layer::Ipv4, len: 20 })
    );
}
