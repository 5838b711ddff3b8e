//! Queue disciplines: which packet of a queue is sent next, and which are dropped or marked.
//!
//! One file for each: [`DropTail`], [`Red`], [`CoDel`], [`FqCoDel`]. A
//! [`ManagedLinkDirection`](crate::ManagedLinkDirection) has one.

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

/// The queue of a link.
///
/// The contract:
/// * A packet given to [`enqueue`](QueueDiscipline::enqueue) is held until
///   [`dequeue`](QueueDiscipline::dequeue) returns it, or is given to [`Cx::drop`] with its reason, at once
///   or later.
/// * `dequeue` returns a packet whenever the queue holds one that it does not drop: a link is never idle
///   while packets wait.
/// * The queue is that of the instant `cx.now()`; time never goes back.
pub trait QueueDiscipline {
    /// A packet arrives. `sending` is what is being sent now: it counts against the limit of the queue, as in
    /// [`QueueLimit`].
    fn enqueue(&mut self, packet: Packet, sending: Backlog, cx: &mut Cx<'_>);
    /// The link is free: returns the packet to be sent now.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// The packets that wait, without the one that is being sent.
    fn backlog(&self) -> Backlog;
    /// Packets marked CE instead of being dropped (RFC 3168 §5).
    fn marked(&self) -> u64 {
        0
    }
    /// Readings of the discipline, in a fixed order.
    fn inspect(&self) -> Inspection {
        Inspection::new()
    }
}

/// An amount of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Their number.
    pub packets: u64,
    /// Their bytes in memory, without framing.
    pub bytes: ByteCount,
}

impl Backlog {
    /// One packet.
    pub fn of(packet: &Packet) -> Self {
        Backlog { packets: 1, bytes: packet.len() }
    }
    /// True if this is within `limit`.
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

/// Why a queue discipline is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QueueError {
    /// No packet would ever enter.
    #[error("the queue must hold at least one packet: it counts the frame that is being sent")]
    ZeroQueue,
    /// RED's thresholds are not a range.
    #[error("RED's upper threshold must be above the lower one, and that above 0")]
    Thresholds,
    /// RED's weight or probability is not above 0 and at most 1.
    #[error("RED's weight and maximum probability must be above 0 and at most 1")]
    NotAProbability,
    /// A time in which nothing can happen.
    #[error("CoDel's target and interval must be above 0 s, and the target below the interval")]
    Times,
    /// Rounds in which no queue may send anything, or no queues.
    #[error("FQ-CoDel needs a quantum above 0 B and 1 to {} queues", FqCoDelConfig::MAX_FLOWS)]
    Rounds,
}

/// A limit that is above 0.
const fn checked(limit: QueueLimit) -> Result<QueueLimit, QueueError> {
    let (bytes, packets) = limit.bounds();
    if bytes == 0 || packets == 0 { Err(QueueError::ZeroQueue) } else { Ok(limit) }
}
