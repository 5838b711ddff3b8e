//! Packets at devices: segmentation, parsing without copies, checksum offload.

mod common;

use bytes::Bytes;
use common::{any_packet, below, header};
use farpace_wire::checksum::checksum;
use farpace_wire::tcp::TcpFlags;
use farpace_wire::udp::UdpHeader;
use farpace_wire::{Checksum, MacAddr, Packet, TcpHeader};
use proptest::collection::vec;
use proptest::prelude::*;

const ETHERNET: usize = 14;

fn frame(packet: &Packet) -> Vec<u8> {
    let mut out = Vec::new();
    packet.write_frame(&mut out);
    out
}

/// The visible properties of a packet, for comparisons.
fn visible(packet: &Packet) -> (Vec<u8>, Bytes, Checksum, usize) {
    let transport = packet.headers().len() - packet.headers_from_ip().len();
    (frame(packet), packet.payload().clone(), packet.checksum(), transport)
}

/// The segments that a sender would have sent without segmentation offload.
fn one_by_one(header: &TcpHeader, payload: &Bytes, size: usize) -> Vec<(TcpHeader, Bytes)> {
    let count = payload.len().div_ceil(size);
    let part = |i: usize| {
        let mut header = header.clone();
        header.seq += (i * size) as u32;
        if i > 0 {
            header.flags = header.flags.without(TcpFlags::CWR);
        }
        if i + 1 < count {
            header.flags = header.flags.without(TcpFlags::PSH | TcpFlags::FIN);
        }
        (header, payload.slice(i * size..payload.len().min((i + 1) * size)))
    };
    (0..count).map(part).collect()
}

