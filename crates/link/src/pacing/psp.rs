//! PSPacer as in the paper (Takano et al., §3.4): the baseline for the other schedulers.
//!
//! Time is counted in bytes on the wire. The global clock G counts all bytes sent. The class clock C of a
//! class is the value of G from which its next packet may go. A frame of `len` bytes in memory counts as
//! `len + 24` on the wire and as `len + 4` for its rate. Of the eligible classes, the one with the highest
//! rate sends. If none is eligible, a normal class sends. If no normal class has a packet either, a gap frame
//! fills the link until the lowest C.
//!
//! Where the paper is ambiguous: a class is eligible at C = G too (Fig. 3 needs it, though §3.4 says
//! "smaller"); a new class is a stopped one; of equal rates, the class that has had its rate for longer is
//! first. Classes that [follow](super::ClassKind::Follows) are not in the paper: they are served with the
//! normal classes, but not before their clocks.
//!
//! # Flaws
//! The algorithm is reproduced, not improved. [`Edf`](super::SchedulerKind::Edf) avoids these flaws:
//!
//! | flaw | where |
//! |---|---|
//! | highest rate first: slow classes are late, in some sets by more than a full frame | `by_rate`, (1a) |
//! | every frame costs a search of all classes | (1a) |
//! | C - G below 64 is ignored, so that a gap may end up to a full frame late | `may_send` |
//! | a gap of 64 to 83 B takes 84 B on the wire, but counts as requested | (1c) |
//! | packets shorter than 60 B are padded on the wire, but count unpadded | `counted` |
//! | fractions of a byte are truncated for each packet, so that rates are slightly exceeded | (3a) |
//! | a class that could not send in time keeps unlimited arrears and makes up for them in one burst | (3a) |
//! | so does a class that stopped and continued between two searches | `may_send` |
//! | G stops while the link is idle: a later packet still waits for its C | (1) |
//! | the sum of rates may equal that of the link, though frames take 20 B more on the wire | [`Psp::new`] |
//!
//! One flaw of the original is missing here: it did not count packets without a class.

use super::admission::PacingAdmission;
use super::classes::{Classes, Tag};
use super::{
    ClassId, ClassSpec, ClassStats, FCS, MIN_GAP, Next, PREAMBLE_AND_GAP, PacedFrame, PacingError,
    PacingInterval, Refused, Scheduler,
};
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate};
use std::cmp::Reverse;

/// Minimum C - G that it fills (paper §3.3: the minimum gap packet).
const MIN_FILLED_GAP: u64 = 64;

/// The paper's scheduler.
#[derive(Debug)]
pub struct Psp<P> {
    classes: Classes<P, ByteClock>,
    /// G: bytes on the wire so far.
    global: u64,
    /// Paced classes, highest rate first.
    by_rate: Vec<ClassId>,
    /// All other classes, served in round robin.
    rest: Vec<ClassId>,
    /// Index of the next class in `rest`.
    next: usize,
}

#[derive(Debug)]
struct ByteClock {
    /// C: the value of G from which the next packet may go.
    class: u64,
    /// The class had nothing to send when it was eligible.
    stopped: bool,
}

impl Default for ByteClock {
    fn default() -> Self {
        ByteClock { class: 0, stopped: true }
    }
}

impl<P: PacedFrame> Psp<P> {
    /// A scheduler for a link of `link_rate` that carries IP packets of up to `mtu` bytes. The sum of rates
    /// may be that of the link, whatever the framing overhead.
    ///
    /// # Errors
    /// The rate or the MTU is out of range.
    pub fn new(link_rate: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        let classes = Classes::admitted_by(PacingAdmission::of_rates(link_rate, mtu)?);
        Ok(Psp { classes, global: 0, by_rate: Vec::new(), rest: Vec::new(), next: 0 })
    }

    /// G: the bytes that it has counted as sent, including gaps.
    pub const fn global_clock(&self) -> u64 {
        self.global
    }

    /// True if a class has a packet and is eligible. If it is not yet eligible, `gap` is limited to that
    /// time.
    fn may_send(&mut self, id: ClassId, gap: &mut u64) -> bool {
        let limited = self.classes.rate(id).is_some();
        let Some(class) = self.classes.get_mut(id) else { return false };
        let waits = class.head().is_some();
        if !limited {
            return waits;
        }
        let ahead = class.state.class.saturating_sub(self.global);
        if ahead >= MIN_FILLED_GAP {
            *gap = ahead.min(*gap);
        }
        if ahead == 0 && !waits {
            class.state.stopped = true;
        }
        ahead == 0 && waits
    }

