//! The algorithm of the paper with its flaws, step by step.

use super::*;
use crate::pacing::{ClassKind, SaturatingFrame};
use farpace_path::QueueLimit;

const FULL: SaturatingFrame = SaturatingFrame(1_514);

fn spec(kind: ClassKind) -> ClassSpec {
    ClassSpec { kind, limit: QueueLimit::Unlimited }
}

/// A scheduler on a link of `link_rate` Mbit/s with paced classes of `rates` that have `frames` full frames
/// each.
fn backlogged(link_rate: u64, rates: &[u64], frames: usize) -> (Psp<SaturatingFrame>, Vec<ClassId>) {
    let mut psp = Psp::new(Rate::from_mbit(link_rate), ByteCount::new(1_500)).unwrap();
    let add = |rate: &u64| psp.add_class(spec(ClassKind::Paced(Rate::from_mbit(*rate)))).unwrap();
    let ids: Vec<_> = rates.iter().map(add).collect();
    for id in &ids {
        feed(&mut psp, *id, frames);
    }
    (psp, ids)
}

fn feed(psp: &mut Psp<SaturatingFrame>, id: ClassId, frames: usize) {
    for _ in 0..frames {
        psp.enqueue(Instant::ZERO, id, FULL).unwrap();
    }
}

/// What it sends next: the index of a class, or a gap.
fn next(psp: &mut Psp<SaturatingFrame>) -> Result<usize, u64> {
    match psp.dequeue(Instant::ZERO) {
        Next::Packet { class, .. } => Ok(class.index()),
        Next::Gap(gap) => Err(gap.get()),
        other => panic!("{other:?}"),
    }
}

/// Breaks: the trace of Fig. 3 of the paper, with rates that include framing overhead (1518 of 1538): of four
/// frames, P1 sends two, P2 one, and the fourth is a gap.
#[test]
fn the_papers_trace() {
    let (mut psp, _) = backlogged(3_076, &[1_518, 759], 20);
    for round in 1..5 {
        let sent: Vec<_> = (0..4).map(|_| next(&mut psp)).collect();
        assert_eq!(sent, [Ok(0), Ok(1), Ok(0), Err(1_538)]);
        assert_eq!(psp.global_clock(), round * 4 * 1_538);
    }
}

/// Breaks: gaps have the flaws of the paper, and are split at a full frame. For one class with packets
/// `apart` bytes on the wire: the length of the gap frame and the growth of G.
#[test]
fn gaps_have_the_flaws_of_the_paper() {
    for (apart, given, counted) in [
        (0, None, 0),
        (1, Some(1_538), 1_538),
        (63, Some(1_538), 1_538),
        (64, Some(84), 64),
        (83, Some(84), 83),
        (84, Some(84), 84),
        (1_514, Some(1_514), 1_514),
        (1_515, Some(1_515), 1_515),
        (1_538, Some(1_538), 1_538),
        (1_539, Some(1_538), 1_538),
        (100_000, Some(1_538), 1_538),
    ] {
        let (mut psp, _) = backlogged(1_538 + apart, &[1_518], 2);
        assert_eq!(next(&mut psp), Ok(0));
        let expected = given.map_or(Ok(0), Err);
        assert_eq!(next(&mut psp), expected, "{apart} B");
        let sent = 1_538 * (1 + u64::from(given.is_none()));
        assert_eq!(psp.global_clock(), sent + counted, "{apart} B");
    }
}

/// Breaks: a class that stopped does not burst when it continues, and one that could not send does (the
/// flaw).
#[test]
fn arrears_are_kept_except_over_a_stop() {
    // Each sends one of four frames. One stops, the other continues.
    let (mut psp, ids) = backlogged(6_152, &[1_518, 1_518], 1);
    feed(&mut psp, ids[1], 40);
    let twenty: Vec<_> = (0..20).map(|_| next(&mut psp)).collect();
    assert_eq!(twenty[..4], [Ok(0), Ok(1), Err(1_538), Err(1_538)]);
    feed(&mut psp, ids[0], 3);
    let after: Vec<_> = (0..8).map(|_| next(&mut psp)).collect();
    assert_eq!(after[..4], [Ok(0), Ok(1), Err(1_538), Err(1_538)]);
    assert_eq!(after[4..6], [Ok(0), Ok(1)]);

    // A slow class with a frame per 116,734 B, behind one that may use the whole link.
    let (mut psp, ids) = backlogged(1_538, &[1_518, 20], 0);
    feed(&mut psp, ids[1], 9);
    assert_eq!(next(&mut psp), Ok(1));
    feed(&mut psp, ids[0], 400);
    assert!((0..400).all(|_| next(&mut psp) == Ok(0)));
    let after: Vec<_> = (0..7).map(|_| next(&mut psp)).collect();
    assert_eq!(after, [Ok(1), Ok(1), Ok(1), Ok(1), Ok(1), Err(1_538), Err(1_538)]);
    // Its second packet was due 116,734 B after the start of its first, and left after 401 frames. The last
    // packet of the burst was less late.
    assert_eq!(psp.stats(ids[1]).unwrap().latest, ByteCount::new(401 * 1_538 - 116_734));
}

