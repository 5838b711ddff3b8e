//! One socket of a C program: what the calls of Linux make of it, and its descriptor.

use crate::descriptor::{Ends, Mirror, pair};
use crate::ffi::{flags_of, identity, put_at};
use crate::home::Home;
use crate::table;
use farpace_live::socket::posix;
use nix::errno::Errno;
use nix::sys::socket::SockFlag;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::sync::Arc;

/// A socket.
pub struct Socket {
    /// Whose it is.
    pub home: Arc<Home>,
    /// All but its descriptor.
    pub inner: Arc<posix::Socket>,
    /// Its descriptors, and what shows there what it can do.
    pub ends: Arc<Ends>,
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
        home.links.notice(&link, inode)?;
        let ends = Arc::new(Ends::new(inode, fd, link));
        inner.watch(Box::new(Mirror::new(ends.clone(), home.links.clone())));
        table::put(user.into_raw_fd(), Arc::new(Socket { home, inner, ends }));
        Ok(fd)
    }

    /// accept4(2).
    pub fn accept(&self, flags: SockFlag) -> nix::Result<(RawFd, SocketAddr)> {
        let (inner, from) = self.inner.accept()?;
        let fd = Socket::open(self.home.clone(), inner, flags, None)?;
        Ok((fd, from))
    }

    /// connect(2) by the descriptor `fd`: `EINPROGRESS` until it is open.
    pub fn connect(self: &Arc<Self>, fd: RawFd, to: &[u8]) -> nix::Result<()> {
        // Of several descriptors all would need another file: then the connection shows in none of them.
        if self.inner.is_unwatched() && self.inner.is_idle() && self.ends.users() == 1 {
            // What showed the connection before cannot show another: the descriptor gets another file.
            let (user, link) = pair(flags_of(fd)?)?;
            let inode = identity(user.as_raw_fd()).ok_or(Errno::EBADF)?;
            self.home.links.notice(&link, inode)?;
            let _ = put_at(user, fd, flags_of(fd)?.contains(SockFlag::SOCK_CLOEXEC))?.into_raw_fd();
            table::moved(self, inode, || self.ends.replace(inode, link));
            self.inner.watch(Box::new(Mirror::new(self.ends.clone(), self.home.links.clone())));
        }
        self.inner.connect(to)
    }

    /// The descriptor still is that of this socket.
    pub fn is_at(&self, fd: RawFd) -> bool {
        identity(fd) == Some(self.ends.inode())
    }
    /// Its connection has failed or ended.
    pub fn is_blind(&self) -> bool {
        self.inner.readiness().failed || self.inner.is_over()
    }
    /// The program has no use for it any more. What it took of the system is free again.
    pub fn leave(&self) {
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
