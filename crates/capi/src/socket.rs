//! Sockets of a C program, with their descriptors.

use crate::descriptor::{DescriptorEnds, Mirror, no_fork, pair};
use crate::ffi::{flags_of, identity, put_at};
use crate::home::{Home, WaitFor, clock};
use crate::share::remote::Remote;
use crate::table;
use farpace_live::socket::posix::{self, ReceivedMessage, SendTo};
use farpace_units::Instant;
use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use nix::sys::socket::SockFlag;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// A socket of a C program.
pub enum CapiSocket {
    /// On a stack of this process.
    Here(LocalBinding),
    /// On the stack of another process.
    There(Remote),
}

/// A socket on a stack of this process.
pub struct LocalBinding {
    /// Its stack.
    pub home: Arc<Home>,
    /// The socket without its descriptors.
    pub inner: Arc<posix::PosixSocket>,
    /// Its descriptors, with the state that represents its readiness.
    pub ends: Arc<DescriptorEnds>,
}

impl LocalBinding {
    /// Creates a socket, and its first descriptor.
    pub fn open(
        home: Arc<Home>,
        inner: Arc<posix::PosixSocket>,
        flags: SockFlag,
    ) -> nix::Result<(OwnedFd, Arc<CapiSocket>)> {
        let links = home.links.clone();
        let still = no_fork();
        let (user, link) = pair(flags)?;
        let inode = identity(user.as_raw_fd()).ok_or(Errno::EMFILE)?;
        links.notice(&link, inode)?;
        let ends = Arc::new(DescriptorEnds::new(inode, link));
        let socket =
            Arc::new(CapiSocket::Here(LocalBinding { home, inner: inner.clone(), ends: ends.clone() }));
        table::enter(inode, socket.clone());
        drop(still);
        inner.watch(Box::new(Mirror::new(ends, links)));
        Ok((user, socket))
    }

    /// Before connect(2): the pair that represented the former connection cannot represent another, so the
    /// descriptor gets a new file.
    pub fn renew(&self, socket: &Arc<CapiSocket>, flags: SockFlag) -> nix::Result<Option<OwnedFd>> {
        if !self.inner.is_unwatched() || !self.inner.is_idle() {
            return Ok(None);
        }
        let still = no_fork();
        let (user, link) = pair(flags | SockFlag::SOCK_CLOEXEC)?;
        let inode = identity(user.as_raw_fd()).ok_or(Errno::EBADF)?;
        self.home.links.notice(&link, inode)?;
        table::moved(socket, self.ends.inode(), inode, || self.ends.replace(inode, link));
        drop(still);
        self.inner.watch(Box::new(Mirror::new(self.ends.clone(), self.home.links.clone())));
        Ok(Some(user))
    }

    /// True if the descriptor still belongs to this socket.
    pub fn is_at(&self, fd: RawFd) -> bool {
        identity(fd) == Some(self.ends.inode())
    }
    /// True if its connection has failed or ended.
    pub fn is_blind(&self) -> bool {
        self.inner.readiness().failed || self.inner.is_over()
    }
    /// Closes the socket for the program, and releases its resources. `wait`: SO_LINGER may make it wait.
    pub fn leave(&self, wait: bool) {
        // If the program supplies the time, waiting would not end.
        self.inner.close(wait && !self.home.is_driven());
    }
}

impl CapiSocket {
    /// Creates a descriptor for a new socket, with the number `at` if given.
    pub fn open(
        home: Arc<Home>,
        inner: Arc<posix::PosixSocket>,
        flags: SockFlag,
        at: Option<RawFd>,
    ) -> nix::Result<RawFd> {
        let (mut user, socket) = LocalBinding::open(home, inner, flags)?;
        if let Some(at) = at {
            user = put_at(user, at, flags.contains(SockFlag::SOCK_CLOEXEC))?;
        }
        let fd = user.into_raw_fd();
        table::put(fd, &socket);
        Ok(fd)
    }
    /// Creates a descriptor for a socket on the stack of another process.
    pub fn open_there(remote: Remote) -> RawFd {
        let fd = remote.fd();
        table::put(fd, &Arc::new(CapiSocket::There(remote)));
        fd
    }

