//! Token buckets at their ticks.

use super::*;
use crate::pacing::{ClassKind, LinkClock, SaturatingFrame, wire_len};
use farpace_path::QueueLimit;

const LINK_RATE: Rate = Rate::from_mbit(1_000);
const MTU: ByteCount = ByteCount::new(1_500);

fn bucket(tick: u64, burst: Option<u64>) -> TokenBucket<SaturatingFrame> {
    TokenBucket::new(LINK_RATE, MTU, Span::from_millis(tick), burst.map(ByteCount::new)).unwrap()
}

fn class(tb: &mut TokenBucket<SaturatingFrame>, kind: ClassKind) -> ClassId {
    tb.add_class(ClassSpec { kind, limit: QueueLimit::Unlimited }).unwrap()
}

fn feed(tb: &mut TokenBucket<SaturatingFrame>, now: Instant, id: ClassId, frames: usize) {
    for _ in 0..frames {
        tb.enqueue(now, id, SaturatingFrame(1_514)).unwrap();
    }
}

/// Everything that it sends until `end`, at the rate of the link: the start of each burst, and the classes of
/// its packets.
fn bursts(tb: &mut TokenBucket<SaturatingFrame>, from: Instant, end: Instant) -> Vec<(Instant, Vec<usize>)> {
    let mut clock = LinkClock::new(LINK_RATE);
    clock.catch_up(from);
    let (mut now, mut bursts) = (from, vec![(from, Vec::new())]);
    while now < end {
        match tb.dequeue(now) {
            Next::Packet { class, packet } => {
                bursts.last_mut().unwrap().1.push(class.index());
                clock.advance(wire_len(packet.len()));
                now = clock.instant_of(clock.bytes());
            }
            Next::Wait(until) => {
                assert!(until > now);
                now = until;
                clock.catch_up(now);
                bursts.push((now, Vec::new()));
            }
            Next::Empty => break,
            Next::Gap(_) => panic!("a token bucket makes no gaps"),
        }
    }
    bursts
}

/// Breaks: the bursts of §2 of the paper: 500 Mbit/s and a tick of 1 ms yield bursts of 62.5 kB, 41 or 42
/// full frames, at ticks.
#[test]
fn bursts_of_the_paper() {
    let mut tb = bucket(1, None);
    let id = class(&mut tb, ClassKind::Paced(Rate::from_mbit(500)));
    feed(&mut tb, Instant::ZERO, id, 3_000);
    let bursts = bursts(&mut tb, Instant::ZERO, Instant::from_nanos(50_000_000));
    // A full bucket has a frame in addition.
    let sizes: Vec<_> = bursts.iter().map(|(_, packets)| packets.len()).collect();
    assert_eq!(sizes[0], 42);
    assert!(sizes[1..49].iter().all(|n| [41, 42].contains(n)), "{sizes:?}");
    assert_eq!(sizes[..49].iter().sum::<usize>(), (49 * 62_500 + 1_522) / 1_514, "no remainder is lost");
    for (at, _) in &bursts[1..] {
        assert_eq!(at.as_nanos() % 1_000_000, 0);
    }
}

/// Breaks: a bucket holds exactly its burst after a long pause, and at least the longest frame.
#[test]
fn a_bucket_holds_its_burst() {
    let later = Instant::from_nanos(3_600_000_000_000);
    for (burst, frames) in [(Some(10 * 1_514), 10), (Some(10 * 1_514 - 1), 9), (Some(1), 1), (None, 1)] {
        let mut tb = bucket(1, burst);
        // 12.5 B per tick.
        let id = class(&mut tb, ClassKind::Paced(Rate::from_bits_per_sec(100_000)));
        feed(&mut tb, later, id, 40);
        let bursts = bursts(&mut tb, later, later + Span::from_micros(900));
        assert_eq!(bursts[0].1.len(), frames, "{burst:?}");
        let missing = match burst {
            Some(1) | None => 1_514 - 1_522 % 1_514,
            Some(burst) => (frames as u64 + 1) * 1_514 - burst,
        };
        // The tick that adds the last missing token, counted from the start of time.
        let ticks = (2 * missing).div_ceil(25);
        let reserve = if burst.is_none() { 12 } else { 0 };
        let ticks = if reserve > 0 { (2 * missing - 25).div_ceil(25) } else { ticks };
        assert_eq!(bursts[1].0, later + Span::from_millis(ticks), "{burst:?}");
    }
}

/// Breaks: a rate does not drift by fractions of a byte per tick: 12345 bit/s and 3 ms are 4.629375 B per
/// tick.
#[test]
fn fractions_of_a_byte_are_kept() {
    let mut tb = bucket(3, None);
    let id = class(&mut tb, ClassKind::Paced(Rate::from_bits_per_sec(12_345)));
    feed(&mut tb, Instant::ZERO, id, 1_000);
    let end = Instant::from_nanos(600_000_000_000);
    let sent: usize = bursts(&mut tb, Instant::ZERO, end).iter().map(|(_, packets)| packets.len()).sum();
    assert_eq!(sent as u64, (1_522 + 4 + 600 * 12_345 / 8) / 1_514);
}

