//! The two directions of a stream, how long to wait for a peer, and how far a transfer is.

use crate::fault::{TransferError, TransferFault};
use crate::limits::{MIN_HASH_RATE, MIN_MOVED};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// Between two looks at the clock.
const TICK: Duration = Duration::from_millis(50);
/// An orderly end may take so long; then the line is closed.
const GRACE: Duration = Duration::from_secs(2);

/// What counts as lately.
const RECENT: Duration = Duration::from_secs(5);

/// A stream, as its two directions.
pub struct FramedStream {
    /// What the other side sends.
    pub reader: Box<dyn Read + Send>,
    /// What it gets.
    pub writer: Box<dyn Write + Send>,
    /// Ends reads and writes that wait, from another thread.
    pub close: Box<dyn Fn() + Send + Sync>,
}

/// How long the other side may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until both have proved the token, from the first moment on, whatever comes meanwhile.
    pub handshake: Duration,
    /// Afterwards, without a byte in either direction; a stranger must bring [`MIN_MOVED`] bytes within it.
    pub idle: Duration,
}

impl Default for Timeouts {
    /// 10 s, and 60 s.
    fn default() -> Self {
        Timeouts { handshake: Duration::from_secs(10), idle: Duration::from_secs(60) }
    }
}

/// How far a transfer is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineProgress {
    /// Bytes in all files of the transfer.
    pub total_bytes: u64,
    /// Of them, how many are dealt with: sent or received now, or there before.
    pub bytes: u64,
    /// Of them, how many were there before.
    pub spared: u64,
    /// Bytes that came over the line, and bytes that were read here on its behalf: what has been done since
    /// the start.
    pub work: u64,
    /// Files, directories and links of the transfer.
    pub total_entries: u64,
    /// Files that are dealt with.
    pub files: u64,
    /// The file at hand. No control characters.
    pub name: String,
    /// Time since the start.
    pub elapsed: Duration,
    /// Bytes of files that came over the line or went lately, and in how long.
    pub recent: (u64, Duration),
    /// Since when nothing has come or gone, and nothing was done here either.
    pub silent: Duration,
}

/// What both sides need beside files.
#[derive(Clone, Copy)]
pub struct Session<'a> {
    /// The shared secret; empty if there is none. Without one, each side is a stranger to the other, unless
    /// the line is [secured](Self::secured).
    pub token: &'a [u8],
    /// Nothing is sent or written: both ends only say what would be. Both must know it.
    pub dry_run: bool,
    /// The line is encrypted, and both ends have proved their keys before: no token, and no tags. Both ends
    /// must say so.
    pub secured: bool,
    /// True on the side that connected, false on the one that listened.
    pub connected: bool,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// Called all the time, to show progress. True: the transfer is to stop.
    pub tick: &'a (dyn Fn(&LineProgress) -> bool + Sync),
    /// Asked when the other side has proved the token (or that it knows of none), before it gets anything.
    /// The fault is told to it, and that is the end.
    pub admit: &'a (dyn Fn() -> Result<(), TransferFault> + Sync),
    /// Sends: by this a receiver knows a sender without token again. Zeros: it does not.
    pub sender: SenderKey,
    /// Sends: bytes that the other side's TCP has acknowledged, where that is known. A line that is so slow
    /// that it takes nothing more for a while is not silent.
    pub acknowledged: &'a (dyn Fn() -> u64 + Sync),
}

impl Session<'_> {
    /// True if the other side has proved nothing: there is no token, and the line is not secured.
    pub const fn is_stranger(&self) -> bool {
        self.token.is_empty() && !self.secured
    }
}

/// What a sender without token is known by: bytes that nobody else can guess.
pub type SenderKey = [u8; 32];

impl Default for Session<'_> {
    /// No token, the side that connected, [`Timeouts::default`]; never stops, admits everybody, and is not
    /// known again.
    fn default() -> Self {
        Session {
            token: b"",
            dry_run: false,
            secured: false,
            connected: true,
            timeouts: Timeouts::default(),
            tick: &|_| false,
            admit: &|| Ok(()),
            sender: [0; 32],
            acknowledged: &|| 0,
        }
    }
}

