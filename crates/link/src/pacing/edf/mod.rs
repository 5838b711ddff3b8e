//! Eligible earliest deadline first (EEDF): of the eligible classes, the one with the earliest deadline.
//!
//! A frame of a class may begin at the clock C of its class, in bytes on the wire. It should begin before C +
//! T, when the next frame of the class may begin. If the rates fit the link, each frame begins at most one
//! foreign frame after its deadline. So no class ever has more than two frames in the queue of a link of its
//! own rate: pacing is precise. Highest rate first, the order of the paper, does not have this property.
//!
//! The [`Calendar`] holds classes that are not yet eligible, and [`Deadlines`] holds eligible ones. Both take
//! constant time per frame. They hold copies of a few numbers of each class. When a rate changes or a class
//! ends, its old copy stays in place as a stale entry, and is discarded when it reaches the head.

mod calendar;
mod deadlines;
mod state;

use super::classes::{Classes, Tag};
use super::{
    ClassId, ClassSpec, ClassStats, Gaps, LinkClock, MIN_GAP, Next, PacedFrame, PacingError, PacingInterval,
    Refused, Scheduler, wire_len,
};
use calendar::{Calendar, Change};
use deadlines::Deadlines;
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate, Span};
use state::{ClassEntry, EdfState};
use std::collections::VecDeque;

/// With [`Gaps::Hybrid`], a class whose interval exceeds the jitter of timers by this factor needs no gap
/// frames: a late timer adds less than a tenth of a frame to its burst.
const LONG_INTERVAL: u64 = 10;

/// The default scheduler. Pacing is precise for every set of classes that fits the link.
#[derive(Debug)]
pub struct Edf<P> {
    classes: Classes<P, EdfState>,
    clock: LinkClock,
    gaps: Gaps,
    /// Jitter of timers, in bytes on the wire.
    jitter: u64,
    /// Intervals up to this are too short for timers; 0 if this does not matter.
    short_interval: u64,
    /// Number of active classes with short intervals.
    short_classes: usize,
    /// Maximum lateness that a class may make up for: twice the wire length of a full frame.
    max_lateness: u64,
    /// The link is idle, so the clock has stopped.
    idle: bool,
    calendar: Calendar,
    deadlines: Deadlines,
    /// Normal classes with packets, and eligible following classes, served in round robin.
    round_robin: VecDeque<ClassEntry>,
    /// Number of active classes. All other entries are stale.
    active: usize,
}

impl<P: PacedFrame> Edf<P> {
    /// A scheduler for a link of `link_rate` that carries IP packets of up to `mtu` bytes. `jitter` is the
    /// lateness of timers, which only [`Gaps::Hybrid`] uses.
    ///
    /// # Errors
    /// The rate or the MTU is out of range.
    pub fn new(link_rate: Rate, mtu: ByteCount, gaps: Gaps, jitter: Span) -> Result<Self, PacingError> {
        let classes = Classes::new(link_rate, mtu)?;
        let jitter = link_rate.bytes_in(jitter).get();
        Ok(Edf {
            max_lateness: 2 * classes.full_frame().get(),
            classes,
            clock: LinkClock::new(link_rate),
            gaps,
            jitter,
            short_interval: if gaps == Gaps::Hybrid { jitter.saturating_mul(LONG_INTERVAL) } else { 0 },
            short_classes: 0,
            idle: true,
            calendar: Calendar::new(0),
            deadlines: Deadlines::new(),
            round_robin: VecDeque::new(),
            active: 0,
        })
    }

    fn catch_up(&mut self, now: Instant) {
        if self.idle {
            self.clock.catch_up(now);
        }
    }

    /// Activates a class that has received its first packet. Its clock may be ahead if it has just sent.
    /// Unused time does not accumulate, so the class does not restart with a burst.
    fn activate(&mut self, id: ClassId) {
        let now = self.clock.bytes();
        let Some(class) = self.classes.get_mut(id) else { return };
        let Some(len) = class.head() else { return };
        if class.state.start < now {
            (class.state.start, class.state.rest) = (now, 0);
        }
        let (entry, tag) = (class.next_entry(id, len), class.tag);
        class.state.active = true;
        self.active += 1;
        class.state.set_short(entry.is_short(self.short_interval, tag), &mut self.short_classes);
        self.place(entry, tag);
    }

    /// Inserts an entry into the structure for its state.
    #[inline]
    fn place(&mut self, entry: ClassEntry, tag: Tag) {
        if tag == Tag::Normal {
            self.round_robin.push_back(entry);
        } else if entry.start > self.clock.bytes() {
            self.calendar.push(entry);
        } else if tag == Tag::Paced {
            self.deadlines.push(entry);
        } else {
            self.round_robin.push_back(entry);
        }
    }

