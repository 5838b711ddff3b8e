//! One queue for all NICs, for orders that select the frame when a NIC becomes idle.

use super::{QueuedFrame, can_go};
use crate::multi_nic::{NeighbourId, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::ByteCount;
use std::collections::VecDeque;

/// Frames in order of arrival.
#[derive(Clone, Debug)]
pub(super) struct SharedQueue<P> {
    items: VecDeque<QueuedFrame<P>>,
    bytes: ByteCount,
    limit: (u64, u64),
    /// A length, and the number of frames that have it.
    of_length: (ByteCount, usize),
    /// Number of frames by neighbour. `neighbours` counts the non-zero entries.
    counts: Vec<u32>,
    neighbours: usize,
}

impl<P> SharedQueue<P> {
    /// An empty queue with this limit.
    pub fn new(limit: QueueLimit) -> Self {
        SharedQueue::with_bounds(limit.bounds())
    }
    const fn with_bounds(limit: (u64, u64)) -> Self {
        SharedQueue {
            items: VecDeque::new(),
            bytes: ByteCount::ZERO,
            limit,
            of_length: (ByteCount::ZERO, 0),
            counts: Vec::new(),
            neighbours: 0,
        }
    }
    /// Queues a frame, or moves it to `refused` if the queue is full or no path works.
    pub fn push(&mut self, item: QueuedFrame<P>, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        let (bytes, packets) = self.limit;
        let fits = (self.items.len() as u64) < packets && (self.bytes + item.bytes).get() <= bytes;
        if fits && can_go(&item, paths) {
            self.count(item.neighbour);
            self.bytes += item.bytes;
            if self.items.is_empty() {
                self.of_length = (item.bytes, 0);
            }
            self.of_length.1 += usize::from(self.of_length.0 == item.bytes);
            self.items.push_back(item);
        } else {
            refused.push(item);
        }
    }
    /// Sets the limit in packets, at most that of any queue. Queued frames stay.
    pub fn set_packets(&mut self, packets: u64) {
        let (_, cap) = QueueLimit::Unlimited.bounds();
        self.limit = (u64::MAX, packets.min(cap));
    }
    /// The queued frames, in order.
    pub fn iter(&self) -> impl Iterator<Item = &QueuedFrame<P>> {
        self.items.iter()
    }
    /// Index of the last frame.
    pub fn last(&self) -> Option<usize> {
        self.items.len().checked_sub(1)
    }
    /// Removes the frame at this index.
    pub fn remove(&mut self, at: usize) -> Option<QueuedFrame<P>> {
        let item = self.items.remove(at)?;
        self.bytes -= item.bytes;
        self.of_length.1 -= usize::from(self.of_length.0 == item.bytes);
        if let Some(count) = self.counts.get_mut(item.neighbour.0 as usize) {
            *count -= 1;
            self.neighbours -= usize::from(*count == 0);
        }
        Some(item)
    }
    /// The length of all frames, if they have the same.
    pub fn length_of_all(&self) -> Option<ByteCount> {
        (self.of_length.1 == self.items.len()).then_some(self.of_length.0).filter(|len| !len.is_zero())
    }
    /// True if all frames are for one neighbour.
    pub const fn is_for_one(&self) -> bool {
        self.neighbours == 1
    }
    /// Removes frames that no NIC can send any more.
    pub fn refuse_lost(&mut self, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        if self.items.iter().all(|item| can_go(item, paths)) {
            return;
        }
        for item in std::mem::replace(self, SharedQueue::with_bounds(self.limit)).items {
            self.push(item, paths, refused);
        }
    }
    /// Number of queued frames.
    pub fn held(&self) -> u64 {
        self.items.len() as u64
    }
    /// Wire bytes of queued frames.
    pub const fn backlog(&self) -> ByteCount {
        self.bytes
    }

    fn count(&mut self, neighbour: NeighbourId) {
        let at = neighbour.0 as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.neighbours += usize::from(self.counts[at] == 0);
        self.counts[at] += 1;
    }
}
