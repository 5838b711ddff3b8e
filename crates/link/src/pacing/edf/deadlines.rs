//! Eligible classes by deadline: rings of slots, one ring for each magnitude of interval.

use super::ClassEntry;
use std::collections::VecDeque;

/// A slot is 2^5 times shorter than the intervals of its ring, so that a deadline is rounded by at most 1/32
/// of an interval.
const PRECISION_BITS: u32 = 5;
/// Deadlines of a ring lie within two intervals before and two after the current time: 128 slots, with a bit
/// mask of occupied slots.
const SLOTS: u64 = 128;
const MAGNITUDES: usize = 64;
/// An empty slot keeps memory for at most so many entries.
const MAX_IDLE_CAPACITY: usize = 32;

#[derive(Clone, Debug)]
struct DeadlineRing {
    /// Number of the first occupied slot. The number of a slot is its deadline divided by its length.
    first: u64,
    /// Bit mask of occupied slots, by slot number modulo 128.
    occupied: u128,
    slots: Vec<VecDeque<ClassEntry>>,
}

/// Eligible entries, earliest deadline first.
///
/// Deadlines are rounded up to 1/32 of the interval of their class. So a class may wait for a later one only
/// if their deadlines differ by less than 1/32 of its own interval. Both operations take constant time, and
/// rounding raises burstiness by at most 1/32 of a frame.
#[derive(Debug)]
pub(super) struct Deadlines {
    rings: Box<[DeadlineRing; MAGNITUDES]>,
    /// Bit mask of rings that are not empty.
    nonempty: u64,
    /// The earliest rounded deadline of each ring.
    earliest: [u64; MAGNITUDES],
    len: usize,
}

