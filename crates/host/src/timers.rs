//! The earliest deadline among many connections, when nearly every packet moves one of them.

use farpace_units::Instant;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Stale entries that are tolerated whatever the number of connections.
const FEW: usize = 64;
/// Sorted queues beside the heap: one each for the deadlines that are always as far away, like those of
/// delayed ACKs.
const QUEUES: usize = 2;

/// A deadline, and the slot of its connection.
type Entry = (Instant, usize);

/// Where an entry is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Queue(usize),
    Heap,
}

/// Lazy queues: a deadline that moves later leaves its old entry in place, and only one that moves earlier
/// costs a new entry. Most new deadlines are later than all of their kind, and are put at the end of a sorted
/// queue; the others go into a heap. The first of all stands apart, because a host with few connections moves
/// it most of the time.
///
/// The first entry is never stale: so [`next`](Timers::next) is the earliest deadline itself. When half of
/// the entries are stale, they are thrown away: a connection whose far deadline (keep-alive, in hours) gives
/// way to a near one with every segment would leave one each time. So the cost is logarithmic at most, and
/// the memory that of the connections.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// The first entry of all. The others are in the queues and in the heap.
    first: Option<Entry>,
    queues: [VecDeque<Entry>; QUEUES],
    heap: BinaryHeap<Reverse<Entry>>,
    slots: Vec<TimerSlot>,
    /// Slots that have an entry.
    live: usize,
}

/// One connection.
#[derive(Clone, Copy, Debug, Default)]
struct TimerSlot {
    /// The earliest entry that stands for it.
    armed: Option<Instant>,
    /// Its deadline: not before `armed`.
    wanted: Option<Instant>,
}

