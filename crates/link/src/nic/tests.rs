use super::*;
use crate::pacing::{
    ClassConfig, ClassFilter, ClassId, ClassRate, ClassSpec, ClassStats, GapFrameKind, Gaps, MIN_GAP,
    PacingError, Refused, Scheduler, SchedulerKind,
};
use bytes::Bytes;
use farpace_path::{Duplex, Effects, Element, QueueLimit};
use farpace_units::{Packets, RandomStream};
use farpace_wire::{AddressPair, Below, TcpHeader};
use proptest::prelude::*;

/// A scheduler with one queue. After each packet it inserts a gap of `gap` bytes, or waits for `pause`.
struct Spacer {
    queue: VecDeque<Packet>,
    gap: u64,
    pause: Option<Span>,
    rest: u64,
    until: Instant,
}

impl Spacer {
    const FULL: u64 = 1_538;
}

impl Scheduler<Packet> for Spacer {
    fn add_class(&mut self, _: ClassSpec) -> Result<ClassId, PacingError> {
        Ok(ClassId(0))
    }
    fn set_rate(&mut self, class: ClassId, _: Rate) -> Result<(), PacingError> {
        Err(PacingError::NotPaced(class))
    }
    fn remove_class(&mut self, _: ClassId) -> Result<Vec<Packet>, PacingError> {
        Ok(self.queue.drain(..).collect())
    }
    fn enqueue(&mut self, _: Instant, _: ClassId, packet: Packet) -> Result<(), Refused<Packet>> {
        self.queue.push_back(packet);
        Ok(())
    }
    fn dequeue(&mut self, now: Instant) -> Next<Packet> {
        if self.queue.is_empty() {
            self.rest = 0;
            return Next::Empty;
        }
        if self.rest > 0 {
            // The remainder must be long enough for a frame.
            let max = if self.rest > Self::FULL { self.rest - MIN_GAP.get() } else { self.rest };
            let part = max.min(Self::FULL);
            self.rest -= part;
            return Next::Gap(ByteCount::new(part));
        }
        if self.until > now {
            return Next::Wait(self.until);
        }
        self.rest = self.gap;
        let Some(packet) = self.queue.pop_front() else { return Next::Empty };
        if let Some(pause) = self.pause {
            self.until = now + pause;
        }
        Next::Packet { class: ClassId(0), packet }
    }
    fn backlog(&self) -> Backlog {
        let bytes = self.queue.iter().map(Packet::len).sum();
        Backlog { packets: self.queue.len() as u64, bytes }
    }
    fn stats(&self, _: ClassId) -> Option<ClassStats> {
        None
    }
}

/// Drives one NIC with packets at given times and checks the element contract.
struct NicHarness {
    element: Duplex<Option<PacingNic>>,
    emitted: Vec<(Instant, Packet)>,
    dropped: Vec<DropReason>,
    received: u64,
    made: u64,
    effects: Effects,
    rng: RandomStream,
}

impl NicHarness {
    fn new(nic: PacingNic) -> NicHarness {
        let element = Duplex::new(Some(nic), None);
        let (effects, rng) = (Effects::default(), RandomStream::new(1, "harness"));
        NicHarness { element, emitted: vec![], dropped: vec![], received: 0, made: 0, effects, rng }
    }
    fn packet(&mut self, now: Instant, packet: Packet) {
        self.run_until(now);
        self.received += 1;
        self.element.on_packet(Port(0), packet, &mut Cx::new(now, &mut self.effects, &mut self.rng));
        self.keep(now);
    }
    fn run_until(&mut self, end: Instant) {
        while let Some(now) = self.element.deadline().filter(|at| *at <= end) {
            self.element.on_wake(&mut Cx::new(now, &mut self.effects, &mut self.rng));
            self.keep(now);
            assert!(self.element.deadline().is_none_or(|next| next > now), "spurious wake-up at {now:?}");
        }
    }
    fn run(&mut self) {
        self.run_until(Instant::FAR_FUTURE);
    }
    fn keep(&mut self, now: Instant) {
        for (port, packet) in self.effects.emitted.drain(..) {
            assert_eq!(port, Port(1));
            self.emitted.push((now, packet));
        }
        self.dropped.extend(self.effects.dropped.drain(..).map(|(_, why)| why));
        self.made += std::mem::take(&mut self.effects.made);
        let out = (self.emitted.len() + self.dropped.len()) as u64;
        assert_eq!(self.received + self.made, out + self.element.held(), "conservation at {now:?}");
    }
    fn nic(&self) -> &PacingNic {
        self.element.direction(Port(0)).as_ref().unwrap()
    }
    /// Arrival times in nanoseconds and IP identifications of packets that are not gap frames.
    fn arrivals(&self) -> Vec<(u64, u16)> {
        let real = self.emitted.iter().filter(|(_, packet)| GapFrameKind::of(packet).is_none());
        real.map(|(at, packet)| (at.as_nanos(), packet.ipv4().unwrap().ident())).collect()
    }
}

