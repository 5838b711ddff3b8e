//! The retransmit cache: recently sent frames.

use crate::multi_nic::segment::{MultiNicFlowKey, SegmentView};
use crate::multi_nic::{FlowId, NeighbourId, NicId};
use farpace_units::{ByteCount, Instant, Seq};
use farpace_wire::{Packet, TcpFlags};
use std::collections::VecDeque;

/// Number of slots for flows. Of two flows in the same slot, the second is not cached while the first is
/// active.
const FLOWS: usize = 16_384;
/// A flow is inactive after this number of frames of other flows.
const SILENT: u64 = 65_536;
/// Memory of a cached frame in addition to its bytes.
const OVERHEAD: ByteCount = ByteCount::new(256);
/// Sequence numbers farther apart are of different connections.
const MAX_DISTANCE: u32 = 1 << 30;

/// Recently sent segments that have not been acknowledged, by flow and sequence number.
///
/// Invariant: its size never exceeds its limit.
#[derive(Clone, Debug)]
pub struct RetransmitCache {
    limit: ByteCount,
    bytes: ByteCount,
    count: usize,
    /// Empty before the first frame.
    flows: Vec<Option<Box<CachedFlow>>>,
    /// In order of sending: slot of the flow, sequence number, serial number. Some entries are stale.
    ages: VecDeque<(u32, Seq, u64)>,
    next: u64,
}

#[derive(Clone, Debug)]
struct CachedFlow {
    id: FlowId,
    /// In order of sequence numbers.
    kept: VecDeque<CachedSegment>,
    /// Serial number of the latest segment.
    serial: u64,
}

#[derive(Clone, Debug)]
struct CachedSegment {
    seq: Seq,
    len: u32,
    packet: Packet,
    /// None: it has not been sent yet.
    sent: Option<CachedFrame>,
    serial: u64,
}

/// How a frame was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedFrame {
    /// Sending time.
    pub at: Instant,
    /// The NIC.
    pub nic: NicId,
    /// The destination.
    pub neighbour: NeighbourId,
}

