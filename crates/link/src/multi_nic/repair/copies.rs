//! What was sent lately, to be sent again.

use crate::multi_nic::segment::{FlowKey, Segment};
use crate::multi_nic::{FlowId, NeighbourId, NicId};
use farpace_units::{ByteCount, Instant, Seq};
use farpace_wire::{Packet, TcpFlags};
use std::collections::{BTreeMap, VecDeque};

/// Copies of the segments that were sent last, found by their numbers.
///
/// Law: it never holds more than its limit.
#[derive(Clone, Debug)]
pub struct Copies {
    limit: ByteCount,
    bytes: ByteCount,
    /// By flow and first number.
    kept: BTreeMap<(FlowId, u32), Kept>,
    /// In the order in which they were sent. Those that were sent again since stand here twice.
    ages: VecDeque<(FlowId, u32, u64)>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Kept {
    packet: Packet,
    /// None: it still waits to be sent.
    sent: Option<Sent>,
    turn: u64,
}

/// How a frame was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// By which card.
    pub nic: NicId,
    /// To whom.
    pub neighbour: NeighbourId,
}

impl Copies {
    /// So many bytes at most, headers included.
    pub const fn new(limit: ByteCount) -> Copies {
        Copies { limit, bytes: ByteCount::ZERO, kept: BTreeMap::new(), ages: VecDeque::new(), next: 0 }
    }
    /// A frame is to be sent. Only what a receiver holds others back for is kept: segments with data, without SYN, FIN or RST.
    pub fn keep(&mut self, flow: FlowId, packet: &Packet) {
        let Some(segment) = segment_of(packet).filter(|_| packet.len() <= self.limit) else { return };
        let turn = self.next;
        self.next += 1;
        let at = (flow, segment.seq.get());
        self.bytes += packet.len();
        if let Some(old) = self.kept.insert(at, Kept { packet: packet.clone(), sent: None, turn }) {
            self.bytes -= old.packet.len();
        }
        self.ages.push_back((at.0, at.1, turn));
        while self.bytes > self.limit || self.ages.len() > self.kept.len() * 2 + 16 {
            let Some((flow, seq, turn)) = self.ages.pop_front() else { break };
            if self.kept.get(&(flow, seq)).is_some_and(|kept| kept.turn == turn)
                && let Some(old) = self.kept.remove(&(flow, seq))
            {
                self.bytes -= old.packet.len();
            }
        }
    }
    /// It leaves.
    pub fn on_sent(&mut self, flow: FlowId, packet: &Packet, sent: Sent) {
        let kept = segment_of(packet).and_then(|segment| self.kept.get_mut(&(flow, segment.seq.get())));
        if let Some(kept) = kept {
            kept.sent = Some(sent);
        }
    }
    /// It was dropped before it left: it is TCP's to send it again.
    pub fn on_dropped(&mut self, flow: FlowId, packet: &Packet) {
        let kept = segment_of(packet).and_then(|segment| self.kept.remove(&(flow, segment.seq.get())));
        if let Some(kept) = kept {
            self.bytes -= kept.packet.len();
        }
    }
    /// The frame that begins there, and how it was sent last; not at all: it still waits.
    pub fn find(&self, flow: &FlowKey, seq: Seq) -> Option<(&Packet, Option<Sent>)> {
        let kept = self.kept.get(&(flow.id(), seq.get()))?;
        let same = Segment::of(&kept.packet).is_some_and(|segment| segment.flow == *flow);
        same.then_some((&kept.packet, kept.sent))
    }
    /// The frames of the flow that begin from `from` to before `to`, `most` at most: where, how long, and how they were sent.
    pub fn between(
        &self,
        flow: &FlowKey,
        from: Seq,
        to: Seq,
        most: usize,
    ) -> impl Iterator<Item = (Seq, u32, Option<Sent>)> {
        let id = flow.id();
        // The circle of numbers may turn over in between.
        let (first, second) = match from.get() <= to.get() {
            true => ((id, from.get())..(id, to.get()), (id, 0)..(id, 0)),
            false => ((id, from.get())..(FlowId(id.0.saturating_add(1)), 0), (id, 0)..(id, to.get())),
        };
        let kept = self.kept.range(first).chain(self.kept.range(second)).take(most);
        kept.map(|((_, seq), kept)| (Seq::new(*seq), kept.packet.payload().len() as u32, kept.sent))
    }
    /// It is sent again: what is asked for once more must have been lost once more.
    pub fn sent_again(&mut self, flow: &FlowKey, seq: Seq, sent: Sent) {
        if let Some(kept) = self.kept.get_mut(&(flow.id(), seq.get())) {
            kept.sent = Some(sent);
        }
    }
    /// What is kept.
    pub const fn bytes(&self) -> ByteCount {
        self.bytes
    }
}

