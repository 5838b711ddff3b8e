//! Order, limits, and conservation.

use super::*;
use crate::multi_nic::segment::made::segment;
use proptest::prelude::*;

const ACK: TcpFlags = TcpFlags::ACK;
const LEN: usize = 1_000;

fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000)
}
fn limits(time_us: u64, bytes: u64) -> Resequence {
    Resequence { time: Span::from_micros(time_us), bytes: ByteCount::new(bytes) }
}
/// Segment number `n` of a flow whose sequence number wraps around at the third.
fn data(lane: u8, port: u16, n: u32) -> Packet {
    segment(lane, port, (u32::MAX - 2_999).wrapping_add(n * LEN as u32), LEN, ACK, None)
}
fn number(packet: &Packet) -> (u16, u32) {
    let tcp = packet.tcp().expect("a segment");
    (tcp.src_port(), tcp.seq().get().wrapping_sub(u32::MAX - 2_999) / LEN as u32)
}

/// Drives one resequencer and checks its invariants.
struct Bench {
    line: Resequencer,
    limits: Resequence,
    /// Where to send repair requests.
    ask: Option<RepairRequestTime>,
    /// What they were asked for: the ports, and which segments.
    asked: Vec<(u16, Vec<u32>)>,
    now: Instant,
    pushed: Vec<(Instant, (u16, u32))>,
    out: Vec<(Instant, (u16, u32))>,
}

impl Bench {
    fn new(limits: Resequence) -> Bench {
        let line = Resequencer::new(limits);
        Bench { line, limits, ask: None, asked: Vec::new(), now: us(1), pushed: Vec::new(), out: Vec::new() }
    }
    /// Senders have retransmit caches, at this round trip time.
    fn asking(limits: Resequence, rtt_us: u64) -> Bench {
        let rtt = Span::from_micros(rtt_us);
        Bench {
            ask: Some(RepairRequestTime { nic: NicId(0), to: MacAddr([2; 6]), rtt }),
            ..Bench::new(limits)
        }
    }
    fn until(&mut self, then: Instant) {
        while let Some(at) = self.line.deadline().filter(|at| *at <= then) {
            assert!(at >= self.now, "a deadline that has passed");
            self.now = at;
            let mut out = Vec::new();
            self.line.on_deadline(at, &mut out);
            let asked = self.asked.len();
            self.note_questions();
            assert!(!out.is_empty() || self.ask.is_some() || self.asked.len() > asked, "woken for nothing");
            assert!(self.line.deadline().is_none_or(|next| next > at));
            self.take(out);
        }
        self.now = then;
    }
    fn push(&mut self, at: Instant, lane: u8, packet: Packet) -> Vec<u32> {
        self.until(at);
        self.pushed.push((at, number(&packet)));
        let mut out = Vec::new();
        let ask = self.ask;
        self.line.push(at, NicId(lane), packet, |_| ask, &mut out);
        self.note_questions();
        let numbers = out.iter().map(|packet| number(packet).1).collect();
        self.take(out);
        numbers
    }
    fn note_questions(&mut self) {
        for (_, missing) in self.line.take_questions() {
            assert!(!missing.gone);
            let n = |seq: farpace_units::Seq| seq.get().wrapping_sub(u32::MAX - 2_999) / LEN as u32;
            let of = |hole: &crate::multi_nic::repair::MissingRange| n(hole.start)..n(hole.end);
            let port = (missing.flow.parts().1 >> 16) as u16;
            self.asked.push((port, missing.holes.iter().flat_map(of).collect()));
        }
    }
    fn take(&mut self, out: Vec<Packet>) {
        self.out.extend(out.iter().map(|packet| (self.now, number(packet))));
        let inside = self.pushed.len() - self.out.len();
        assert_eq!(self.line.held(), inside as u64);
        assert!(self.line.held_bytes() <= self.limits.bytes);
        assert_eq!(self.line.held() == 0, self.line.held_bytes().is_zero() && self.line.deadline().is_none());
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
            let came = self.pushed.iter().filter(|(_, other)| other == number).map(|(at, _)| *at);
            assert!(
                came.clone().any(|came| at.since(came) <= self.limits.time),
                "{number:?} waited too long"
            );
        }
        self.out
    }
}

