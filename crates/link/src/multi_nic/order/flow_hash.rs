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
    pub fn new(limit: QueueLimit, lanes: &NicPaths) -> Self {
        FlowHash { fifos: Fifos::new(limit, lanes) }
    }
}

impl<P> SendOrder<P> for FlowHash<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        lanes: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        let working = lanes.working(item.neighbour).count() as u64;
        let turn = item.flow.0.checked_rem(working).unwrap_or(0) as usize;
        match lanes.working(item.neighbour).nth(turn).map(|(nic, _)| nic) {
            Some(nic) => self.fifos.push(nic, item, refused),
            None => refused.push(item),
        }
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, lanes: &NicPaths) -> Option<QueuedFrame<P>> {
        self.fifos.pop(now, nic, lanes)
    }
    fn on_change(&mut self, now: Instant, lanes: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
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