const SRC: MacAddr = MacAddr([2, 0, 10, 0, 0, 1]);

/// A frame of 54 B of headers and `payload` bytes.
fn packet(ident: u16, payload: usize) -> Packet {
    packet_to(0, ident, payload)
}

/// Like [`packet`], to a destination port.
fn packet_to(dst_port: u16, ident: u16, payload: usize) -> Packet {
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    Below::new(SRC, MacAddr([2, 0, 10, 0, 0, 2]), addresses, 64).tcp(
        ident,
        &TcpHeader { dst_port, ..TcpHeader::default() },
        Bytes::from(vec![1; payload]),
    )
}

fn config(scheduler: SchedulerKind) -> PacingConfig {
    PacingConfig { scheduler, ..PacingConfig::default() }
}

fn spacer(config: &PacingConfig, rate: Rate, delay: Span, gap: u64, pause: Option<Span>) -> NicHarness {
    let scheduler = Spacer { queue: VecDeque::new(), gap, pause, rest: 0, until: Instant::ZERO };
    let nic = PacingNic::new(&PacingConfig { scheduler: SchedulerKind::Fifo, ..config.clone() }, rate, delay);
    let pacer = Pacer::with(config, Box::new(scheduler)).unwrap();
    NicHarness::new(PacingNic { pacer, ..nic.unwrap() })
}

const GBIT: Rate = Rate::from_mbit(1_000);

/// Breaks: the transmission time of a frame (1514 B + 24 B, or a short frame padded to 60 B) plus the delay.
#[test]
fn a_frame_takes_its_line_bytes_and_the_delay() {
    let nic = PacingNic::new(&config(SchedulerKind::Fifo), GBIT, Span::from_millis(5)).unwrap();
    let mut harness = NicHarness::new(nic);
    for (ident, payload) in [(1, 1_460), (2, 0)] {
        harness.packet(Instant::from_nanos(100), packet(ident, payload));
    }
    harness.run();
    let first = 100 + 1_538 * 8 + 5_000_000;
    assert_eq!(harness.arrivals(), [(first, 1), (first + 84 * 8, 2)]);
    assert_eq!(harness.nic().stats().line_bytes, ByteCount::new(1_538 + 84));
}

/// Breaks: gaps consist of real frames that fill them to the byte, and an idle link carries none.
#[test]
fn gap_frames_fill_the_line() {
    for kind in [GapFrameKind::Pause, GapFrameKind::Experimental, GapFrameKind::ToSelf] {
        let config = PacingConfig { gap_frame: kind, ..PacingConfig::default() };
        let mut harness = spacer(&config, GBIT, Span::ZERO, 3_500, None);
        for ident in 0..3 {
            harness.packet(Instant::ZERO, packet(ident, 1_460));
        }
        harness.run();
        let every = (1_538 + 3_500) * 8;
        let first = 1_538 * 8;
        assert_eq!(harness.arrivals(), [(first, 0), (first + every, 1), (first + 2 * every, 2)]);
        let stats = *harness.nic().stats();
        assert_eq!((stats.gap_frames, stats.gap_bytes), (6, ByteCount::new(7_000)));
        assert_eq!((stats.packets, stats.line_bytes), (3, ByteCount::new(3 * 1_538)));
        let mut end = 0;
        for (at, frame) in &harness.emitted {
            end += wire_len(frame.len()).get() * 8;
            assert_eq!(at.as_nanos(), end, "frames are back to back");
            let is_gap = GapFrameKind::of(frame).inspect(|found| assert_eq!(*found, kind)).is_some();
            assert_eq!(is_gap, frame.ipv4().is_none());
            assert_eq!(frame.macs().0, SRC, "the source address is that of the first packet");
        }
    }
}

