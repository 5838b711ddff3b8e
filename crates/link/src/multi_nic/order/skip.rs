//! Frames for slow NICs are sent ahead by a fixed number: the skip number S of Kato and Higaki (their Fig. 8,
//! reconstructed from the text).
//!
//! Up to S frames of each connection wait in a buffer for fast NICs. When the next slot is that of a slow
//! NIC, new frames are appended to the buffer until it holds S. The next frame then leaves on the slow NIC,
//! ahead of S frames.

use super::fifos::Fifos;
use super::shares::Shares;
use super::{QueuedFrame, SendOrder};
use crate::multi_nic::nic_paths::FULL_FRAME;
use crate::multi_nic::{NeighbourId, NicId, NicPath, NicPaths, Ratio};
use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Instant, Span};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// Number of buffers. Connections are hashed to buffers; connections in the same buffer both stay in order.
const BUFFERS: usize = 4_096;
/// Maximum computed skip number: the number of frames of a connection that may wait.
pub const MAX_SKIPPED: u16 = 4_096;

/// The waiting frames of a connection.
#[derive(Clone, Debug)]
struct Buffer<P> {
    items: VecDeque<QueuedFrame<P>>,
    /// When to stop waiting for more frames.
    due: Instant,
}

/// The order `skip`; see the module.
#[derive(Clone, Debug)]
pub struct Skip<P> {
    fifos: Fifos<P>,
    shares: Shares,
    /// S, if configured.
    skip: Option<u16>,
    hold: Span,
    buffers: Vec<Buffer<P>>,
    /// Non-empty buffers, each with a time not later than its `due`.
    timers: BTreeSet<(Instant, usize)>,
    waiting: u64,
    waiting_bytes: ByteCount,
}

impl<P> Skip<P> {
    /// Queues with a limit of `limit`. Without `skip`, S is [computed](skip_number) for each slow NIC.
    /// Without a `ratio`, shares are proportional to the rates of the paths. Frames wait for `hold` after the
    /// latest frame.
    pub fn new(
        limit: QueueLimit,
        skip: Option<u16>,
        hold: Span,
        ratio: Option<Ratio>,
        paths: &NicPaths,
    ) -> Self {
        Skip {
            fifos: Fifos::new(limit, paths),
            shares: Shares::new(ratio),
            skip,
            hold,
            buffers: Vec::new(),
            timers: BTreeSet::new(),
            waiting: 0,
            waiting_bytes: ByteCount::ZERO,
        }
    }

    /// The NIC of the next slot, and S if it is a slow one. None if no path works.
    fn next(&mut self, neighbour: NeighbourId, paths: &NicPaths) -> Option<(NicId, Option<u16>)> {
        let nic = self.shares.of(neighbour, paths)?.next();
        let path = paths.path(neighbour, nic)?;
        let fastest = paths.working(neighbour).map(|(_, path)| path.rate).max()?;
        let s =
            (path.rate < fastest).then(|| self.skip.unwrap_or_else(|| skip_number(neighbour, nic, paths)));
        Some((nic, s))
    }
    /// Queues a frame for `nic`, and consumes the slot.
    fn send_in_slot(
        &mut self,
        nic: NicId,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        if let Some(slots) = self.shares.of(item.neighbour, paths) {
            slots.advance();
        }
        self.fifos.push(nic, item, refused);
    }
    fn wait(&mut self, now: Instant, at: usize, item: QueuedFrame<P>) {
        let Some(buffer) = self.buffers.get_mut(at) else { return };
        if buffer.items.is_empty() {
            self.timers.insert((now + self.hold, at));
        }
        buffer.due = now + self.hold;
        self.waiting += 1;
        self.waiting_bytes += item.bytes;
        buffer.items.push_back(item);
    }
    fn take(&mut self, at: usize, index: usize) -> Option<QueuedFrame<P>> {
        let item = self.buffers.get_mut(at)?.items.remove(index)?;
        self.waiting -= 1;
        self.waiting_bytes -= item.bytes;
        Some(item)
    }
    fn waits(&self, at: usize) -> usize {
        self.buffers.get(at).map_or(0, |buffer| buffer.items.len())
    }
    /// The rules of the paper for the remaining frames after the hold time: fast NICs take the first, and if
    /// the next n slots are slow, the n-th from the end leaves on them.
    fn flush(&mut self, at: usize, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        while let Some(first) = self.buffers.get(at).and_then(|buffer| buffer.items.front()) {
            let neighbour = first.neighbour;
            let index = match self.next(neighbour, paths) {
                None | Some((_, None)) => 0,
                Some((_, Some(_))) => {
                    let waits = self.waits(at);
                    let fastest = paths.working(neighbour).map(|(_, path)| path.rate).max();
                    let slow = |nic| paths.path(neighbour, nic).map(|path| path.rate) < fastest;
                    let run = self.shares.of(neighbour, paths).map_or(0, |slots| slots.run(waits, slow));
                    waits - run.clamp(1, waits)
                }
            };
            let Some(item) = self.take(at, index) else { return };
            // Connections that share a buffer may have different neighbours.
            match self.next(item.neighbour, paths) {
                Some((nic, _)) => self.send_in_slot(nic, item, paths, refused),
                None => refused.push(item),
            }
        }
    }
}

