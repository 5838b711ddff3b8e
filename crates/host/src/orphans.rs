//! Connections that nobody waits for any more, and how many of them a host bears.

use std::collections::BTreeMap;

/// Connections whose programs have left them and that wait for their peers, unless a host is told otherwise
/// ([`Host::set_max_orphans`](crate::Host::set_max_orphans)). Of more, the oldest is reset.
pub const MAX_ORPHANS: usize = 16_384;

/// Slots of orphans ([`Connection::is_orphan`](farpace_tcp::Connection::is_orphan)), by the order in which
/// they became that.
pub(crate) struct Orphans {
    most: usize,
    waiting: BTreeMap<u64, usize>,
    next: u64,
    ended: u64,
}

impl Default for Orphans {
    fn default() -> Self {
        Orphans { most: MAX_ORPHANS, waiting: BTreeMap::new(), next: 0, ended: 0 }
    }
}

impl Orphans {
    /// At most so many may wait.
    pub fn set_max(&mut self, most: usize) {
        self.most = most;
    }

    /// Those that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Those that were ended because there were too many.
    pub const fn ended(&self) -> u64 {
        self.ended
    }

    /// The connection in `slot` is an orphan from now on. Its number among them.
    pub fn add(&mut self, slot: usize) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, slot);
        number
    }

    /// The orphan with this number is none any more.
    pub fn remove(&mut self, number: u64) {
        self.waiting.remove(&number);
    }

    /// An orphan was ended because there were too many.
    pub fn count_ended(&mut self) {
        self.ended += 1;
    }

    /// The slot of the oldest, if there are too many.
    pub fn take_oldest(&mut self) -> Option<usize> {
        if self.waiting.len() <= self.most {
            return None;
        }
        self.waiting.pop_first().map(|(_, slot)| slot)
    }
}
