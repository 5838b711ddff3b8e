use super::*;
use bytes::Bytes;
use farpace_wire::{AddressPair, Below, MacAddr, TcpHeader, UdpHeader, fragment};
use proptest::prelude::*;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Span::from_millis(millis)
}

fn below(v6: bool, tos: u8) -> Below {
    let addresses = match v6 {
        true => AddressPair::V6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap()),
        false => AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()),
    };
    Below { tos, ..Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 9) }
}

fn datagram(v6: bool, ident: u16, len: usize) -> Packet {
    let payload = Bytes::from_iter((0..len).map(|n| (n * 7 + usize::from(ident)) as u8));
    below(v6, 2).udp(ident, UdpHeader { src_port: 1, dst_port: 2 }, payload).unwrap()
}

fn frame(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame
}

/// An IPv4 fragment with any bytes.
fn raw(offset: usize, more: bool, data: &[u8], protocol: u8) -> Packet {
    let ip = farpace_wire::Ipv4Header {
        tos: 0,
        ident: 7,
        dont_fragment: false,
        more_fragments: more,
        fragment_offset: (offset / 8) as u16,
        ttl: 9,
        protocol,
        src: [10, 0, 0, 1].into(),
        dst: [10, 0, 0, 2].into(),
        options: &[],
    };
    let mut header = [0; 60];
    let len = ip.encode(data.len(), &mut header).unwrap();
    let mut bytes = vec![2; 12];
    bytes.extend_from_slice(&[8, 0]);
    bytes.extend_from_slice(&header[..len]);
    bytes.extend_from_slice(data);
    Packet::from_frame(&bytes).unwrap()
}

/// What became of fragments that come one after the other: the reason for each that is dropped.
fn reasons(
    parts: impl IntoIterator<Item = Packet>,
) -> (Vec<FragmentDrop>, FragmentReassembly, Option<Whole>) {
    let (mut reassembly, mut dropped, mut whole) = (FragmentReassembly::default(), Vec::new(), None);
    for part in parts {
        whole = reassembly.on_fragment(at(0), part, &mut dropped).or(whole);
    }
    (dropped.into_iter().map(|(_, why)| why).collect(), reassembly, whole)
}

proptest! {
    /// Breaks: datagrams larger than a link get lost or come out changed, whatever the order of their
    /// fragments, and with some of them twice.
    #[test]
    fn any_order_gives_the_datagram(
        v6 in any::<bool>(), len in 2000usize..9000, mtu in 576usize..1500, seed in any::<u64>(), twice in any::<u64>(),
    ) {
        let original = datagram(v6, 3, len);
        let mut parts = fragment(original.clone(), mtu, 3).unwrap();
        let count = parts.len();
        let repeated: Vec<_> = parts.iter().enumerate().filter(|(n, _)| twice >> n & 1 == 1).map(|(_, p)| p.clone()).collect();
        // The last one comes once: what comes after completion would begin a new datagram.
        let last = parts.swap_remove(seed as usize % count);
        let mut order: Vec<_> = parts.into_iter().chain(repeated).filter(|p| frame(p) != frame(&last)).collect();
        let mut rng = farpace_units::RandomStream::new(seed, "order");
        for n in (1..order.len()).rev() {
            order.swap(n, rng.below(n as u64 + 1) as usize);
        }
        let duplicates = order.len() + 1 - count;
        let (dropped, reassembly, whole) = reasons(order.into_iter().chain([last]));
        let whole = whole.expect("whole");
        prop_assert_eq!(frame(&whole.packet), frame(&original));
        prop_assert_eq!(whole.packet.verify_checksums(), Ok(()));
        prop_assert_eq!(whole.parts.len(), count);
        prop_assert_eq!(dropped, vec![FragmentDrop::Duplicate; duplicates]);
        prop_assert_eq!((reassembly.held(), reassembly.cost, reassembly.deadline()), (0, 0, None));
    }

    /// Breaks: fragments that are lost without a trace, kept for ever, or more than the limits; a crash.
    #[test]
    fn any_fragments_are_accounted_for(
        parts in prop::collection::vec((0usize..20, any::<bool>(), 0usize..40, 0u8..2, 0u64..20_000), 0..60),
    ) {
        let (mut reassembly, mut dropped, mut parts_of_whole) = (FragmentReassembly::default(), Vec::new(), 0);
        let (mut now, mut in_) = (at(0), 0);
        for (offset, more, len, protocol, wait) in parts {
            if offset == 0 && !more {
                continue; // no fragment
            }
            in_ += 1;
            let part = raw(offset * 8, more, &vec![1; len], if protocol == 0 { 6 } else { 99 });
            if let Some(whole) = reassembly.on_fragment(now, part, &mut dropped) {
                parts_of_whole += whole.parts.len();
            }
            prop_assert_eq!(in_, dropped.len() + parts_of_whole + reassembly.held() as usize);
            now += Span::from_millis(wait);
            while let Some(deadline) = reassembly.deadline().filter(|d| *d <= now) {
                reassembly.on_deadline(deadline, &mut dropped);
                prop_assert!(reassembly.deadline().is_none_or(|next| next > deadline));
            }
        }
        reassembly.on_deadline(now + REASSEMBLY_TIME, &mut dropped);
        prop_assert_eq!((reassembly.held(), reassembly.cost, reassembly.deadline()), (0, 0, None));
        prop_assert_eq!(in_, dropped.len() + parts_of_whole);
        let counted: u64 = FragmentDrop::ALL.iter().map(|why| reassembly.dropped(*why)).sum();
        prop_assert_eq!(counted as usize, dropped.len());
    }
}

