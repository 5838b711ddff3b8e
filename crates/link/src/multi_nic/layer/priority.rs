//! Frames that do not wait behind bulk transfers.

use super::MultiNic;
use super::sparse::SparseFlows;
use crate::multi_nic::order::QueuedFrame;
use crate::multi_nic::{FlowId, NeighbourId, NicId, NicPath};
use crate::pacing::wire_len;
use farpace_path::{Cx, DropReason};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::ip::PROTOCOL_TCP;
use farpace_wire::{Packet, TcpFlags};
use std::collections::VecDeque;

/// Queued frames at most; further ones are dropped.
pub const MAX_PRIORITY_FRAMES: usize = 256;
/// Wire bytes that may leave in a row while other frames wait: then one of those precedes.
const MAX_IN_A_ROW: ByteCount = ByteCount::new(8 * 1_538);

/// A queue that is served before the [order](crate::multi_nic::SendOrder), for everything but TCP, and for
/// flows of TCP that send little. Others share what a path has left, and fill any queue; a voice call or a
/// terminal fills none and must not wait in one.
///
/// A frame leaves on the path on which it arrives first. Datagrams that fill all paths leave a frame to the
/// others for each eight full frames' bytes: a ninth of the bytes if that one is full, too. If the datagrams
/// are short, it is one of many frames.
#[derive(Debug, Default)]
pub(super) struct PriorityQueue {
    items: VecDeque<QueuedFrame<Packet>>,
    flows: SparseFlows,
    in_a_row: ByteCount,
    sent: u64,
    dropped: u64,
}

impl PriorityQueue {
    /// True if a frame belongs into this queue: everything but TCP, and flows of TCP that send little, which
    /// leave room for the others. `in_order`: none unless it is TCP to a neighbour that puts frames in order,
    /// so that those of a flow may precede earlier ones; the longest round trip to it.
    pub fn takes(&mut self, now: Instant, packet: &Packet, flow: FlowId, in_order: Option<Span>) -> bool {
        let Some(rtt) = in_order else {
            return packet.ip().is_some_and(|ip| ip.protocol() != PROTOCOL_TCP);
        };
        let is_sparse = self.flows.add(now, flow, wire_len(packet.len()), rtt);
        is_sparse && !is_pure_ack(packet) && self.items.len() < MAX_PRIORITY_FRAMES / 2
    }
    /// Number of queued frames.
    pub fn held(&self) -> u64 {
        self.items.len() as u64
    }
    /// Queues a frame, or drops it if the queue is full.
    pub fn enqueue(&mut self, item: QueuedFrame<Packet>, cx: &mut Cx<'_>) {
        if self.items.len() < MAX_PRIORITY_FRAMES {
            self.items.push_back(item);
        } else {
            self.dropped += 1;
            cx.drop(item.frame, DropReason::QueueFull);
        }
    }
    /// A frame of the order has left.
    pub fn on_other_sent(&mut self) {
        self.in_a_row = ByteCount::ZERO;
    }
    fn is_others_turn(&self) -> bool {
        self.in_a_row >= MAX_IN_A_ROW
    }
}

/// Acknowledgments of bulk are little at first. If they took another path than later, its round trip would
/// grow while its window does, as in a queue.
fn is_pure_ack(packet: &Packet) -> bool {
    packet.payload().is_empty() && packet.tcp().is_ok_and(|tcp| !tcp.flags().contains(TcpFlags::SYN))
}

impl MultiNic {
    /// From now on everything but TCP precedes TCP. To be called before the first frame.
    pub fn prioritise_datagrams(&mut self) {
        self.priority = Some(PriorityQueue::default());
    }
    /// Frames that preceded others so far, and those that were dropped because too many waited.
    pub fn priority_counts(&self) -> (u64, u64) {
        self.priority.as_ref().map_or((0, 0), |queue| (queue.sent, queue.dropped))
    }

    /// The next frame for `nic`, if no other path delivers it earlier. `last`: the order has none for it.
    pub(super) fn next_priority(
        &mut self,
        cx: &Cx<'_>,
        nic: NicId,
        last: bool,
    ) -> Option<QueuedFrame<Packet>> {
        let now = cx.now();
        let others_wait = self.order.held() > 0 || self.repairs_wait();
        let queue = self.priority.as_mut()?;
        if !last && others_wait && queue.is_others_turn() {
            return None;
        }
        let front = queue.items.front_mut()?;
        if self.paths.working(front.neighbour).next().is_none() {
            front.neighbour = NeighbourId::ORDINARY;
        }
        let (neighbour, bytes) = (front.neighbour, front.bytes);
        let arrival =
            |(id, path): (NicId, &NicPath)| (self.paths.begins(id, path, now) + path.delay.of(bytes), id);
        let (_, first) = self.paths.working(neighbour).map(arrival).min()?;
        let is_free = self.paths.path(neighbour, nic).is_some_and(|path| path.free <= now);
        if first != nic || !is_free {
            return None;
        }
        queue.sent += 1;
        queue.in_a_row += bytes;
        queue.items.pop_front()
    }

    /// Drops queued frames if no NIC can send them.
    pub(super) fn drop_stranded_priority(&mut self, cx: &mut Cx<'_>) {
        if self.paths.first_up().is_some() {
            return;
        }
        for item in self.priority.iter_mut().flat_map(|queue| queue.items.drain(..)) {
            cx.drop(item.frame, DropReason::Outage);
        }
    }

    /// True if a frame is queued here.
    pub(super) fn priority_waits(&self) -> bool {
        self.priority.as_ref().is_some_and(|queue| queue.held() > 0)
    }
}
