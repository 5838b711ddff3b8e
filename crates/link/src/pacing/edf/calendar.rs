//! Classes that are not yet eligible, by start time: a hierarchical timing wheel in bytes on the wire.

use super::ClassEntry;

/// Low bits of a byte count that the lowest wheel ignores. A slot of the lowest wheel is as long as a minimum
/// frame, so that an entry is examined only a few times.
const SLOT_BITS: u32 = 6;
/// Each wheel has 1024 slots. A slot is as long as a revolution of the wheel below.
const WHEEL_BITS: u32 = 10;
const SLOTS: usize = 1 << WHEEL_BITS;
/// Four wheels cover 2^46 B: 156 hours at 1 Gbit/s.
const WHEELS: usize = 4;
/// Bits that a revolution of the highest wheel covers.
const RANGE_BITS: u32 = SLOT_BITS + WHEEL_BITS * WHEELS as u32;
const WORDS: usize = SLOTS / 64;
/// An empty slot of the lowest wheel keeps memory for at most so many entries.
const MAX_IDLE_CAPACITY: usize = 32;
/// The same for slots of higher wheels, which share one spare buffer.
const MAX_SPARE_CAPACITY: usize = 128;

#[derive(Clone, Debug)]
struct CalendarSlot {
    entries: Vec<ClassEntry>,
    /// The earliest start of its entries; [`u64::MAX`] if it is empty.
    first: u64,
}

#[derive(Debug)]
struct Wheel {
    slots: Box<[CalendarSlot; SLOTS]>,
    occupied: [u64; WORDS],
    /// Bit mask of the words of `occupied` that are not zero.
    words: u16,
}

/// What happens to an entry when the calendar advances.
pub(super) enum Change {
    /// It has moved to the lowest wheel.
    Soon(ClassEntry),
    /// Its start has come, and the calendar has removed it.
    Due(ClassEntry),
}

/// Entries with a start in the future, in order of start.
///
/// Insertion and moving down a wheel take constant time, and each entry moves down at most three times.
/// Expiry is exact to the byte: slots only narrow the search, and entries hold the exact start. Entries are
/// copied between slots, so none of this touches a class.
#[derive(Debug)]
pub(super) struct Calendar {
    wheels: Box<[Wheel; WHEELS]>,
    /// Entries beyond the current revolution of the highest wheel.
    far: Vec<ClassEntry>,
    /// An empty buffer for reuse.
    spare: Vec<ClassEntry>,
    /// All entries that start up to this byte have been removed.
    at: u64,
    /// Before this byte there is no work: no entry starts, and no occupied slot of a higher wheel begins.
    next_event: u64,
    len: usize,
}

