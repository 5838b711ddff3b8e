//! Order, limits, and conservation.

use super::*;
use crate::multi_nic::segment::made::segment;
use proptest::prelude::*;

const ACK: TcpFlags = TcpFlags::ACK;
const LEN: usize = 1_000;

fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000)
}
/// The maximum time and the maximum size of held frames.
type Limits = (Span, ByteCount);

fn limits(time_us: u64, bytes: u64) -> Limits {
    (Span::from_micros(time_us), ByteCount::new(bytes))
}
/// Segment number `n` of a flow whose sequence number wraps around at the third.
fn data(path: u8, port: u16, n: u32) -> Packet {
    segment(path, port, (u32::MAX - 2_999).wrapping_add(n * LEN as u32), LEN, ACK, None)
}
fn number(packet: &Packet) -> (u16, u32) {
    let tcp = packet.tcp().expect("a segment");
    (tcp.src_port(), tcp.seq().get().wrapping_sub(u32::MAX - 2_999) / LEN as u32)
}

/// Drives one resequencer and checks its invariants.
struct ResequencerHarness {
    resequencer: Resequencer,
    limits: Limits,
    /// Where to send repair requests.
    repair_path: Option<RepairRequestPath>,
    /// Requested segments, with the source port of their flow.
    is_requested: Vec<(u16, Vec<u32>)>,
    now: Instant,
    pushed: Vec<(Instant, (u16, u32))>,
    out: Vec<(Instant, (u16, u32))>,
}