impl Deadlines {
    pub fn new() -> Self {
        let rings =
            Box::new(std::array::from_fn(|_| DeadlineRing { first: 0, occupied: 0, slots: Vec::new() }));
        Deadlines { rings, nonempty: 0, earliest: [0; MAGNITUDES], len: 0 }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn push(&mut self, entry: ClassEntry) {
        self.len += 1;
        let magnitude = magnitude_of(entry.deadline.saturating_sub(entry.start));
        let shift = shift_of(magnitude);
        let ring = &mut self.rings[magnitude];
        let mut slot = entry.deadline.saturating_add((1 << shift) - 1) >> shift;
        if ring.occupied == 0 {
            ring.first = slot;
            self.nonempty |= 1 << magnitude;
            if ring.slots.is_empty() {
                ring.slots.resize_with(SLOTS as usize, VecDeque::new);
            }
            self.earliest[magnitude] = slot.saturating_mul(1 << shift);
        } else if slot < ring.first {
            // On an overbooked link deadlines can be so far apart that they must share a slot.
            slot = slot.max(ring.last() - (SLOTS - 1).min(ring.last()));
            ring.first = slot;
            self.earliest[magnitude] = slot.saturating_mul(1 << shift);
        } else {
            slot = slot.min(ring.first.saturating_add(SLOTS - 1));
        }
        let at = (slot % SLOTS) as usize;
        ring.occupied |= 1 << at;
        ring.slots[at].push_back(entry);
    }

    /// Removes the entry with the earliest deadline. Ties of rounded deadlines go to the shortest interval,
    /// then to the entry that came first.
    #[inline]
    pub fn pop(&mut self) -> Option<ClassEntry> {
        let mut magnitude = self.nonempty.trailing_zeros() as usize;
        let mut best = *self.earliest.get(magnitude)?;
        let mut rest = self.nonempty & (self.nonempty - 1);
        while rest != 0 {
            let this = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if self.earliest[this] < best {
                (best, magnitude) = (self.earliest[this], this);
            }
        }
        let ring = self.rings.get_mut(magnitude)?;
        let at = (ring.first % SLOTS) as usize;
        let slot = &mut ring.slots[at];
        let entry = slot.pop_front();
        if slot.is_empty() {
            slot.shrink_to(MAX_IDLE_CAPACITY);
            ring.occupied &= !(1 << at);
            if ring.occupied == 0 {
                self.nonempty &= !(1 << magnitude);
            } else {
                ring.first += u64::from(ring.occupied.rotate_right(at as u32).trailing_zeros());
                self.earliest[magnitude] = ring.first.saturating_mul(1 << shift_of(magnitude));
            }
        }
        self.len -= usize::from(entry.is_some());
        entry
    }
}

impl DeadlineRing {
    /// Number of the last occupied slot.
    fn last(&self) -> u64 {
        let from_first = self.occupied.rotate_right((self.first % SLOTS) as u32);
        self.first + u64::from(127 - from_first.leading_zeros().min(127))
    }
}

/// Position of the highest bit of an interval.
const fn magnitude_of(interval: u64) -> usize {
    63 - (interval | 1).leading_zeros() as usize
}

const fn shift_of(magnitude: usize) -> u32 {
    (magnitude as u32).saturating_sub(PRECISION_BITS)
}

#[cfg(test)]
mod tests {
    use super::super::super::{ClassId, classes::PacketAt};
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: no class overtakes another that is more urgent by more than 1/32 of the other's interval,
        /// and none is lost. Deadlines are distributed as if all classes were on time.
        #[test]
        fn the_earliest_deadline_is_first(steps in prop::collection::vec((6u32..34, any::<u64>(), prop::bool::weighted(0.6)), 1..300)) {
            let mut deadlines = Deadlines::new();
            let mut model: Vec<ClassEntry> = Vec::new();
            let now = 1u64 << 40;
            for (class, (bits, random, push)) in (0..).zip(steps) {
                if push {
                    let interval = (1 << bits) | (random % (1 << bits));
                    let start = now - (random >> 20) % interval;
                    let entry = ClassEntry::new(start, start + interval, ClassId(class), PacketAt::default(), false);
                    deadlines.push(entry);
                    model.push(entry);
                } else {
                    let got = deadlines.pop();
                    prop_assert_eq!(got.is_some(), !model.is_empty());
                    let Some(got) = got else { continue };
                    model.retain(|entry| entry.class() != got.class());
                    for other in &model {
                        let slack = (other.deadline - other.start) / 32 + 1;
                        prop_assert!(got.deadline <= other.deadline + slack, "{:?} before {:?}", got, other);
                    }
                }
                prop_assert_eq!(deadlines.len(), model.len());
            }
        }

        /// Breaks: classes that are later than their ring covers, as on an overbooked link, are not lost.
        #[test]
        fn no_late_class_is_lost(deadlines_at in prop::collection::vec(0u64..1 << 50, 1..200)) {
            let mut deadlines = Deadlines::new();
            for (class, deadline) in (0..).zip(&deadlines_at) {
                let entry = ClassEntry::new(deadline.saturating_sub(100), *deadline, ClassId(class), PacketAt::default(), false);
                deadlines.push(entry);
            }
            let mut seen: Vec<u32> = std::iter::from_fn(|| deadlines.pop()).map(|e| e.class().0).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..deadlines_at.len() as u32).collect::<Vec<_>>());
            prop_assert_eq!(deadlines.len(), 0);
        }
    }

    /// Breaks: a class whose deadline is beyond the range of its ring comes after more urgent ones.
    #[test]
    fn deadlines_beyond_the_ring_come_last() {
        let mut deadlines = Deadlines::new();
        for (class, slots) in [(0, 0), (1, 140), (2, 60), (3, 1_000), (4, 126)] {
            let deadline = (1 << 20) + slots * 128;
            deadlines.push(ClassEntry::new(
                deadline - 4_096,
                deadline,
                ClassId(class),
                PacketAt::default(),
                false,
            ));
        }
        let order: Vec<u32> = std::iter::from_fn(|| deadlines.pop()).map(|entry| entry.class().0).collect();
        assert_eq!(order, [0, 2, 4, 1, 3]);
    }
}
