//! The calls of BSD.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::memory::{self, borrowed};
use super::{address, answer, done};
use crate::socket::{Socket, State, errno};
use crate::table;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::libc::{self, c_int, iovec, size_t, socklen_t, ssize_t};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::SockFlag;
use std::ffi::{c_long, c_short, c_ulong, c_void};
use std::io::{IoSliceMut, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn is_nonblocking(fd: RawFd) -> nix::Result<bool> {
    Ok(OFlag::from_bits_truncate(fcntl(borrowed(fd)?, FcntlArg::F_GETFL)?).contains(OFlag::O_NONBLOCK))
}

/// Waits until the descriptor shows one of `events`.
fn wait(socket: &Socket, fd: RawFd, events: PollFlags, until: Option<Instant>) -> nix::Result<()> {
    if socket.home.driven {
        let wait = socket.home.waiter().ok_or(Errno::EAGAIN)?;
        return if wait(fd, events.bits()) == 0 { Ok(()) } else { Err(Errno::EINTR) };
    }
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let timeout = match left {
        None => PollTimeout::NONE,
        // Rounded up: not before the time is over.
        Some(left) => PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX),
    };
    let bell = socket.home.bell();
    let mut both = [PollFd::new(borrowed(fd)?, events), PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    let ready = poll(&mut both, timeout)?;
    let any = |fd: &PollFd<'_>| fd.any() == Some(true);
    match both {
        _ if ready == 0 && left.is_some_and(|left| left.is_zero()) => Err(Errno::EAGAIN),
        [socket, bell] if !any(&socket) && any(&bell) => Err(Errno::EINTR),
        _ => Ok(()),
    }
}

/// Tries until it need not wait, or must not.
fn call<T>(
    fd: RawFd,
    events: PollFlags,
    flags: c_int,
    mut attempt: impl FnMut(&Arc<Socket>) -> nix::Result<T>,
) -> nix::Result<T> {
    let mut until = None;
    loop {
        let socket = table::get(fd)?;
        match attempt(&socket) {
            Err(Errno::EAGAIN) => {}
            other => return other,
        }
        if flags & libc::MSG_DONTWAIT != 0 || is_nonblocking(fd)? {
            return Err(Errno::EAGAIN);
        }
        let until = *until.get_or_insert_with(|| {
            let choices = socket.choices();
            let receives = events.contains(PollFlags::POLLIN);
            let time = if receives { choices.receive_timeout } else { choices.send_timeout };
            time.and_then(|time| Instant::now().checked_add(time))
        });
        wait(&socket, fd, events, until)?;
    }
}

fn receive(fd: RawFd, buffer: &mut [u8], flags: c_int) -> nix::Result<(usize, Option<SocketAddr>)> {
    let mut got = 0;
    loop {
        let (n, from) = call(fd, PollFlags::POLLIN, flags, |socket| {
            let rest = &mut buffer[got..];
            let peek = flags & libc::MSG_PEEK != 0;
            let result = match socket.state() {
                State::Unbound | State::Datagram(_) => {
                    let udp = socket.datagram()?;
                    let received = if peek { udp.peek_from(rest) } else { udp.recv_from(rest) };
                    received.map(|(n, from)| (n, Some(socket.outward(from))))
                }
                _ => {
                    let stream = socket.stream()?;
                    if peek {
                        stream.peek(rest).map(|n| (n, None))
                    } else {
                        stream.read_into(&mut [IoSliceMut::new(rest)]).map(|n| (n, None))
                    }
                }
            };
            result.map_err(|error| errno(&error))
        })
        .or_else(|error| if got > 0 { Ok((0, None)) } else { Err(error) })?;
        got += n;
        let all = flags & libc::MSG_WAITALL != 0 && flags & libc::MSG_PEEK == 0 && from.is_none();
        if !all || n == 0 || got == buffer.len() {
            return Ok((got, from));
        }
    }
}

fn transmit(fd: RawFd, bytes: &[u8], flags: c_int, to: Option<SocketAddr>) -> nix::Result<usize> {
    let mut sent = 0;
    loop {
        let one = call(fd, PollFlags::POLLOUT, flags, |socket| {
            let result = match socket.state() {
                State::Unbound | State::Datagram(_) => {
                    let to = to.map(|to| socket.inward(to)).transpose()?;
                    let udp = socket.datagram_to(to)?;
                    match to {
                        Some(to) => udp.send_to(bytes, to),
                        None => udp.send(bytes),
                    }
                }
                _ => (&socket.stream()?).write(&bytes[sent..]),
            };
            result.map_err(|error| errno(&error))
        });
        match one {
            Ok(n) => sent += n,
            Err(_) if sent > 0 => return Ok(sent),
            Err(error) => return Err(error),
        }
        // A blocking write writes all.
        if sent >= bytes.len() {
            return Ok(sent);
        }
    }
}

fn length(n: usize) -> ssize_t {
    n.try_into().unwrap_or(ssize_t::MAX)
}

/// bind(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_bind(fd: c_int, at: *const c_void, len: socklen_t) -> c_int {
    done(|| table::get(fd)?.bind(address::decode(at, len)?))
}

