//! Repair: retransmits frames that neighbours miss or that a failed NIC has lost, and requests frames that
//! are missing here.

use super::neighbours::MultiNicNeighbours;
use super::{MultiNic, QueuedFrame};
use crate::multi_nic::probe::Responder;
use crate::multi_nic::repair::{CachedFrame, MAX_HOLES, Missing, MissingRange, RetransmitCache};
use crate::multi_nic::segment::acknowledged;
use crate::multi_nic::{FlowId, MAX_NICS, NeighbourId, NicId, NicPath, RepairRequestTime, flow_of};
use crate::pacing::on_the_line;
use arrayvec::ArrayVec;
use farpace_path::{Cx, DropReason};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::{MacAddr, NicFlags, Packet};
use std::collections::VecDeque;

/// Maximum number of frames per NIC that wait for retransmission. Further requests will be repeated.
const MAX_WAITING: usize = 512;
/// Maximum number of frames per flow that are retransmitted when a path fails.
const RESCUED: usize = 64;
/// Frames between two holes that are looked at.
const MAX_EXAMINED: usize = 64;

/// State for retransmissions.
#[derive(Debug)]
pub(super) struct Repair {
    copies: RetransmitCache,
    /// By card: what goes before all else that the stack has sent.
    waiting: Vec<VecDeque<QueuedFrame<Packet>>>,
    bytes: Vec<ByteCount>,
}

impl Repair {
    /// A cache of `limit` bytes, for `their_nics` NICs.
    pub fn new(limit: ByteCount, cards: usize) -> Repair {
        let waiting = (0..cards).map(|_| VecDeque::new()).collect();
        Repair { copies: RetransmitCache::new(limit), waiting, bytes: vec![ByteCount::ZERO; cards] }
    }
    /// Number of frames that wait for retransmission.
    pub fn held(&self) -> u64 {
        self.waiting.iter().map(|waiting| waiting.len() as u64).sum()
    }
    /// The next retransmission on `nic`, if its path is idle.
    fn next(&mut self, nic: NicId, is_free: impl Fn(NeighbourId) -> bool) -> Option<QueuedFrame<Packet>> {
        let waiting = self.waiting.get_mut(nic.index())?;
        let item = waiting.pop_front_if(|item| is_free(item.neighbour))?;
        if let Some(bytes) = self.bytes.get_mut(nic.index()) {
            *bytes -= item.bytes;
        }
        Some(item)
    }
}

/// Where to send repair requests to the host that owns this address, if it has a retransmit cache: the path
/// with the shortest round trip.
pub(super) fn way_to_ask(
    neighbours: &MultiNicNeighbours,
    responder: &Responder,
    from: MacAddr,
) -> Option<RepairRequestTime> {
    let (_, cards) = neighbours.cards_of_owner(from, NicFlags::REPAIRS)?;
    let theirs = |mac: MacAddr| cards.iter().any(|(card, _)| *card == mac);
    let ways = responder.ways().filter(|(_, mac, rtt)| !rtt.is_zero() && theirs(*mac));
    ways.min_by_key(|(.., rtt)| *rtt).map(|(nic, to, rtt)| RepairRequestTime { nic, to, rtt })
}

