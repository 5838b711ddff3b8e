//! Weighted round robin over NICs, without regard to order: the conventional method of the paper, and
//! balance-rr in Linux.

use super::fifos::Fifos;
use super::shares::Shares;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::{NicId, NicPaths, Ratio};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant};

/// The order `round-robin`; see the module.
#[derive(Clone, Debug)]
pub struct RoundRobin<P> {
    fifos: Fifos<P>,
    shares: Shares,
}

impl<P> RoundRobin<P> {
    /// Queues with a limit of `limit`. Without a `ratio`, shares are proportional to the rates of the paths.
    pub fn new(limit: QueueLimit, ratio: Option<Ratio>, paths: &NicPaths) -> Self {
        RoundRobin { fifos: Fifos::new(limit, paths), shares: Shares::new(ratio) }
    }
}

impl<P> SendOrder<P> for RoundRobin<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        match self.shares.take(item.neighbour, paths) {
            Some(nic) => self.fifos.push(nic, item, refused),
            None => refused.push(item),
        }
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>> {
        self.fifos.pop(now, nic, paths)
    }
    fn on_change(&mut self, now: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        self.shares.on_change(paths);
        for item in self.fifos.stranded(paths) {
            self.enqueue(now, item, paths, refused);
        }
    }
    fn held(&self) -> u64 {
        self.fifos.held()
    }
    fn backlog(&self) -> ByteCount {
        self.fifos.backlog()
    }
}
