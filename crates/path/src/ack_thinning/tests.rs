use super::*;
use crate::Element;
use crate::harness::{Harness, ident};
use bytes::Bytes;
use farpace_wire::tcp::SackBlock;
use farpace_wire::{Below, MacAddr, TcpHeader, TcpOptions};
use proptest::prelude::*;

const HOLD: Span = Span::from_millis(5);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Pure(u32),
    Sack(u32),
    Data(u32),
    Flags(TcpFlags, u32),
}
use Kind::{Data, Flags, Pure, Sack};

fn packet(n: u16, port: u16, kind: Kind) -> Packet {
    let (flags, ack, payload, sack) = match kind {
        Pure(ack) => (TcpFlags::ACK, ack, 0, false),
        Sack(ack) => (TcpFlags::ACK, ack, 0, true),
        Data(ack) => (TcpFlags::ACK, ack, 100, false),
        Flags(flags, ack) => (flags, ack, 0, false),
    };
    let mut options = TcpOptions::default();
    if sack {
        options.sack.push(SackBlock { start: Seq::new(ack) + 10, end: Seq::new(ack) + 20 });
    }
    let header = TcpHeader {
        src_port: port,
        dst_port: 80,
        flags,
        ack: Seq::new(ack),
        options,
        ..TcpHeader::default()
    };
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 1, 2].into());
    let below = Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64);
    below.tcp(n, &header, Bytes::from(vec![0; payload]))
}

/// Packets at their times in ms, numbered from 0. Returns which left, and when.
fn through(every: u32, packets: &[(u64, Kind)]) -> Vec<(u64, u16)> {
    let direction = AckThinningDirection::new(every, HOLD);
    let mut harness = Harness::new(AckThinning::new(direction.clone(), direction));
    for (n, (ms, kind)) in packets.iter().enumerate() {
        harness.packet(Instant::ZERO + Span::from_millis(*ms), Port(0), packet(n as u16, 7, *kind));
    }
    harness.run();
    assert_eq!(harness.dropped.len() as u64, harness.element.direction(Port(0)).thinned());
    assert!(harness.dropped.iter().all(|(_, why)| *why == DropReason::AckThinned));
    harness.emitted.iter().map(|(at, _, p)| (at.as_micros() / 1_000, ident(p))).collect()
}

/// `every`, the packets that arrive and when, the packets that leave and when.
type Row<'a> = (u32, &'a [(u64, Kind)], &'a [(u64, u16)]);

/// Breaks: which ACKs go on and when; or other segments wait, are dropped, or overtake the ACK before them.
#[test]
fn the_newest_of_several_goes_on() {
    let table: &[Row<'_>] = &[
        // The first does not wait: it is unknown whether it advances. Then each third goes on.
        (
            3,
            &[
                (0, Pure(1)),
                (1, Pure(2)),
                (1, Pure(3)),
                (1, Pure(4)),
                (2, Pure(5)),
                (2, Pure(6)),
                (3, Pure(7)),
            ],
            &[(0, 0), (1, 3), (3, 6)],
        ),
        // The hold counts from the first that waits.
        (3, &[(0, Pure(1)), (1, Pure(2)), (5, Pure(3)), (7, Pure(4))], &[(0, 0), (6, 2), (12, 3)]),
        // Another ACK comes at the deadline: the wake is first.
        (3, &[(0, Pure(1)), (1, Pure(2)), (6, Pure(3))], &[(0, 0), (6, 1), (11, 2)]),
        // Duplicate and old ACKs, SACK and data go at once, after the ACK that waits.
        (9, &[(0, Pure(5)), (1, Pure(6)), (2, Pure(6)), (2, Pure(6))], &[(0, 0), (2, 1), (2, 2), (2, 3)]),
        (9, &[(0, Pure(5)), (1, Pure(6)), (2, Pure(4))], &[(0, 0), (2, 1), (2, 2)]),
        (
            9,
            &[(0, Pure(5)), (1, Pure(6)), (2, Sack(7)), (2, Pure(7)), (3, Pure(8))],
            &[(0, 0), (2, 1), (2, 2), (2, 3), (8, 4)],
        ),
        (9, &[(0, Pure(5)), (1, Pure(6)), (2, Data(7)), (2, Pure(7))], &[(0, 0), (2, 1), (2, 2), (2, 3)]),
        (
            9,
            &[(0, Pure(5)), (1, Pure(6)), (2, Flags(TcpFlags::ACK | TcpFlags::URG, 7))],
            &[(0, 0), (2, 1), (2, 2)],
        ),
        // Without ACK the number has no meaning.
        (
            9,
            &[(0, Pure(5)), (1, Pure(6)), (2, Flags(TcpFlags::PSH, 9)), (2, Pure(7))],
            &[(0, 0), (2, 1), (2, 2), (7, 3)],
        ),
        // FIN, RST and SYN end the state: the next ACK is a first one.
        (
            9,
            &[(0, Pure(5)), (1, Pure(6)), (2, Flags(TcpFlags::ACK | TcpFlags::FIN, 7)), (3, Pure(8))],
            &[(0, 0), (2, 1), (2, 2), (3, 3)],
        ),
        (
            9,
            &[(0, Pure(5)), (1, Pure(6)), (2, Flags(TcpFlags::RST, 0)), (3, Pure(8))],
            &[(0, 0), (2, 1), (2, 2), (3, 3)],
        ),
        (
            9,
            &[(0, Pure(5)), (1, Flags(TcpFlags::ACK | TcpFlags::SYN, 7)), (3, Pure(8))],
            &[(0, 0), (1, 1), (3, 2)],
        ),
        // Numbers wrap around.
        (2, &[(0, Pure(u32::MAX)), (1, Pure(3)), (1, Pure(9))], &[(0, 0), (1, 2)]),
        // One of one: nothing is thinned.
        (1, &[(0, Pure(1)), (1, Pure(2)), (1, Pure(3))], &[(0, 0), (1, 1), (1, 2)]),
    ];
    for (every, packets, expected) in table {
        assert_eq!(through(*every, packets), *expected, "{every}: {packets:?}");
    }
}

