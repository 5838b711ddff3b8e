//! Memory that a burst has needed and that an idle connection does not.

use std::collections::VecDeque;

/// Places that an empty queue keeps.
const KEPT: usize = 4;

/// Places that a queue begins with: growing to them by doubling costs more than the memory for a while.
const FIRST: usize = 16;

/// An empty queue is about to be filled.
pub(crate) fn start<T>(queue: &mut VecDeque<T>) {
    queue.reserve(FIRST);
}

/// An empty queue gives its memory back. It grew by doubling: so this costs less than what filled it.
pub(crate) fn trim<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
}