    /// Moves entries that have become eligible.
    #[inline]
    fn admit(&mut self) {
        let Edf { classes, calendar, deadlines, round_robin, clock, .. } = self;
        calendar.advance(clock.bytes(), |change| match change {
            Change::Soon(entry) => classes.prefetch(entry.class(), entry.packet),
            Change::Due(entry) => match entry.follows() {
                false => deadlines.push(entry),
                true => round_robin.push_back(entry),
            },
        });
    }

    /// Sends the next frame of the class of an entry; none if the entry is stale.
    #[inline]
    fn send(&mut self, entry: ClassEntry) -> Option<Next<P>> {
        let id = entry.class();
        let (packet, len, class) = self.classes.send_if(id, |state| state.is_current(&entry))?;
        let (begin, tag) = (self.clock.bytes(), class.tag);
        self.clock.advance(wire_len(len));
        if tag != Tag::Normal {
            let late = u32::try_from(begin.saturating_sub(class.state.start)).unwrap_or(u32::MAX);
            class.latest = class.latest.max(late);
            class.state.start = class.state.deadline;
            // Classes that fit the link are never later. On an overbooked link this bounds how much a class
            // makes up for.
            let bound = self.clock.bytes().saturating_sub(self.max_lateness);
            if class.state.start < bound {
                (class.state.start, class.state.rest) = (bound, 0);
            }
        }
        match class.head() {
            Some(len) => {
                let entry = class.next_entry(id, len);
                class.state.set_short(entry.is_short(self.short_interval, tag), &mut self.short_classes);
                self.place(entry, tag);
            }
            None => {
                class.state.active = false;
                class.state.set_short(false, &mut self.short_classes);
                self.active -= 1;
            }
        }
        Some(Next::Packet { class: id, packet })
    }

    /// Fills the time until byte `start`, before which no class is eligible. `interval` is that of the class
    /// that starts there. None if `start` has passed, because the caller asked late.
    fn pass_time(&mut self, now: Instant, start: u64, interval: u64) -> Option<Next<P>> {
        let missing = start.saturating_sub(self.clock.bytes());
        let full = self.classes.full_frame();
        let wait_to = match self.gaps {
            Gaps::Frames => None,
            Gaps::Timers => Some(start),
            // A late timer must not delay a class with a short interval.
            Gaps::Hybrid if interval > self.short_interval && self.short_classes == 0 => Some(start),
            // The timer may be late by the jitter, and the wait must be long enough for a timer.
            Gaps::Hybrid => (missing > self.jitter.saturating_add(full.get())).then(|| start - self.jitter),
        };
        if let Some(byte) = wait_to {
            let until = self.clock.instant_of(byte);
            if until <= now {
                self.clock.catch_up(now);
                return None;
            }
            self.idle = true;
            return Some(Next::Wait(until));
        }
        let gap = gap_frame(missing, full);
        self.clock.advance(gap);
        Some(Next::Gap(gap))
    }

    /// Bounds the number of stale entries: rebuilds all structures when most entries are stale.
    fn remove_stale_entries(&mut self) {
        /// Fewer stale entries do not justify a rebuild.
        const MIN_STALE: usize = 1_024;
        if self.calendar.len() + self.deadlines.len() + self.round_robin.len() <= 2 * self.active + MIN_STALE
        {
            return;
        }
        self.calendar = Calendar::new(self.clock.bytes());
        self.deadlines = Deadlines::new();
        let round_robin = std::mem::take(&mut self.round_robin);
        let current = |entry: &ClassEntry| {
            self.classes.get(entry.class()).is_some_and(|class| class.state.is_current(entry))
        };
        self.round_robin = round_robin.into_iter().filter(current).collect();
        let in_round_robin: std::collections::BTreeSet<_> =
            self.round_robin.iter().map(ClassEntry::class).collect();
        for id in self.classes.ids().collect::<Vec<_>>() {
            if let Some(class) = self.classes.get(id).filter(|class| class.state.active)
                && !in_round_robin.contains(&id)
            {
                let (entry, tag) = (class.entry(id), class.tag);
                self.place(entry, tag);
            }
        }
    }
}

