//! Eligible earliest deadline first: of the classes whose time has come, the one whose next frame is due first.
//!
//! A frame of a class may begin at the class's clock C, in bytes of the line, and should have begun before C + T, where the
//! class's next frame may begin. Whatever the rates, if they fit the line each frame begins by its deadline and at most
//! one foreign frame later; so no class ever has more than two frames in the queue of a line of its own rate: pacing is
//! precise. Serving the highest rate first, as the paper does, does not have this property.
//!
//! Classes stand in one of two places: the [`Calendar`] holds those whose time has not come, [`Deadlines`] those whose time has. Both take
//! the same time per frame however many classes there are. What stands there are copies of a few numbers; they are
//! not looked for when a rate changes or a class ends, but found out when their turn comes.

mod calendar;
mod deadlines;
mod state;

use super::classes::{Classes, Tag};
use super::{
    ClassId, ClassSpec, ClassStats, Gaps, LineClock, Next, PacedFrame, PacingError, PacingInterval, Refused,
    SHORTEST_GAP, Scheduler, on_the_line,
};
use calendar::{Calendar, Change};
use deadlines::Deadlines;
use farpace_path::Backlog;
use farpace_units::{ByteCount, Instant, Rate, Span};
use state::{ClassEntry, EdfState};
use std::collections::VecDeque;

/// With [`Gaps::Hybrid`], a class whose interval is more than so many times as long as timers are late needs no gap frames: what a timer is
/// late adds less than a tenth of a frame to its burst.
const LONG_INTERVAL: u64 = 10;

/// The default scheduler: precise for any set of classes that fits the line.
#[derive(Debug)]
pub struct Edf<P> {
    classes: Classes<P, EdfState>,
    clock: LineClock,
    gaps: Gaps,
    /// Bytes of the line in the time by which timers are late.
    jitter: u64,
    /// Up to this interval timers are too late; 0 if they are not to be looked at.
    short: u64,
    /// Classes that stand somewhere with such an interval.
    fine: usize,
    /// Twice what a full frame takes.
    catches_up: u64,
    /// The line has been given nothing to do: the clock has stood still.
    stood_still: bool,
    calendar: Calendar,
    deadlines: Deadlines,
    /// Normal classes with packets, and followers whose time has come.
    turns: VecDeque<ClassEntry>,
    /// Classes that stand somewhere; all other entries are left-overs.
    standing: usize,
}

impl<P: PacedFrame> Edf<P> {
    /// On a line of this rate that carries IP packets of up to `mtu` bytes, with timers that come late by `jitter` (of
    /// use for [`Gaps::Hybrid`] alone).
    ///
    /// # Errors
    /// A line or an MTU that cannot be.
    pub fn new(line: Rate, mtu: ByteCount, gaps: Gaps, jitter: Span) -> Result<Self, PacingError> {
        let classes = Classes::new(line, mtu)?;
        let jitter = line.bytes_in(jitter).get();
        Ok(Edf {
            catches_up: 2 * classes.full_frame().get(),
            classes,
            clock: LineClock::new(line),
            gaps,
            jitter,
            short: if gaps == Gaps::Hybrid { jitter.saturating_mul(LONG_INTERVAL) } else { 0 },
            fine: 0,
            stood_still: true,
            calendar: Calendar::new(0),
            deadlines: Deadlines::new(),
            turns: VecDeque::new(),
            standing: 0,
        })
    }

    fn catch_up(&mut self, now: Instant) {
        if self.stood_still {
            self.clock.catch_up(now);
        }
    }

    /// A class has its first packet: it takes its place. Its clock may be ahead, if it has just sent; time that it has
    /// not used is gone, so that it does not restart with a burst.
    fn wake(&mut self, id: ClassId) {
        let now = self.clock.bytes();
        let Some(class) = self.classes.get_mut(id) else { return };
        let Some(len) = class.head() else { return };
        if class.state.start < now {
            (class.state.start, class.state.rest) = (now, 0);
        }
        let (entry, tag) = (class.next_entry(id, len), class.tag);
        class.state.stands = true;
        self.standing += 1;
        class.state.count_fine(entry.is_short(self.short, tag), &mut self.fine);
        self.place(entry, tag);
    }

    /// Puts the entry of a class where it belongs.
    #[inline]
    fn place(&mut self, entry: ClassEntry, tag: Tag) {
        if tag == Tag::Normal {
            self.turns.push_back(entry);
        } else if entry.start > self.clock.bytes() {
            self.calendar.push(entry);
        } else if tag == Tag::Paced {
            self.deadlines.push(entry);
        } else {
            self.turns.push_back(entry);
        }
    }

    /// The time of some has come.
    #[inline]
    fn admit(&mut self) {
        let Edf { classes, calendar, deadlines, turns, clock, .. } = self;
        calendar.advance(clock.bytes(), |change| match change {
            Change::Soon(entry) => classes.prefetch(entry.class(), entry.packet),
            Change::Due(entry) => match entry.follows() {
                false => deadlines.push(entry),
                true => turns.push_back(entry),
            },
        });
    }

    /// Sends the next frame of the class that an entry means; none if the entry is a left-over.
    #[inline]
    fn send(&mut self, entry: ClassEntry) -> Option<Next<P>> {
        let id = entry.class();
        let (packet, len, class) = self.classes.send_if(id, |state| state.is_meant_by(&entry))?;
        let (begin, tag) = (self.clock.bytes(), class.tag);
        self.clock.advance(on_the_line(len));
        if tag != Tag::Normal {
            let late = u32::try_from(begin.saturating_sub(class.state.start)).unwrap_or(u32::MAX);
            class.latest = class.latest.max(late);
            class.state.start = class.state.deadline;
            // Classes that fit the line are never later than this. It bounds what one may catch up with that did not fit.
            let bound = self.clock.bytes().saturating_sub(self.catches_up);
            if class.state.start < bound {
                (class.state.start, class.state.rest) = (bound, 0);
            }
        }
        match class.head() {
            Some(len) => {
                let entry = class.next_entry(id, len);
                class.state.count_fine(entry.is_short(self.short, tag), &mut self.fine);
                self.place(entry, tag);
            }
            None => {
                class.state.stands = false;
                class.state.count_fine(false, &mut self.fine);
                self.standing -= 1;
            }
        }
        Some(Next::Packet { class: id, packet })
    }

