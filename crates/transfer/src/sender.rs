//! The side that has the files: one thread reads them, one hashes, one sends, one hears what the receiver
//! says.

use crate::content::ContentHasher;
use crate::fault::{Code, TransferError, TransferFault, TransferProblem};
use crate::frame::{FrameWriter, IncomingFrame};
use crate::handshake::{AwaitedFrames, Role, greet};
use crate::limits::{
    BLOCKS, MAX_AHEAD, MAX_CONTROL, MAX_DATA, MAX_OFFER, MAX_PROBLEMS, MAX_WRITE, OPEN_OFFERS, QUEUE,
};
use crate::line::{FramedStream, LineProgress, LineState, LineTimes, Session};
use crate::message::{EntryKind, FileEntry, FileVerdict, TransferMessage, entry_len};
use crate::pipeline::{Extent, extent, hash_prefix, is_sparse};
use crate::throttle::Throttle;
use crate::walk::{SourceTree, Walk, modified};
use farpace_units::Rate;
use rustix::fs::{self as sys, Advice, Mode, OFlags};
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Files of a dry run that are kept by name.
pub(crate) const MAX_PLANNED: usize = 100_000;
/// So often a side that works for itself says that it is there.
pub(crate) const BUSY: Duration = Duration::from_secs(5);
/// How long a sender that cannot write waits for the receiver to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What came of sending.
#[derive(Clone, Debug, Default)]
pub struct SendReport {
    /// Files that the receiver has written, verified and named.
    pub files: u64,
    /// Files that were there already, with the same bytes.
    pub unchanged: u64,
    /// Bytes of files that went over the line and were of use.
    pub bytes: u64,
    /// Bytes that did not have to, because they were there.
    pub spared: u64,
    /// What was not transferred, the first 1,000 of them.
    pub problems: Vec<TransferProblem>,
    /// How many were not transferred.
    pub failed: u64,
    /// In a dry run: what would be sent, and its bytes; the first 100,000 (`MAX_PLANNED`).
    pub planned: Vec<(String, u64)>,
    /// From the first hello to the last acknowledgement.
    pub elapsed: Duration,
    /// What the sender's time went into.
    pub times: LineTimes,
    /// What the receiver's time went into.
    pub receiver: LineTimes,
}

enum SenderStep {
    Offer {
        first: u64,
        entries: Vec<FileEntry>,
    },
    Begin {
        index: u64,
        offset: u64,
        hasher: Box<ContentHasher>,
        name: String,
    },
    /// As `Begin` from the beginning of the file, before its verdict is known.
    Ahead {
        index: u64,
        name: String,
    },
    Withdraw,
    Same {
        index: u64,
    },
    Block(Vec<u8>, usize),
    Hole(u64),
    /// All was read.
    End,
    Hashed(crate::message::Hash),
    Abandon(TransferFault),
    Seal(TransferMessage),
    Finish,
}

#[derive(Default)]
struct SendTally {
    files: u64,
    unchanged: u64,
    failed: u64,
    problems: Vec<TransferProblem>,
    planned: Vec<(String, u64)>,
    receiver: Option<LineTimes>,
    /// Problems that the receiver does not know yet, the first of them, and how many there are.
    missed: Vec<TransferProblem>,
    missed_count: u64,
}

impl SendTally {
    fn problem(&mut self, path: String, fault: TransferFault) {
        self.failed += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(TransferProblem { path, fault });
        }
    }

    /// A problem that only this side knows.
    fn miss(&mut self, path: String, fault: TransferFault) {
        self.missed_count += 1;
        if self.missed.len() < MAX_PROBLEMS {
            self.missed.push(TransferProblem { path: path.clone(), fault: fault.clone() });
        }
        self.problem(path, fault);
    }
}

