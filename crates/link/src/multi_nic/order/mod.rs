//! In which order frames leave, and by which card.

mod fifos;
mod round_robin;
mod shares;

pub use round_robin::RoundRobin;

use crate::multi_nic::{Lanes, MultiNicConfig, NeighbourId, NicId};
use farpace_units::{ByteCount, Instant};

/// Frames of one flow are to arrive in order; those of others need not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u64);

/// A frame that waits to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item<P> {
    /// It.
    pub frame: P,
    /// What it takes of the line.
    pub bytes: ByteCount,
    /// Whose it is.
    pub flow: FlowId,
    /// Whom it is for.
    pub neighbour: NeighbourId,
}

/// Decides which frame leaves next, and by which card.
///
/// The contract:
/// * [`dequeue`](SendOrder::dequeue) is called for every idle card, the fastest first, after each call of another method,
///   until no card gets a frame. What it gives is sent at once; its lane works.
/// * Every frame that was accepted is given back once.
/// * Frames whose lanes have all failed stay until [`on_change`](SendOrder::on_change) tells of one that works, or until they
///   are taken out by [`abandon`](SendOrder::abandon).
/// * After [`on_deadline`](SendOrder::on_deadline) at `now`, the deadline is later than `now`, or none.
pub trait SendOrder<P> {
    /// A frame is to be sent.
    ///
    /// # Errors
    /// The frame: there is no room.
    fn enqueue(&mut self, now: Instant, item: Item<P>, lanes: &Lanes) -> Result<(), Item<P>>;
    /// What `nic`, which is idle, sends now.
    fn dequeue(&mut self, now: Instant, nic: NicId, lanes: &Lanes) -> Option<Item<P>>;
    /// When there may be something to send for a card that is idle, though nothing else happens. Pure.
    fn deadline(&self, lanes: &Lanes) -> Option<Instant>;
    /// The deadline has come.
    fn on_deadline(&mut self, now: Instant, lanes: &Lanes);
    /// Lanes have failed or returned, or carry more or less: frames that wait for a card that cannot send them move.
    fn on_change(&mut self, now: Instant, lanes: &Lanes);
    /// Takes out all frames for `neighbour`, in the order in which they came.
    fn abandon(&mut self, neighbour: NeighbourId) -> Vec<Item<P>>;
    /// Frames inside.
    fn held(&self) -> u64;
    /// Named readings.
    fn inspect(&self) -> Vec<(&'static str, String)>;
}

/// The order that `config` asks for.
pub fn make<P: 'static>(config: &MultiNicConfig, lanes: &Lanes) -> Box<dyn SendOrder<P>> {
    Box::new(RoundRobin::new(config.queue, config.ratio.clone(), lanes))
}
