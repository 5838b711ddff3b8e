//! Repair requests of a receiver.

use super::{ResequencedFlow, Resequencer};
use crate::multi_nic::NicId;
use crate::multi_nic::repair::{MAX_HOLES, Missing, MissingRange};
use arrayvec::ArrayVec;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::MacAddr;

/// Minimum interval between two lookups of where to send requests.
const LOOK_EVERY: Span = Span::from_millis(25);
/// Asked again after half a round trip, and not sooner than this. The sender leaves what it has just sent again.
const MIN_REPEAT_INTERVAL: Span = Span::from_millis(1);
/// Maximum number of messages at once for a flow.
const MAX_MESSAGES: usize = 4;
/// Maximum number of held segments that are examined for a message.
const MAX_EXAMINED: usize = 4_096;

/// Where to send repair requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairRequestTime {
    /// Our card.
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
    by: Option<RepairRequestTime>,
    looked_at: Option<Instant>,
    /// Holes below have been requested.
    upto: u64,
    /// When to repeat the requests.
    again_at: Option<Instant>,
    /// Ranges that the sender has refused.
    gone: ArrayVec<(u64, u64), MAX_HOLES>,
}

impl RepairRequests {
    /// When to repeat the requests.
    pub fn deadline(&self) -> Option<Instant> {
        self.again_at
    }
    /// True if a segment there has probably been requested. A retransmission may use a path that the flow
    /// does not use.
    pub const fn asked(&self, start: u64) -> bool {
        start < self.upto
    }
    /// True if the sender has a retransmit cache.
    pub const fn asks(&self) -> bool {
        self.by.is_some()
    }
    /// True if the sender has refused to retransmit what begins at `next`.
    pub fn is_gone(&self, next: u64) -> bool {
        self.gone.iter().any(|(start, end)| (*start..*end).contains(&next))
    }
    /// Updates where to send requests. A segment from `from` has arrived behind a hole.
    pub fn look(
        &mut self,
        now: Instant,
        most: Span,
        from: MacAddr,
        by: impl Fn(MacAddr) -> Option<RepairRequestTime>,
    ) {
        if self.looked_at.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
            self.looked_at = Some(now);
            // With a longer round trip, a retransmission would be too late.
            self.by = by(from).filter(|by| by.rtt <= most);
        }
    }
}

impl Resequencer {
    /// Handles a refusal of the sender: these holes are not waited for.
    pub fn gone(&mut self, now: Instant, missing: &Missing, out: &mut Vec<farpace_wire::Packet>) {
        if self.flows.is_empty() {
            return;
        }
        let at = missing.flow.place(super::FLOWS);
        let place = self.flows.get_mut(at);
        let Some(mut flow) = place.and_then(|place| place.take_if(|flow| flow.key == missing.flow)) else {
            return;
        };
        for MissingRange { start, end } in &missing.holes {
            let (start, end) = (flow.place_of(*start), flow.place_of(*end));
            if end > flow.next {
                if flow.asking.gone.is_full() {
                    flow.asking.gone.remove(0);
                }
                flow.asking.gone.push((start, end));
            }
        }
        self.settle(&mut flow, now, out);
        self.plan(&mut flow, at);
        self.put(at, flow);
    }
    /// Takes the pending requests.
    pub fn take_questions(&mut self) -> Vec<(RepairRequestTime, Missing)> {
        std::mem::take(&mut self.questions)
    }

    /// Requests holes that all paths of a flow have passed. Every half round trip, it requests all holes,
    /// including those that may still be filled, because the sender knows what it has sent when.
    pub(super) fn ask(&mut self, flow: &mut ResequencedFlow, now: Instant, silent: Span) {
        let next = flow.next;
        flow.asking.gone.retain(|(_, end)| *end > next);
        let Some(by) = flow.asking.by.filter(|_| !flow.held.is_empty()) else {
            flow.asking.again_at = None;
            return;
        };
        let active = flow.active;
        let live = flow.lanes.iter().filter(|lane| active - lane.at <= silent);
        let passed = live.map(|lane| lane.high).min().unwrap_or(0);
        if flow.asking.again_at.is_some_and(|at| at <= now) {
            flow.asking.again_at = None;
            let mut from = next;
            for _ in 0..MAX_MESSAGES {
                from = self.question(flow, by, from, u64::MAX);
            }
        }
        for _ in 0..MAX_MESSAGES {
            let from = flow.asking.upto.max(next);
            if from >= passed {
                break;
            }
            flow.asking.upto = self.question(flow, by, from, passed);
        }
        flow.asking.again_at.get_or_insert(now + (by.rtt / 2).max(MIN_REPEAT_INTERVAL));
    }
    /// Requests the first holes of a range. Returns how far it got.
    fn question(&mut self, flow: &ResequencedFlow, by: RepairRequestTime, from: u64, upto: u64) -> u64 {
        let mut holes: ArrayVec<MissingRange, MAX_HOLES> = ArrayVec::new();
        let before = flow.held.range(..from).next_back().map_or(0, |(_, held)| held.end);
        let mut at = from.max(before);
        let number = |place: u64| Seq::new(place as u32);
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
            self.questions.push((by, Missing { gone: false, flow: flow.key, upto: number(at), holes }));
        }
        // The position where it stopped, or the end.
        if holes_full { at } else { upto }
    }
}

impl ResequencedFlow {
    /// Extends a sequence number near the next one to 64 bits.
    fn place_of(&self, number: Seq) -> u64 {
        self.position(number.distance(self.next_seq()))
    }
}
