//! The order in which frames leave, and their NICs.
//!
//! There are two families. `skip`, `round_robin` and `flow_hash` select the NIC when a frame arrives, and
//! have a queue per NIC (`fifos`). `earliest` and the schedulers of multipath transports (`work_conserving`)
//! have one queue for all NICs (`shared`), and select the frame when a NIC becomes idle.

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
use farpace_units::{ByteCount, Instant, Seq, Span};

/// A flow, whose frames should arrive in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A queued frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedFrame<P> {
    /// The frame.
    pub frame: P,
    /// Its wire length.
    pub bytes: ByteCount,
    /// Its flow.
    pub flow: FlowId,
    /// Its destination.
    pub neighbour: NeighbourId,
    /// Sequence number of the first byte, if the frame is in the retransmit cache.
    pub cached: Option<Seq>,
}

/// Selects the next frame and its NIC.
///
/// The contract:
/// * [`dequeue`](SendOrder::dequeue) is called for every idle NIC after each call of another method, until it
///   returns none for all NICs, and whenever a NIC or a path becomes idle. The caller sends the frame
///   immediately, on a usable and idle path.
/// * Every frame is returned exactly once: by `dequeue`, or in `refused`.
/// * While a path to its neighbour works, a frame does not wait indefinitely.
/// * After [`on_deadline`](SendOrder::on_deadline) at `now`, the deadline is later than `now`, or none.
pub trait SendOrder<P> {
    /// Queues a frame. Frames without room or without a path are moved to `refused`: this one or others.
    fn enqueue(
        &mut self,
        now: Instant,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    );
    /// The frame for `nic`, which is idle.
    fn dequeue(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>>;
    /// Time of the next action other than sending on a NIC that becomes idle. Pure.
    fn deadline(&self) -> Option<Instant> {
        None
    }
    /// Handles the deadline; no effect before.
    fn on_deadline(&mut self, _now: Instant, _paths: &NicPaths, _refused: &mut Vec<QueuedFrame<P>>) {}
    /// Handles a change of paths or their rates: moves frames whose NIC can no longer send them, and refuses
    /// those that no NIC can send.
    fn on_change(&mut self, now: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>);
    /// Limits the queue to what the paths carry in `time`, besides what they need to be kept busy, where the
    /// limit adapts to the paths. No effect on other queues.
    fn limit_time(&mut self, _time: Span) {}
    /// Number of queued frames.
    fn held(&self) -> u64;
    /// Wire bytes of queued frames.
    fn backlog(&self) -> ByteCount;
}

/// Creates the order that `config` selects.
pub fn make<P: 'static>(config: &MultiNicConfig, paths: &NicPaths) -> Box<dyn SendOrder<P>> {
    let limit = config.queue.unwrap_or_default();
    match config.order {
        OrderKind::Earliest => Box::new(Earliest::new(config.queue)),
        OrderKind::Skip => Box::new(Skip::new(limit, config.skip, config.hold, config.ratio.clone(), paths)),
        OrderKind::RoundRobin => Box::new(RoundRobin::new(limit, config.ratio.clone(), paths)),
        OrderKind::FlowHash => Box::new(FlowHash::new(limit, paths)),
        OrderKind::MinRtt => Box::new(WorkConserving::new(limit, Restraint::None)),
        OrderKind::Blest => Box::new(WorkConserving::new(limit, Restraint::Blest)),
        OrderKind::Ecf => Box::new(WorkConserving::new(limit, Restraint::Ecf)),
    }
}

/// True if a path to the frame's neighbour works.
fn can_go<P>(item: &QueuedFrame<P>, paths: &NicPaths) -> bool {
    paths.working(item.neighbour).next().is_some()
}
