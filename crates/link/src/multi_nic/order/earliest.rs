//! An idle NIC takes the frame that would arrive in order. No frame is delayed, and small windows are not
//! held back.
//!
//! A frame that left on NIC k now would arrive at time A. Until A, other NICs deliver the bytes that their
//! paths carry, and these are the frames before it. So NIC k takes the frame behind that many bytes. If the
//! queue is shorter, it stays idle, because any other frame would arrive late. The NIC on which a frame would
//! arrive first always takes the first frame.
//!
//! A sender that paces itself never has a long queue, and would never use the slower NICs. So if the
//! neighbour puts frames in order and all faster NICs are busy, a NIC may take the last queued frame, though
//! it arrives late by up to the [slack](NicPath::slack) of its path.

use super::shared::SharedQueue;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::nic_paths::FULL_FRAME;
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPath, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, Span};

/// The order `earliest`; see the module.
#[derive(Clone, Debug)]
pub struct Earliest<P> {
    queue: SharedQueue<P>,
    /// The queue limit adapts to the paths.
    adapts: bool,
    /// Of the default of Ethernet devices, no more than what the paths carry in this time.
    max_time: Option<Span>,
    /// The end of a short wait of a NIC for the frame that it is about to take.
    waits: [Option<Instant>; MAX_NICS],
    /// A NIC does not wait again before this. Other NICs rely on its rate, so waits may cost only little of
    /// its time.
    next_wait: [Instant; MAX_NICS],
    /// The end of the first of these waits.
    deadline: Option<Instant>,
}

/// A wait is followed by this many times its length without another.
const WAIT_INTERVAL_FACTOR: u64 = 1_000;

/// Frames for which a queue has room at least, however slow its paths are.
const MIN_FRAMES: u64 = 32;

/// What an idle NIC does.
enum EarliestChoice {
    /// Take the frame at this index.
    Take(usize),
    /// Wait until then.
    Wait(Instant),
    /// Stay idle.
    Nothing,
}

/// What other NICs deliver before a frame that leaves now.
#[derive(Clone, Copy)]
struct Ahead {
    /// Wire bytes.
    bytes: ByteCount,
    /// How long the frame should wait, so that it arrives between two of theirs.
    wait: Span,
    /// The time they need for these bytes.
    time: Span,
    /// True if all of them are busy now.
    busy: bool,
}

