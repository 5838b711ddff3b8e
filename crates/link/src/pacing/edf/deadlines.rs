//! Classes whose time has come, by deadline: rings of slots, one for each magnitude of interval.

use super::bags::{Bag, Entry, Store};

/// A slot is so much shorter than the intervals of its ring: 2^5, so that a deadline is rounded by a thirty-second of an
/// interval at most.
const PRECISION: u32 = 5;
/// Deadlines of a ring lie within two intervals before and two after the present: 128 slots, and a word says which hold
/// something.
const SLOTS: u64 = 128;
const MAGNITUDES: usize = 64;

#[derive(Clone, Debug)]
struct Ring {
    /// The number of the first slot that holds something; a slot's number is its deadline over its length.
    first: u64,
    /// By the slot's number, modulo 128.
    occupied: u128,
    bags: Vec<Bag>,
}

/// Entries that may leave now, the most urgent first.
///
/// Deadlines are rounded up, more coarsely for slower classes: a class waits for another that should have come after it
/// only if their deadlines differ by less than a thirty-second of its own interval. So both operations take the same time
/// however many classes there are, and burstiness grows by a thirty-second of a frame at most.
#[derive(Debug)]
pub(super) struct Deadlines {
    rings: Vec<Ring>,
    /// Rings that hold something.
    nonempty: u64,
}

impl Deadlines {
    pub fn new() -> Self {
        let ring = Ring { first: 0, occupied: 0, bags: Vec::new() };
        Deadlines { rings: vec![ring; MAGNITUDES], nonempty: 0 }
    }

    #[inline]
    pub fn push(&mut self, store: &mut Store, entry: Entry) {
        let magnitude = magnitude_of(entry.deadline.saturating_sub(entry.start));
        let ring = &mut self.rings[magnitude];
        let mut slot = entry.deadline.saturating_add((1 << shift_of(magnitude)) - 1) >> shift_of(magnitude);
        if ring.occupied == 0 {
            ring.first = slot;
            self.nonempty |= 1 << magnitude;
            if ring.bags.is_empty() {
                ring.bags = vec![Bag::EMPTY; SLOTS as usize];
            }
        } else if slot < ring.first {
            // Only classes that come too late all together can lie so far apart that they have to share a slot.
            slot = slot.max(ring.last() - (SLOTS - 1).min(ring.last()));
            ring.first = slot;
        } else {
            slot = slot.min(ring.first + (SLOTS - 1));
        }
        ring.occupied |= 1 << (slot % SLOTS);
        store.push(&mut ring.bags[(slot % SLOTS) as usize], entry);
    }

    /// Takes the entry with the earliest deadline; of equals, that of the shorter interval.
    #[inline]
    pub fn pop(&mut self, store: &mut Store) -> Option<Entry> {
        let (mut rest, mut best) = (self.nonempty, None);
        while rest != 0 {
            let magnitude = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let deadline = u128::from(self.rings[magnitude].first) << shift_of(magnitude);
            if best.is_none_or(|(earliest, _)| deadline < earliest) {
                best = Some((deadline, magnitude));
            }
        }
        let (_, magnitude) = best?;
        let ring = &mut self.rings[magnitude];
        let at = (ring.first % SLOTS) as usize;
        let entry = store.pop(&mut ring.bags[at]);
        if ring.bags[at].is_empty() {
            ring.occupied &= !(1 << at);
            match ring.occupied {
                0 => self.nonempty &= !(1 << magnitude),
                _ => ring.first += u64::from(ring.occupied.rotate_right(at as u32).trailing_zeros()),
            }
        }
        entry
    }
}

impl Ring {
    /// The number of the last slot that holds something.
    fn last(&self) -> u64 {
        let from_first = self.occupied.rotate_right((self.first % SLOTS) as u32);
        self.first + u64::from(127 - from_first.leading_zeros().min(127))
    }
}

/// The highest bit of an interval.
const fn magnitude_of(interval: u64) -> usize {
    63 - (interval | 1).leading_zeros() as usize
}

const fn shift_of(magnitude: usize) -> u32 {
    (magnitude as u32).saturating_sub(PRECISION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: a class overtakes one that is more urgent by more than a thirty-second of that one's interval, or is
        /// lost. Deadlines lie as they do when all classes are in time.
        #[test]
        fn the_most_urgent_comes_first(steps in prop::collection::vec((6u32..34, any::<u64>(), prop::bool::weighted(0.6)), 1..300)) {
            let (mut store, mut deadlines) = (Store::default(), Deadlines::new());
            let mut model: Vec<Entry> = Vec::new();
            let now = 1u64 << 40;
            for (class, (bits, random, push)) in (0..).zip(steps) {
                if push {
                    let interval = (1 << bits) | (random % (1 << bits));
                    let start = now - (random >> 20) % interval;
                    let entry = Entry { start, deadline: start + interval, class, follows: false };
                    deadlines.push(&mut store, entry);
                    model.push(entry);
                } else {
                    let got = deadlines.pop(&mut store);
                    prop_assert_eq!(got.is_some(), !model.is_empty());
                    let Some(got) = got else { continue };
                    model.retain(|entry| entry.class != got.class);
                    for other in &model {
                        let slack = (other.deadline - other.start) / 32 + 1;
                        prop_assert!(got.deadline <= other.deadline + slack, "{:?} before {:?}", got, other);
                    }
                }
                prop_assert_eq!(store.len(), model.len());
            }
        }

        /// Breaks: classes that are too late for their ring, as on a line that is promised twice, are lost.
        #[test]
        fn nothing_is_lost_however_late(deadlines_at in prop::collection::vec(0u64..1 << 50, 1..200)) {
            let (mut store, mut deadlines) = (Store::default(), Deadlines::new());
            for (class, deadline) in (0..).zip(&deadlines_at) {
                let entry = Entry { start: deadline.saturating_sub(100), deadline: *deadline, class, follows: false };
                deadlines.push(&mut store, entry);
            }
            let mut seen: Vec<u32> = std::iter::from_fn(|| deadlines.pop(&mut store)).map(|e| e.class).collect();
            seen.sort_unstable();
            prop_assert_eq!(seen, (0..deadlines_at.len() as u32).collect::<Vec<_>>());
            prop_assert_eq!(store.len(), 0);
        }
    }
}