impl MultiNic {
    /// Stores a frame in the retransmit cache, if there are several paths to its receiver. Returns its
    /// sequence number.
    pub(super) fn keep(&mut self, flow: FlowId, packet: &Packet, neighbour: NeighbourId) -> Option<Seq> {
        let repair = self.repair.as_mut().filter(|_| neighbour != NeighbourId::ORDINARY)?;
        repair.copies.keep(flow, packet)
    }
    /// A frame has arrived: removes what it acknowledges from the cache.
    pub(super) fn note_acked(&mut self, packet: &Packet) {
        let kept = self.repair.as_mut().filter(|repair| !repair.copies.bytes().is_zero());
        if let Some(repair) = kept
            && let Some((flow, ack)) = acknowledged(packet)
        {
            repair.copies.on_acked(flow.id(), ack);
        }
    }
    /// Records that a frame is sent.
    pub(super) fn note_sent(&mut self, now: Instant, nic: NicId, item: &QueuedFrame<Packet>) {
        if let Some(copy) = item.copy
            && let Some(repair) = &mut self.repair
        {
            repair.copies.on_sent(item.flow, copy, CachedFrame { at: now, nic, neighbour: item.neighbour });
        }
    }
    /// Records that a frame is dropped because of a full queue.
    pub(super) fn note_dropped(&mut self, item: &QueuedFrame<Packet>) {
        if let Some(copy) = item.copy
            && let Some(repair) = &mut self.repair
        {
            repair.copies.on_dropped(item.flow, copy);
        }
    }
    /// True if a retransmission is queued.
    pub(super) fn repairs_wait(&self) -> bool {
        self.repair.as_ref().is_some_and(|repair| repair.held() > 0)
    }
    /// The next frame to retransmit on `nic`.
    pub(super) fn next_repair(&mut self, now: Instant, nic: NicId) -> Option<QueuedFrame<Packet>> {
        let lanes = &self.lanes;
        let is_free = |id| lanes.path(id, nic).is_some_and(|lane| lane.free <= now);
        self.repair.as_mut()?.next(nic, is_free)
    }
    /// Drops queued retransmissions for failed paths.
    pub(super) fn drop_stranded_repairs(&mut self, cx: &mut Cx<'_>) {
        let Some(repair) = self.repair.as_mut().filter(|repair| repair.held() > 0) else { return };
        for nic in self.lanes.ids() {
            while let Some(waiting) = repair.waiting.get_mut(nic.index())
                && let Some(item) =
                    waiting.pop_front_if(|item| self.lanes.path(item.neighbour, nic).is_none())
            {
                if let Some(bytes) = repair.bytes.get_mut(nic.index()) {
                    *bytes -= item.bytes;
                }
                cx.drop(item.frame, DropReason::Outage);
            }
        }
    }
    /// Handles a neighbour's repair request, or its refusal of one.
    pub(super) fn on_missing(&mut self, from: MacAddr, missing: &Missing, cx: &mut Cx<'_>) {
        if missing.gone {
            if let Some(resequencer) = &mut self.resequencer
                && self.neighbours.cards_of_owner(from, NicFlags::REPAIRS).is_some()
            {
                let mut ready = std::mem::take(&mut self.ready);
                resequencer.gone(cx.now(), missing, &mut ready);
                self.pass_up_all(ready, cx);
                self.ask(cx);
            }
            return;
        }
        let Some((neighbour, _)) = self.neighbours.cards_of_owner(from, NicFlags::RESEQUENCES) else {
            return;
        };
        let settled = self.settled(neighbour, missing);
        let mut gone: ArrayVec<MissingRange, MAX_HOLES> = ArrayVec::new();
        for hole in &missing.holes {
            let Some(repair) = &self.repair else { return };
            let mut again = Vec::new();
            let kept: Vec<_> =
                repair.copies.between(&missing.flow, hole.start, hole.end, MAX_WAITING).collect();
            let whole = kept.len() < MAX_WAITING;
            let mut at = hole.start;
            for (start, len, sent) in kept {
                if start.after(at) {
                    // A range that does not fit is refused when it is requested again.
                    let _ = gone.try_push(MissingRange { start: at, end: start });
                }
                at = at.later(start + len);
                let is_lost = |sent: &CachedFrame| {
                    let settled = settled.get(sent.nic.index()).copied().flatten();
                    sent.neighbour == neighbour && settled.is_some_and(|until| sent.at < until)
                };
                if let Some(sent) = sent.filter(is_lost)
                    && let Some((packet, _)) = repair.copies.find(&missing.flow, start)
                {
                    again.push((start, packet.clone(), sent));
                }
            }
            if at.before(hole.end) && whole {
                let _ = gone.try_push(MissingRange { start: at, end: hole.end });
            }
            for (start, packet, sent) in again {
                self.send_again(start, packet, sent, cx);
            }
        }
        let way = self.lanes.working(neighbour).filter_map(|(nic, lane)| Some((lane.rtt, nic, lane.to?)));
        if let Some((_, nic, to)) = way.min_by_key(|(rtt, ..)| *rtt)
            && let Some(card) = self.lanes.nic(nic).filter(|_| !gone.is_empty())
        {
            let refusal = Missing { gone: true, flow: missing.flow, upto: missing.upto, holes: gone };
            let packet = refusal.frame(card.mac, to);
            self.send_own(nic, packet, cx);
        }
    }
    /// Sends pending repair requests.
    pub(super) fn ask(&mut self, cx: &mut Cx<'_>) {
        let Some(resequencer) = &mut self.resequencer else { return };
        for (by, missing) in resequencer.take_questions() {
            if let Some(card) = self.lanes.nic(by.nic) {
                let packet = missing.frame(card.mac, by.to);
                self.send_own(by.nic, packet, cx);
            }
        }
    }

