//! A descriptor that the system knows, for a socket that it does not.
//!
//! It is one end of a pair of connected local sockets. The library has the other end, the link, and makes the program's end
//! show what the socket can do:
//!
//! * readable: the library has put one byte, the token, into it; whoever reads the socket empty takes it out again;
//! * writable: its send buffer is empty enough; to make it not writable, the library fills it from the program's end, and
//!   empties it from the link;
//! * the peer has finished (`POLLRDHUP`): the link is shut down for writing; both have (`POLLHUP`): for both;
//! * an error waits (`POLLERR`): the link is closed while something of the program's end lies unread in it, the fuse.
//!
//! What needs the program's end (taking the token, filling) happens only in calls that the program makes with it, so its
//! number cannot mean another file by then. The station's thread uses the link alone. When the program closes its end with
//! close(2), the link hangs up.

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
}

impl Mirror {
    /// For the two ends of a new pair.
    pub fn new(user: RawFd, link: OwnedFd, gone: Arc<AtomicBool>) -> Self {
        Mirror { user, link: Some(link), gone, shown: Readiness { writable: true, ..Readiness::default() } }
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
        // Whatever fails here fails because the program has closed its end.
        // The ends first: they make it readable by themselves, and whoever is woken sees them together.
        if now.over && !self.shown.over {
            let _ = shutdown(link, Shutdown::Both);
        } else if now.read_ended && !self.shown.read_ended {
            let _ = shutdown(link, Shutdown::Write);
        }
        let mut none = [0; 1];
        match (self.shown.readable, now.readable) {
            (false, true) if !now.read_ended => drop(send(link, &FUSE, QUIET)),
            (true, false) => drop(recv(self.user, &mut none, QUIET)),
            _ => {}
        }
        match (self.shown.writable, now.writable) {
            (true, false) => {
                let _ = send(self.user, &FILL, QUIET).and_then(|_| send(self.user, &FUSE, QUIET));
            }
            // The old fuse and what fills it; the new fuse stays.
            (false, true) => drop(recv_exactly(link, FILL.len() + FUSE.len())),
            _ => {}
        }
        self.shown = now;
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
