//! Which descriptor means which socket.

use crate::home::Home;
use crate::socket::Socket;
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::{Arc, PoisonError, RwLock};

/// Sockets whose end cannot be seen are looked for whenever so many more are there.
const SWEEP: usize = 1024;

static TABLE: RwLock<BTreeMap<RawFd, Arc<Socket>>> = RwLock::new(BTreeMap::new());

/// The socket behind a descriptor.
pub fn get(fd: RawFd) -> nix::Result<Arc<Socket>> {
    let socket =
        TABLE.read().unwrap_or_else(PoisonError::into_inner).get(&fd).cloned().ok_or(Errno::EBADF)?;
    // One whose end nobody would have noticed.
    if socket.is_blind() && !socket.is_at(fd) {
        forget(fd, &socket);
        return Err(Errno::EBADF);
    }
    Ok(socket)
}

/// From now on `fd` means `socket`; what it meant before was closed.
pub fn put(fd: RawFd, socket: Arc<Socket>) {
    let (old, many) = {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        (table.insert(fd, socket), table.len().is_multiple_of(SWEEP))
    };
    if let Some(old) = old {
        old.leave();
    }
    if many {
        sweep();
    }
}

/// `fd` means nothing any more, if it meant `socket`.
pub fn forget(fd: RawFd, socket: &Arc<Socket>) {
    {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        if table.get(&fd).is_some_and(|there| Arc::ptr_eq(there, socket)) {
            table.remove(&fd);
        }
    }
    socket.leave();
}

/// All sockets of `home` are closed for the program; their descriptors stay.
pub fn leave_all(home: &Arc<Home>) {
    let mut all = Vec::new();
    TABLE.write().unwrap_or_else(PoisonError::into_inner).retain(|_, socket| {
        let its = Arc::ptr_eq(&socket.home, home);
        if its {
            all.push(socket.clone());
        }
        !its
    });
    all.iter().for_each(|socket| socket.leave());
}

/// Lets go of sockets whose descriptors were closed unseen.
fn sweep() {
    let all: Vec<_> =
        TABLE.read().unwrap_or_else(PoisonError::into_inner).iter().map(|(fd, s)| (*fd, s.clone())).collect();
    for (fd, socket) in all {
        if socket.is_blind() && !socket.is_at(fd) {
            forget(fd, &socket);
        }
    }
}