impl RetransmitCache {
    /// An empty cache with a limit of `limit` bytes of memory.
    pub const fn new(limit: ByteCount) -> RetransmitCache {
        RetransmitCache {
            limit,
            bytes: ByteCount::ZERO,
            count: 0,
            flows: Vec::new(),
            ages: VecDeque::new(),
            next: 0,
        }
    }
    /// Caches a frame that is to be sent. Only frames whose loss blocks a receiver are cached: segments with
    /// data, without SYN, FIN or RST. Returns the sequence number if the frame was cached.
    pub fn keep(&mut self, id: FlowId, packet: &Packet) -> Option<Seq> {
        let segment = segment_of(packet).filter(|_| cost(packet) <= self.limit)?;
        let SegmentView { seq, len, .. } = segment;
        if self.flows.is_empty() {
            self.flows.resize(FLOWS, None);
        }
        let serial = self.next;
        self.next += 1;
        let at = slot_of(id);
        let slot = self.flows.get_mut(at as usize)?;
        let flow = slot.get_or_insert_with(|| Box::new(CachedFlow { id, kept: VecDeque::new(), serial }));
        let same =
            flow.id == id && flow.kept.front().is_none_or(|first| distance(first.seq, seq) < MAX_DISTANCE);
        if !same {
            if flow.id != id && !flow.kept.is_empty() && serial - flow.serial < SILENT {
                return None;
            }
            self.count -= flow.kept.len();
            self.bytes -= flow.kept.drain(..).map(|old| cost(&old.packet)).sum::<ByteCount>();
            flow.id = id;
        }
        flow.serial = serial;
        let new = CachedSegment { seq, len, packet: packet.clone(), sent: None, serial };
        self.bytes += cost(packet);
        self.count += 1;
        match flow.find(seq) {
            Ok(at) => {
                if let Some(old) = flow.kept.get_mut(at) {
                    self.bytes -= cost(&std::mem::replace(old, new).packet);
                    self.count -= 1;
                }
            }
            Err(at) => flow.kept.insert(at, new),
        }
        self.ages.push_back((at, seq, serial));
        self.evict();
        Some(seq)
    }
    /// Records that a frame is sent, possibly again. It is retransmitted on request only if it was sent
    /// before the request.
    pub fn on_sent(&mut self, id: FlowId, seq: Seq, sent: CachedFrame) {
        if let Some(flow) = flow_mut(&mut self.flows, id)
            && let Ok(at) = flow.find(seq)
            && let Some(kept) = flow.kept.get_mut(at)
        {
            kept.sent = Some(sent);
        }
    }
    /// Removes a frame that was dropped before it was sent. TCP will retransmit it.
    pub fn on_dropped(&mut self, id: FlowId, seq: Seq) {
        if let Some(flow) = flow_mut(&mut self.flows, id)
            && let Ok(at) = flow.find(seq)
            && let Some(old) = flow.kept.remove(at)
        {
            self.bytes -= cost(&old.packet);
            self.count -= 1;
        }
    }
    /// Removes everything before `ack`, which the receiver has acknowledged.
    pub fn on_acked(&mut self, id: FlowId, ack: Seq) {
        let flow = flow_mut(&mut self.flows, id);
        let Some(flow) = flow else { return };
        while flow.kept.front().is_some_and(|first| !(first.seq + first.len).after(ack))
            && let Some(old) = flow.kept.pop_front()
        {
            self.bytes -= cost(&old.packet);
            self.count -= 1;
        }
    }
    /// All frames last sent on this NIC to `neighbour`, per flow in order of sequence numbers.
    pub fn sent_by(
        &self,
        nic: NicId,
        neighbour: NeighbourId,
    ) -> impl Iterator<Item = (&Packet, Seq, CachedFrame)> {
        let kept = self.flows.iter().flatten().flat_map(|flow| &flow.kept);
        let sent = kept.filter_map(|kept| Some((&kept.packet, kept.seq, kept.sent?)));
        sent.filter(move |(.., sent)| sent.nic == nic && sent.neighbour == neighbour)
    }
    /// The frame that begins at `seq`, and how it was last sent; none: it has not been sent yet.
    pub fn find(&self, flow: &MultiNicFlowKey, seq: Seq) -> Option<(&Packet, Option<CachedFrame>)> {
        let known = self.flow(flow.id())?;
        let kept = known.kept.get(known.find(seq).ok()?)?;
        let same = SegmentView::of(&kept.packet).is_some_and(|segment| segment.flow == *flow);
        same.then_some((&kept.packet, kept.sent))
    }
    /// At most `max` frames of the flow that begin at `from` or later, and before `to`: sequence number,
    /// length, and how they were sent.
    pub fn between(
        &self,
        flow: &MultiNicFlowKey,
        from: Seq,
        to: Seq,
        max: usize,
    ) -> impl Iterator<Item = (Seq, u32, Option<CachedFrame>)> {
        let known = self.flow(flow.id()).into_iter();
        let kept = known.flat_map(move |flow| {
            let first = flow.kept.partition_point(|kept| kept.seq.before(from));
            flow.kept.range(first..).take_while(move |kept| kept.seq.before(to))
        });
        kept.take(max).map(|kept| (kept.seq, kept.len, kept.sent))
    }
    /// Size of the cached frames in memory.
    pub const fn bytes(&self) -> ByteCount {
        self.bytes
    }

    fn flow(&self, id: FlowId) -> Option<&CachedFlow> {
        self.flows.get(slot_of(id) as usize)?.as_deref().filter(|flow| flow.id == id)
    }
    /// Removes the oldest frames until the limit holds, and stale entries of `ages`.
    fn evict(&mut self) {
        let index_of = |flow: Option<&CachedFlow>, seq: Seq, serial: u64| {
            let at = flow?.find(seq).ok()?;
            flow?.kept.get(at).is_some_and(|kept| kept.serial == serial).then_some(at)
        };
        if self.ages.len() > self.count * 2 + 16 {
            let flows = &self.flows;
            let flow = |at: u32| flows.get(at as usize).and_then(Option::as_deref);
            self.ages.retain(|(at, seq, serial)| index_of(flow(*at), *seq, *serial).is_some());
        }
        while self.bytes > self.limit {
            let Some((at, seq, serial)) = self.ages.pop_front() else { break };
            let flow = self.flows.get_mut(at as usize).and_then(Option::as_deref_mut);
            if let Some(flow) = flow
                && let Some(at) = index_of(Some(flow), seq, serial)
                && let Some(old) = flow.kept.remove(at)
            {
                self.bytes -= cost(&old.packet);
                self.count -= 1;
            }
        }
    }
}

impl CachedFlow {
    /// The index of a sequence number, or where to insert it.
    fn find(&self, seq: Seq) -> Result<usize, usize> {
        // Nearly all frames come in order.
        match self.kept.back() {
            Some(last) if last.seq.before(seq) => Err(self.kept.len()),
            Some(last) if last.seq == seq => Ok(self.kept.len() - 1),
            None => Err(0),
            _ => self.kept.binary_search_by(|kept| kept.seq.distance(seq).cmp(&0)),
        }
    }
}