    /// Nothing may be sent before the byte `start`, where the interval of a class begins. None if that is over: the line was
    /// asked for too late.
    fn pass_time(&mut self, now: Instant, start: u64, interval: u64) -> Option<Next<P>> {
        let missing = start.saturating_sub(self.clock.bytes());
        let full = self.classes.full_frame();
        let wait_to = match self.gaps {
            Gaps::Frames => None,
            Gaps::Timers => Some(start),
            // A timer that is late must not make another class late.
            Gaps::Hybrid if interval > self.short && self.fine == 0 => Some(start),
            // The timer may come late by the jitter; before that, it must be worth setting.
            Gaps::Hybrid => (missing > self.jitter.saturating_add(full.get())).then(|| start - self.jitter),
        };
        if let Some(byte) = wait_to {
            let until = self.clock.instant_of(byte);
            if until <= now {
                self.clock.catch_up(now);
                return None;
            }
            self.stood_still = true;
            return Some(Next::Wait(until));
        }
        let gap = gap_frame(missing, full);
        self.clock.advance(gap);
        Some(Next::Gap(gap))
    }

    /// Left-overs are bounded: when most entries are, all that is meant is put down anew.
    fn tidy(&mut self) {
        /// So many left-overs are not worth the work.
        const FEW: usize = 1_024;
        if self.calendar.len() + self.deadlines.len() + self.turns.len() <= 2 * self.standing + FEW {
            return;
        }
        self.calendar = Calendar::new(self.clock.bytes());
        self.deadlines = Deadlines::new();
        let turns = std::mem::take(&mut self.turns);
        let meant = |entry: &ClassEntry| {
            self.classes.get(entry.class()).is_some_and(|class| class.state.is_meant_by(entry))
        };
        self.turns = turns.into_iter().filter(meant).collect();
        let in_turn: std::collections::BTreeSet<_> = self.turns.iter().map(ClassEntry::class).collect();
        for id in self.classes.ids().collect::<Vec<_>>() {
            if let Some(class) = self.classes.get(id).filter(|class| class.state.stands)
                && !in_turn.contains(&id)
            {
                let (entry, tag) = (class.entry(id), class.tag);
                self.place(entry, tag);
            }
        }
    }
}

/// What of a gap of `missing` bytes is made with one frame: never less than the shortest, and never so much that less than
/// that is left. What is rounded up makes frames late by less than a shortest gap, and is not made again: a class's clock
/// knows when its frame should have left.
fn gap_frame(missing: u64, full: ByteCount) -> ByteCount {
    let (shortest, full) = (SHORTEST_GAP.get(), full.get());
    ByteCount::new(if missing <= full {
        missing.max(shortest)
    } else if missing < full + shortest {
        (missing - shortest).max(shortest)
    } else {
        full
    })
}

impl<P: PacedFrame> Edf<P> {
    /// The interval of a class has changed from `old`: what is left of the time that it waits is scaled, and it takes its
    /// new place.
    fn rescale(&mut self, id: ClassId, old: PacingInterval) {
        let now = self.clock.bytes();
        let Some(class) = self.classes.get_mut(id) else { return };
        let left = u128::from(class.state.start.saturating_sub(now));
        if left > 0 {
            let (old, new) = (old.rate().bits_per_sec(), class.interval.rate().bits_per_sec());
            let scaled = left * u128::from(old) / u128::from(new.max(1));
            class.state.start = now.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX));
        }
        self.replace(id);
    }

    /// A class takes its place anew.
    fn replace(&mut self, id: ClassId) {
        let Some(class) = self.classes.get_mut(id) else { return };
        class.state.rest = 0;
        if let Some(len) = class.head().filter(|_| class.state.stands) {
            let (entry, tag) = (class.next_entry(id, len), class.tag);
            class.state.count_fine(entry.is_short(self.short, tag), &mut self.fine);
            self.place(entry, tag);
            self.tidy();
        }
    }

    /// A follower's connection has another rate. It holds from the next frame on; only what was counted for less than half of
    /// it is counted anew: a frame waits for a full frame's interval at most. However rates jump, no frame leaves sooner after
    /// another than the highest of them allows, and each takes a new place a few times at most.
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
            self.replace(id);
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
        if state.stands {
            self.standing -= 1;
            self.fine -= usize::from(state.fine);
            // Normal classes are not told from those that had their number before.
            self.turns.retain(|entry| entry.class() != class);
            self.tidy();
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
            self.wake(class);
        }
        Ok(())
    }
    #[inline]
    fn dequeue(&mut self, now: Instant) -> Next<P> {
        self.catch_up(now);
        if self.standing == 0 {
            self.stood_still = true;
            return Next::Empty;
        }
        self.stood_still = false;
        loop {
            self.admit();
            while let Some(entry) = self.deadlines.pop() {
                if let Some(next) = self.send(entry) {
                    return next;
                }
            }
            while let Some(entry) = self.turns.pop_front() {
                if let Some(next) = self.send(entry) {
                    return next;
                }
            }
            // The first may be a left-over: its time is passed all the same, nothing comes before it.
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
