//! What a receiver asks its neighbours for.

use super::{ResequencedFlow, Resequencer};
use crate::multi_nic::NicId;
use crate::multi_nic::repair::{MAX_HOLES, Missing, MissingRange};
use arrayvec::ArrayVec;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::MacAddr;

/// Whether a sender is to be asked is looked up no more often than this.
const LOOK_EVERY: Span = Span::from_millis(25);
/// Asked again after half a round trip, and not sooner than this. The sender leaves what it has just sent again.
const MIN_REPEAT_INTERVAL: Span = Span::from_millis(1);
/// Messages to one flow's sender at once.
const MAX_MESSAGES: usize = 4;
/// Segments behind holes that are looked at for one message.
const MAX_EXAMINED: usize = 4_096;

/// By which way a sender is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairRequestTime {
    /// Our card.
    pub nic: NicId,
    /// The sender's.
    pub to: MacAddr,
    /// Round trip of the way.
    pub rtt: Span,
}

/// What is asked of one flow.
#[derive(Clone, Debug, Default)]
pub(super) struct RepairRequests {
    /// None: it is not asked at all.
    by: Option<RepairRequestTime>,
    looked_at: Option<Instant>,
    /// Holes below have been asked for.
    upto: u64,
    /// When they are asked for again.
    again_at: Option<Instant>,
    /// What the sender does not have any more, from and to.
    gone: ArrayVec<(u64, u64), MAX_HOLES>,
}

impl RepairRequests {
    /// When something is to be asked again.
    pub fn deadline(&self) -> Option<Instant> {
        self.again_at
    }
    /// What comes there has most likely been asked for: the lane by which it is sent again need not be one of the flow's.
    pub const fn asked(&self, start: u64) -> bool {
        start < self.upto
    }
    /// The sender keeps copies.
    pub const fn asks(&self) -> bool {
        self.by.is_some()
    }
    /// The sender has nothing of what begins there.
    pub fn is_gone(&self, next: u64) -> bool {
        self.gone.iter().any(|(start, end)| (*start..*end).contains(&next))
    }
    /// A segment has come from the address `from`, and a hole stands before it.
    pub fn look(
        &mut self,
        now: Instant,
        most: Span,
        from: MacAddr,
        by: impl Fn(MacAddr) -> Option<RepairRequestTime>,
    ) {
        if self.looked_at.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
            self.looked_at = Some(now);
            // Whatever were sent again would come too late.
            self.by = by(from).filter(|by| by.rtt <= most);
        }
    }
}

impl Resequencer {
    /// The sender has nothing of these holes any more: nobody need wait for them.
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
    /// What is to be asked, since the last call.
    pub fn take_questions(&mut self) -> Vec<(RepairRequestTime, Missing)> {
        std::mem::take(&mut self.questions)
    }

    /// Asks for what all lanes of a flow have passed by; and every half round trip for all that is missing, whether it may still come or
    /// not: the sender knows what it has sent when.
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
    /// Asks for the first holes between these places, and says up to where.
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
        // Where it stopped, or the end.
        if holes_full { at } else { upto }
    }
}

impl ResequencedFlow {
    /// The place of a number near the next one.
    fn place_of(&self, number: Seq) -> u64 {
        self.position(number.distance(self.next_seq()))
    }
}