/// Breaks: paced classes with tokens send in round robin, and then normal classes use the remaining capacity.
#[test]
fn paced_classes_precede_the_others() {
    let mut tb = bucket(1, Some(2 * 1_522));
    let a = class(&mut tb, ClassKind::Paced(Rate::from_mbit(10)));
    let b = class(&mut tb, ClassKind::Paced(Rate::from_mbit(10)));
    let rest = class(&mut tb, ClassKind::Normal);
    for id in [rest, a, b] {
        feed(&mut tb, Instant::ZERO, id, 3);
    }
    let bursts = bursts(&mut tb, Instant::ZERO, Instant::from_nanos(1_500_000));
    assert_eq!(bursts[0].1, [0, 1, 0, 1, 2, 2, 2]);
    // 1250 B per tick, and 16 B were left: a packet at the second tick.
    assert_eq!(bursts[1].0, Instant::from_nanos(2_000_000));
    assert_eq!(tb.stats(a).unwrap().packets, 2);
    // Three other packets came first.
    assert_eq!(tb.stats(b).unwrap().latest, ByteCount::new(3 * 1_538));
}

/// Breaks: a new rate keeps the tokens, and applies to a wait that has already begun.
#[test]
fn rates_change_while_classes_wait() {
    let mut tb = bucket(1, Some(1_522));
    let id = class(&mut tb, ClassKind::Paced(Rate::from_bits_per_sec(8_000)));
    feed(&mut tb, Instant::ZERO, id, 9);
    assert!(matches!(tb.dequeue(Instant::ZERO), Next::Packet { .. }));
    // 8 B are left, and a tick adds 1 B.
    assert_eq!(tb.dequeue(Instant::ZERO), Next::Wait(Instant::from_nanos(1_506 * 1_000_000)));
    let now = Instant::from_nanos(506 * 1_000_000);
    assert_eq!(tb.dequeue(now), Next::Wait(Instant::from_nanos(1_506 * 1_000_000)));
    tb.set_rate(id, Rate::from_bits_per_sec(80_000)).unwrap();
    assert_eq!(tb.dequeue(now), Next::Wait(Instant::from_nanos(606 * 1_000_000)));
    tb.set_rate(id, Rate::from_bits_per_sec(16_000)).unwrap();
    assert_eq!(tb.dequeue(now), Next::Wait(Instant::from_nanos(1_006 * 1_000_000)));
}

/// Breaks: a bucket that becomes deeper is not full, and one that becomes shallower holds no more than its
/// depth.
#[test]
fn buckets_change_their_size() {
    // 125 B per tick, then 12,500 B, then 125 B again, with a frame in addition each time.
    let [slow, fast] = [1, 100].map(Rate::from_mbit);
    let sent = |tb: &mut TokenBucket<SaturatingFrame>, now| {
        let end = now + Span::from_micros(900);
        bursts(tb, now, end)[0].1.len()
    };
    let mut tb = bucket(1, None);
    let id = class(&mut tb, ClassKind::Paced(slow));
    feed(&mut tb, Instant::ZERO, id, 40);
    tb.set_rate(id, fast).unwrap();
    assert_eq!(sent(&mut tb, Instant::ZERO), 1, "133 of 1647 B are left");
    assert_eq!(sent(&mut tb, Instant::from_nanos(1_000_000)), 8, "521 of 12633 B are left");
    assert_eq!(sent(&mut tb, Instant::from_nanos(9_000_000)), 9, "the bucket is full, 14022 B");
    assert!(matches!(tb.dequeue(Instant::from_nanos(19_000_000)), Next::Packet { .. }));
    tb.set_rate(id, slow).unwrap();
    assert_eq!(sent(&mut tb, Instant::from_nanos(19_000_000)), 1, "1647 B");
}

/// Breaks: a class that reuses the number of a removed class does not inherit its place in the round robin.
#[test]
fn a_reused_number_is_served_once() {
    let mut tb = bucket(1, None);
    let [a, b] = [0; 2].map(|_| class(&mut tb, ClassKind::Normal));
    feed(&mut tb, Instant::ZERO, a, 1);
    assert_eq!(tb.remove_class(a).unwrap().len(), 1);
    assert_eq!(class(&mut tb, ClassKind::Normal), a);
    feed(&mut tb, Instant::ZERO, a, 3);
    feed(&mut tb, Instant::ZERO, b, 3);
    let bursts = bursts(&mut tb, Instant::ZERO, Instant::from_nanos(900_000));
    assert_eq!(bursts[0].1, [0, 1, 0, 1, 0, 1]);

    // The same for a paced class.
    let mut tb = bucket(1, Some(10 * 1_522));
    let [a, b] = [0; 2].map(|_| class(&mut tb, ClassKind::Paced(Rate::from_mbit(1))));
    feed(&mut tb, Instant::ZERO, a, 1);
    assert_eq!(tb.remove_class(a).unwrap().len(), 1);
    assert_eq!(class(&mut tb, ClassKind::Paced(Rate::from_mbit(1))), a);
    feed(&mut tb, Instant::ZERO, a, 3);
    feed(&mut tb, Instant::ZERO, b, 3);
    let bursts = self::bursts(&mut tb, Instant::ZERO, Instant::from_nanos(900_000));
    assert_eq!(bursts[0].1, [0, 1, 0, 1, 0, 1]);
}

/// Breaks: a tick of zero is refused.
#[test]
fn a_tick_of_zero_is_refused() {
    assert!(TokenBucket::<SaturatingFrame>::new(LINK_RATE, MTU, Span::ZERO, None).is_err());
}
