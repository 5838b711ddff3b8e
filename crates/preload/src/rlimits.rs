//! The limit of descriptors as the program is to see it.
//!
//! Each socket of farpace has a descriptor of its own beside the program's. `farpace exec` raises the limit
//! for these, and they have numbers above the program's own limit. So `select` works as far as with the
//! kernel, and the program gets as many descriptors as its limit says, and then `EMFILE`.

#![allow(unsafe_code, reason = "names for C, and memory of the program as the manual of each call says")]

use crate::plan::plan;
use crate::real;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_long, c_uint, pid_t, rlimit};
use std::sync::atomic::{AtomicU64, Ordering};

/// A socket has up to two more descriptors, as `farpace exec` reckons.
const EACH: u64 = 3;

/// What the program has set since; 0: nothing.
static SET: AtomicU64 = AtomicU64::new(0);

/// The number of descriptors that the program may have; none: the system's limit applies.
pub fn limit() -> Option<u64> {
    let raised = plan()?.descriptors?;
    Some(match SET.load(Ordering::Acquire) {
        0 => raised,
        set => set,
    })
}

/// True if a new descriptor has a number above the program's limit.
pub fn is_beyond(fd: c_int) -> bool {
    fd >= 0 && limit().is_some_and(|limit| fd.cast_unsigned() as u64 >= limit)
}

/// True if the next descriptor would have a number above the program's limit.
pub fn is_exhausted(fd: c_int) -> bool {
    if limit().is_none() {
        return false;
    }
    let next = real::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0);
    if next >= 0 {
        real::close(next);
    }
    is_beyond(next)
}

/// The limit as the program sees it.
fn seen(mut real: rlimit) -> rlimit {
    if let Some(limit) = limit() {
        real.rlim_cur = real.rlim_cur.min(limit);
    }
    real
}

/// Sets the limit that the program sees. The system's leaves room above it for the library, if it may.
fn set(new: rlimit) -> c_int {
    let mut before = rlimit { rlim_cur: 0, rlim_max: 0 };
    if real::getrlimit(libc::RLIMIT_NOFILE, &mut before) != 0 {
        return -1;
    }
    let mut wanted = new;
    if new.rlim_cur <= new.rlim_max {
        let room = new.rlim_cur.saturating_mul(EACH);
        wanted.rlim_cur = room.max(before.rlim_cur).min(new.rlim_max);
    }
    let done = real::setrlimit(libc::RLIMIT_NOFILE, &wanted);
    if done == 0 {
        SET.store(new.rlim_cur.max(1), Ordering::Release);
    }
    done
}

fn is_ours(resource: c_uint) -> bool {
    resource == libc::RLIMIT_NOFILE && limit().is_some()
}

/// getrlimit(2).
#[unsafe(no_mangle)]
pub extern "C" fn getrlimit(resource: c_uint, at: *mut rlimit) -> c_int {
    let got = real::getrlimit(resource, at);
    if got == 0 && is_ours(resource) {
        // SAFETY: the kernel has just written it.
        if let Some(at) = unsafe { at.as_mut() } {
            *at = seen(*at);
        }
    }
    got
}

/// getrlimit(2) of programs compiled with large file support.
#[unsafe(no_mangle)]
pub extern "C" fn getrlimit64(resource: c_uint, at: *mut rlimit) -> c_int {
    getrlimit(resource, at)
}

/// setrlimit(2).
#[unsafe(no_mangle)]
pub extern "C" fn setrlimit(resource: c_uint, new: *const rlimit) -> c_int {
    // SAFETY: by the manual of the call it is a limit, or null.
    match unsafe { new.as_ref() } {
        Some(new) if is_ours(resource) => set(*new),
        _ => real::setrlimit(resource, new),
    }
}

/// setrlimit(2) of programs compiled with large file support.
#[unsafe(no_mangle)]
pub extern "C" fn setrlimit64(resource: c_uint, new: *const rlimit) -> c_int {
    setrlimit(resource, new)
}

/// prlimit(2).
#[unsafe(no_mangle)]
pub extern "C" fn prlimit(pid: pid_t, resource: c_uint, new: *const rlimit, old: *mut rlimit) -> c_int {
    let own = pid == 0 || pid == nix::unistd::getpid().as_raw();
    if !own || !is_ours(resource) {
        return real::prlimit(pid, resource, new, old);
    }
    let mut before = rlimit { rlim_cur: 0, rlim_max: 0 };
    if getrlimit(resource, &mut before) != 0 || !new.is_null() && setrlimit(resource, new) != 0 {
        return -1;
    }
    // SAFETY: by the manual of the call it is writable, or null.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before;
    }
    0
}

/// prlimit(2) of programs compiled with large file support.
#[unsafe(no_mangle)]
pub extern "C" fn prlimit64(pid: pid_t, resource: c_uint, new: *const rlimit, old: *mut rlimit) -> c_int {
    prlimit(pid, resource, new, old)
}

/// sysconf(3).
#[unsafe(no_mangle)]
pub extern "C" fn sysconf(name: c_int) -> c_long {
    match limit().filter(|_| name == libc::_SC_OPEN_MAX) {
        Some(limit) => c_long::try_from(limit).unwrap_or(c_long::MAX),
        None => real::sysconf(name),
    }
}

/// getdtablesize(3).
#[unsafe(no_mangle)]
pub extern "C" fn getdtablesize() -> c_int {
    match limit() {
        Some(limit) => c_int::try_from(limit).unwrap_or(c_int::MAX),
        None => real::getdtablesize(),
    }
}

/// `fd`, unless its number is above the program's limit: then it is closed.
pub fn within_limit(fd: c_int) -> c_int {
    if !is_beyond(fd) {
        return fd;
    }
    real::close(fd);
    Errno::EMFILE.set();
    -1
}