/// Breaks: a scheduler that uses timers is asked exactly at the time that it returned, without gap frames.
#[test]
fn waits_are_obeyed() {
    let pause = Span::from_micros(50);
    let mut harness = spacer(&PacingConfig::default(), GBIT, Span::ZERO, 0, Some(pause));
    for ident in 0..3 {
        harness.packet(Instant::from_nanos(u64::from(ident) * 1_000), packet(ident, 1_460));
    }
    harness.run();
    let first = 1_538 * 8;
    assert_eq!(harness.arrivals(), [(first, 0), (first + 50_000, 1), (first + 100_000, 2)]);
    assert_eq!(harness.made, 0);
}

/// Breaks: while one class waits for a timer, packets of other classes are sent; and the rate hint of a
/// connection does not leave the NIC.
#[test]
fn a_timer_of_one_class_does_not_delay_another() {
    let class = |name: &str, rate| ClassConfig { name: name.to_owned(), rate, limit: None };
    let to = |port: u16, class: &str| ClassFilter {
        class: class.to_owned(),
        dst_port: Some(port),
        ..ClassFilter::default()
    };
    let slow = ClassRate::Fixed(Rate::from_mbit(1));
    let config = PacingConfig {
        gaps: Gaps::Timers,
        classes: vec![class("slow", Some(slow)), class("own", Some(ClassRate::Connection))],
        filters: vec![to(1, "slow"), to(2, "own")],
        ..PacingConfig::default()
    };
    let mut harness = NicHarness::new(PacingNic::new(&config, GBIT, Span::ZERO).unwrap());
    for ident in 0..2 {
        harness.packet(Instant::ZERO, packet_to(1, ident, 1_460));
    }
    for ident in 2..4 {
        let mut packet = packet_to(2, ident, 1_460);
        packet.set_pacing_rate(Some(Rate::from_mbit(100)));
        harness.packet(Instant::from_nanos(1_000_000), packet);
    }
    harness.run();
    let (frame, at) = (1_538 * 8, 1_000_000);
    let slow = 1_518 * 8 * 1_000 + frame;
    assert_eq!(harness.arrivals(), [(frame, 0), (at + frame, 2), (at + frame + 1_518 * 80, 3), (slow, 1)]);
    assert!(harness.emitted.iter().all(|(_, packet)| packet.pacing_rate().is_none()));
}

/// Breaks: a device slower than its link sends at the rate of the device on average, and each frame takes its
/// transmission time at the rate of the link.
#[test]
fn a_slow_device_spaces_frames() {
    let slow = PacingConfig { device_rate: Some(Rate::from_mbit(500)), ..config(SchedulerKind::Fifo) };
    let mut harness = NicHarness::new(PacingNic::new(&slow, GBIT, Span::ZERO).unwrap());
    for ident in 0..3 {
        harness.packet(Instant::ZERO, packet(ident, 1_460));
    }
    harness.run();
    let (link, device) = (1_538 * 8, 1_538 * 16);
    assert_eq!(harness.arrivals(), [(link, 0), (link + device, 1), (link + 2 * device, 2)]);
}

/// Breaks: a packet that is too long or does not fit the queue is dropped with the right reason.
#[test]
fn refused_packets_have_their_reason() {
    let small = PacingConfig {
        limit: QueueLimit::Packets(Packets::new(2)),
        mtu: ByteCount::new(1_000),
        ..config(SchedulerKind::Fifo)
    };
    let mut harness = NicHarness::new(PacingNic::new(&small, GBIT, Span::ZERO).unwrap());
    harness.packet(Instant::ZERO, packet(0, 1_460));
    for ident in 1..5 {
        harness.packet(Instant::ZERO, packet(ident, 900)); // one in transmission, two queued
    }
    harness.run();
    assert_eq!(harness.dropped, [DropReason::TooBig, DropReason::QueueFull]);
    assert_eq!(harness.nic().stats().drops, 2);
    assert_eq!((harness.nic().stats().peak_packets, harness.arrivals().len()), (2, 3));
}

