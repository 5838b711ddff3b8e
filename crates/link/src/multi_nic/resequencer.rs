//! Puts received frames in order.

mod repair_requests;
#[cfg(test)]
mod tests;

pub use repair_requests::RepairRequestPath;

use crate::multi_nic::NicId;
use crate::multi_nic::repair::RepairMessage;
use crate::multi_nic::segment::{MultiNicFlowKey, SegmentView};
use arrayvec::ArrayVec;
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::{MacAddr, Packet, TcpFlags};
use repair_requests::RepairRequests;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of flows that are put in order. Further flows pass unchanged.
const FLOWS: usize = 4_096;
/// Maximum number of paths of a flow.
const MAX_PATHS: usize = 16;
/// A path that has delivered nothing of a flow for this multiple of the timeout, plus `MIN_SILENCE`, is not
/// waited for. Time counts only while the flow delivers something, because a flow with a small window and a
/// long round trip is silent most of the time.
const SILENCE_FACTOR: u64 = 4;
const MIN_SILENCE: Span = Span::from_millis(20);
/// Up to this multiple of the timeout, slow paths of a new flow may have delivered nothing yet.
const STARTUP_FACTOR: u64 = 2;
/// Sequence numbers farther ahead are beyond any window.
const MAX_DISTANCE: i32 = 1 << 30;

/// Holds TCP segments that arrived on a fast path until earlier segments have arrived on a slow one.
///
/// For each flow it knows the next sequence number. A later segment waits until the hole before it is filled,
/// except:
/// * it waits at most for the configured time, from the detection of the hole;
/// * it does not wait if all paths of the flow have delivered a segment behind the hole. A path keeps frames
///   in order, so the missing segment is lost. The paths of a flow are known only after some time. If the
///   sender has a retransmit cache, a repair request is sent, and the segment waits for the repair unless the
///   sender refuses;
/// * the segments of all flows do not exceed the configured number of bytes.
///
/// All other frames pass immediately: UDP and other protocols, segments without data, SYN, FIN and RST,
/// retransmissions.
///
/// Invariant: every frame is passed on exactly once.
#[derive(Clone, Debug)]
pub struct Resequencer {
    /// Maximum time that a frame waits.
    time: Span,
    /// Maximum size of all held frames.
    max_bytes: ByteCount,
    /// Empty before the first segment.
    flows: Vec<Option<Box<ResequencedFlow>>>,
    /// Deadlines of the flows that hold segments.
    agenda: BTreeSet<(Instant, usize)>,
    frames: u64,
    bytes: ByteCount,
    gave_up: u64,
    /// Pending repair requests; empty between calls.
    pending_requests: Vec<(RepairRequestPath, RepairMessage)>,
}

#[derive(Clone, Debug)]
struct ResequencedFlow {
    key: MultiNicFlowKey,
    /// How long it has been active. Of each pause, at most the timeout counts.
    active: Span,
    /// When that was last updated.
    counted: Instant,
    /// The next sequence number, extended to 64 bits.
    next: u64,
    held: BTreeMap<u64, HeldFrame>,
    /// Arrivals of held segments, with some stale entries.
    arrivals: VecDeque<(Instant, u64)>,
    deadline: Option<Instant>,
    paths: ArrayVec<PathProgress, MAX_PATHS>,
    requests: RepairRequests,
}

#[derive(Clone, Debug)]
struct HeldFrame {
    packet: Packet,
    end: u64,
    at: Instant,
}

#[derive(Clone, Copy, Debug)]
struct PathProgress {
    nic: NicId,
    from: MacAddr,
    /// End of the last segment that it has delivered.
    high: u64,
    /// `active` of the flow at that time.
    at: Span,
}

