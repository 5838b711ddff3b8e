//! Queue disciplines: what waits in front of a line, which packet is next, and which are dropped or marked.
//!
//! One file each: [`DropTail`], [`Red`], [`CoDel`], [`FqCoDel`]. A [`ManagedLinkDirection`](crate::ManagedLinkDirection) has one.

mod codel;
mod drop_tail;
mod fifo;
mod flow;
mod fq_codel;
mod red;

#[cfg(test)]
mod bench;

pub use codel::{CoDel, CoDelConfig};
pub use drop_tail::DropTail;
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use red::{Red, RedConfig};

use crate::{Cx, Inspection, QueueLimit};
use farpace_units::ByteCount;
use farpace_wire::Packet;
use std::ops::Add;
use thiserror::Error;

/// A queue in front of a line.
///
/// The contract:
/// * A packet given to [`enqueue`](QueueDiscipline::enqueue) is held until [`dequeue`](QueueDiscipline::dequeue)
///   returns it, or is given to [`Cx::drop`] with its reason, at once or later.
/// * `dequeue` returns a packet whenever one is held that it does not drop: a line is never idle while packets wait.
/// * The queue of one instant is taken from `cx.now()`; time never goes back.
pub trait QueueDiscipline {
    /// A packet comes. `line` is what is being sent at the moment: it counts against the queue's limit, as in
    /// [`QueueLimit`].
    fn enqueue(&mut self, packet: Packet, line: Backlog, cx: &mut Cx<'_>);
    /// The line is free: the packet that is to be sent now.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// What waits, without the packet on the line.
    fn backlog(&self) -> Backlog;
    /// Packets marked CE instead of being dropped (RFC 3168 §5).
    fn marked(&self) -> u64 {
        0
    }
    /// Readings of its own, in a fixed order.
    fn inspect(&self) -> Inspection {
        Inspection::new()
    }
}

/// An amount of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// So many.
    pub packets: u64,
    /// Their bytes in memory, without framing.
    pub bytes: ByteCount,
}

impl Backlog {
    /// One packet.
    pub fn of(packet: &Packet) -> Self {
        Backlog { packets: 1, bytes: packet.len() }
    }
    /// True if so much is within `limit`.
    pub const fn is_within(self, limit: QueueLimit) -> bool {
        let (bytes, packets) = limit.bounds();
        self.packets <= packets && self.bytes.get() <= bytes
    }
}

impl Add for Backlog {
    type Output = Backlog;
    fn add(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

/// Why a queue discipline cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QueueError {
    /// Nothing would ever get in.
    #[error("the queue must hold at least one packet: it counts the frame that is being sent")]
    ZeroQueue,
    /// RED's thresholds are no range.
    #[error("RED's upper threshold must be above the lower one, and that above 0")]
    Thresholds,
    /// RED's weight or probability is not one.
    #[error("RED's weight and greatest probability must be above 0 and at most 1")]
    NotAShare,
    /// A time in which nothing can happen.
    #[error("CoDel's target and interval must be above 0 s, and the target below the interval")]
    Times,
    /// Rounds that give nobody anything, or no queues.
    #[error("FQ-CoDel needs a quantum above 0 B and 1 to {} queues", FqCoDelConfig::MAX_FLOWS)]
    Rounds,
}

/// A limit that can be kept.
const fn checked(limit: QueueLimit) -> Result<QueueLimit, QueueError> {
    let (bytes, packets) = limit.bounds();
    if bytes == 0 || packets == 0 { Err(QueueError::ZeroQueue) } else { Ok(limit) }
}
