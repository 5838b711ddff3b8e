//! Which descriptor means which socket.

use crate::home::Home;
use crate::socket::Socket;
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The sockets of this process.
struct Table {
    /// By descriptor. A socket has several after dup(2).
    descriptors: BTreeMap<RawFd, Arc<Socket>>,
    /// By the file behind its descriptors: also those whose descriptors other processes alone have.
    files: BTreeMap<u64, Arc<Socket>>,
}

static TABLE: RwLock<Table> = RwLock::new(Table { descriptors: BTreeMap::new(), files: BTreeMap::new() });

fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}
fn write() -> RwLockWriteGuard<'static, Table> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// The socket behind a descriptor.
pub fn get(fd: RawFd) -> nix::Result<Arc<Socket>> {
    let socket = read().descriptors.get(&fd).cloned().ok_or(Errno::EBADF)?;
    // Its number may have been closed, and used again, by calls that nobody has seen.
    if socket.is_blind() && !socket.is_at(fd) {
        forget(fd, &socket);
        return Err(Errno::EBADF);
    }
    Ok(socket)
}

/// From now on `fd` means `socket`, which is new; what it meant before was closed.
pub fn put(fd: RawFd, socket: Arc<Socket>) {
    let old = {
        let mut table = write();
        table.files.insert(socket.ends.inode(), socket.clone());
        table.descriptors.insert(fd, socket)
    };
    if let Some(old) = old {
        lose(fd, &old);
    }
}

/// From now on `copy` means what `socket` is, too; what it meant before was closed.
pub fn share(socket: &Arc<Socket>, copy: RawFd) {
    socket.ends.add_user(copy);
    let old = write().descriptors.insert(copy, socket.clone());
    if let Some(old) = old.filter(|old| !Arc::ptr_eq(old, socket)) {
        lose(copy, &old);
    }
}

/// The descriptor of a socket gets another file, while nobody looks.
pub fn moved(socket: &Arc<Socket>, inode: u64, work: impl FnOnce()) {
    let mut table = write();
    table.files.remove(&socket.ends.inode());
    work();
    table.files.insert(inode, socket.clone());
}

/// `fd`, which is closed, means nothing any more, if it meant `socket`.
pub fn forget(fd: RawFd, socket: &Arc<Socket>) {
    {
        let mut table = write();
        if table.descriptors.get(&fd).is_some_and(|there| Arc::ptr_eq(there, socket)) {
            table.descriptors.remove(&fd);
        }
    }
    lose(fd, socket);
}

/// A descriptor of a socket is closed.
fn lose(fd: RawFd, socket: &Arc<Socket>) {
    if socket.ends.remove_user(fd) {
        let_go(socket);
    }
}

/// Nobody has the socket any more.
fn let_go(socket: &Arc<Socket>) {
    {
        let mut table = write();
        let inode = socket.ends.inode();
        if table.files.get(&inode).is_some_and(|there| Arc::ptr_eq(there, socket)) {
            table.files.remove(&inode);
        }
    }
    socket.leave();
}

/// Something has happened to the descriptors of the socket with this file: it is let go if they are closed.
pub fn look_at(inode: u64) {
    let Some(socket) = read().files.get(&inode).cloned() else { return };
    if !socket.ends.are_closed() {
        return;
    }
    write().descriptors.retain(|_, there| !Arc::ptr_eq(there, &socket));
    let_go(&socket);
}

/// All sockets of `home` are closed for the program; their descriptors stay.
pub fn leave_all(home: &Arc<Home>) {
    let mut all = Vec::new();
    {
        let mut table = write();
        table.descriptors.retain(|_, socket| !Arc::ptr_eq(&socket.home, home));
        table.files.retain(|_, socket| {
            let its = Arc::ptr_eq(&socket.home, home);
            if its {
                all.push(socket.clone());
            }
            !its
        });
    }
    all.iter().for_each(|socket| socket.leave());
}