/// What the time went into, per part; they work at the same time, so that the sum may exceed the duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineTimes {
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
pub(crate) struct LineTime(AtomicU64);

impl LineTime {
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

/// How many bytes moved lately.
#[derive(Default)]
struct RecentBytes(VecDeque<(Duration, u64)>);

impl RecentBytes {
    /// So many bytes until now: how many of them within the last [`RECENT`], and how long that is.
    fn add(&mut self, bytes: u64, now: Duration) -> (u64, Duration) {
        self.0.push_back((now, bytes));
        // The last one before is kept: the time begins there.
        while self.0.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= RECENT) {
            self.0.pop_front();
        }
        let (at, before) = self.0.front().copied().filter(|_| now > RECENT).unwrap_or_default();
        (bytes.saturating_sub(before), now.saturating_sub(at))
    }
}

/// What the threads of one side share.
pub(crate) struct LineState {
    pub begun: Instant,
    /// Bytes in both directions.
    pub moved: AtomicU64,
    /// Bytes of work that was done here meanwhile: not silence.
    pub alive: AtomicU64,
    pub ready: AtomicBool,
    pub stop: AtomicBool,
    /// The other side says nothing more.
    gone: AtomicBool,
    silent: AtomicBool,
    /// The line has been closed from here.
    closed: AtomicBool,
    over: AtomicBool,
    /// When the line is closed, whatever happens.
    end: Mutex<Option<Instant>>,
    pub progress: Mutex<LineProgress>,
    pub bytes: AtomicU64,
    pub disk: LineTime,
    pub hash: LineTime,
    pub network: LineTime,
    pub cap: LineTime,
    pub starved: LineTime,
}

