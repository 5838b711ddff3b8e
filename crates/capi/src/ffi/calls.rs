//! Calls that change or query the state of a socket.

#![allow(unsafe_code, reason = "names for C; what is done with its memory is in memory.rs")]

use super::memory::{self, borrowed};
use super::wait::{call, end_of, is_nonblocking, wait};
use super::{answer, done};
use crate::creation::{accept, connect};
use crate::descriptor::no_fork;
use crate::share::server::is_shared;
use crate::spare;
use crate::table;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::libc::{self, c_int, socklen_t};
use nix::poll::PollFlags;
use nix::sys::socket::SockFlag;
use std::ffi::{c_long, c_short, c_ulong, c_void};
use std::time::Duration;

/// SIOCOUTQNSD and SIOCATMARK of `linux/sockios.h`.
const SIOCOUTQNSD: c_ulong = 0x894b;
const SIOCATMARK: c_ulong = 0x8905;

/// bind(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_bind(fd: c_int, at: *const c_void, len: socklen_t) -> c_int {
    done(|| table::get(fd)?.bind(memory::address(at, len)?))
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
        let flags = SockFlag::from_bits(flags).ok_or(Errno::EINVAL)?;
        let (accepted, from) = call(fd, PollFlags::POLLIN, 0, |socket| accept(socket, flags))?;
        if !at.is_null() {
            memory::write_address(Some(from), at, len)?;
        }
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
        let blocking = !is_nonblocking(fd)?;
        match connect(&socket, fd, memory::address(to, len)?) {
            Err(Errno::EINPROGRESS | Errno::EALREADY) if blocking => {}
            other => return other,
        }
        let until = end_of(&socket, socket.send_timeout());
        while socket.is_connecting() {
            let waited = wait(&socket, fd, PollFlags::POLLOUT, until);
            waited.map_err(|error| if error == Errno::EAGAIN { Errno::EINPROGRESS } else { error })?;
            table::get(fd)?;
        }
        match socket.take_error(borrowed(fd)?) {
            0 => {
                // The call reports success to the program.
                socket.report_open();
                Ok(())
            }
            error => {
                // As after a call that did not wait, the socket can be used again.
                socket.forget_failed();
                Err(Errno::from_raw(error))
            }
        }
    })
}

/// shutdown(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_shutdown(fd: c_int, how: c_int) -> c_int {
    done(|| table::get(fd)?.shutdown(how))
}

/// close(2). Waiting calls return if this is the last descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn fp_close(fd: c_int) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        if is_shared() || socket.here().is_none() {
            // The last of all processes closes it.
            table::strike(fd, &socket);
            let closed = nix::unistd::close(fd);
            table::lose(fd, &socket);
            return closed;
        }
        if socket.here().is_some_and(|local| local.ends.users() == 1) {
            // A thread that polls it must be woken.
            let _ = nix::sys::socket::shutdown(fd, nix::sys::socket::Shutdown::Both);
        }
        table::forget(fd, &socket);
        nix::unistd::close(fd)?;
        let _still = no_fork();
        spare::refill();
        Ok(())
    })
}

/// getsockname(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_getsockname(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
    done(|| memory::write_address(Some(table::get(fd)?.local()?), at, len))
}

/// getpeername(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_getpeername(fd: c_int, at: *mut c_void, len: *mut socklen_t) -> c_int {
    done(|| memory::write_address(Some(table::get(fd)?.peer()?), at, len))
}

/// dup(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_dup(fd: c_int) -> c_int {
    fp_fcntl(fd, libc::F_DUPFD, 0)
}

/// dup2(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_dup2(fd: c_int, at: c_int) -> c_int {
    if fd == at { answer(|| table::get(fd).map(|_| fd)) } else { fp_dup3(fd, at, 0) }
}

/// dup3(2).
#[unsafe(no_mangle)]
pub extern "C" fn fp_dup3(fd: c_int, at: c_int, flags: c_int) -> c_int {
    answer(|| {
        let socket = table::get(fd)?;
        let copy = memory::copy_to(fd, at, flags)?;
        table::share(&socket, copy);
        Ok(copy)
    })
}

