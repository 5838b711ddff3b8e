//! The earliest deadline among many connections, when nearly every packet moves one of them.

use farpace_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Stale entries that are tolerated whatever the number of connections.
const FEW: usize = 64;

/// A lazy heap: a deadline that moves later leaves its old entry in place, to be looked at again when it
/// comes; only one that moves earlier costs a new entry. When half of the entries are stale, the heap is made anew:
/// a connection whose far deadline (keep-alive, in hours) gives way to a near one with every segment would fill it
/// otherwise. So the cost is logarithmic, and the memory that of the connections.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Per slot: the earliest entry in the heap that stands for it.
    armed: Vec<Option<Instant>>,
    /// Slots that have one.
    live: usize,
}

impl Timers {
    /// The deadline of `slot` is now `at`.
    pub fn set(&mut self, slot: usize, at: Option<Instant>) {
        if self.armed.len() <= slot {
            self.armed.resize(slot + 1, None);
        }
        if let Some(at) = at
            && self.armed[slot].is_none_or(|armed| at < armed)
        {
            self.live += usize::from(self.armed[slot].is_none());
            self.armed[slot] = Some(at);
            self.heap.push(Reverse((at, slot)));
            if self.heap.len() > 2 * self.live + FEW {
                self.make_anew();
            }
        }
    }

    /// Nothing waits for `slot` any more.
    pub fn forget(&mut self, slot: usize) {
        if let Some(armed) = self.armed.get_mut(slot)
            && armed.take().is_some()
        {
            self.live -= 1;
        }
    }

    fn make_anew(&mut self) {
        let armed = self.armed.iter().enumerate();
        self.heap = armed.filter_map(|(slot, at)| at.map(|at| Reverse((at, slot)))).collect();
    }

    /// When to look again: not after the earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// A slot whose entry has come by `now`. Its deadline may have moved; `set` it again afterwards.
    pub fn pop(&mut self, now: Instant) -> Option<usize> {
        while let Some(Reverse((at, slot))) = self.heap.peek().copied() {
            if at > now {
                return None;
            }
            self.heap.pop();
            // Entries that an earlier one has replaced are stale.
            if self.armed[slot] == Some(at) {
                self.armed[slot] = None;
                self.live -= 1;
                return Some(slot);
            }
        }
        None
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
        assert_eq!(t.pop(at(60)), Some(1), "looked at early, which is harmless");
        t.set(1, Some(at(500)));
        assert_eq!(t.pop(at(60)), None);
        assert_eq!(t.pop(at(100)), Some(0));
        assert_eq!(t.pop(at(499)), None);
        assert_eq!(t.pop(at(500)), Some(1));
        assert_eq!(t.next(), None);
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