fn flow_mut(flows: &mut [Option<Box<CachedFlow>>], id: FlowId) -> Option<&mut CachedFlow> {
    flows.get_mut(slot_of(id) as usize)?.as_deref_mut().filter(|flow| flow.id == id)
}

/// Memory of a cached frame.
fn cost(packet: &Packet) -> ByteCount {
    packet.len() + OVERHEAD
}

fn slot_of(id: FlowId) -> u32 {
    (id.0 % FLOWS as u64) as u32
}

fn distance(one: Seq, other: Seq) -> u32 {
    one.distance(other).unsigned_abs()
}

fn segment_of(packet: &Packet) -> Option<SegmentView> {
    let ends = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
    SegmentView::of(packet).filter(|segment| segment.len > 0 && !segment.flags.intersects(ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_nic::flow_of;
    use crate::multi_nic::segment::made::segment;

    fn sent(ms: u64) -> CachedFrame {
        CachedFrame { at: Instant::from_nanos(ms * 1_000_000), nic: NicId(0), neighbour: NeighbourId(1) }
    }
    /// Checks the counters against a recount.
    fn check_counters(cache: &RetransmitCache) {
        let kept = || cache.flows.iter().flatten().flat_map(|flow| &flow.kept);
        assert_eq!(kept().map(|kept| cost(&kept.packet)).sum::<ByteCount>(), cache.bytes());
        assert_eq!(kept().count(), cache.count);
    }
    fn keep(
        cache: &mut RetransmitCache,
        ms: u64,
        port: u16,
        seq: u32,
        len: usize,
        flags: TcpFlags,
    ) -> MultiNicFlowKey {
        let packet = segment(0, port, seq, len, flags, None);
        if let Some(copy) = cache.keep(flow_of(&packet), &packet) {
            cache.on_sent(flow_of(&packet), copy, sent(ms));
        }
        SegmentView::of(&packet).expect("a segment").flow
    }

    /// Breaks: a cached frame is found by flow and sequence number, and not confused with that of another
    /// flow.
    #[test]
    fn frames_are_found_by_flow_and_number() {
        let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
        let one = keep(&mut cache, 1, 1, 1_000, 500, TcpFlags::ACK);
        let two = keep(&mut cache, 2, 2, 1_000, 700, TcpFlags::ACK);
        let found =
            |flow, seq| cache.find(flow, Seq::new(seq)).map(|(packet, sent)| (packet.payload().len(), sent));
        assert_eq!(found(&one, 1_000), Some((500, Some(sent(1)))));
        assert_eq!(found(&two, 1_000), Some((700, Some(sent(2)))));
        assert_eq!(found(&one, 1_001), None);
        let between = |flow: &MultiNicFlowKey, from, to| {
            let all = cache.between(flow, Seq::new(from), Seq::new(to), 9);
            all.map(|(seq, len, _)| (seq.get(), len)).collect::<Vec<_>>()
        };
        assert_eq!(between(&one, 900, 1_001), [(1_000, 500)]);
        assert_eq!(between(&one, 900, 1_000), []);
    }

    /// Breaks: frames are found where the sequence number wraps around.
    #[test]
    fn sequence_numbers_wrap_around() {
        let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
        let first = u32::MAX - 999;
        let flow = keep(&mut cache, 1, 1, first, 1_000, TcpFlags::ACK);
        keep(&mut cache, 2, 1, 0, 500, TcpFlags::ACK);
        let numbers = |from: u32, to| {
            let all = cache.between(&flow, Seq::new(from), Seq::new(to), 9);
            all.map(|(seq, ..)| seq.get()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(first, 1), [first, 0]);
        assert_eq!(numbers(first, 0), [first]);
        assert_eq!(numbers(first + 1, 1), [0]);
    }

    /// Breaks: a queued frame is distinguished from a dropped one, which only TCP retransmits.
    #[test]
    fn queued_frames_are_distinguished_from_dropped_ones() {
        let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
        let packet = segment(0, 1, 1_000, 500, TcpFlags::ACK, None);
        let flow = SegmentView::of(&packet).expect("a segment").flow;
        cache.keep(flow.id(), &packet);
        assert_eq!(cache.find(&flow, Seq::new(1_000)).map(|(_, sent)| sent), Some(None));
        cache.on_dropped(flow.id(), Seq::new(1_000));
        assert!(cache.find(&flow, Seq::new(1_000)).is_none());
        assert_eq!(cache.bytes(), ByteCount::ZERO);
    }

    /// Breaks: only frames that can leave a hole are cached, so that they do not displace others.
    #[test]
    fn only_segments_with_data_are_cached() {
        let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
        keep(&mut cache, 1, 1, 1, 0, TcpFlags::ACK);
        keep(&mut cache, 1, 1, 1, 10, TcpFlags::ACK.with(TcpFlags::FIN));
        keep(&mut cache, 1, 1, 1, 0, TcpFlags::SYN);
        assert_eq!(cache.bytes(), ByteCount::ZERO);
    }

    /// Breaks: acknowledged frames are removed, and others are not.
    #[test]
    fn acknowledged_frames_are_removed() {
        for first in [1_000, u32::MAX - 1_499] {
            let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
            let seq = |n: u32| first.wrapping_add(n * 1_000);
            for n in 0..4 {
                keep(&mut cache, 1, 1, seq(n), 1_000, TcpFlags::ACK);
            }
            let other = keep(&mut cache, 1, 2, seq(0), 1_000, TcpFlags::ACK);
            let flow = keep(&mut cache, 1, 1, seq(4), 1_000, TcpFlags::ACK);
            let left = |cache: &RetransmitCache| {
                let sent = cache.sent_by(NicId(0), NeighbourId(1));
                let sent = sent.filter(|(packet, ..)| flow_of(packet) == flow.id());
                sent.map(|(_, seq, _)| seq.get()).collect::<Vec<_>>()
            };
            cache.on_acked(flow.id(), Seq::new(seq(0)));
            assert_eq!(left(&cache).len(), 5);
            // The last byte of the third frame is missing.
            cache.on_acked(flow.id(), Seq::new(seq(3) - 1));
            assert_eq!(left(&cache), [seq(2), seq(3), seq(4)]);
            cache.on_acked(flow.id(), Seq::new(seq(5)));
            assert!(left(&cache).is_empty());
            assert!(cache.find(&other, Seq::new(seq(0))).is_some(), "another flow");
            assert_eq!(cache.sent_by(NicId(1), NeighbourId(1)).count(), 0, "another NIC");
            check_counters(&cache);
        }
    }

    /// Breaks: a flow with steady acknowledgments does not evict the frames of a slow flow.
    #[test]
    fn a_busy_flow_does_not_evict_others() {
        let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
        let slow = keep(&mut cache, 1, 2, 0, 1_000, TcpFlags::ACK);
        for n in 0..10_000_u32 {
            let busy = keep(&mut cache, 1, 1, n * 1_000, 1_000, TcpFlags::ACK);
            cache.on_acked(busy.id(), Seq::new((n + 1) * 1_000));
            assert!(cache.ages.len() <= 32, "stale entries remain");
        }
        assert!(cache.find(&slow, Seq::new(0)).is_some());
    }

    /// Breaks: of two flows in the same slot, the active one is cached, and an ended one does not block the
    /// slot.
    #[test]
    fn flows_in_the_same_slot_replace_each_other() {
        let mut cache = RetransmitCache::new(ByteCount::new(1_000_000));
        let packet = segment(0, 1, 1_000, 500, TcpFlags::ACK, None);
        let (first, second) = (FlowId(7), FlowId(7 + FLOWS as u64));
        let cached = |cache: &RetransmitCache, id| cache.flow(id).map_or(0, |flow| flow.kept.len());
        cache.keep(first, &packet);
        cache.keep(second, &packet);
        assert_eq!([first, second].map(|id| cached(&cache, id)), [1, 0]);
        for _ in 0..SILENT {
            cache.keep(FlowId(9), &packet);
        }
        cache.keep(second, &packet);
        assert_eq!([first, second].map(|id| cached(&cache, id)), [0, 1]);
        cache.on_acked(second, Seq::new(1_500));
        cache.keep(first, &packet);
        assert_eq!([first, second].map(|id| cached(&cache, id)), [1, 0]);
        check_counters(&cache);
    }

    /// Breaks: memory is bounded, and the oldest frames are evicted first.
    #[test]
    fn the_oldest_frames_are_evicted() {
        let limit = ByteCount::new(20_000);
        let mut cache = RetransmitCache::new(limit);
        let mut flow = None;
        for n in 0..10_000_u32 {
            // Every third frame is a retransmission of a recent one.
            let number = if n % 3 == 2 { n - 2 } else { n };
            flow = Some(keep(&mut cache, n.into(), 1, number * 1_000, 1_000, TcpFlags::ACK));
            assert!(cache.bytes() <= limit);
            assert!(cache.ages.len() <= cache.count * 2 + 17);
        }
        let flow = flow.expect("some were cached");
        assert!(cache.find(&flow, Seq::new(9_999_000)).is_some());
        assert!(cache.find(&flow, Seq::new(9_000_000)).is_none());
        check_counters(&cache);
    }
}
