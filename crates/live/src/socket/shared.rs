//! State shared by two threads, and waiting for it.

use super::interrupted::Interrupted;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// The operations of a socket that are possible without waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// A read, receive or accept returns at once: with data, the end, or an error.
    pub readable: bool,
    /// A write or a send returns at once.
    pub writable: bool,
    /// No more data will arrive; data that is here can still be read.
    pub read_ended: bool,
    /// Both directions have ended.
    pub over: bool,
    /// An error is pending.
    pub failed: bool,
    /// Urgent data is pending (POLLPRI).
    pub urgent: bool,
    /// Number of arrivals. It changes when nothing else does, so that an edge-triggered program learns of
    /// data that arrived behind unread data.
    pub arrivals: u64,
    /// Number of reads by the program.
    pub reads: u64,
}

/// The direction that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IoDirection {
    In,
    Out,
}

impl Readiness {
    pub(super) fn has(self, direction: IoDirection) -> bool {
        match direction {
            IoDirection::In => self.readable,
            IoDirection::Out => self.writable,
        }
    }
}

/// Mirrors the readiness of a socket, for example in a descriptor or an event loop.
///
/// Called with the socket locked, whenever its readiness has changed: it must be quick, and must not call the
/// socket.
pub trait ReadinessWatch: Send {
    /// The current readiness.
    fn update(&mut self, readiness: Readiness);
}

/// Has a readiness.
pub(super) trait Ready {
    fn readiness(&self) -> Readiness;
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    TimedOut,
    Interrupted,
}

impl From<Wake> for io::Error {
    fn from(wake: Wake) -> Self {
        match wake {
            // The error of the system after SO_RCVTIMEO, which the standard library documents.
            Wake::TimedOut => io::ErrorKind::WouldBlock.into(),
            Wake::Interrupted => Interrupted.into(),
        }
    }
}

/// A value behind a lock, with all threads and tasks that wait for its readiness.
pub(super) struct SharedState<T> {
    inner: Mutex<WaitInner<T>>,
    changed: Condvar,
}

struct WaitInner<T> {
    value: T,
    last: Readiness,
    /// Number of waiting threads.
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
        // A thread that panicked with the lock held has left a usable value: all of it is recomputed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accesses the value, and wakes the threads and tasks that wait for its new readiness. It must be quick,
    /// and must not be nested.
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
        // Without the lock: a waker may run the task.
        read.into_iter().chain(write).for_each(Waker::wake);
        result
    }

    /// Waits until `direction` is ready, at most until `deadline`.
    pub fn wait(&self, direction: IoDirection, deadline: Option<Instant>) -> Result<(), Wake> {
        let mut inner = self.lock();
        let interrupts = inner.interrupts;
        while !inner.last.has(direction) {
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

    /// For a task: ready, or its waker is called later.
    #[cfg_attr(not(feature = "tokio"), allow(dead_code, reason = "for tasks alone"))]
    pub fn poll(&self, direction: IoDirection, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        if inner.last.has(direction) {
            return Poll::Ready(());
        }
        let waker = &mut inner.wakers[usize::from(direction == IoDirection::Out)];
        if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The current readiness.
    pub fn readiness(&self) -> Readiness {
        self.lock().last
    }

    /// Sets the watch, and reports the current readiness to it.
    pub fn watch(&self, mut watch: Box<dyn ReadinessWatch>) {
        let mut inner = self.lock();
        watch.update(inner.last);
        inner.watch = Some(watch);
    }

    /// Removes and drops the watch.
    pub fn unwatch(&self) {
        let watch = self.lock().watch.take();
        drop(watch);
    }

    /// Interrupts all waiting calls.
    pub fn interrupt(&self) {
        let mut inner = self.lock();
        inner.interrupts += 1;
        drop(inner);
        self.changed.notify_all();
    }
}

/// The end of a wait of this length; none: no end.
pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    // A deadline beyond the range of the clock is none.
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}