/// Breaks: the defence against overlapping fragments (teardrop, and rewriting of headers): each of these
/// datagrams goes as a whole, and its other fragments too.
#[test]
fn fragments_that_contradict_each_other() {
    use FragmentDrop::{Duplicate, Overlap};
    let a = |offset, more, len| raw(offset, more, &vec![1; len], 99);
    for second in [
        raw(0, true, &[2; 64], 99), // Other bytes at the same place.
        a(0, true, 48),
        a(0, true, 72),
        a(56, true, 16),
        a(8, false, 8),
        a(0, true, 8),
    ] {
        let (dropped, mut reassembly, whole) = reasons([a(0, true, 64), second]);
        assert_eq!((dropped, whole.is_none(), reassembly.held()), (vec![Overlap, Overlap], true, 0));
        let mut late = Vec::new();
        assert!(reassembly.on_fragment(at(1), a(64, false, 8), &mut late).is_none());
        assert_eq!((late[0].1, reassembly.held()), (Overlap, 0));
        // Later the same identification may be used again.
        reassembly.on_deadline(at(30_000), &mut late);
        assert!(reassembly.on_fragment(at(30_000), a(0, true, 64), &mut late).is_none());
        assert!(reassembly.on_fragment(at(30_000), a(64, false, 8), &mut late).is_some());
    }
    // Two ends, something beyond the end, an end in the middle.
    assert_eq!(reasons([a(64, false, 8), a(128, false, 8)]).0, [Overlap; 2]);
    assert_eq!(reasons([a(64, false, 8), a(72, true, 8)]).0, [Overlap; 2]);
    assert_eq!(reasons([a(128, true, 8), a(64, false, 8)]).0, [Overlap; 2]);
    assert_eq!(reasons([a(64, false, 8), a(48, false, 8)]).0, [Overlap; 2]);
    // The same once more is harmless.
    let (dropped, reassembly, _) = reasons([a(64, false, 8), a(64, false, 8)]);
    assert_eq!((dropped, reassembly.held()), (vec![Duplicate], 1));
}

/// Breaks: the ping of death, tiny fragments that hide a TCP header from filters, and empty ones that never
/// end.
#[test]
fn fragments_that_no_honest_sender_makes() {
    use FragmentDrop::{Malformed, Tiny, TooLong};
    let one = |offset, more, len, protocol| reasons([raw(offset, more, &vec![1; len], protocol)]).0;
    assert_eq!(one(65_528, false, 8, 1), [TooLong]);
    assert_eq!(one(65_504, false, 12, 1), [TooLong]);
    assert_eq!(one(65_504, false, 11, 1), []);
    assert_eq!(one(8, true, 12, 99), [Malformed]);
    assert_eq!(one(8, true, 0, 99), [Malformed]);
    assert_eq!(one(8, false, 0, 99), [Malformed]);
    assert_eq!(one(0, true, 16, 6), [Tiny]);
    assert_eq!(one(8, true, 64, 6), [Tiny]);
    assert_eq!(one(16, true, 64, 6), [Tiny]);
    assert_eq!(one(0, true, 24, 6), []);
    assert_eq!(one(24, true, 64, 6), []);
    assert_eq!(reasons([datagram(false, 1, 10)]).0, [Malformed], "not a fragment");
    // Put together it is no TCP segment.
    let (dropped, reassembly, whole) = reasons([raw(0, true, &[0; 24], 6), raw(24, false, &[0; 8], 6)]);
    assert_eq!((dropped, whole.is_none(), reassembly.cost), (vec![Malformed; 2], true, 0));
    let segment = below(false, 0).tcp(1, &TcpHeader::default(), vec![1; 100].into());
    assert!(reasons(fragment(segment, 68, 0).unwrap()).2.is_some());
}

