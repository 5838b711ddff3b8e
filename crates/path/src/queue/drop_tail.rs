//! The plain queue: a packet that does not fit is dropped.

use super::fifo::Fifo;
use super::{Backlog, QueueDiscipline, QueueError, checked};
use crate::{Cx, DropReason, QueueLimit};
use farpace_wire::Packet;

/// First in, first out up to a limit.
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: QueueLimit,
    fifo: Fifo,
}

impl DropTail {
    /// An empty queue.
    ///
    /// # Errors
    /// A limit of 0.
    pub fn new(limit: QueueLimit) -> Result<Self, QueueError> {
        Ok(DropTail { limit: checked(limit)?, fifo: Fifo::default() })
    }
}

impl QueueDiscipline for DropTail {
    fn enqueue(&mut self, packet: Packet, sending: Backlog, cx: &mut Cx<'_>) {
        if (self.fifo.backlog() + sending + Backlog::of(&packet)).is_within(self.limit) {
            self.fifo.push(cx.now(), packet);
        } else {
            cx.drop(packet, DropReason::QueueFull);
        }
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.fifo.pop().map(|(_, packet)| packet)
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
