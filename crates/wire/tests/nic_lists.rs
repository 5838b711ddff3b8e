//! The list of NICs in ARP and neighbour discovery: its bytes, parsing, and refusals.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use farpace_wire::icmp::{neighbour_nics, solicited_node, solicited_node_mac, with_nics};
use farpace_wire::{
    AddressPair, Arp, ArpOperation, Below, Extension, ExtensionError, Icmp, MAX_LISTED_NICS, MacAddr,
    NeighbourDiscovery, NicFlags, NicKind, NicList, Packet,
};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);

fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n])
}

/// A list of A with two NICs, which contains one NIC of B.
fn example(owner: impl Into<IpAddr>) -> Extension {
    let nics = [(mac(0x11), NicKind(3)), (mac(0x12), NicKind(2))];
    let flags = NicFlags::ANSWERS_PROBES.with(NicFlags(0x80));
    let targets = [(mac(0x21), NicKind(6))].into_iter().collect();
    Extension { targets, ..Extension::new(owner.into(), &nics, flags, 0x1234) }
}

/// A list with a valid CRC.
fn sealed(mut list: Vec<u8>) -> Vec<u8> {
    let crc_at = list.len() - 4;
    let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&list[..crc_at]);
    list[crc_at..].copy_from_slice(&crc.to_be_bytes());
    list
}

/// Breaks: lists have the documented bytes, so that other versions of farpace understand them.
#[test]
fn the_bytes_of_an_extended_request() {
    let bytes = Arp::request(mac(0x11), A, B).encode_with(&example(A));
    let mut expected =
        vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 0x11, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2];
    expected.resize(46, 0);
    expected.extend_from_slice(&[2, 1, 10, 0, 0, 1, 3]); // counts, owner, kind of the first sender
    expected.extend_from_slice(&[2, 0, 0, 0, 0, 0x12, 2]); // the other sender
    expected.extend_from_slice(&[2, 0, 0, 0, 0, 0x21, 6]); // the target
    expected.extend_from_slice(&[0xe5, 0xa1, 1, 0x81, 0x12, 0x34, 0, 33]);
    expected.extend_from_slice(&CRC.to_be_bytes());
    assert_eq!(bytes, expected);
    assert_eq!(Extension::parse_arp(&bytes), Ok(Some(example(A))));
    assert_eq!(
        Arp::parse(&bytes),
        Ok(Arp::request(mac(0x11), A, B)),
        "an ordinary host sees an ordinary request"
    );
}

/// The CRC of the request above, computed by another implementation.
const CRC: u32 = 0x9b36_1ff9;

proptest! {
    /// Breaks: a list is encoded and parsed without change, whatever surrounds it.
    #[test]
    fn encoded_lists_parse_to_the_same_values(
        n_s in 1..=MAX_LISTED_NICS, n_t in 0..=MAX_LISTED_NICS, kinds: [u8; 32], flags: u8, generation: u16, v6: bool,
        reply: bool, trailing in vec(any::<u8>(), 0..20),
    ) {
        let nic = |at: usize| (mac(at as u8), NicKind(kinds[at]));
        let senders: NicList = (0..n_s).map(nic).collect();
        let owner = if v6 { IpAddr::from(A6) } else { A.into() };
        let list = Extension {
            owner, targets: (MAX_LISTED_NICS..MAX_LISTED_NICS + n_t).map(nic).collect(),
            senders, flags: NicFlags(flags), generation,
        };
        let mut bytes = list.encode();
        let len = bytes.len();
        bytes.extend_from_slice(&trailing);
        let read = Extension::parse(owner, mac(0), &bytes).unwrap().unwrap();
        prop_assert_eq!(&read, &list);
        prop_assert_eq!(read.encode(), &bytes[..len]);
        prop_assert_eq!(list.encode_option().len() % 8, 0);
        prop_assert_eq!(usize::from(list.encode_option()[1]) * 8, list.encode_option().len());
        if !v6 {
            let request = Arp::request(mac(0), A, B);
            let arp = if reply { Arp { operation: ArpOperation::Reply, ..request } } else { request };
            prop_assert_eq!(Extension::parse_arp(&arp.encode_with(&list)), Ok(Some(list)));
        }
    }

    /// Breaks: no frame causes a panic, and only lists with the documented encoding are accepted.
    #[test]
    fn any_bytes_are_safe(mut bytes in vec(any::<u8>(), 0..300), n_s in 0u8..20, n_t in 0u8..20, own: bool) {
        // Often bytes that begin like a list.
        if own && bytes.len() > 52 {
            bytes[46] = n_s;
            bytes[47] = n_t;
            bytes.copy_within(14..18, 48);
        }
        if let Ok(Some(list)) = Extension::parse_arp(&bytes) {
            let encoded = list.encode();
            prop_assert_eq!(&bytes[Extension::ARP_AT..][..encoded.len()], encoded);
        }
    }

    /// Breaks: a single bit error in a list is detected.
    #[test]
    fn one_wrong_bit_is_found(bit in 0usize..33 * 8) {
        let mut bytes = example(A).encode();
        bytes[bit / 8] ^= 0x80 >> (bit % 8);
        prop_assert!(Extension::parse(A.into(), mac(0x11), &bytes).is_err());
    }
}

