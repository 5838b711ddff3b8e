//! Schedulers of multipath transports, in place of this layer: of the idle NICs, the one with the lowest
//! delay takes the first frame (minimum RTT). Two of them leave a slow path idle where it would do harm.
//!
//! The originals know the window of each subflow. Here an idle NIC represents a window with room, the rate of
//! the path for the window, and the queue for the data of the connection.

use super::shared::SharedQueue;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::{NicId, NicPath, NicPaths};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, Span};

/// When a slow path is left idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restraint {
    /// Never: the scheduler of MPTCP.
    None,
    /// If the fast path could send the whole queue while the frame is in flight: the frame would block it
    /// (Ferlin et al., BLEST).
    Blest,
    /// If the fast path would deliver the whole queue earlier than the slow path one frame (Lim et al., ECF),
    /// and while it waits, by at least a quarter.
    Ecf,
}

/// The orders `min-rtt`, `blest` and `ecf`; see the module.
#[derive(Clone, Debug)]
pub struct WorkConserving<P> {
    queue: SharedQueue<P>,
    restraint: Restraint,
    /// ECF is waiting for the fast path.
    waits: bool,
}

impl<P> WorkConserving<P> {
    /// A queue of `limit`.
    pub fn new(limit: QueueLimit, restraint: Restraint) -> Self {
        WorkConserving { queue: SharedQueue::new(limit), restraint, waits: false }
    }
    /// True if a frame of `bytes` should wait for `fast` instead of leaving on `slow`.
    fn leaves_idle(
        &mut self,
        now: Instant,
        bytes: ByteCount,
        (fast_nic, fast): (NicId, &NicPath),
        slow: &NicPath,
        paths: &NicPaths,
    ) -> bool {
        let begins = paths.begins(fast_nic, fast, now);
        let by_slow = now + slow.delay.of(bytes);
        let by_fast = begins + fast.delay.of(bytes);
        let all = fast.pace.span(self.queue.backlog());
        match self.restraint {
            Restraint::None => false,
            Restraint::Blest => by_fast + all <= by_slow,
            Restraint::Ecf => {
                let (ends, one) = ((by_fast + all).since(now), by_slow.since(now));
                let margin = if self.waits { Span::from_nanos(one.as_nanos() / 4) } else { Span::ZERO };
                self.waits = ends < one + margin;
                self.waits
            }
        }
    }
}

impl<P> SendOrder<P> for WorkConserving<P> {
    fn enqueue(
        &mut self,
        _: Instant,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        self.queue.push(item, paths, refused);
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>> {
        let ready = |item: &QueuedFrame<P>| paths.path(item.neighbour, nic).filter(|path| path.free <= now);
        let first = self.queue.iter().enumerate().find_map(|(at, item)| Some((at, item, ready(item)?)));
        let (at, &QueuedFrame { bytes, neighbour, .. }, path) = first?;
        let rank = |(id, path): &(NicId, &NicPath)| (path.delay.of(bytes), *id);
        let shorter = |other: &(NicId, &NicPath)| rank(other) < rank(&(nic, path));
        // An idle NIC with a lower delay will take it.
        if paths.working(neighbour).filter(shorter).any(|(id, path)| paths.begins(id, path, now) <= now) {
            return None;
        }
        let fastest = paths.working(neighbour).min_by_key(rank)?;
        if fastest.0 != nic && self.leaves_idle(now, bytes, fastest, path, paths) {
            return None;
        }
        self.queue.remove(at)
    }
    fn on_change(&mut self, _: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        self.queue.refuse_lost(paths, refused);
    }
    fn held(&self) -> u64 {
        self.queue.held()
    }
    fn backlog(&self) -> ByteCount {
        self.queue.backlog()
    }
}
