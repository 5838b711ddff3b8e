//! What C calls. Each function has BSD's contract: a result, or -1 and `errno`.

mod calls;
mod driven_host;
mod fork;
mod host;
mod memory;
mod options;
mod stack;
mod transfer;
mod wait;

use nix::errno::Errno;
use std::ffi::c_int;

pub use fork::watch_forks;
pub use memory::{aside, borrowed, flags_of, has_hung_up, identity, owned, put_at};
pub use stack::options;

/// -1 and `errno`, or the result. A panic would be a bug of ours; it ends here and not in C.
pub fn answer<T: From<i8>>(work: impl FnOnce() -> nix::Result<T>) -> T {
    match guarded(work).unwrap_or(Err(Errno::EIO)) {
        Ok(value) => value,
        Err(error) => {
            error.set();
            T::from(-1)
        }
    }
}

/// The same for calls that only succeed or fail.
pub fn done(work: impl FnOnce() -> nix::Result<()>) -> c_int {
    answer(|| work().map(|()| 0))
}

/// What `work` returns, unless it panics.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}
