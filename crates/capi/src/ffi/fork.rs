//! fork(2): what a child has of its parent's stack.
//!
//! Before a fork all locks are taken that a child would need and that another thread might hold: of the table, of the links, of the
//! channel, of the stack that was made last. After it both release them; the child leaves its sockets to the owner.

#![allow(unsafe_code, reason = "functions that the system calls around fork")]

use super::stack;
use crate::descriptor;
use crate::home::Home;
use crate::share::remote;
use crate::share::server::ShareServer;
use crate::table::{self, HandleTable};
use nix::libc;
use std::cell::RefCell;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, MutexGuard, Once, RwLockWriteGuard};

/// What is held during a fork.
struct ForkGuard {
    last: MutexGuard<'static, Option<Arc<Home>>>,
    _links: RwLockWriteGuard<'static, ()>,
    table: RwLockWriteGuard<'static, HandleTable>,
    channel: MutexGuard<'static, Option<OwnedFd>>,
    /// The stack and its door, if there is one with a thread.
    shared: Option<(Arc<Home>, Option<RawFd>, Vec<RawFd>)>,
}

thread_local! {
    /// By the thread that forks.
    static HELD: RefCell<Option<ForkGuard>> = const { RefCell::new(None) };
}

/// From now on forks are noticed.
pub fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: three functions without arguments, which stay as long as this library.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
}

extern "C" fn prepare() {
    let last = stack::hold_last();
    let home = last.clone().filter(|home| !home.is_driven());
    // Without descriptors for a door the child can do nothing with its copies.
    let door = home.as_ref().and_then(|home| home.share().ok()).and_then(ShareServer::theirs);
    let shared = home.map(|home| {
        let private = home.private();
        (home, door, private)
    });
    let (channel, _links) = (remote::hold(), descriptor::hold());
    let held = ForkGuard { last, _links, table: table::hold(), channel, shared };
    HELD.with(|place| *place.borrow_mut() = Some(held));
}

extern "C" fn parent() {
    drop(HELD.with(|place| place.borrow_mut().take()));
}

extern "C" fn child() {
    let Some(mut held) = HELD.with(|place| place.borrow_mut().take()) else { return };
    // That of the parent, if it asks as well.
    *held.channel = None;
    let Some((home, door, private)) = held.shared.take() else { return };
    held.table.leave_to_owner(&home);
    for fd in private {
        // SAFETY: a call without memory. These are descriptors of the stack, which is not in this process.
        unsafe { libc::close(fd) };
    }
    std::mem::forget(held.last.take());
    std::mem::forget(home);
    remote::begin(door.unwrap_or(-1));
}