impl Ahead {
    /// How late a frame with `before` bytes queued before it arrives.
    fn late(&self, before: ByteCount) -> Span {
        let missing = self.bytes.get().saturating_sub(before.get());
        let nanos =
            u128::from(self.time.as_nanos()) * u128::from(missing) / u128::from(self.bytes.get().max(1));
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl<P> Earliest<P> {
    /// A queue of `limit`. Without one, the limit is the default of Ethernet devices, plus three times what
    /// fast paths deliver during the delay of the slowest, plus half of the data in flight: so a sender that
    /// reduces its window by a third still keeps all paths busy. Frames in this queue would otherwise wait in
    /// the queues of the paths.
    pub fn new(limit: Option<QueueLimit>) -> Self {
        let adapts = limit.is_none();
        let limit = limit.unwrap_or_default();
        Earliest {
            adapts,
            max_time: None,
            queue: SharedQueue::new(limit),
            waits: [None; MAX_NICS],
            next_wait: [Instant::ZERO; MAX_NICS],
            deadline: None,
        }
    }
    fn choose(&self, now: Instant, nic: NicId, paths: &NicPaths) -> EarliestChoice {
        let mut before = ByteCount::ZERO;
        let mut known: Option<(NeighbourId, ByteCount, Option<Ahead>)> = None;
        for (at, item) in self.queue.iter().enumerate() {
            let ahead = match known {
                Some((neighbour, bytes, ahead)) if (neighbour, bytes) == (item.neighbour, item.bytes) => {
                    ahead
                }
                _ => {
                    let path = paths.path(item.neighbour, nic).filter(|path| path.free <= now);
                    let ahead = path.map(|path| delivered_before(now, nic, path, item, paths));
                    known = Some((item.neighbour, item.bytes, ahead));
                    ahead
                }
            };
            match ahead {
                // Frames of one length need not be counted one by one.
                Some(ahead)
                    if at == 0
                        && self.queue.is_for_one()
                        && (ahead.bytes <= self.queue.backlog() - item.bytes)
                        && let Some(length) = self.queue.length_of_all() =>
                {
                    let at = ahead.bytes.get().div_ceil(length.get());
                    return self.take_or_wait(now, nic, at as usize, ahead);
                }
                Some(ahead) if before >= ahead.bytes => return self.take_or_wait(now, nic, at, ahead),
                // The queue is shorter than that, so there is no need to search it.
                Some(ahead) if ahead.bytes > self.queue.backlog() && self.queue.is_for_one() => {
                    let slack = paths.path(item.neighbour, nic).map_or(Span::ZERO, |path| path.slack);
                    let before = self.queue.backlog() - item.bytes;
                    return match self.queue.last() {
                        Some(last) if ahead.busy && ahead.late(before) <= slack => EarliestChoice::Take(last),
                        _ => EarliestChoice::Nothing,
                    };
                }
                // The NIC has no idle path to the only destination.
                None if self.queue.is_for_one() => break,
                _ => before += item.bytes,
            }
        }
        EarliestChoice::Nothing
    }
    fn take_or_wait(&self, now: Instant, nic: NicId, at: usize, ahead: Ahead) -> EarliestChoice {
        let until = now + ahead.wait;
        let may = self.next_wait.get(nic.index()).is_some_and(|from| *from <= now);
        if until > now && may { EarliestChoice::Wait(until) } else { EarliestChoice::Take(at) }
    }
}

/// Full frames that all paths deliver during the difference between the highest and the lowest delay.
fn ahead_of_slowest(neighbour: NeighbourId, paths: &NicPaths) -> u64 {
    let delays = || paths.working(neighbour).map(|(_, path)| path.in_order_delay(FULL_FRAME));
    let spread = delays().max().unwrap_or_default() - delays().min().unwrap_or_default();
    paths
        .working(neighbour)
        .map(|(_, path)| path.pace.frames_in(spread, FULL_FRAME))
        .fold(0, u64::saturating_add)
}

/// Full frames that all paths carry in `time`.
fn frames_in(time: Span, neighbour: NeighbourId, paths: &NicPaths) -> u64 {
    let each = paths.working(neighbour).map(|(_, path)| path.pace.frames_in(time, FULL_FRAME));
    each.fold(0, u64::saturating_add)
}

/// Full frames that all paths carry in a round trip.
fn in_flight(neighbour: NeighbourId, paths: &NicPaths) -> u64 {
    let each = paths.working(neighbour).map(|(_, path)| path.pace.frames_in(path.rtt, FULL_FRAME));
    each.fold(0, u64::saturating_add)
}

/// What other NICs deliver to the neighbour before `item`, which leaves on `nic` now. Of two NICs with the
/// same arrival time, the first precedes.
#[inline]
fn delivered_before<P>(
    now: Instant,
    nic: NicId,
    path: &NicPath,
    item: &QueuedFrame<P>,
    paths: &NicPaths,
) -> Ahead {
    let arrives = now + path.in_order_delay(item.bytes);
    // The guard sends frames further ahead, except on the first NIC to arrive, which must take the first
    // frame.
    let guarded = arrives + path.guard;
    let (mut delivered, mut is_first, mut wait) = (0_u64, true, Span::ZERO);
    let (mut time, mut busy) = (Span::ZERO, true);
    for (other, path_of_other) in paths.working(item.neighbour).filter(|(other, _)| *other != nic) {
        let begins = paths.begins(other, path_of_other, now);
        let first = begins + path_of_other.in_order_delay(item.bytes);
        is_first &= (arrives, nic) < (first, other);
        if (first, other) < (guarded, nic) {
            let frames = path_of_other.pace.frames_in(guarded.since(first), item.bytes);
            delivered = delivered.saturating_add(frames.saturating_add(1));
            time = time.max(guarded.since(first));
            busy &= begins > now;
            // If a frame arrives at almost the same time as one of theirs, the order is random. A wait of
            // half a frame time separates them, and is needed only once, because then both stay in step. A
            // NIC of nearly the same rate does not wait, because others rely on its rate.
            let slot = path_of_other.pace.span(item.bytes);
            let after = arrives.since(first).as_nanos() % slot.as_nanos().max(1);
            let offset = Span::from_nanos((slot.as_nanos() / 2).saturating_sub(after));
            if arrives >= first && after < slot.as_nanos() / 8 && offset * 16 <= path.pace.span(item.bytes) {
                wait = wait.max(offset);
            }
        }
    }
    if is_first {
        return Ahead { bytes: ByteCount::ZERO, wait: Span::ZERO, time, busy };
    }
    Ahead { bytes: ByteCount::new(item.bytes.get().saturating_mul(delivered)), wait, time, busy }
}

impl<P> SendOrder<P> for Earliest<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        self.queue.push(item, paths, refused);
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>> {
        let waits = self.waits.get(nic.index()).copied().flatten();
        if waits.is_some_and(|until| until > now) {
            return None;
        }
        let (chosen, waits) = match self.choose(now, nic, paths) {
            EarliestChoice::Take(at) => (self.queue.remove(at), None),
            EarliestChoice::Wait(until) => {
                self.deadline = Some(self.deadline.map_or(until, |deadline| deadline.min(until)));
                if let Some(from) = self.next_wait.get_mut(nic.index()) {
                    *from = now + until.since(now) * WAIT_INTERVAL_FACTOR;
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
        self.deadline
    }
    fn on_deadline(&mut self, now: Instant, _: &NicPaths, _: &mut Vec<QueuedFrame<P>>) {
        self.deadline = self.waits.iter().flatten().filter(|until| **until > now).min().copied();
    }
    fn on_change(&mut self, _: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        if self.adapts {
            let (_, usual) = QueueLimit::default().bounds();
            let of = |id| {
                let ahead = ahead_of_slowest(NeighbourId(id), paths).saturating_mul(3);
                ahead.saturating_add(in_flight(NeighbourId(id), paths) / 2)
            };
            let ids = 0..paths.neighbours();
            let max = ids.clone().map(of).max();
            // Ordinary neighbours are behind the nominal rate of a NIC.
            let measured = ids.map(NeighbourId).filter(|id| *id != NeighbourId::ORDINARY);
            let carried = |time| measured.map(|id| frames_in(time, id, paths)).max().unwrap_or(0);
            let usual = self.max_time.map_or(usual, |time| usual.min(carried(time).max(MIN_FRAMES)));
            self.queue.set_packets(usual.saturating_add(max.unwrap_or(0)));
        }
        self.queue.refuse_lost(paths, refused);
    }
    fn limit_time(&mut self, time: Span) {
        self.max_time = Some(time);
    }
    fn held(&self) -> u64 {
        self.queue.held()
    }
    fn backlog(&self) -> ByteCount {
        self.queue.backlog()
    }
}
