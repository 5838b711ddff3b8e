//! The C functions. Each has the contract of BSD: a result, or -1 and `errno`.

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
pub use memory::{aside, borrowed, flags_of, has_hung_up, identity, owned, put_at, set_own_numbers};
pub use stack::options;

/// The result, or -1 and `errno`. A panic would be a bug of the library; it ends here and does not reach C.
pub fn answer<T: From<i8>>(work: impl FnOnce() -> nix::Result<T>) -> T {
    match guarded(work).unwrap_or(Err(Errno::EIO)) {
        Ok(value) => value,
        Err(error) => {
            error.set();
            T::from(-1)
        }
    }
}

/// Like [`answer`], for calls without a result.
pub fn done(work: impl FnOnce() -> nix::Result<()>) -> c_int {
    answer(|| work().map(|()| 0))
}

/// The result of `work`, unless it panics.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}
