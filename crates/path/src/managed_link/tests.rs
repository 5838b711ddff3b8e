//! The managed link against the plain one, and its steps.

use super::*;
use crate::harness::{Harness, ident, packet};
use crate::{FqCoDel, FqCoDelConfig, Link, QueueLimit, RateStep};
use farpace_units::{ByteCount, Packets, Rate};
use proptest::prelude::*;

fn at(us: u64) -> Instant {
    Instant::ZERO + Span::from_micros(us)
}

/// Steps of (time in us, Mbit/s, delay in us). A frame of 1000 B takes 8 us at 1 Gbit/s.
fn stepped(steps: &[(u64, u64, u64)], period: Option<u64>) -> ManagedLinkDirection {
    let step = |(us, mbit, delay): &(u64, u64, u64)| RateStep {
        at: Span::from_micros(*us),
        rate: Some(Rate::from_mbit(*mbit)),
        delay: Span::from_micros(*delay),
    };
    let schedule = Schedule::new(steps.iter().map(step).collect(), period.map(Span::from_micros)).unwrap();
    let queue = DropTail::new(QueueLimit::Unlimited).unwrap();
    ManagedLinkDirection::new(Box::new(queue), schedule, Framing::NONE)
}

fn harness(direction: ManagedLinkDirection) -> Harness<ManagedLink> {
    Harness::new(Duplex::new(direction, stepped(&[(0, 1_000, 0)], None)))
}

/// Arrivals in us.
fn arrivals(harness: &Harness<ManagedLink>) -> Vec<(u64, u16)> {
    harness.emitted.iter().map(|(at, _, p)| (at.as_nanos() / 1_000, ident(p))).collect()
}

proptest! {
    /// Breaks: the managed link with a plain queue differs from the plain link in a single nanosecond or
    /// drop.
    #[test]
    fn a_plain_queue_makes_a_plain_link(
        arrived in prop::collection::vec((0u64..30_000, any::<bool>(), 0usize..1_460), 1..120),
        limit in 1u64..12,
        in_bytes: bool,
        rate in prop::option::of(1_000_000u64..100_000_000_000),
        delay in 0u64..200_000,
    ) {
        let queue = if in_bytes {
            QueueLimit::Bytes(ByteCount::new(limit * 700))
        } else {
            QueueLimit::Packets(Packets::new(limit as u32))
        };
        let config = LinkConfig {
            rate: rate.map(Rate::from_bits_per_sec),
            delay: Span::from_nanos(delay),
            queue,
            framing: Framing::ETHERNET,
        };
        let mut plain = Harness::new(Link::symmetric(config).unwrap());
        let direction = || ManagedLinkDirection::plain(config).unwrap();
        let mut managed = Harness::new(Duplex::new(direction(), direction()));
        let mut now = Instant::ZERO;
        for (n, (gap, port, payload)) in arrived.into_iter().enumerate() {
            now += Span::from_nanos(gap);
            plain.packet(now, Port(u16::from(port)), packet(n as u16, payload));
            managed.packet(now, Port(u16::from(port)), packet(n as u16, payload));
        }
        plain.run();
        managed.run();
        for port in [Port(0), Port(1)] {
            let arrived = |emitted: &[(Instant, Port, Packet)]| -> Vec<_> {
                emitted.iter().filter(|(_, p, _)| *p == port).map(|(at, _, p)| (*at, ident(p))).collect()
            };
            prop_assert_eq!(arrived(&plain.emitted), arrived(&managed.emitted));
            prop_assert_eq!(plain.element.direction(port).stats(), managed.element.direction(port).stats());
        }
        prop_assert_eq!(&plain.dropped, &managed.dropped);
    }
}