/// Breaks: padding and probes (RFC 5227) of ordinary hosts are not mistaken for lists, and not counted as
/// refusals.
#[test]
fn ordinary_arp_has_no_list() {
    let request = Arp::request(mac(0x11), A, B);
    let probe = Arp::request(mac(0x11), Ipv4Addr::UNSPECIFIED, B);
    for arp in [request, request.reply(mac(0x21)), probe] {
        for (len, fill) in [(28, 0), (46, 0), (46, 0xff), (64, 0), (300, 0), (300, 0xff), (300, 0x55)] {
            let mut bytes = arp.encode().to_vec();
            bytes.resize(len, fill);
            assert_eq!(Extension::parse_arp(&bytes), Ok(None), "{arp:?} {len} {fill}");
        }
    }
    assert_eq!(Extension::parse_arp(&[0; 17]), Ok(None));
}

/// Breaks: a malformed, truncated or forged list is refused.
#[test]
fn every_rule_has_its_refusal() {
    let request = Arp::request(mac(0x11), A, B);
    let good = example(A).encode();
    assert_eq!(sealed(good.clone()), good);
    let with = |at: usize, bytes: &[u8]| {
        let mut list = good.clone();
        list[at..at + bytes.len()].copy_from_slice(bytes);
        sealed(list)
    };
    let counted = |n_s: u8, n_t: u8| {
        let mut list = vec![n_s, n_t, 10, 0, 0, 1, 3];
        let others = (1..n_s).chain(0..n_t).enumerate();
        list.extend(others.flat_map(|(at, _)| [2, 1, 1, 1, (at >> 8) as u8, at as u8, 3]));
        let len = (list.len() + 12) as u16;
        list.extend_from_slice(&[0xe5, 0xa1, 1, 0, 0, 0, (len >> 8) as u8, len as u8, 0, 0, 0, 0]);
        sealed(list)
    };
    let mut wrong_crc = good.clone();
    wrong_crc[32] ^= 1;
    let table = [
        ("no NICs", counted(0, 0), ExtensionError::NoNics),
        ("17 NICs", counted(17, 0), ExtensionError::TooManyNics),
        ("17 targets", counted(1, 17), ExtensionError::TooManyNics),
        ("200 NICs", counted(200, 0), ExtensionError::TooManyNics),
        ("200 NICs and as many targets", counted(200, 200), ExtensionError::TooManyNics),
        ("200 NICs that are missing", with(0, &[200]), ExtensionError::TooManyNics),
        ("more NICs than present", with(0, &[3]), ExtensionError::Truncated),
        ("fewer NICs than present", with(0, &[1]), ExtensionError::Magic),
        ("no magic number", with(21, &[0xe5, 0xa2]), ExtensionError::Magic),
        ("version 0", with(23, &[0]), ExtensionError::Version),
        ("version 2", with(23, &[2]), ExtensionError::Version),
        ("too short", with(27, &[0, 32]), ExtensionError::Length),
        ("longer than the frame", with(27, &[0xff, 0xff]), ExtensionError::Length),
        ("wrong CRC", wrong_crc, ExtensionError::Checksum),
        ("the list of another host", with(2, &[10, 0, 0, 9]), ExtensionError::Owner),
        ("a multicast address of a NIC", with(7, &[3]), ExtensionError::GroupMac),
        ("the broadcast address of a NIC", with(7, &[0xff; 6]), ExtensionError::GroupMac),
        ("the zero address of a NIC", with(7, &[0; 6]), ExtensionError::GroupMac),
        ("a multicast address of a target", with(14, &[1]), ExtensionError::GroupMac),
        ("the first NIC again", with(7, &mac(0x11).0), ExtensionError::RepeatedMac),
        ("a sender as a target", with(14, &mac(0x12).0), ExtensionError::RepeatedMac),
    ];
    for (what, list, refusal) in table {
        let mut bytes = request.encode().to_vec();
        bytes.resize(Extension::ARP_AT, 0);
        bytes.extend_from_slice(&list);
        assert_eq!(Extension::parse_arp(&bytes), Err(refusal), "{what}");
    }
    assert!(
        Extension::parse_arp(&request.encode_with(&Extension::new(
            A.into(),
            &many(),
            NicFlags::default(),
            0
        )))
        .is_ok()
    );
    // The ARP packet itself.
    let whole = request.encode_with(&example(A));
    let arp_with = |at: usize, bytes: &[u8]| {
        let mut arp = whole.clone();
        arp[at..at + bytes.len()].copy_from_slice(bytes);
        Extension::parse_arp(&arp)
    };
    for (at, byte) in [(1, 6), (2, 0x86), (4, 8), (5, 16)] {
        assert_eq!(arp_with(at, &[byte]), Err(ExtensionError::ForeignArp), "byte {at}");
    }
    for operation in [0, 3, 8] {
        assert_eq!(arp_with(7, &[operation]), Err(ExtensionError::Operation));
    }
    assert_eq!(arp_with(14, &[10, 0, 0, 7]), Err(ExtensionError::Owner), "the sender is not the owner");
    assert_eq!(arp_with(8, &[1]), Err(ExtensionError::GroupMac), "the first NIC has a multicast address");
    for group in
        [Ipv4Addr::new(224, 0, 0, 1), Ipv4Addr::BROADCAST, Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED]
    {
        let bytes = Arp::request(mac(0x11), group, B).encode_with(&example(group));
        assert_eq!(Extension::parse_arp(&bytes), Err(ExtensionError::Owner), "{group}");
    }
}

