//! Memory that a burst has needed and that an idle connection does not.

use std::collections::VecDeque;

/// Places that an empty queue keeps.
const KEPT: usize = 4;

/// An empty queue gives its memory back. It grew by doubling: so this costs less than what filled it.
pub(crate) fn trim<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        *queue = VecDeque::new();
    }
}