/// Breaks: segments of two paths are put in order, so that the receiver sends no duplicate ACKs.
#[test]
fn segments_wait_for_those_before_them() {
    let mut bench = Bench::new(limits(10_000, 1_000_000));
    assert_eq!(bench.push(us(10), 0, data(0, 1, 0)), [0]);
    assert_eq!(bench.push(us(20), 1, data(1, 1, 1)), [1]);
    assert!(bench.push(us(30), 0, data(0, 1, 3)).is_empty());
    assert!(bench.push(us(40), 0, data(0, 1, 5)).is_empty());
    assert_eq!(bench.push(us(50), 1, data(1, 1, 2)), [2, 3]);
    assert_eq!(bench.push(us(60), 1, data(1, 1, 4)), [4, 5]);
    assert_eq!(bench.push(us(70), 1, data(1, 1, 4)), [4], "a repetition passes");
    bench.finish();
}

/// Breaks: a lost segment does not block a connection.
#[test]
fn what_is_lost_is_not_waited_for() {
    // By time: the other lane might still bring it.
    let mut bench = Bench::new(limits(1_000, 1_000_000));
    for n in 0..4 {
        bench.push(us(n * 1_000), (n % 2) as u8, data((n % 2) as u8, 1, n as u32));
    }
    assert!(bench.push(us(4_000), 0, data(0, 1, 5)).is_empty());
    assert!(bench.push(us(4_500), 0, data(0, 1, 6)).is_empty());
    assert!(bench.push(us(4_600), 0, data(0, 1, 8)).is_empty());
    bench.until(us(4_999));
    assert_eq!(bench.line.held(), 3);
    bench.until(us(5_000));
    assert_eq!(bench.line.held(), 1, "the next hole was seen later");
    assert_eq!(bench.line.deadline(), Some(us(5_600)));
    // By order: both lanes have brought something from behind.
    assert_eq!(bench.push(us(5_100), 1, data(1, 1, 9)), [8, 9]);
    assert_eq!(bench.line.gave_up(), 2);
    bench.finish();
}

