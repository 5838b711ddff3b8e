//! The earliest deadline among many connections, when nearly every packet moves one of them.

use farpace_units::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A lazy heap: a deadline that moves later leaves its old entry in place, to be looked at again when it
/// comes; only one that moves earlier costs a new entry.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Per slot: the earliest entry in the heap that stands for it.
    armed: Vec<Option<Instant>>,
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
            self.armed[slot] = Some(at);
            self.heap.push(Reverse((at, slot)));
        }
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
}
