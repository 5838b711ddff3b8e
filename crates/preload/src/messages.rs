//! Calls with messages, several messages, or a file.

#![allow(unsafe_code, reason = "names for C, and memory of the program as the manual of each call says")]

use crate::calls::{adopt, bytes, fail, given, is_for_us, is_something_else, library_for, sent};
use crate::descriptors::assign_to_kernel;
use crate::library::Library;
use crate::real;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, mmsghdr, msghdr, off_t, size_t, ssize_t};
use std::ptr::null_mut;

/// Maximum number of bytes of a file per step.
const LONGEST: usize = 1 << 16;

/// The library, for a message sent on `fd`.
fn sending(fd: c_int, message: &msghdr) -> Option<nix::Result<&'static Library>> {
    if let Some(library) = library_for(fd) {
        return Some(Ok(library));
    }
    is_for_us(fd, bytes(message.msg_name.cast(), message.msg_namelen)).then(|| adopt(fd))
}

/// sendmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: by the manual of the call it is a message, or null.
    match unsafe { message.as_ref() }.and_then(|one| sending(fd, one)) {
        Some(Ok(library)) => sent(library, fd, flags, (library.sendmsg)(fd, message, flags)),
        Some(Err(error)) => fail(error),
        None => real::sendmsg(fd, message, flags),
    }
}

/// recvmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    given!(fd, library => (library.recvmsg)(fd, message, flags), real::recvmsg(fd, message, flags))
}

/// sendmmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    let first = if count == 0 { null_mut() } else { messages };
    // SAFETY: by the manual of the call it points to this many messages, or is null.
    match unsafe { first.as_ref() }.and_then(|first| sending(fd, &first.msg_hdr)) {
        Some(Ok(library)) => sent(library, fd, flags, (library.sendmmsg)(fd, messages, count, flags)),
        Some(Err(error)) => fail(error),
        None => real::sendmmsg(fd, messages, count, flags),
    }
}

/// recvmmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    given!(fd, library => (library.recvmmsg)(fd, messages, count, flags, timeout), {
        real::recvmmsg(fd, messages, count, flags, timeout)
    })
}

/// sendfile(2).
#[unsafe(no_mangle)]
pub extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    if library_for(from).is_some() {
        return fail(Errno::EINVAL);
    }
    let Some(library) = library_for(to) else { return real::sendfile(to, from, offset, count) };
    // SAFETY: by the manual of the call it is a writable offset, or null.
    let mut given = unsafe { offset.as_mut() };
    let begin = match &given {
        Some(given) => **given,
        // SAFETY: a call without memory.
        None => unsafe { libc::lseek(from, 0, libc::SEEK_CUR) },
    };
    if begin < 0 {
        return -1;
    }
    let (mut total, mut buffer) = (0usize, vec![0u8; LONGEST.min(count)]);
    while total < count {
        let wanted = buffer.len().min(count - total);
        let at = begin.saturating_add(total as off_t);
        // SAFETY: the buffer has this many bytes.
        let got = unsafe { libc::pread(from, buffer.as_mut_ptr().cast(), wanted, at) };
        let Ok(got) = usize::try_from(got) else { return if total > 0 { total as ssize_t } else { -1 } };
        if got == 0 {
            break;
        }
        let result = sent(library, to, 0, (library.send)(to, buffer.as_ptr().cast(), got, 0));
        let Ok(moved) = usize::try_from(result) else {
            if total == 0 {
                return -1;
            }
            break;
        };
        total += moved;
        let end = begin.saturating_add(total as off_t);
        match &mut given {
            Some(given) => **given = end,
            // SAFETY: a call without memory.
            None => drop(unsafe { libc::lseek(from, end, libc::SEEK_SET) }),
        }
        if moved < got {
            break;
        }
    }
    total as ssize_t
}

/// sendfile(2) of programs compiled with large file support.
#[unsafe(no_mangle)]
pub extern "C" fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    sendfile(to, from, offset, count)
}
