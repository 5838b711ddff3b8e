use super::*;
use crate::harness::Harness;
use bytes::Bytes;
use farpace_units::Instant;
use farpace_wire::checksum::Sum;
use farpace_wire::{AddressPair, Below, MacAddr, TcpHeader, UdpHeader, fragment};
use proptest::prelude::*;
use std::net::IpAddr;

const V4: AddressPair =
    AddressPair::V4(std::net::Ipv4Addr::new(10, 0, 0, 1), std::net::Ipv4Addr::new(10, 0, 1, 2));
const V6: AddressPair = AddressPair::V6(std::net::Ipv6Addr::LOCALHOST, std::net::Ipv6Addr::UNSPECIFIED);

fn below(addresses: AddressPair) -> Below {
    Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64)
}

/// A segment with a right checksum and these bytes as its options: a multiple of 4 of them.
fn segment(addresses: AddressPair, flags: TcpFlags, options: &[u8], payload: usize) -> Packet {
    let header = TcpHeader { src_port: 40_000, dst_port: 80, flags, ..TcpHeader::default() };
    let rest = [options, &vec![0x5a; payload]].concat();
    let mut frame = Vec::new();
    below(addresses).tcp(7, &header, Bytes::from(rest)).write_frame(&mut frame);
    let tcp = &mut frame[14 + addresses.ip_header_len()..];
    tcp[12] = tcp[12] & 0x0f | ((20 + options.len() as u8) / 4) << 4;
    tcp[16..18].fill(0);
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let sum = Sum::new().bytes(&octets(addresses.src())).bytes(&octets(addresses.dst()));
    let sum = sum.word(6).word(tcp.len() as u16).bytes(tcp).finish();
    tcp[16..18].copy_from_slice(&sum.to_be_bytes());
    Packet::from_frame(&frame).unwrap()
}

fn through(config: &MiddleboxConfig, packet: Packet) -> (Option<Packet>, MiddleboxDirection) {
    let direction = MiddleboxDirection::new(config.clone());
    let mut harness = Harness::new(Middlebox::new(direction.clone(), direction));
    harness.packet(Instant::ZERO, Port(0), packet);
    let out = harness.emitted.pop().map(|(_, _, packet)| packet);
    assert_eq!(out.is_none(), harness.dropped == [(Instant::ZERO, DropReason::NoAck)]);
    (out, harness.element.direction(Port(0)).clone())
}

fn strips(kinds: &[u8], strip_on: StripOn) -> MiddleboxConfig {
    MiddleboxConfig { strip: kinds.iter().copied().collect(), strip_on, ..MiddleboxConfig::default() }
}

const ACK: TcpFlags = TcpFlags::ACK;
const SYN: TcpFlags = TcpFlags::SYN;

/// Breaks: options of other kinds or segments are stripped, configured ones stay, others move, or a malformed
/// list is changed after the malformed entry.
#[test]
fn options_become_nops() {
    let unknown = MiddleboxConfig { strip: MiddleboxConfig::unknown_options(), ..MiddleboxConfig::default() };
    #[rustfmt::skip]
    let table: &[(MiddleboxConfig, TcpFlags, &[u8], &[u8])] = &[
        // CDL-Allow behind MSS.
        (strips(&[254], StripOn::All), SYN, &[2, 4, 5, 180, 254, 4, 0xcd, 0x1a], &[2, 4, 5, 180, 1, 1, 1, 1]),
        (strips(&[253], StripOn::All), SYN, &[254, 4, 0xcd, 0x1a], &[254, 4, 0xcd, 0x1a]),
        (strips(&[2, 254], StripOn::All), SYN, &[254, 4, 2, 4, 2, 4, 5, 180], &[1, 1, 1, 1, 1, 1, 1, 1]),
        // Bytes that look like an option within another option's data stay.
        (strips(&[2], StripOn::All), ACK, &[30, 6, 2, 4, 5, 180, 1, 1], &[30, 6, 2, 4, 5, 180, 1, 1]),
        (strips(&[254], StripOn::Syn), SYN | ACK, &[254, 4, 0, 0], &[1, 1, 1, 1]),
        (strips(&[254], StripOn::Syn), ACK, &[254, 4, 0, 0], &[254, 4, 0, 0]),
        (strips(&[254], StripOn::Data), SYN | ACK, &[254, 4, 0, 0], &[254, 4, 0, 0]),
        (strips(&[254], StripOn::Data), ACK, &[254, 4, 0, 0], &[1, 1, 1, 1]),
        // Kinds 6, 7 and 9 to 255, no others.
        (unknown.clone(), SYN, &[2, 4, 5, 180, 3, 3, 7, 4, 2, 5, 2, 8, 2, 6, 2, 7, 2, 9, 2, 0],
                               &[2, 4, 5, 180, 3, 3, 7, 4, 2, 5, 2, 8, 2, 1, 1, 1, 1, 1, 1, 0]),
        (unknown, SYN, &[255, 4, 0, 0, 172, 3, 0, 1], &[1, 1, 1, 1, 1, 1, 1, 1]),
        // NOP and the end of the list are no options.
        (strips(&[0, 1, 254], StripOn::All), ACK, &[1, 0, 254, 2], &[1, 0, 254, 2]),
        // Lengths 0, 1, and beyond the end.
        (strips(&[254, 9], StripOn::All), ACK, &[9, 2, 254, 0, 9, 2, 1, 1], &[1, 1, 254, 0, 9, 2, 1, 1]),
        (strips(&[254, 9], StripOn::All), ACK, &[9, 2, 254, 1, 9, 2, 1, 1], &[1, 1, 254, 1, 9, 2, 1, 1]),
        (strips(&[254, 9], StripOn::All), ACK, &[9, 2, 254, 3], &[1, 1, 254, 3]),
        (strips(&[254, 9], StripOn::All), ACK, &[9, 3, 0, 254], &[1, 1, 1, 254]),
    ];
    for (config, flags, options, expected) in table {
        for addresses in [V4, V6] {
            let (out, direction) = through(config, segment(addresses, *flags, options, 100));
            let out = out.unwrap();
            assert_eq!(out.tcp().unwrap().options(), *expected, "{options:?} under {config:?}");
            assert_eq!(direction.stripped(), u64::from(options != expected), "{options:?}");
            assert!(out.verify_checksums().is_ok());
        }
    }
}

