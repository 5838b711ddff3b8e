//! A descriptor that the system knows, for a socket that it does not.
//!
//! It is one end of a pair of connected local sockets. The library has the other end, the link, and makes the program's end
//! show what the socket can do:
//!
//! * readable: the library has put a byte, the token, into it, and one more whenever something more has come, so that event loops
//!   that wait for changes alone (EPOLLET) hear of it; whoever reads the socket empty takes them out again;
//! * writable: its send buffer is empty enough; to make it not writable, the library fills it from the program's end, and
//!   empties it from the link;
//! * urgent data (`POLLPRI`): the token is sent out of band;
//! * the peer has finished (`POLLRDHUP`): the link is shut down for writing; both have (`POLLHUP`): for both;
//! * an error waits (`POLLERR`): the link is closed while something of the program's end lies unread in it, the fuse.
//!
//! What needs the program's end (taking tokens, filling) happens only in calls that the program makes with it, so its
//! number cannot mean another file by then. The station's thread uses the link alone. When the program closes its end with
//! close(2), the link hangs up; it then shows this even if it had hung up before, because each change is told.

use farpace_live::socket::{Readiness, Watch};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, Shutdown, SockFlag, SockType, recv, send, setsockopt, shutdown, socketpair,
    sockopt,
};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// With a send buffer this small (the system's least) ...
const BUFFER: usize = 1;
/// ... so many bytes leave no room, and
const FILL: [u8; 1024] = [0; 1024];
/// this leaves enough.
const FUSE: [u8; 1] = [0];
/// Tokens at most. A program that makes no call for so many arrivals hears of no more of them.
const MAX_TOKENS: usize = 64;
/// So many of them are taken out when a program reads without reading the socket empty.
const MANY_TOKENS: usize = 16;

/// A new pair: the program's end, and the library's.
pub fn pair(flags: SockFlag) -> nix::Result<(OwnedFd, OwnedFd)> {
    let (user, link) = socketpair(
        AddressFamily::Unix,
        SockType::Stream,
        None,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
    )?;
    setsockopt(&user, sockopt::SndBuf, &BUFFER)?;
    send(user.as_raw_fd(), &FUSE, QUIET)?;
    use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
    if !flags.contains(SockFlag::SOCK_NONBLOCK) {
        fcntl(&user, FcntlArg::F_SETFL(OFlag::empty()))?;
    }
    if !flags.contains(SockFlag::SOCK_CLOEXEC) {
        fcntl(&user, FcntlArg::F_SETFD(FdFlag::empty()))?;
    }
    Ok((user, link))
}

const QUIET: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// Shows the readiness of a socket in its descriptor.
pub struct Mirror {
    user: RawFd,
    /// None: an error has been shown, and nothing can be shown after it.
    link: Option<OwnedFd>,
    /// The program has closed its end.
    gone: Arc<AtomicBool>,
    shown: Readiness,
    tokens: usize,
}

impl Mirror {
    /// For the two ends of a new pair.
    pub fn new(user: RawFd, link: OwnedFd, gone: Arc<AtomicBool>) -> Self {
        let shown = Readiness { writable: true, ..Readiness::default() };
        Mirror { user, link: Some(link), gone, shown, tokens: 0 }
    }

    fn take_tokens(&mut self, leave: usize) {
        let mut room = [0; MAX_TOKENS];
        let n = self.tokens.saturating_sub(leave).min(MAX_TOKENS);
        if n > 0 {
            let _ = recv(self.user, &mut room[..n], QUIET);
            self.tokens -= n;
        }
    }
}

impl Watch for Mirror {
    fn update(&mut self, now: Readiness) {
        if self.gone.load(Ordering::Acquire) {
            self.link = None;
            return;
        }
        let Some(link) = self.link.as_ref().map(AsRawFd::as_raw_fd) else { return };
        if now.failed {
            // Closing what holds the fuse makes it an error.
            self.link = None;
            return;
        }
        let shown = std::mem::replace(&mut self.shown, now);
        // Whatever fails here fails because the program has closed its end.
        // The ends first: they make it readable by themselves, and whoever is woken sees them together.
        if now.over && !shown.over {
            let _ = shutdown(link, Shutdown::Both);
        } else if now.read_ended && !shown.read_ended {
            let _ = shutdown(link, Shutdown::Write);
        }
        match (shown.urgent, now.urgent) {
            (false, true) => drop(send(link, &FUSE, QUIET | MsgFlags::MSG_OOB)),
            (true, false) => {
                let mut none = [0; 1];
                let _ = recv(self.user, &mut none, QUIET | MsgFlags::MSG_OOB);
            }
            _ => {}
        }
        let comes = now.readable && (!shown.readable || now.arrivals != shown.arrivals);
        if comes && !now.read_ended && self.tokens < MAX_TOKENS {
            self.tokens += usize::from(send(link, &FUSE, QUIET).is_ok());
        }
        if !now.readable {
            self.take_tokens(0);
        } else if now.reads != shown.reads && self.tokens >= MANY_TOKENS {
            self.take_tokens(1);
        }
        match (shown.writable, now.writable) {
            (true, false) => {
                let _ = send(self.user, &FILL, QUIET).and_then(|_| send(self.user, &FUSE, QUIET));
            }
            // The old fuse and what fills it; the new fuse stays.
            (false, true) => drop(recv_exactly(link, FILL.len() + FUSE.len())),
            _ => {}
        }
    }
}

fn recv_exactly(fd: RawFd, mut left: usize) -> nix::Result<()> {
    let mut buffer = [0; FILL.len() + FUSE.len()];
    while left > 0 {
        match recv(fd, &mut buffer[..left], QUIET)? {
            0 => return Err(Errno::EPIPE),
            n => left -= n,
        }
    }
    Ok(())
}
