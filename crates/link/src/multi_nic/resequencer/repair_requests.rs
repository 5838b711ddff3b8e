//! Repair requests of a receiver.

use super::{ResequencedFlow, Resequencer};
use crate::multi_nic::NicId;
use crate::multi_nic::repair::{MAX_HOLES, MissingRange, RepairMessage};
use arrayvec::ArrayVec;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::MacAddr;

/// Minimum interval between two lookups of where to send requests.
const LOOKUP_INTERVAL: Span = Span::from_millis(25);
/// Minimum interval between two requests for the same hole; otherwise half a round trip. The sender ignores
/// requests for frames that it has just retransmitted.
const MIN_REPEAT_INTERVAL: Span = Span::from_millis(1);
/// Maximum number of messages at once for a flow.
const MAX_MESSAGES: usize = 4;
/// Maximum number of held segments that are examined for a message.
const MAX_EXAMINED: usize = 4_096;

/// Where to send repair requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairRequestPath {
    /// The own NIC.
    pub nic: NicId,
    /// The sender's NIC.
    pub to: MacAddr,
    /// Round trip time of the path.
    pub rtt: Span,
}

/// State of the repair requests of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct RepairRequests {
    /// None: no requests are sent.
    by: Option<RepairRequestPath>,
    looked_at: Option<Instant>,
    /// Holes below have been requested.
    upto: u64,
    /// When to repeat the requests.
    again_at: Option<Instant>,
    /// Ranges that the sender has refused.
    refused: ArrayVec<(u64, u64), MAX_HOLES>,
}

impl RepairRequests {
    /// When to repeat the requests.
    pub fn deadline(&self) -> Option<Instant> {
        self.again_at
    }
    /// True if a segment there has probably been requested. A retransmission may use a path that the flow
    /// does not use.
    pub const fn is_requested(&self, start: u64) -> bool {
        start < self.upto
    }
    /// True if the sender has a retransmit cache.
    pub const fn is_enabled(&self) -> bool {
        self.by.is_some()
    }
    /// True if the sender has refused to retransmit what begins at `next`.
    pub fn is_refused(&self, next: u64) -> bool {
        self.refused.iter().any(|(start, end)| (*start..*end).contains(&next))
    }
    /// Updates where to send requests. A segment from `from` has arrived behind a hole.
    pub fn look_up(
        &mut self,
        now: Instant,
        max: Span,
        from: MacAddr,
        by: impl Fn(MacAddr) -> Option<RepairRequestPath>,
    ) {
        if self.looked_at.is_none_or(|at| now.since(at) >= LOOKUP_INTERVAL) {
            self.looked_at = Some(now);
            // With a longer round trip, a retransmission would be too late.
            self.by = by(from).filter(|by| by.rtt <= max);
        }
    }
}

impl Resequencer {
    /// Handles a refusal of the sender: these holes are not waited for.
    pub fn on_refusal(&mut self, now: Instant, missing: &RepairMessage, out: &mut Vec<farpace_wire::Packet>) {
        if self.flows.is_empty() {
            return;
        }
        let at = missing.flow.slot(super::FLOWS);
        let slot = self.flows.get_mut(at);
        let Some(mut flow) = slot.and_then(|slot| slot.take_if(|flow| flow.key == missing.flow)) else {
            return;
        };
        for MissingRange { start, end } in &missing.holes {
            let (start, end) = (flow.position_of(*start), flow.position_of(*end));
            if end > flow.next {
                if flow.requests.refused.is_full() {
                    flow.requests.refused.remove(0);
                }
                flow.requests.refused.push((start, end));
            }
        }
        self.settle(&mut flow, now, out);
        self.schedule(&mut flow, at);
        self.put(at, flow);
    }
    /// Takes the pending requests.
    pub fn take_requests(&mut self) -> Vec<(RepairRequestPath, RepairMessage)> {
        std::mem::take(&mut self.pending_requests)
    }

    /// Requests holes that all paths of a flow have passed. Every half round trip, it requests all holes,
    /// including those that may still be filled, because the sender knows what it has sent when.
    pub(super) fn request_missing(&mut self, flow: &mut ResequencedFlow, now: Instant, silent: Span) {
        let next = flow.next;
        flow.requests.refused.retain(|(_, end)| *end > next);
        let Some(by) = flow.requests.by.filter(|_| !flow.held.is_empty()) else {
            flow.requests.again_at = None;
            return;
        };
        let active = flow.active;
        let live = flow.paths.iter().filter(|path| active - path.at <= silent);
        let passed = live.map(|path| path.high).min().unwrap_or(0);
        if flow.requests.again_at.is_some_and(|at| at <= now) {
            flow.requests.again_at = None;
            let mut from = next;
            for _ in 0..MAX_MESSAGES {
                from = self.request(flow, by, from, u64::MAX);
            }
        }
        for _ in 0..MAX_MESSAGES {
            let from = flow.requests.upto.max(next);
            if from >= passed {
                break;
            }
            flow.requests.upto = self.request(flow, by, from, passed);
        }
        flow.requests.again_at.get_or_insert(now + (by.rtt / 2).max(MIN_REPEAT_INTERVAL));
    }
    /// Requests the first holes of a range. Returns how far it got.
    fn request(&mut self, flow: &ResequencedFlow, by: RepairRequestPath, from: u64, upto: u64) -> u64 {
        let mut holes: ArrayVec<MissingRange, MAX_HOLES> = ArrayVec::new();
        let before = flow.held.range(..from).next_back().map_or(0, |(_, held)| held.end);
        let mut at = from.max(before);
        let number = |position: u64| Seq::new(position as u32);
        for (start, held) in flow.held.range(from..).take(MAX_EXAMINED) {
            if at >= upto || holes.is_full() {
                break;
            }
            if *start > at {
                holes.push(MissingRange { start: number(at), end: number(*start) });
            }
            at = at.max(held.end);
        }
        let holes_full = holes.is_full();
        if !holes.is_empty() {
            self.pending_requests
                .push((by, RepairMessage { refused: false, flow: flow.key, upto: number(at), holes }));
        }
        // The position where it stopped, or the end.
        if holes_full { at } else { upto }
    }
}

impl ResequencedFlow {
    /// Extends a sequence number near the next one to 64 bits.
    fn position_of(&self, number: Seq) -> u64 {
        self.position(number.distance(self.next_seq()))
    }
}