impl Resequencer {
    /// A resequencer that holds frames for at most `time`, and at most `max_bytes` of them.
    pub fn new(time: Span, max_bytes: ByteCount) -> Resequencer {
        Resequencer {
            time,
            max_bytes,
            flows: Vec::new(),
            agenda: BTreeSet::new(),
            frames: 0,
            bytes: ByteCount::ZERO,
            gave_up: 0,
            pending_requests: Vec::new(),
        }
    }
    /// Sets how long a frame waits at most. Frames that wait already keep their time.
    pub fn set_time(&mut self, time: Span) {
        self.time = time;
    }
    /// Handles a frame that `nic` has received, with the addresses that it had on the wire. Frames to pass on
    /// are appended to `out`. `repair_path` returns where to send repair requests to its sender, if that has
    /// a retransmit cache.
    pub fn push(
        &mut self,
        now: Instant,
        nic: NicId,
        packet: Packet,
        repair_path: impl Fn(MacAddr) -> Option<RepairRequestPath>,
        out: &mut Vec<Packet>,
    ) {
        let Some(segment) = SegmentView::of(&packet) else { return out.push(packet) };
        let ends = segment.flags.intersects(TcpFlags::SYN.with(TcpFlags::RST));
        if segment.len == 0 && !ends {
            return out.push(packet);
        }
        if self.flows.is_empty() {
            self.flows.resize(FLOWS, None);
        }
        let at = segment.flow.slot(FLOWS);
        let Some(slot) = self.flows.get_mut(at) else { return out.push(packet) };
        if slot.as_ref().is_some_and(|flow| flow.key != segment.flow && !flow.held.is_empty()) {
            return out.push(packet);
        }
        if ends {
            if let Some(mut flow) = slot.take_if(|flow| flow.key == segment.flow) {
                self.release(&mut flow, u64::MAX, out);
                self.schedule(&mut flow, at);
            }
            if segment.flags.contains(TcpFlags::SYN) {
                self.put(at, Box::new(ResequencedFlow::new(now, &segment)));
            }
            return out.push(packet);
        }
        let from = packet.macs().0;
        if let Some(flow) = slot.as_mut().filter(|flow| flow.key == segment.flow && flow.held.is_empty()) {
            let distance = segment.seq.distance(flow.next_seq());
            if (-MAX_DISTANCE..=0).contains(&distance) {
                let end = flow.position(distance).saturating_add(segment.len.into());
                flow.see(now, self.time, nic, from, end);
                flow.next = flow.next.max(end);
                return out.push(packet);
            }
            if distance.unsigned_abs() > MAX_DISTANCE.unsigned_abs() {
                // Another connection between the same ports, whose SYN was not seen.
                *slot = None;
            }
        }
        let same = slot.take().filter(|flow| flow.key == segment.flow);
        let mut flow = same.unwrap_or_else(|| Box::new(ResequencedFlow::new(now, &segment)));
        let distance = segment.seq.distance(flow.next_seq());
        let start = flow.position(distance);
        let end = start.saturating_add(segment.len.into());
        if distance <= MAX_DISTANCE && !flow.requests.is_requested(start) {
            flow.see(now, self.time, nic, from, end);
        }
        let is_next = distance <= 0;
        let hold = (1..=MAX_DISTANCE).contains(&distance)
            && !segment.flags.contains(TcpFlags::FIN)
            && !flow.held.contains_key(&start)
            && self.make_room(&mut flow, packet.len(), out);
        if hold {
            self.frames += 1;
            self.bytes += packet.len();
            flow.requests.look_up(now, self.time, from, repair_path);
            flow.arrivals.push_back((now, start));
            flow.held.insert(start, HeldFrame { packet, end, at: now });
        } else {
            out.push(packet);
            if is_next {
                flow.next = flow.next.max(end);
            }
        }
        self.settle(&mut flow, now, out);
        self.schedule(&mut flow, at);
        self.put(at, flow);
    }
    /// When to call [`on_deadline`](Self::on_deadline). Pure.
    pub fn deadline(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }
    /// Handles the deadline.
    pub fn on_deadline(&mut self, now: Instant, out: &mut Vec<Packet>) {
        while let Some(&(when, at)) = self.agenda.first()
            && when <= now
        {
            self.agenda.pop_first();
            let Some(mut flow) = self.flows.get_mut(at).and_then(Option::take) else { continue };
            self.settle(&mut flow, now, out);
            self.schedule(&mut flow, at);
            self.put(at, flow);
        }
    }
    /// Number of held frames.
    pub const fn held(&self) -> u64 {
        self.frames
    }
    /// Size of held frames, with headers.
    pub const fn held_bytes(&self) -> ByteCount {
        self.bytes
    }
    /// Number of holes that were not filled in time.
    pub const fn timeouts(&self) -> u64 {
        self.gave_up
    }

