//! Creates sockets with their descriptors, and replaces descriptors.

use crate::descriptor::{DescriptorEnds, Mirror, no_fork, pair};
use crate::ffi::{flags_of, identity, put_at};
use crate::home::Home;
use crate::share::remote::Remote;
use crate::socket::{CapiSocket, LocalBinding};
use crate::spare;
use crate::table;
use farpace_live::socket::posix;
use nix::errno::Errno;
use nix::sys::socket::SockFlag;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Creates a socket, and its first descriptor.
pub fn create(
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
    let socket = Arc::new(CapiSocket::Here(LocalBinding { home, inner: inner.clone(), ends: ends.clone() }));
    table::enter(inode, socket.clone());
    drop(still);
    inner.watch(Box::new(Mirror::new(ends, links)));
    Ok((user, socket))
}

/// Before connect(2): the pair that represented the former connection cannot represent another, so the
/// descriptor gets a new file.
pub fn renew(
    local: &LocalBinding,
    socket: &Arc<CapiSocket>,
    flags: SockFlag,
) -> nix::Result<Option<OwnedFd>> {
    if !local.inner.is_unwatched() || !local.inner.is_idle() {
        return Ok(None);
    }
    let still = no_fork();
    let (user, link) = pair(flags | SockFlag::SOCK_CLOEXEC)?;
    let inode = identity(user.as_raw_fd()).ok_or(Errno::EBADF)?;
    local.home.links.notice(&link, inode)?;
    table::moved(socket, local.ends.inode(), inode, || local.ends.replace(inode, link));
    drop(still);
    local.inner.watch(Box::new(Mirror::new(local.ends.clone(), local.home.links.clone())));
    Ok(Some(user))
}

/// Creates a descriptor for a new socket, with the number `at` if given.
pub fn open(
    home: Arc<Home>,
    inner: Arc<posix::PosixSocket>,
    flags: SockFlag,
    at: Option<RawFd>,
) -> nix::Result<RawFd> {
    let (mut user, socket) = create(home, inner, flags)?;
    if let Some(at) = at {
        user = put_at(user, at, flags.contains(SockFlag::SOCK_CLOEXEC))?;
    }
    let fd = user.into_raw_fd();
    table::put(fd, &socket);
    let _still = no_fork();
    spare::refill();
    Ok(fd)
}

/// Creates a descriptor for a socket on the stack of another process.
pub fn open_there(remote: Remote) -> RawFd {
    let fd = remote.fd();
    table::put(fd, &Arc::new(CapiSocket::There(remote)));
    fd
}

/// accept4(2).
pub fn accept(socket: &CapiSocket, flags: SockFlag) -> nix::Result<(RawFd, SocketAddr)> {
    match socket {
        CapiSocket::Here(local) => {
            let (inner, from) = local.inner.accept()?;
            Ok((open(local.home.clone(), inner, flags, None)?, from))
        }
        CapiSocket::There(remote) => {
            let (fd, from) = remote.accept(flags)?;
            Ok((open_there(remote.copy(fd)), from))
        }
    }
}

/// connect(2) through the descriptor `fd`: `EINPROGRESS` until the connection is established.
pub fn connect(socket: &Arc<CapiSocket>, fd: RawFd, to: &[u8]) -> nix::Result<()> {
    match &**socket {
        CapiSocket::Here(local) => {
            // Several descriptors would all need a new file. Then none of them represents the connection.
            let alone = local.ends.users() == 1;
            let flags = flags_of(fd)?;
            if let Some(user) = alone.then(|| renew(local, socket, flags)).transpose()?.flatten() {
                let _ = put_at(user, fd, flags.contains(SockFlag::SOCK_CLOEXEC))?.into_raw_fd();
            }
            local.inner.connect(to)
        }
        CapiSocket::There(remote) => remote.connect(to),
    }
}
