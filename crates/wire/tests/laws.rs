//! Properties of headers, for random headers.

mod common;

use bytes::Bytes;
use common::{fitting, frame, header, packet};
use farpace_wire::checksum::{Sum, checksum};
use farpace_wire::tcp::{TcpView, raw_options};
use farpace_wire::{Checksum, EthernetHeader, Ipv4View, Ipv6View, Packet, TcpHeader, TcpOptions, WireError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Random bytes, and damaged frames of IPv4 and IPv6 with TCP, so that the inner parsers run.
fn near_frame() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec((any::<Index>(), any::<u8>()), 0..4);
    let damaged = (packet(), noise, 0usize..200).prop_map(|(packet, noise, len)| {
        let mut bytes = frame(&packet);
        for (at, value) in noise {
            *at.get_mut(&mut bytes) = value;
        }
        bytes.truncate(len);
        bytes
    });
    prop_oneof![vec(any::<u8>(), 0..200), damaged]
}

proptest! {
    /// Breaks: a TCP header is encoded and parsed without change: fields, all twelve flag bits and options.
    #[test]
    fn a_header_survives_the_wire(header in header()) {
        let mut out = [0xaa; 60];
        let len = header.encode(&mut out);
        prop_assert_eq!(len % 4, 0);
        prop_assert_eq!(TcpHeader::parse(&out[..len]), Ok((fitting(&header), len)));
    }

    /// Breaks: a packet parsed from a capture is the packet that was written.
    #[test]
    fn a_packet_survives_the_capture(packet in packet()) {
        let bytes = frame(&packet);
        prop_assert_eq!(packet.len().as_len(), bytes.len());
        let again = Packet::from_frame(&bytes).unwrap();
        prop_assert_eq!(again.checksum(), Checksum::Complete);
        prop_assert_eq!(again.verify_checksums(), Ok(()));
        prop_assert_eq!(again.payload(), packet.payload());
        prop_assert_eq!(again.tcp().unwrap().header(), packet.tcp().unwrap().header());
        prop_assert_eq!(again.network_len(), packet.network_len());
        prop_assert_eq!(frame(&again), bytes);
    }

    /// Breaks: no bytes of a peer or a capture cause a panic.
    #[test]
    fn no_bytes_cause_a_panic(bytes in near_frame(), bit in any::<u64>()) {
        let _ = EthernetHeader::parse(&bytes);
        let _ = Ipv4View::parse(&bytes);
        let _ = Ipv6View::parse(&bytes);
        let _ = TcpView::parse(&bytes);
        let _ = TcpHeader::parse(&bytes);
        let _ = TcpOptions::parse(&bytes);
        // Every option is at least one byte long, so the list ends.
        prop_assert!(raw_options(&bytes).count() <= bytes.len());
        if let Ok(mut packet) = Packet::from_frame(&bytes) {
            let whole = frame(&packet);
            prop_assert_eq!(&whole[..], &bytes[..whole.len()], "only padding may be omitted");
            packet.flip_bit(bit);
            let _ = (packet.tcp().is_ok(), packet.ipv4().is_some(), packet.ipv6().is_some());
            let _ = (packet.ethernet(), packet.verify_checksums(), format!("{packet:?}"));
            packet.complete_checksum();
            let flipped = frame(&packet);
            let differing: u32 = flipped.iter().zip(&whole).map(|(a, b)| (a ^ b).count_ones()).sum();
            prop_assert_eq!((flipped.len(), differing), (whole.len(), 1));
        }
    }

    /// Breaks: a damaged packet is detected, both before and after a capture.
    #[test]
    fn a_flipped_bit_is_detected(packet in packet(), bit in any::<u64>()) {
        let below_ip = 14 * 8;
        let bit = below_ip + bit % (packet.len().bits() - below_ip);
        let mut damaged = packet.clone();
        damaged.flip_bit(bit);
        prop_assert!(damaged.verify_checksums().is_err());
        if let Ok(read) = Packet::from_frame(&frame(&damaged)) {
            prop_assert!(read.verify_checksums().is_err());
        }
        damaged.flip_bit(bit);
        prop_assert_eq!(damaged.verify_checksums(), Ok(()));
        prop_assert_eq!(frame(&damaged), frame(&packet));
    }

    /// Breaks: damage to one clone of a packet does not affect another, for example in the buffer of the
    /// sender.
    #[test]
    fn damage_stays_in_one_clone(payload in vec(any::<u8>(), 1..100), header in header(), bit in any::<u64>()) {
        let payload = Bytes::from(payload);
        let before = payload.to_vec();
        let addresses = farpace_wire::AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
 let lower = farpace_wire::Below::new(Default::default(), Default::default(), addresses, 64);
        let packet = lower.tcp(0, &header, payload.clone());
        prop_assert_eq!(packet.payload().as_ptr(), payload.as_ptr(), "by reference");
        let mut copy = packet.clone();
        prop_assert_eq!(copy.payload().as_ptr(), payload.as_ptr(), "by reference");
        copy.flip_bit(packet.headers().len() as u64 * 8 + bit % (payload.len() as u64 * 8));
        prop_assert_ne!(copy.payload(), packet.payload());
        prop_assert_eq!(packet.into_payload(), before);
    }

    /// Breaks: checksums of packets whose headers and payload are in separate memory.
    #[test]
    fn a_sum_may_be_split_anywhere(bytes in vec(any::<u8>(), 0..300), cuts in any::<(Index, Index)>()) {
        let (a, b) = (cuts.0.index(bytes.len() + 1), cuts.1.index(bytes.len() + 1));
        let (a, b) = (a.min(b), a.max(b));
        let pieces = Sum::new().bytes(&bytes[..a]).bytes(&bytes[a..b]).bytes(&bytes[b..]).finish();
        prop_assert_eq!(pieces, checksum(&bytes));
        prop_assert_eq!(pieces, reference(&bytes));
    }

    /// Breaks: options behind an unknown one are parsed, and options before a malformed one are kept.
    #[test]
    fn strange_options_do_no_harm(kind in 9u8..=252, data in vec(any::<u8>(), 0..12), bad_len in 0u8..2) {
        let mut bytes = vec![2, 4, 5, 180, kind, data.len() as u8 + 2];
        bytes.extend_from_slice(&data);
        bytes.extend_from_slice(&[3, 3, 7, 4, bad_len, 8, 10]);
        let seen: Vec<_> = raw_options(&bytes).collect();
        let mss = [5, 180];
        let expected =
            [Ok((2, &mss[..])), Ok((kind, &data[..])), Ok((3, &[7][..])), Err(WireError::Option { kind: 4 })];
        prop_assert_eq!(seen, expected);
        let decoded = TcpOptions { mss: Some(1460), window_scale: Some(7), ..TcpOptions::default() };
        prop_assert_eq!(TcpOptions::parse(&bytes), decoded);
    }
}

/// The algorithm of RFC 1071 §1: 16 bits at a time, with end-around carry.
fn reference(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
