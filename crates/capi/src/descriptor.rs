//! Descriptors of the system for sockets that it does not know.
//!
//! A descriptor is one end of a pair of connected local sockets. The library holds the other end, the link,
//! and sets the state of the program's end to the readiness of the socket:
//!
//! * readable: the library has written a byte, the token, to it, and another one after each arrival, so that
//!   edge-triggered event loops (EPOLLET) are woken. A read that empties the socket removes the tokens;
//! * writable: its send buffer has space. To make it not writable, the library fills the buffer from the
//!   program's end, and drains it from the link;
//! * urgent data (`POLLPRI`): the token is sent out of band;
//! * the peer has closed its direction (`POLLRDHUP`): the link is shut down for writing; both directions are
//!   closed (`POLLHUP`): the link is shut down for both;
//! * a pending error (`POLLERR`): the link is closed while a byte of the program's end, the fuse, is unread
//!   in it.
//!
//! The program's end may have several descriptors (dup(2)). [`DescriptorEnds`] records those of this process
//! under a lock, so that a number cannot change its file while the mirror removes tokens from it or fills it.
//! The driver's thread uses the link only.
//!
//! When the last descriptor of the program's end is closed, the link hangs up. After the link has hung up by
//! itself, or is closed, the ballast signals this instead: the end of a pipe that is queued unread at the
//! program's end, and is closed with it. It must be queued before the link is shut down. So a thread that
//! polls at this moment may see `POLLIN` alone, and `POLLRDHUP`, `POLLHUP` or `POLLERR` when it polls again.

use crate::ffi::{aside, has_hung_up};
use crate::links::Links;
use crate::spare::{self, SparePipe};
use farpace_live::socket::{Readiness, ReadinessWatch};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, recv, send, sendmsg, setsockopt,
    shutdown, socketpair, sockopt,
};
use std::cell::Cell;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// With this small send buffer (the minimum of the system) ...
const BUFFER: usize = 1;
/// ... this many bytes leave no space, and
const FILL: [u8; 1024] = [0; 1024];
/// this many leave enough.
const FUSE: [u8; 1] = [0];
/// Maximum number of tokens. A program that makes no call for this many arrivals is not notified of more.
const MAX_TOKENS: usize = 64;
/// Number of tokens removed when a program reads without emptying the socket.
const MANY_TOKENS: usize = 16;

/// Creates a pair: the program's end, and the link.
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
    Ok((user, aside(link)))
}

const QUIET: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// Both ends of a socket's pair.
pub struct DescriptorEnds {
    /// Inode number of the program's end.
    inode: AtomicU64,
    /// Descriptors of the program's end in this process.
    users: Mutex<Vec<RawFd>>,
    link: Mutex<DescriptorLink>,
}

#[derive(Default)]
struct DescriptorLink {
    /// None: an error has been shown, after which nothing can be shown.
    end: Option<OwnedFd>,
    /// It cannot signal any more that the program's end is closed.
    undetectable: bool,
    /// The other end of the ballast.
    ballast: Option<OwnedFd>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DescriptorEnds {
    /// The ends of a new pair.
    pub fn new(inode: u64, link: OwnedFd) -> Self {
        let link = DescriptorLink { end: Some(link), ..DescriptorLink::default() };
        DescriptorEnds { inode: AtomicU64::new(inode), users: Mutex::default(), link: Mutex::new(link) }
    }
    /// Inode number of the program's end.
    pub fn inode(&self) -> u64 {
        self.inode.load(Ordering::Acquire)
    }
    /// Replaces the pair.
    pub fn replace(&self, inode: u64, link: OwnedFd) {
        *locked(&self.link) = DescriptorLink { end: Some(link), ..DescriptorLink::default() };
        self.inode.store(inode, Ordering::Release);
    }
    /// Adds a descriptor of the program.
    pub fn add_user(&self, fd: RawFd) {
        let mut users = locked(&self.users);
        users.retain(|user| *user != fd);
        users.push(fd);
    }
    /// Removes a descriptor of the program; true: it was the last of this process.
    pub fn remove_user(&self, fd: RawFd) -> bool {
        let mut users = locked(&self.users);
        users.retain(|user| *user != fd);
        users.is_empty()
    }
    /// Number of descriptors of this process.
    pub fn users(&self) -> usize {
        locked(&self.users).len()
    }
    /// True if all descriptors of the program's end are closed, in every process.
    pub fn are_closed(&self) -> bool {
        let _quiet = no_fork();
        let link = locked(&self.link);
        let end = link.end.as_ref().filter(|_| !link.undetectable);
        link.ballast.as_ref().or(end).is_some_and(|end| has_hung_up(end.as_raw_fd()))
    }
    /// In a child of fork(2): closes the ends of the stack, which belong to the owner.
    pub fn close_link(&self) {
        *locked(&self.link) = DescriptorLink::default();
    }
    /// Calls `work` with the program's end, if this process has it.
    fn with_user(&self, work: impl FnOnce(RawFd)) {
        if let Some((inode, user)) = ACTING.get()
            && inode == self.inode()
        {
            work(user);
        } else if let Some(user) = locked(&self.users).first() {
            work(*user);
        }
    }
}

thread_local! {
    /// The inode number and a descriptor of the program's end that this thread serves.
    static ACTING: Cell<Option<(u64, RawFd)>> = const { Cell::new(None) };
}

/// Runs `work` for a process that has sent a descriptor of its end.
pub fn acting<R>(inode: u64, user: RawFd, work: impl FnOnce() -> R) -> R {
    ACTING.set(Some((inode, user)));
    let result = work();
    ACTING.set(None);
    result
}

/// Held while links change, so that a child of fork(2) never sees a partial change. Never acquired while the
/// table is locked.
static LINK_CHANGES: RwLock<()> = RwLock::new(());

/// Prevents fork(2) while it is held.
pub fn no_fork() -> RwLockReadGuard<'static, ()> {
    LINK_CHANGES.read().unwrap_or_else(PoisonError::into_inner)
}
/// Prevents changes of links while it is held.
pub fn hold() -> RwLockWriteGuard<'static, ()> {
    LINK_CHANGES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the state of a descriptor to the readiness of its socket.
