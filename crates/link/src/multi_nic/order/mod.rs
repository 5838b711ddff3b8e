//! In which order frames leave, and by which card.
//!
//! Two families. Some choose the card when a frame comes, and keep a queue per card (`fifos`): `skip`, `round_robin`,
//! `flow_hash`. Others keep one queue for all (`shared`), and choose the frame when a card falls idle: `earliest`, and what
//! multipath transports do (`work_conserving`).

mod earliest;
mod fifos;
mod flow_hash;
mod round_robin;
mod shared;
mod shares;
mod skip;
#[cfg(test)]
mod tests;
mod work_conserving;

pub use earliest::Earliest;
pub use flow_hash::FlowHash;
pub use round_robin::RoundRobin;
pub use skip::{MAX_SKIPPED, Skip, skip_number};
pub use work_conserving::{Restraint, WorkConserving};

use crate::multi_nic::{MultiNicConfig, NeighbourId, NicId, NicPaths, OrderKind};
use farpace_units::{ByteCount, Instant, Seq};

/// Frames of one flow are to arrive in order; those of others need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A frame that waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedFrame<P> {
    /// It.
    pub frame: P,
    /// What it takes of the line.
    pub bytes: ByteCount,
    /// Whose it is.
    pub flow: FlowId,
    /// Whom it is for.
    pub neighbour: NeighbourId,
    /// The number of the first byte, if a copy is kept.
    pub copy: Option<Seq>,
}

/// Decides which frame leaves next, and by which card.
///
/// The contract:
/// * [`dequeue`](SendOrder::dequeue) is called for every card that is idle after each call of another method, until no card
///   gets a frame, and whenever a card or a lane falls idle. What it gives is sent at once, by a lane that works and is free.
/// * Every frame comes back once: from `dequeue`, or among those refused.
/// * As long as a lane to its neighbour works, a frame does not wait for ever.
/// * After [`on_deadline`](SendOrder::on_deadline) at `now`, the deadline is later than `now`, or none.
pub trait SendOrder<P> {
    /// A frame is to be sent. Frames that there is no room for, or no lane, are put into `refused`: this one or others.
    fn enqueue(
        &mut self,
        now: Instant,
        item: QueuedFrame<P>,
        lanes: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    );
    /// What `nic`, which is idle, sends now.
    fn dequeue(&mut self, now: Instant, nic: NicId, lanes: &NicPaths) -> Option<QueuedFrame<P>>;
    /// When something else is to be done than to send by a card that falls idle. Pure.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// The deadline has come, or has not.
    fn on_deadline(&mut self, _now: Instant, _lanes: &NicPaths, _refused: &mut Vec<QueuedFrame<P>>) {}
    /// Lanes have failed or returned, or carry more or less: frames that wait for a card that cannot send them move, and
    /// those that no card can send are refused.
    fn on_change(&mut self, now: Instant, lanes: &NicPaths, refused: &mut Vec<QueuedFrame<P>>);
    /// Frames inside.
    fn held(&self) -> u64;
    /// Bytes of the line that they take.
    fn backlog(&self) -> ByteCount;
}

/// The order that `config` asks for.
pub fn make<P: 'static>(config: &MultiNicConfig, lanes: &NicPaths) -> Box<dyn SendOrder<P>> {
    let limit = config.queue.unwrap_or_default();
    match config.order {
        OrderKind::Earliest => Box::new(Earliest::new(config.queue)),
        OrderKind::Skip => Box::new(Skip::new(limit, config.skip, config.hold, config.ratio.clone(), lanes)),
        OrderKind::RoundRobin => Box::new(RoundRobin::new(limit, config.ratio.clone(), lanes)),
        OrderKind::FlowHash => Box::new(FlowHash::new(limit, lanes)),
        OrderKind::MinRtt => Box::new(WorkConserving::new(limit, Restraint::None)),
        OrderKind::Blest => Box::new(WorkConserving::new(limit, Restraint::Blest)),
        OrderKind::Ecf => Box::new(WorkConserving::new(limit, Restraint::Ecf)),
    }
}

/// True if a lane to the frame's neighbour works.
fn can_go<P>(item: &QueuedFrame<P>, lanes: &NicPaths) -> bool {
    lanes.working(item.neighbour).next().is_some()
}