/// listen(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_listen(fd: c_int, backlog: c_int) -> c_int {
    done(|| table::get(fd)?.listen(backlog))
}

/// accept4(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_accept4(fd: c_int, at: *mut c_void, len: *mut socklen_t, flags: c_int) -> c_int {
    answer(|| {
        let flags = SockFlag::from_bits_truncate(flags);
        let (accepted, from) = call(fd, PollFlags::POLLIN, 0, |socket| socket.accept(flags))?;
        address::encode(from, at, len)?;
        Ok(accepted)
    })
}

/// accept(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_accept(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
    fp_accept4(fd, at, len, 0)
}

/// connect(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_connect(fd: c_int, to: *const c_void, len: socklen_t) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        match socket.connect(address::decode(to, len)?) {
            Err(Errno::EINPROGRESS) if !is_nonblocking(fd)? => {}
            other => return other,
        }
        let stream = socket.stream()?;
        let until = socket.choices().send_timeout.and_then(|time| Instant::now().checked_add(time));
        while stream.is_connecting() {
            let waited = wait(&socket, fd, PollFlags::POLLOUT, until);
            waited.map_err(|error| if error == Errno::EAGAIN { Errno::EINPROGRESS } else { error })?;
            table::get(fd)?;
        }
        match socket.take_error(borrowed(fd)?) {
            0 => Ok(()),
            error => Err(Errno::from_raw(error)),
        }
    })
}

/// recv(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_recv(fd: c_int, buffer: *mut c_void, len: size_t, flags: c_int) -> ssize_t {
    answer(|| receive(fd, memory::bytes_mut(buffer.cast(), len)?, flags).map(|(n, _)| length(n)))
}

/// read(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_read(fd: c_int, buffer: *mut c_void, len: size_t) -> ssize_t {
    fp_recv(fd, buffer, len, 0)
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
        let (n, from) = receive(fd, memory::bytes_mut(buffer.cast(), len)?, flags)?;
        match from {
            Some(from) => address::encode(from, at, at_len)?,
            None if !at_len.is_null() => memory::write(at_len, 0)?,
            None => {}
        }
        Ok(length(n))
    })
}

/// readv(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_readv(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    answer(|| {
        let mut all = 0;
        for part in vectors(parts, count)? {
            let flags = if all > 0 { libc::MSG_DONTWAIT } else { 0 };
            match receive(fd, memory::bytes_mut(part.iov_base.cast(), part.iov_len)?, flags) {
                Ok((n, _)) => {
                    all += n;
                    if n < part.iov_len {
                        break;
                    }
                }
                Err(_) if all > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(length(all))
    })
}

fn vectors<'a>(parts: *const iovec, count: c_int) -> nix::Result<&'a [iovec]> {
    let count = usize::try_from(count).ok().filter(|n| *n <= 1024).ok_or(Errno::EINVAL)?;
    memory::values(parts, count)
}

/// send(2); never raises SIGPIPE.
#[unsafe(no_mangle)]
pub extern "C" fn fp_send(fd: c_int, buffer: *const c_void, len: size_t, flags: c_int) -> ssize_t {
    answer(|| transmit(fd, memory::bytes(buffer.cast(), len)?, flags, None).map(length))
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
        let to = if to.is_null() { None } else { Some(address::decode(to, to_len)?) };
        transmit(fd, memory::bytes(buffer.cast(), len)?, flags, to).map(length)
    })
}

/// writev(2); never raises SIGPIPE. Of a UDP socket it sends one datagram.
#[unsafe(no_mangle)]
pub extern "C" fn fp_writev(fd: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    answer(|| {
        let mut all = Vec::new();
        for part in vectors(parts, count)? {
            all.extend_from_slice(memory::bytes(part.iov_base.cast(), part.iov_len)?);
        }
        transmit(fd, &all, 0, None).map(length)
    })
}