/// Breaks: a loss on a single path does not cost the timeout.
#[test]
fn a_flow_with_one_lane_is_not_held() {
    let mut bench = Bench::new(limits(1_000, 1_000_000));
    (0..4).for_each(|n| drop(bench.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert_eq!(bench.push(us(3_010), 0, data(0, 1, 5)), [5]);
    // Another lane that fell silent, while this one did not, counts no more.
    bench.push(us(3_020), 1, data(1, 1, 6));
    (7..40).for_each(|n| drop(bench.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert_eq!(bench.push(us(39_010), 0, data(0, 1, 41)), [41]);
    bench.finish();
}

/// Breaks: a connection with a small window and a long round trip, as over a satellite, is put in order,
/// though all its paths are silent for most of each round trip.
#[test]
fn a_flow_that_pauses_keeps_its_lanes() {
    let mut bench = Bench::new(limits(1_000, 1_000_000));
    for round in 0..50_u32 {
        let n = round * 4;
        let at = |then: u64| us(u64::from(round) * 500_000 + then);
        assert_eq!(bench.push(at(10), 0, data(0, 1, n)), [n]);
        let early = [bench.push(at(20), 0, data(0, 1, n + 2)), bench.push(at(30), 0, data(0, 1, n + 3))];
        assert!(early.iter().all(Vec::is_empty), "round {round}: {early:?}; the other lane is slower");
        assert_eq!(bench.push(at(40), 1, data(0, 1, n + 1)), [n + 1, n + 2, n + 3], "round {round}");
    }
    bench.finish();
}

/// Breaks: ACKs, the beginning and end of connections, and other protocols do not wait for data.
#[test]
fn what_is_not_data_passes_at_once() {
    let mut bench = Bench::new(limits(10_000, 1_000_000));
    let at = |n: u32| (u32::MAX - 2_999).wrapping_add(n * LEN as u32);
    let passes = |bench: &mut Bench, packet: Packet| {
        let mut out = Vec::new();
        bench.line.push(us(50), NicId(0), packet, |_| None, &mut out);
        out.len()
    };
    assert_eq!(passes(&mut bench, segment(0, 1, at(0) - 1, 0, TcpFlags::SYN, None)), 1);
    assert!(bench.push(us(50), 0, data(0, 1, 1)).is_empty(), "a SYN says what comes first");
    assert_eq!(passes(&mut bench, segment(0, 1, at(5), 0, ACK, None)), 1);
    assert_eq!(passes(&mut bench, segment(0, 1, at(9), 10, ACK.with(TcpFlags::FIN), None)), 1);
    let arp =
        Packet::from_link(MacAddr([2; 6]), MacAddr([4; 6]), farpace_wire::EtherType::ARP, vec![0; 28].into());
    assert_eq!(passes(&mut bench, arp), 1);
    // A reset lets go of what is held, before it.
    assert_eq!(passes(&mut bench, segment(0, 1, at(5), 0, TcpFlags::RST, None)), 2);
    assert_eq!((bench.line.held(), bench.line.deadline()), (0, None));
}

/// Breaks: a connection that reuses the ports of an older one is put in order, though its SYN was not seen.
#[test]
fn a_flow_whose_beginning_nobody_saw_is_taken_up() {
    let mut bench = Bench::new(limits(10_000, 1_000_000));
    let at = |n: u32, lane| segment(lane, 1, 7_000_u32.wrapping_add(n), LEN, ACK, None);
    bench.push(us(10), 0, at(0, 0));
    let mut n = 0_u32;
    for far in [1 << 31, (1 << 30) + 5_000, u32::MAX - (1 << 30)] {
        n = n.wrapping_add(far);
        assert_eq!(bench.push(us(20), 0, at(n, 0)).len(), 1);
        assert!(bench.push(us(20), 0, at(n.wrapping_add(2_000), 0)).is_empty());
        assert_eq!(bench.push(us(20), 1, at(n.wrapping_add(1_000), 1)).len(), 2);
    }
    bench.finish();
}

/// Breaks: the size of held segments is bounded.
#[test]
fn no_more_is_held_than_allowed() {
    let mut bench = Bench::new(limits(10_000, 3_500));
    for port in [1, 2] {
        bench.push(us(1), 0, data(0, port, 0));
    }
    for n in [2, 4, 6] {
        assert!(bench.push(us(10), 0, data(0, 1, n)).is_empty());
    }
    assert_eq!(bench.push(us(11), 0, data(0, 2, 5)), [5], "others hold all there is");
    assert_eq!(bench.push(us(12), 0, data(0, 1, 8)), [2], "the oldest hole is given up");
    assert_eq!(bench.push(us(13), 1, data(1, 1, 3)), [3, 4]);
    bench.finish();
    // Flows that have the same place as one that holds something pass.
    let mut bench = Bench::new(limits(10_000, 1_000_000));
    for port in 0..20_000 {
        bench.push(us(20), 0, data(0, port, 0));
        bench.push(us(20), 0, data(0, port, 2));
    }
    assert!(bench.line.held() <= FLOWS as u64);
}

/// Breaks: a segment that a path has lost is requested from its sender, so that TCP does not see the loss.
#[test]
fn a_sender_that_keeps_copies_is_asked_for_what_all_lanes_have_passed() {
    let mut bench = Bench::asking(limits(100_000, 1_000_000), 5_000);
    for n in 0..4 {
        bench.push(us(n * 1_000), (n % 2) as u8, data((n % 2) as u8, 1, n as u32));
    }
    assert!(bench.push(us(4_000), 0, data(0, 1, 6)).is_empty());
    assert!(bench.push(us(4_100), 0, data(0, 1, 8)).is_empty());
    assert!(bench.asked.is_empty(), "the other lane may bring it");
    assert!(bench.push(us(4_200), 1, data(1, 1, 7)).is_empty());
    assert_eq!(bench.asked, [(1, vec![4, 5])]);
    assert!(bench.push(us(4_300), 1, data(1, 1, 10)).is_empty());
    assert_eq!(bench.asked.len(), 1, "nine may still come by the first lane");
    // Half a round trip after the hole was seen it is asked for again, and with it what may still come.
    bench.until(us(6_800));
    assert_eq!(bench.asked[1..], [(1, vec![4, 5, 9])]);
    assert_eq!(bench.push(us(7_000), 1, data(1, 1, 4)), [4]);
    bench.until(us(9_300));
    assert_eq!(bench.asked[2..], [(1, vec![5, 9])]);
    assert_eq!(bench.push(us(9_400), 1, data(1, 1, 5)), [5, 6, 7, 8]);
    assert_eq!(bench.push(us(9_500), 0, data(0, 1, 9)), [9, 10]);
    assert_eq!(bench.line.gave_up(), 0);
    bench.finish();
}

/// Breaks: after a refusal of the sender, segments do not wait until the timeout.
#[test]
fn what_is_gone_is_not_waited_for() {
    let mut bench = Bench::asking(limits(100_000, 1_000_000), 5_000);
    (0..4).for_each(|n| drop(bench.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert!(bench.push(us(4_000), 0, data(0, 1, 5)).is_empty());
    assert!(bench.push(us(4_010), 0, data(0, 1, 7)).is_empty());
    assert_eq!(bench.asked, [(1, vec![4]), (1, vec![6])]);
    let flow = SegmentView::of(&data(0, 1, 0)).expect("a segment").flow;
    let tell = |bench: &mut Bench, port: u16, n: u32| {
        let start = farpace_units::Seq::new((u32::MAX - 2_999).wrapping_add(n * LEN as u32));
        let hole = crate::multi_nic::repair::MissingRange { start, end: start + LEN as u32 };
        let flow = MultiNicFlowKey::new(flow.parts().0, u32::from(port) << 16 | 80);
        let mut out = Vec::new();
        bench.line.gone(
            bench.now,
            &Missing { gone: true, flow, upto: start, holes: [hole].into_iter().collect() },
            &mut out,
        );
        let numbers: Vec<u32> = out.iter().map(|packet| number(packet).1).collect();
        bench.take(out);
        numbers
    };
    assert!(tell(&mut bench, 2, 4).is_empty(), "of another flow");
    assert!(tell(&mut bench, 1, 6).is_empty(), "another hole is before it");
    assert_eq!(tell(&mut bench, 1, 4), [5, 7], "neither is waited for any more");
    bench.finish();
    // Nor is a sender asked whose answer would come too late.
    let mut bench = Bench::asking(limits(4_000, 1_000_000), 5_000);
    (0..10).for_each(|n| drop(bench.push(us(n * 1_000), 0, data(0, 1, n as u32))));
    assert_eq!(bench.push(us(9_100), 0, data(0, 1, 11)), [11]);
    assert!(bench.asked.is_empty());
}

proptest! {
    /// Breaks: for all input, frames are passed on exactly once, within the limits, and deadlines are met.
    #[test]
    fn what_goes_in_comes_out_once_and_in_time(
        time in 1_u64..2_000,
        bytes in 0_u64..12_000,
        rtt in prop::option::of(0_u64..4_000),
        script in prop::collection::vec((0_u64..800, 0_u8..3, 0_u16..2, 0_u32..12), 1..80),
    ) {
        let mut bench = match rtt {
            Some(rtt) => Bench::asking(limits(time, bytes), rtt),
            None => Bench::new(limits(time, bytes)),
        };
        let mut at = us(1);
        for (n, (gap, lane, port, seq)) in script.into_iter().enumerate() {
            at += Span::from_micros(gap);
            bench.push(at, lane, data(lane, port, seq + n as u32 / 4));
        }
        bench.finish();
    }

    /// Breaks: if each path keeps its order and delays differ by less than the timeout, the flow is in order,
    /// and segments in order are not delayed.
    #[test]
    fn lanes_that_keep_their_order_give_the_flow_in_order(
        lanes in prop::collection::vec(0_u8..4, 1..120),
        picks in prop::collection::vec((0_usize..4, 0_u64..80), 400),
    ) {
        let mut bench = Bench::new(limits(40_000, 1_000_000));
        // Each lane has brought something before.
        for lane in 0..4 {
            bench.push(us(u64::from(lane) + 1), lane, data(lane, 1, lane.into()));
        }
        let mut queues: Vec<VecDeque<u32>> = vec![VecDeque::new(); 4];
        for (n, lane) in (4..).zip(&lanes) {
            queues[usize::from(*lane)].push_back(n);
        }
        // The flow is past its startup phase.
        let mut at = us(90_000);
        let mut next = 4;
        for (lane, gap) in picks.into_iter().chain((0..480).map(|n| (n % 4, 1))) {
            at += Span::from_micros(gap);
            if let Some(n) = queues[lane].pop_front() {
                let out = bench.push(at, lane as u8, data(lane as u8, 1, n));
                prop_assert_eq!(out.is_empty(), n != next, "in order it passes, else it waits");
                next += out.len() as u32;
            }
        }
        let out = bench.finish();
        prop_assert!(out.is_sorted_by_key(|(_, (_, n))| *n), "{:?}", out);
        prop_assert_eq!(out.len(), lanes.len() + 4);
    }
}