/// Sends what was found by a walk over a line, at `limit` at most.
///
/// When this returns without an error, the receiver has said that all is written and verified, but for the
/// problems.
///
/// # Errors
/// See [`TransferError`]. What has been received until then stays there to be resumed.
pub fn send(
    line: FramedStream,
    session: &Session<'_>,
    walk: Walk,
    limit: Option<Rate>,
) -> Result<SendReport, TransferError> {
    let shared = LineState::new();
    let Walk { sources, entries, bytes, roots, problems, .. } = walk;
    *shared.progress() =
        LineProgress { total_bytes: bytes, total_entries: entries, ..LineProgress::default() };
    let mut tally = SendTally::default();
    problems.into_iter().for_each(|TransferProblem { path, fault }| tally.miss(path, fault));
    let job = SendJob {
        shared: &shared,
        sources: &sources,
        dry_run: session.dry_run,
        tally: Mutex::new(tally),
        unwanted: AtomicU64::new(u64::MAX),
    };
    // Who knows the token need not be known by anything else.
    let sender = if session.is_stranger() { session.sender } else { [0; 32] };
    let summary = TransferMessage::Summary { entries, bytes, roots, sender };
    let FramedStream { reader, writer, close } = line;
    let close = &*close;
    let result = std::thread::scope(|scope| {
        let watch = scope.spawn(|| shared.watch(session, false, close, || ()));
        let result = job.run(reader, writer, session, summary, limit, close);
        shared.end();
        watch.thread().unpark();
        result
    });
    result.map_err(|error| shared.cause(error, session))?;
    let progress = shared.snapshot();
    let tally = job.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(SendReport {
        files: tally.files,
        unchanged: tally.unchanged,
        bytes: shared.bytes.load(Ordering::Relaxed),
        spared: progress.spared,
        problems: tally.problems,
        planned: tally.planned,
        failed: tally.failed,
        elapsed: progress.elapsed,
        times: shared.times(),
        receiver: tally.receiver.unwrap_or_default(),
    })
}

struct SendJob<'a> {
    shared: &'a LineState,
    sources: &'a [SourceTree],
    dry_run: bool,
    tally: Mutex<SendTally>,
    /// The number of the file that the receiver last said it cannot store: the rest of it is of no use.
    unwanted: AtomicU64,
}

