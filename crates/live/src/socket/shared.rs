//! What two threads share, and how one waits for the other.

use super::registry::Interrupted;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// What a socket lets its program do without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A read, a receive or an accept returns at once: with data, the end, or an error.
    pub readable: bool,
    /// A write or a send returns at once.
    pub writable: bool,
    /// Nothing more will come; what is there can still be read.
    pub read_ended: bool,
    /// Both directions have ended.
    pub over: bool,
    /// An error waits to be fetched.
    pub failed: bool,
    /// Urgent data waits to be fetched (POLLPRI).
    pub urgent: bool,
    /// How often something has come to be read: it changes where nothing else does, so that whoever waits for changes alone hears of
    /// data that came behind what was not read.
    pub arrivals: u64,
    /// How often the program has read.
    pub reads: u64,
}

/// Which way somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoDirection {
    In,
    Out,
}

impl Readiness {
    pub(super) fn has(self, way: IoDirection) -> bool {
        match way {
            IoDirection::In => self.readable,
            IoDirection::Out => self.writable,
        }
    }
}

/// Somebody who mirrors the readiness of a socket elsewhere: in a descriptor, in an event loop.
///
/// Called with the socket locked, whenever its readiness has changed: it must be quick, and must not call the socket.
pub trait ReadinessWatch: Send {
    /// How it is now.
    fn update(&mut self, readiness: Readiness);
}

/// What can be ready.
pub(super) trait Ready {
    fn readiness(&self) -> Readiness;
}

/// Why somebody waits no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    TimedOut,
    Interrupted,
}

impl From<Wake> for io::Error {
    fn from(wake: Wake) -> Self {
        match wake {
            // What the system says after SO_RCVTIMEO, and the standard library documents.
            Wake::TimedOut => io::ErrorKind::WouldBlock.into(),
            Wake::Interrupted => Interrupted.into(),
        }
    }
}

/// A value behind a lock, with everybody who waits for it to be ready.
pub(super) struct SharedState<T> {
    inner: Mutex<WaitInner<T>>,
    changed: Condvar,
}

struct WaitInner<T> {
    value: T,
    last: Readiness,
    /// Threads that wait.
    waiting: usize,
    interrupts: u64,
    wakers: [Option<Waker>; 2],
    watch: Option<Box<dyn ReadinessWatch>>,
}

impl<T: Ready> SharedState<T> {
    pub fn new(value: T) -> Self {
        let last = value.readiness();
        let inner = WaitInner { value, last, waiting: 0, interrupts: 0, wakers: [None, None], watch: None };
        SharedState { inner: Mutex::new(inner), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WaitInner<T>> {
        // Whoever panicked with the lock held has left a value that is whole enough: all of it is counted anew.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the value or changes it; whoever waits for what it has become is woken. Quick, and never twice at once.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut inner = self.lock();
        let result = work(&mut inner.value);
        let now = inner.value.readiness();
        if now == inner.last {
            return result;
        }
        inner.last = now;
        if let Some(watch) = &mut inner.watch {
            watch.update(now);
        }
        let read = inner.wakers[0].take_if(|_| now.readable);
        let write = inner.wakers[1].take_if(|_| now.writable);
        let anybody = inner.waiting > 0;
        drop(inner);
        if anybody {
            self.changed.notify_all();
        }
        // Not under the lock: a waker may run what it wakes.
        read.into_iter().chain(write).for_each(Waker::wake);
        result
    }

    /// Waits until `way` is ready, at most until `deadline`.
    pub fn wait(&self, way: IoDirection, deadline: Option<Instant>) -> Result<(), Wake> {
        let mut inner = self.lock();
        let interrupts = inner.interrupts;
        while !inner.last.has(way) {
            if inner.interrupts != interrupts {
                return Err(Wake::Interrupted);
            }
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Err(Wake::TimedOut);
            }
            inner.waiting += 1;
            inner = match left {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(left) => {
                    self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
            inner.waiting -= 1;
        }
        Ok(())
    }

    /// The same for a task: ready, or its waker is called when it is.
    #[cfg_attr(not(feature = "tokio"), allow(dead_code, reason = "for tasks alone"))]
    pub fn poll(&self, way: IoDirection, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.last.has(way) {
            return Poll::Ready(());
        }
        let waker = &mut inner.wakers[usize::from(way == IoDirection::Out)];
        if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// How it is now.
    pub fn readiness(&self) -> Readiness {
        self.lock().last
    }

    /// From now on `watch` is told, beginning with how it is now.
    pub fn watch(&self, mut watch: Box<dyn ReadinessWatch>) {
        let mut inner = self.lock();
        watch.update(inner.last);
        inner.watch = Some(watch);
    }

    /// From now on nobody is told; what was told is dropped.
    pub fn unwatch(&self) {
        let watch = self.lock().watch.take();
        drop(watch);
    }

    /// Everybody who waits waits no longer.
    pub fn interrupt(&self) {
        let mut inner = self.lock();
        inner.interrupts += 1;
        drop(inner);
        self.changed.notify_all();
    }
}

/// The end of a wait that may last so long; none: for ever.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    // One that no clock reaches is none.
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}
