//! The memory of a host, from outside: its budget, and closed connections.

use super::Host;
use crate::connection_id::ConnectionId;
use crate::memory::MemoryUse;
use farpace_units::ByteCount;

impl Host {
    /// So many closed connections stay for inspection ([`DEFAULT_CLOSED_KEPT`](crate::DEFAULT_CLOSED_KEPT) at
    /// first); of more, the oldest are forgotten.
    pub fn keep_closed(&mut self, most: usize) {
        self.connections.closed_kept = most;
    }

    /// A closed connection that stays for inspection is forgotten now. False: it is not closed, or was
    /// forgotten before.
    pub fn forget_closed(&mut self, id: ConnectionId) -> bool {
        self.connections.forget_closed(id)
    }

    /// Its connections may hold so much ([`DEFAULT_MEMORY`](crate::DEFAULT_MEMORY) at first,
    /// [`MIN_MEMORY`](crate::MIN_MEMORY) at least). Buffers of
    /// connections that begin from now on reach at most a quarter of it by autotuning.
    pub fn set_memory_limit(&mut self, limit: ByteCount) {
        self.budget.set_limit(limit);
        self.internet.limits.buffer = Some(self.budget.largest_buffer());
        self.listeners.forget_templates();
    }

    /// What its connections hold, and what was done about it.
    pub fn memory(&self) -> MemoryUse {
        self.budget.memory_use()
    }
}