    /// The socket, if it is on a stack of this process.
    pub const fn here(&self) -> Option<&LocalBinding> {
        match self {
            CapiSocket::Here(local) => Some(local),
            CapiSocket::There(_) => None,
        }
    }
    /// True if the program drives the host.
    pub fn is_driven(&self) -> bool {
        self.here().is_some_and(|local| local.home.is_driven())
    }
    /// The current time.
    pub fn now(&self) -> Instant {
        self.here().map_or_else(clock, |local| local.home.now())
    }
    /// A descriptor to watch while waiting.
    pub fn bell(&self) -> Option<Arc<EventFd>> {
        self.here().map(|local| local.home.bell())
    }
    /// How the program waits, if it drives the host.
    pub fn waiter(&self) -> Option<Arc<WaitFor>> {
        self.here().and_then(|local| local.home.waiter())
    }

    /// bind(2).
    pub fn bind(&self, at: &[u8]) -> nix::Result<()> {
        match self {
            CapiSocket::Here(local) => local.inner.bind(at),
            CapiSocket::There(remote) => remote.bind(at),
        }
    }
    /// listen(2).
    pub fn listen(&self, backlog: i32) -> nix::Result<()> {
        match self {
            CapiSocket::Here(local) => local.inner.listen(backlog),
            CapiSocket::There(remote) => remote.listen(backlog),
        }
    }
    /// accept4(2).
    pub fn accept(&self, flags: SockFlag) -> nix::Result<(RawFd, SocketAddr)> {
        match self {
            CapiSocket::Here(local) => {
                let (inner, from) = local.inner.accept()?;
                Ok((CapiSocket::open(local.home.clone(), inner, flags, None)?, from))
            }
            CapiSocket::There(remote) => {
                let (fd, from) = remote.accept(flags)?;
                Ok((CapiSocket::open_there(remote.copy(fd)), from))
            }
        }
    }
    /// connect(2) through the descriptor `fd`: `EINPROGRESS` until the connection is established.
    pub fn connect(self: &Arc<Self>, fd: RawFd, to: &[u8]) -> nix::Result<()> {
        match &**self {
            CapiSocket::Here(local) => {
                // Several descriptors would all need a new file. Then none of them represents the connection.
                let alone = local.ends.users() == 1;
                let flags = flags_of(fd)?;
                if let Some(user) = alone.then(|| local.renew(self, flags)).transpose()?.flatten() {
                    let _ = put_at(user, fd, flags.contains(SockFlag::SOCK_CLOEXEC))?.into_raw_fd();
                }
                local.inner.connect(to)
            }
            CapiSocket::There(remote) => remote.connect(to),
        }
    }
    /// True while a connection is being opened.
    pub fn is_connecting(&self) -> bool {
        match self {
            CapiSocket::Here(local) => local.inner.is_connecting(),
            CapiSocket::There(remote) => remote.state().is_ok_and(|state| state.connecting),
        }
    }
    /// Timeout of receiving calls (SO_RCVTIMEO).
    pub fn receive_timeout(&self) -> Option<Duration> {
        match self {
            CapiSocket::Here(local) => local.inner.receive_timeout(),
            CapiSocket::There(remote) => remote.state().ok()?.receive_timeout,
        }
    }
    /// Timeout of sending calls (SO_SNDTIMEO).
    pub fn send_timeout(&self) -> Option<Duration> {
        match self {
            CapiSocket::Here(local) => local.inner.send_timeout(),
            CapiSocket::There(remote) => remote.state().ok()?.send_timeout,
        }
    }
    /// Minimum number of bytes that a receiving call waits for (SO_RCVLOWAT).
    pub fn low_water(&self) -> usize {
        match self {
            CapiSocket::Here(local) => local.inner.low_water(),
            CapiSocket::There(remote) => remote.low_water(),
        }
    }
    /// True if no more data will arrive.
    pub fn has_ended(&self) -> bool {
        match self {
            CapiSocket::Here(local) => local.inner.readiness().read_ended || local.inner.is_over(),
            CapiSocket::There(remote) => remote.state().is_ok_and(|state| state.ended),
        }
    }
    /// Records that the program knows of the established connection.
    pub fn report_open(&self) {
        match self {
            CapiSocket::Here(local) => drop(local.inner.report_open()),
            CapiSocket::There(remote) => remote.report_open(),
        }
    }
    /// Records that the program knows of the failed connection.
    pub fn forget_failed(&self) {
        match self {
            CapiSocket::Here(local) => local.inner.forget_failed(),
            CapiSocket::There(remote) => remote.forget_failed(),
        }
    }
    /// shutdown(2).
    pub fn shutdown(&self, how: i32) -> nix::Result<()> {
        match self {
            CapiSocket::Here(local) => local.inner.shutdown(how),
            CapiSocket::There(remote) => remote.shutdown(how),
        }
    }
    /// getsockname(2).
    pub fn local(&self) -> nix::Result<SocketAddr> {
        match self {
            CapiSocket::Here(local) => Ok(local.inner.local()),
            CapiSocket::There(remote) => remote.local(),
        }
    }
    /// getpeername(2).
    pub fn peer(&self) -> nix::Result<SocketAddr> {
        match self {
            CapiSocket::Here(local) => local.inner.peer(),
            CapiSocket::There(remote) => remote.peer(),
        }
    }
    /// True for a UDP socket.
    pub fn is_datagram(&self) -> bool {
        match self {
            CapiSocket::Here(local) => local.inner.is_datagram(),
            CapiSocket::There(remote) => remote.is_datagram(),
        }
    }
    /// FIONREAD.
    pub fn available(&self) -> nix::Result<usize> {
        match self {
            CapiSocket::Here(local) => local.inner.available(),
            CapiSocket::There(remote) => remote.available(),
        }
    }
    /// SIOCOUTQ and SIOCOUTQNSD.
    pub fn unacknowledged(&self) -> nix::Result<(usize, usize)> {
        match self {
            CapiSocket::Here(local) => local.inner.unacknowledged(),
            CapiSocket::There(remote) => remote.unacknowledged(),
        }
    }
    /// SIOCATMARK.
    pub fn is_at_mark(&self) -> bool {
        match self {
            CapiSocket::Here(local) => local.inner.is_at_mark(),
            CapiSocket::There(remote) => remote.is_at_mark(),
        }
    }
    /// recvmsg(2).
    pub fn receive(&self, buffers: &mut [IoSliceMut<'_>], flags: i32) -> nix::Result<ReceivedMessage> {
        match self {
            CapiSocket::Here(local) => local.inner.receive(buffers, flags),
            CapiSocket::There(remote) => remote.receive(buffers, flags),
        }
    }
    /// sendmsg(2).
    pub fn send(&self, parts: &[IoSlice<'_>], message: &SendTo<'_>) -> nix::Result<usize> {
        match self {
            CapiSocket::Here(local) => local.inner.send(parts, message),
            CapiSocket::There(remote) => remote.send(parts, message),
        }
    }
    /// setsockopt(2).
    pub fn set_option(&self, level: i32, name: i32, value: Option<&[u8]>) -> nix::Result<()> {
        match self {
            CapiSocket::Here(local) => local.inner.set_option(level, name, value),
            CapiSocket::There(remote) => remote.set_option(level, name, value),
        }
    }
    /// getsockopt(2).
    pub fn option(&self, level: i32, name: i32, room: i32) -> nix::Result<Vec<u8>> {
        match self {
            CapiSocket::Here(local) => local.inner.option(level, name, room),
            CapiSocket::There(remote) => remote.option(level, name, room),
        }
    }
    /// SO_ERROR.
    pub fn take_error(&self, user: BorrowedFd<'_>) -> i32 {
        // Also clear the error that poll(2) shows.
        let _ = nix::sys::socket::getsockopt(&user, nix::sys::socket::sockopt::SocketError);
        match self {
            CapiSocket::Here(local) => local.inner.take_error(),
            CapiSocket::There(remote) => remote.take_error(),
        }
    }
}
