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
//! The program's end may have several descriptors (dup(2)). [`HostKind`] has those of this process that are known, under a lock, so that
//! a number cannot mean another file while the mirror takes tokens from it or fills it. The station's thread uses the link alone.
//!
//! When the last descriptor of the program's end is closed, the link hangs up. Once the link has hung up by itself, or is gone, a
//! ballast tells it: the end of a pipe that lies unread in the queue of the program's end, and is closed with it.

use crate::ffi::{aside, has_hung_up};
use crate::home::Links;
use farpace_live::socket::{Readiness, ReadinessWatch};
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, Shutdown, SockFlag, SockType, recv, send, sendmsg, setsockopt,
    shutdown, socketpair, sockopt,
};
use nix::unistd::pipe2;
use std::cell::Cell;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

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
    Ok((user, aside(link)))
}

const QUIET: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_NOSIGNAL);

/// Both ends of a socket's pair.
pub struct DescriptorEnds {
    /// Tells the file of the program's end from others.
    inode: AtomicU64,
    /// Descriptors of the program's end in this process.
    users: Mutex<Vec<RawFd>>,
    link: Mutex<DescriptorLink>,
}

#[derive(Default)]
struct DescriptorLink {
    /// None: an error has been shown, and nothing can be shown after it.
    end: Option<OwnedFd>,
    /// It shows no more whether the program's end is closed.
    mute: bool,
    /// The other end of the ballast.
    ballast: Option<OwnedFd>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl DescriptorEnds {
    /// For a new pair.
    pub fn new(inode: u64, link: OwnedFd) -> Self {
        let link = DescriptorLink { end: Some(link), ..DescriptorLink::default() };
        DescriptorEnds { inode: AtomicU64::new(inode), users: Mutex::default(), link: Mutex::new(link) }
    }
    /// The file of the program's end.
    pub fn inode(&self) -> u64 {
        self.inode.load(Ordering::Acquire)
    }
    /// Another pair takes the place of this one.
    pub fn replace(&self, inode: u64, link: OwnedFd) {
        *locked(&self.link) = DescriptorLink { end: Some(link), ..DescriptorLink::default() };
        self.inode.store(inode, Ordering::Release);
    }
    /// The program has one more descriptor.
    pub fn add_user(&self, fd: RawFd) {
        let mut users = locked(&self.users);
        users.retain(|user| *user != fd);
        users.push(fd);
    }
    /// The program has one less; true: it was the last of this process.
    pub fn remove_user(&self, fd: RawFd) -> bool {
        let mut users = locked(&self.users);
        users.retain(|user| *user != fd);
        users.is_empty()
    }
    /// How many descriptors this process has.
    pub fn users(&self) -> usize {
        locked(&self.users).len()
    }
    /// All descriptors of the program's end are closed, in every process.
    pub fn are_closed(&self) -> bool {
        let _quiet = quiet();
        let link = locked(&self.link);
        let end = link.end.as_ref().filter(|_| !link.mute);
        link.ballast.as_ref().or(end).is_some_and(|end| has_hung_up(end.as_raw_fd()))
    }
    /// In a child of fork(2): the ends that are the stack's are that of the owner alone.
    pub fn close_link(&self) {
        *locked(&self.link) = DescriptorLink::default();
    }
    /// Does something with the program's end, if this process has it.
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
    /// For whom this thread acts: the file and a descriptor of the program's end.
    static ACTING: Cell<Option<(u64, RawFd)>> = const { Cell::new(None) };
}

/// Does something for a process that has sent a descriptor of its end.
pub fn acting<R>(inode: u64, user: RawFd, work: impl FnOnce() -> R) -> R {
    ACTING.set(Some((inode, user)));
    let result = work();
    ACTING.set(None);
    result
}

/// Held by whoever changes links, so that none is half changed in a child of fork(2). Never while the table is held.
static STILL: RwLock<()> = RwLock::new(());

/// No fork(2) happens while this is held.
pub fn quiet() -> RwLockReadGuard<'static, ()> {
    STILL.read().unwrap_or_else(PoisonError::into_inner)
}
/// Nobody changes links while this is held.
pub fn hold() -> RwLockWriteGuard<'static, ()> {
    STILL.write().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the readiness of a socket in its descriptor.
pub struct Mirror {
    ends: Arc<DescriptorEnds>,
    links: Arc<Links>,
    shown: Readiness,
    tokens: usize,
}

impl Mirror {
    /// For the two ends of a new pair.
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

    /// Before the link says no more: the ballast.
    fn load_ballast(&self, link: &mut DescriptorLink) {
        let Some(end) = link.end.as_ref().filter(|_| link.ballast.is_none()) else { return };
        // Without descriptors for it, the socket is let go when its number is used again.
        let Ok((read, write)) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK) else { return };
        let (read, rights) = (aside(read), [write.as_raw_fd()]);
        let control = [ControlMessage::ScmRights(&rights)];
        let sent = sendmsg::<()>(end.as_raw_fd(), &[IoSlice::new(&FUSE)], &control, QUIET, None);
        if sent.is_ok() && self.links.notice(&read, self.ends.inode()).is_ok() {
            link.ballast = Some(read);
        }
    }
}

impl ReadinessWatch for Mirror {
    fn update(&mut self, now: Readiness) {
        let _quiet = quiet();
        let ends = self.ends.clone();
        let mut both = locked(&ends.link);
        if both.end.is_none() {
            return;
        }
        if now.failed || now.over || now.read_ended {
            self.load_ballast(&mut both);
        }
        if now.failed {
            // Closing what holds the fuse makes it an error.
            both.end = None;
            return;
        }
        let Some(link) = both.end.as_ref().map(AsRawFd::as_raw_fd) else { return };
        let shown = std::mem::replace(&mut self.shown, now);
        // Whatever fails here fails because the program has closed its end.
        // The ends first: they make it readable by themselves, and whoever is woken sees them together.
        if now.over && !shown.over {
            both.mute = true;
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
