//! Synthetic captures with known results.

use super::*;
use crate::pacing::layer_2;
use bytes::Bytes;
use farpace_wire::{AddressPair, Below, EtherType, MacAddr, Packet, TcpFlags, TcpHeader, UdpHeader};
use proptest::prelude::*;

/// A frame: time, captured bytes, length.
type Frame = (u64, Vec<u8>, u64);

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.write_frame(&mut bytes);
    bytes
}

fn below() -> Below {
    let addresses = AddressPair::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    Below::new(MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]), addresses, 64)
}

/// The headers of a datagram from `port`, of a frame of `len` bytes.
fn udp(time: u64, port: u16, len: u64) -> Frame {
    let header = UdpHeader { src_port: port, dst_port: 9 };
    (time, bytes_of(&below().udp(1, header, Bytes::new()).unwrap()), len)
}

fn examine_at(question: &ProofQuestion, frames: &[Frame], tick: Span) -> (Vec<FlowProof>, FirstPass) {
    let sighting = |number, frame: &'_ Frame| (number, Instant::from_nanos(frame.0), ByteCount::new(frame.2));
    let all: Vec<_> = frames.iter().zip(1..).map(|(frame, n)| (sighting(n, frame), frame)).collect();
    let mut first_pass = FirstPass::new(question.clone());
    let see = |((number, time, len), frame): &((u64, Instant, ByteCount), &Frame),
               to: &mut dyn FnMut(&CapturedFrame<'_>)| {
        to(&CapturedFrame { number: *number, interface: 0, time: *time, tick, bytes: &frame.1, len: *len });
    };
    all.iter().for_each(|frame| see(frame, &mut |s| first_pass.see(s)));
    let mut second_pass = SecondPass::new(first_pass);
    all.iter().for_each(|frame| see(frame, &mut |s| second_pass.see(s)));
    second_pass.finish()
}

fn examine(frames: &[Frame]) -> FlowProof {
    let (proofs, _) = examine_at(&ProofQuestion::default(), frames, Span::from_nanos(1));
    assert_eq!(proofs.len(), 1);
    proofs.into_iter().next().unwrap()
}

/// Full frames of one flow at these times.
fn full(times: impl IntoIterator<Item = u64>) -> Vec<Frame> {
    times.into_iter().map(|time| udp(time, 7, 1_514)).collect()
}

/// Breaks: the simplest case: an even flow has the same rate per any number of packets, one interval, and a
/// queue of one frame.
#[test]
fn an_even_flow_is_precise() {
    // 1,518 B of layer 2 every 121,440 ns: 100 Mbit/s.
    let proof = examine(&full((0..1_000).map(|i| 5_000 + i * 121_440)));
    assert_eq!(proof.verdict, ProofVerdict::Precise);
    assert_eq!(proof.mean, Some(Rate::from_mbit(100)));
    assert_eq!(proof.goodput, Some(Rate::from_bits_per_sec(98_814_229)), "1,500 of 1,518 B");
    let peak = *proof.peak().unwrap();
    assert_eq!((peak.queue.get(), peak.number, peak.time.as_nanos()), (1_518, 1, 5_000));
    assert_eq!(proof.peak_frames(), Some(1.0));
    for per in &proof.per_packets {
        let rate = Some(Rate::from_mbit(100));
        assert_eq!((per.min, per.mean(), per.max, per.at_once), (rate, rate, rate, 0));
        assert_eq!(per.count, 1_000 - per.n);
    }
    assert_eq!(proof.intervals.distinct(), Some(&[(Span::from_nanos(121_440), 999)][..]));
    assert_eq!(proof.train.packets, 1);
    let bins = proof.queue_over_time.unwrap();
    assert_eq!(bins.bins().iter().max(), Some(&1_518));
    assert_eq!(proof.bytes_over_time.unwrap().bins().iter().sum::<u64>(), 1_518_000);
}

