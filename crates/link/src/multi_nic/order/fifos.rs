//! A queue per NIC, for orders that select the NIC when a frame arrives.

use super::QueuedFrame;
use crate::multi_nic::{NicId, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant};
use std::collections::VecDeque;

/// The queue of a NIC.
#[derive(Clone, Debug)]
struct PathFifo<P> {
    items: VecDeque<QueuedFrame<P>>,
    bytes: ByteCount,
}

/// A queue per NIC.
#[derive(Clone, Debug)]
pub(super) struct Fifos<P> {
    queues: Vec<PathFifo<P>>,
    limit: (u64, u64),
}

impl<P> Fifos<P> {
    /// Empty queues with a limit of `limit` each.
    pub fn new(limit: QueueLimit, paths: &NicPaths) -> Self {
        let empty = |_| PathFifo { items: VecDeque::new(), bytes: ByteCount::ZERO };
        Fifos { queues: paths.ids().map(empty).collect(), limit: limit.bounds() }
    }
    /// Queues a frame for `nic`, or moves it to `refused` if the queue is full.
    pub fn push(&mut self, nic: NicId, item: QueuedFrame<P>, refused: &mut Vec<QueuedFrame<P>>) {
        let (bytes, packets) = self.limit;
        match self.queues.get_mut(nic.index()) {
            Some(fifo) if (fifo.items.len() as u64) < packets && (fifo.bytes + item.bytes).get() <= bytes => {
                fifo.bytes += item.bytes;
                fifo.items.push_back(item);
            }
            _ => refused.push(item),
        }
    }
    /// Dequeues the first frame for `nic` whose path is usable and idle. A busy path to one neighbour does
    /// not block frames for others.
    pub fn pop(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>> {
        let fifo = self.queues.get_mut(nic.index())?;
        let free =
            |item: &QueuedFrame<P>| paths.path(item.neighbour, nic).is_some_and(|path| path.free <= now);
        let at = fifo.items.iter().position(free)?;
        let item = fifo.items.remove(at)?;
        fifo.bytes -= item.bytes;
        Some(item)
    }
    /// Removes all frames that their NIC can no longer send, in order.
    pub fn stranded(&mut self, paths: &NicPaths) -> Vec<QueuedFrame<P>> {
        let mut out = Vec::new();
        for (nic, fifo) in paths.ids().zip(&mut self.queues) {
            let stays = |item: &QueuedFrame<P>| paths.path(item.neighbour, nic).is_some();
            if fifo.items.iter().all(stays) {
                continue;
            }
            for item in std::mem::take(&mut fifo.items) {
                if stays(&item) {
                    fifo.items.push_back(item);
                } else {
                    fifo.bytes -= item.bytes;
                    out.push(item);
                }
            }
        }
        out
    }
    /// Number of queued frames.
    pub fn held(&self) -> u64 {
        self.queues.iter().map(|fifo| fifo.items.len() as u64).sum()
    }
    /// Wire bytes of queued frames.
    pub fn backlog(&self) -> ByteCount {
        self.queues.iter().map(|fifo| fifo.bytes).sum()
    }
}
