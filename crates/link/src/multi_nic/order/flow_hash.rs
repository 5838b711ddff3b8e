//! One NIC per flow, which prevents reordering and limits a flow to the rate of one NIC: balance-xor and
//! 802.3ad in Linux.

use super::fifos::Fifos;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::{NicId, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant};

/// The order `flow-hash`; see the module.
#[derive(Clone, Debug)]
pub struct FlowHash<P> {
    fifos: Fifos<P>,
}

impl<P> FlowHash<P> {
    /// Queues with a limit of `limit`.
    pub fn new(limit: QueueLimit, paths: &NicPaths) -> Self {
        FlowHash { fifos: Fifos::new(limit, paths) }
    }
}

impl<P> SendOrder<P> for FlowHash<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        let working = paths.working(item.neighbour).count() as u64;
        let index = item.flow.0.checked_rem(working).unwrap_or(0) as usize;
        match paths.working(item.neighbour).nth(index).map(|(nic, _)| nic) {
            Some(nic) => self.fifos.push(nic, item, refused),
            None => refused.push(item),
        }
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>> {
        self.fifos.pop(now, nic, paths)
    }
    fn on_change(&mut self, now: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
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
