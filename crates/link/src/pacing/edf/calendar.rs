//! Classes that wait for their time, by that time: a timing wheel in bytes of the line.

use super::ClassEntry;

/// Bits of a byte count that the lowest wheel does not tell apart: a slot of it is as long as a shortest frame, so that
/// each is looked at only a few times.
const FINEST: u32 = 6;
/// Each wheel has 1024 slots; a slot is a whole turn of the wheel below.
const TURN: u32 = 10;
const SLOTS: usize = 1 << TURN;
/// Four wheels reach 2^46 B ahead: 156 hours of a line of 1 Gbit/s.
const WHEELS: usize = 4;
/// Bits of the last wheel's turn.
const LAST_TURN: u32 = FINEST + TURN * WHEELS as u32;
const WORDS: usize = SLOTS / 64;
/// An empty slot keeps no more memory than for so many entries.
const KEPT: usize = 32;
/// The same for slots of higher wheels, which change their memory with each other.
const SPARE: usize = 128;

#[derive(Clone, Debug)]
struct CalendarSlot {
    entries: Vec<ClassEntry>,
    /// The start of the first of them; [`u64::MAX`] if there are none.
    first: u64,
}

#[derive(Debug)]
struct Wheel {
    slots: Box<[CalendarSlot; SLOTS]>,
    occupied: [u64; WORDS],
    /// Words of `occupied` that are not zero.
    words: u16,
}

/// What becomes of an entry.
pub(super) enum Change {
    /// It has come down to the lowest wheel.
    Soon(ClassEntry),
    /// Its time has come, and it is no longer in the calendar.
    Due(ClassEntry),
}

/// Entries whose start is still to come, in order of it.
///
/// Putting one in and moving it down a wheel take the same time however many there are; each moves down at most three
/// times. What is taken out is exact to the byte: a slot tells where to look, the entry when. Entries are copied from slot to
/// slot, so that none of this touches a class.
#[derive(Debug)]
pub(super) struct Calendar {
    wheels: Box<[Wheel; WHEELS]>,
    /// Beyond the last wheel's turn.
    far: Vec<ClassEntry>,
    /// Memory without entries.
    spare: Vec<ClassEntry>,
    /// All that started up to here has been taken out.
    at: u64,
    /// Before this, nothing is to be done: no start comes, and no slot of a higher wheel begins that holds something.
    soonest: u64,
    len: usize,
}

impl Calendar {
    /// All that starts up to `at` is due.
    pub fn new(at: u64) -> Self {
        let wheels = Box::new(std::array::from_fn(|_| Wheel::new()));
        Calendar { wheels, far: Vec::new(), spare: Vec::new(), at, soonest: u64::MAX, len: 0 }
    }

    /// Entries in it.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn push(&mut self, entry: ClassEntry) {
        self.len += 1;
        // What has been due for some time is found in the slot of the present.
        let start = entry.start.max(self.at);
        // The lowest wheel of which this turn reaches to the start.
        let beyond = (start ^ self.at) >> (FINEST + TURN);
        if beyond == 0 {
            self.soonest = self.soonest.min(entry.start);
            self.wheels[0].push(slot_of(start, 0), entry);
            return;
        }
        let level = ((63 - beyond.leading_zeros()) / TURN + 1) as usize;
        match self.wheels.get_mut(level) {
            Some(wheel) => {
                wheel.push(slot_of(start, level), entry);
                let shift = FINEST + TURN * level as u32;
                self.soonest = self.soonest.min(start >> shift << shift);
            }
            None => {
                self.far.push(entry);
                self.soonest = self.soonest.min(self.turns_end());
            }
        }
    }

    /// Takes out all that starts up to `to`. The order is that of slots, and in each that in which entries came: classes that
    /// start together do so in the same order each time.
    #[inline]
    pub fn advance(&mut self, to: u64, tell: impl FnMut(Change)) {
        if to < self.soonest {
            self.at = self.at.max(to);
        } else {
            self.turn(to, tell);
        }
    }

    fn turn(&mut self, to: u64, mut tell: impl FnMut(Change)) {
        loop {
            let [lowest, higher @ ..] = &mut *self.wheels;
            while let Some(index) = lowest.first() {
                if lowest.slots[index].first > to {
                    self.soonest = lowest.slots[index].first;
                    self.at = self.at.max(to);
                    return;
                }
                self.len -= lowest.take_due(index, to, |entry| tell(Change::Due(entry)));
            }
            let first =
                higher.iter().zip(1..).find_map(|(wheel, level)| wheel.first().map(|index| (level, index)));
            let begin = match first {
                Some((level, index)) => self.begin_of(level, index),
                None if self.far.is_empty() => {
                    (self.soonest, self.at) = (u64::MAX, self.at.max(to));
                    return;
                }
                None => self.turns_end(),
            };
            if begin > to {
                self.soonest = begin;
                self.at = self.at.max(to);
                return;
            }
            // From here on, the wheels below turn through this slot.
            self.at = self.at.max(begin);
            let spare = std::mem::take(&mut self.spare);
            let mut entries = match first {
                Some((level, index)) => self.wheels[level].take(index, spare),
                None => std::mem::replace(&mut self.far, spare),
            };
            self.len -= entries.len();
            for entry in entries.drain(..) {
                if entry.start <= to {
                    tell(Change::Due(entry));
                } else {
                    if first.is_some_and(|(level, _)| level == 1) {
                        tell(Change::Soon(entry));
                    }
                    self.push(entry);
                }
            }
            entries.shrink_to(SPARE);
            self.spare = entries;
        }
    }

    /// The first start of all, and the interval of its class; none if there are no entries. (Beyond the last wheel's
    /// turn: the end of that turn.)
    pub fn first(&self) -> Option<(u64, u64)> {
        match self.first_slot() {
            Some((level, index)) => {
                let slot = &self.wheels[level].slots[index];
                let entry = slot.entries.iter().find(|entry| entry.start == slot.first);
                Some((slot.first, entry.map_or(u64::MAX, |entry| entry.deadline - entry.start)))
            }
            None if self.far.is_empty() => None,
            None => Some((self.turns_end(), u64::MAX)),
        }
    }

    /// Entries of a wheel all start before those of the wheels above it.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        self.wheels.iter().enumerate().find_map(|(level, wheel)| wheel.first().map(|index| (level, index)))
    }

    /// The byte at which a slot of this turn begins.
    fn begin_of(&self, level: usize, index: usize) -> u64 {
        let shift = FINEST + TURN * level as u32;
        let turn = self.at >> (shift + TURN);
        ((turn << TURN) + index as u64) << shift
    }

    /// The first byte of the last wheel's next turn. Never asked for in the last turn that there is: nothing starts after it.
    const fn turns_end(&self) -> u64 {
        ((self.at >> LAST_TURN) + 1) << LAST_TURN
    }
}