/// shutdown(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_shutdown(fd: c_int, how: c_int) -> c_int {
    done(|| {
        let how = match how {
            libc::SHUT_RD => Shutdown::Read,
            libc::SHUT_WR => Shutdown::Write,
            libc::SHUT_RDWR => Shutdown::Both,
            _ => return Err(Errno::EINVAL),
        };
        table::get(fd)?.stream()?.shutdown(how).map_err(|error| errno(&error))
    })
}

/// close(2); whoever waits in the socket hears of it.
#[unsafe(no_mangle)]
pub extern "C" fn fp_close(fd: c_int) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        table::forget(fd, &socket);
        // Whoever polls it must not go on for ever.
        let _ = nix::sys::socket::shutdown(fd, nix::sys::socket::Shutdown::Both);
        nix::unistd::close(fd)
    })
}

/// getsockname(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_getsockname(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
    done(|| address::encode(table::get(fd)?.local(), at, len))
}

/// getpeername(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_getpeername(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
    done(|| address::encode(table::get(fd)?.peer()?, at, len))
}

/// fcntl(2): F_GETFL, F_SETFL, F_GETFD, F_SETFD. The system's own works as well.
#[unsafe(no_mangle)]
pub extern "C" fn fp_fcntl(fd: c_int, command: c_int, value: c_long) -> c_int {
    answer(|| {
        table::get(fd)?;
        let value = value as c_int;
        let command = match command {
            libc::F_GETFL => FcntlArg::F_GETFL,
            libc::F_SETFL => FcntlArg::F_SETFL(OFlag::from_bits_truncate(value)),
            libc::F_GETFD => FcntlArg::F_GETFD,
            libc::F_SETFD => FcntlArg::F_SETFD(FdFlag::from_bits_truncate(value)),
            _ => return Err(Errno::EINVAL),
        };
        fcntl(borrowed(fd)?, command)
    })
}

/// ioctl(2): FIONREAD, TIOCOUTQ, FIONBIO.
#[unsafe(no_mangle)]
pub extern "C" fn fp_ioctl(fd: c_int, request: c_ulong, value: *mut c_int) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        match request {
            libc::FIONREAD => {
                let there = match socket.state() {
                    State::Datagram(udp) => udp.available(),
                    State::Listening(_) => return Err(Errno::EINVAL),
                    _ => socket.stream().map_or(0, |stream| stream.available()),
                };
                memory::write(value, there.try_into().unwrap_or(c_int::MAX))
            }
            libc::TIOCOUTQ => {
                let seen = socket.stream()?.inspect().map_err(|error| errno(&error))?;
                let left = (seen.memory.send_bytes + seen.waiting).get();
                memory::write(value, left.try_into().unwrap_or(c_int::MAX))
            }
            libc::FIONBIO => {
                let mut flags = OFlag::from_bits_truncate(fcntl(borrowed(fd)?, FcntlArg::F_GETFL)?);
                flags.set(OFlag::O_NONBLOCK, memory::read(value)? != 0);
                fcntl(borrowed(fd)?, FcntlArg::F_SETFL(flags)).map(drop)
            }
            _ => Err(Errno::ENOTTY),
        }
    })
}

/// poll(2). The system's own works as well, but for sockets of a host that the program drives it does not let time pass.
#[unsafe(no_mangle)]
pub extern "C" fn fp_poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int {
    answer(|| {
        let watched = memory::values(fds, count as usize)?;
        let driven = watched.iter().find_map(|one| {
            let socket = table::get(one.fd).ok().filter(|socket| socket.home.driven)?;
            Some((one.fd, one.events as c_short, socket))
        });
        loop {
            let now = if driven.is_some() { 0 } else { timeout };
            // SAFETY: `values` has checked that it is not null, and by its contract `count` values are there.
            let ready = Errno::result(unsafe { libc::poll(fds, count, now) })?;
            match &driven {
                Some((fd, events, socket)) if ready == 0 && timeout != 0 => {
                    let wait = socket.home.waiter().ok_or(Errno::EAGAIN)?;
                    if wait(*fd, *events) != 0 {
                        return Ok(0);
                    }
                }
                _ => return Ok(ready),
            }
        }
    })
}