/// Breaks: ON-OFF traffic of period t has a queue of t (avg/max) (max - avg) (paper §4.1), at the right
/// packet.
#[test]
fn on_off_traffic_has_the_papers_queue() {
    // 100 frames at 1 Gbit/s of layer 2 (12,144 ns each), then silence: 100 Mbit/s over a period of 12.144
    // ms.
    let times = (0..40).flat_map(|period| (0..100).map(move |i| period * 12_144_000 + i * 12_144));
    let proof = examine(&full(times.chain([40 * 12_144_000])));
    assert_eq!((proof.mean, proof.verdict), (Some(Rate::from_mbit(100)), ProofVerdict::NotPrecise));
    let (t, avg, max) = (12.144e-3, 100e6 / 8.0, 1e9 / 8.0);
    let papers = t * (avg / max) * (max - avg);
    let peak = proof.peak().unwrap();
    // The last frame counts in full when it arrives. A tenth of it would have left by its end.
    let whole = 1_518.0 * 0.1;
    assert!((peak.queue.get() as f64 - papers - whole).abs() < 2.0, "{} for {papers}", peak.queue);
    assert_eq!(peak.number, 100, "the last of the first burst");
    // A full frame takes 12,304 ns at 1 Gbit/s, and 12,144 ns are less: the link must be faster.
    assert_eq!(proof.link.map(|link| (link.rate, link.assumed)), Some((Rate::from_mbit(2_500), true)));
    let question = ProofQuestion { link_rate: Some(Rate::from_mbit(1_000)), ..ProofQuestion::default() };
    let times = (0..40).flat_map(|period| (0..100).map(move |i| period * 12_144_000 + i * 12_144));
    let proof = &examine_at(&question, &full(times), Span::from_nanos(1)).0[0];
    assert_eq!((proof.train.packets, proof.train.number), (100, 1));
}

/// Breaks: a flow is compared with the configured rate, so that pauses do not count against it.
#[test]
fn pauses_do_not_count_against_a_given_rate() {
    // 300 frames at 100 Mbit/s, a pause of a second, 300 frames.
    let times = (0..600u64).map(|i| i * 121_440 + if i < 300 { 0 } else { 1_000_000_000 });
    let frames = full(times);
    assert_eq!(examine(&frames).verdict, ProofVerdict::NotPrecise);
    let question = ProofQuestion { rate: Some(Rate::from_mbit(100)), ..ProofQuestion::default() };
    let proof = &examine_at(&question, &frames, Span::from_nanos(1)).0[0];
    assert_eq!(proof.verdict, ProofVerdict::Precise);
    assert_eq!(proof.at_rate.unwrap().queue, ByteCount::new(1_518));
    assert!(
        proof.at_mean.unwrap().queue > ByteCount::new(100_000),
        "the queue at the mean rate is reported too"
    );
    let slower = ProofQuestion { rate: Some(Rate::from_mbit(99)), ..ProofQuestion::default() };
    assert_eq!(examine_at(&slower, &frames, Span::from_nanos(1)).0[0].verdict, ProofVerdict::NotPrecise);
}

/// Breaks: there is no verdict where the capture allows none, and the reason is given.
#[test]
fn doubts_are_reported() {
    let even = |n: u64| full((0..n).map(|i| i * 121_440));
    let long = |len: u64| -> Vec<Frame> { (0..200).map(|i| udp(i * 121_440, 7, len)).collect() };
    let mtu = |mtu| ProofQuestion { mtu: Some(ByteCount::new(mtu)), ..ProofQuestion::default() };
    let none = ProofQuestion::default();
    let (fine, coarse) = (Span::from_nanos(1), Span::from_micros(130));
    for (question, frames, tick, expected) in [
        (&none, even(99), fine, "few_packets"),
        (&none, even(100), fine, "precise"),
        (&none, even(200), coarse, "coarse_clock"),
        (&none, full([7; 200]), fine, "no_duration"),
        (&none, long(1_515), fine, "long_frames"),
        (&none, long(9_014), fine, "long_frames"),
        (&none, long(60_014), fine, "super_segments"),
        (&mtu(9_000), long(9_014), fine, "precise"),
        (&mtu(9_000), long(9_015), fine, "super_segments"),
        (&mtu(1_500), long(2_962), fine, "super_segments"),
    ] {
        let proof = &examine_at(question, &frames, tick).0[0];
        let name = match proof.verdict {
            ProofVerdict::CannotTell(doubt) => doubt.name(),
            verdict => verdict.name(),
        };
        assert_eq!(name, expected, "{}", proof.verdict);
    }
}