const fn slot_of(start: u64, level: usize) -> usize {
    (start >> (FINEST + TURN * level as u32)) as usize % SLOTS
}

impl Wheel {
    fn new() -> Self {
        let slots = Box::new([const { CalendarSlot { entries: Vec::new(), first: u64::MAX } }; SLOTS]);
        Wheel { slots, occupied: [0; WORDS], words: 0 }
    }
    #[inline]
    fn push(&mut self, index: usize, entry: ClassEntry) {
        let slot = &mut self.slots[index];
        slot.first = slot.first.min(entry.start);
        slot.entries.push(entry);
        self.occupied[index / 64] |= 1 << (index % 64);
        self.words |= 1 << (index / 64);
    }
    /// Empties a slot, which gets the memory of `spare` for what will come.
    fn take(&mut self, index: usize, spare: Vec<ClassEntry>) -> Vec<ClassEntry> {
        self.clear(index);
        self.slots[index].first = u64::MAX;
        std::mem::replace(&mut self.slots[index].entries, spare)
    }
    /// Takes out of a slot what starts up to `to`, in the order in which it came, and says how many that were.
    #[inline]
    fn take_due(&mut self, index: usize, to: u64, mut due: impl FnMut(ClassEntry)) -> usize {
        let slot = &mut self.slots[index];
        let (before, mut first) = (slot.entries.len(), u64::MAX);
        slot.entries.retain(|entry| {
            let waits = entry.start > to;
            if waits {
                first = first.min(entry.start);
            } else {
                due(*entry);
            }
            waits
        });
        slot.first = first;
        let after = slot.entries.len();
        if after == 0 {
            slot.entries.shrink_to(KEPT);
            self.clear(index);
        }
        before - after
    }
    #[inline]
    fn clear(&mut self, index: usize) {
        let word = &mut self.occupied[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.words &= !(1 << (index / 64));
        }
    }
    /// Nothing stands in slots that have passed: the first is the lowest.
    #[inline]
    fn first(&self) -> Option<usize> {
        let word = self.words.trailing_zeros() as usize;
        self.occupied.get(word).map(|bits| word * 64 + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{ClassId, classes::PacketAt};
    use super::*;
    use proptest::prelude::*;

    fn entry(class: u32, start: u64) -> ClassEntry {
        ClassEntry::new(start, start + 1, ClassId(class), PacketAt::default(), false)
    }

    proptest! {
        /// Breaks: a class gets its turn early, late or never: against a sorted list, with steps from single bytes to
        /// whole turns of the highest wheel.
        #[test]
        fn it_is_a_sorted_list(steps in prop::collection::vec((0u32..48, any::<u64>(), prop::bool::weighted(0.7)), 1..300)) {
            let mut calendar = Calendar::new(0);
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (class, (bits, random, push)) in (0..).zip(steps) {
                let ahead = random % (1 << bits);
                if push {
                    // Some have been due for a while.
                    let start = (now + ahead).saturating_sub(random % 3 * 100);
                    calendar.push(entry(class, start));
                    model.push((start, class));
                } else {
                    now += ahead;
                    let mut due = Vec::new();
                    calendar.advance(now, |change| {
                        if let Change::Due(entry) = change {
                            due.push((entry.start, entry.class().0));
                        }
                    });
                    due.sort_unstable();
                    model.sort_unstable();
                    let split = model.partition_point(|(start, _)| *start <= now);
                    prop_assert_eq!(due, model.drain(..split).collect::<Vec<_>>());
                }
                let first = model.iter().map(|(start, _)| *start).min();
                match (calendar.first(), first) {
                    (None, None) => {}
                    (Some((found, _)), Some(first)) => prop_assert!(
                        found == first || (found < first && found > now && found % (1 << 46) == 0),
                        "{} for {}", found, first
                    ),
                    other => prop_assert!(false, "{:?}", other),
                }
                prop_assert_eq!(calendar.len(), model.len());
            }
        }
    }

    /// Breaks: what starts beyond the turn of the last wheel, or turns later, is never due.
    #[test]
    fn what_is_far_comes_too() {
        for far in [1 << LAST_TURN, (1 << LAST_TURN) + 5, 3 << LAST_TURN, u64::MAX] {
            let mut calendar = Calendar::new(7);
            calendar.push(entry(1, far - 1));
            let mut due = Vec::new();
            let mut take = |change| {
                if let Change::Due(entry) = change {
                    due.push(entry.start);
                }
            };
            calendar.advance(far - 2, &mut take);
            calendar.advance(far - 1, &mut take);
            calendar.advance(far, &mut take);
            assert_eq!(due, [far - 1]);
        }
    }
}
