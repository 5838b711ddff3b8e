//! The memory budget of a host, from outside.

use super::Host;
use crate::memory::MemoryUse;
use farpace_units::ByteCount;

impl Host {
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