    fn send(&mut self, id: ClassId) -> Next<P> {
        let Some(packet) = self.classes.pop_to_send(id) else { return Next::Empty };
        let start = self.global;
        let (layer_2, on_the_line) = counted(packet.len());
        // (2)
        self.global = start.saturating_add(on_the_line.get());
        let limited = self.classes.rate(id).is_some();
        if let Some(class) = self.classes.get_mut(id).filter(|_| limited) {
            let clock = &mut class.state;
            // (3b) A stop clears arrears.
            if std::mem::take(&mut clock.stopped) {
                clock.class = start;
            }
            let late = start.saturating_sub(clock.class);
            // (3a) The packet and its gap, eq. (2).
            clock.class = clock.class.saturating_add(class.interval.after(layer_2, &mut 0));
            class.was_late(ByteCount::new(late));
        }
        Next::Packet { class: id, packet }
    }

    /// Scales the rest of the interval of a class whose rate has changed.
    fn rescale(&mut self, id: ClassId, before: PacingInterval) {
        let global = self.global;
        if let Some(class) = self.classes.get_mut(id) {
            let left = class.state.class.saturating_sub(global);
            if left > 0 {
                class.state.class = global.saturating_add(class.interval.rescaled(left, before));
            }
        }
    }

    fn list(&mut self, id: ClassId) {
        let paced =
            |classes: &Classes<P, ByteClock>, id| classes.get(id).is_some_and(|c| c.tag == Tag::Paced);
        if paced(&self.classes, id) {
            let rate = |id: ClassId| Reverse(self.classes.rate(id));
            let index = self.by_rate.partition_point(|other| rate(*other) <= rate(id));
            self.by_rate.insert(index, id);
        } else {
            self.rest.push(id);
        }
    }

    fn unlist(&mut self, id: ClassId) {
        self.by_rate.retain(|other| *other != id);
        if let Some(index) = self.rest.iter().position(|other| *other == id) {
            self.rest.remove(index);
            self.next -= usize::from(self.next > index);
        }
    }
}

impl<P: PacedFrame> Scheduler<P> for Psp<P> {
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError> {
        let id = self.classes.add(spec)?;
        self.list(id);
        Ok(id)
    }

    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError> {
        let before = self.classes.set_rate(class, rate)?;
        self.rescale(class, before);
        self.unlist(class);
        self.list(class);
        Ok(())
    }

    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError> {
        let packets = self.classes.remove(class)?;
        self.unlist(class);
        Ok(packets)
    }

    fn enqueue(&mut self, _: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>> {
        let hint = packet.rate_hint();
        self.classes.push(class, packet)?;
        let had_clock = self.classes.rate(class).is_some();
        if let Some(before) = self.classes.follow(class, hint) {
            self.rescale(class, before);
        }
        if !had_clock && let Some(class) = self.classes.get_mut(class) {
            class.state.stopped = true;
        }
        Ok(())
    }

    fn dequeue(&mut self, _: Instant) -> Next<P> {
        // (1) Only if packets are queued: paper §3.5.
        if self.classes.backlog().packets == 0 {
            return Next::Empty;
        }
        let mut gap = self.classes.full_frame().get();
        // (1a)
        for index in 0..self.by_rate.len() {
            let id = self.by_rate[index];
            if self.may_send(id, &mut gap) {
                return self.send(id);
            }
        }
        // (1b)
        for _ in 0..self.rest.len() {
            let id = self.rest[self.next % self.rest.len()];
            self.next = (self.next + 1) % self.rest.len();
            if self.may_send(id, &mut gap) {
                return self.send(id);
            }
        }
        // (1c) The minimum C - G, at most a full frame; (2) counts it as requested, even if the frame is
        // longer.
        self.global = self.global.saturating_add(gap);
        Next::Gap(ByteCount::new(gap).max(MIN_GAP))
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    fn stats(&self, class: ClassId) -> Option<ClassStats> {
        self.classes.stats(class)
    }
}

/// Layer 2 length and wire length as the algorithm counts them: without padding.
fn counted(len: ByteCount) -> (ByteCount, ByteCount) {
    (len + FCS, len + FCS + PREAMBLE_AND_GAP)
}

#[cfg(test)]
mod tests;