fn segment_of(packet: &Packet) -> Option<Segment> {
    let ends = TcpFlags::SYN.with(TcpFlags::FIN).with(TcpFlags::RST);
    Segment::of(packet).filter(|segment| segment.len > 0 && !segment.flags.intersects(ends))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_nic::flow_of;
    use crate::multi_nic::segment::made::segment;

    fn sent(ms: u64) -> Sent {
        Sent { at: Instant::from_nanos(ms * 1_000_000), nic: NicId(0), neighbour: NeighbourId(1) }
    }
    fn keep(copies: &mut Copies, ms: u64, port: u16, seq: u32, len: usize, flags: TcpFlags) -> FlowKey {
        let packet = segment(0, port, seq, len, flags, None);
        copies.keep(flow_of(&packet), &packet);
        copies.on_sent(flow_of(&packet), &packet, sent(ms));
        Segment::of(&packet).expect("a segment").flow
    }

    /// Breaks: what is asked for is not found although it was just sent, or another flow's is sent in its place.
    #[test]
    fn frames_are_found_by_flow_and_number() {
        let mut copies = Copies::new(ByteCount::new(1_000_000));
        let one = keep(&mut copies, 1, 1, 1_000, 500, TcpFlags::ACK);
        let two = keep(&mut copies, 2, 2, 1_000, 700, TcpFlags::ACK);
        let found =
            |flow, seq| copies.find(flow, Seq::new(seq)).map(|(packet, sent)| (packet.payload().len(), sent));
        assert_eq!(found(&one, 1_000), Some((500, Some(sent(1)))));
        assert_eq!(found(&two, 1_000), Some((700, Some(sent(2)))));
        assert_eq!(found(&one, 1_001), None);
        let between = |flow: &FlowKey, from, to| {
            let all = copies.between(flow, Seq::new(from), Seq::new(to), 9);
            all.map(|(seq, len, _)| (seq.get(), len)).collect::<Vec<_>>()
        };
        assert_eq!(between(&one, 900, 1_001), [(1_000, 500)]);
        assert_eq!(between(&one, 900, 1_000), []);
    }

    /// Breaks: nothing is found where the circle of numbers turns over.
    #[test]
    fn numbers_turn_over() {
        let mut copies = Copies::new(ByteCount::new(1_000_000));
        let first = u32::MAX - 999;
        let flow = keep(&mut copies, 1, 1, first, 1_000, TcpFlags::ACK);
        keep(&mut copies, 2, 1, 0, 500, TcpFlags::ACK);
        let numbers = |from: u32, to| {
            let all = copies.between(&flow, Seq::new(from), Seq::new(to), 9);
            all.map(|(seq, ..)| seq.get()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(first, 1), [first, 0]);
        assert_eq!(numbers(first, 0), [first]);
        assert_eq!(numbers(first + 1, 1), [0]);
    }

    /// Breaks: a frame that still waits in a queue is taken for one that is gone, and TCP for one that was lost; or the other way round.
    #[test]
    fn what_waits_is_told_from_what_was_dropped() {
        let mut copies = Copies::new(ByteCount::new(1_000_000));
        let packet = segment(0, 1, 1_000, 500, TcpFlags::ACK, None);
        let flow = Segment::of(&packet).expect("a segment").flow;
        copies.keep(flow.id(), &packet);
        assert_eq!(copies.find(&flow, Seq::new(1_000)).map(|(_, sent)| sent), Some(None));
        copies.on_dropped(flow.id(), &packet);
        assert!(copies.find(&flow, Seq::new(1_000)).is_none());
        assert_eq!(copies.bytes(), ByteCount::ZERO);
    }

    /// Breaks: frames that nobody can ask for push out those that are asked for.
    #[test]
    fn only_what_leaves_a_hole_is_kept() {
        let mut copies = Copies::new(ByteCount::new(1_000_000));
        keep(&mut copies, 1, 1, 1, 0, TcpFlags::ACK);
        keep(&mut copies, 1, 1, 1, 10, TcpFlags::ACK.with(TcpFlags::FIN));
        keep(&mut copies, 1, 1, 1, 0, TcpFlags::SYN);
        assert_eq!(copies.bytes(), ByteCount::ZERO);
    }

    /// Breaks: memory grows without limit, or what was sent last is forgotten before what was sent first.
    #[test]
    fn the_oldest_make_room() {
        let limit = ByteCount::new(20_000);
        let mut copies = Copies::new(limit);
        let mut flow = None;
        for n in 0..10_000_u32 {
            // Every third is one of the last ones, sent again.
            let number = if n % 3 == 2 { n - 2 } else { n };
            flow = Some(keep(&mut copies, n.into(), 1, number * 1_000, 1_000, TcpFlags::ACK));
            assert!(copies.bytes() <= limit);
            assert!(copies.ages.len() <= copies.kept.len() * 2 + 17);
        }
        let flow = flow.expect("some were kept");
        assert!(copies.find(&flow, Seq::new(9_999_000)).is_some());
        assert!(copies.find(&flow, Seq::new(9_000_000)).is_none());
        let held: ByteCount = copies.kept.values().map(|kept| kept.packet.len()).sum();
        assert_eq!(held, copies.bytes());
    }
}