fn many() -> Vec<(MacAddr, NicKind)> {
    (0x11..0x11 + 16).map(|n| (mac(n), NicKind(3))).collect()
}

/// Breaks: a truncated list is refused.
#[test]
fn every_truncation_is_refused_or_ordinary() {
    let whole = Arp::request(mac(0x11), A, B).encode_with(&example(A));
    for len in 0..whole.len() {
        let expected = if len < Extension::ARP_AT + 6 { Ok(None) } else { Err(ExtensionError::Truncated) };
        assert_eq!(Extension::parse_arp(&whole[..len]), expected, "{len} bytes");
    }
}

fn solicitation() -> Packet {
    let message =
        Icmp::Neighbour(NeighbourDiscovery::Solicitation { target: B6, source_link: Some(mac(0x11)) });
    let below = Below::new(mac(0x11), solicited_node_mac(B6), AddressPair::V6(A6, solicited_node(B6)), 255);
    below.icmp(0, &message).unwrap()
}

/// Breaks: a message of neighbour discovery with a list stays valid and unchanged for other hosts.
#[test]
fn neighbour_discovery_carries_the_list() {
    let advertisement = NeighbourDiscovery::Advertisement {
        target: A6,
        target_link: Some(mac(0x11)),
        router: true,
        solicited: true,
        overrides: false,
    };
    let below = Below::new(mac(0x11), mac(0x21), AddressPair::V6(A6, B6), 255);
    for plain in [solicitation(), below.icmp(0, &Icmp::Neighbour(advertisement)).unwrap()] {
        assert_eq!(neighbour_nics(&plain), Ok(None));
        let extended = with_nics(&plain, mac(0x11), Some(&example(A6))).unwrap();
        extended.verify_checksums().unwrap();
        assert_eq!(extended.icmp(), plain.icmp(), "the message is the same");
        assert_eq!(neighbour_nics(&extended), Ok(Some(example(A6))));
        let mut frame = Vec::new();
        extended.write_frame(&mut frame);
        assert_eq!(neighbour_nics(&Packet::from_frame(&frame).unwrap()), Ok(Some(example(A6))));
        // Another NIC is the first.
        let moved = with_nics(&plain, mac(0x13), Some(&example(A6))).unwrap();
        let found = neighbour_nics(&moved).unwrap().unwrap();
        assert_eq!(found.senders.first(), Some(&(mac(0x13), NicKind(3))));
    }
    let echo = below.icmp(0, &Icmp::EchoRequest { ident: 1, seq: 1, data: &[] }).unwrap();
    let moved = with_nics(&solicitation(), mac(0x13), None).unwrap();
    assert_eq!((moved.len(), neighbour_nics(&moved)), (solicitation().len(), Ok(None)));
    moved.verify_checksums().unwrap();
    assert!(with_nics(&echo, mac(0x11), Some(&example(A6))).is_none());
}

/// Breaks: lists in neighbour discovery are validated, and options of other experiments are not counted as
/// refusals.
#[test]
fn lists_in_neighbour_discovery_are_validated() {
    let extended = with_nics(&solicitation(), mac(0x11), Some(&example(B6))).unwrap();
    assert_eq!(neighbour_nics(&extended), Err(ExtensionError::Owner), "not the source's list");
    let mut damaged = with_nics(&solicitation(), mac(0x11), Some(&example(A6))).unwrap();
    // The last four bytes are three of the CRC and one of padding.
    let bits = damaged.len().bits();
    damaged.flip_bit(bits - 8 * 4);
    assert_eq!(neighbour_nics(&damaged), Err(ExtensionError::Checksum));

    let mut body = B6.octets().to_vec();
    body.splice(0..0, [0; 4]);
    body.extend_from_slice(&[1, 1, 2, 0, 0, 0, 0, 0x11, 253, 1, 1, 2, 3, 4, 5, 6, 14, 1, 7, 7, 7, 7, 7, 7]);
    let below = Below::new(mac(0x11), mac(0x21), AddressPair::V6(A6, B6), 255);
    let others = below.icmp(0, &Icmp::Other { kind: 135, code: 0, body: &body }).unwrap();
    assert_eq!(neighbour_nics(&others), Ok(None));
    let both = with_nics(&others, mac(0x11), Some(&example(A6))).unwrap();
    assert_eq!(neighbour_nics(&both), Ok(Some(example(A6))));
    assert!(both.payload().windows(8).any(|w| w == [14, 1, 7, 7, 7, 7, 7, 7]), "unknown options stay");
}
