//! Waiting calls on blocking sockets.

use super::memory::borrowed;
use crate::socket::CapiSocket;
use crate::table;
use farpace_units::{Instant, Span};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc::{self, c_int};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use std::os::fd::{AsFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// True if O_NONBLOCK is set.
pub fn is_nonblocking(fd: RawFd) -> nix::Result<bool> {
    Ok(OFlag::from_bits_truncate(fcntl(borrowed(fd)?, FcntlArg::F_GETFL)?).contains(OFlag::O_NONBLOCK))
}

/// The end of a wait that begins now.
pub fn end_of(socket: &CapiSocket, time: Option<Duration>) -> Option<Instant> {
    let time = time.map(|time| Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
    time.map(|time| socket.now() + time)
}

/// Waits until the descriptor has one of `events`.
///
/// # Errors
/// `EAGAIN`: `until` has passed, or the host's time would not advance; `EINTR`.
pub fn wait(socket: &CapiSocket, fd: RawFd, events: PollFlags, until: Option<Instant>) -> nix::Result<()> {
    let left = until.map(|until| until.since(socket.now()));
    if left.is_some_and(Span::is_zero) {
        return Err(Errno::EAGAIN);
    }
    if socket.is_driven() {
        let wait = socket.waiter().ok_or(Errno::EAGAIN)?;
        return if wait(fd, events.bits()) == 0 { Ok(()) } else { Err(Errno::EINTR) };
    }
    let timeout = match left {
        None => PollTimeout::NONE,
        // Rounded up, so that the wait does not end early.
        Some(left) => PollTimeout::try_from(Duration::from_millis(left.as_nanos().div_ceil(1_000_000)))
            .unwrap_or(PollTimeout::MAX),
    };
    let bell = socket.bell();
    let mut both = vec![PollFd::new(borrowed(fd)?, events)];
    both.extend(bell.as_ref().map(|bell| PollFd::new(bell.as_fd(), PollFlags::POLLIN)));
    poll(&mut both, timeout)?;
    let any = |fd: &PollFd<'_>| fd.any() == Some(true);
    match &both[..] {
        [socket, bell] if !any(socket) && any(bell) => Err(Errno::EINTR),
        _ => Ok(()),
    }
}

/// True for an error of a connection that is reported once.
fn is_reported_once(error: Errno) -> bool {
    use Errno::{ECONNABORTED, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, ENETUNREACH, EPROTO, ETIMEDOUT};
    let those = [ECONNREFUSED, ECONNRESET, ECONNABORTED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, EPROTO];
    those.contains(&error)
}

/// Repeats a call until it succeeds or must not wait. `wanted`: available data is enough, though more could
/// arrive.
pub fn call<T>(
    fd: RawFd,
    events: PollFlags,
    flags: c_int,
    mut attempt: impl FnMut(&Arc<CapiSocket>) -> nix::Result<T>,
) -> nix::Result<T> {
    let mut until = None;
    loop {
        let socket = table::get(fd)?;
        match attempt(&socket) {
            Err(Errno::EAGAIN) => {}
            Err(error) if is_reported_once(error) => {
                // Also clear the error in poll(2).
                let _ = getsockopt(&borrowed(fd)?, sockopt::SocketError);
                return Err(error);
            }
            other => return other,
        }
        if flags & libc::MSG_DONTWAIT != 0 || is_nonblocking(fd)? {
            return Err(Errno::EAGAIN);
        }
        let until = *until.get_or_insert_with(|| {
            let receives = events.contains(PollFlags::POLLIN);
            let time = if receives { socket.receive_timeout() } else { socket.send_timeout() };
            end_of(&socket, time)
        });
        wait(&socket, fd, events, until)?;
    }
}
