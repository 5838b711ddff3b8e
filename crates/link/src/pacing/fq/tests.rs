//! Flows with timers.

use super::*;
use crate::pacing::{ClassKind, LinkClock, SaturatingFrame, wire_len};
use farpace_path::QueueLimit;

const LINK_RATE: Rate = Rate::from_mbit(1_000);
const MTU: ByteCount = ByteCount::new(1_500);
const SLACK: Span = Span::from_micros(10);
/// Transmission time of a full frame in nanoseconds.
const FRAME: u64 = 1_538 * 8;

fn fq() -> Fq<SaturatingFrame> {
    Fq::new(LINK_RATE, MTU, SLACK, None).unwrap()
}

fn class(fq: &mut Fq<SaturatingFrame>, kind: ClassKind) -> ClassId {
    fq.add_class(ClassSpec { kind, limit: QueueLimit::Unlimited }).unwrap()
}

fn feed(fq: &mut Fq<SaturatingFrame>, now: u64, id: ClassId, frames: usize) {
    for _ in 0..frames {
        fq.enqueue(Instant::from_nanos(now), id, SaturatingFrame(1_514)).unwrap();
    }
}

/// Start times in nanoseconds and classes of the next `packets` packets, on a link that is idle from `now`
/// on.
fn sent(fq: &mut Fq<SaturatingFrame>, now: u64, packets: usize) -> Vec<(u64, usize)> {
    let mut clock = LinkClock::new(LINK_RATE);
    let (mut now, mut sent) = (Instant::from_nanos(now), Vec::new());
    clock.catch_up(now);
    while sent.len() < packets {
        match fq.dequeue(now) {
            Next::Packet { class, packet } => {
                sent.push((now.as_nanos(), class.index()));
                clock.advance(wire_len(packet.len()));
                now = clock.instant_of(clock.bytes());
            }
            Next::Wait(until) => {
                now = until;
                clock.catch_up(now);
            }
            Next::Empty | Next::Gap(_) => break,
        }
    }
    sent
}

/// Breaks: a new flow begins with ten frames and then sends two at a time; its timer is late by the slack,
/// which does not lower its rate. 2 x 1514 B at 24.224 Mbit/s take 1 ms.
#[test]
fn ten_frames_then_two_at_a_time() {
    let mut fq = fq();
    let id = class(&mut fq, ClassKind::Paced(Rate::from_bits_per_sec(24_224_000)));
    feed(&mut fq, 0, id, 100);
    let sent: Vec<_> = sent(&mut fq, 0, 16).into_iter().map(|(at, _)| at).collect();
    let first: Vec<_> = (0..10).map(|i| i * FRAME).collect();
    assert_eq!(sent[..10], first);
    // The pause begins with the first frame.
    let begin = 1_000_000 + 10_000;
    assert_eq!(sent[10..12], [begin, begin + FRAME]);
    // From then on each pair leaves late by the slack.
    assert_eq!(
        sent[12..16],
        [1_000_000 + begin, 1_000_000 + begin + FRAME, 2_000_000 + begin, 2_000_000 + begin + FRAME]
    );
}

/// Breaks: a flow makes up for lateness by at most half of a pause.
#[test]
fn at_most_half_of_a_pause_makes_up_for_lateness() {
    let mut fq = fq();
    let id = class(&mut fq, ClassKind::Paced(Rate::from_bits_per_sec(24_224_000)));
    feed(&mut fq, 0, id, 100);
    sent(&mut fq, 0, 10);
    assert!(matches!(fq.dequeue(Instant::from_nanos(10 * FRAME)), Next::Wait(_)));
    // The link was unavailable for 10 ms.
    let late: Vec<_> = sent(&mut fq, 11_000_000, 4).into_iter().map(|(at, _)| at).collect();
    let (pair, next) = (11_000_000 + FRAME, 11_000_000 + 500_000 + 10_000);
    assert_eq!(late, [11_000_000, pair, next, next + FRAME]);
}

/// Breaks: an idle flow does not accumulate credit, but gets one quantum after 40 ms.
#[test]
fn an_idle_flow_gets_a_quantum_and_no_more() {
    let mut fq = fq();
    let id = class(&mut fq, ClassKind::Paced(Rate::from_bits_per_sec(24_224_000)));
    feed(&mut fq, 0, id, 10);
    assert_eq!(sent(&mut fq, 0, 20).len(), 10);
    let later = 10_000_000_000;
    feed(&mut fq, later, id, 20);
    let sent: Vec<_> = sent(&mut fq, later, 4).into_iter().map(|(at, _)| at - later).collect();
    assert_eq!(sent[..2], [0, FRAME]);
    assert_eq!(sent[2], 1_000_000 + 10_000, "a whole pause after it began to send");
}