/// Breaks: a flow that exceeds two frames by less than the resolution of its clock gets no verdict, and one
/// within two frames is precise.
#[test]
fn the_clock_decides_close_cases() {
    let early = |by: u64| full((0..1_000).map(|i| if i == 500 { i * 121_440 - by } else { i * 121_440 }));
    let verdict = |by: u64, tick: u64| {
        let question = ProofQuestion { tick: Span::from_nanos(tick), ..ProofQuestion::default() };
        examine_at(&question, &early(by), Span::from_nanos(1)).0[0].verdict
    };
    assert_eq!(verdict(121_440, 1), ProofVerdict::Precise, "two at once are two frames");
    assert_eq!(verdict(0, 1), ProofVerdict::Precise);
    // 2.2 frames by a clock of 20 us, with an error of 2 x 250 B.
    let late = |tick: u64| {
        let times = (0..1_000u64).map(|i| match i {
            500..502 => 502 * 121_440 - 97_152,
            _ => i * 121_440,
        });
        let question = ProofQuestion { tick: Span::from_nanos(tick), ..ProofQuestion::default() };
        let proof = examine_at(&question, &full(times), Span::from_nanos(1)).0.remove(0);
        (proof.peak_frames().unwrap(), proof.verdict)
    };
    let (frames, verdict) = late(1);
    assert!((2.19..2.21).contains(&frames), "{frames}");
    assert_eq!(verdict, ProofVerdict::NotPrecise);
    assert_eq!(late(20_000).1, ProofVerdict::CannotTell(Doubt::WithinClockError));
}

/// Breaks: flows are judged separately, with their own MTUs, and the largest is first.
#[test]
fn flows_are_separated() {
    let mut frames = Vec::new();
    for i in 0..200u64 {
        frames.push(udp(i * 100_000, 7, 1_514));
        frames.push(udp(i * 100_000 + 12_304, 8, 60));
    }
    let (proofs, first_pass) = examine_at(&ProofQuestion::default(), &frames, Span::from_nanos(1));
    let shown: Vec<_> = proofs
        .iter()
        .map(|p| (p.totals.key.to_string(), p.full_frame.get(), p.totals.total.packets))
        .collect();
    assert_eq!(
        shown,
        [
            ("UDP 10.0.0.1:7 > 10.0.0.2:9".to_owned(), 1_518, 200),
            ("UDP 10.0.0.1:8 > 10.0.0.2:9".to_owned(), 64, 200)
        ]
    );
    assert!(proofs.iter().all(|p| p.verdict == ProofVerdict::Precise));
    assert_eq!(first_pass.all().packets, 400);
    let question = ProofQuestion { flows: vec!["8".parse().unwrap()], ..ProofQuestion::default() };
    let (proofs, first_pass) = examine_at(&question, &frames, Span::from_nanos(1));
    assert_eq!((proofs.len(), first_pass.other().packets, first_pass.all().packets), (1, 0, 400));
}

