//! PSPacer, as the paper has it (Takano et al., §3.4): the measure of what came after.
//!
//! Time is counted in bytes of the line: the global clock G counts all that was sent, the class clock C of a class says
//! when its next packet may go. A frame of `len` bytes in memory counts as len + 24 on the line and as len + 4 for its
//! rate. Of the classes whose time has come, the one with the highest rate sends; if none has, a normal class; if
//! none of those has a packet either, a gap frame fills the line until the earliest C.
//!
//! Where the paper leaves something open: the time of a class has come when C is G, too (Fig. 3 needs it, though §3.4
//! says "smaller"); a new class is a stopped one; of equal rates the class that has had its rate for longer comes first. A
//! class that [follows](super::ClassKind::Follows) is not in the paper: it takes its turn among normal classes, but not
//! before its clock says so.
//!
//! # Flaws
//! It is reproduced, not improved. What [`Edf`](super::SchedulerKind::Edf) does better:
//!
//! | flaw | where |
//! |---|---|
//! | the highest rate first: slow classes come late, in some sets by more than a full frame | `by_rate`, (1a) |
//! | all classes are looked at for each frame | (1a) |
//! | C - G below 64 is overlooked, so that a gap may end up to a full frame after the time of a class | `may_send` |
//! | a gap of 64 to 83 B is 84 B on the line, but counted as what was wanted | (1c) |
//! | packets shorter than 60 B are padded on the line, but counted as they are | `counted` |
//! | fractions of a byte are cut off for each packet, so that rates are slightly exceeded | (3a) |
//! | a class that could not send in time keeps its arrears, however great, and makes them good in one burst | (3a) |
//! | a class that stopped and went on before it was looked at does, too | `may_send` |
//! | while the line is idle G stands still: a packet that comes later still waits for its C | (1) |
//! | the sum of rates may be the line's, though frames take 20 B more of it | [`Psp::new`] |
//!
//! One flaw of the original has no counterpart here: it did not count packets without a class.

use super::admission::PacingAdmission;
use super::classes::{Classes, Tag};
use super::{
    ClassId, ClassSpec, ClassStats, FCS, Next, PREAMBLE_AND_GAP, PacedFrame, PacingError, PacingInterval,
    Refused, SHORTEST_GAP, Scheduler,
};
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate};
use std::cmp::Reverse;

/// The least C - G that it fills (paper §3.3: the shortest gap packet).
const MIN_GAP: u64 = 64;

/// The paper's scheduler.
#[derive(Debug)]
pub struct Psp<P> {
    classes: Classes<P, ByteClock>,
    /// G: bytes of the line sent so far.
    global: u64,
    /// Paced classes, the highest rate first.
    by_rate: Vec<ClassId>,
    /// All others, and whose turn it is among them.
    rest: Vec<ClassId>,
    turn: usize,
}

#[derive(Debug)]
struct ByteClock {
    /// C: the value of G from which on the next packet may go.
    class: u64,
    /// The class had nothing to send when it might have.
    stopped: bool,
}

impl Default for ByteClock {
    fn default() -> Self {
        ByteClock { class: 0, stopped: true }
    }
}

impl<P: PacedFrame> Psp<P> {
    /// On a line of this rate that carries IP packets of up to `mtu` bytes. Paced classes may have as much of it as
    /// there is, whatever surrounds their frames.
    ///
    /// # Errors
    /// A line or an MTU that cannot be.
    pub fn new(line: Rate, mtu: ByteCount) -> Result<Self, PacingError> {
        let classes = Classes::admitted_by(PacingAdmission::of_rates(line, mtu)?);
        Ok(Psp { classes, global: 0, by_rate: Vec::new(), rest: Vec::new(), turn: 0 })
    }

    /// G: how many bytes it believes to have sent, gaps included.
    pub const fn global_clock(&self) -> u64 {
        self.global
    }

    /// Whether a class has a packet whose time has come. If it is yet to come, no gap is longer than that.
    fn may_send(&mut self, id: ClassId, gap: &mut u64) -> bool {
        let limited = self.classes.rate(id).is_some();
        let Some(class) = self.classes.get_mut(id) else { return false };
        let waits = class.head().is_some();
        if !limited {
            return waits;
        }
        let ahead = class.state.class.saturating_sub(self.global);
        if ahead >= MIN_GAP {
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
            // (3b) No arrears from before a stop.
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

    /// What is left of the interval of a class changes with its rate.
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
            let place = self.by_rate.partition_point(|other| rate(*other) <= rate(id));
            self.by_rate.insert(place, id);
        } else {
            self.rest.push(id);
        }
    }

    fn unlist(&mut self, id: ClassId) {
        self.by_rate.retain(|other| *other != id);
        if let Some(place) = self.rest.iter().position(|other| *other == id) {
            self.rest.remove(place);
            self.turn -= usize::from(self.turn > place);
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
        // (1) Only if something is queued: paper §3.5.
        if self.classes.backlog().packets == 0 {
            return Next::Empty;
        }
        let mut gap = self.classes.full_frame().get();
        // (1a)
        for place in 0..self.by_rate.len() {
            let id = self.by_rate[place];
            if self.may_send(id, &mut gap) {
                return self.send(id);
            }
        }
        // (1b)
        for _ in 0..self.rest.len() {
            let id = self.rest[self.turn % self.rest.len()];
            self.turn = (self.turn + 1) % self.rest.len();
            if self.may_send(id, &mut gap) {
                return self.send(id);
            }
        }
        // (1c) The least C - G, a full frame at most; (2) which is counted even if the line has to be given more.
        self.global = self.global.saturating_add(gap);
        Next::Gap(ByteCount::new(gap).max(SHORTEST_GAP))
    }

    fn backlog(&self) -> Backlog {
        self.classes.backlog()
    }

    fn stats(&self, class: ClassId) -> Option<ClassStats> {
        self.classes.stats(class)
    }
}

/// Bytes of layer 2 and of the line as it counts them: without padding.
fn counted(len: ByteCount) -> (ByteCount, ByteCount) {
    (len + FCS, len + FCS + PREAMBLE_AND_GAP)
}

#[cfg(test)]
mod tests;
