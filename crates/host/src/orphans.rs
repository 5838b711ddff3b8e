//! Connections that nobody waits for any more, and how many of them a host bears.

use crate::host::Host;
use farpace_path::Cx;
use std::collections::BTreeMap;

/// Connections whose programs have left them and that wait for their peers, unless a host is told otherwise
/// ([`Host::set_max_orphans`]). Of more, the oldest is reset.
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
    fn add(&mut self, slot: usize) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, slot);
        number
    }

    /// The slot of the oldest, if there are too many.
    fn take_oldest(&mut self) -> Option<usize> {
        if self.waiting.len() <= self.most {
            return None;
        }
        self.waiting.pop_first().map(|(_, slot)| slot)
    }
}

impl Host {
    /// At most so many connections may wait for their peers whose programs have left; of more, the oldest is
    /// reset. [`MAX_ORPHANS`] at first.
    pub fn set_max_orphans(&mut self, most: usize) {
        self.orphans.most = most;
    }

    /// Connections whose programs have left them, and that still wait for their peers.
    pub fn orphans(&self) -> usize {
        self.orphans.waiting.len()
    }

    /// Orphans that were reset because there were too many.
    pub const fn orphans_ended(&self) -> u64 {
        self.orphans.ended
    }

    /// The connection in `slot` is over, and waits for nobody.
    pub(crate) fn forget_orphan(&mut self, slot: usize) {
        let number = self.connections.at(slot).and_then(|entry| entry.orphan.take());
        if let Some(number) = number {
            self.orphans.waiting.remove(&number);
        }
    }

    /// Books whether the connection in `slot` is an orphan, after it was serviced.
    pub(crate) fn note_orphan(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let Some(entry) = self.connections.at(slot) else { return };
        match (entry.connection.is_orphan(), entry.orphan) {
            (true, None) => entry.orphan = Some(self.orphans.add(slot)),
            (false, Some(number)) => {
                entry.orphan = None;
                self.orphans.waiting.remove(&number);
            }
            _ => return,
        }
        while let Some(oldest) = self.orphans.take_oldest() {
            if let Some(entry) = self.connections.at(oldest) {
                entry.orphan = None;
                entry.connection.end_orphan(cx.now());
                self.orphans.ended += 1;
            }
            self.service(oldest, cx);
        }
    }
}
