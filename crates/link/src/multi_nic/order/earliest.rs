//! A card that falls idle takes the frame that would arrive in its turn. Nothing is held back, no timer, no floor for windows.
//!
//! A frame that left by card k now would arrive at a time A. Until then other cards bring as many bytes as their lanes carry;
//! these are the frames before it. So card k takes the frame behind as many bytes, and stays idle if there is none: any other
//! would arrive too late. The card by which a frame would arrive first always takes the first.

use super::shared::Shared;
use super::{Item, SendOrder};
use crate::multi_nic::{Lane, Lanes, NeighbourId, NicId};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant};

/// See the module.
#[derive(Clone, Debug)]
pub struct Earliest<P> {
    queue: Shared<P>,
}

impl<P> Earliest<P> {
    /// With a queue of `limit`.
    pub fn new(limit: QueueLimit) -> Self {
        Earliest { queue: Shared::new(limit) }
    }
    /// The place of the frame that `nic` takes.
    fn choose(&self, now: Instant, nic: NicId, lanes: &Lanes) -> Option<usize> {
        let mut before = ByteCount::ZERO;
        let mut known: Option<(NeighbourId, ByteCount, Option<ByteCount>)> = None;
        for (at, item) in self.queue.iter().enumerate() {
            let ahead = match known {
                Some((neighbour, bytes, ahead)) if (neighbour, bytes) == (item.neighbour, item.bytes) => {
                    ahead
                }
                _ => {
                    let lane = lanes.lane(item.neighbour, nic).filter(|lane| lane.free <= now);
                    let ahead = lane.map(|lane| brought_before(now, nic, lane, item, lanes));
                    known = Some((item.neighbour, item.bytes, ahead));
                    ahead
                }
            };
            match ahead {
                Some(ahead) if before >= ahead => return Some(at),
                // There is not as much; looking through the whole queue would tell the same.
                Some(ahead) if ahead > self.queue.backlog() && self.queue.is_for_one() => return None,
                _ => before += item.bytes,
            }
        }
        None
    }
}

/// Bytes of the line that other cards bring to the neighbour before `item`, which leaves by `nic` now. Of two cards by which it
/// would arrive at the same time the first is the earlier.
#[inline]
fn brought_before<P>(now: Instant, nic: NicId, lane: &Lane, item: &Item<P>, lanes: &Lanes) -> ByteCount {
    let arrives = now + lane.delay.of(item.bytes);
    // What may come later than it should is sent further ahead. Not so the first of all cards, or nobody would take the first frame.
    let guarded = arrives + lane.guard;
    let (mut brought, mut is_first) = (ByteCount::ZERO, true);
    for (other, way) in lanes.working(item.neighbour).filter(|(other, _)| *other != nic) {
        let first = lanes.begins(other, way, now) + way.delay.of(item.bytes);
        is_first &= (arrives, nic) < (first, other);
        if (first, other) < (guarded, nic) {
            let frames = way.pace.frames_in(guarded.since(first), item.bytes);
            brought += ByteCount::new(item.bytes.get().saturating_mul(frames.saturating_add(1)));
        }
    }
    if is_first { ByteCount::ZERO } else { brought }
}

impl<P> SendOrder<P> for Earliest<P> {
    fn enqueue(&mut self, _: Instant, item: Item<P>, lanes: &Lanes, refused: &mut Vec<Item<P>>) {
        self.queue.push(item, lanes, refused);
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, lanes: &Lanes) -> Option<Item<P>> {
        let at = self.choose(now, nic, lanes)?;
        self.queue.remove(at)
    }
    fn on_change(&mut self, _: Instant, lanes: &Lanes, refused: &mut Vec<Item<P>>) {
        self.queue.refuse_lost(lanes, refused);
    }
    fn held(&self) -> u64 {
        self.queue.held()
    }
    fn backlog(&self) -> ByteCount {
        self.queue.backlog()
    }
}
