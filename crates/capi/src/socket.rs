//! Sockets of a C program: one of a stack of this process, or one of another process.

use crate::descriptor::DescriptorEnds;
use crate::ffi::identity;
use crate::home::{Home, WaitFor, clock};
use crate::share::remote::Remote;
use farpace_live::socket::posix::{self, ReceivedMessage, SendTo};
use farpace_units::Instant;
use nix::sys::eventfd::EventFd;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
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