    /// Releases segments of this flow, first hole first, until `len` more bytes fit. False: other flows hold
    /// too much.
    fn make_room(&mut self, flow: &mut ResequencedFlow, len: ByteCount, out: &mut Vec<Packet>) -> bool {
        while self.bytes + len > self.max_bytes {
            let Some(first) = flow.held.keys().next().copied() else { return false };
            self.gave_up += 1;
            self.release(flow, first, out);
        }
        true
    }
    /// Releases all segments that need not wait.
    fn settle(&mut self, flow: &mut ResequencedFlow, now: Instant, out: &mut Vec<Packet>) {
        self.release(flow, flow.next, out);
        let active = flow.count(now, self.time);
        let silent = self.time * SILENCE_FACTOR + MIN_SILENCE;
        while let Some(first) = flow.held.keys().next().copied() {
            let may_come = active <= self.time * STARTUP_FACTOR
                || flow.paths.iter().any(|path| path.high <= flow.next && active - path.at <= silent);
            let before_timeout = flow.seen_at().is_some_and(|at| now < at + self.time);
            if before_timeout
                && !flow.requests.is_refused(flow.next)
                && (may_come || flow.requests.is_enabled())
            {
                break;
            }
            self.gave_up += 1;
            self.release(flow, first, out);
        }
        self.request_missing(flow, now, silent);
    }
    /// Releases all segments up to `upto`, and those that follow without a hole.
    fn release(&mut self, flow: &mut ResequencedFlow, upto: u64, out: &mut Vec<Packet>) {
        if upto != u64::MAX {
            flow.next = flow.next.max(upto);
        }
        while let Some(first) = flow.held.first_entry()
            && *first.key() <= flow.next.max(upto)
        {
            let HeldFrame { packet, end, .. } = first.remove();
            flow.next = flow.next.max(end);
            self.frames -= 1;
            self.bytes -= packet.len();
            out.push(packet);
        }
    }
    fn put(&mut self, at: usize, flow: Box<ResequencedFlow>) {
        if let Some(slot) = self.flows.get_mut(at) {
            *slot = Some(flow);
        }
    }
    fn schedule(&mut self, flow: &mut ResequencedFlow, at: usize) {
        let deadline = flow.seen_at().map(|seen| seen + self.time);
        let deadline = deadline.into_iter().chain(flow.requests.deadline()).min();
        if deadline != flow.deadline {
            if let Some(old) = flow.deadline {
                self.agenda.remove(&(old, at));
            }
            flow.deadline = deadline;
        }
        if let Some(new) = deadline {
            self.agenda.insert((new, at));
        }
    }
}

impl ResequencedFlow {
    fn new(now: Instant, segment: &SegmentView) -> ResequencedFlow {
        // Not near zero, so that earlier sequence numbers do not become negative.
        let first = segment.seq + u32::from(segment.flags.contains(TcpFlags::SYN));
        ResequencedFlow {
            key: segment.flow,
            active: Span::ZERO,
            counted: now,
            next: (1 << 32) + u64::from(first.get()),
            held: BTreeMap::new(),
            arrivals: VecDeque::new(),
            deadline: None,
            paths: ArrayVec::new(),
            requests: RepairRequests::default(),
        }
    }
    fn next_seq(&self) -> farpace_units::Seq {
        farpace_units::Seq::new(self.next as u32)
    }
    /// The 64-bit sequence number at this distance from the next one.
    fn position(&self, distance: i32) -> u64 {
        self.next.saturating_add_signed(distance.into())
    }
    /// How long the flow has been active. Of a pause, at most `max` counts.
    fn count(&mut self, now: Instant, max: Span) -> Span {
        self.active += now.since(self.counted).min(max);
        self.counted = now;
        self.active
    }
    /// Records that a path has delivered a segment that ends at `end`.
    fn see(&mut self, now: Instant, max: Span, nic: NicId, from: MacAddr, end: u64) {
        let now = self.count(now, max);
        if let Some(path) = self.paths.iter_mut().find(|path| path.nic == nic && path.from == from) {
            (path.high, path.at) = (path.high.max(end), now);
            return;
        }
        if self.paths.is_full() {
            let oldest = self.paths.iter().enumerate().min_by_key(|(_, path)| path.at);
            if let Some((at, _)) = oldest {
                self.paths.swap_remove(at);
            }
        }
        self.paths.push(PathProgress { nic, from, high: end, at: now });
    }
    /// When the first hole was detected: the arrival of the first held segment.
    fn seen_at(&mut self) -> Option<Instant> {
        while let Some(&(at, start)) = self.arrivals.front() {
            if self.held.get(&start).is_some_and(|held| held.at == at) {
                return Some(at);
            }
            self.arrivals.pop_front();
        }
        None
    }
}