/// Breaks: bits are cleared that must stay, or stay that must be cleared; AE is cleared with the reserved
/// ones.
#[test]
fn bits_are_cleared() {
    let all = TcpFlags::from_bits(0x0fff);
    for (clear, left) in [
        (MiddleboxConfig::RESERVED, 0x01ff),
        (MiddleboxConfig::RESERVED | TcpFlags::AE, 0x00ff),
        (TcpFlags::AE, 0x0eff),
        (TcpFlags::NONE, 0x0fff),
    ] {
        let config = MiddleboxConfig { clear, ..MiddleboxConfig::default() };
        let (out, direction) = through(&config, segment(V4, all, &[], 9));
        let out = out.unwrap();
        assert_eq!(out.tcp().unwrap().flags().bits(), left);
        assert!(out.verify_checksums().is_ok());
        let (_, idle) = through(&config, segment(V4, ACK, &[], 9));
        assert_eq!((direction.cleared(), idle.cleared()), (u64::from(!clear.is_empty()), 0));
    }
}

/// Breaks: a firewall drops segments of an ordinary connection, or lets those of classic CDL pass.
#[test]
fn segments_without_ack_are_dropped() {
    let firewall = MiddleboxConfig { drop_without_ack: true, ..MiddleboxConfig::default() };
    for (flags, passes) in [
        (ACK, true),
        (SYN, true),
        (SYN | ACK, true),
        (SYN | TcpFlags::ECE | TcpFlags::CWR, true),
        (TcpFlags::RST, true),
        (TcpFlags::FIN | ACK, true),
        (TcpFlags::NONE, false),
        (TcpFlags::from_bits(0x0800), false),
        (TcpFlags::FIN, false),
        (TcpFlags::PSH | TcpFlags::URG, false),
    ] {
        let (out, direction) = through(&firewall, segment(V6, flags, &[], 1_000));
        assert_eq!((out.is_some(), direction.dropped()), (passes, u64::from(!passes)), "{flags}");
        assert!(through(&MiddleboxConfig::default(), segment(V6, flags, &[], 1_000)).0.is_some());
    }
}

/// Breaks: a packet that is not a whole TCP segment is dropped or changed, or is confused with an unreadable
/// one.
#[test]
fn other_packets_pass_untouched() {
    let all = MiddleboxConfig {
        strip: (0..=u8::MAX).collect(),
        clear: TcpFlags::from_bits(0x0fff),
        drop_without_ack: true,
        ..MiddleboxConfig::default()
    };
    let udp = UdpHeader { src_port: 1, dst_port: 2 };
    let parts = fragment(segment(V4, TcpFlags::NONE, &[254, 4, 0, 0], 1_000), 576, 0).unwrap();
    assert!(parts.len() > 1);
    let mut damaged = segment(V4, TcpFlags::NONE, &[254, 4, 0, 0], 10);
    damaged.flip_bit((14 + 20 + 12) * 8); // the data offset
    let cases = parts.into_iter().map(|part| (part, 0));
    for (packet, unreadable) in
        cases.chain([(below(V4).udp(7, udp, Bytes::from_static(b"hello")).unwrap(), 0), (damaged, 1)])
    {
        let (out, direction) = through(&all, packet.clone());
        let out = out.unwrap();
        assert_eq!((out.headers(), out.payload()), (packet.headers(), packet.payload()));
        assert_eq!(direction.unreadable(), unreadable);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Breaks: a right checksum becomes wrong, or a wrong one right, so that damage goes unnoticed.
    #[test]
    fn checksums_stay_what_they_are(
        bits: u16,
        words in 0usize..=10,
        options in prop::collection::vec(0u8..12, 40),
        len in 0usize..50,
        bit in 0u64..64,
        six: bool,
    ) {
        let addresses = if six { V6 } else { V4 };
        let config = MiddleboxConfig {
            strip: (2..9).collect(),
            clear: MiddleboxConfig::RESERVED | TcpFlags::AE,
            ..MiddleboxConfig::default()
        };
        let packet = segment(addresses, TcpFlags::from_bits(bits), &options[..words * 4], len);
        prop_assert!(packet.verify_checksums().is_ok());
        let mut damaged = packet.clone();
        // Port numbers and sequence number: damage that changes no length.
        damaged.flip_bit((14 + addresses.ip_header_len() as u64) * 8 + bit);
        let out = through(&config, packet.clone()).0.unwrap();
        prop_assert!(out.verify_checksums().is_ok());
        prop_assert_eq!(out.headers().len(), packet.headers().len());
        prop_assert_eq!(out.payload(), packet.payload());
        prop_assert!(through(&config, damaged).0.unwrap().verify_checksums().is_err());
    }
}
