//! All sockets of a stack, to interrupt the calls that wait in them.

use farpace_host::BindId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};

/// A socket in which threads may wait.
pub(super) trait Interrupt: Send + Sync {
    /// Interrupts all waiting calls.
    fn interrupt(&self);
    /// Of a listener: its identifier, the number of connections that wait to be accepted, and the backlog.
    fn backlog(&self) -> Option<(BindId, usize, usize)> {
        None
    }
}

/// A further call on an interrupt.
pub(super) type RegistryCall = Box<dyn Fn() + Send + Sync>;

/// Number of connections that wait at a listener, and its backlog.
pub(crate) type Backlogs = BTreeMap<BindId, (usize, usize)>;

/// The sockets of a stack.
#[derive(Default)]
pub(super) struct Registry {
    members: Mutex<Members>,
    calls: Mutex<Vec<RegistryCall>>,
}

#[derive(Default)]
struct Members {
    next: u64,
    all: BTreeMap<u64, Weak<dyn Interrupt>>,
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Reserves an entry for a socket; the socket removes it when it is dropped.
    pub fn reserve(&self) -> u64 {
        let mut members = self.lock();
        members.next += 1;
        members.next
    }
    /// Registers the socket of an entry.
    pub fn enter(&self, place: u64, member: Weak<dyn Interrupt>) {
        self.lock().all.insert(place, member);
    }
    /// Removes an entry.
    pub fn leave(&self, place: u64) {
        self.lock().all.remove(&place);
    }
    /// See [`Interrupt::interrupt`].
    pub fn interrupt_all(&self) {
        // Without the lock: the last handle of a socket may be dropped here.
        let all: Vec<_> = self.lock().all.values().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|member| member.interrupt());
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|call| call());
    }
    /// Registers a call of [`interrupt_all`](Self::interrupt_all).
    pub fn on_interrupt(&self, call: RegistryCall) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
    /// The backlogs of all listeners; see [`Interrupt::backlog`].
    pub fn backlogs(&self) -> Backlogs {
        let all: Vec<_> = self.lock().all.values().filter_map(Weak::upgrade).collect();
        let each = all.iter().filter_map(|member| member.backlog());
        each.map(|(id, waiting, max)| (id, (waiting, max))).collect()
    }
    /// Number of sockets.
    pub fn len(&self) -> usize {
        self.lock().all.len()
    }
}
