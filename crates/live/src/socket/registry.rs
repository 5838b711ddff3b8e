//! All sockets of a stack, so that whoever waits in one can be called back.

use super::list::Backlogs;
use farpace_host::BindId;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, Weak};
use thiserror::Error;

/// A call waited, and was told not to: [`Stack::interrupt`](super::Stack::interrupt) or
/// [`Stream::interrupt`](super::Stream::interrupt).
///
/// It comes inside of an [`io::Error`] of kind `Other`: helpers of the standard library try again after kind
/// `Interrupted`, and would wait for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the call was interrupted")]
pub struct Interrupted;

impl Interrupted {
    /// True if `error` is one.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Interrupted>())
    }
}

impl From<Interrupted> for io::Error {
    fn from(interrupted: Interrupted) -> Self {
        io::Error::other(interrupted)
    }
}

/// A socket in which somebody may wait.
pub(super) trait Interrupt: Send + Sync {
    /// Everybody who waits now waits no longer.
    fn interrupt(&self);
    /// Of a listener: which it is, connections that wait to be accepted, and how many may.
    fn backlog(&self) -> Option<(BindId, usize, usize)> {
        None
    }
}

/// What else is to be called.
pub(super) type RegistryCall = Box<dyn Fn() + Send + Sync>;

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
    /// A place for a socket; the socket leaves it when it is dropped.
    pub fn reserve(&self) -> u64 {
        let mut members = self.lock();
        members.next += 1;
        members.next
    }
    /// The socket whose place this is.
    pub fn enter(&self, place: u64, member: Weak<dyn Interrupt>) {
        self.lock().all.insert(place, member);
    }
    /// The place is empty.
    pub fn leave(&self, place: u64) {
        self.lock().all.remove(&place);
    }
    /// See [`Interrupt::interrupt`].
    pub fn interrupt_all(&self) {
        // Not under the lock: the last handle of a socket may be dropped here.
        let all: Vec<_> = self.lock().all.values().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|member| member.interrupt());
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|call| call());
    }
    /// [`interrupt_all`](Self::interrupt_all) calls this, too.
    pub fn on_interrupt(&self, call: RegistryCall) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
    }
    /// See [`Interrupt::backlog`]; all of them.
    pub fn backlogs(&self) -> Backlogs {
        let all: Vec<_> = self.lock().all.values().filter_map(Weak::upgrade).collect();
        let each = all.iter().filter_map(|member| member.backlog());
        each.map(|(id, waiting, most)| (id, (waiting, most))).collect()
    }
    /// Sockets there are.
    pub fn len(&self) -> usize {
        self.lock().all.len()
    }
}