/// Breaks: pacing at the limits of link rates (1 kbit/s to 1 Tbit/s) and MTUs (68 B to 65,535 B), with each
/// kind of gap frame: frame n of a class begins n intervals after the first, and at most a minimum gap late.
#[test]
fn slow_and_fast_links_with_small_and_jumbo_mtus_are_paced() {
    use crate::pacing::{ClassConfig, ClassRate, Gaps, layer_2};
    let kinds = [GapFrameKind::Pause, GapFrameKind::Experimental, GapFrameKind::ToSelf];
    for (link, kind) in
        [1_000, 1_234_567, 10_000_000_000, 1_000_000_000_000].into_iter().zip(kinds.into_iter().cycle())
    {
        for mtu in [68, 1_500, 9_000, 65_535] {
            for (gaps, share) in
                [(Gaps::Frames, 3), (Gaps::Frames, 200), (Gaps::Hybrid, 3), (Gaps::Timers, 200)]
            {
                let rate = Rate::from_bits_per_sec(link / share);
                let class =
                    ClassConfig { name: "all".into(), rate: Some(ClassRate::Fixed(rate)), limit: None };
                let config = PacingConfig {
                    gaps,
                    gap_frame: kind,
                    mtu: ByteCount::new(mtu),
                    jitter: Span::ZERO,
                    default: Some("all".into()),
                    classes: vec![class],
                    ..PacingConfig::default()
                };
                let link = Rate::from_bits_per_sec(link);
                let mut harness = NicHarness::new(PacingNic::new(&config, link, Span::ZERO).unwrap());
                let begin = Instant::from_nanos(1_000_000_007);
                for ident in 0..6 {
                    harness.packet(begin, packet(ident, mtu as usize - 40));
                }
                harness.run();
                let len = packet(0, mtu as usize - 40).len();
                // In nanoseconds. The first frame takes the same time as the others.
                let time = |bytes: u64| u128::from(bytes) * 8_000_000_000 / u128::from(link.bits_per_sec());
                for (n, (at, ident)) in (0u64..).zip(harness.arrivals()) {
                    assert_eq!(u64::from(ident), n);
                    let interval = u128::from(layer_2(len).get() * n) * u128::from(link.bits_per_sec());
                    let bytes = u64::try_from(interval / u128::from(rate.bits_per_sec())).unwrap();
                    let exact = u128::from(begin.as_nanos()) + time(bytes + wire_len(len).get());
                    // Byte clocks round to whole bytes, timers to whole nanoseconds.
                    let (early, late) = (time(1) + 1, time(MIN_GAP.get() + 1) + 1);
                    let fine = (exact - early..=exact + late).contains(&u128::from(at));
                    assert!(fine, "{link}, MTU {mtu}, {gaps:?}, 1/{share}: frame {n} at {at}, not {exact}");
                }
                assert_eq!(harness.arrivals().len(), 6);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Breaks: packets are neither lost, duplicated nor reordered, the link keeps its rate, no wake-up is
    /// spurious, and a run is repeatable. The harness itself asserts conservation and increasing deadlines.
    #[test]
    fn a_nic_keeps_the_element_contract(
        arrivals in prop::collection::vec((0u64..60_000, 0usize..1_460), 1..80),
        rate in 1_000_000u64..100_000_000_000, ns in 0u64..100_000, gap in prop::option::of(84u64..20_000),
    ) {
        let run = || {
            let (rate, delay) = (Rate::from_bits_per_sec(rate), Span::from_nanos(ns));
            let pause = gap.is_none().then_some(Span::from_nanos(ns));
            let mut harness = spacer(&PacingConfig::default(), rate, delay, gap.unwrap_or(0), pause);
            let mut now = Instant::ZERO;
            for (n, (apart, payload)) in arrivals.iter().enumerate() {
                now += Span::from_nanos(*apart);
                harness.packet(now, packet(n as u16, *payload));
            }
            harness.run();
            harness
        };
        let harness = run();
        let received: Vec<_> = (0..arrivals.len() as u16).collect();
        prop_assert_eq!(harness.arrivals().iter().map(|(_, ident)| *ident).collect::<Vec<_>>(), received);
        prop_assert!(harness.emitted.iter().all(|(_, p)| GapFrameKind::of(p).is_none_or(|k| k == GapFrameKind::Pause)));
        // The distance of two frames is at least the transmission time of the second.
        for pair in harness.emitted.windows(2) {
            let bits = u128::from(wire_len(pair[1].1.len()).bits());
            let min = bits * 1_000_000_000 / u128::from(rate);
            prop_assert!(u128::from(pair[1].0.since(pair[0].0).as_nanos()) >= min);
        }
        let shown = |harness: &NicHarness| format!("{:?} {:?}", harness.emitted, harness.element.inspect());
        prop_assert_eq!(shown(&harness), shown(&run()));
    }

    /// Breaks: each scheduler works in a NIC: packets of a class stay in order, none is stuck, every gap has
    /// a frame of its length, no wake-up is spurious. The harness itself asserts conservation and increasing
    /// deadlines.
    #[test]
    fn every_scheduler_works_in_a_nic(
        arrivals in prop::collection::vec((0u64..200_000, 0u16..3, 0usize..1_460), 1..60),
        rate in 10_000_000u64..40_000_000_000, share in 1u64..900, ns in 0u64..100_000,
    ) {
        let rate = Rate::from_bits_per_sec(rate);
        let part = |of: u64| Some(ClassRate::Fixed(Rate::from_bits_per_sec(rate.bits_per_sec() / 1_000 * of)));
        let class = |name: &str, rate| ClassConfig { name: name.to_owned(), rate, limit: None };
        let classes =
            vec![class("a", part(share)), class("b", part((950 - share).max(1))), class("c", None)];
        let to = |port: u16, class: &str| ClassFilter {
            class: class.to_owned(),
            dst_port: Some(port),
            ..ClassFilter::default()
        };
        let filters = vec![to(0, "a"), to(1, "b")];
        let kinds = [
            (SchedulerKind::Edf, Gaps::Frames),
            (SchedulerKind::Edf, Gaps::Timers),
            (SchedulerKind::Edf, Gaps::Hybrid),
            (SchedulerKind::Psp, Gaps::Frames),
            (SchedulerKind::TokenBucket, Gaps::Frames),
            (SchedulerKind::Fq, Gaps::Frames),
            (SchedulerKind::Fifo, Gaps::Frames),
        ];
        for (scheduler, gaps) in kinds {
            let config = PacingConfig {
                scheduler,
                gaps,
                classes: classes.clone(),
                filters: filters.clone(),
                default: Some("c".to_owned()),
                ..PacingConfig::default()
            };
            let mut harness = NicHarness::new(PacingNic::new(&config, rate, Span::from_nanos(ns)).unwrap());
            let mut now = Instant::ZERO;
            for (n, (apart, class, payload)) in arrivals.iter().enumerate() {
                now += Span::from_nanos(*apart);
                harness.packet(now, packet_to(*class, n as u16, *payload));
            }
            harness.run();
            let mut received: Vec<_> = harness.arrivals().iter().map(|(_, ident)| *ident).collect();
            for class in 0..3 {
                let of_class = |ident: &&u16| arrivals[usize::from(**ident)].1 == class;
                prop_assert!(received.iter().filter(of_class).is_sorted(), "{:?}", scheduler);
            }
            received.sort_unstable();
            prop_assert_eq!(received, (0..arrivals.len() as u16).collect::<Vec<_>>(), "{:?}", scheduler);
            prop_assert_eq!(harness.made, harness.nic().stats().gap_frames);
            let frames = matches!((scheduler, gaps), (SchedulerKind::Edf, Gaps::Frames | Gaps::Hybrid) | (SchedulerKind::Psp, _));
            prop_assert!(frames || harness.made == 0, "{:?}", scheduler);
        }
    }

    /// Breaks: a NIC that does not pace behaves exactly like a plain link.
    #[test]
    fn without_pacing_it_is_a_plain_link(
        arrivals in prop::collection::vec((0u64..60_000, 0usize..1_460), 1..60),
        rate in 1_000_000u64..40_000_000_000, ns in 0u64..100_000,
    ) {
        let (rate, delay) = (Rate::from_bits_per_sec(rate), Span::from_nanos(ns));
        let mut harness = NicHarness::new(PacingNic::new(&config(SchedulerKind::Fifo), rate, delay).unwrap());
        let mut link = Serialiser::new(rate);
        let mut expected = Vec::new();
        let mut now = Instant::ZERO;
        for (n, (apart, payload)) in arrivals.into_iter().enumerate() {
            now += Span::from_nanos(apart);
            let packet = packet(n as u16, payload);
            let bytes = farpace_path::Framing::ETHERNET.wire_len(packet.len());
            expected.push(((link.send(now, bytes) + delay).as_nanos(), n as u16));
            harness.packet(now, packet);
        }
        harness.run();
        prop_assert_eq!(harness.arrivals(), expected);
    }
}
