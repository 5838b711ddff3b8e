//! Flow queueing with a timer per flow, like Linux's fq: eligible flows are served in round robin.
//!
//! It behaves like fq where burstiness is concerned. A flow sends a *quantum* of two full frames, and then
//! pauses for the time that the quantum takes at its rate. A new flow may begin with ten full frames. A flow
//! below 550 kbit/s pauses after each packet. Timers expire up to a *slack* late, so that one timer serves
//! several flows. A flow makes up for its lateness by at most half of the next pause. Lengths are frame
//! lengths in memory, without check sequences, as in the kernel.
//!
//! Differences from fq: rates come from classes instead of sockets; a flow that was idle is not late; a pause
//! may exceed a second. As in fq, flows with a rate have no precedence over those without.

use super::classes::Classes;
use super::{
    ClassId, ClassSpec, ClassStats, MIN_FRAME, Next, PacedFrame, PacingError, PacingInterval, Refused,
    Scheduler,
};
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::ethernet::ETHERNET_LEN;
use std::collections::{BTreeSet, VecDeque};

/// Up to this rate a flow pauses after each packet (fq: `low_rate_threshold`).
const LOW_RATE: Rate = Rate::from_bits_per_sec(550_000);
/// Initial credit of a flow, in full frames (fq: `initial_quantum`).
const INITIAL_FRAMES: u64 = 10;
/// A flow that was idle for this time gets a quantum (fq: `flow_refill_delay`).
const REFILL_DELAY: Span = Span::from_millis(40);

/// Flow queueing with timers. Each class is a flow. Normal classes, and following ones without a hint, have
/// no timer.
#[derive(Debug)]
pub struct Fq<P> {
    classes: Classes<P, FqFlow>,
    slack: Span,
    quantum: i64,
    initial: i64,
    /// The latest time that a caller passed.
    now: Instant,
    /// Flows that were idle before; they are served first, once.
    new: VecDeque<ClassId>,
    old: VecDeque<ClassId>,
    /// Paused flows, by the end of the pause.
    waiting: BTreeSet<(Instant, ClassId)>,
}

#[derive(Debug, Default)]
struct FqFlow {
    /// Bytes that it may send in this round; none before its first packet.
    credit: Option<i64>,
    /// When its pause ends.
    next: Instant,
    /// When it began to send after the last pause.
    began: Instant,
    position: FlowPosition,
}

/// Where a flow is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum FlowPosition {
    /// Nowhere: it has never had a packet.
    #[default]
    Never,
    /// Nowhere: it has been idle since then.
    Idle(Instant),
    Listed,
    Waiting(Instant),
}

impl<P: PacedFrame> Fq<P> {
    /// A scheduler for a link of `link_rate` that carries IP packets of up to `mtu` bytes. Timers expire up
    /// to `slack` late. `quantum` defaults to two full frames without check sequences, and is at least 64 B.
    ///
    /// # Errors
    /// The rate or the MTU is out of range.
    pub fn new(
        link_rate: Rate,
        mtu: ByteCount,
        slack: Span,
        quantum: Option<ByteCount>,
    ) -> Result<Self, PacingError> {
        let frame = (mtu + ByteCount::of_len(ETHERNET_LEN)).get();
        let bytes = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let quantum = quantum.map_or(2 * frame, ByteCount::get).max(MIN_FRAME.get());
        Ok(Fq {
            classes: Classes::new(link_rate, mtu)?,
            slack,
            quantum: bytes(quantum),
            initial: bytes(INITIAL_FRAMES * frame),
            now: Instant::ZERO,
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: BTreeSet::new(),
        })
    }

    /// Serves the flow at the head of its list. If it sends, it stays at the head.
    fn serve(&mut self, id: ClassId, is_new: bool) -> Option<P> {
        let (now, limited) = (self.now, self.classes.rate(id).is_some());
        let class = self.classes.get_mut(id)?;
        let credit = class.state.credit.unwrap_or(self.initial);
        if credit <= 0 {
            class.state.credit = Some(credit.saturating_add(self.quantum));
            self.old.push_back(id);
        } else if class.head().is_none() {
            // A new flow that has become idle goes through the old list once, so that it cannot stay new.
            if is_new && !self.old.is_empty() {
                self.old.push_back(id);
            } else {
                class.state.position = FlowPosition::Idle(now);
            }
        } else if limited && now < class.state.next {
            let at = class.state.next;
            class.state.position = FlowPosition::Waiting(at);
            self.waiting.insert((at, id));
        } else {
            match is_new {
                true => self.new.push_front(id),
                false => self.old.push_front(id),
            }
            return self.send(id, credit);
        }
        None
    }