/// Breaks: the rate of a step holds too early, for the frame that is being sent, or too late, or the next
/// period forgets it.
#[test]
fn a_frame_keeps_the_rate_at_which_it_began() {
    // 1 Gbit/s, from 20 us on 0.1 Gbit/s, and from 200 us on the same again.
    let mut harness = harness(stepped(&[(0, 1_000, 0), (20, 100, 0)], Some(200)));
    for n in 0..5 {
        harness.packet(at(0), Port(0), packet(n, 946));
    }
    harness.packet(at(196), Port(0), packet(5, 946));
    harness.packet(at(196), Port(0), packet(6, 946));
    harness.run();
    // The third begins at 16 us and ends at 24 us, across the step; then each takes 80 us. The sixth begins
    // at 196 us and keeps the low rate until 276 us, although the next period has begun.
    assert_eq!(arrivals(&harness), [(8, 0), (16, 1), (24, 2), (104, 3), (184, 4), (276, 5), (356, 6)]);
}

/// Breaks: a shorter delay lets packets overtake within a link, or does not where that is configured.
#[test]
fn a_step_of_delay_reorders_only_if_configured() {
    let steps = [(0, 1_000, 100), (20, 1_000, 10), (1_000, 1_000, 300)];
    for reorders in [false, true] {
        let direction = stepped(&steps, None);
        let mut harness = harness(if reorders { direction.reordering() } else { direction });
        for n in 0..4 {
            harness.packet(at(0), Port(0), packet(n, 946));
        }
        harness.packet(at(2_000), Port(0), packet(4, 946));
        harness.run();
        // They leave at 8, 16, 24 and 32 us; the last two have the delay of 10 us.
        let expected = if reorders {
            [(34, 2), (42, 3), (108, 0), (116, 1), (2_308, 4)]
        } else {
            [(108, 0), (116, 1), (116, 2), (116, 3), (2_308, 4)]
        };
        assert_eq!(arrivals(&harness), expected);
    }
}

/// Breaks: packets that the queue drops before transmission are not counted as drops of the link, or the link
/// idles while packets wait.
#[test]
fn a_managed_queue_keeps_the_account() {
    let queue = FqCoDel::new(QueueLimit::Unlimited, FqCoDelConfig::default()).unwrap();
    let schedule = Schedule::constant(Some(Rate::from_mbit(1)), Span::from_millis(10)).unwrap();
    let mut harness = harness(ManagedLinkDirection::new(Box::new(queue), schedule, Framing::NONE));
    for n in 0..400 {
        harness.packet(at(u64::from(n) * 1_000), Port(0), packet(n, 446));
    }
    harness.run();
    let direction = harness.element.direction(Port(0));
    let (sent, drops) = (direction.stats().packets, direction.stats().drops);
    assert_eq!((sent + drops, drops), (400, harness.dropped.len() as u64));
    assert!(drops > 5, "{drops}: one packet of 4 ms comes each millisecond");
    // 500 B take 4 ms: the link was busy from the first to the last.
    let last = harness.emitted.last().map(|(at, ..)| *at);
    assert_eq!(last, Some(Instant::ZERO + Span::from_millis(4 * sent + 10)));
    assert_eq!(direction.busy, Span::from_millis(4 * sent));
}

/// Breaks: the longest wait at a recorded link, or at one whose rate changes, is the backlog at the mean rate
/// or at the rate of one moment, not what a packet has waited.
#[test]
fn the_longest_wait_is_that_of_a_packet() {
    // Two opportunities at once, and then none for 400 ms.
    let recorded = [1, 1, 401].map(Span::from_millis).to_vec();
    let recorded = stepped(&[(0, 1_000, 0)], None).at_opportunities(Opportunities::new(recorded).unwrap());
    // 8 us a frame of 1000 B until 10 us, then 800 us.
    for (direction, waits) in [(recorded, 401_000), (stepped(&[(0, 1_000, 0), (10, 10, 0)], None), 816)] {
        let mut harness = harness(direction);
        for n in 0..4 {
            harness.packet(at(0), Port(0), packet(n, 946));
        }
        let drains = harness.element.direction_mut(Port(0)).drains_in(at(0));
        assert!(drains <= Span::from_micros(401_000), "{drains}");
        harness.run();
        let reading = harness.element.direction_mut(Port(0)).take_peak();
        let longest = harness.emitted.iter().map(|(_, _, packet)| packet.queued()).max();
        assert_eq!((reading.wait, reading.wait), (longest, Some(Span::from_micros(waits))));
    }
}
