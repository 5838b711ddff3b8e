//! A queue per card, for orders that choose the card when a frame comes.

use super::Item;
use crate::multi_nic::{Lanes, NeighbourId, NicId};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, Span};
use std::collections::VecDeque;

/// One card's queue.
#[derive(Clone, Debug)]
struct Fifo<P> {
    items: VecDeque<Item<P>>,
    bytes: ByteCount,
}

/// A queue per card.
#[derive(Clone, Debug)]
pub(super) struct Fifos<P> {
    queues: Vec<Fifo<P>>,
    limit: (u64, u64),
}

impl<P> Fifos<P> {
    /// Empty ones, each of which holds `limit`.
    pub fn new(limit: QueueLimit, lanes: &Lanes) -> Self {
        let queues = lanes.nics().iter().map(|_| Fifo { items: VecDeque::new(), bytes: ByteCount::ZERO });
        Fifos { queues: queues.collect(), limit: limit.bounds() }
    }
    /// Queues a frame for `nic`.
    ///
    /// # Errors
    /// The frame: the queue is full, or there is no such card.
    pub fn push(&mut self, nic: NicId, item: Item<P>) -> Result<(), Item<P>> {
        let Some(fifo) = self.queues.get_mut(nic.index()) else { return Err(item) };
        let (bytes, packets) = self.limit;
        if fifo.items.len() as u64 >= packets || (fifo.bytes + item.bytes).get() > bytes {
            return Err(item);
        }
        fifo.bytes += item.bytes;
        fifo.items.push_back(item);
        Ok(())
    }
    /// The same for a frame that was taken already and whose card has failed: it need not fit.
    pub fn move_to(&mut self, nic: NicId, item: Item<P>) {
        if let Some(fifo) = self.queues.get_mut(nic.index()) {
            fifo.bytes += item.bytes;
            fifo.items.push_back(item);
        }
    }
    /// The first frame for `nic` whose lane works and is free.
    pub fn pop(&mut self, now: Instant, nic: NicId, lanes: &Lanes) -> Option<Item<P>> {
        let fifo = self.queues.get_mut(nic.index())?;
        let free = |item: &Item<P>| lanes.lane(item.neighbour, nic).is_some_and(|lane| lane.free <= now);
        // Frames of a neighbour whose lane is still busy do not keep back those of others.
        let at = fifo.items.iter().position(free)?;
        let item = fifo.items.remove(at)?;
        fifo.bytes -= item.bytes;
        Some(item)
    }
    /// When a lane that something waits for is free; lanes that are free already wait for their card.
    pub fn deadline(&self, lanes: &Lanes) -> Option<Instant> {
        let queues = self.queues.iter().zip(lanes.ids());
        let firsts = queues.filter_map(|(fifo, nic)| {
            let lane = |item: &Item<P>| lanes.lane(item.neighbour, nic).map(|lane| lane.free);
            let free = lanes.nic(nic)?.line.busy_until();
            fifo.items.iter().filter_map(lane).min().map(|at| at.max(free))
        });
        firsts.min()
    }
    /// How long what waits for `nic` takes at the pace of `neighbour`'s lane.
    pub fn backlog(&self, neighbour: NeighbourId, nic: NicId, lanes: &Lanes) -> Span {
        let (Some(fifo), Some(lane)) = (self.queues.get(nic.index()), lanes.lane(neighbour, nic)) else {
            return Span::ZERO;
        };
        lane.pace.span(fifo.bytes)
    }
    /// What waits for `nic`.
    pub fn bytes(&self, nic: NicId) -> ByteCount {
        self.queues.get(nic.index()).map_or(ByteCount::ZERO, |fifo| fifo.bytes)
    }
    /// Takes out all frames that their card cannot send any more, in order.
    pub fn stranded(&mut self, lanes: &Lanes) -> Vec<Item<P>> {
        self.take(|nic, item| {
            lanes.lane(item.neighbour, nic).is_none() && lanes.working(item.neighbour).next().is_some()
        })
    }
    /// Takes out all frames for `neighbour`, in the order of cards.
    pub fn abandon(&mut self, neighbour: NeighbourId) -> Vec<Item<P>> {
        self.take(|_, item| item.neighbour == neighbour)
    }
    /// Frames inside.
    pub fn held(&self) -> u64 {
        self.queues.iter().map(|fifo| fifo.items.len() as u64).sum()
    }

    fn take(&mut self, is: impl Fn(NicId, &Item<P>) -> bool) -> Vec<Item<P>> {
        let mut out = Vec::new();
        for (at, fifo) in self.queues.iter_mut().enumerate() {
            let nic = NicId(at as u8);
            if !fifo.items.iter().any(|item| is(nic, item)) {
                continue;
            }
            for item in std::mem::take(&mut fifo.items) {
                if is(nic, &item) {
                    fifo.bytes -= item.bytes;
                    out.push(item);
                } else {
                    fifo.items.push_back(item);
                }
            }
        }
        out
    }
}