/// Breaks: gap frames are counted separately from flows, with their share of the link.
#[test]
fn gap_frames_are_counted_separately() {
    let gap = Packet::from_link(
        MacAddr([2, 0, 0, 0, 0, 1]),
        MacAddr([1, 0x80, 0xc2, 0, 0, 1]),
        EtherType::MAC_CONTROL,
        Bytes::from_static(&[0, 1, 0, 0]),
    );
    // Half of the link of 1 Gbit/s: a full frame, a gap of the same size.
    let mut frames = Vec::new();
    for i in 0..200u64 {
        frames.push(udp(i * 24_608, 7, 1_514));
        frames.push((i * 24_608 + 12_304, bytes_of(&gap), 1_514));
    }
    let (proofs, first_pass) = examine_at(&ProofQuestion::default(), &frames, Span::from_nanos(1));
    assert_eq!((proofs.len(), proofs[0].verdict), (1, ProofVerdict::Precise));
    let (_, interface) = first_pass.interfaces().next().unwrap();
    assert_eq!(interface.gaps.frames, 200);
    assert_eq!(interface.gaps.bytes, ByteCount::new(200 * 1_518));
    assert_eq!(interface.gaps.line_bytes, ByteCount::new(200 * 1_538));
    assert_eq!(interface.line_bytes, ByteCount::new(400 * 1_538));
    // Gap frames fill the link, so the rate of the link can be derived.
    assert_eq!(first_pass.link(0).map(|link| link.rate), Some(Rate::from_mbit(1_000)));
}

/// Breaks: a capture above segmentation offload gets no verdict if the MSS shows that frames on the wire are
/// shorter.
#[test]
fn the_mss_limits_the_length_of_frames() {
    let tcp = |time, from_a: bool, syn: bool, payload: u64| -> Frame {
        let below = if from_a { below() } else { below().reversed() };
        let (src_port, dst_port) = if from_a { (7, 9) } else { (9, 7) };
        let flags = if syn { TcpFlags::SYN } else { TcpFlags::ACK };
        let mut header = TcpHeader { src_port, dst_port, flags, ..TcpHeader::default() };
        header.options.mss = syn.then_some(1_448);
        let bytes = bytes_of(&below.tcp(1, &header, Bytes::new()));
        let len = bytes.len() as u64 + payload;
        (time, bytes, len)
    };
    let verdict = |payload| {
        let mut frames = vec![tcp(0, true, true, 0), tcp(10, false, true, 0)];
        frames.extend((1..300).map(|i| tcp(i * 1_000_000, true, false, payload)));
        examine_at(&ProofQuestion::default(), &frames, Span::from_nanos(1)).0[0].verdict
    };
    assert_eq!(verdict(1_448), ProofVerdict::Precise);
    let ProofVerdict::CannotTell(Doubt::SuperSegments { longest, limit }) = verdict(2_896) else {
        panic!("{}", verdict(2_896));
    };
    assert_eq!((longest.get(), limit.get()), (54 + 2_896, 54 + 1_448));
}

/// Breaks: a clock that was set back counts as a coarse clock, and the flow is not judged even or bursty.
#[test]
fn a_decreasing_clock_is_a_coarse_clock() {
    let times = (0..500u64).map(|i| 100_000_000 + i * 121_440 - if i >= 250 { 20_000_000 } else { 0 });
    let proof = examine(&full(times));
    assert_eq!(proof.totals.total.backwards, 164, "until the old time is reached again");
    assert_eq!(proof.totals.total.furthest_back, Span::from_nanos(20_000_000 - 121_440));
    assert!(
        matches!(proof.verdict, ProofVerdict::CannotTell(Doubt::CoarseClock { .. })),
        "{}",
        proof.verdict
    );
}

/// Breaks: memory is bounded for a capture with a flow per packet, and frames beyond the limit are counted.
#[test]
fn flows_are_limited() {
    let mut frames = Vec::new();
    for i in 0..MAX_FLOWS as u64 + 5 {
        frames.push(udp(i, i as u16, 1_514));
    }
    frames.push((0, vec![1, 2, 3], 60));
    let (proofs, first_pass) = examine_at(&ProofQuestion::default(), &frames, Span::from_nanos(1));
    assert_eq!(proofs.len(), MAX_FLOWS);
    assert_eq!((first_pass.other().packets, first_pass.unreadable().packets), (5, 1));
    assert_eq!(proofs.iter().filter(|p| p.bytes_over_time.is_some()).count(), MAX_TIMELINES);
}