    fn send(&mut self, id: ClassId, credit: i64) -> Option<P> {
        let (link_rate, now, rate) = (self.classes.link_rate(), self.now, self.classes.rate(id));
        let packet = self.classes.pop_to_send(id)?;
        let len = packet.len();
        let class = self.classes.get_mut(id)?;
        let flow = &mut class.state;
        let mut credit = credit.saturating_sub_unsigned(len.get());
        if let Some(rate) = rate {
            if flow.began < flow.next {
                flow.began = now;
            }
            // A NIC takes all frames of a quantum together: the lateness of the last is that of the first.
            let late = flow.began.since(flow.next);
            let pause = if rate <= LOW_RATE {
                credit = 0;
                Some(rate.time_for(len))
            } else {
                let quantum = ByteCount::new(self.quantum.unsigned_abs());
                (credit <= 0).then(|| rate.time_for(len.max(quantum)))
            };
            if let Some(pause) = pause {
                let half = Span::from_nanos(pause.as_nanos() / 2);
                flow.next = flow.began + (pause - late.min(half));
            }
            class.was_late(link_rate.bytes_in(late));
        }
        class.state.credit = Some(credit);
        Some(packet)
    }

    /// Applies a `change` of the rate of a class, and scales the rest of its pause.
    fn change_rate<T>(&mut self, id: ClassId, change: impl FnOnce(&mut Classes<P, FqFlow>) -> T) -> T {
        let interval = |classes: &Classes<P, FqFlow>| classes.get(id).map(|class| class.interval);
        let before = interval(&self.classes);
        let done = change(&mut self.classes);
        if let (Some(before), Some(after)) = (before, interval(&self.classes))
            && before != after
        {
            self.rescale(id, before, after);
        }
        done
    }

    fn rescale(&mut self, id: ClassId, before: PacingInterval, after: PacingInterval) {
        let now = self.now;
        let Some(class) = self.classes.get_mut(id) else { return };
        let left = class.state.next.since(now);
        if left.is_zero() {
            return;
        }
        class.state.next = now + Span::from_nanos(after.rescaled(left.as_nanos(), before));
        if let FlowPosition::Waiting(at) = class.state.position {
            let next = class.state.next;
            class.state.position = FlowPosition::Waiting(next);
            self.waiting.remove(&(at, id));
            self.waiting.insert((next, id));
        }
    }
}

impl<P: PacedFrame> Scheduler<P> for Fq<P> {
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError> {
        self.classes.add(spec)
    }

    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError> {
        self.change_rate(class, |classes| classes.set_rate(class, rate).map(drop))
    }

    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError> {
        let position = self.classes.get(class).map(|class| class.state.position);
        let packets = self.classes.remove(class)?;
        match position {
            Some(FlowPosition::Waiting(at)) => drop(self.waiting.remove(&(at, class))),
            Some(FlowPosition::Listed) => {
                self.new.retain(|other| *other != class);
                self.old.retain(|other| *other != class);
            }
            _ => {}
        }
        Ok(packets)
    }

    fn enqueue(&mut self, now: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>> {
        let hint = packet.rate_hint();
        let was_empty = self.classes.push(class, packet)?;
        self.now = self.now.max(now);
        self.change_rate(class, |classes| classes.follow(class, hint));
        let (now, quantum) = (self.now, self.quantum);
        let Some(flow) = self.classes.get_mut(class).filter(|_| was_empty).map(|class| &mut class.state)
        else {
            return Ok(());
        };
        // It was idle, not late.
        flow.next = flow.next.max(now);
        let listed = match flow.position {
            FlowPosition::Never => false,
            FlowPosition::Idle(since) => {
                if now.since(since) > REFILL_DELAY {
                    flow.credit = flow.credit.map(|credit| credit.max(quantum));
                }
                false
            }
            FlowPosition::Listed | FlowPosition::Waiting(_) => true,
        };
        if !listed {
            flow.position = FlowPosition::Listed;
            self.new.push_back(class);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant) -> Next<P> {
        self.now = self.now.max(now);
        while let Some((at, id)) = self.waiting.first().copied().filter(|(at, _)| *at <= self.now) {
            self.waiting.remove(&(at, id));
            self.old.push_back(id);
            if let Some(class) = self.classes.get_mut(id) {
                class.state.position = FlowPosition::Listed;
            }
        }
        loop {
            let (class, is_new) = match self.new.pop_front() {
                Some(class) => (class, true),
                None => match self.old.pop_front() {
                    Some(class) => (class, false),
                    None => break,
                },
            };
            if let Some(packet) = self.serve(class, is_new) {
                return Next::Packet { class, packet };
            }
        }
        self.waiting.first().map_or(Next::Empty, |(at, _)| Next::Wait(*at + self.slack))
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    fn stats(&self, class: ClassId) -> Option<ClassStats> {
        self.classes.stats(class)
    }
}

#[cfg(test)]
mod tests;
