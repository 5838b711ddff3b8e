//! One socket of a C program: what the calls of Linux make of it, and its descriptor.

use crate::descriptor::{Mirror, pair};
use crate::ffi::{flags_of, identity, put_at};
use crate::home::Home;
use crate::table;
use farpace_live::socket::posix;
use nix::errno::Errno;
use nix::sys::socket::SockFlag;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A socket.
pub struct Socket {
    /// Whose it is.
    pub home: Arc<Home>,
    /// All but its descriptor.
    pub inner: Arc<posix::Socket>,
    gone: Arc<AtomicBool>,
    user: RawFd,
    /// Tells the file behind the descriptor from others.
    inode: AtomicU64,
}

impl Socket {
    /// A descriptor for a new socket, which is `at` if that is given.
    pub fn open(
        home: Arc<Home>,
        inner: Arc<posix::Socket>,
        flags: SockFlag,
        at: Option<RawFd>,
    ) -> nix::Result<RawFd> {
        let (mut user, link) = pair(flags)?;
        if let Some(at) = at {
            user = put_at(user, at, flags.contains(SockFlag::SOCK_CLOEXEC))?;
        }
        let fd = user.as_raw_fd();
        let inode = identity(fd).ok_or(Errno::EMFILE)?;
        let socket = Socket {
            home,
            inner,
            gone: Arc::new(AtomicBool::new(false)),
            user: fd,
            inode: AtomicU64::new(inode),
        };
        socket.show(link)?;
        table::put(user.into_raw_fd(), Arc::new(socket));
        Ok(fd)
    }

    /// What the socket can do is shown by `link` from now on.
    fn show(&self, link: OwnedFd) -> nix::Result<()> {
        self.home.notice(&link, self.user)?;
        self.inner.watch(Box::new(Mirror::new(self.user, link, self.gone.clone())));
        Ok(())
    }

    /// accept4(2).
    pub fn accept(&self, flags: SockFlag) -> nix::Result<(RawFd, SocketAddr)> {
        let (inner, from) = self.inner.accept()?;
        let fd = Socket::open(self.home.clone(), inner, flags, None)?;
        Ok((fd, from))
    }

    /// connect(2): `EINPROGRESS` until it is open.
    pub fn connect(&self, to: &[u8]) -> nix::Result<()> {
        if self.inner.is_unwatched() && self.inner.is_idle() {
            // What showed the connection before cannot show another: the descriptor gets another file.
            let (user, link) = pair(flags_of(self.user)?)?;
            let cloexec = flags_of(self.user)?.contains(SockFlag::SOCK_CLOEXEC);
            let user = put_at(user, self.user, cloexec)?.into_raw_fd();
            self.inode.store(identity(user).ok_or(Errno::EBADF)?, Ordering::Release);
            self.show(link)?;
        }
        self.inner.connect(to)
    }

    /// Its end cannot be noticed, because its own end shows as one for good.
    pub fn is_blind(&self) -> bool {
        self.inner.readiness().failed || self.inner.is_over()
    }
    /// The descriptor still is that of this socket.
    pub fn is_at(&self, fd: RawFd) -> bool {
        identity(fd) == Some(self.inode.load(Ordering::Acquire))
    }
    /// The program has no use for it any more. What it took of the system is free again.
    pub fn leave(&self) {
        self.gone.store(true, Ordering::Release);
        // Where the program gives the time, waiting would be for ever.
        self.inner.close(!self.home.is_driven());
    }

    /// SO_ERROR.
    pub fn take_error(&self, user: BorrowedFd<'_>) -> i32 {
        // What poll(2) shows of it is fetched, too.
        let _ = nix::sys::socket::getsockopt(&user, nix::sys::socket::sockopt::SocketError);
        self.inner.take_error()
    }
}
