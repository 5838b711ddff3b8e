//! First in, first out, without pacing.

use super::classes::Classes;
use super::{ClassId, ClassSpec, ClassStats, Next, PacedFrame, PacingError, Refused, Scheduler};
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate};
use std::collections::VecDeque;

/// One queue for all classes. Classes have limits and counters.
#[derive(Debug)]
pub struct FifoScheduler<P> {
    classes: Classes<P, ()>,
    order: VecDeque<ClassId>,
}

impl<P: PacedFrame> FifoScheduler<P> {
    /// A scheduler for a link of `link_rate` that carries IP packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// The rate or the MTU is out of range.
    pub fn new(link_rate: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        Ok(FifoScheduler { classes: Classes::new(link_rate, mtu)?, order: VecDeque::new() })
    }
}

impl<P: PacedFrame> Scheduler<P> for FifoScheduler<P> {
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError> {
        self.classes.add(spec)
    }
    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError> {
        self.classes.set_rate(class, rate).map(drop)
    }
    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError> {
        let packets = self.classes.remove(class)?;
        if !packets.is_empty() {
            self.order.retain(|c| *c != class);
        }
        Ok(packets)
    }
    fn enqueue(&mut self, _: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>> {
        let hint = packet.rate_hint();
        self.classes.push(class, packet)?;
        self.classes.follow(class, hint);
        self.order.push_back(class);
        Ok(())
    }
    fn dequeue(&mut self, _: Instant) -> Next<P> {
        let Some(class) = self.order.pop_front() else { return Next::Empty };
        match self.classes.pop_to_send(class) {
            Some(packet) => Next::Packet { class, packet },
            None => Next::Empty,
        }
    }
    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }
    fn stats(&self, class: ClassId) -> Option<ClassStats> {
        self.classes.stats(class)
    }
}