impl Timers {
    /// The deadline of `slot` is now `at`.
    pub fn set(&mut self, slot: usize, at: Option<Instant>) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, TimerSlot::default());
        }
        self.slots[slot].wanted = at;
        if self.first.is_some_and(|(_, of)| of == slot) {
            self.move_first(slot, at);
        } else if let Some(at) = at
            && self.slots[slot].armed.is_none_or(|armed| at < armed)
        {
            self.note(slot, at);
            let entry = match self.first {
                Some(first) if first < (at, slot) => Some((at, slot)),
                later => {
                    self.first = Some((at, slot));
                    later
                }
            };
            if let Some(entry) = entry {
                self.put(entry);
            }
        }
    }

    /// The first entry is that of `slot`, whose deadline is now `at`.
    fn move_first(&mut self, slot: usize, at: Option<Instant>) {
        if let Some(at) = at
            && self.earliest().is_none_or(|(next, _)| (at, slot) < next)
        {
            self.slots[slot].armed = Some(at);
            self.first = Some((at, slot));
            return;
        }
        self.first = None;
        self.slots[slot].armed = None;
        self.live -= 1;
        if let Some(at) = at {
            self.note(slot, at);
            self.put((at, slot));
        }
        self.find_first();
    }

    /// `slot` has an entry at `at`.
    fn note(&mut self, slot: usize, at: Instant) {
        self.live += usize::from(self.slots[slot].armed.is_none());
        self.slots[slot].armed = Some(at);
    }

    fn put(&mut self, entry: Entry) {
        let fits = |queue: &&mut VecDeque<Entry>| queue.back().is_none_or(|last| *last <= entry);
        match self.queues.iter_mut().find(fits) {
            Some(queue) => queue.push_back(entry),
            None => self.heap.push(Reverse(entry)),
        }
        if self.entries() > 2 * self.live + FEW {
            self.make_anew();
        }
    }

    fn entries(&self) -> usize {
        self.heap.len() + self.queues.iter().map(VecDeque::len).sum::<usize>()
    }

    /// The earliest but for the first one, perhaps stale.
    fn earliest(&self) -> Option<(Entry, Place)> {
        let mut earliest = self.heap.peek().map(|Reverse(entry)| (*entry, Place::Heap));
        for (n, queue) in self.queues.iter().enumerate() {
            if let Some(entry) = queue.front()
                && earliest.is_none_or(|(least, _)| *entry < least)
            {
                earliest = Some((*entry, Place::Queue(n)));
            }
        }
        earliest
    }

    /// Takes the first entry from the others, and replaces those that are stale.
    fn find_first(&mut self) {
        self.first = None;
        while let Some(((at, slot), place)) = self.earliest() {
            match place {
                Place::Queue(n) => _ = self.queues[n].pop_front(),
                Place::Heap => _ = self.heap.pop(),
            }
            let known = &mut self.slots[slot];
            if known.armed != Some(at) {
                continue; // an earlier one has replaced it, or nobody waits any more
            }
            match known.wanted {
                Some(wanted) if wanted == at => {
                    self.first = Some((at, slot));
                    return;
                }
                Some(later) => {
                    known.armed = Some(later);
                    self.put((later, slot));
                }
                None => {
                    known.armed = None;
                    self.live -= 1;
                }
            }
        }
    }

    /// Nothing waits for `slot` any more.
    pub fn forget(&mut self, slot: usize) {
        if let Some(known) = self.slots.get_mut(slot) {
            let was_armed = std::mem::take(known).armed.is_some();
            self.live -= usize::from(was_armed);
            if self.first.is_some_and(|(_, of)| of == slot) {
                self.find_first();
            }
        }
    }

    /// Throws the stale entries away.
    #[cold]
    fn make_anew(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
        let first = self.first.map(|(_, slot)| slot);
        let others = self.slots.iter().enumerate().filter(|(slot, _)| Some(*slot) != first);
        self.heap = others.filter_map(|(slot, known)| known.armed.map(|at| Reverse((at, slot)))).collect();
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.first.map(|(at, _)| at)
    }

    /// A slot whose deadline has come by `now`. `set` it again afterwards.
    pub fn pop(&mut self, now: Instant) -> Option<usize> {
        let (_, slot) = self.first.filter(|(at, _)| *at <= now)?;
        self.slots[slot] = TimerSlot::default();
        self.live -= 1;
        self.find_first();
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::Timers;
    use farpace_units::Instant;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    /// Breaks: a connection whose deadline moved earlier would be woken too late.
    #[test]
    fn earlier_replaces_later_waits() {
        let mut t = Timers::default();
        t.set(0, Some(at(100)));
        t.set(1, Some(at(50)));
        t.set(0, Some(at(20)));
        assert_eq!(t.next(), Some(at(20)));
        assert_eq!(t.pop(at(20)), Some(0));
        t.set(0, Some(at(100)));
        t.set(1, Some(at(500)));
        assert_eq!(t.pop(at(60)), None);
        assert_eq!(t.pop(at(100)), Some(0));
        assert_eq!(t.pop(at(499)), None);
        assert_eq!(t.pop(at(500)), Some(1));
        assert_eq!(t.next(), None);
    }

    /// Breaks: whoever asks a host when to call it again is sent to a time at which nothing is to be done:
    /// that of a deadline that has moved, or of a connection that is gone.
    #[test]
    fn the_next_deadline_is_that_of_somebody() {
        let mut t = Timers::default();
        let mut wanted = [None; 5];
        let mut x = 1u64;
        for _ in 0..100_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (slot, time) = ((x >> 33) as usize % 5, at(x >> 50));
            match x >> 60 {
                0 => {
                    t.forget(slot);
                    wanted[slot] = None;
                }
                1 => {
                    t.set(slot, None);
                    wanted[slot] = None;
                }
                2 => {
                    if let Some(slot) = t.pop(time) {
                        assert!(wanted[slot].take().is_some_and(|at| at <= time));
                    }
                }
                _ => {
                    t.set(slot, Some(time));
                    wanted[slot] = Some(time);
                }
            }
            assert_eq!(t.next(), wanted.iter().flatten().min().copied());
            let live = t.slots.iter().filter(|slot| slot.armed.is_some()).count();
            assert!(t.live == live && t.entries() <= 2 * 5 + super::FEW, "{} of {live}", t.entries());
        }
    }

    /// Breaks: a host grows with its traffic. A connection with a deadline in two hours gets a near one with
    /// every segment, and each of them leaves an entry behind.
    #[test]
    fn stale_entries_do_not_pile_up() {
        let mut t = Timers::default();
        for slot in 0..10 {
            t.set(slot, Some(at(7_200_000_000 + slot as u64)));
        }
        for n in 0..100_000 {
            t.set(0, Some(at(n)));
            assert_eq!(t.pop(at(n)), Some(0));
            t.set(0, Some(at(7_200_000_000 + n)));
        }
        assert!(t.entries() <= 2 * 10 + super::FEW, "{} entries", t.entries());
        t.forget(0);
        let woken: Vec<_> = std::iter::from_fn(|| t.pop(at(u64::MAX))).collect();
        assert_eq!(woken, (1..10).collect::<Vec<_>>(), "each of the others once, in order");
    }
}
