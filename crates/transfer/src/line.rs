//! The two directions of a stream, how long to wait for a peer, and how far a transfer is.

use crate::fault::{Fault, TransferError};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(50);
/// An orderly end may take so long; then the line is closed.
const GRACE: Duration = Duration::from_secs(2);

/// A stream, as its two directions.
pub struct Line {
    /// What the other side sends.
    pub reader: Box<dyn Read + Send>,
    /// What it gets.
    pub writer: Box<dyn Write + Send>,
    /// Ends reads and writes that wait, from another thread.
    pub close: Box<dyn Fn() + Send + Sync>,
}

/// How long the other side may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until both have proved the token.
    pub handshake: Duration,
    /// Afterwards, without a byte in either direction.
    pub idle: Duration,
}

impl Default for Patience {
    /// 10 s, and 60 s.
    fn default() -> Self {
        Patience { handshake: Duration::from_secs(10), idle: Duration::from_secs(60) }
    }
}

/// How far a transfer is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes in all files of the transfer.
    pub total_bytes: u64,
    /// Of them, how many are dealt with: sent or received now, or there before.
    pub bytes: u64,
    /// Of them, how many were there before.
    pub spared: u64,
    /// Files, directories and links of the transfer.
    pub total_entries: u64,
    /// Files that are dealt with.
    pub files: u64,
    /// The file at hand. No control characters.
    pub name: String,
    /// Time since the start.
    pub elapsed: Duration,
}

/// What both sides need beside files.
pub struct Session<'a> {
    /// The shared secret; empty if there is none.
    pub token: &'a [u8],
    /// True on the side that connected, false on the one that listened.
    pub connected: bool,
    /// How long to wait.
    pub patience: Patience,
    /// Called all the time, to show progress. True: the transfer is to stop.
    pub tick: &'a (dyn Fn(&Progress) -> bool + Sync),
}

/// What the time went into, per part; they work at the same time, so that the sum may exceed the duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In reads or writes of files.
    pub disk: Duration,
    /// In hashing.
    pub hash: Duration,
    /// In writes to the network that waited (sender), or in reads from it (receiver).
    pub network: Duration,
    /// In keeping to the cap.
    pub cap: Duration,
    /// The network waited for disk or hashing.
    pub starved: Duration,
}

/// Nanoseconds that a thread adds up and another reads.
#[derive(Default)]
pub(crate) struct Spent(AtomicU64);

impl Spent {
    pub fn on<T>(&self, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanos, Ordering::Relaxed);
        result
    }
    pub fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

/// What the threads of one side share.
pub(crate) struct Shared {
    pub begun: Instant,
    /// Bytes in both directions.
    pub moved: AtomicU64,
    /// Something takes long here: not silence.
    pub alive: AtomicU64,
    pub ready: AtomicBool,
    pub stop: AtomicBool,
    /// The other side says nothing more.
    gone: AtomicBool,
    silent: AtomicBool,
    over: AtomicBool,
    pub progress: Mutex<Progress>,
    pub bytes: AtomicU64,
    pub disk: Spent,
    pub hash: Spent,
    pub network: Spent,
    pub cap: Spent,
    pub starved: Spent,
}

impl Shared {
    pub fn new() -> Self {
        Shared {
            begun: Instant::now(),
            moved: AtomicU64::new(0),
            alive: AtomicU64::new(0),
            ready: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            over: AtomicBool::new(false),
            progress: Mutex::default(),
            bytes: AtomicU64::new(0),
            disk: Spent::default(),
            hash: Spent::default(),
            network: Spent::default(),
            cap: Spent::default(),
            starved: Spent::default(),
        }
    }
    pub fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn snapshot(&self) -> Progress {
        let mut progress = self.progress().clone();
        progress.bytes = progress.spared.saturating_add(self.bytes.load(Ordering::Relaxed));
        progress.elapsed = self.begun.elapsed();
        progress
    }
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    pub fn hang_up(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }
    pub fn hung_up(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
    pub fn times(&self) -> Times {
        let Shared { disk, hash, network, cap, starved, .. } = self;
        Times {
            disk: disk.get(),
            hash: hash.get(),
            network: network.get(),
            cap: cap.get(),
            starved: starved.get(),
        }
    }
    /// The transfer has ended.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
    /// Looks at the clock until the transfer has ended: shows progress, and closes the line on a silent peer.
    pub fn watch(&self, session: &Session<'_>, close: &(dyn Fn() + Send + Sync), on_stop: impl Fn()) {
        let mut last = (0, 0);
        let mut heard = Instant::now();
        let mut stopped: Option<Instant> = None;
        while !self.over.load(Ordering::Relaxed) {
            std::thread::park_timeout(TICK);
            let now = (self.moved.load(Ordering::Relaxed), self.alive.load(Ordering::Relaxed));
            if now != last {
                last = now;
                heard = Instant::now();
            }
            let ready = self.ready.load(Ordering::Relaxed);
            let patience = if ready { session.patience.idle } else { session.patience.handshake };
            let since = if ready { heard } else { self.begun };
            if since.elapsed() > patience && !self.silent.swap(true, Ordering::Relaxed) {
                close();
            }
            if stopped.is_none() && (session.tick)(&self.snapshot()) {
                self.stop.store(true, Ordering::Relaxed);
                stopped = Some(Instant::now());
                on_stop();
            }
            // A write that waits for a peer does not see it.
            if stopped.is_some_and(|since| since.elapsed() > GRACE) {
                close();
            }
        }
    }
    /// What `error` comes from.
    pub fn cause(&self, error: TransferError, session: &Session<'_>) -> TransferError {
        let ready = self.ready.load(Ordering::Relaxed);
        let patience = if ready { session.patience.idle } else { session.patience.handshake };
        match error {
            TransferError::Peer(_) | TransferError::Own(Fault { .. }) => error,
            _ if self.stopped() => TransferError::Interrupted,
            _ if self.silent.load(Ordering::Relaxed) => TransferError::Silent(patience),
            _ => error,
        }
    }
}
