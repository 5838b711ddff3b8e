//! The laws that every element keeps, tried with random packets. [`Harness`](crate::harness::Harness) itself
//! asserts conservation after every call and that a wake leaves the next deadline in the future.

use crate::harness::{Harness, packet};
use crate::*;
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};
use proptest::prelude::*;

/// The packets that arrive: time since the one before, port, payload.
type Arrivals = Vec<(u64, bool, usize)>;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop::collection::vec((0u64..40_000, any::<bool>(), 0usize..1_460), 1..120)
}

fn feed<E: Element>(harness: &mut Harness<E>, arrivals: &Arrivals) {
    let mut now = Instant::ZERO;
    for (n, (gap, port, payload)) in arrivals.iter().enumerate() {
        now += Span::from_nanos(*gap);
        harness.packet(now, Port(u16::from(*port)), packet(n as u16, *payload));
    }
    harness.run();
}

/// All output, in order. Every packet that went in must be part of it.
fn outcome<E: Element>(element: E, arrivals: &Arrivals) -> String {
    let mut harness = Harness::new(element);
    feed(&mut harness, arrivals);
    assert_eq!(harness.element.held(), 0, "all time has passed");
    let emitted: Vec<_> =
        harness.emitted.iter().map(|(at, port, p)| (at, port, p.headers(), p.payload())).collect();
    format!("{emitted:?} {:?} {:?}", harness.dropped, harness.element.inspect())
}

fn same_twice<E: Element>(make: impl Fn() -> E, arrivals: &Arrivals) {
    assert_eq!(outcome(make(), arrivals), outcome(make(), arrivals));
}

/// Every other period of this length.
fn stalls(ns: u64) -> MachineStallDirection {
    let still = |n: u64| Instant::from_nanos(2 * n * (ns + 1))..Instant::from_nanos((2 * n + 1) * (ns + 1));
    MachineStallDirection::new(Periods::new((0..100).map(still).collect()).unwrap())
}

/// One line for each element.
fn try_every_element(arrivals: &Arrivals, p: f64, ns: u64, limit: u32) {
    let span = Span::from_nanos(ns);
    let rate = Rate::from_bits_per_sec(1_000 * (ns + 1));
    let direction = LinkConfig {
        rate: Some(rate),
        delay: span,
        queue: QueueLimit::Packets(Packets::new(limit)),
        framing: Framing::ETHERNET,
    };
    same_twice(|| Link::symmetric(direction).unwrap(), arrivals);
    same_twice(|| Link::symmetric(LinkConfig { rate: None, ..direction }).unwrap(), arrivals);
    let min = Span::from_nanos(1);
    let codel = CoDelConfig { target: min, interval: span + min * 2, ecn: limit > 9 };
    let red = RedConfig {
        min: Packets::new(limit),
        max: Packets::new(limit * 2),
        weight: 1.0,
        ..RedConfig::default()
    };
    let fq = FqCoDelConfig { codel, quantum: ByteCount::new(ns + 1), flows: limit };
    for kind in 0..4 {
        let managed = || {
            let queue: Box<dyn QueueDiscipline> = match kind {
                0 => Box::new(DropTail::new(direction.queue).unwrap()),
                1 => Box::new(Red::new(QueueLimit::Packets(Packets::new(limit * 3)), red).unwrap()),
                2 => Box::new(CoDel::new(direction.queue, codel).unwrap()),
                _ => Box::new(FqCoDel::new(direction.queue, fq).unwrap()),
            };
            let steps = vec![
                RateStep { at: Span::ZERO, rate: direction.rate, delay: span },
                RateStep { at: span + min, rate: None, delay: Span::ZERO },
            ];
            let schedule = Schedule::new(steps, Some(span * 2 + min * 2)).unwrap();
            let direction = ManagedLinkDirection::new(queue, schedule, Framing::ETHERNET);
            if limit > 9 { direction.reordering() } else { direction }
        };
        same_twice(|| Duplex::new(managed(), managed()), arrivals);
    }
    same_twice(
        || {
            Policer::at_port(
                Port(1),
                PolicerConfig {
                    rate,
                    burst: ByteCount::new(u64::from(limit) * 500),
                    refill: (limit > 9).then_some(Span::from_nanos(ns + 1)),
                    phase: span,
                    counted: PolicedBytes::Ip,
                },
            )
            .unwrap()
        },
        arrivals,
    );
    for reorders in [false, true] {
        let jitter = Some(Jitter { max: span, reorders });
        same_twice(
            || Delay::new(DelayDirection::new(span, jitter), DelayDirection::new(span, None)),
            arrivals,
        );
    }
    same_twice(|| Loss::new(LossDirection::new(p), LossDirection::new(1.0 - p)), arrivals);
    same_twice(|| BitErrors::new(BitErrorsDirection::new(p / 1e4), BitErrorsDirection::new(p)), arrivals);
    let burst = BurstLossConfig { begin: p, end: 1.0 - p, good: p / 2.0, bad: 1.0 };
    same_twice(|| BurstLoss::new(BurstLossDirection::new(burst), BurstLossDirection::new(burst)), arrivals);
    same_twice(
        || {
            let changes = vec![MtuChange { at: Instant::from_nanos(ns), mtu: ByteCount::new(1_000) }];
            let direction = MtuDirection::new(ByteCount::new(68 + ns % 1_500), changes).unwrap();
            Mtu::new(direction.clone(), direction.silent())
        },
        arrivals,
    );
    let jump = Jump { at: Instant::from_nanos(ns), ticks: limit };
    same_twice(|| ClockJump::of_port_0(vec![jump]), arrivals);
    same_twice(
        || AckThinning::new(AckThinningDirection::new(limit, span), AckThinningDirection::new(2, span * 2)),
        arrivals,
    );
    let firewall = MiddleboxConfig {
        strip: MiddleboxConfig::unknown_options(),
        drop_without_ack: limit > 9,
        ..MiddleboxConfig::default()
    };
    same_twice(
        || {
            Middlebox::new(
                MiddleboxDirection::new(firewall.clone()),
                MiddleboxDirection::new(firewall.clone()),
            )
        },
        arrivals,
    );
    same_twice(|| Duplicate::new(DuplicateDirection::new(p), DuplicateDirection::new(1.0 - p)), arrivals);
    same_twice(|| Corrupt::new(CorruptDirection::new(p), CorruptDirection::new(1.0 - p)), arrivals);
    same_twice(
        || Reorder::new(ReorderDirection::new(p, span), ReorderDirection::new(1.0 - p, span * 2)),
        arrivals,
    );
    same_twice(
        || {
            let down = |from: u64| Instant::from_nanos(from)..Instant::from_nanos(from + ns + 1);
            let down = Periods::new(vec![down(0), down(2 * ns + 1)]).unwrap();
            Outage::new(OutageDirection::new(down), OutageDirection::new(Periods::default()))
        },
        arrivals,
    );
    same_twice(|| MachineStall::new(stalls(ns), MachineStallDirection::new(Periods::default())), arrivals);
    same_twice(
        || {
            let mut routes = Routes::default();
            routes.add(Prefix::new([10, 0, 1, 0].into(), 24).unwrap(), Port(1)).unwrap();
            Router::new(2, routes).unwrap()
        },
        arrivals,
    );
    same_twice(|| Switch::new(2), arrivals);
    let costs = ProcessorConfig {
        send: span,
        receive: span * 2,
        receive_ack: span / 2,
        per_byte: min * (ns % 9),
        per_entry: Span::ZERO,
        queue: direction.queue,
    };
    same_twice(|| Processor::new(costs), arrivals);
    let interrupts =
        InterruptsConfig { delay: span, frames: limit - 1, jitter: span / 2, gro: limit.is_multiple_of(2) };
    same_twice(
        || Interrupts::new(InterruptsDirection::new(interrupts), InterruptsDirection::new(interrupts)),
        arrivals,
    );
    same_twice(|| Hub::new(limit as u16 + 1), arrivals);
}

