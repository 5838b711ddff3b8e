//! Calls that transfer bytes.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::answer;
use super::memory::{self, MAX_PARTS};
use super::wait::call;
use crate::share::frame::MAX_DATA;
use crate::table;
use farpace_live::socket::posix::{AncillaryMessage, ReceivedMessage, SendTo};
use nix::errno::Errno;
use nix::libc::{self, c_int, c_uint, iovec, mmsghdr, msghdr, size_t, socklen_t, ssize_t};
use nix::poll::PollFlags;
use std::ffi::c_void;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::RawFd;

/// Maximum number of bytes that one call discards (MSG_TRUNC without a buffer).
const MAX_LET_GO: usize = 1 << 20;

fn length(n: usize) -> ssize_t {
    n.try_into().unwrap_or(ssize_t::MAX)
}

/// Receives until there is enough: some data, SO_RCVLOWAT bytes, or all requested bytes (MSG_WAITALL).
fn receive(fd: RawFd, buffers: &mut [IoSliceMut<'_>], flags: c_int) -> nix::Result<ReceivedMessage> {
    let room: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    let mut rest = buffers;
    let mut all = ReceivedMessage::default();
    loop {
        let one = call(fd, PollFlags::POLLIN, flags, |socket| {
            let inner = socket;
            if inner.is_datagram() || flags & libc::MSG_PEEK == 0 || flags & libc::MSG_WAITALL == 0 {
                return inner.receive(rest, flags);
            }
            // Peeked data must be available at once.
            let got = inner.receive(rest, flags)?;
            let ended = inner.has_ended();
            if got.len < room.min(MAX_DATA) && !ended && got.len > 0 { Err(Errno::EAGAIN) } else { Ok(got) }
        });
        let one = match one {
            Ok(one) => one,
            Err(_) if all.len > 0 => return Ok(all),
            Err(error) => return Err(error),
        };
        let ended = one.len == 0;
        all = ReceivedMessage { len: all.len + one.len, copied: all.copied + one.copied, ..one };
        let inner = table::get(fd)?;
        let target = if flags & libc::MSG_WAITALL != 0 { room } else { inner.low_water().min(room) };
        let special = flags & (libc::MSG_PEEK | libc::MSG_OOB) != 0;
        if inner.is_datagram() || ended || special || all.len >= target {
            return Ok(all);
        }
        if flags & libc::MSG_TRUNC == 0 {
            IoSliceMut::advance_slices(&mut rest, one.copied);
        }
    }
}

/// Sends; a blocking socket sends everything.
fn transmit(fd: RawFd, parts: &mut [IoSlice<'_>], message: &SendTo<'_>) -> nix::Result<usize> {
    let wanted: usize = parts.iter().map(|part| part.len()).sum();
    let mut rest = parts;
    let mut sent = 0;
    loop {
        let one = call(fd, PollFlags::POLLOUT, message.flags, |socket| socket.send(rest, message));
        match one {
            Ok(n) => sent += n,
            Err(_) if sent > 0 => return Ok(sent),
            Err(error) => return Err(error),
        }
        if sent >= wanted {
            return Ok(sent);
        }
        let done = one.unwrap_or(0);
        IoSlice::advance_slices(&mut rest, done);
    }
}

fn counted(parts: *const iovec, count: c_int) -> nix::Result<usize> {
    let _ = parts;
    usize::try_from(count).ok().filter(|n| *n <= MAX_PARTS).ok_or(Errno::EINVAL)
}

/// recv(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    fp_recvfrom(fd, buffer, len, flags, std::ptr::null_mut(), std::ptr::null_mut())
}

/// read(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    // Unlike recv(2), an empty read has no effect.
    if len == 0 { answer(|| table::get(fd).map(|_| 0)) } else { fp_recv(fd, buffer, len, 0) }
}

/// recvfrom(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    len: size_t,
    flags: c_int,
    at: *mut c_void,
    at_len: *mut socklen_t,
) -> ssize_t {
    answer(|| {
        table::get(fd)?;
        // Discarded bytes of a stream need no buffer.
        let lets_go = buffer.is_null() && flags & (libc::MSG_TRUNC | libc::MSG_PEEK) == libc::MSG_TRUNC;
        let mut none = vec![0; if lets_go { len.min(MAX_LET_GO) } else { 0 }];
        let buffer = if lets_go { &mut none } else { memory::bytes_mut(buffer.cast(), len)? };
        let got = receive(fd, &mut [IoSliceMut::new(buffer)], flags)?;
        if !at.is_null() {
            memory::write_address(got.from, at, at_len)?;
        }
        Ok(length(got.len))
    })
}

/// readv(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    answer(|| {
        table::get(fd)?;
        let mut parts = memory::parts_mut(parts, counted(parts, count)?)?;
        if parts.iter().all(|part| part.is_empty()) {
            return Ok(0);
        }
        receive(fd, &mut parts, 0).map(|got| length(got.len))
    })
}

/// recvmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    answer(|| receive_message(fd, message, flags))
}