pub struct Mirror {
    ends: Arc<DescriptorEnds>,
    links: Arc<Links>,
    shown: Readiness,
    tokens: usize,
}

impl Mirror {
    /// A mirror for the ends of a new pair.
    pub fn new(ends: Arc<DescriptorEnds>, links: Arc<Links>) -> Self {
        let shown = Readiness { writable: true, ..Readiness::default() };
        Mirror { ends, links, shown, tokens: 0 }
    }

    fn take_tokens(&mut self, leave: usize) {
        let mut room = [0; MAX_TOKENS];
        let n = self.tokens.saturating_sub(leave).min(MAX_TOKENS);
        if n > 0 {
            self.ends.with_user(|user| {
                let _ = recv(user, &mut room[..n], QUIET);
            });
            self.tokens -= n;
        }
    }

    /// Sends the ballast, before the link is shut down.
    fn load_ballast(&self, link: &mut DescriptorLink) {
        let Some(end) = link.end.as_ref().filter(|_| link.ballast.is_none()) else { return };
        // Without descriptors for it, the socket is released when its number is reused.
        let Ok(SparePipe { read, write }) = spare::take() else { return };
        let rights = [write.as_raw_fd()];
        let control = [ControlMessage::ScmRights(&rights)];
        let sent = sendmsg::<()>(end.as_raw_fd(), &[IoSlice::new(&FUSE)], &control, QUIET, None);
        if sent.is_ok() && self.links.notice(&read, self.ends.inode()).is_ok() {
            link.ballast = Some(read);
        }
    }
}

impl ReadinessWatch for Mirror {
    fn update(&mut self, now: Readiness) {
        let _quiet = no_fork();
        let ends = self.ends.clone();
        let mut both = locked(&ends.link);
        if both.end.is_none() {
            return;
        }
        if now.failed || now.over || now.read_ended {
            self.load_ballast(&mut both);
        }
        if now.failed {
            // Closing the link with the unread fuse causes the error.
            both.end = None;
            return;
        }
        let Some(link) = both.end.as_ref().map(AsRawFd::as_raw_fd) else { return };
        let shown = std::mem::replace(&mut self.shown, now);
        // Errors here mean that the program has closed its end. Shut down first: this makes the end readable
        // by itself, and a woken program sees both together.
        if now.over && !shown.over {
            both.undetectable = true;
            let _ = shutdown(link, Shutdown::Both);
        } else if now.read_ended && !shown.read_ended {
            let _ = shutdown(link, Shutdown::Write);
        }
        match (shown.urgent, now.urgent) {
            (false, true) => drop(send(link, &FUSE, QUIET | MsgFlags::MSG_OOB)),
            (true, false) => self.ends.with_user(|user| {
                let mut none = [0; 1];
                let _ = recv(user, &mut none, QUIET | MsgFlags::MSG_OOB);
            }),
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
            (true, false) => self.ends.with_user(|user| {
                let _ = send(user, &FILL, QUIET).and_then(|_| send(user, &FUSE, QUIET));
            }),
            // Removes the old fuse and the filling; the new fuse stays.
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