impl SendJob<'_> {
    fn tally<T>(&self, change: impl FnOnce(&mut SendTally) -> T) -> T {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// In a dry run, this would be sent.
    fn plan(&self, name: String, bytes: u64) {
        self.tally(|tally| {
            if tally.planned.len() < MAX_PLANNED {
                tally.planned.push((name, bytes));
            }
        });
    }
    fn problem(&self, path: String, fault: TransferFault) {
        self.tally(|tally| tally.problem(path, fault));
    }

    fn run(
        &self,
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        session: &Session<'_>,
        summary: TransferMessage,
        limit: Option<Rate>,
        close: &(dyn Fn() + Send + Sync),
    ) -> Result<(), TransferError> {
        let shared = self.shared;
        let (reader, writer) = (BufReader::new(reader), BufWriter::with_capacity(MAX_WRITE, writer));
        let (awaited, mut out) = greet(reader, writer, session, Role::Sends, &shared.moved)?;
        out.message(&summary)?;
        let (steps, read) = sync_channel(QUEUE);
        let (hashed, ready) = sync_channel(QUEUE);
        let (give_back, pool) = channel();
        for _ in 0..BLOCKS {
            let _ = give_back.send(Vec::new());
        }
        let (answer, answers) = channel();
        let (ended, end) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || self.read_files(&steps, &answers, &pool));
            scope.spawn(move || hash_steps(&read, &hashed, shared));
            scope.spawn(move || {
                // All that the receiver says, until it is done.
                let heard = self.hear(awaited, session, answer);
                if heard.is_err() {
                    shared.hang_up();
                }
                let _ = ended.send(heard);
            });
            let sent = self.write_steps(&mut out, &ready, give_back, limit);
            drop(ready);
            let heard = match &sent {
                // The watch keeps the time.
                Ok(()) => end.recv().unwrap_or(Err(TransferError::Closed)),
                Err(_) => {
                    let heard = end.recv_timeout(LAST_WORDS);
                    heard.unwrap_or(Err(TransferError::Closed))
                }
            };
            // Wakes the thread that hears, if it still waits.
            close();
            match (sent, heard) {
                (Ok(()), heard) => heard,
                // What the receiver says is nearer to the cause than that writing failed.
                (
                    Err(_),
                    Err(
                        error @ (TransferError::Peer(_) | TransferError::Protocol(_) | TransferError::Own(_)),
                    ),
                ) => Err(error),
                (Err(error), _) => Err(error),
            }
        })
    }

    fn hear<R: Read>(
        &self,
        awaited: AwaitedFrames<'_, R>,
        session: &Session<'_>,
        answer: Sender<Vec<FileVerdict>>,
    ) -> Result<(), TransferError> {
        let mut frames = awaited.wait(session)?;
        self.shared.ready.store(true, Ordering::Relaxed);
        let names: Vec<&FileEntry> = self
            .sources
            .iter()
            .filter_map(
                |source| if let SourceTree::Entry { entry, .. } = source { Some(entry) } else { None },
            )
            .collect();
        let mut block = Vec::new();
        let mut told = 0_u64;
        let mut expected = 0_u64;
        let mut busy = None;
        loop {
            let IncomingFrame::Message(message) = frames.next(&mut block)? else {
                return Err(TransferError::Protocol("the receiver sends data"));
            };
            if message == TransferMessage::Busy {
                // It hashes what it has of the files that it has not answered for.
                let open = names.iter().skip(usize::try_from(expected).unwrap_or(usize::MAX));
                let sizes = open.take(OPEN_OFFERS * MAX_OFFER).map(|entry| match entry.kind {
                    EntryKind::File { size } => size,
                    _ => 0,
                });
                self.shared.excuse(&mut busy, sizes.fold(0, u64::saturating_add));
                continue;
            }
            busy = None;
            match message {
                TransferMessage::Answers { first, verdicts } => {
                    if first != expected {
                        return Err(TransferError::Protocol("answers out of order"));
                    }
                    expected += verdicts.len() as u64;
                    let _ = answer.send(verdicts);
                }
                TransferMessage::Done { index, fault } => {
                    let entry = usize::try_from(index).ok().and_then(|index| names.get(index));
                    let entry = entry.ok_or(TransferError::Protocol("done with a file that was not sent"))?;
                    match fault {
                        None => self.tally(|tally| tally.files += 1),
                        Some(fault) => {
                            self.unwanted.store(index, Ordering::Relaxed);
                            self.problem(entry.path.to_string(), fault);
                        }
                    }
                    self.shared.progress().files += 1;
                }
                TransferMessage::Missed { path, fault } => {
                    told += 1;
                    if told > MAX_PROBLEMS as u64 {
                        return Err(TransferError::Protocol("more has failed than a receiver tells"));
                    }
                    self.problem(path, fault);
                }
                TransferMessage::Finished { disk, hash, waited, missed, .. } => {
                    let times = LineTimes { disk, hash, network: waited, ..LineTimes::default() };
                    self.tally(|tally| {
                        tally.receiver = Some(times);
                        tally.failed = tally.failed.saturating_add(missed.saturating_sub(told));
                    });
                    return Ok(());
                }
                TransferMessage::Failed(fault) => return Err(TransferError::Peer(fault)),
                _ => return Err(TransferError::Protocol("a message that only senders send")),
            }
        }
    }

    /// Takes the hashed blocks and sends them. An error is one of the line, or that the transfer was stopped.
    fn write_steps<W: Write>(
        &self,
        out: &mut FrameWriter<W>,
        ready: &Receiver<SenderStep>,
        give_back: Sender<Vec<u8>>,
        limit: Option<Rate>,
    ) -> Result<(), TransferError> {
        let shared = self.shared;
        let mut throttle = limit.map(Throttle::new);
        // Bytes and holes that may turn out to be of no use.
        let mut ahead = (0, 0);
        let mut spoke = Instant::now();
        loop {
            if shared.stopped() {
                let _ = out.message(&TransferMessage::Failed(TransferFault::new(
                    Code::Interrupted,
                    "the sender was stopped",
                )));
                let _ = out.flush();
                return Err(TransferError::Interrupted);
            }
            if shared.hung_up() {
                return Err(TransferError::Closed);
            }
            let step = match ready.try_recv() {
                Ok(step) => step,
                Err(_) => {
                    shared.network.on(|| out.flush())?;
                    match shared.starved.on(|| ready.recv_timeout(Duration::from_millis(100))) {
                        Ok(step) => step,
                        Err(RecvTimeoutError::Timeout) => {
                            if spoke.elapsed() > BUSY {
                                spoke = Instant::now();
                                out.message(&TransferMessage::Busy)?;
                            }
                            continue;
                        }
                        Err(RecvTimeoutError::Disconnected) => return Err(TransferError::Closed),
                    }
                }
            };
            match step {
                SenderStep::Block(block, len) => {
                    let bytes = block.get(..len).unwrap_or_default();
                    if len > 0 {
                        out.data_header(len)?;
                    }
                    let slice = throttle.as_ref().map_or(MAX_WRITE, Throttle::slice);
                    for bytes in bytes.chunks(slice) {
                        if let Some(throttle) = &mut throttle {
                            shared.cap.on(|| throttle.wait(bytes.len(), || shared.stopped()));
                        }
                        shared.network.on(|| {
                            out.raw(bytes)
                                .and_then(|()| if throttle.is_some() { out.flush() } else { Ok(()) })
                        })?;
                        shared.moved.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                        shared.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    }
                    ahead.0 += len as u64;
                    let _ = give_back.send(block);
                }
                SenderStep::Offer { first, entries } => {
                    out.message(&TransferMessage::Offer { first, entries })?
                }
                SenderStep::Begin { index, offset, name, .. } => {
                    let mut progress = shared.progress();
                    progress.spared += offset;
                    progress.name = name;
                    drop(progress);
                    out.message(&TransferMessage::Begin { index, offset })?;
                }
                SenderStep::Ahead { index, name } => {
                    ahead = (0, 0);
                    shared.progress().name = name;
                    out.message(&TransferMessage::Ahead { index })?;
                }
                SenderStep::Withdraw => {
                    shared.bytes.fetch_sub(ahead.0, Ordering::Relaxed);
                    let mut progress = shared.progress();
                    progress.spared = progress.spared.saturating_sub(ahead.1);
                    drop(progress);
                    out.message(&TransferMessage::Withdraw)?;
                }
                SenderStep::Same { index } => out.message(&TransferMessage::Same { index })?,
                SenderStep::Hole(len) => {
                    ahead.1 += len;
                    shared.progress().spared += len;
                    out.message(&TransferMessage::Hole { len })?;
                }
                SenderStep::Hashed(hash) => out.message(&TransferMessage::End { hash })?,
                // It has been made a hash before.
                SenderStep::End => {}
                SenderStep::Abandon(fault) => out.message(&TransferMessage::Abandon(fault))?,
                SenderStep::Seal(message) => out.message(&message)?,
                SenderStep::Finish => {
                    let (told, missed) =
                        self.tally(|tally| (std::mem::take(&mut tally.missed), tally.missed_count));
                    for TransferProblem { path, fault } in told {
                        out.message(&TransferMessage::Missed { path, fault })?;
                    }
                    out.message(&TransferMessage::Finish { missed })?;
                    shared.network.on(|| out.flush())?;
                    return Ok(());
                }
            }
        }
    }

    /// Reads files in order, an offer ahead of what the receiver has answered. Ends early if nobody takes the
    /// steps.
    fn read_files(
        &self,
        out: &SyncSender<SenderStep>,
        answers: &Receiver<Vec<FileVerdict>>,
        pool: &Receiver<Vec<u8>>,
    ) -> Option<()> {
        let mut offers = offers(self.sources).into_iter().peekable();
        let offer = |(first, sources): (u64, &[SourceTree])| {
            let entries = sources.iter().filter_map(|source| match source {
                SourceTree::Entry { entry, .. } => Some(entry.clone()),
                SourceTree::Seal { .. } => None,
            });
            let entries: Vec<_> = entries.collect();
            if entries.is_empty() { Some(()) } else { out.send(SenderStep::Offer { first, entries }).ok() }
        };
        let mut ahead = None;
        if let Some(first) = offers.peek() {
            offer(*first)?;
            ahead = self.read_ahead(*first, out, pool)?;
        }
        while let Some((mut index, sources)) = offers.next() {
            if let Some(next) = offers.peek() {
                offer(*next)?;
            }
            let is_entry = |source: &&SourceTree| matches!(source, SourceTree::Entry { .. });
            let count = sources.iter().filter(is_entry).count();
            let verdicts = if count == 0 { Vec::new() } else { answers.recv().ok()? };
            if verdicts.len() != count {
                return None;
            }
            let mut verdicts = verdicts.into_iter();
            for source in sources {
                match source {
                    SourceTree::Entry { entry, from } => {
                        let verdict = verdicts.next()?;
                        match ahead.take_if(|ahead| ahead.index == index) {
                            Some(ahead) if verdict == FileVerdict::Send => {
                                self.read_rest(entry, ahead, out, pool)?;
                            }
                            Some(_) => {
                                out.send(SenderStep::Withdraw).ok()?;
                                self.read_entry(index, entry, from, verdict, out, pool)?;
                            }
                            None => self.read_entry(index, entry, from, verdict, out, pool)?,
                        }
                        index += 1;
                    }
                    SourceTree::Seal { path, mode, modified, whole } => {
                        let (whole, path) = (*whole, path.clone());
                        let seal = TransferMessage::Seal { whole, path, mode: *mode, modified: *modified };
                        out.send(SenderStep::Seal(seal)).ok()?;
                    }
                }
            }
        }
        out.send(SenderStep::Finish).ok()
    }

    /// Begins with the first file of the first offer before its verdict is known, so that the first round
    /// trip carries data. `None`: nobody takes the steps; none within: there is nothing to begin with.
    fn read_ahead(
        &self,
        (first, sources): (u64, &[SourceTree]),
        out: &SyncSender<SenderStep>,
        pool: &Receiver<Vec<u8>>,
    ) -> Option<Option<FileAhead>> {
        let entries = sources.iter().filter_map(|source| match source {
            SourceTree::Entry { entry, from } => Some((entry, from)),
            SourceTree::Seal { .. } => None,
        });
        let found = (first..).zip(entries).find_map(|(index, (entry, from))| match entry.kind {
            EntryKind::File { size } => Some((index, entry, from, size)),
            _ => None,
        });
        let Some((index, entry, from, size)) = found.filter(|(.., size)| *size > 0 && !self.dry_run) else {
            return Some(None);
        };
        let Some(file) = open(from).ok().filter(|file| is_same(file, entry)) else { return Some(None) };
        out.send(SenderStep::Ahead { index, name: entry.path.to_string() }).ok()?;
        let until = size.min(MAX_AHEAD);
        let read = self.read_content(index, &file, 0, until, out, pool)?;
        Some(Some(FileAhead { index, file, read: read.map(|()| until) }))
    }

    /// Goes on with a file that was begun before its verdict was known. `None`: nobody takes the steps.
    fn read_rest(
        &self,
        entry: &FileEntry,
        ahead: FileAhead,
        out: &SyncSender<SenderStep>,
        pool: &Receiver<Vec<u8>>,
    ) -> Option<()> {
        let EntryKind::File { size } = entry.kind else { return None };
        let read = match ahead.read {
            Ok(at) => self.read_content(ahead.index, &ahead.file, at, size, out, pool)?,
            Err(fault) => Err(fault),
        };
        out.send(ending(read, &ahead.file, entry)).ok()
    }

    /// `None`: nobody takes the steps.
    fn read_entry(
        &self,
        index: u64,
        entry: &FileEntry,
        from: &Path,
        verdict: FileVerdict,
        out: &SyncSender<SenderStep>,
        pool: &Receiver<Vec<u8>>,
    ) -> Option<()> {
        let name = entry.path.to_string();
        let EntryKind::File { size } = entry.kind else {
            self.shared.progress().files += 1;
            match verdict {
                FileVerdict::Refused(fault) => self.problem(name, fault),
                FileVerdict::Made if self.dry_run && matches!(entry.kind, EntryKind::Link { .. }) => {
                    self.plan(name, 0);
                }
                _ => {}
            }
            return Some(());
        };
        let pass_over = || {
            let mut progress = self.shared.progress();
            progress.files += 1;
            progress.total_bytes = progress.total_bytes.saturating_sub(size);
        };
        let skip = |fault: TransferFault| {
            pass_over();
            self.tally(|tally| tally.miss(name.clone(), fault));
            Some(())
        };
        let file = match open(from) {
            Ok(file) => file,
            Err(fault) => return skip(fault),
        };
        if !is_same(&file, entry) {
            return skip(changed());
        }
        let check = |len| hash_prefix(&file, len, self.shared, || true);
        let unreadable = |error: &std::io::Error| TransferFault::of(error, "cannot read it");
        let (offset, hasher) = match verdict {
            FileVerdict::Send => (0, ContentHasher::default()),
            FileVerdict::Resume { offset, hash } => match check(offset.min(size)) {
                Ok(Some(there)) if offset <= size && there.hasher.result() == hash => (offset, there.hasher),
                Ok(_) => (0, ContentHasher::default()),
                Err(error) => return skip(unreadable(&error)),
            },
            FileVerdict::Have { hash, replace } => match check(size) {
                Ok(Some(there)) if there.hasher.result() == hash => {
                    let mut progress = self.shared.progress();
                    progress.spared += size;
                    progress.files += 1;
                    drop(progress);
                    self.tally(|tally| tally.unchanged += 1);
                    if replace && !self.dry_run {
                        out.send(SenderStep::Same { index }).ok()?;
                    }
                    return Some(());
                }
                Ok(_) if replace => (0, ContentHasher::default()),
                Ok(_) => {
                    let text = "there is another file of this name; the receiver does not overwrite";
                    return skip(TransferFault::new(Code::Exists, text));
                }
                Err(error) => return skip(unreadable(&error)),
            },
            FileVerdict::Refused(fault) => {
                pass_over();
                self.problem(name, fault);
                return Some(());
            }
            FileVerdict::Made | FileVerdict::There => {
                return skip(TransferFault::new(Code::Protocol, "the receiver took it for a directory"));
            }
        };
        if self.dry_run {
            self.plan(name.clone(), size - offset);
            out.send(SenderStep::Begin { index, offset, hasher: Box::new(hasher), name }).ok()?;
            return out.send(SenderStep::Abandon(TransferFault::new(Code::Interrupted, "a dry run"))).ok();
        }
        out.send(SenderStep::Begin { index, offset, hasher: Box::new(hasher), name: name.clone() }).ok()?;
        let read = self.read_content(index, &file, offset, size, out, pool)?;
        out.send(ending(read, &file, entry)).ok()
    }

    /// Reads a file from `offset` to `end`. `None`: nobody takes the steps. An error: it cannot be read so
    /// far, or is not wanted any more.
    fn read_content(
        &self,
        index: u64,
        file: &File,
        offset: u64,
        end: u64,
        out: &SyncSender<SenderStep>,
        pool: &Receiver<Vec<u8>>,
    ) -> Option<Result<(), TransferFault>> {
        let _ = sys::fadvise(file, offset, NonZeroU64::new(end), Advice::Sequential);
        let sparse = is_sparse(file);
        let mut at = offset;
        while at < end {
            let until = match extent(file, sparse, at, end) {
                Extent::Hole(until) => {
                    out.send(SenderStep::Hole(until - at)).ok()?;
                    at = until;
                    continue;
                }
                Extent::Data(until) => until,
            };
            while at < until {
                if self.unwanted.load(Ordering::Relaxed) == index {
                    let text = "the receiver cannot store it";
                    return Some(Err(TransferFault::new(Code::Other, text)));
                }
                let mut block = pool.recv().ok()?;
                block.resize(MAX_DATA, 0);
                let want = usize::try_from(until - at).unwrap_or(MAX_DATA).min(MAX_DATA);
                let into = block.get_mut(..want).unwrap_or_default();
                let got = match self.shared.disk.on(|| file.read_at(into, at)) {
                    Ok(0) => {
                        return Some(Err(TransferFault::new(
                            Code::Changed,
                            "it became shorter while it was being sent",
                        )));
                    }
                    Ok(got) => got,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
                    Err(error) => return Some(Err(TransferFault::of(&error, "cannot read it"))),
                };
                at += got as u64;
                // An interrupted read gives an empty block, which is given back without being sent.
                out.send(SenderStep::Block(block, got)).ok()?;
            }
        }
        Some(Ok(()))
    }
}

