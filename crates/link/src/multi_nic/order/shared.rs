//! One queue for all cards, for orders that choose the frame when a card falls idle.

use super::{QueuedFrame, can_go};
use crate::multi_nic::{NeighbourId, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::ByteCount;
use std::collections::VecDeque;

/// Frames in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct SharedQueue<P> {
    items: VecDeque<QueuedFrame<P>>,
    bytes: ByteCount,
    limit: (u64, u64),
    /// Frames for each neighbour, by its number, and how many neighbours have any.
    of: Vec<u32>,
    neighbours: usize,
}

impl<P> SharedQueue<P> {
    /// An empty one, which holds `limit`.
    pub fn new(limit: QueueLimit) -> Self {
        SharedQueue::with_bounds(limit.bounds())
    }
    const fn with_bounds(limit: (u64, u64)) -> Self {
        SharedQueue { items: VecDeque::new(), bytes: ByteCount::ZERO, limit, of: Vec::new(), neighbours: 0 }
    }
    /// Queues a frame, or puts it into `refused`: there is no room, or no lane.
    pub fn push(&mut self, item: QueuedFrame<P>, lanes: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        let (bytes, packets) = self.limit;
        let fits = (self.items.len() as u64) < packets && (self.bytes + item.bytes).get() <= bytes;
        if fits && can_go(&item, lanes) {
            self.count(item.neighbour);
            self.bytes += item.bytes;
            self.items.push_back(item);
        } else {
            refused.push(item);
        }
    }
    /// It holds so many packets from now on, and at most what any queue may. Those that are there stay.
    pub fn set_packets(&mut self, packets: u64) {
        let (_, cap) = QueueLimit::Unlimited.bounds();
        self.limit = (u64::MAX, packets.min(cap));
    }
    /// What waits, the first first.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedFrame<P>> {
        self.items.iter()
    }
    /// The place of the last.
    pub fn last(&self) -> Option<usize> {
        self.items.len().checked_sub(1)
    }
    /// Takes out the frame at this place.
    pub fn remove(&mut self, at: usize) -> Option<QueuedFrame<P>> {
        let item = self.items.remove(at)?;
        self.bytes -= item.bytes;
        if let Some(of) = self.of.get_mut(item.neighbour.0 as usize) {
            *of -= 1;
            self.neighbours -= usize::from(*of == 0);
        }
        Some(item)
    }
    /// True if all frames are for one neighbour.
    pub const fn is_for_one(&self) -> bool {
        self.neighbours == 1
    }
    /// Takes out what no card can send any more.
    pub fn refuse_lost(&mut self, lanes: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        if self.items.iter().all(|item| can_go(item, lanes)) {
            return;
        }
        for item in std::mem::replace(self, SharedQueue::with_bounds(self.limit)).items {
            self.push(item, lanes, refused);
        }
    }
    /// Frames inside.
    pub fn held(&self) -> u64 {
        self.items.len() as u64
    }
    /// What they take of the lines.
    pub const fn backlog(&self) -> ByteCount {
        self.bytes
    }

    fn count(&mut self, neighbour: NeighbourId) {
        let at = neighbour.0 as usize;
        if self.of.len() <= at {
            self.of.resize(at + 1, 0);
        }
        self.neighbours += usize::from(self.of[at] == 0);
        self.of[at] += 1;
    }
}