/// Breaks: bounded memory, whatever comes: datagrams, fragments in one, bytes.
#[test]
fn limits() {
    let mut reassembly = FragmentReassembly::default();
    let mut dropped = Vec::new();
    for ident in 0..2000u16 {
        let first = fragment(datagram(false, ident, 2000), 1500, 0).unwrap().swap_remove(0);
        assert!(reassembly.on_fragment(at(ident.into()), first, &mut dropped).is_none());
    }
    assert_eq!(reassembly.datagrams.len(), MAX_DATAGRAMS);
    assert_eq!(reassembly.dropped(FragmentDrop::Evicted), 2000 - MAX_DATAGRAMS as u64);
    // The newest is still there.
    let last = fragment(datagram(false, 1999, 2000), 1500, 0).unwrap().swap_remove(1);
    assert!(reassembly.on_fragment(at(2000), last, &mut dropped).is_some());

    let many = (0..MAX_FRAGMENTS + 1).map(|n| raw(n * 16, true, &[1; 8], 99));
    let (dropped, reassembly, _) = reasons(many);
    assert_eq!((dropped, reassembly.held()), (vec![FragmentDrop::TooMany; MAX_FRAGMENTS + 1], 0));

    let mut reassembly = FragmentReassembly::default();
    let mut dropped = Vec::new();
    for ident in 0..200 {
        for part in fragment(datagram(true, ident, 60_000), 1500, ident.into()).unwrap().into_iter().skip(1) {
            reassembly.on_fragment(at(0), part, &mut dropped);
            assert!(reassembly.cost <= MAX_FRAGMENT_BYTES);
        }
    }
    assert!(reassembly.dropped(FragmentDrop::Evicted) > 1000);
}

/// Breaks: fragments of datagrams that never come together stay for ever; or their sender cannot be told.
#[test]
fn time_is_limited() {
    let mut reassembly = FragmentReassembly::default();
    let mut dropped = Vec::new();
    let mut parts = fragment(datagram(false, 1, 4000), 1500, 0).unwrap();
    let first = parts.swap_remove(0);
    reassembly.on_fragment(at(100), parts.swap_remove(0), &mut dropped);
    reassembly.on_fragment(at(20_000), first.clone(), &mut dropped);
    assert_eq!(reassembly.deadline(), Some(at(30_100)), "from the first that came");
    reassembly.on_deadline(at(30_099), &mut dropped);
    assert_eq!((dropped.len(), reassembly.held()), (0, 2));
    reassembly.on_deadline(at(30_100), &mut dropped);
    assert_eq!((dropped.len(), dropped[0].1), (2, FragmentDrop::Expired));
    assert_eq!(frame(&dropped[0].0), frame(&first), "for ICMP");
    assert_eq!(reassembly.deadline(), None);
}

/// Breaks: congestion marks on fragments are lost (RFC 3168 §5.3).
#[test]
fn marks_of_fragments_add_up() {
    let cut = |tos: u8| {
        let udp = below(false, tos).udp(1, UdpHeader::default(), vec![1; 2000].into()).unwrap();
        fragment(udp, 1500, 0).unwrap()
    };
    let mut capable = cut(2);
    assert!(capable[1].mark_ce());
    let whole = reasons(capable).2.unwrap().packet;
    assert_eq!((whole.ip().unwrap().ecn(), whole.verify_checksums()), (Ecn::Ce, Ok(())));
    let mut mixed = cut(0);
    mixed[1].set_ecn(Ecn::Ce);
    assert_eq!(reasons(mixed).0, [FragmentDrop::EcnMix; 2]);
    assert_eq!(reasons(cut(1)).2.unwrap().packet.ip().unwrap().ecn(), Ecn::Ect1);
}