/// A file whose content is under way before its verdict is known.
struct FileAhead {
    index: u64,
    file: File,
    /// How far it was read.
    read: Result<u64, TransferFault>,
}

/// True while a file is what was offered.
fn is_same(file: &File, entry: &FileEntry) -> bool {
    let EntryKind::File { size } = entry.kind else { return false };
    let metadata = file.metadata();
    metadata.is_ok_and(|m| m.is_file() && m.len() == size && modified(&m) == entry.modified)
}

fn changed() -> TransferFault {
    TransferFault::new(Code::Changed, "it changed while it was being sent; send it again")
}

/// How a file ends whose content was read, or not.
fn ending(read: Result<(), TransferFault>, file: &File, entry: &FileEntry) -> SenderStep {
    match read {
        Ok(()) if is_same(file, entry) => SenderStep::End,
        Ok(()) => SenderStep::Abandon(changed()),
        Err(fault) => SenderStep::Abandon(fault),
    }
}

fn open(from: &Path) -> Result<File, TransferFault> {
    // Something else may have taken its place: a pipe would block, a link lead elsewhere.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = sys::open(from, flags, Mode::empty()).map_err(|errno| match errno {
        rustix::io::Errno::NOENT => TransferFault::new(Code::Vanished, "it is not there any more"),
        _ => TransferFault::of(&errno.into(), "cannot open it"),
    });
    file.map(File::from)
}