    /// For each NIC, the time up to which all frames sent have arrived or are lost. Frames of a path stay in
    /// order, so this is the sending time of the latest frame known to have arrived, from probes and from the
    /// frames between the holes.
    fn settled(&self, neighbour: NeighbourId, missing: &Missing) -> [Option<Instant>; MAX_NICS] {
        let mut settled = [None; MAX_NICS];
        for (nic, until) in settled.iter_mut().enumerate() {
            *until = self.prober.as_ref().and_then(|prober| prober.settled(neighbour, NicId(nic as u8)));
        }
        let Some(repair) = &self.repair else { return settled };
        let ends = missing.holes.iter().skip(1).map(|hole| hole.start).chain([missing.upto]);
        for (hole, upto) in missing.holes.iter().zip(ends) {
            let came = repair.copies.between(&missing.flow, hole.end, upto, MAX_EXAMINED);
            for sent in came.filter_map(|(.., sent)| sent).filter(|sent| sent.neighbour == neighbour) {
                if let Some(until) = settled.get_mut(sent.nic.index()) {
                    *until = (*until).max(Some(sent.at));
                }
            }
        }
        settled
    }
    /// Handles the failure of a path, which loses the frames in flight. The first frames of each flow are
    /// retransmitted on other paths, so that ACKs return before the retransmission timeout. TCP then detects
    /// the other losses, and retransmits at the rate of the remaining paths.
    pub(super) fn rescue(&mut self, nic: NicId, neighbour: NeighbourId, cx: &mut Cx<'_>) {
        let Some(repair) = &self.repair else { return };
        let mut lost = Vec::new();
        let (mut last, mut frames) = (None, 0);
        for (packet, seq, sent) in repair.copies.sent_by(nic, neighbour) {
            let flow = flow_of(packet);
            frames = if last == Some(flow) { frames + 1 } else { 1 };
            last = Some(flow);
            if frames <= RESCUED {
                lost.push((seq, packet.clone(), sent));
            }
        }
        for (seq, packet, sent) in lost {
            self.send_again(seq, packet, sent, cx);
        }
    }
    /// Queues a frame for the path on which it arrives first. The path that lost it is penalised.
    fn send_again(&mut self, at: Seq, packet: Packet, sent: CachedFrame, cx: &mut Cx<'_>) {
        let now = cx.now();
        let Some(repair) = &mut self.repair else { return };
        let bytes = on_the_line(packet.len());
        let arrival = |(nic, lane): (NicId, &NicPath)| {
            let before = repair.bytes.get(nic.index()).copied().unwrap_or_default();
            let leaves = self.lanes.begins(nic, lane, now) + lane.pace.span(before);
            let again = if nic == sent.nic { lane.rtt * 2 } else { Span::ZERO };
            (leaves + lane.delay.of(bytes) + again, leaves, nic)
        };
        let Some((_, leaves, nic)) = self.lanes.working(sent.neighbour).map(arrival).min() else { return };
        let (Some(waiting), Some(queued)) =
            (repair.waiting.get_mut(nic.index()), repair.bytes.get_mut(nic.index()))
        else {
            return;
        };
        if waiting.len() >= MAX_WAITING {
            return;
        }
        *queued += bytes;
        let flow = flow_of(&packet);
        repair.copies.on_sent(flow, at, CachedFrame { at: leaves, nic, ..sent });
        waiting.push_back(QueuedFrame {
            flow,
            frame: packet,
            bytes,
            neighbour: sent.neighbour,
            copy: Some(at),
        });
        self.stats.repaired += 1;
        cx.made();
    }
}
