//! The owner of each descriptor: the kernel or farpace.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Higher numbers always belong to the kernel: this exceeds the default maximum of Linux.
const MAX: usize = 1 << 20;

/// A bit per number.
struct Bits([AtomicU64; MAX / 64]);

impl Bits {
    const fn new() -> Self {
        Bits([const { AtomicU64::new(0) }; MAX / 64])
    }
    fn at(&self, fd: RawFd) -> Option<(&AtomicU64, u64)> {
        let fd = usize::try_from(fd).ok()?;
        Some((self.0.get(fd / 64)?, 1 << (fd % 64)))
    }
    fn has(&self, fd: RawFd) -> bool {
        self.at(fd).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }
    fn set(&self, fd: RawFd) {
        if let Some((word, bit)) = self.at(fd) {
            word.fetch_or(bit, Ordering::AcqRel);
        }
    }
    fn clear(&self, fd: RawFd) {
        if let Some((word, bit)) = self.at(fd) {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }
}

static OURS: Bits = Bits::new();
static OPEN: Bits = Bits::new();
/// The state of undecided sockets. Copies of a descriptor (dup(2)) share it.
static UNDECIDED: Mutex<BTreeMap<RawFd, SharedTable>> = Mutex::new(BTreeMap::new());
/// It is locked only with the table locked, so it is free when the table is.
pub type SharedTable = Arc<Mutex<UndecidedSocket>>;
/// The process that this memory belongs to. A child of vfork(2) has the same memory, and another process ID.
static SELF: AtomicI32 = AtomicI32::new(0);

/// An undecided socket: it belongs to the kernel, and may move to farpace.
#[derive(Clone, Debug, Default)]
pub struct UndecidedSocket {
    /// Domain of the socket(2) call.
    pub domain: i32,
    /// Type, without flags.
    pub kind: i32,
    /// Protocol.
    pub protocol: i32,
    /// Options set so far: level, name, value.
    pub options: Vec<(i32, i32, Vec<u8>)>,
    /// The kernel has bound it to all addresses.
    pub bound: bool,
}

/// The owner of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescriptorOwner {
    /// The kernel.
    Kernel,
    /// The kernel, undecided.
    Undecided,
    /// Farpace.
    Farpace,
    /// The parent of a vfork(2), whose memory this is: it must not be changed.
    Parent,
}

/// The owner of `fd`.
pub fn owner(fd: RawFd) -> DescriptorOwner {
    let (ours, open) = (OURS.has(fd), OPEN.has(fd));
    if !ours && !open {
        DescriptorOwner::Kernel
    } else if !is_self() {
        DescriptorOwner::Parent
    } else if ours {
        DescriptorOwner::Farpace
    } else {
        DescriptorOwner::Undecided
    }
}

/// True if this memory belongs to this process only.
pub fn is_self() -> bool {
    SELF.load(Ordering::Acquire) == process()
}
/// Records that this memory belongs to this process.
pub fn take_over_memory() {
    SELF.store(process(), Ordering::Release);
}
/// The numbers from `first` to `last` that do not belong to the kernel.
pub fn farpace_descriptors(first: RawFd, last: RawFd) -> Vec<RawFd> {
    let last = last.min(MAX as RawFd - 1);
    (first.max(0)..=last).filter(|fd| OURS.has(*fd) || OPEN.has(*fd)).collect()
}
/// The table, locked.
pub fn hold() -> MutexGuard<'static, BTreeMap<RawFd, SharedTable>> {
    undecided_sockets()
}
fn process() -> i32 {
    nix::unistd::getpid().as_raw()
}

fn undecided_sockets() -> MutexGuard<'static, BTreeMap<RawFd, SharedTable>> {
    UNDECIDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records a new undecided socket `fd`.