/// The sources in pieces that are offered together, each with the number of its first entry.
fn offers(sources: &[SourceTree]) -> Vec<(u64, &[SourceTree])> {
    let mut offers = Vec::new();
    let (mut start, mut first, mut count, mut bytes) = (0, 0, 0, 16);
    for (at, source) in sources.iter().enumerate() {
        let SourceTree::Entry { entry, .. } = source else { continue };
        let len = entry_len(entry);
        if count == MAX_OFFER || bytes + len > MAX_CONTROL {
            offers.push((first, sources.get(start..at).unwrap_or_default()));
            (start, first, count, bytes) = (at, first + count as u64, 0, 16);
        }
        count += 1;
        bytes += len;
    }
    offers.push((first, sources.get(start..).unwrap_or_default()));
    offers
}

/// Hashes what was read and passes it on.
fn hash_steps(read: &Receiver<SenderStep>, out: &SyncSender<SenderStep>, shared: &LineState) {
    let mut hasher = ContentHasher::default();
    for mut step in read {
        match &mut step {
            SenderStep::Begin { hasher: begun, .. } => hasher = std::mem::take(&mut **begun),
            SenderStep::Ahead { .. } => hasher = ContentHasher::default(),
            SenderStep::Block(block, len) => {
                shared.hash.on(|| hasher.update(block.get(..*len).unwrap_or_default()));
            }
            SenderStep::Hole(len) => hasher.zeros(*len),
            SenderStep::End => step = SenderStep::Hashed(hasher.result()),
            _ => {}
        }
        if out.send(step).is_err() {
            return;
        }
    }
}