/// Wire length of the next gap frame of a gap of `missing` bytes. It never leaves a remainder shorter than
/// the minimum. Rounding up delays frames by less than a minimum gap, and does not accumulate, because each
/// class has its own clock.
fn gap_frame(missing: u64, full: ByteCount) -> ByteCount {
    let (shortest, full) = (MIN_GAP.get(), full.get());
    ByteCount::new(if missing <= full {
        missing.max(shortest)
    } else if missing < full + shortest {
        (missing - shortest).max(shortest)
    } else {
        full
    })
}

impl<P: PacedFrame> Edf<P> {
    /// Adapts a class whose interval has changed from `old`: scales its remaining time, and inserts it again.
    fn rescale(&mut self, id: ClassId, old: PacingInterval) {
        let now = self.clock.bytes();
        let Some(class) = self.classes.get_mut(id) else { return };
        let left = u128::from(class.state.start.saturating_sub(now));
        if left > 0 {
            let (old, new) = (old.rate().bits_per_sec(), class.interval.rate().bits_per_sec());
            let scaled = left * u128::from(old) / u128::from(new.max(1));
            class.state.start = now.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX));
        }
        self.reinsert(id);
    }

    /// Inserts the entry of an active class again; the old entry becomes stale.
    fn reinsert(&mut self, id: ClassId) {
        let Some(class) = self.classes.get_mut(id) else { return };
        class.state.rest = 0;
        if let Some(len) = class.head().filter(|_| class.state.active) {
            let (entry, tag) = (class.next_entry(id, len), class.tag);
            class.state.set_short(entry.is_short(self.short_interval, tag), &mut self.short_classes);
            self.place(entry, tag);
            self.remove_stale_entries();
        }
    }

    /// Sets the rate of a following class, which applies from the next frame on. The pending frame keeps its
    /// time unless that is more than two of the new intervals away; then it waits for one interval of a full
    /// frame. So the distance of two frames is at least that of the highest rate, and a class is reinserted a
    /// few times at most.
    fn follow(&mut self, id: ClassId, hint: Option<Rate>) {
        if self.classes.follow(id, hint).is_none() {
            return;
        }
        let (now, full) = (self.clock.bytes(), self.classes.full_frame());
        let Some(class) = self.classes.get_mut(id) else { return };
        class.state.rest = 0;
        let interval = class.interval.after(full, &mut 0);
        let long = interval.saturating_mul(2);
        let waits = class.state.start.saturating_sub(now) > long;
        if waits {
            class.state.start = now.saturating_add(interval);
        }
        if waits || class.state.deadline.saturating_sub(class.state.start) > long {
            self.reinsert(id);
        }
    }
}

impl<P: PacedFrame> Scheduler<P> for Edf<P> {
    fn add_class(&mut self, spec: ClassSpec) -> Result<ClassId, PacingError> {
        self.classes.add(spec)
    }
    fn set_rate(&mut self, class: ClassId, rate: Rate) -> Result<(), PacingError> {
        let old = self.classes.set_rate(class, rate)?;
        self.rescale(class, old);
        Ok(())
    }
    fn remove_class(&mut self, class: ClassId) -> Result<Vec<P>, PacingError> {
        let state = self.classes.get(class).map(|class| class.state).unwrap_or_default();
        let packets = self.classes.remove(class)?;
        if state.active {
            self.active -= 1;
            self.short_classes -= usize::from(state.short);
            // Entries of normal classes do not show whether their number has been reused.
            self.round_robin.retain(|entry| entry.class() != class);
            self.remove_stale_entries();
        }
        Ok(packets)
    }
    #[inline]
    fn enqueue(&mut self, now: Instant, class: ClassId, packet: P) -> Result<(), Refused<P>> {
        let hint = packet.rate_hint();
        let first = self.classes.push(class, packet)?;
        self.catch_up(now);
        if hint.is_some() {
            self.follow(class, hint);
        }
        if first {
            self.activate(class);
        }
        Ok(())
    }
    #[inline]
    fn dequeue(&mut self, now: Instant) -> Next<P> {
        self.catch_up(now);
        if self.active == 0 {
            self.idle = true;
            return Next::Empty;
        }
        self.idle = false;
        loop {
            self.admit();
            while let Some(entry) = self.deadlines.pop() {
                if let Some(next) = self.send(entry) {
                    return next;
                }
            }
            while let Some(entry) = self.round_robin.pop_front() {
                if let Some(next) = self.send(entry) {
                    return next;
                }
            }
            // The first entry may be stale. Its time can still be passed, because no class starts before it.
            let Some((start, interval)) = self.calendar.first() else { return Next::Empty };
            if let Some(next) = self.pass_time(now, start, interval) {
                return next;
            }
        }
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