/// Breaks: ACKs of one connection or direction replace those of another.
#[test]
fn connections_are_apart() {
    let direction = AckThinningDirection::new(3, HOLD);
    let mut harness = Harness::new(AckThinning::new(direction.clone(), direction));
    for ack in 1..=3 {
        for port in [1, 2] {
            harness.packet(Instant::ZERO, Port(0), packet((10 * port + ack) as u16, port as u16, Pure(ack)));
        }
        harness.packet(Instant::ZERO, Port(1), packet(30 + ack as u16, 1, Pure(ack)));
    }
    assert_eq!(harness.element.held(), 3);
    harness.run();
    assert_eq!((harness.idents(Port(1)), harness.idents(Port(0))), (vec![11, 21, 13, 23], vec![31, 33]));
}

/// Breaks: an unlimited number of connections takes unlimited memory, or those beyond the limit lose ACKs.
#[test]
fn memory_is_bounded() {
    let mut harness = Harness::new(AckThinning::new(
        AckThinningDirection::new(9, HOLD),
        AckThinningDirection::new(9, HOLD),
    ));
    for ack in 1..=3 {
        for port in 1..=AckThinningDirection::MAX as u16 + 1 {
            harness.packet(Instant::ZERO, Port(0), packet(port, port, Pure(ack)));
        }
    }
    let max = AckThinningDirection::MAX as u64;
    assert_eq!((harness.element.held(), harness.dropped.len() as u64), (max, max));
    let beyond = harness.emitted.iter().filter(|(_, _, p)| ident(p) == max as u16 + 1);
    assert_eq!(beyond.count(), 3);
    // A connection that ends frees its entry.
    harness.packet(Instant::ZERO, Port(0), packet(1, 1, Flags(TcpFlags::RST, 0)));
    for ack in 4..=5 {
        harness.packet(Instant::ZERO, Port(0), packet(0, max as u16 + 1, Pure(ack)));
    }
    assert_eq!(harness.element.held(), max);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Breaks: an ACK waits too long or forever, the order changes, or a packet is dropped that is not a pure
    /// ACK with a newer one after it.
    #[test]
    fn the_newest_ack_gets_through(
        every in 0u32..6, packets in prop::collection::vec((0u64..4, 0u32..4, 0u32..10), 1..100),
    ) {
        let (mut now, mut ack) = (0, u32::MAX - 50);
        let packets: Vec<_> = packets
            .into_iter()
            .map(|(gap, step, kind)| {
                now += gap;
                ack = ack.wrapping_add(step);
                (now, match kind { 0 => Data(ack), 1 => Sack(ack), _ => Pure(ack) })
            })
            .collect();
        let out = through(every, &packets);
        prop_assert!(out.windows(2).all(|pair| pair[0].1 < pair[1].1), "{:?}", out);
        for (n, (arrived, kind)) in packets.iter().enumerate() {
            // It or a later one leaves within the hold time.
            let next = out.iter().find(|(_, out)| usize::from(*out) >= n);
            prop_assert!(next.is_some_and(|(at, _)| *at <= arrived + 5), "{n} {:?}", out);
            let itself = next.is_some_and(|(at, out)| usize::from(*out) == n && at == arrived);
            prop_assert!(matches!(kind, Pure(_)) || itself, "{n} {:?}", out);
        }
        prop_assert_eq!(out.last().map(|(_, n)| usize::from(*n)), Some(packets.len() - 1));
    }
}