impl<P> SendOrder<P> for Skip<P> {
    fn enqueue(
        &mut self,
        now: Instant,
        item: QueuedFrame<P>,
        paths: &NicPaths,
        refused: &mut Vec<QueuedFrame<P>>,
    ) {
        let neighbour = item.neighbour;
        let Some((mut nic, mut slow)) = self.next(neighbour, paths) else { return refused.push(item) };
        if self.buffers.is_empty() {
            let empty = || Buffer { items: VecDeque::new(), due: Instant::ZERO };
            self.buffers.resize_with(BUFFERS, empty);
        }
        let at = (item.flow.0 % BUFFERS as u64) as usize;
        if let Some(s) = slow {
            return if self.waits(at) < usize::from(s) {
                self.wait(now, at, item)
            } else {
                self.send_in_slot(nic, item, paths, refused)
            };
        }
        while slow.is_none()
            && let Some(first) = self.take(at, 0)
        {
            self.send_in_slot(nic, first, paths, refused);
            match self.next(neighbour, paths) {
                Some(next) => (nic, slow) = next,
                None => break,
            }
        }
        if slow.is_none() { self.send_in_slot(nic, item, paths, refused) } else { self.wait(now, at, item) }
    }
    fn dequeue(&mut self, now: Instant, nic: NicId, paths: &NicPaths) -> Option<QueuedFrame<P>> {
        self.fifos.pop(now, nic, paths)
    }
    fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }
    fn on_deadline(&mut self, now: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        while let Some(&(at, buffer)) = self.timers.first()
            && at <= now
        {
            self.timers.pop_first();
            let Some(Buffer { items, due }) = self.buffers.get(buffer) else { continue };
            if items.is_empty() {
                continue;
            }
            // A later frame has extended the time.
            if *due > now {
                self.timers.insert((*due, buffer));
                continue;
            }
            self.flush(buffer, paths, refused);
        }
    }
    fn on_change(&mut self, _: Instant, paths: &NicPaths, refused: &mut Vec<QueuedFrame<P>>) {
        self.shares.on_change(paths);
        for item in self.fifos.stranded(paths) {
            // In the order in which they were to leave, and without waiting again.
            match self.next(item.neighbour, paths) {
                Some((nic, _)) => self.send_in_slot(nic, item, paths, refused),
                None => refused.push(item),
            }
        }
    }
    fn held(&self) -> u64 {
        self.fifos.held() + self.waiting
    }
    fn backlog(&self) -> ByteCount {
        self.fifos.backlog() + self.waiting_bytes
    }
}

/// The skip number of a slow NIC: how many full frames the fastest path delivers to the neighbour while one
/// is in flight on the path of `nic`, less the one that would arrive at the same time. With h
/// store-and-forward links of rates Rw and Rn, that is h (Rw/Rn - 1), plus the difference of the delays. The
/// paper determines S by experiment. At most [`MAX_SKIPPED`].
pub fn skip_number(neighbour: NeighbourId, nic: NicId, paths: &NicPaths) -> u16 {
    let Some(path) = paths.path(neighbour, nic) else { return 0 };
    let width = |(id, path): &(NicId, &NicPath)| (path.rate, Reverse((path.delay.of(FULL_FRAME), *id)));
    let Some((_, fast)) = paths.working(neighbour).max_by_key(width) else { return 0 };
    let later = path.delay.of(FULL_FRAME) + path.guard;
    let later = later.as_nanos().saturating_sub(fast.delay.of(FULL_FRAME).as_nanos());
    let one = fast.pace.span(FULL_FRAME).as_nanos().max(1);
    let frames = later.saturating_add(one / 2) / one;
    u16::try_from(frames).unwrap_or(MAX_SKIPPED).min(MAX_SKIPPED)
}