/// Breaks: on an idle link G stops, and no gaps are sent.
#[test]
fn the_clock_stands_still_on_an_idle_link() {
    let (mut psp, ids) = backlogged(6_152, &[1_518], 1);
    assert_eq!(next(&mut psp), Ok(0));
    assert_eq!(psp.dequeue(Instant::from_nanos(1 << 40)), Next::Empty);
    assert_eq!(psp.global_clock(), 1_538);
    feed(&mut psp, ids[0], 1);
    assert_eq!([next(&mut psp), next(&mut psp), next(&mut psp)], [Err(1_538); 3]);
    assert_eq!(next(&mut psp), Ok(0));
}

/// Breaks: eligible paced classes precede normal ones, normal ones precede gaps and are served in round
/// robin.
#[test]
fn normal_classes_share_the_rest_in_round_robin() {
    let (mut psp, _) = backlogged(6_152, &[1_518], 9);
    for _ in 0..2 {
        let normal = psp.add_class(spec(ClassKind::Normal)).unwrap();
        feed(&mut psp, normal, 3);
    }
    let sent: Vec<_> = (0..12).map(|_| next(&mut psp)).collect();
    let full = Err(1_538);
    let expected = [Ok(0), Ok(1), Ok(2), Ok(1), Ok(0), Ok(2), Ok(1), Ok(2), Ok(0), full, full, full];
    assert_eq!(sent, expected);
}

/// Breaks: the lowest rate of the paper: 8 kbit/s is a frame per 189.75 MB on the wire (1.5 s). The sum of
/// rates may equal the rate of the link, and no more.
#[test]
fn rates_at_both_ends_of_the_range() {
    let mut psp = Psp::new(Rate::from_mbit(1_000), ByteCount::new(1_500)).unwrap();
    let slow = psp.add_class(spec(ClassKind::Paced(Rate::from_bits_per_sec(8_000)))).unwrap();
    feed(&mut psp, slow, 3);
    let mut starts = Vec::new();
    loop {
        let start = psp.global_clock();
        match psp.dequeue(Instant::ZERO) {
            Next::Packet { .. } => starts.push(start),
            Next::Gap(_) => {}
            _ => break,
        }
    }
    assert_eq!(starts, [0, 189_750_000, 2 * 189_750_000]);

    let rest = Rate::from_bits_per_sec(999_992_001);
    let refused = psp.add_class(spec(ClassKind::Paced(rest)));
    assert!(matches!(refused, Err(PacingError::RatesAboveLinkRate { .. })), "{refused:?}");
    let rest = Rate::from_bits_per_sec(999_992_000);
    assert!(psp.add_class(spec(ClassKind::Paced(rest))).is_ok());
}

/// Breaks: a new rate scales the rest of a gap and changes the order of classes.
#[test]
fn rates_change_while_classes_wait() {
    // Four frames apart each.
    let (mut psp, ids) = backlogged(6_152, &[1_518, 1_518], 9);
    assert_eq!([next(&mut psp), next(&mut psp)], [Ok(0), Ok(1)]);
    // Three of its four frames of waiting are left: they halve, and the next packet follows two frames later.
    psp.set_rate(ids[1], Rate::from_mbit(2 * 1_518)).unwrap();
    let sent: Vec<_> = (0..5).map(|_| next(&mut psp)).collect();
    assert_eq!(sent, [Err(1_538), Err(769), Ok(1), Ok(0), Ok(1)]);
}

/// Breaks: the round robin continues at the same class when an earlier one is removed.
#[test]
fn removing_a_class_keeps_the_round_robin() {
    let (mut psp, _) = backlogged(1_000, &[], 0);
    let ids = [0; 3].map(|_| psp.add_class(spec(ClassKind::Normal)).unwrap());
    for id in ids {
        feed(&mut psp, id, 5);
    }
    assert_eq!([next(&mut psp), next(&mut psp)], [Ok(0), Ok(1)]);
    assert_eq!(psp.remove_class(ids[0]).unwrap().len(), 4);
    assert_eq!([next(&mut psp), next(&mut psp), next(&mut psp)], [Ok(2), Ok(1), Ok(2)]);
    assert_eq!(psp.remove_class(ids[2]).unwrap().len(), 3);
    assert_eq!([next(&mut psp), next(&mut psp)], [Ok(1), Ok(1)]);
}

/// A frame of a connection that requests a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hinted(Option<Rate>);

impl PacedFrame for Hinted {
    fn len(&self) -> ByteCount {
        ByteCount::new(1_514)
    }
    fn rate_hint(&self) -> Option<Rate> {
        self.0
    }
}

/// Breaks: a following class does not exceed its hint, and does not make up for the time before it had one.
#[test]
fn a_class_that_follows_keeps_to_its_hint() {
    let mut psp = Psp::new(Rate::from_mbit(3_076), ByteCount::new(1_500)).unwrap();
    let id = psp.add_class(spec(ClassKind::Follows)).unwrap();
    let mut next = |hints: &[Option<u64>], steps: usize| {
        for hint in hints {
            psp.enqueue(Instant::ZERO, id, Hinted(hint.map(Rate::from_mbit))).unwrap();
        }
        let step = |_| match psp.dequeue(Instant::ZERO) {
            Next::Packet { .. } => 'p',
            Next::Gap(_) => 'g',
            other => panic!("{other:?}"),
        };
        (0..steps).map(step).collect::<String>()
    };
    assert_eq!(next(&[None; 9], 9), "ppppppppp");
    // Half the rate of the link.
    assert_eq!(next(&[Some(1_518), None, None], 5), "pgpgp");
    // The full rate of the link, then half again.
    assert_eq!(next(&[Some(3_076); 9], 9), "ppppppppp");
    assert_eq!(next(&[Some(1_518), None, None], 5), "pgpgp");
}
