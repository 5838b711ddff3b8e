//! Detects reordering between paths from TCP sequence numbers.

use crate::multi_nic::probe::InboundPathId;
use crate::multi_nic::segment::{MultiNicFlowKey, SegmentView};
use arrayvec::ArrayVec;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::{Packet, TcpFlags};

/// Number of later segments after which a sender assumes that a segment is lost (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;
/// Maximum number of observed flows. A new flow replaces another.
const MAX_FLOWS: usize = 1_024;
/// Maximum number of holes per flow. A new hole replaces the oldest.
const MAX_HOLES: usize = 4;
/// Assumed round trip time if none has been measured.
const UNKNOWN_RTT: Span = Span::from_millis(20);

/// A segment that arrived after segments sent later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// The path of the segment.
    pub path: InboundPathId,
    /// The path of the first of the later segments.
    pub before: InboundPathId,
    /// Number of later segments.
    pub extent: u32,
    /// Time since the first of them.
    pub by: Span,
}

impl Late {
    /// True if a sender assumes that the segment is lost.
    pub const fn is_harmful(&self) -> bool {
        self.extent >= DUP_THRESH
    }
}

/// Observes received TCP segments, and detects those that segments on another path have overtaken.
///
/// A retransmitted segment is late too, but not because of its path. It is recognised as follows:
/// * Its timestamp is newer than that of the first segment behind the hole. With an older one it is not a
///   retransmission.
/// * Without timestamps, or if they are equal, by time: a retransmission arrives at least a round trip after
///   the hole, because it follows an ACK that reports the hole.
/// * A segment on the path on which the hole was detected was not overtaken: a path keeps frames in order.
#[derive(Clone, Debug, Default)]
pub struct ReorderObserver {
    /// Empty before the first segment.
    flows: Vec<Option<ObservedFlow>>,
}

#[derive(Clone, Debug)]
struct ObservedFlow {
    key: MultiNicFlowKey,
    /// The highest sequence number received so far, plus one.
    high: Seq,
    /// Number of segments that have raised `high`.
    advances: u32,
    holes: ArrayVec<ObservedHole, MAX_HOLES>,
}

/// A range of missing sequence numbers.
#[derive(Clone, Copy, Debug)]
struct ObservedHole {
    start: Seq,
    end: Seq,
    since: Instant,
    /// The path of the segment behind the hole.
    by: InboundPathId,
    stamp: Option<u32>,
    /// `advances` before that segment.
    advances: u32,
}

impl ReorderObserver {
    /// Handles a frame from `path`. `rtt` returns the round trip time of a path, if known.
    #[inline]
    pub fn on_packet(
        &mut self,
        now: Instant,
        path: InboundPathId,
        packet: &Packet,
        rtt: impl Fn(InboundPathId) -> Option<Span>,
    ) -> Option<Late> {
        let segment = SegmentView::of(packet)?;
        if segment.len == 0 && !segment.flags.contains(TcpFlags::SYN) {
            return None;
        }
        if self.flows.is_empty() {
            self.flows.resize(MAX_FLOWS, None);
        }
        let slot = self.flows.get_mut(segment.flow.slot(MAX_FLOWS))?;
        let begins = segment.flags.contains(TcpFlags::SYN);
        let Some(flow) = slot.as_mut().filter(|flow| flow.key == segment.flow && !begins) else {
            let high = segment.end() + u32::from(begins);
            *slot = Some(ObservedFlow { key: segment.flow, high, advances: 0, holes: ArrayVec::new() });
            return None;
        };
        if segment.seq.before(flow.high) {
            return flow.below(now, path, &segment, packet, rtt);
        }
        if segment.seq.after(flow.high) {
            if flow.holes.is_full() {
                flow.holes.remove(0);
            }
            let (start, end) = (flow.high, segment.seq);
            let (stamp, advances) = (stamp(packet), flow.advances);
            flow.holes.push(ObservedHole { start, end, since: now, by: path, stamp, advances });
        }
        flow.high = segment.end();
        flow.advances = flow.advances.wrapping_add(1);
        None
    }
}

impl ObservedFlow {
    /// Handles a segment below the highest sequence number, which may fill a hole.
    #[cold]
    fn below(
        &mut self,
        now: Instant,
        path: InboundPathId,
        segment: &SegmentView,
        packet: &Packet,
        rtt: impl Fn(InboundPathId) -> Option<Span>,
    ) -> Option<Late> {
        let has = |hole: &ObservedHole| hole.start.before_eq(segment.seq) && segment.seq.before(hole.end);
        let at = self.holes.iter().position(has)?;
        let hole = self.holes.remove(at);
        let mut rest = |start: Seq, end: Seq| {
            if start.before(end) && !self.holes.is_full() {
                self.holes.insert(at, ObservedHole { start, end, ..hole });
            }
        };
        rest(segment.end(), hole.end);
        rest(hole.start, segment.seq);
        let by = now.since(hole.since);
        let soon = || {
            let known = rtt(path).into_iter().chain(rtt(hole.by)).min();
            by < known.unwrap_or(UNKNOWN_RTT)
        };
        let original =
            match stamp(packet).zip(hole.stamp).map(|(this, behind)| this.wrapping_sub(behind) as i32) {
                Some(newer) if newer > 0 => false,
                Some(older) if older < 0 => true,
                _ => soon(),
            };
        let extent = self.advances.wrapping_sub(hole.advances);
        (original && path != hole.by).then_some(Late { path, before: hole.by, extent, by })
    }
}