/// Breaks: one timer serves all flows whose pauses end within the slack, in order of these times.
#[test]
fn a_timer_serves_all_flows_of_its_slack() {
    let mut fq = fq();
    let rates = [500_000, 499_000, 400_000];
    let ids = rates.map(|rate| class(&mut fq, ClassKind::Paced(Rate::from_bits_per_sec(rate))));
    for id in ids.into_iter().rev() {
        feed(&mut fq, 0, id, 3);
    }
    // Up to 550 kbit/s each packet is followed by a pause: 24.224 ms, 24.273 ms after the first, 30.28 ms.
    let sent = sent(&mut fq, 0, 6);
    assert_eq!(sent[..3], [(0, 2), (FRAME, 1), (2 * FRAME, 0)]);
    // The first flow was served after two frames of the others.
    let wake = 24_224_000 + 10_000;
    assert_eq!(sent[3], (wake, 0));
    assert!(sent[4].0 > wake + FRAME && sent[4].1 == 1, "{sent:?}");
    assert_eq!(sent[5].1, 2);
}

/// Breaks: flows without a rate are served in round robin, a quantum each.
#[test]
fn normal_flows_are_served_in_round_robin() {
    let mut fq = fq();
    let ids = [0; 2].map(|_| class(&mut fq, ClassKind::Normal));
    for id in ids {
        feed(&mut fq, 0, id, 30);
    }
    let order: Vec<_> = sent(&mut fq, 0, 28).into_iter().map(|(_, class)| class).collect();
    let expected: Vec<_> =
        [vec![0; 10], vec![1; 10], vec![0; 2], vec![1; 2], vec![0; 2], vec![1; 2]].concat();
    assert_eq!(order, expected);
}

/// Breaks: a new rate scales the rest of a pause: it halves at twice the rate.
#[test]
fn a_pause_is_scaled() {
    let mut fq = fq();
    let id = class(&mut fq, ClassKind::Paced(Rate::from_bits_per_sec(24_224_000)));
    feed(&mut fq, 0, id, 20);
    sent(&mut fq, 0, 10);
    let now = Instant::from_nanos(200_000);
    assert_eq!(fq.dequeue(now), Next::Wait(Instant::from_nanos(1_010_000)));
    fq.set_rate(id, Rate::from_bits_per_sec(48_448_000)).unwrap();
    assert_eq!(fq.dequeue(now), Next::Wait(Instant::from_nanos(200_000 + 400_000 + 10_000)));
}

/// Breaks: a flow of single packets is new only once, and does not take precedence each time.
#[test]
fn a_flow_is_new_once() {
    let quantum = Some(ByteCount::new(4 * 1_514));
    let mut fq = Fq::new(LINK_RATE, MTU, SLACK, quantum).unwrap();
    let [bulk, single] = [0; 2].map(|_| class(&mut fq, ClassKind::Normal));
    let mut next = |feeds: bool| {
        if feeds {
            feed(&mut fq, 0, single, 1);
        } else if fq.backlog().packets == 0 {
            feed(&mut fq, 0, bulk, 30);
        }
        match fq.dequeue(Instant::ZERO) {
            Next::Packet { class, .. } => class,
            other => panic!("{other:?}"),
        }
    };
    assert!((0..11).all(|_| next(false) == bulk));
    assert_eq!(next(true), single);
    assert_eq!(next(false), bulk);
    assert_eq!([next(true), next(false), next(false)], [bulk, bulk, single]);
}

/// Breaks: a class that reuses the number of a removed class does not inherit its place in the lists.
#[test]
fn a_reused_number_is_served_once() {
    let mut fq = fq();
    let [a, b] = [0; 2].map(|_| class(&mut fq, ClassKind::Normal));
    feed(&mut fq, 0, a, 1);
    assert_eq!(fq.remove_class(a).unwrap().len(), 1);
    feed(&mut fq, 0, b, 20);
    assert_eq!(class(&mut fq, ClassKind::Normal), a);
    feed(&mut fq, 0, a, 20);
    let order: Vec<_> = sent(&mut fq, 0, 40).into_iter().map(|(_, class)| class).collect();
    assert_eq!(order[..10], [1; 10], "the other class was queued first");
}
