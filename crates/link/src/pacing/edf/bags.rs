//! Many small queues that share one store: where classes stand between two frames.

/// One frame-to-be of a class, in bytes of the line: it may begin at `start` and should have begun before `deadline`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub start: u64,
    pub deadline: u64,
    pub class: u32,
    /// The class [follows](crate::pacing::ClassKind::Follows) a connection.
    pub follows: bool,
}

const NONE: u32 = u32::MAX;
/// Entries of a chunk: with its links it takes four cache lines.
const CHUNK: usize = 10;

/// A queue of entries, in a [`Store`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Bag {
    first: u32,
    last: u32,
}

impl Bag {
    pub const EMPTY: Bag = Bag { first: NONE, last: NONE };

    pub const fn is_empty(self) -> bool {
        self.first == NONE
    }
}

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Chunk {
    entries: [Entry; CHUNK],
    begin: u8,
    end: u8,
    next: u32,
}

/// The memory of all bags. Entries move between bags by copying, so that none of this touches a class; it grows with the
/// most entries there ever were at once.
#[derive(Debug, Default)]
pub(super) struct Store {
    chunks: Vec<Chunk>,
    free: Vec<u32>,
    len: usize,
}

impl Store {
    /// Entries in all bags.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Puts an entry behind all others of `bag`.
    #[inline]
    pub fn push(&mut self, bag: &mut Bag, entry: Entry) {
        self.len += 1;
        if let Some(last) = self.chunks.get_mut(bag.last as usize)
            && usize::from(last.end) < CHUNK
        {
            last.entries[usize::from(last.end)] = entry;
            last.end += 1;
            return;
        }
        let at = self.chunk();
        let chunk = &mut self.chunks[at as usize];
        chunk.entries[0] = entry;
        (chunk.begin, chunk.end, chunk.next) = (0, 1, NONE);
        match self.chunks.get_mut(bag.last as usize) {
            Some(last) => last.next = at,
            None => bag.first = at,
        }
        bag.last = at;
    }

    /// Takes the entry that has been in `bag` for longest.
    #[inline]
    pub fn pop(&mut self, bag: &mut Bag) -> Option<Entry> {
        let chunk = self.chunks.get_mut(bag.first as usize)?;
        let entry = chunk.entries[usize::from(chunk.begin)];
        chunk.begin += 1;
        self.len -= 1;
        if chunk.begin == chunk.end {
            let next = chunk.next;
            self.free.push(bag.first);
            *bag = if next == NONE { Bag::EMPTY } else { Bag { first: next, last: bag.last } };
        }
        Some(entry)
    }

    fn chunk(&mut self) -> u32 {
        if let Some(at) = self.free.pop() {
            return at;
        }
        self.chunks.push(Chunk { entries: [Entry::default(); CHUNK], begin: 0, end: 0, next: NONE });
        (self.chunks.len() - 1) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Breaks: a class is forgotten or served twice because bags mix up their entries, or the store leaks.
        #[test]
        fn bags_are_queues_of_their_own(steps in prop::collection::vec((0usize..3, prop::bool::weighted(0.6)), 1..400)) {
            let mut store = Store::default();
            let mut bags = [Bag::EMPTY; 3];
            let mut model: [VecDeque<Entry>; 3] = Default::default();
            for (class, (bag, push)) in (0..).zip(steps) {
                if push {
                    let entry = Entry { class, ..Entry::default() };
                    store.push(&mut bags[bag], entry);
                    model[bag].push_back(entry);
                } else {
                    prop_assert_eq!(store.pop(&mut bags[bag]), model[bag].pop_front());
                }
                prop_assert_eq!(bags[bag].is_empty(), model[bag].is_empty());
                prop_assert_eq!(store.len(), model.iter().map(VecDeque::len).sum::<usize>());
            }
            for (bag, model) in bags.iter_mut().zip(model) {
                for entry in model {
                    prop_assert_eq!(store.pop(bag), Some(entry));
                }
            }
            prop_assert_eq!(store.free.len(), store.chunks.len());
        }
    }
}