impl Calendar {
    /// An empty calendar whose current time is `at`.
    pub fn new(at: u64) -> Self {
        let wheels = Box::new(std::array::from_fn(|_| Wheel::new()));
        Calendar { wheels, far: Vec::new(), spare: Vec::new(), at, next_event: u64::MAX, len: 0 }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn push(&mut self, entry: ClassEntry) {
        self.len += 1;
        // An entry that is already due goes to the current slot.
        let start = entry.start.max(self.at);
        // The lowest wheel whose current revolution contains the start.
        let beyond = (start ^ self.at) >> (SLOT_BITS + WHEEL_BITS);
        if beyond == 0 {
            self.next_event = self.next_event.min(entry.start);
            self.wheels[0].push(slot_of(start, 0), entry);
            return;
        }
        let level = ((63 - beyond.leading_zeros()) / WHEEL_BITS + 1) as usize;
        match self.wheels.get_mut(level) {
            Some(wheel) => {
                wheel.push(slot_of(start, level), entry);
                let shift = SLOT_BITS + WHEEL_BITS * level as u32;
                self.next_event = self.next_event.min(start >> shift << shift);
            }
            None => {
                self.far.push(entry);
                self.next_event = self.next_event.min(self.end_of_range());
            }
        }
    }

    /// Removes all entries that start up to `to`, slot by slot, and within a slot in order of insertion. So
    /// classes that start together always keep the same order.
    #[inline]
    pub fn advance(&mut self, to: u64, tell: impl FnMut(Change)) {
        if to < self.next_event {
            self.at = self.at.max(to);
        } else {
            self.advance_wheels(to, tell);
        }
    }

    fn advance_wheels(&mut self, to: u64, mut tell: impl FnMut(Change)) {
        loop {
            let [lowest, higher @ ..] = &mut *self.wheels;
            while let Some(index) = lowest.first() {
                if lowest.slots[index].first > to {
                    self.next_event = lowest.slots[index].first;
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
                    (self.next_event, self.at) = (u64::MAX, self.at.max(to));
                    return;
                }
                None => self.end_of_range(),
            };
            if begin > to {
                self.next_event = begin;
                self.at = self.at.max(to);
                return;
            }
            // From here on, the lower wheels revolve within this slot.
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
            entries.shrink_to(MAX_SPARE_CAPACITY);
            self.spare = entries;
        }
    }

    /// The earliest start and the interval of its class; none if the calendar is empty. For entries beyond
    /// the current revolution of the highest wheel it returns the end of that revolution.
    pub fn first(&self) -> Option<(u64, u64)> {
        match self.first_slot() {
            Some((level, index)) => {
                let slot = &self.wheels[level].slots[index];
                let entry = slot.entries.iter().find(|entry| entry.start == slot.first);
                Some((slot.first, entry.map_or(u64::MAX, |entry| entry.deadline - entry.start)))
            }
            None if self.far.is_empty() => None,
            None => Some((self.end_of_range(), u64::MAX)),
        }
    }

    /// The first occupied slot. All entries of a wheel start before those of higher wheels.
    #[inline]
    fn first_slot(&self) -> Option<(usize, usize)> {
        self.wheels.iter().enumerate().find_map(|(level, wheel)| wheel.first().map(|index| (level, index)))
    }

    /// The byte at which a slot of the current revolution begins.
    fn begin_of(&self, level: usize, index: usize) -> u64 {
        let shift = SLOT_BITS + WHEEL_BITS * level as u32;
        let revolution = self.at >> (shift + WHEEL_BITS);
        ((revolution << WHEEL_BITS) + index as u64) << shift
    }

    /// The first byte of the next revolution of the highest wheel. It does not overflow: in the last
    /// revolution, no entry is beyond it.
    const fn end_of_range(&self) -> u64 {
        ((self.at >> RANGE_BITS) + 1) << RANGE_BITS
    }
}

const fn slot_of(start: u64, level: usize) -> usize {
    (start >> (SLOT_BITS + WHEEL_BITS * level as u32)) as usize % SLOTS
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
    /// Empties a slot and returns its entries. The slot keeps the buffer `spare`.
    fn take(&mut self, index: usize, spare: Vec<ClassEntry>) -> Vec<ClassEntry> {
        self.clear(index);
        self.slots[index].first = u64::MAX;
        std::mem::replace(&mut self.slots[index].entries, spare)
    }
    /// Removes the entries of a slot that start up to `to`, in order of insertion, and returns their number.
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
            slot.entries.shrink_to(MAX_IDLE_CAPACITY);
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
    /// The first occupied slot. Slots in the past are empty, so it is the one with the lowest index.
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
        /// Breaks: every class becomes due exactly at its start. The test compares with a sorted list, with
        /// steps from one byte to whole revolutions of the highest wheel.
        #[test]
        fn the_calendar_is_a_sorted_list(steps in prop::collection::vec((0u32..48, any::<u64>(), prop::bool::weighted(0.7)), 1..300)) {
            let mut calendar = Calendar::new(0);
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (class, (bits, random, push)) in (0..).zip(steps) {
                let ahead = random % (1 << bits);
                if push {
                    // Some entries are already due.
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

    /// Breaks: entries that start beyond the current revolution of the highest wheel become due at their
    /// start.
    #[test]
    fn distant_entries_become_due() {
        for far in [1 << RANGE_BITS, (1 << RANGE_BITS) + 5, 3 << RANGE_BITS, u64::MAX] {
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