proptest! {
    /// Breaks: a split super-segment has the segments that would have been sent without offload: sequence
    /// numbers, flags, lengths, IPv4 identifications and checksums.
    #[test]
    fn a_super_segment_is_split_into_its_segments(
        below in below(),
        ident: u16,
        header in header(),
        payload in vec(any::<u8>(), 2..6_000),
        size in 1u16..1_500,
    ) {
        let payload = Bytes::from(payload);
        let mut whole = below.tcp(ident, &header, payload.clone());
        whole.set_segment_size(size);
        let expected = match whole.segment_size() {
            Some(size) => one_by_one(&header, &payload, usize::from(size)),
            None => vec![(header, payload)],
        };
        prop_assert_eq!(whole.segments(), expected.len());
        let mut parts = Vec::new();
        whole.split_segments(|part| parts.push(part));
        prop_assert_eq!(parts.len(), expected.len());
        for (i, (part, (header, payload))) in parts.iter_mut().zip(expected).enumerate() {
            let alone = below.tcp(ident.wrapping_add(i as u16), &header, payload);
            prop_assert_eq!(part.segment_size(), None);
            prop_assert!(frame(part) == frame(&alone), "part {}", i);
            part.complete_checksum();
            prop_assert_eq!(part.verify_checksums(), Ok(()));
        }
    }

    /// Breaks: a super-segment of datagrams (USO) is split into those that were sent: lengths, IPv4
    /// identifications, checksums and boundaries.
    #[test]
    fn a_super_segment_is_split_into_its_datagrams(
        below in below(),
        ident: u16,
        ports: (u16, u16),
        payload in vec(any::<u8>(), 2..6_000),
        size in 1u16..1_500,
    ) {
        let payload = Bytes::from(payload);
        let header = UdpHeader { src_port: ports.0, dst_port: ports.1 };
        let mut whole = below.udp(ident, header, payload.clone()).unwrap();
        whole.set_segment_size(size);
        let size = if whole.segment_size().is_some() { usize::from(size) } else { payload.len() };
        let mut parts = Vec::new();
        whole.split_segments(|part| parts.push(part));
        prop_assert_eq!(parts.len(), payload.len().div_ceil(size));
        for (i, part) in parts.iter_mut().enumerate() {
            let piece = payload.slice(i * size..payload.len().min((i + 1) * size));
            let alone = below.udp(ident.wrapping_add(i as u16), header, piece).unwrap();
            prop_assert!(frame(part) == frame(&alone), "part {}", i);
            prop_assert_eq!(part.segment_size(), None);
            part.detach_payload();
            part.complete_checksum();
            prop_assert_eq!(part.verify_checksums(), Ok(()));
        }
    }

    /// Breaks: splitting leaves packets that are not super-segments unchanged.
    #[test]
    fn ordinary_packets_are_not_split(packet in any_packet(), size: u16) {
        let mut parts = Vec::new();
        packet.clone().split_segments(|part| parts.push(part));
        prop_assert_eq!(parts.len(), 1);
        prop_assert_eq!(frame(&parts[0]), frame(&packet));
        // Whatever the segment size, the parts are ordinary packets.
        let mut marked = packet.clone();
        marked.set_segment_size(size);
        marked.split_segments(|part| assert_eq!(part.segment_size(), None));
    }

    /// Breaks: parsing without a copy yields the same packet or error as parsing with one.
    #[test]
    fn shared_bytes_are_parsed_like_copied_ones(
        packet in any_packet(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        end in any::<prop::sample::Index>(),
        trailing in 0usize..20,
        whole in any::<bool>(),
    ) {
        let mut bytes = frame(&packet);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        match whole {
            true => bytes.resize(bytes.len() + trailing, 0),
            false => bytes.truncate(end.index(bytes.len() + 1)),
        }
        let copied = Packet::from_frame(&bytes);
        let shared = Packet::from_shared_frame(Bytes::from(bytes.clone()));
        prop_assert_eq!(copied.as_ref().map(visible), shared.as_ref().map(visible));
        let (Some(below), Some(ip)) = (bytes.get(..ETHERNET), bytes.get(ETHERNET..)) else { return Ok(()) };
        let untagged = below[12..14] == [8, 0] || below[12..14] == [0x86, 0xdd];
        if !untagged {
            return Ok(());
        }
        let mac = |at: usize| MacAddr([0, 1, 2, 3, 4, 5].map(|i| below[at + i]));
        let bare = Packet::from_shared_ip(mac(6), mac(0), Bytes::copy_from_slice(ip));
        // The version in the first byte may contradict the EtherType.
        let agrees = ip.first().is_some_and(|b| b >> 4 == if below[12] == 8 { 4 } else { 6 });
        if agrees {
            prop_assert_eq!(copied.as_ref().map(visible), bare.as_ref().map(visible));
            if let Ok(packet) = &bare {
                prop_assert_eq!(packet.headers_from_ip(), &ip[..packet.headers_from_ip().len()]);
                prop_assert!(packet.has_ip());
            }
        }
    }

    /// Breaks: no bytes from a device cause a panic.
    #[test]
    fn any_bytes_are_parsed(bytes in vec(any::<u8>(), 0..120), first in prop_oneof![Just(0x45u8), Just(0x60), any::<u8>()], size: u16) {
        let mut bytes = bytes;
        if let Some(byte) = bytes.first_mut() {
            *byte = first;
        }
        let shared = Bytes::from(bytes);
        let packets = [
            Packet::from_shared_ip(MacAddr([2; 6]), MacAddr([4; 6]), shared.clone()),
            Packet::from_shared_frame(shared),
        ];
        for mut packet in packets.into_iter().flatten() {
            packet.trust_checksum();
            packet.set_segment_size(size);
            let (segments, mut parts) = (packet.segments(), 0);
            let is_tcp = packet.tcp().is_ok();
            _ = packet.clone().partial_sum();
            packet.split_segments(|_| parts += 1);
            prop_assert_eq!(parts, if is_tcp { segments } else { 1 });
        }
    }

    /// Breaks: a device completes an offloaded checksum to the same value that software computes.
    #[test]
    fn a_device_completes_the_checksum(packet in any_packet()) {
        let mut ours = packet.clone();
        ours.complete_checksum();
        let mut theirs = packet.clone();
        match theirs.partial_sum() {
            None => prop_assert!(packet.checksum() == Checksum::Complete, "there is nothing to offload"),
            Some(sum) => {
                let mut bytes = theirs.headers().to_vec();
                bytes.extend_from_slice(theirs.payload());
                let (start, at) = (usize::from(sum.start), usize::from(sum.start + sum.offset));
                let is_udp = packet.udp().is_ok();
                let completed = match checksum(&bytes[start..]) {
                    0 if is_udp => 0xffff, // RFC 768: zero means no checksum
                    sum => sum,
                };
                bytes[at..at + 2].copy_from_slice(&completed.to_be_bytes());
                prop_assert_eq!(bytes, frame(&ours));
            }
        }
    }

    /// Breaks: a packet whose checksum a device has verified is accepted, and sent with a valid checksum.
    #[test]
    fn a_trusted_checksum_is_computed_again(packet in any_packet()) {
        let mut right = packet.clone();
        right.complete_checksum();
        let mut sent = packet.clone();
        if sent.partial_sum().is_none() {
            return Ok(());
        }
        // As a device passes it up: with the sum of the pseudo header in the field.
        let mut bytes = sent.headers().to_vec();
        bytes.extend_from_slice(sent.payload());
        let mut received = Packet::from_shared_frame(Bytes::from(bytes)).expect("our own packet");
        received.trust_checksum();
        prop_assert_eq!(received.checksum(), Checksum::Partial);
        prop_assert_eq!(received.verify_checksums(), Ok(()));
        prop_assert_eq!(frame(&received), frame(&right));
    }
}
