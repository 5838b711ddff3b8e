//! fork(2): how a child uses the stack of its parent.
//!
//! Before a fork, all locks are taken that a child needs and another thread might hold: of the table, the
//! links, the channel and the last stack. After it both processes release them, and the child leaves its
//! sockets to the owner.

#![allow(unsafe_code, reason = "functions that the system calls around fork")]

use super::stack;
use crate::descriptor;
use crate::home::Home;
use crate::share::remote;
use crate::share::server::ShareServer;
use crate::spare;
use crate::table::{self, HandleTable};
use nix::libc;
use std::cell::RefCell;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, MutexGuard, Once, RwLockWriteGuard};

/// The locks held during a fork.
struct ForkGuard {
    last: MutexGuard<'static, Option<Arc<Home>>>,
    _links: RwLockWriteGuard<'static, ()>,
    table: RwLockWriteGuard<'static, HandleTable>,
    channel: MutexGuard<'static, Option<OwnedFd>>,
    /// The stack and its rendezvous socket, if there is one with a thread.
    shared: Option<(Arc<Home>, Option<RawFd>, Vec<RawFd>)>,
}

thread_local! {
    /// Of the thread that forks.
    static FORK_GUARD: RefCell<Option<ForkGuard>> = const { RefCell::new(None) };
}

/// Installs the fork handlers.
pub fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: three functions without arguments, which exist as long as this library.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

extern "C" fn prepare() {
    let last = stack::lock_last();
    let home = last.clone().filter(|home| !home.is_driven());
    // Without a descriptor for the rendezvous socket, the child cannot use its copies.
    let rendezvous = home.as_ref().and_then(|home| home.share().ok()).and_then(ShareServer::inheritable);
    let shared = home.map(|home| {
        let private = home.private();
        (home, rendezvous, private)
    });
    let (channel, _links) = (remote::hold(), descriptor::hold());
    let held = ForkGuard { last, _links, table: table::hold(), channel, shared };
    FORK_GUARD.with(|place| *place.borrow_mut() = Some(held));
}

extern "C" fn parent() {
    drop(FORK_GUARD.with(|place| place.borrow_mut().take()));
}

extern "C" fn child() {
    let Some(mut held) = FORK_GUARD.with(|place| place.borrow_mut().take()) else { return };
    spare::clear();
    // The channel of the parent, if it uses another stack too.
    *held.channel = None;
    let Some((home, rendezvous, private)) = held.shared.take() else { return };
    held.table.leave_to_owner(&home);
    for fd in private {
        // SAFETY: a call without memory. The descriptors belong to the stack, which is not in this process.
        unsafe { libc::close(fd) };
    }
    std::mem::forget(held.last.take());
    std::mem::forget(home);
    remote::begin(rendezvous.unwrap_or(-1));
}
