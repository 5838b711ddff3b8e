//! Calls that take messages, many messages, or a file: made of the simpler ones.

#![allow(unsafe_code, reason = "names for C, and memory of the program as the manual of each call says")]

use crate::calls::{adopt, bytes, fail, is_for_us, ours};
use crate::library::Library;
use crate::real;
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, iovec, mmsghdr, msghdr, off_t, size_t, ssize_t};
use std::ptr::null_mut;

/// The longest datagram; and as much of a file or a message as is moved at once.
const LONGEST: usize = 1 << 16;

/// The parts of a message.
fn parts<'a>(message: &msghdr) -> &'a [iovec] {
    if message.msg_iov.is_null() || message.msg_iovlen > 1024 {
        return &[];
    }
    // SAFETY: not null; by the manual of the call so many parts are there for as long as it lasts.
    unsafe { std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) }
}

/// The bytes of a part, to read.
fn part<'a>(part: &iovec) -> &'a [u8] {
    if part.iov_base.is_null() {
        return &[];
    }
    // SAFETY: not null; by the manual of the call so many bytes are there, and nobody changes them while it lasts.
    unsafe { std::slice::from_raw_parts(part.iov_base.cast(), part.iov_len) }
}

/// Puts what has come into the parts of a message.
fn scatter(mut from: &[u8], into: &[iovec]) {
    for part in into.iter().filter(|part| !part.iov_base.is_null()) {
        let (now, later) = from.split_at(from.len().min(part.iov_len));
        // SAFETY: not null, by the manual of the call so many bytes are there for us to write; `now` is not longer.
        unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast(), now.len()) };
        from = later;
    }
}

/// The library, for a message that goes to `fd`.
fn sending(fd: c_int, message: &msghdr) -> Option<nix::Result<&'static Library>> {
    if let Some(library) = ours(fd) {
        return Some(Ok(library));
    }
    is_for_us(fd, bytes(message.msg_name.cast(), message.msg_namelen)).then(|| adopt(fd))
}

fn send_one(library: &Library, fd: c_int, message: &msghdr, flags: c_int) -> ssize_t {
    let all: Vec<u8> = parts(message).iter().flat_map(part).copied().collect();
    (library.sendto)(fd, all.as_ptr().cast(), all.len(), flags, message.msg_name, message.msg_namelen)
}

fn receive_one(library: &Library, fd: c_int, message: &mut msghdr, flags: c_int) -> ssize_t {
    let parts = parts(message);
    let room: usize = parts.iter().map(|part| part.iov_len).fold(0, usize::saturating_add);
    let mut buffer = vec![0u8; room.min(LONGEST)];
    let mut length = message.msg_namelen;
    let (name, length_at) = match message.msg_name.is_null() {
        true => (null_mut(), null_mut()),
        false => (message.msg_name, &raw mut length),
    };
    let got = (library.recvfrom)(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags, name, length_at);
    if let Ok(got) = usize::try_from(got) {
        scatter(buffer.get(..got).unwrap_or_default(), parts);
        (message.msg_namelen, message.msg_controllen, message.msg_flags) = (length, 0, 0);
    }
    got
}

/// sendmsg(2). What goes beside the bytes is left out.
#[unsafe(no_mangle)]
pub extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: by the manual of the call it is a message, or null.
    match unsafe { message.as_ref() }.and_then(|one| Some((one, sending(fd, one)?))) {
        Some((one, Ok(library))) => send_one(library, fd, one, flags),
        Some((_, Err(error))) => fail(error),
        None => real::sendmsg(fd, message, flags),
    }
}

/// recvmsg(2). Nothing ever comes beside the bytes.
#[unsafe(no_mangle)]
pub extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: by the manual of the call it is a message that we may write to, or null.
    match unsafe { message.as_mut() }.zip(ours(fd)) {
        Some((one, library)) => receive_one(library, fd, one, flags),
        None => real::recvmsg(fd, message, flags),
    }
}

/// Several messages.
fn many<'a>(messages: *mut mmsghdr, count: c_uint) -> &'a mut [mmsghdr] {
    if messages.is_null() {
        return &mut [];
    }
    // SAFETY: not null; by the manual of the call so many messages are there, and are ours while it lasts.
    unsafe { std::slice::from_raw_parts_mut(messages, (count as usize).min(1024)) }
}

/// How many went well, or the result of the first.
fn each(messages: &mut [mmsghdr], mut one: impl FnMut(&mut msghdr, bool) -> ssize_t) -> c_int {
    let mut done = 0;
    for message in messages {
        let Ok(moved) = c_uint::try_from(one(&mut message.msg_hdr, done == 0)) else { break };
        message.msg_len = moved;
        done += 1;
    }
    if done == 0 { -1 } else { done }
}

/// sendmmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    let all = many(messages, count);
    match all.first().and_then(|first| sending(fd, &first.msg_hdr)) {
        Some(Ok(library)) => each(all, |message, _| send_one(library, fd, message, flags)),
        Some(Err(error)) => fail(error),
        None => real::sendmmsg(fd, messages, count, flags),
    }
}

/// recvmmsg(2). It waits for the first message alone, and for that without a limit.
#[unsafe(no_mangle)]
pub extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut libc::timespec,
) -> c_int {
    let Some(library) = ours(fd) else { return real::recvmmsg(fd, messages, count, flags, timeout) };
    each(many(messages, count), |message, is_first| {
        let wait = if is_first { flags & !libc::MSG_WAITFORONE } else { flags | libc::MSG_DONTWAIT };
        receive_one(library, fd, message, wait)
    })
}

/// sendfile(2).
#[unsafe(no_mangle)]
pub extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    if ours(from).is_some() {
        return fail(Errno::EINVAL);
    }
    let Some(library) = ours(to) else { return real::sendfile(to, from, offset, count) };
    // SAFETY: by the manual of the call it is an offset that we may write to, or null.
    let mut given = unsafe { offset.as_mut() };
    let begin = match &given {
        Some(given) => **given,
        // SAFETY: a call without memory.
        None => unsafe { libc::lseek(from, 0, libc::SEEK_CUR) },
    };
    if begin < 0 {
        return -1;
    }
    let (mut sent, mut buffer) = (0usize, vec![0u8; LONGEST.min(count)]);
    while sent < count {
        let wanted = buffer.len().min(count - sent);
        let at = begin.saturating_add(sent as off_t);
        // SAFETY: the buffer has so many bytes.
        let got = unsafe { libc::pread(from, buffer.as_mut_ptr().cast(), wanted, at) };
        let Ok(got) = usize::try_from(got) else { return if sent > 0 { sent as ssize_t } else { -1 } };
        if got == 0 {
            break;
        }
        let Ok(moved) = usize::try_from((library.send)(to, buffer.as_ptr().cast(), got, 0)) else {
            if sent == 0 {
                return -1;
            }
            break;
        };
        sent += moved;
        let end = begin.saturating_add(sent as off_t);
        match &mut given {
            Some(given) => **given = end,
            // SAFETY: a call without memory.
            None => drop(unsafe { libc::lseek(from, end, libc::SEEK_SET) }),
        }
        if moved < got {
            break;
        }
    }
    sent as ssize_t
}

/// sendfile(2) of programs that were compiled for large files.
#[unsafe(no_mangle)]
pub extern "C" fn sendfile64(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    sendfile(to, from, offset, count)
}
