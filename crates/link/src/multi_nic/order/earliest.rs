//! A card that falls idle takes the frame that would arrive in its turn. Nothing is held back, no floor for windows.
//!
//! A frame that left by card k now would arrive at a time A. Until then other cards bring as many bytes as their lanes carry;
//! these are the frames before it. So card k takes the frame behind as many bytes, and stays idle if there is none: any other
//! would arrive too late. The card by which a frame would arrive first always takes the first.
//!
//! A sender that paces itself never has much waiting: it would never get to know what the slower cards carry. So where the neighbour puts
//! frames in order, a card may take the last that waits although it comes too late by as much as its lane's
//! [slack](Lane::slack), if all faster cards are busy.

use super::shared::SharedQueue;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::nic_paths::FULL_FRAME;
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPath, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, Span};

/// See the module.
#[derive(Clone, Debug)]
pub struct Earliest<P> {
    queue: SharedQueue<P>,
    /// The limit of the queue follows the ways.
    adapts: bool,
    /// Until when a card lets a moment pass for the frame that it is about to take.
    waits: [Option<Instant>; MAX_NICS],
    /// Before this a card does not do so again: others count on what it brings, so that next to none of its time is spent so.
    patient: [Instant; MAX_NICS],
    /// When the first of these moments is over.
    again: Option<Instant>,
}

/// A moment that was let pass is followed by so many times as long without one.
const PATIENCE: u64 = 1_000;

/// What a card does.
enum EarliestChoice {
    /// It takes the frame at this place.
    Take(usize),
    /// It is asked again then.
    Wait(Instant),
    /// It stays idle.
    Nothing,
}

/// What other cards bring before a frame that leaves now.
#[derive(Clone, Copy)]
struct Ahead {
    /// Bytes of the line.
    bytes: ByteCount,
    /// For how long the frame would have to wait to arrive well between two of theirs.
    wait: Span,
    /// How long they have for it.
    time: Span,
    /// They are all busy now.
    busy: bool,
}