impl ResequencerHarness {
    fn new(limits: Limits) -> ResequencerHarness {
        let resequencer = Resequencer::new(limits.0, limits.1);
        ResequencerHarness {
            resequencer,
            limits,
            repair_path: None,
            is_requested: Vec::new(),
            now: us(1),
            pushed: Vec::new(),
            out: Vec::new(),
        }
    }
    /// Senders have retransmit caches, at this round trip time.
    fn with_repair(limits: Limits, rtt_us: u64) -> ResequencerHarness {
        let rtt = Span::from_micros(rtt_us);
        ResequencerHarness {
            repair_path: Some(RepairRequestPath { nic: NicId(0), to: MacAddr([2; 6]), rtt }),
            ..ResequencerHarness::new(limits)
        }
    }
    fn until(&mut self, then: Instant) {
        while let Some(at) = self.resequencer.deadline().filter(|at| *at <= then) {
            assert!(at >= self.now, "a deadline in the past");
            self.now = at;
            let mut out = Vec::new();
            self.resequencer.on_deadline(at, &mut out);
            let is_requested = self.is_requested.len();
            self.take_requests();
            assert!(
                !out.is_empty() || self.repair_path.is_some() || self.is_requested.len() > is_requested,
                "spurious wake-up"
            );
            assert!(self.resequencer.deadline().is_none_or(|next| next > at));
            self.take(out);
        }
        self.now = then;
    }
    fn push(&mut self, at: Instant, path: u8, packet: Packet) -> Vec<u32> {
        self.until(at);
        self.pushed.push((at, number(&packet)));
        let mut out = Vec::new();
        let repair_path = self.repair_path;
        self.resequencer.push(at, NicId(path), packet, |_| repair_path, &mut out);
        self.take_requests();
        let numbers = out.iter().map(|packet| number(packet).1).collect();
        self.take(out);
        numbers
    }
    fn take_requests(&mut self) {
        for (_, missing) in self.resequencer.take_requests() {
            assert!(!missing.refused);
            let n = |seq: farpace_units::Seq| seq.get().wrapping_sub(u32::MAX - 2_999) / LEN as u32;
            let of = |hole: &crate::multi_nic::repair::MissingRange| n(hole.start)..n(hole.end);
            let port = (missing.flow.parts().1 >> 16) as u16;
            self.is_requested.push((port, missing.holes.iter().flat_map(of).collect()));
        }
    }
    fn take(&mut self, out: Vec<Packet>) {
        self.out.extend(out.iter().map(|packet| (self.now, number(packet))));
        let inside = self.pushed.len() - self.out.len();
        assert_eq!(self.resequencer.held(), inside as u64);
        assert!(self.resequencer.held_bytes() <= self.limits.1);
        assert_eq!(
            self.resequencer.held() == 0,
            self.resequencer.held_bytes().is_zero() && self.resequencer.deadline().is_none()
        );
    }
    /// Everything has been passed on, once, and in time.
    fn finish(mut self) -> Vec<(Instant, (u16, u32))> {
        self.until(Instant::from_nanos(u64::MAX / 2));
        let sorted = |list: &[(Instant, (u16, u32))]| {
            let mut numbers: Vec<_> = list.iter().map(|(_, number)| *number).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(sorted(&self.out), sorted(&self.pushed));
        for (at, number) in &self.out {
            let arrivals_of_it = self.pushed.iter().filter(|(_, other)| other == number).map(|(at, _)| *at);
            assert!(
                arrivals_of_it.clone().any(|arrivals_of_it| at.since(arrivals_of_it) <= self.limits.0),
                "{number:?} waited too long"
            );
        }
        self.out
    }
}

/// Breaks: segments of two paths are put in order, so that the receiver sends no duplicate ACKs.
#[test]
fn segments_wait_for_those_before_them() {
    let mut harness = ResequencerHarness::new(limits(10_000, 1_000_000));
    assert_eq!(harness.push(us(10), 0, data(0, 1, 0)), [0]);
    assert_eq!(harness.push(us(20), 1, data(1, 1, 1)), [1]);
    assert!(harness.push(us(30), 0, data(0, 1, 3)).is_empty());
    assert!(harness.push(us(40), 0, data(0, 1, 5)).is_empty());
    assert_eq!(harness.push(us(50), 1, data(1, 1, 2)), [2, 3]);
    assert_eq!(harness.push(us(60), 1, data(1, 1, 4)), [4, 5]);
    assert_eq!(harness.push(us(70), 1, data(1, 1, 4)), [4], "a retransmission passes");
    harness.finish();
}

/// Breaks: a lost segment does not block a connection.
#[test]
fn lost_segments_are_not_waited_for() {
    // By time: the other path might still deliver it.
    let mut harness = ResequencerHarness::new(limits(1_000, 1_000_000));
    for n in 0..4 {
        harness.push(us(n * 1_000), (n % 2) as u8, data((n % 2) as u8, 1, n as u32));
    }
    assert!(harness.push(us(4_000), 0, data(0, 1, 5)).is_empty());
    assert!(harness.push(us(4_500), 0, data(0, 1, 6)).is_empty());
    assert!(harness.push(us(4_600), 0, data(0, 1, 8)).is_empty());
    harness.until(us(4_999));
    assert_eq!(harness.resequencer.held(), 3);
    harness.until(us(5_000));
    assert_eq!(harness.resequencer.held(), 1, "the next hole was detected later");
    assert_eq!(harness.resequencer.deadline(), Some(us(5_600)));
    // By order: both paths have delivered segments from behind the hole.
    assert_eq!(harness.push(us(5_100), 1, data(1, 1, 9)), [8, 9]);
    assert_eq!(harness.resequencer.timeouts(), 2);
    harness.finish();
}

/// Breaks: a loss on a single path does not cost the timeout.
#[test]
fn a_flow_with_one_path_is_not_delayed() {
    let mut harness = ResequencerHarness::new(limits(1_000, 1_000_000));
    (0..4).for_each(|n| drop(harness.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert_eq!(harness.push(us(3_010), 0, data(0, 1, 5)), [5]);
    // A second path that has been silent for long is not waited for.
    harness.push(us(3_020), 1, data(1, 1, 6));
    (7..40).for_each(|n| drop(harness.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert_eq!(harness.push(us(39_010), 0, data(0, 1, 41)), [41]);
    harness.finish();
}

/// Breaks: a connection with a small window and a long round trip, as over a satellite, is put in order,
/// though all its paths are silent for most of each round trip.
#[test]
fn a_flow_with_pauses_keeps_its_paths() {
    let mut harness = ResequencerHarness::new(limits(1_000, 1_000_000));
    for round in 0..50_u32 {
        let n = round * 4;
        let at = |then: u64| us(u64::from(round) * 500_000 + then);
        assert_eq!(harness.push(at(10), 0, data(0, 1, n)), [n]);
        let early = [harness.push(at(20), 0, data(0, 1, n + 2)), harness.push(at(30), 0, data(0, 1, n + 3))];
        assert!(early.iter().all(Vec::is_empty), "round {round}: {early:?}; the other path is slower");
        assert_eq!(harness.push(at(40), 1, data(0, 1, n + 1)), [n + 1, n + 2, n + 3], "round {round}");
    }
    harness.finish();
}

/// Breaks: ACKs, the beginning and end of connections, and other protocols do not wait for data.
#[test]
fn other_frames_pass_at_once() {
    let mut harness = ResequencerHarness::new(limits(10_000, 1_000_000));
    let at = |n: u32| (u32::MAX - 2_999).wrapping_add(n * LEN as u32);
    let passes = |harness: &mut ResequencerHarness, packet: Packet| {
        let mut out = Vec::new();
        harness.resequencer.push(us(50), NicId(0), packet, |_| None, &mut out);
        out.len()
    };
    assert_eq!(passes(&mut harness, segment(0, 1, at(0) - 1, 0, TcpFlags::SYN, None)), 1);
    assert!(harness.push(us(50), 0, data(0, 1, 1)).is_empty(), "the SYN sets the next sequence number");
    assert_eq!(passes(&mut harness, segment(0, 1, at(5), 0, ACK, None)), 1);
    assert_eq!(passes(&mut harness, segment(0, 1, at(9), 10, ACK.with(TcpFlags::FIN), None)), 1);
    let arp =
        Packet::from_link(MacAddr([2; 6]), MacAddr([4; 6]), farpace_wire::EtherType::ARP, vec![0; 28].into());
    assert_eq!(passes(&mut harness, arp), 1);
    // A RST releases held segments, which precede it.
    assert_eq!(passes(&mut harness, segment(0, 1, at(5), 0, TcpFlags::RST, None)), 2);
    assert_eq!((harness.resequencer.held(), harness.resequencer.deadline()), (0, None));
}

/// Breaks: a connection that reuses the ports of an older one is put in order, though its SYN was not seen.
#[test]
fn a_flow_without_a_seen_syn_is_put_in_order() {
    let mut harness = ResequencerHarness::new(limits(10_000, 1_000_000));
    let at = |n: u32, path| segment(path, 1, 7_000_u32.wrapping_add(n), LEN, ACK, None);
    harness.push(us(10), 0, at(0, 0));
    let mut n = 0_u32;
    for far in [1 << 31, (1 << 30) + 5_000, u32::MAX - (1 << 30)] {
        n = n.wrapping_add(far);
        assert_eq!(harness.push(us(20), 0, at(n, 0)).len(), 1);
        assert!(harness.push(us(20), 0, at(n.wrapping_add(2_000), 0)).is_empty());
        assert_eq!(harness.push(us(20), 1, at(n.wrapping_add(1_000), 1)).len(), 2);
    }
    harness.finish();
}

/// Breaks: the size of held segments is bounded.
#[test]
fn held_bytes_are_limited() {
    let mut harness = ResequencerHarness::new(limits(10_000, 3_500));
    for port in [1, 2] {
        harness.push(us(1), 0, data(0, port, 0));
    }
    for n in [2, 4, 6] {
        assert!(harness.push(us(10), 0, data(0, 1, n)).is_empty());
    }
    assert_eq!(harness.push(us(11), 0, data(0, 2, 5)), [5], "other flows use all memory");
    assert_eq!(harness.push(us(12), 0, data(0, 1, 8)), [2], "the oldest hole is abandoned");
    assert_eq!(harness.push(us(13), 1, data(1, 1, 3)), [3, 4]);
    harness.finish();
    // Flows in the slot of a flow that holds segments pass.
    let mut harness = ResequencerHarness::new(limits(10_000, 1_000_000));
    for port in 0..20_000 {
        harness.push(us(20), 0, data(0, port, 0));
        harness.push(us(20), 0, data(0, port, 2));
    }
    assert!(harness.resequencer.held() <= FLOWS as u64);
}

/// Breaks: a segment that a path has lost is requested from its sender, so that TCP does not see the loss.
#[test]
fn holes_that_all_paths_have_passed_are_requested() {
    let mut harness = ResequencerHarness::with_repair(limits(100_000, 1_000_000), 5_000);
    for n in 0..4 {
        harness.push(us(n * 1_000), (n % 2) as u8, data((n % 2) as u8, 1, n as u32));
    }
    assert!(harness.push(us(4_000), 0, data(0, 1, 6)).is_empty());
    assert!(harness.push(us(4_100), 0, data(0, 1, 8)).is_empty());
    assert!(harness.is_requested.is_empty(), "the other path may deliver it");
    assert!(harness.push(us(4_200), 1, data(1, 1, 7)).is_empty());
    assert_eq!(harness.is_requested, [(1, vec![4, 5])]);
    assert!(harness.push(us(4_300), 1, data(1, 1, 10)).is_empty());
    assert_eq!(harness.is_requested.len(), 1, "the first path may still deliver number nine");
    // Half a round trip after the detection, the requests are repeated, including holes that may still be
    // filled.
    harness.until(us(6_800));
    assert_eq!(harness.is_requested[1..], [(1, vec![4, 5, 9])]);
    assert_eq!(harness.push(us(7_000), 1, data(1, 1, 4)), [4]);
    harness.until(us(9_300));
    assert_eq!(harness.is_requested[2..], [(1, vec![5, 9])]);
    assert_eq!(harness.push(us(9_400), 1, data(1, 1, 5)), [5, 6, 7, 8]);
    assert_eq!(harness.push(us(9_500), 0, data(0, 1, 9)), [9, 10]);
    assert_eq!(harness.resequencer.timeouts(), 0);
    harness.finish();
}

/// Breaks: after a refusal of the sender, segments do not wait until the timeout.
#[test]
fn refused_segments_are_not_waited_for() {
    let mut harness = ResequencerHarness::with_repair(limits(100_000, 1_000_000), 5_000);
    (0..4).for_each(|n| drop(harness.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert!(harness.push(us(4_000), 0, data(0, 1, 5)).is_empty());
    assert!(harness.push(us(4_010), 0, data(0, 1, 7)).is_empty());
    assert_eq!(harness.is_requested, [(1, vec![4]), (1, vec![6])]);
    let flow = SegmentView::of(&data(0, 1, 0)).expect("a segment").flow;
    let refuse = |harness: &mut ResequencerHarness, port: u16, n: u32| {
        let start = farpace_units::Seq::new((u32::MAX - 2_999).wrapping_add(n * LEN as u32));
        let hole = crate::multi_nic::repair::MissingRange { start, end: start + LEN as u32 };
        let flow = MultiNicFlowKey::new(flow.parts().0, u32::from(port) << 16 | 80);
        let mut out = Vec::new();
        harness.resequencer.on_refusal(
            harness.now,
            &RepairMessage { refused: true, flow, upto: start, holes: [hole].into_iter().collect() },
            &mut out,
        );
        let numbers: Vec<u32> = out.iter().map(|packet| number(packet).1).collect();
        harness.take(out);
        numbers
    };
    assert!(refuse(&mut harness, 2, 4).is_empty(), "another flow");
    assert!(refuse(&mut harness, 1, 6).is_empty(), "another hole precedes it");
    assert_eq!(refuse(&mut harness, 1, 4), [5, 7], "neither waits any longer");
    harness.finish();
    // No request is sent if the answer would be too late.
    let mut harness = ResequencerHarness::with_repair(limits(4_000, 1_000_000), 5_000);
    (0..10).for_each(|n| drop(harness.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert_eq!(harness.push(us(9_100), 0, data(0, 1, 11)), [11]);
    assert!(harness.is_requested.is_empty());
}

proptest! {
    /// Breaks: for all input, frames are passed on exactly once, within the limits, and deadlines are met.
    #[test]
    fn frames_are_passed_on_once_and_in_time(
        time in 1_u64..2_000,
        bytes in 0_u64..12_000,
        rtt in prop::option::of(0_u64..4_000),
        script in prop::collection::vec((0_u64..800, 0_u8..3, 0_u16..2, 0_u32..12), 1..80),
    ) {
        let mut harness = match rtt {
            Some(rtt) => ResequencerHarness::with_repair(limits(time, bytes), rtt),
            None => ResequencerHarness::new(limits(time, bytes)),
        };
        let mut at = us(1);
        for (n, (gap, path, port, seq)) in script.into_iter().enumerate() {
            at += Span::from_micros(gap);
            harness.push(at, path, data(path, port, seq + n as u32 / 4));
        }
        harness.finish();
    }

    /// Breaks: if each path keeps its order and delays differ by less than the timeout, the flow is in order,
    /// and segments in order are not delayed.
    #[test]
    fn paths_in_order_yield_a_flow_in_order(
        paths in prop::collection::vec(0_u8..4, 1..120),
        picks in prop::collection::vec((0_usize..4, 0_u64..80), 400),
    ) {
        let mut harness = ResequencerHarness::new(limits(40_000, 1_000_000));
        // Each path has delivered something before.
        for path in 0..4 {
            harness.push(us(u64::from(path) + 1), path, data(path, 1, path.into()));
        }
        let mut queues: Vec<VecDeque<u32>> = vec![VecDeque::new(); 4];
        for (n, path) in (4..).zip(&paths) {
            queues[usize::from(*path)].push_back(n);
        }
        // The flow is past its startup phase.
        let mut at = us(90_000);
        let mut next = 4;
        for (path, gap) in picks.into_iter().chain((0..480).map(|n| (n % 4, 1))) {
            at += Span::from_micros(gap);
            if let Some(n) = queues[path].pop_front() {
                let out = harness.push(at, path as u8, data(path as u8, 1, n));
                prop_assert_eq!(out.is_empty(), n != next, "a segment passes exactly if it is the next");
                next += out.len() as u32;
            }
        }
        let out = harness.finish();
        prop_assert!(out.is_sorted_by_key(|(_, (_, n))| *n), "{:?}", out);
        prop_assert_eq!(out.len(), paths.len() + 4);
    }
}
