//! Several devices behind one UDP socket: one of them reads it, and hands on what is for the others.

use super::keys::PublicKey;
use super::socket::TunnelSocket;
use nix::sys::eventfd::{EfdFlags, EventFd};
use quinn_udp::RecvMeta;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Datagrams that wait for a device at most; of more, the last are lost, as in the buffer of a socket.
const MAX_WAITING: usize = 4_096;

/// Datagrams for one device.
pub(super) struct Inlet {
    waiting: Mutex<VecDeque<(Vec<u8>, RecvMeta)>>,
    bell: EventFd,
}

impl Inlet {
    /// One that is empty.
    ///
    /// # Errors
    /// The process has no descriptors left.
    pub fn new() -> io::Result<Self> {
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?;
        Ok(Inlet { waiting: Mutex::default(), bell })
    }
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Vec<u8>, RecvMeta)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn push(&self, datagram: &[u8], meta: &RecvMeta) {
        let mut waiting = self.waiting();
        if waiting.len() < MAX_WAITING {
            waiting.push_back((datagram.to_vec(), *meta));
            // It fails only where it rings already.
            let _ = self.bell.write(1);
        }
    }
    /// What waits; it waits no longer.
    pub fn take(&self) -> VecDeque<(Vec<u8>, RecvMeta)> {
        let mut waiting = self.waiting();
        let _ = self.bell.read();
        std::mem::take(&mut *waiting)
    }
    /// Readable when something waits.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// A socket and who is behind it.
pub(super) struct SharedSocket {
    socket: TunnelSocket,
    others: Mutex<InletTable>,
    /// There are others.
    is_shared: AtomicBool,
}

#[derive(Default)]
struct InletTable {
    by_index: BTreeMap<u32, Arc<Inlet>>,
    by_key: BTreeMap<PublicKey, Arc<Inlet>>,
}

impl SharedSocket {
    pub fn new(socket: TunnelSocket) -> Self {
        SharedSocket { socket, others: Mutex::default(), is_shared: AtomicBool::new(false) }
    }
    fn others(&self) -> MutexGuard<'_, InletTable> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// From now on what is for this peer, or for this number, goes there. False: somebody has the key
    /// already.
    pub fn share(&self, key: PublicKey, index: u32, inlet: &Arc<Inlet>) -> bool {
        let mut others = self.others();
        if others.by_key.contains_key(&key) || others.by_index.contains_key(&index) {
            return false;
        }
        others.by_key.insert(key, inlet.clone());
        others.by_index.insert(index, inlet.clone());
        self.is_shared.store(true, Ordering::Relaxed);
        true
    }
    /// True if something for this peer goes elsewhere.
    pub fn knows(&self, key: PublicKey) -> bool {
        self.others().by_key.contains_key(&key)
    }
    /// Nothing goes there any more.
    pub fn unshare(&self, inlet: &Arc<Inlet>) {
        let mut others = self.others();
        others.by_key.retain(|_, other| !Arc::ptr_eq(other, inlet));
        others.by_index.retain(|_, other| !Arc::ptr_eq(other, inlet));
        self.is_shared.store(!others.by_key.is_empty(), Ordering::Relaxed);
    }
    /// True if it was for another device, which has it now.
    pub fn pass_index(&self, index: u32, datagram: &[u8], meta: &RecvMeta) -> bool {
        let other =
            self.is_shared.load(Ordering::Relaxed).then(|| self.others().by_index.get(&index).cloned());
        other.flatten().map(|inlet| inlet.push(datagram, meta)).is_some()
    }
    /// The same for the first message of a handshake.
    pub fn pass_key(&self, key: PublicKey, datagram: &[u8], meta: &RecvMeta) -> bool {
        let other = self.is_shared.load(Ordering::Relaxed).then(|| self.others().by_key.get(&key).cloned());
        other.flatten().map(|inlet| inlet.push(datagram, meta)).is_some()
    }
}

impl Deref for SharedSocket {
    type Target = TunnelSocket;
    fn deref(&self) -> &TunnelSocket {
        &self.socket
    }
}
