//! Repair: retransmits frames that neighbours miss or that a failed NIC has lost, and requests frames that
//! are missing here.

use super::neighbours::MultiNicNeighbours;
use super::{MultiNic, QueuedFrame};
use crate::multi_nic::probe::Responder;
use crate::multi_nic::repair::{CachedFrame, MAX_HOLES, MissingRange, RepairMessage, RetransmitCache};
use crate::multi_nic::segment::acknowledged;
use crate::multi_nic::{FlowId, MAX_NICS, NeighbourId, NicId, NicPath, RepairRequestPath, flow_of};
use crate::pacing::wire_len;
use arrayvec::ArrayVec;
use farpace_path::{Cx, DropReason};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::{MacAddr, NicFlags, Packet};
use std::collections::VecDeque;

/// Maximum number of frames per NIC that wait for retransmission. Further requests will be repeated.
const MAX_WAITING: usize = 512;
/// Maximum number of frames per flow that are retransmitted when a path fails.
const MAX_RESCUED_PER_FLOW: usize = 64;
/// Maximum number of frames between two holes that are examined.
const MAX_EXAMINED: usize = 64;

/// State for retransmissions.
#[derive(Debug)]
pub(super) struct Repair {
    cache: RetransmitCache,
    /// By NIC: frames that precede all others of the stack.
    waiting: Vec<VecDeque<QueuedFrame<Packet>>>,
    bytes: Vec<ByteCount>,
}

impl Repair {
    /// A cache of `limit` bytes, for `their_nics` NICs.
    pub fn new(limit: ByteCount, their_nics: usize) -> Repair {
        let waiting = (0..their_nics).map(|_| VecDeque::new()).collect();
        Repair { cache: RetransmitCache::new(limit), waiting, bytes: vec![ByteCount::ZERO; their_nics] }
    }
    /// Number of frames that wait for retransmission.
    pub fn held(&self) -> u64 {
        self.waiting.iter().map(|waiting| waiting.len() as u64).sum()
    }
    /// The next retransmission on `nic`, if its path is idle.
    fn next(&mut self, nic: NicId, is_free: impl Fn(NeighbourId) -> bool) -> Option<QueuedFrame<Packet>> {
        let waiting = self.waiting.get_mut(nic.index())?;
        waiting.front().filter(|item| is_free(item.neighbour))?;
        let item = waiting.pop_front()?;
        if let Some(bytes) = self.bytes.get_mut(nic.index()) {
            *bytes -= item.bytes;
        }
        Some(item)
    }
}

/// Where to send repair requests to the host that owns this address, if it has a retransmit cache: the path
/// with the shortest round trip.
pub(super) fn repair_request_path(
    neighbours: &MultiNicNeighbours,
    responder: &Responder,
    from: MacAddr,
) -> Option<RepairRequestPath> {
    let (_, their_nics) = neighbours.nics_of_owner(from, NicFlags::REPAIRS)?;
    let theirs = |mac: MacAddr| their_nics.iter().any(|(own_nic, _)| *own_nic == mac);
    let paths = responder.round_trips().filter(|(_, mac, rtt)| !rtt.is_zero() && theirs(*mac));
    paths.min_by_key(|(.., rtt)| *rtt).map(|(nic, to, rtt)| RepairRequestPath { nic, to, rtt })
}

