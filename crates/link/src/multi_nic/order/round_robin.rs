//! Cards take turns by their shares, whatever that does to the order: the paper's conventional method, and Linux's balance-rr.

use super::fifos::Fifos;
use super::shares::Shares;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::{NicId, NicPaths, Ratio};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant};

/// See the module.
#[derive(Clone, Debug)]
pub struct RoundRobin<P> {
    fifos: Fifos<P>,
    shares: Shares,
}

impl<P> RoundRobin<P> {
    /// With queues of `limit`; without a `ratio` cards send in proportion to what their lanes carry.
    pub fn new(limit: QueueLimit, ratio: Option<Ratio>, lanes: &NicPaths) -> Self {
        RoundRobin { fifos: Fifos::new(limit, lanes), shares: Shares::new(ratio) }
    }
}

impl<P> SendOrder<P> for RoundRobin<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        lanes: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        match self.shares.take(item.neighbour, lanes) {
            Some(nic) => self.fifos.push(nic, item, refused),
            None => refused.push(item),
        }
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, lanes: &NicPaths) -> Option<QueuedFrame<P>> {
        self.fifos.pop(now, nic, lanes)
    }
    fn on_change(&mut self, now: Instant, lanes: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        self.shares.on_change(lanes);
        for item in self.fifos.stranded(lanes) {
            self.enqueue(now, item, lanes, refused);
        }
    }
    fn held(&self) -> u64 {
        self.fifos.held()
    }
    fn backlog(&self) -> ByteCount {
        self.fifos.backlog()
    }
}
