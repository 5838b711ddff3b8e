//! Classes that wait for their time, by that time: a timing wheel in bytes of the line.

use super::bags::{Bag, Entry, Store};

/// Bits of a byte count that the lowest wheel does not tell apart: a slot of it is as long as a shortest frame, so that
/// each is looked at only a few times.
const FINEST: u32 = 6;
/// Each wheel has 1024 slots; a slot is a whole turn of the wheel below.
const TURN: u32 = 10;
const SLOTS: usize = 1 << TURN;
/// Four wheels reach 2^46 B ahead: 156 hours of a line of 1 Gbit/s.
const WHEELS: usize = 4;
const WORDS: usize = SLOTS / 64;

#[derive(Clone, Copy, Debug)]
struct Slot {
    bag: Bag,
    /// Of the entry that starts first.
    first: u64,
    interval: u64,
}

#[derive(Debug)]
struct Wheel {
    slots: Vec<Slot>,
    occupied: [u64; WORDS],
    /// Words of `occupied` that are not zero.
    words: u16,
}

/// Entries whose start is still to come, in order of it.
///
/// Putting one in and moving it down a wheel take the same time however many there are; each moves down at most three
/// times. What is taken out is exact to the byte: a slot tells where to look, the entry when.
#[derive(Debug)]
pub(super) struct Calendar {
    wheels: Vec<Wheel>,
    /// Beyond the last wheel's turn.
    far: Bag,
    /// All that started up to here has been taken out.
    at: u64,
}

impl Calendar {
    pub fn new() -> Self {
        let slot = Slot { bag: Bag::EMPTY, first: u64::MAX, interval: 0 };
        let wheel = || Wheel { slots: vec![slot; SLOTS], occupied: [0; WORDS], words: 0 };
        Calendar { wheels: (0..WHEELS).map(|_| wheel()).collect(), far: Bag::EMPTY, at: 0 }
    }

    #[inline]
    pub fn push(&mut self, store: &mut Store, entry: Entry) {
        // What has been due for some time is found in the slot of the present.
        let start = entry.start.max(self.at);
        // The lowest wheel of which this turn reaches to the start.
        let beyond = (start ^ self.at) >> (FINEST + TURN);
        let level = if beyond == 0 { 0 } else { ((63 - beyond.leading_zeros()) / TURN + 1) as usize };
        match self.wheels.get_mut(level) {
            Some(wheel) => wheel.push(store, slot_of(start, level), entry),
            None => store.push(&mut self.far, entry),
        }
    }

    /// Takes out all that starts up to `to`. The order is that of slots.
    #[inline]
    pub fn advance(&mut self, store: &mut Store, to: u64, mut due: impl FnMut(&mut Store, Entry)) {
        while let Some((level, index)) = self.first_slot() {
            let begin = self.begin_of(level, index);
            if begin > to {
                break;
            }
            let mut bag = self.wheels[level].take(index);
            if level > 0 {
                // From here on, the wheels below turn through this slot.
                self.at = self.at.max(begin);
            }
            let mut kept = false;
            while let Some(entry) = store.pop(&mut bag) {
                if entry.start <= to {
                    due(store, entry);
                } else {
                    self.push(store, entry);
                    kept = true;
                }
            }
            if level == 0 && kept {
                break;
            }
        }
        let turn_of = |at: u64| at >> (FINEST + TURN * WHEELS as u32);
        let passed = turn_of(to) != turn_of(self.at);
        self.at = self.at.max(to);
        if passed {
            let mut far = std::mem::replace(&mut self.far, Bag::EMPTY);
            while let Some(entry) = store.pop(&mut far) {
                if entry.start <= to { due(store, entry) } else { self.push(store, entry) }
            }
        }
    }

    /// The first start of all, and the interval of its class; none if there are no entries. (Beyond the last wheel's
    /// turn: the end of that turn.)
    pub fn first(&self) -> Option<(u64, u64)> {
        match self.first_slot() {
            Some((level, index)) => {
                let slot = &self.wheels[level].slots[index];
                Some((slot.first, slot.interval))
            }
            None if self.far.is_empty() => None,
            None => {
                let turn = 1 << (FINEST + TURN * WHEELS as u32);
                Some(((self.at / turn + 1).saturating_mul(turn), u64::MAX))
            }
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
}

fn slot_of(start: u64, level: usize) -> usize {
    (start >> (FINEST + TURN * level as u32)) as usize % SLOTS
}

impl Wheel {
    #[inline]
    fn push(&mut self, store: &mut Store, index: usize, entry: Entry) {
        let slot = &mut self.slots[index];
        if entry.start < slot.first {
            (slot.first, slot.interval) = (entry.start, entry.deadline - entry.start);
        }
        store.push(&mut slot.bag, entry);
        self.occupied[index / 64] |= 1 << (index % 64);
        self.words |= 1 << (index / 64);
    }
    /// Empties a slot.
    fn take(&mut self, index: usize) -> Bag {
        let word = &mut self.occupied[index / 64];
        *word &= !(1 << (index % 64));
        if *word == 0 {
            self.words &= !(1 << (index / 64));
        }
        let slot = &mut self.slots[index];
        slot.first = u64::MAX;
        std::mem::replace(&mut slot.bag, Bag::EMPTY)
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
    use super::*;
    use proptest::prelude::*;

    fn entry(class: u32, start: u64) -> Entry {
        Entry { start, deadline: start + 1, class, follows: false }
    }

    proptest! {
        /// Breaks: a class gets its turn early, late or never: against a sorted list, with steps from single bytes to
        /// whole turns of the highest wheel.
        #[test]
        fn it_is_a_sorted_list(steps in prop::collection::vec((0u32..48, any::<u64>(), prop::bool::weighted(0.7)), 1..300)) {
            let (mut store, mut calendar) = (Store::default(), Calendar::new());
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (class, (bits, random, push)) in (0..).zip(steps) {
                let ahead = random % (1 << bits);
                if push {
                    // Some have been due for a while.
                    let start = (now + ahead).saturating_sub(random % 3 * 100);
                    calendar.push(&mut store, entry(class, start));
                    model.push((start, class));
                } else {
                    now += ahead;
                    let mut due = Vec::new();
                    calendar.advance(&mut store, now, |_, entry| due.push((entry.start, entry.class)));
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
                prop_assert_eq!(store.len(), model.len());
            }
        }
    }
}
