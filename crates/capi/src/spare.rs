//! Spare pipes, made before they are needed.
//!
//! A new descriptor has the lowest free number for a moment, until [`aside`] moves it. A program that closes
//! a number twice, or that calls dup2(2) with a free number, must not meet it there. So pipes are made in the
//! program's own calls, like its descriptors, and the threads of the stack take them.

use crate::ffi::aside;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of pipes that are kept: connections that may end between two calls of the program.
const KEPT: usize = 16;

/// Both ends of a pipe.
pub struct SparePipe {
    /// Its end for reading.
    pub read: OwnedFd,
    /// Its end for writing.
    pub write: OwnedFd,
}

static PIPES: Mutex<Vec<SparePipe>> = Mutex::new(Vec::new());

fn pipes() -> MutexGuard<'static, Vec<SparePipe>> {
    PIPES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn new_pipe() -> nix::Result<SparePipe> {
    let (read, write) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
    Ok(SparePipe { read: aside(read), write: aside(write) })
}

/// Makes what is missing; called in the program's calls, while forks wait. Fewer are kept if the process may
/// have no more descriptors.
pub fn refill() {
    let mut kept = pipes();
    while kept.len() < KEPT
        && let Ok(pipe) = new_pipe()
    {
        kept.push(pipe);
    }
}

/// A pipe; called while forks wait. Without a spare one it is made now.
pub fn take() -> nix::Result<SparePipe> {
    pipes().pop().map_or_else(new_pipe, Ok)
}

/// In a child of fork(2): closes all, whose other copies the parent uses.
pub fn clear() {
    pipes().clear();
}
