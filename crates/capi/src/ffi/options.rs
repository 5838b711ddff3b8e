//! getsockopt(2) and setsockopt(2).

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::done;
use super::memory::{self, borrowed};
use crate::table;
use nix::errno::Errno;
use nix::libc::{self, c_int, socklen_t};
use std::ffi::c_void;

/// setsockopt(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_setsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        let len = usize::try_from(len.cast_signed()).map_err(|_| Errno::EINVAL)?;
        let bytes = if value.is_null() { None } else { Some(memory::bytes(value.cast(), len)?) };
        socket.set_option(level, name, bytes)
    })
}

/// getsockopt(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        let room = memory::read(len)?.cast_signed();
        if (level, name) == (libc::SOL_SOCKET, libc::SO_ERROR) && room >= 0 {
            let error = socket.take_error(borrowed(fd)?).to_ne_bytes();
            return tell(&error[..4.min(room as usize)], value, len);
        }
        tell(&socket.option(level, name, room)?, value, len)
    })
}

fn tell(bytes: &[u8], value: *mut c_void, len: *mut socklen_t) -> nix::Result<()> {
    memory::bytes_mut(value.cast(), bytes.len())?.copy_from_slice(bytes);
    memory::write(len, bytes.len() as socklen_t)
}
