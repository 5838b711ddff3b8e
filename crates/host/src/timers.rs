//! The earliest deadline among many connections, when nearly every packet moves one of them.

use farpace_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stale entries that are tolerated whatever the number of connections.
const FEW: usize = 64;

/// A lazy heap: a deadline that moves later leaves its old entry in place, and only one that moves earlier costs a new entry.
/// The first entry is never stale: so [`next`](Timers::next) is the earliest deadline itself. When half of the entries are
/// stale, the heap is made anew: a connection whose far deadline (keep-alive, in hours) gives way to a near one with every
/// segment would fill it otherwise. So the cost is logarithmic, and the memory that of the connections.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    slots: Vec<TimerSlot>,
    /// Slots that have an entry.
    live: usize,
}

/// One connection.
#[derive(Clone, Copy, Debug, Default)]
struct TimerSlot {
    /// The earliest entry in the heap that stands for it.
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
        if let Some(at) = at
            && self.slots[slot].armed.is_none_or(|armed| at < armed)
        {
            self.arm(slot, at);
        }
        self.settle();
    }

    fn arm(&mut self, slot: usize, at: Instant) {
        self.live += usize::from(self.slots[slot].armed.is_none());
        self.slots[slot].armed = Some(at);
        self.heap.push(Reverse((at, slot)));
        if self.heap.len() > 2 * self.live + FEW {
            self.make_anew();
        }
    }

    /// Replaces first entries that are stale, until one is not.
    fn settle(&mut self) {
        while let Some(Reverse((at, slot))) = self.heap.peek().copied() {
            let TimerSlot { armed, wanted } = self.slots[slot];
            if armed != Some(at) {
                // An earlier one has replaced it, or nobody waits any more.
                self.heap.pop();
                continue;
            }
            if wanted == armed {
                return;
            }
            self.heap.pop();
            self.slots[slot].armed = None;
            self.live -= 1;
            if let Some(later) = wanted {
                self.arm(slot, later);
            }
        }
    }

    /// Nothing waits for `slot` any more.
    pub fn forget(&mut self, slot: usize) {
        if let Some(known) = self.slots.get_mut(slot) {
            let was_armed = std::mem::take(known).armed.is_some();
            self.live -= usize::from(was_armed);
            self.settle();
        }
    }

    fn make_anew(&mut self) {
        let armed = self.slots.iter().enumerate();
        self.heap = armed.filter_map(|(slot, known)| known.armed.map(|at| Reverse((at, slot)))).collect();
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A slot whose deadline has come by `now`. `set` it again afterwards.
    pub fn pop(&mut self, now: Instant) -> Option<usize> {
        let Reverse((at, slot)) = self.heap.peek().copied()?;
        if at > now {
            return None;
        }
        self.heap.pop();
        self.slots[slot] = TimerSlot::default();
        self.live -= 1;
        self.settle();
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

    /// Breaks: whoever asks a host when to call it again is sent to a time at which nothing is to be done: that of a deadline
    /// that has moved, or of a connection that is gone.
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
            assert!(t.live == live && t.heap.len() <= 2 * 5 + super::FEW, "{} of {live}", t.heap.len());
        }
    }

    /// Breaks: a host grows with its traffic. A connection with a deadline in two hours gets a near one with every
    /// segment, and each of them leaves an entry behind.
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
        assert!(t.heap.len() <= 2 * 10 + super::FEW, "{} entries", t.heap.len());
        t.forget(0);
        let woken: Vec<_> = std::iter::from_fn(|| t.pop(at(u64::MAX))).collect();
        assert_eq!(woken, (1..10).collect::<Vec<_>>(), "each of the others once, in order");
    }
}