impl Ahead {
    /// By how much a frame with `before` waiting before it comes too late.
    fn late(&self, before: ByteCount) -> Span {
        let missing = self.bytes.get().saturating_sub(before.get());
        let nanos =
            u128::from(self.time.as_nanos()) * u128::from(missing) / u128::from(self.bytes.get().max(1));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl<P> Earliest<P> {
    /// With a queue of `limit`. Without, it holds what Ethernet devices usually do, three times what fast ways bring while a frame is on
    /// the slowest one, and half of what is under way: a sender that cuts its window by a third then still keeps all ways busy. What
    /// stands here would else stand in the queues of the ways.
    pub fn new(limit: Option<QueueLimit>) -> Self {
        let adapts = limit.is_none();
        let limit = limit.unwrap_or_default();
        Earliest {
            adapts,
            queue: SharedQueue::new(limit),
            waits: [None; MAX_NICS],
            patient: [Instant::ZERO; MAX_NICS],
            again: None,
        }
    }
    fn choose(&self, now: Instant, nic: NicId, lanes: &NicPaths) -> EarliestChoice {
        let mut before = ByteCount::ZERO;
        let mut known: Option<(NeighbourId, ByteCount, Option<Ahead>)> = None;
        for (at, item) in self.queue.iter().enumerate() {
            let ahead = match known {
                Some((neighbour, bytes, ahead)) if (neighbour, bytes) == (item.neighbour, item.bytes) => {
                    ahead
                }
                _ => {
                    let lane = lanes.path(item.neighbour, nic).filter(|lane| lane.free <= now);
                    let ahead = lane.map(|lane| brought_before(now, nic, lane, item, lanes));
                    known = Some((item.neighbour, item.bytes, ahead));
                    ahead
                }
            };
            match ahead {
                Some(ahead) if before >= ahead.bytes => {
                    let until = now + ahead.wait;
                    let may = self.patient.get(nic.index()).is_some_and(|from| *from <= now);
                    return if until > now && may {
                        EarliestChoice::Wait(until)
                    } else {
                        EarliestChoice::Take(at)
                    };
                }
                // There is not as much; looking through the whole queue would tell the same.
                Some(ahead) if ahead.bytes > self.queue.backlog() && self.queue.is_for_one() => {
                    let slack = lanes.path(item.neighbour, nic).map_or(Span::ZERO, |lane| lane.slack);
                    let before = self.queue.backlog() - item.bytes;
                    return match self.queue.last() {
                        Some(last) if ahead.busy && ahead.late(before) <= slack => EarliestChoice::Take(last),
                        _ => EarliestChoice::Nothing,
                    };
                }
                // It cannot send to the one that all frames are for.
                None if self.queue.is_for_one() => break,
                _ => before += item.bytes,
            }
        }
        EarliestChoice::Nothing
    }
}

/// Full frames that all ways bring to a neighbour while one is on the slowest of them, less those that the fastest takes as long for.
fn ahead_of_slowest(neighbour: NeighbourId, lanes: &NicPaths) -> u64 {
    let delays = || lanes.working(neighbour).map(|(_, lane)| lane.delay.of(FULL_FRAME));
    let spread = delays().max().unwrap_or_default() - delays().min().unwrap_or_default();
    lanes
        .working(neighbour)
        .map(|(_, lane)| lane.pace.frames_in(spread, FULL_FRAME))
        .fold(0, u64::saturating_add)
}

/// Full frames that all ways carry in a round trip.
fn under_way(neighbour: NeighbourId, lanes: &NicPaths) -> u64 {
    let each = lanes.working(neighbour).map(|(_, lane)| lane.pace.frames_in(lane.rtt, FULL_FRAME));
    each.fold(0, u64::saturating_add)
}

/// What other cards bring to the neighbour before `item`, which leaves by `nic` now. Of two cards by which it would arrive at the
/// same time the first is the earlier.
#[inline]
fn brought_before<P>(
    now: Instant,
    nic: NicId,
    lane: &NicPath,
    item: &QueuedFrame<P>,
    lanes: &NicPaths,
) -> Ahead {
    let arrives = now + lane.delay.of(item.bytes);
    // What may come later than it should is sent further ahead. Not so the first of all cards, or nobody would take the first frame.
    let guarded = arrives + lane.guard;
    let (mut brought, mut is_first, mut wait) = (0_u64, true, Span::ZERO);
    let (mut time, mut busy) = (Span::ZERO, true);
    for (other, way) in lanes.working(item.neighbour).filter(|(other, _)| *other != nic) {
        let begins = lanes.begins(other, way, now);
        let first = begins + way.delay.of(item.bytes);
        is_first &= (arrives, nic) < (first, other);
        if (first, other) < (guarded, nic) {
            let frames = way.pace.frames_in(guarded.since(first), item.bytes);
            brought = brought.saturating_add(frames.saturating_add(1));
            time = time.max(guarded.since(first));
            busy &= begins > now;
            // At the same moment as a frame of theirs, or almost, chance would decide which one is the earlier. Half the time of
            // a frame is enough to keep them apart, and is lost once: after that both keep in step. A card that is not much
            // slower does not wait: others count on what it brings.
            let slot = way.pace.span(item.bytes);
            let after = arrives.since(first).as_nanos() % slot.as_nanos().max(1);
            let moment = Span::from_nanos((slot.as_nanos() / 2).saturating_sub(after));
            if arrives >= first && after < slot.as_nanos() / 8 && moment * 16 <= lane.pace.span(item.bytes) {
                wait = wait.max(moment);
            }
        }
    }
    if is_first {
        return Ahead { bytes: ByteCount::ZERO, wait: Span::ZERO, time, busy };
    }
    Ahead { bytes: ByteCount::new(item.bytes.get().saturating_mul(brought)), wait, time, busy }
}

impl<P> SendOrder<P> for Earliest<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        lanes: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        self.queue.push(item, lanes, refused);
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, lanes: &NicPaths) -> Option<QueuedFrame<P>> {
        let waits = self.waits.get(nic.index()).copied().flatten();
        if waits.is_some_and(|until| until > now) {
            return None;
        }
        let (chosen, waits) = match self.choose(now, nic, lanes) {
            EarliestChoice::Take(at) => (self.queue.remove(at), None),
            EarliestChoice::Wait(until) => {
                self.again = Some(self.again.map_or(until, |again| again.min(until)));
                if let Some(from) = self.patient.get_mut(nic.index()) {
                    *from = now + until.since(now) * PATIENCE;
                }
                (None, Some(until))
            }
            EarliestChoice::Nothing => (None, waits),
        };
        if let Some(slot) = self.waits.get_mut(nic.index()) {
            *slot = waits;
        }
        chosen
    }
    fn deadline(&self) -> Option<Instant> {
        self.again
    }
    fn on_deadline(&mut self, now: Instant, _: &NicPaths, _: &mut Vec<QueuedFrame<P>>) {
        self.again = self.waits.iter().flatten().filter(|until| **until > now).min().copied();
    }
    fn on_change(&mut self, _: Instant, lanes: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        if self.adapts {
            let (_, usual) = QueueLimit::default().bounds();
            let of = |id| {
                let ahead = ahead_of_slowest(NeighbourId(id), lanes).saturating_mul(3);
                ahead.saturating_add(under_way(NeighbourId(id), lanes) / 2)
            };
            let most = (0..lanes.neighbours()).map(of).max();
            self.queue.set_packets(usual.saturating_add(most.unwrap_or(0)));
        }
        self.queue.refuse_lost(lanes, refused);
    }
    fn held(&self) -> u64 {
        self.queue.held()
    }
    fn backlog(&self) -> ByteCount {
        self.queue.backlog()
    }
}