fn receive_message(fd: RawFd, message: *mut msghdr, flags: c_int) -> nix::Result<ssize_t> {
    table::get(fd)?;
    let mut header = memory::read(message)?;
    if header.msg_iovlen > MAX_PARTS {
        return Err(Errno::EMSGSIZE);
    }
    if !header.msg_name.is_null() && header.msg_namelen.cast_signed() < 0 {
        return Err(Errno::EINVAL);
    }
    let mut parts = memory::parts_mut(header.msg_iov, header.msg_iovlen)?;
    let got = receive(fd, &mut parts, flags)?;
    if !header.msg_name.is_null() {
        memory::write_address(got.from, header.msg_name, &raw mut header.msg_namelen)?;
    }
    let room = if header.msg_control.is_null() { 0 } else { header.msg_controllen };
    let (control, cut) = AncillaryMessage::write_all(&got.control, room);
    memory::bytes_mut(header.msg_control.cast(), control.len())?.copy_from_slice(&control);
    header.msg_controllen = control.len();
    // MSG_CMSG_CLOEXEC is reported too.
    header.msg_flags = got.flags | if cut { libc::MSG_CTRUNC } else { 0 } | flags & libc::MSG_CMSG_CLOEXEC;
    memory::write(message, header)?;
    Ok(length(got.len))
}

/// recvmmsg(2). The timeout is checked after each message, as in Linux.
#[unsafe(no_mangle)]
pub extern "C" fn fp_recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *const libc::timespec,
) -> c_int {
    answer(|| {
        let socket = table::get(fd)?;
        let until = match timeout.is_null() {
            true => None,
            false => {
                let time = memory::read(timeout)?;
                let nanos = u32::try_from(time.tv_nsec).ok().filter(|nanos| *nanos < 1_000_000_000);
                let seconds = u64::try_from(time.tv_sec).ok();
                let (seconds, nanos) = seconds.zip(nanos).ok_or(Errno::EINVAL)?;
                super::wait::end_of(&socket, Some(std::time::Duration::new(seconds, nanos)))
            }
        };
        let mut flags = flags;
        each(messages, count, |message| {
            let moved = receive_message(fd, &raw mut message.msg_hdr, flags & !libc::MSG_WAITFORONE)?;
            if flags & libc::MSG_WAITFORONE != 0 {
                flags |= libc::MSG_DONTWAIT;
            }
            let over = until.is_some_and(|until| until <= socket.now());
            Ok((moved, over))
        })
    })
}

/// send(2); never raises SIGPIPE.
#[unsafe(no_mangle)]
pub extern "C" fn fp_send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    fp_sendto(fd, buffer, len, flags, std::ptr::null(), 0)
}

/// write(2); never raises SIGPIPE.
#[unsafe(no_mangle)]
pub extern "C" fn fp_write(fd: c_int, buffer: *const c_void, len: size_t) -> ssize_t {
    fp_send(fd, buffer, len, 0)
}

/// sendto(2); never raises SIGPIPE.
#[unsafe(no_mangle)]
pub extern "C" fn fp_sendto(
    fd: c_int,
    buffer: *const c_void,
    len: size_t,
    flags: c_int,
    to: *const c_void,
    to_len: socklen_t,
) -> ssize_t {
    answer(|| {
        table::get(fd)?;
        let to = if to.is_null() { None } else { Some(memory::address(to, to_len)?) };
        let mut parts = [IoSlice::new(memory::bytes(buffer.cast(), len)?)];
        transmit(fd, &mut parts, &SendTo { to, control: Vec::new(), flags }).map(length)
    })
}

/// writev(2); never raises SIGPIPE. On a UDP socket it sends one datagram.
#[unsafe(no_mangle)]
pub extern "C" fn fp_writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    answer(|| {
        table::get(fd)?;
        let mut parts = memory::parts(parts, counted(parts, count)?)?;
        transmit(fd, &mut parts, &SendTo::default()).map(length)
    })
}

/// sendmsg(2); never raises SIGPIPE.
#[unsafe(no_mangle)]
pub extern "C" fn fp_sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    answer(|| send_message(fd, message, flags))
}

fn send_message(fd: RawFd, message: *const msghdr, flags: c_int) -> nix::Result<ssize_t> {
    table::get(fd)?;
    let header = memory::read(message)?;
    if header.msg_iovlen > MAX_PARTS {
        return Err(Errno::EMSGSIZE);
    }
    let to = match header.msg_name.is_null() {
        true => None,
        false => Some(memory::address(header.msg_name, header.msg_namelen)?).filter(|to| !to.is_empty()),
    };
    let mut parts = memory::parts(header.msg_iov, header.msg_iovlen)?;
    let control =
        AncillaryMessage::read_all(memory::bytes(header.msg_control.cast(), header.msg_controllen)?)?;
    transmit(fd, &mut parts, &SendTo { to, control, flags }).map(length)
}

/// sendmmsg(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    answer(|| {
        table::get(fd)?;
        each(messages, count, |message| Ok((send_message(fd, &raw const message.msg_hdr, flags)?, false)))
    })
}

/// Number of successful messages; `one` returns its result, and whether it is the last.
fn each(
    messages: *mut mmsghdr,
    count: c_uint,
    mut one: impl FnMut(&mut mmsghdr) -> nix::Result<(ssize_t, bool)>,
) -> nix::Result<c_int> {
    let messages = memory::values_mut(messages, (count as usize).min(MAX_PARTS))?;
    let mut done = 0;
    for message in messages {
        match one(message) {
            Ok((moved, last)) => {
                message.msg_len = c_uint::try_from(moved).unwrap_or(c_uint::MAX);
                done += 1;
                if last {
                    break;
                }
            }
            Err(_) if done > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