pub fn add(fd: RawFd, undecided: UndecidedSocket) {
    put(fd, Arc::new(Mutex::new(undecided)));
}
/// Records `copy` as another descriptor of `fd`, if that is undecided.
pub fn add_copy(fd: RawFd, copy: RawFd) {
    let shared = undecided_sockets().get(&fd).cloned();
    if let Some(shared) = shared {
        put(copy, shared);
    }
}
fn put(fd: RawFd, undecided: SharedTable) {
    OURS.clear(fd);
    if OPEN.at(fd).is_some() {
        undecided_sockets().insert(fd, undecided);
        OPEN.set(fd);
    }
}
/// The other descriptors of `fd`, if that is undecided.
pub fn copies_of(fd: RawFd) -> Vec<RawFd> {
    let sockets = undecided_sockets();
    let Some(own) = sockets.get(&fd) else { return Vec::new() };
    let same = sockets.iter().filter(|(other, undecided)| **other != fd && Arc::ptr_eq(undecided, own));
    same.map(|(other, _)| *other).collect()
}
/// Assigns `fd` to farpace.
pub fn assign_to_farpace(fd: RawFd) {
    settle(fd);
    OURS.set(fd);
}
/// Assigns `fd` to the kernel.
pub fn assign_to_kernel(fd: RawFd) {
    settle(fd);
    OURS.clear(fd);
}
fn settle(fd: RawFd) {
    if OPEN.has(fd) {
        OPEN.clear(fd);
        undecided_sockets().remove(&fd);
    }
}
/// The state of an undecided socket.
pub fn undecided(fd: RawFd) -> Option<UndecidedSocket> {
    undecided_sockets().get(&fd).map(|shared| locked(shared).clone())
}
fn locked(shared: &SharedTable) -> MutexGuard<'_, UndecidedSocket> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
/// Changes the state of an undecided socket.
pub fn note(fd: RawFd, change: impl FnOnce(&mut UndecidedSocket)) {
    if let Some(undecided) = undecided_sockets().get(&fd) {
        change(&mut locked(undecided));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: calls go to the right stack, also in a child of vfork, for a reused number, and for numbers
    /// out of range.
    #[test]
    fn descriptors_have_one_owner() {
        let fd = 77;
        assert_eq!(owner(fd), DescriptorOwner::Kernel);
        assert!(!is_self());
        take_over_memory();
        add(fd, UndecidedSocket { domain: 2, ..UndecidedSocket::default() });
        note(fd, |undecided| undecided.bound = true);
        assert_eq!(owner(fd), DescriptorOwner::Undecided);
        assert!(undecided(fd).is_some_and(|undecided| undecided.bound && undecided.domain == 2));
        add_copy(fd, fd + 1);
        note(fd + 1, |undecided| undecided.protocol = 6);
        assert!(undecided(fd).is_some_and(|undecided| undecided.protocol == 6));
        assert_eq!((copies_of(fd), copies_of(fd + 1)), (vec![fd + 1], vec![fd]));
        assign_to_kernel(fd + 1);
        assert_eq!((copies_of(fd), owner(fd + 1)), (vec![], DescriptorOwner::Kernel));
        assign_to_farpace(fd);
        assert_eq!((owner(fd), undecided(fd).is_none()), (DescriptorOwner::Farpace, true));
        SELF.store(process() + 1, Ordering::Release);
        assert_eq!(owner(fd), DescriptorOwner::Parent);
        take_over_memory();
        assert_eq!(
            (farpace_descriptors(0, 100), farpace_descriptors(fd + 1, RawFd::MAX)),
            (vec![fd], vec![])
        );
        add(fd, UndecidedSocket::default());
        assert_eq!(owner(fd), DescriptorOwner::Undecided);
        assign_to_kernel(fd);
        assert_eq!(owner(fd), DescriptorOwner::Kernel);
        for out in [-1, RawFd::MAX, MAX as RawFd] {
            add(out, UndecidedSocket::default());
            assign_to_farpace(out);
            assert_eq!(owner(out), DescriptorOwner::Kernel);
        }
    }
}
