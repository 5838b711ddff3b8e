//! Whose a descriptor is.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Numbers from here on are the kernel's in any case: more than Linux lets a process have unless it is told to.
const MAX: usize = 1 << 20;

/// A bit for each number.
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
/// What is asked of each number. Copies of a descriptor (dup(2)) share one question.
static QUESTIONS: Mutex<BTreeMap<RawFd, SharedTable>> = Mutex::new(BTreeMap::new());
/// LibraryGuard under the lock of all questions alone, so it is free when that is.
pub type SharedTable = Arc<Mutex<LookupGuard>>;
/// The process whose memory this is. A child of vfork(2) has the same memory, and another number.
static SELF: AtomicI32 = AtomicI32::new(0);

/// A socket of the kernel that may become farpace's.
#[derive(Clone, Debug, Default)]
pub struct LookupGuard {
    /// As socket(2) was called.
    pub domain: i32,
    /// The same, without flags.
    pub kind: i32,
    /// The same.
    pub protocol: i32,
    /// What was set: level, name, value.
    pub options: Vec<(i32, i32, Vec<u8>)>,
    /// The kernel has bound it to all addresses.
    pub bound: bool,
}

/// Whose a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The kernel's.
    Kernels,
    /// The kernel's so far.
    Open,
    /// Farpace's.
    Ours,
    /// That of the process before a vfork(2), whose memory this is: to be left as it is.
    Parents,
}

/// Whose `fd` is.
pub fn whose(fd: RawFd) -> Whose {
    let (ours, open) = (OURS.has(fd), OPEN.has(fd));
    if !ours && !open {
        Whose::Kernels
    } else if !is_self() {
        Whose::Parents
    } else if ours {
        Whose::Ours
    } else {
        Whose::Open
    }
}

/// True if this memory is that of this process alone.
pub fn is_self() -> bool {
    SELF.load(Ordering::Acquire) == process()
}
/// From now on it is.
pub fn settle_in() {
    SELF.store(process(), Ordering::Release);
}
/// The numbers from `first` to `last` that are not the kernel's.
pub fn those(first: RawFd, last: RawFd) -> Vec<RawFd> {
    let last = last.min(MAX as RawFd - 1);
    (first.max(0)..=last).filter(|fd| OURS.has(*fd) || OPEN.has(*fd)).collect()
}
/// Nobody else asks or notes anything while this is held.
pub fn hold() -> MutexGuard<'static, BTreeMap<RawFd, SharedTable>> {
    questions()
}
fn process() -> i32 {
    nix::unistd::getpid().as_raw()
}

fn questions() -> MutexGuard<'static, BTreeMap<RawFd, SharedTable>> {
    QUESTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `fd` is a new socket that may become farpace's.
pub fn ask(fd: RawFd, question: LookupGuard) {
    put(fd, Arc::new(Mutex::new(question)));
}
/// `copy` is one more descriptor of `fd`, which may become farpace's.
pub fn ask_too(fd: RawFd, copy: RawFd) {
    let shared = questions().get(&fd).cloned();
    if let Some(shared) = shared {
        put(copy, shared);
    }
}
fn put(fd: RawFd, question: SharedTable) {
    OURS.clear(fd);
    if OPEN.at(fd).is_some() {
        questions().insert(fd, question);
        OPEN.set(fd);
    }
}
/// The other descriptors of what `fd` is, if that may become farpace's.
pub fn copies(fd: RawFd) -> Vec<RawFd> {
    let questions = questions();
    let Some(own) = questions.get(&fd) else { return Vec::new() };
    let same = questions.iter().filter(|(other, question)| **other != fd && Arc::ptr_eq(question, own));
    same.map(|(other, _)| *other).collect()
}
/// `fd` is farpace's.
pub fn claim(fd: RawFd) {
    settle(fd);
    OURS.set(fd);
}
/// `fd` is the kernel's.
pub fn release(fd: RawFd) {
    settle(fd);
    OURS.clear(fd);
}
fn settle(fd: RawFd) {
    if OPEN.has(fd) {
        OPEN.clear(fd);
        questions().remove(&fd);
    }
}
/// What is known of a socket that may become farpace's.
pub fn question(fd: RawFd) -> Option<LookupGuard> {
    questions().get(&fd).map(|shared| locked(shared).clone())
}
fn locked(shared: &SharedTable) -> MutexGuard<'_, LookupGuard> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
/// Notes something of it.
pub fn note(fd: RawFd, change: impl FnOnce(&mut LookupGuard)) {
    if let Some(question) = questions().get(&fd) {
        change(&mut locked(question));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: calls go to the wrong stack: those of a child of vfork, of a number that is used again, of numbers out of range.
    #[test]
    fn a_number_is_somebodys() {
        let fd = 77;
        assert_eq!(whose(fd), Whose::Kernels);
        assert!(!is_self());
        settle_in();
        ask(fd, LookupGuard { domain: 2, ..LookupGuard::default() });
        note(fd, |question| question.bound = true);
        assert_eq!(whose(fd), Whose::Open);
        assert!(question(fd).is_some_and(|question| question.bound && question.domain == 2));
        ask_too(fd, fd + 1);
        note(fd + 1, |question| question.protocol = 6);
        assert!(question(fd).is_some_and(|question| question.protocol == 6));
        assert_eq!((copies(fd), copies(fd + 1)), (vec![fd + 1], vec![fd]));
        release(fd + 1);
        assert_eq!((copies(fd), whose(fd + 1)), (vec![], Whose::Kernels));
        claim(fd);
        assert_eq!((whose(fd), question(fd).is_none()), (Whose::Ours, true));
        SELF.store(process() + 1, Ordering::Release);
        assert_eq!(whose(fd), Whose::Parents);
        settle_in();
        assert_eq!((those(0, 100), those(fd + 1, RawFd::MAX)), (vec![fd], vec![]));
        ask(fd, LookupGuard::default());
        assert_eq!(whose(fd), Whose::Open);
        release(fd);
        assert_eq!(whose(fd), Whose::Kernels);
        for out in [-1, RawFd::MAX, MAX as RawFd] {
            ask(out, LookupGuard::default());
            claim(out);
            assert_eq!(whose(out), Whose::Kernels);
        }
    }
}