/// fcntl(2): F_GETFL, F_SETFL, F_GETFD and F_SETFD, for which the system's call works too; F_DUPFD and
/// F_DUPFD_CLOEXEC.
#[unsafe(no_mangle)]
pub extern "C" fn fp_fcntl(fd: c_int, command: c_int, value: c_long) -> c_int {
    answer(|| {
        let socket = table::get(fd)?;
        let value = value as c_int;
        let command = match command {
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                let command = match command {
                    libc::F_DUPFD => FcntlArg::F_DUPFD(value),
                    _ => FcntlArg::F_DUPFD_CLOEXEC(value),
                };
                let copy = fcntl(borrowed(fd)?, command)?;
                table::share(&socket, copy);
                return Ok(copy);
            }
            libc::F_GETFL => FcntlArg::F_GETFL,
            libc::F_SETFL => FcntlArg::F_SETFL(OFlag::from_bits_truncate(value)),
            libc::F_GETFD => FcntlArg::F_GETFD,
            libc::F_SETFD => FcntlArg::F_SETFD(FdFlag::from_bits_truncate(value)),
            _ => return Err(Errno::EINVAL),
        };
        fcntl(borrowed(fd)?, command)
    })
}

/// ioctl(2): FIONREAD (SIOCINQ), TIOCOUTQ (SIOCOUTQ), SIOCOUTQNSD, SIOCATMARK, FIONBIO.
#[unsafe(no_mangle)]
pub extern "C" fn fp_ioctl(fd: c_int, request: c_ulong, value: *mut c_int) -> c_int {
    done(|| {
        let socket = table::get(fd)?;
        let tell = |n: usize| memory::write(value, n.try_into().unwrap_or(c_int::MAX));
        match request {
            libc::FIONREAD => tell(socket.available()?),
            libc::TIOCOUTQ => tell(socket.unacknowledged()?.0),
            SIOCOUTQNSD if !socket.is_datagram() => tell(socket.unacknowledged()?.1),
            SIOCATMARK if !socket.is_datagram() => tell(socket.is_at_mark().into()),
            libc::FIONBIO => {
                let mut flags = OFlag::from_bits_truncate(fcntl(borrowed(fd)?, FcntlArg::F_GETFL)?);
                flags.set(OFlag::O_NONBLOCK, memory::read(value)? != 0);
                fcntl(borrowed(fd)?, FcntlArg::F_SETFL(flags)).map(drop)
            }
            _ => Err(Errno::ENOTTY),
        }
    })
}

/// poll(2). The system's call works too, but does not advance the time of a host that the program drives.
#[unsafe(no_mangle)]
pub extern "C" fn fp_poll(fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int {
    answer(|| {
        let watched = memory::values(fds, count as usize)?;
        let driven = watched.iter().find_map(|one| {
            let socket = table::get(one.fd).ok().filter(|socket| socket.is_driven())?;
            Some((one.fd, one.events as c_short, socket))
        });
        let time = u64::try_from(timeout).ok().map(Duration::from_millis);
        let until = driven.as_ref().map(|(_, _, socket)| end_of(socket, time));
        loop {
            let now = if driven.is_some() { 0 } else { timeout };
            // SAFETY: `values` has checked that it is not null, and by its contract it points to `count`
            // values.
            let ready = Errno::result(unsafe { libc::poll(fds, count, now) })?;
            match &driven {
                Some((fd, events, socket)) if ready == 0 && timeout != 0 => {
                    if until.flatten().is_some_and(|until| until <= socket.now()) {
                        return Ok(0);
                    }
                    let wait = socket.waiter().ok_or(Errno::EAGAIN)?;
                    if wait(*fd, *events) != 0 {
                        return Ok(0);
                    }
                }
                _ => return Ok(ready),
            }
        }
    })
}