#[cold]
fn stamp(packet: &Packet) -> Option<u32> {
    packet.tcp().ok()?.header().options.timestamps.map(|stamps| stamps.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_nic::segment::made::segment;

    const ACK: TcpFlags = TcpFlags::ACK;

    /// A script of segments (time in us, path, number, timestamp). Returns late segments as (path, before,
    /// extent, us).
    fn run(script: &[(u64, u16, u32, Option<u32>)]) -> Vec<Option<(u16, u16, u32, u64)>> {
        let mut observer = ReorderObserver::default();
        let each = script.iter().map(|&(us, path, number, stamp)| {
            let packet = segment(0, 1, (u32::MAX - 2_000).wrapping_add(number * 1_000), 1_000, ACK, stamp);
            let now = Instant::from_nanos(us * 1_000);
            let late =
                observer.on_packet(now, InboundPathId(path), &packet, |_| Some(Span::from_micros(500)));
            late.map(|late| (late.path.0, late.before.0, late.extent, late.by.as_micros()))
        });
        each.collect()
    }

    /// Breaks: late frames of a path are detected, and attributed to the right path.
    #[test]
    fn an_overtaken_segment_on_another_path_is_detected() {
        let script =
            [(0, 0, 0, None), (10, 0, 2, None), (20, 0, 3, None), (30, 0, 4, None), (40, 1, 1, None)];
        assert_eq!(run(&script), [None, None, None, None, Some((1, 0, 3, 30))]);
        // Two holes, the later one filled first. The sequence number wraps around in between.
        let script = [(0, 0, 0, None), (1, 0, 2, None), (2, 0, 4, None), (3, 1, 3, None), (4, 1, 1, None)];
        assert_eq!(run(&script)[3..], [Some((1, 0, 1, 1)), Some((1, 0, 2, 3))]);
        // A hole of three, filled from the middle.
        let script = [
            (0, 0, 0, None),
            (1, 0, 4, None),
            (2, 1, 2, None),
            (3, 1, 1, None),
            (4, 1, 3, None),
            (5, 1, 3, None),
        ];
        assert_eq!(run(&script)[2..], [Some((1, 0, 1, 1)), Some((1, 0, 1, 2)), Some((1, 0, 1, 3)), None]);
    }

    /// Breaks: retransmissions are not mistaken for late frames, so that losses do not slow a path down.
    #[test]
    fn retransmissions_are_not_late_frames() {
        let lost = |us, path, stamp, again| {
            let script = [(0, 0, 0, stamp), (10, 0, 2, stamp), (us, path, 1, again)];
            run(&script)[2]
        };
        assert_eq!(lost(600, 1, None, None), None, "a round trip later");
        assert_eq!(lost(400, 0, None, None), None, "on the same path");
        assert_eq!(lost(400, 1, Some(7), Some(8)), None, "newer");
        assert_eq!(lost(900, 1, Some(7), Some(7)), None, "not older, and a round trip later");
        assert!(lost(400, 1, Some(7), Some(7)).is_some());
        assert!(lost(90_000, 1, Some(7), Some(6)).is_some(), "older: sent before");
        assert!(lost(400, 1, Some(0), Some(u32::MAX)).is_some(), "the timestamp wraps around");
    }

    /// Breaks: ACKs, duplicates and new connections are not mistaken for late frames.
    #[test]
    fn segments_that_fill_no_hole_are_not_late() {
        assert_eq!(run(&[(0, 0, 5, None), (1, 1, 1, None), (2, 1, 5, None)]), [None; 3]);
        let mut observer = ReorderObserver::default();
        let mut see = |path, seq, len, flags| {
            let packet = segment(0, 1, seq, len, flags, None);
            observer.on_packet(Instant::ZERO, InboundPathId(path), &packet, |_| None)
        };
        assert_eq!(see(0, 1_000, 10, ACK), None);
        assert_eq!(see(0, 2_000, 10, ACK), None);
        assert_eq!(see(1, 1_500, 0, ACK), None, "no payload");
        assert_eq!(see(1, 500, 0, TcpFlags::SYN), None, "a new connection");
        assert_eq!(see(1, 501, 10, ACK), None);
        assert_eq!(see(0, 1_500, 10, ACK), None, "the hole belonged to the old connection");
        assert_eq!(see(1, 511, 10, ACK).map(|late| late.extent), Some(1));
    }

    /// Breaks: the table of flows is bounded, and a flow is not mistaken for another in the same slot.
    #[test]
    fn flows_share_a_bounded_table() {
        let mut observer = ReorderObserver::default();
        for round in 0..3_u32 {
            for port in 0..5_000 {
                let packet = segment(0, port, u32::from(port) * 7_919 + round, 1, ACK, None);
                let late =
                    observer.on_packet(Instant::ZERO, InboundPathId((round % 2) as u16), &packet, |_| None);
                assert_eq!(late, None);
            }
        }
        assert_eq!(observer.flows.len(), MAX_FLOWS);
        let used = observer.flows.iter().flatten().count();
        assert!(used > MAX_FLOWS * 9 / 10, "{used} slots: the hash is uneven");
    }
}