fn try_ordered_elements(arrivals: &Arrivals, ns: u64) {
    let span = Span::from_nanos(ns);
    let direction = LinkConfig {
        rate: Some(Rate::from_mbit(100)),
        delay: span,
        queue: QueueLimit::Unlimited,
        framing: Framing::ETHERNET,
    };
    let jitter = Some(Jitter { max: span, reorders: false });
    let mut link = Harness::new(Link::symmetric(direction).unwrap());
    let mut delay =
        Harness::new(Delay::new(DelayDirection::new(span, jitter), DelayDirection::new(span, jitter)));
    let costs = ProcessorConfig {
        send: span,
        receive: span / 3,
        receive_ack: span * 2,
        per_byte: Span::ZERO,
        per_entry: Span::ZERO,
        queue: direction.queue,
    };
    let mut processor = Harness::new(Processor::new(costs));
    let interrupts =
        InterruptsDirection::new(InterruptsConfig { delay: span, frames: 7, jitter: span, gro: false });
    let mut interrupts = Harness::new(Interrupts::new(interrupts.clone(), interrupts));
    let mut stall = Harness::new(MachineStall::new(stalls(ns), stalls(ns / 3)));
    feed(&mut stall, arrivals);
    feed(&mut link, arrivals);
    feed(&mut delay, arrivals);
    feed(&mut processor, arrivals);
    feed(&mut interrupts, arrivals);
    for port in [Port(0), Port(1)] {
        let arrived = arrivals.iter().enumerate().filter(|(_, a)| u16::from(a.1) != port.0);
        let arrived: Vec<_> = arrived.map(|(n, _)| n as u16).collect();
        assert_eq!(link.idents(port), arrived.clone());
        assert_eq!(delay.idents(port), arrived.clone());
        assert_eq!(processor.idents(port), arrived.clone());
        assert_eq!(stall.idents(port), arrived.clone());
        assert_eq!(interrupts.idents(port), arrived);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Breaks: a packet is lost or duplicated without being counted, an element wakes without end, or the
    /// same run gives another result.
    #[test]
    fn every_element_keeps_the_laws(
        arrivals in arrivals(),
        p in 0.0..1.0f64,
        ns in 0u64..100_000,
        limit in 1u32..20,
    ) {
        try_every_element(&arrivals, p, ns, limit);
    }

    /// Breaks: a link, an ordered delay, a processor, an interrupt or a stall lets packets overtake.
    #[test]
    fn ordered_elements_keep_the_order(arrivals in arrivals(), ns in 0u64..100_000) {
        try_ordered_elements(&arrivals, ns);
    }
}
