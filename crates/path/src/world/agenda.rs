//! The order of events: a tournament tree over all elements.

use farpace_units::Instant;

/// The time of each element's next event, and the element with the earliest; at equal times the one with the
/// lowest number.
///
/// Reading the first is free. If an element is not the first of its group before or after a change of its
/// time, the change costs one comparison: so it is with a timer that moves at every ACK. Otherwise it costs
/// one group for each level. A world of [`WIDTH`] elements has one level.
#[derive(Debug)]
pub(super) struct Agenda {
    /// A tree in an array: the root at 0, the children of n from `WIDTH` n + 1 on, one leaf for each element.
    /// Each node repeats the least of its children.
    nodes: Vec<Due>,
    /// Where the leaves begin.
    leaves: usize,
}

/// An element and the time of its next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Due {
    pub at: Instant,
    pub element: u32,
}

/// Children of a node.
const WIDTH: usize = 8;

impl Agenda {
    pub fn new() -> Self {
        Agenda { nodes: vec![Due { at: Instant::FAR_FUTURE, element: 0 }], leaves: 0 }
    }
    /// Makes room for `elements`.
    pub fn grow(&mut self, elements: usize) {
        if elements <= self.nodes.len() - self.leaves {
            return;
        }
        let old = self.nodes.split_off(self.leaves);
        let mut width = 1;
        self.leaves = 0;
        while width < elements {
            self.leaves += width;
            width *= WIDTH;
        }
        let nobody = |element: usize| Due { at: Instant::FAR_FUTURE, element: element as u32 };
        self.nodes = vec![nobody(0); self.leaves];
        self.nodes.extend((0..width).map(nobody));
        for n in (0..self.leaves).rev() {
            self.nodes[n] = self.nodes[WIDTH * n + 1];
        }
        for due in old {
            self.set(due.element, due.at);
        }
    }
    /// The next event of `element` is `at`.
    #[inline(always)]
    pub fn set(&mut self, element: u32, at: Instant) {
        let leaf = self.leaves + element as usize;
        if self.nodes[leaf].at != at {
            self.change(leaf, Due { at, element });
        }
    }
    #[inline(never)]
    fn change(&mut self, leaf: usize, mut due: Due) {
        let mut n = leaf;
        let mut was = std::mem::replace(&mut self.nodes[n], due);
        while n > 0 {
            let parent = (n - 1) / WIDTH;
            let first = self.nodes[parent];
            if first.element == was.element {
                // The element that was first may be later now.
                let Some(children) = self.nodes[WIDTH * parent + 1..].first_chunk::<WIDTH>() else { return };
                due = children[0];
                for child in children {
                    due = if child.at < due.at { *child } else { due };
                }
            } else if due > first {
                return;
            }
            was = std::mem::replace(&mut self.nodes[parent], due);
            n = parent;
        }
    }
    /// The first event. Its time is [`Instant::FAR_FUTURE`] if there is none.
    #[inline]
    pub fn first(&self) -> Due {
        self.nodes[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: events come out of order, or elements with the same time in another order than their
        /// numbers.
        #[test]
        fn the_first_has_the_earliest_time(sets in prop::collection::vec((0u32..75, 0u64..8), 1..300)) {
            let mut agenda = Agenda::new();
            let mut times: Vec<u64> = vec![];
            for (element, at) in sets {
                while times.len() <= element as usize {
                    times.push(u64::MAX);
                    agenda.grow(times.len());
                }
                // 7 stands for never.
                let at = if at == 7 { u64::MAX } else { at };
                times[element as usize] = at;
                agenda.set(element, Instant::from_nanos(at));
                let min = times.iter().enumerate().min_by_key(|(n, at)| (**at, *n)).unwrap();
                let first = agenda.first();
                prop_assert_eq!((first.element as usize, first.at.as_nanos()), (min.0, *min.1));
            }
        }
    }
}
