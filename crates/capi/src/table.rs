//! The table of descriptors and sockets.

use crate::home::Home;
use crate::share::remote::Remote;
use crate::share::server::is_shared;
use crate::socket::CapiSocket;
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The sockets of this process.
pub struct HandleTable {
    /// By descriptor. After dup(2) a socket has several.
    descriptors: BTreeMap<RawFd, Arc<CapiSocket>>,
    /// Sockets on stacks of this process by inode number, including those whose descriptors only other
    /// processes have.
    files: BTreeMap<u64, Arc<CapiSocket>>,
}

static TABLE: RwLock<HandleTable> =
    RwLock::new(HandleTable { descriptors: BTreeMap::new(), files: BTreeMap::new() });
fn read() -> RwLockReadGuard<'static, HandleTable> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}
fn write() -> RwLockWriteGuard<'static, HandleTable> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The table, locked for writing.
pub fn hold() -> RwLockWriteGuard<'static, HandleTable> {
    write()
}

/// The socket of a descriptor.
pub fn get(fd: RawFd) -> nix::Result<Arc<CapiSocket>> {
    let socket = read().descriptors.get(&fd).cloned().ok_or(Errno::EBADF)?;
    // The number may have been closed and reused by calls that the library did not see.
    if socket.here().is_some_and(|local| local.is_blind() && !local.is_at(fd)) {
        forget(fd, &socket);
        return Err(Errno::EBADF);
    }
    Ok(socket)
}

/// The socket with this inode number, on a stack of this process.
pub fn of_file(inode: u64) -> Option<Arc<CapiSocket>> {
    read().files.get(&inode).cloned()
}

/// Adds a new socket on a stack of this process.
pub fn enter(inode: u64, socket: Arc<CapiSocket>) {
    write().files.insert(inode, socket);
}

/// Assigns `fd` to `socket`; its former file is closed.
pub fn put(fd: RawFd, socket: &Arc<CapiSocket>) {
    if let Some(local) = socket.here() {
        local.ends.add_user(fd);
    }
    let old = write().descriptors.insert(fd, socket.clone());
    if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, socket)) {
        lose(fd, &old);
    }
}

/// Assigns `copy` to `socket` too.
pub fn share(socket: &Arc<CapiSocket>, copy: RawFd) {
    match &**socket {
        CapiSocket::Here(_) => put(copy, socket),
        CapiSocket::There(remote) => put(copy, &Arc::new(CapiSocket::There(remote.copy(copy)))),
    }
}

/// Replaces the file of a socket's descriptor under the lock.
pub fn moved(socket: &Arc<CapiSocket>, from: u64, to: u64, work: impl FnOnce()) {
    let mut table = write();
    table.files.remove(&from);
    work();
    table.files.insert(to, socket.clone());
}

/// Removes `fd`, which is closed, if it belonged to `socket`.
pub fn forget(fd: RawFd, socket: &Arc<CapiSocket>) {
    strike(fd, socket);
    lose(fd, socket);
}

/// Removes `fd`, which is about to be closed. [`forget`] follows.
pub fn strike(fd: RawFd, socket: &Arc<CapiSocket>) {
    let mut table = write();
    if table.descriptors.get(&fd).is_some_and(|there| Arc::ptr_eq(there, socket)) {
        table.descriptors.remove(&fd);
    }
}

/// Handles a closed descriptor of a socket.
pub fn lose(fd: RawFd, socket: &Arc<CapiSocket>) {
    let Some(local) = socket.here() else { return };
    let last = local.ends.remove_user(fd);
    if last && (!is_shared() || local.ends.are_closed()) {
        let_go(socket, true);
    }
}

/// Releases a socket without descriptors.
fn let_go(socket: &Arc<CapiSocket>, wait: bool) {
    let Some(local) = socket.here() else { return };
    {
        let mut table = write();
        let inode = local.ends.inode();
        if !table.files.get(&inode).is_some_and(|there| Arc::ptr_eq(there, socket)) {
            // Another thread has released it.
            return;
        }
        table.files.remove(&inode);
    }
    local.leave(wait);
}

/// Handles an event at the descriptors of the socket with this inode number: it is released if they are
/// closed.
pub fn check_closed(inode: u64) {
    let Some(socket) = of_file(inode) else { return };
    if !socket.here().is_some_and(|local| local.ends.are_closed()) {
        return;
    }
    write().descriptors.retain(|_, there| !Arc::ptr_eq(there, &socket));
    let_go(&socket, false);
}

fn is_of(socket: &CapiSocket, home: &Arc<Home>) -> bool {
    socket.here().is_some_and(|local| Arc::ptr_eq(&local.home, home))
}

/// The descriptors of sockets of `home` in this process.
pub fn descriptors_of(home: &Arc<Home>) -> Vec<(RawFd, Arc<CapiSocket>)> {
    let table = read();
    let its = table.descriptors.iter().filter(|(_, socket)| is_of(socket, home));
    its.map(|(fd, socket)| (*fd, socket.clone())).collect()
}
/// Number of sockets of `home`.
pub fn sockets_of(home: &Arc<Home>) -> usize {
    read().files.values().filter(|socket| is_of(socket, home)).count()
}

/// Closes all sockets of `home` for the program; their descriptors stay.
pub fn leave_all(home: &Arc<Home>) {
    let mut all = Vec::new();
    {
        let mut table = write();
        table.descriptors.retain(|_, socket| !is_of(socket, home));
        table.files.retain(|_, socket| {
            let its = is_of(socket, home);
            if its {
                all.push(socket.clone());
            }
            !its
        });
    }
    all.iter().filter_map(|socket| socket.here()).for_each(|local| local.leave(true));
}

impl HandleTable {
    /// In a child of fork(2), which has no thread of the stack `home`: its sockets belong to another process
    /// from now on. Their memory stays as it is, because other threads may have held its locks; their
    /// descriptors are closed.
    pub fn leave_to_owner(&mut self, home: &Arc<Home>) {
        for (fd, entry) in &mut self.descriptors {
            if is_of(entry, home) {
                let datagram = entry.is_datagram();
                let remote = Arc::new(CapiSocket::There(Remote::new(*fd, datagram)));
                std::mem::forget(std::mem::replace(entry, remote));
            }
        }
        let (its, others) =
            std::mem::take(&mut self.files).into_iter().partition(|(_, socket)| is_of(socket, home));
        self.files = others;
        let its: BTreeMap<u64, Arc<CapiSocket>> = its;
        its.values().filter_map(|socket| socket.here()).for_each(|local| local.ends.close_link());
        std::mem::forget(its);
    }
}
