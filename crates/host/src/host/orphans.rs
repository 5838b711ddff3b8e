//! Connections of a host that nobody waits for any more.

use super::Host;
use farpace_path::Cx;

impl Host {
    /// At most so many connections may wait for their peers whose programs have left; of more, the oldest is
    /// reset. [`MAX_ORPHANS`](crate::MAX_ORPHANS) at first.
    pub fn set_max_orphans(&mut self, most: usize) {
        self.orphans.set_max(most);
    }

    /// Connections whose programs have left them, and that still wait for their peers.
    pub fn orphans(&self) -> usize {
        self.orphans.len()
    }

    /// Orphans that were reset because there were too many.
    pub const fn orphans_ended(&self) -> u64 {
        self.orphans.ended()
    }

    /// The connection in `slot` is over, and waits for nobody.
    pub(super) fn forget_orphan(&mut self, slot: usize) {
        let number = self.connections.at(slot).and_then(|entry| entry.orphan.take());
        if let Some(number) = number {
            self.orphans.remove(number);
        }
    }

    /// Books whether the connection in `slot` is an orphan, after it was serviced.
    pub(super) fn note_orphan(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let Some(entry) = self.connections.at(slot) else { return };
        match (entry.connection.is_orphan(), entry.orphan) {
            (true, None) => entry.orphan = Some(self.orphans.add(slot)),
            (false, Some(number)) => {
                entry.orphan = None;
                self.orphans.remove(number);
            }
            _ => return,
        }
        while let Some(oldest) = self.orphans.take_oldest() {
            if let Some(entry) = self.connections.at(oldest) {
                entry.orphan = None;
                entry.connection.end_orphan(cx.now());
                self.orphans.count_ended();
            }
            self.service(oldest, cx);
        }
    }
}