/// Breaks: a microsecond clock in a file with nanosecond times is recognised.
#[test]
fn a_coarser_clock_is_recognised() {
    let proof = examine(&full((0..500u64).map(|i| i * 121_440 / 1_000 * 1_000)));
    assert_eq!(proof.clock.tick, Span::from_micros(1));
    // 12.5 B per tick, twice, rounded up.
    assert_eq!(proof.clock.queue, ByteCount::new(26));
}

proptest! {
    /// Breaks: queue, peak and curve equal a direct computation with fractions, and totals and intervals
    /// count every frame.
    #[test]
    fn results_equal_a_direct_computation(packets in prop::collection::vec((0u64..400_000, 60u64..1_515), 2..150)) {
        let mut now = 1_000;
        let frames: Vec<Frame> = packets.iter().map(|(gap, len)| { now += gap; udp(now, 7, *len) }).collect();
        let proof = examine(&frames);
        let sizes: Vec<u64> = frames.iter().map(|f| layer_2(ByteCount::new(f.2)).get()).collect();
        let (first, last) = (frames[0].0, frames[frames.len() - 1].0);
        prop_assert_eq!(proof.totals.total.bytes.get(), sizes.iter().sum::<u64>());
        prop_assert_eq!(proof.intervals.bins().map(|b| b.2).sum::<u64>(), packets.len() as u64 - 1);
        prop_assert_eq!(proof.bytes_over_time.as_ref().unwrap().bins().iter().sum::<u64>(), sizes.iter().sum::<u64>());
        if first == last {
            prop_assert_eq!(proof.peak(), None);
            return Ok(());
        }
        // Bytes per nanosecond, as a fraction.
        let (num, den) = (u128::from(sizes[..sizes.len() - 1].iter().sum::<u64>()), u128::from(last - first));
        let (mut queue, mut before, mut max, mut number) = (0u128, first, 0u128, 0);
        for (i, (frame, size)) in frames.iter().zip(&sizes).enumerate() {
            queue = queue.saturating_sub(num * u128::from(frame.0 - before)) + u128::from(*size) * den;
            before = frame.0;
            if queue.div_ceil(den) > max.div_ceil(den) {
                (max, number) = (queue, i as u64 + 1);
            }
        }
        let peak = proof.peak().unwrap();
        prop_assert_eq!((u128::from(peak.queue.get()), peak.number), (max.div_ceil(den), number));
        let curve = proof.queue_over_time.as_ref().unwrap();
        prop_assert_eq!(curve.bins().iter().max().copied(), Some(peak.queue.get()), "the curve contains the \
                                                                                     peak");
    }

    /// Breaks: no frame causes a panic, whatever its bytes, length and time.
    #[test]
    fn no_frame_panics(
        frames in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..80), any::<u32>()), 0..40),
        ether_type in prop::sample::select(vec![0x0800u16, 0x86dd, 0x8100, 0x8808]),
        rate in prop::option::of(any::<u64>()),
        tick in any::<u64>(),
    ) {
        let frames: Vec<Frame> = frames.into_iter().map(|(time, mut bytes, len)| {
            if let Some(field) = bytes.get_mut(12..14) {
                field.copy_from_slice(&ether_type.to_be_bytes());
            }
            if let Some(version) = bytes.get_mut(14) {
                *version = if ether_type == 0x0800 { 0x45 } else { 0x60 };
            }
            (time, bytes, u64::from(len))
        }).collect();
        let question = ProofQuestion { rate: rate.map(Rate::from_bits_per_sec), ..ProofQuestion::default() };
        let (proofs, first_pass) = examine_at(&question, &frames, Span::from_nanos(tick));
        let gaps: u64 = first_pass.interfaces().map(|(_, i)| i.gaps.frames + i.gaps.others).sum();
        let in_flows: u64 = proofs.iter().map(|p| p.totals.total.packets).sum();
        prop_assert_eq!(in_flows + gaps + first_pass.unreadable().packets, frames.len() as u64);
    }
}