impl MultiNic {
    /// Stores a frame in the retransmit cache, if there are several paths to its receiver. Returns its
    /// sequence number.
    pub(super) fn keep(&mut self, flow: FlowId, packet: &Packet, neighbour: NeighbourId) -> Option<Seq> {
        let repair = self.repair.as_mut().filter(|_| neighbour != NeighbourId::ORDINARY)?;
        repair.cache.keep(flow, packet)
    }
    /// A frame has arrived: removes what it acknowledges from the cache.
    pub(super) fn on_acked_frame(&mut self, packet: &Packet) {
        let kept = self.repair.as_mut().filter(|repair| !repair.cache.bytes().is_zero());
        if let Some(repair) = kept
            && let Some((flow, ack)) = acknowledged(packet)
        {
            repair.cache.on_acked(flow.id(), ack);
        }
    }
    /// Records that a frame is sent.
    pub(super) fn on_frame_sent(&mut self, now: Instant, nic: NicId, item: &QueuedFrame<Packet>) {
        if let Some(cached) = item.cached
            && let Some(repair) = &mut self.repair
        {
            repair.cache.on_sent(item.flow, cached, CachedFrame { at: now, nic, neighbour: item.neighbour });
        }
    }
    /// Records that a frame is dropped because of a full queue.
    pub(super) fn on_frame_dropped(&mut self, item: &QueuedFrame<Packet>) {
        if let Some(cached) = item.cached
            && let Some(repair) = &mut self.repair
        {
            repair.cache.on_dropped(item.flow, cached);
        }
    }
    /// True if a retransmission is queued.
    pub(super) fn repairs_wait(&self) -> bool {
        self.repair.as_ref().is_some_and(|repair| repair.held() > 0)
    }
    /// The next frame to retransmit on `nic`.
    pub(super) fn next_repair(&mut self, now: Instant, nic: NicId) -> Option<QueuedFrame<Packet>> {
        let paths = &self.paths;
        let is_free = |id| paths.path(id, nic).is_some_and(|path| path.free <= now);
        self.repair.as_mut()?.next(nic, is_free)
    }
    /// Drops queued retransmissions for failed paths.
    pub(super) fn drop_stranded_repairs(&mut self, cx: &mut Cx<'_>) {
        let Some(repair) = self.repair.as_mut().filter(|repair| repair.held() > 0) else { return };
        for nic in self.paths.ids() {
            while let Some(waiting) = repair.waiting.get_mut(nic.index())
                && waiting.front().is_some_and(|item| self.paths.path(item.neighbour, nic).is_none())
                && let Some(item) = waiting.pop_front()
            {
                if let Some(bytes) = repair.bytes.get_mut(nic.index()) {
                    *bytes -= item.bytes;
                }
                cx.drop(item.frame, DropReason::Outage);
            }
        }
    }
    /// Handles a neighbour's repair request, or its refusal of one.
    pub(super) fn on_repair_message(&mut self, from: MacAddr, missing: &RepairMessage, cx: &mut Cx<'_>) {
        if missing.refused {
            if let Some(resequencer) = &mut self.resequencer
                && self.neighbours.nics_of_owner(from, NicFlags::REPAIRS).is_some()
            {
                let mut ready = std::mem::take(&mut self.ready);
                resequencer.on_refusal(cx.now(), missing, &mut ready);
                self.pass_up_all(ready, cx);
                self.send_repair_requests(cx);
            }
            return;
        }
        let Some((neighbour, _)) = self.neighbours.nics_of_owner(from, NicFlags::RESEQUENCES) else {
            return;
        };
        let settled = self.settled_by_nic(neighbour, missing);
        let mut gone: ArrayVec<MissingRange, MAX_HOLES> = ArrayVec::new();
        for hole in &missing.holes {
            let Some(repair) = &self.repair else { return };
            let mut again = Vec::new();
            let kept: Vec<_> =
                repair.cache.between(&missing.flow, hole.start, hole.end, MAX_WAITING).collect();
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
                    && let Some((packet, _)) = repair.cache.find(&missing.flow, start)
                {
                    again.push((start, packet.clone(), sent));
                }
            }
            if at.before(hole.end) && whole {
                let _ = gone.try_push(MissingRange { start: at, end: hole.end });
            }
            for (start, packet, sent) in again {
                self.retransmit(start, packet, sent, cx);
            }
        }
        let path = self.paths.working(neighbour).filter_map(|(nic, path)| Some((path.rtt, nic, path.to?)));
        if let Some((_, nic, to)) = path.min_by_key(|(rtt, ..)| *rtt)
            && let Some(own_nic) = self.paths.nic(nic).filter(|_| !gone.is_empty())
        {
            let refusal =
                RepairMessage { refused: true, flow: missing.flow, upto: missing.upto, holes: gone };
            let packet = refusal.frame(own_nic.mac, to);
            self.send_own(nic, packet, cx);
        }
    }
    /// Sends pending repair requests.
    pub(super) fn send_repair_requests(&mut self, cx: &mut Cx<'_>) {
        let Some(resequencer) = &mut self.resequencer else { return };
        for (by, missing) in resequencer.take_requests() {
            if let Some(own_nic) = self.paths.nic(by.nic) {
                let packet = missing.frame(own_nic.mac, by.to);
                self.send_own(by.nic, packet, cx);
            }
        }
    }

    /// For each NIC, the time up to which all frames sent have arrived or are lost. Frames of a path stay in
    /// order, so this is the sending time of the latest frame known to have arrived, from probes and from the
    /// frames between the holes.
    fn settled_by_nic(&self, neighbour: NeighbourId, missing: &RepairMessage) -> [Option<Instant>; MAX_NICS] {
        let mut settled = [None; MAX_NICS];
        for (nic, until) in settled.iter_mut().enumerate() {
            *until = self.prober.as_ref().and_then(|prober| prober.settled(neighbour, NicId(nic as u8)));
        }
        let Some(repair) = &self.repair else { return settled };
        let ends = missing.holes.iter().skip(1).map(|hole| hole.start).chain([missing.upto]);
        for (hole, upto) in missing.holes.iter().zip(ends) {
            let came = repair.cache.between(&missing.flow, hole.end, upto, MAX_EXAMINED);
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
        for (packet, seq, sent) in repair.cache.sent_by(nic, neighbour) {
            let flow = flow_of(packet);
            frames = if last == Some(flow) { frames + 1 } else { 1 };
            last = Some(flow);
            if frames <= MAX_RESCUED_PER_FLOW {
                lost.push((seq, packet.clone(), sent));
            }
        }
        for (seq, packet, sent) in lost {
            self.retransmit(seq, packet, sent, cx);
        }
    }
    /// Queues a frame for the path on which it arrives first. The path that lost it is penalised.
    fn retransmit(&mut self, at: Seq, packet: Packet, sent: CachedFrame, cx: &mut Cx<'_>) {
        let now = cx.now();
        let Some(repair) = &mut self.repair else { return };
        let bytes = wire_len(packet.len());
        let arrival = |(nic, path): (NicId, &NicPath)| {
            let before = repair.bytes.get(nic.index()).copied().unwrap_or_default();
            let leaves = self.paths.begins(nic, path, now) + path.pace.span(before);
            let again = if nic == sent.nic { path.rtt * 2 } else { Span::ZERO };
            (leaves + path.delay.of(bytes) + again, leaves, nic)
        };
        let Some((_, leaves, nic)) = self.paths.working(sent.neighbour).map(arrival).min() else { return };
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
        repair.cache.on_sent(flow, at, CachedFrame { at: leaves, nic, ..sent });
        waiting.push_back(QueuedFrame {
            flow,
            frame: packet,
            bytes,
            neighbour: sent.neighbour,
            cached: Some(at),
        });
        self.stats.retransmitted += 1;
        cx.made();
    }
}