impl LineState {
    pub fn new() -> Self {
        LineState {
            begun: Instant::now(),
            moved: AtomicU64::new(0),
            alive: AtomicU64::new(0),
            ready: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            over: AtomicBool::new(false),
            end: Mutex::new(None),
            progress: Mutex::default(),
            bytes: AtomicU64::new(0),
            disk: LineTime::default(),
            hash: LineTime::default(),
            network: LineTime::default(),
            cap: LineTime::default(),
            starved: LineTime::default(),
        }
    }
    pub fn progress(&self) -> MutexGuard<'_, LineProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn snapshot(&self) -> LineProgress {
        let mut progress = self.progress().clone();
        progress.bytes = progress.spared.saturating_add(self.bytes.load(Ordering::Relaxed));
        let work = [&self.moved, &self.alive].map(|counter| counter.load(Ordering::Relaxed));
        progress.work = work.iter().fold(0, |all, bytes| all.saturating_add(*bytes));
        progress.elapsed = self.begun.elapsed();
        progress
    }
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    /// True when the transfer was stopped or the line is closed: work for the peer is of no use any more.
    pub fn is_cancelled(&self) -> bool {
        self.stopped() || self.closed.load(Ordering::Relaxed) || self.hung_up()
    }
    /// Whatever still goes on, the line is closed after this time.
    pub fn end_within(&self, time: Duration) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + time);
    }
    /// The peer says that it is busy. This counts as progress while it may have `owed` bytes to hash at
    /// [`MIN_HASH_RATE`]. `busy` is the time of the first such message since anything else came.
    pub fn excuse(&self, busy: &mut Option<Instant>, owed: u64) {
        let since = *busy.get_or_insert_with(Instant::now);
        if since.elapsed() < Duration::from_secs(owed / MIN_HASH_RATE) {
            self.alive.fetch_add(MIN_MOVED, Ordering::Relaxed);
        }
    }
    pub fn hang_up(&self) {
        self.gone.store(true, Ordering::Relaxed);
    }
    pub fn hung_up(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
    pub fn times(&self) -> LineTimes {
        let LineState { disk, hash, network, cap, starved, .. } = self;
        LineTimes {
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
    /// Looks at the clock until the transfer has ended: shows progress, and closes the line on a peer that is
    /// silent or too slow. `last_words` are said when it is stopped from here; they may wait for the peer,
    /// but not for long.
    pub fn watch(
        &self,
        session: &Session<'_>,
        receives: bool,
        close: &(dyn Fn() + Send + Sync),
        last_words: impl Fn() + Sync,
    ) {
        // A sender chooses its receiver. A stranger that sends must keep a minimum rate, or it holds a place
        // for nothing.
        let least = if receives && session.is_stranger() { MIN_MOVED } else { 1 };
        let close = || {
            self.closed.store(true, Ordering::Relaxed);
            close();
        };
        std::thread::scope(|scope| {
            let (mut mark, mut heard) = (0, Instant::now());
            let mut recent = RecentBytes::default();
            let mut stopped: Option<(Instant, Option<ScopedJoinHandle<'_, ()>>)> = None;
            let is_speaking = |stopped: &Option<(_, Option<ScopedJoinHandle<'_, ()>>)>| {
                stopped.as_ref().and_then(|s| s.1.as_ref()).is_some_and(|words| !words.is_finished())
            };
            while !self.over.load(Ordering::Relaxed) || is_speaking(&stopped) {
                std::thread::park_timeout(TICK);
                let mut progress = self.snapshot();
                let work = progress.work.saturating_add((session.acknowledged)());
                if work >= least.saturating_add(mark) {
                    (mark, heard) = (work, Instant::now());
                }
                progress.silent = heard.elapsed();
                progress.recent = recent.add(self.bytes.load(Ordering::Relaxed), progress.elapsed);
                let ready = self.ready.load(Ordering::Relaxed);
                let timeout = if ready { session.timeouts.idle } else { session.timeouts.handshake };
                let since = if ready { heard } else { self.begun };
                if since.elapsed() > timeout && !self.silent.swap(true, Ordering::Relaxed) {
                    close();
                }
                let end = *self.end.lock().unwrap_or_else(PoisonError::into_inner);
                if end.is_some_and(|end| Instant::now() > end) {
                    close();
                }
                if stopped.is_none() && (session.tick)(&progress) {
                    self.stop.store(true, Ordering::Relaxed);
                    // A peer that does not read must not hold up the watch.
                    let speaking = Builder::new().spawn_scoped(scope, &last_words);
                    stopped = Some((Instant::now(), speaking.ok()));
                }
                // A write that waits for a peer does not see it.
                if stopped.as_ref().is_some_and(|(since, _)| since.elapsed() > GRACE) {
                    close();
                }
            }
        });
    }
    /// What `error` comes from.
    pub fn cause(&self, error: TransferError, session: &Session<'_>) -> TransferError {
        let ready = self.ready.load(Ordering::Relaxed);
        let timeout = if ready { session.timeouts.idle } else { session.timeouts.handshake };
        match error {
            TransferError::Peer(_) | TransferError::Own(TransferFault { .. }) => error,
            _ if self.stopped() => TransferError::Interrupted,
            _ if self.silent.load(Ordering::Relaxed) => TransferError::Silent(timeout),
            // Where keys do not fit, TLS ends like this, and WireGuard does not begin.
            TransferError::Closed | TransferError::Line(_)
                if !ready && session.secured && session.connected =>
            {
                TransferError::Unanswered
            }
            _ => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: after an outage, or where a path becomes slower, the remaining time follows the mean since the
    /// start.
    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut recent = RecentBytes::default();
        let s = Duration::from_secs;
        assert_eq!(recent.add(0, s(0)), (0, s(0)));
        assert_eq!(recent.add(1_000, s(1)), (1_000, s(1)));
        for at in 2..=60 {
            recent.add(1_000, s(at));
        }
        assert_eq!(recent.add(1_000, s(61)), (0, s(5)));
        assert_eq!(recent.add(2_000, s(62)), (1_000, s(5)));
        assert_eq!(recent.0.len(), 6);
    }
}
