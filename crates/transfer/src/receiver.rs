//! The side that gets the files: one thread hears, one hashes, one writes to the disk and acknowledges.

use crate::content::ContentHasher;
use crate::fault::{Code, TransferError, TransferFault, TransferProblem};
use crate::frame::{FrameReader, FrameWriter, IncomingFrame};
use crate::handshake::{Role, shake};
use crate::limits::{
    BLOCKS, MAX_AHEAD, MAX_ENTRIES, MAX_PROBLEMS, MAX_RESUMED, MAX_UNSEALED, OPEN_OFFERS, QUEUE,
};
use crate::line::{FramedStream, LineState, LineTimes, Session};
use crate::message::{EntryKind, FileEntry, FileTime, FileVerdict, Hash, TransferMessage};
use crate::path::RelPath;
use crate::place::{Destination, DirectorySeal, Partial, Peer, Stranger, Wanted};
use crate::sender::{BUSY, MAX_PLANNED};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

/// After a fault so long and so much is still heard, so that the other side hears of it before the line is
/// closed.
const DRAIN: Duration = Duration::from_secs(3);
const DRAIN_BYTES: u64 = 64 << 20;
/// Names in one directory that are remembered to know what else is in it.
const MAX_REMEMBERED: usize = 1_000_000;

/// What came of receiving.
#[derive(Clone, Debug, Default)]
pub struct ReceiveReport {
    /// Files written, verified and named.
    pub files: u64,
    /// Bytes of files that came over the line.
    pub bytes: u64,
    /// Bytes that did not have to, because they were there or are holes.
    pub spared: u64,
    /// What was not written, the first 1,000 of them.
    pub problems: Vec<TransferProblem>,
    /// How many were not written.
    pub failed: u64,
    /// In a dry run: what would be received, and its bytes; the first 100,000 (`MAX_PLANNED`).
    pub planned: Vec<(String, u64)>,
    /// What was removed, or in a dry run would be; the first 100,000.
    pub deleted: Vec<String>,
    /// From the first hello to the last acknowledgement.
    pub elapsed: Duration,
    /// What the time went into.
    pub times: LineTimes,
}

enum ReceiverStep {
    Begin {
        index: u64,
        wanted: Box<Wanted>,
        peer: Peer,
        offset: u64,
    },
    /// A file that is there has the content of this one.
    Same(Box<FileEntry>, Peer),
    Block(Vec<u8>, usize),
    Hole(u64),
    End(Hash),
    /// What the sender says, and what came.
    Hashed(Hash, Hash),
    Abandon(TransferFault),
    Seal {
        path: RelPath,
        peer: Peer,
        /// What of these this sender may set.
        seal: DirectorySeal,
        mark: (u16, FileTime),
        /// What the sender has in it, if the rest is to go; none within: too much to remember.
        names: Option<Option<BTreeSet<OsString>>>,
        /// All that is in it there was sent.
        whole: bool,
    },
}

#[derive(Default)]
struct ReceiveTally {
    files: u64,
    failed: u64,
    problems: Vec<TransferProblem>,
    planned: Vec<(String, u64)>,
    deleted: Vec<String>,
    /// Problems that the sender does not know yet, the first of them, and how many there are.
    missed: Vec<TransferProblem>,
    missed_count: u64,
    /// What ended all.
    fatal: Option<TransferFault>,
}

/// Receives what a sender sends, into a place.
///
/// # Errors
/// See [`TransferError`]. What has been received until then stays there to be resumed.
pub fn receive(
    line: FramedStream,
    session: &Session<'_>,
    place: &Destination,
) -> Result<ReceiveReport, TransferError> {
    let shared = LineState::new();
    let job = ReceiveJob { shared: &shared, place, tally: Mutex::default() };
    let FramedStream { reader, writer, close } = line;
    let close = &*close;
    // What the writer is, the watch learns when there are keys.
    let out = &Mutex::new(None);
    let result = std::thread::scope(|scope| {
        let watch = spawn(scope, || {
            shared.watch(session, true, close, || {
                let fault = TransferFault::new(Code::Interrupted, "the receiver was stopped");
                let _ = say(out, &TransferMessage::Failed(fault));
                close();
            });
        })?;
        let result = job.run(reader, writer, session, out);
        // The last words are out; nothing waits behind them.
        shared.end();
        watch.thread().unpark();
        result
    });
    result.map_err(|error| shared.cause(error, session))?;
    let progress = shared.snapshot();
    let tally = job.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(ReceiveReport {
        files: tally.files,
        bytes: shared.bytes.load(Ordering::Relaxed),
        spared: progress.spared,
        problems: tally.problems,
        planned: tally.planned,
        deleted: tally.deleted,
        failed: tally.failed,
        elapsed: progress.elapsed,
        times: shared.times(),
    })
}

/// A thread, or that the system gives none: then this transfer ends, and others go on.
fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    work: impl FnOnce() + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, ()>> {
    Builder::new().spawn_scoped(scope, work)
}

type Out = Mutex<Option<FrameWriter<Box<dyn Write + Send>>>>;

fn say(out: &Out, message: &TransferMessage) -> io::Result<()> {
    match &mut *out.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(out) => out.message(message).and_then(|()| out.flush()),
        None => Ok(()),
    }
}

/// What the sender has announced.
struct Announced {
    entries: u64,
    peer: Peer,
}

/// Offers whose files have not all been sent.
#[derive(Default)]
struct Offers {
    /// The files of each, and how much the sender has to hash before it sends them.
    open: VecDeque<(BTreeMap<u64, Wanted>, u64)>,
    next: u64,
    /// What was offered last: each path comes after the one before, so that none comes twice.
    last: Option<RelPath>,
    /// Directories that are not complete yet, and what of them this sender may set.
    unsealed: BTreeMap<RelPath, DirectorySeal>,
    /// If directories lose what the sender does not have: names in each that is not complete. None: too many
    /// to remember.
    names: BTreeMap<RelPath, Option<BTreeSet<OsString>>>,
    /// What may come ahead of its verdict: the first file of the first offer, and whether it is to be sent.
    ahead: Option<(u64, bool)>,
}

impl Offers {
    /// The sender has this.
    fn remember(&mut self, path: &RelPath, is_directory: bool) {
        let (parent, name) = path.split();
        let parent = parent.and_then(|parent| RelPath::new(parent).ok());
        if let Some(known) = parent.and_then(|parent| self.names.get_mut(&parent)) {
            if let Some(names) = known {
                names.insert(name.to_owned());
            }
            if known.as_ref().is_some_and(|names| names.len() > MAX_REMEMBERED) {
                *known = None;
            }
        }
        if is_directory {
            self.names.insert(path.clone(), Some(BTreeSet::new()));
        }
    }
    /// Bytes that the sender may have to hash now.
    fn owed(&self) -> u64 {
        self.open.iter().fold(0, |all, (_, bytes)| all.saturating_add(*bytes))
    }
}

/// The file that is coming in.
struct Current {
    /// Bytes that may still come.
    left: u64,
    /// It came ahead of its verdict, which is another one: its bytes are of no use.
    is_useless: bool,
}

struct ReceiveJob<'a> {
    shared: &'a LineState,
    place: &'a Destination,
    tally: Mutex<ReceiveTally>,
}

impl ReceiveJob<'_> {
    fn tally<T>(&self, change: impl FnOnce(&mut ReceiveTally) -> T) -> T {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn run(
        &self,
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        session: &Session<'_>,
        out: &Out,
    ) -> Result<(), TransferError> {
        let shared = self.shared;
        let reader = BufReader::with_capacity(64 * 1024, reader);
        let (mut frames, writer) = shake(reader, writer, session, Role::Receives, &shared.moved)?;
        *out.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        shared.ready.store(true, Ordering::Relaxed);
        let (steps, heard) = sync_channel(QUEUE);
        let (hashed, to_write) = sync_channel(QUEUE);
        let (give_back, pool) = channel();
        for _ in 0..BLOCKS {
            let _ = give_back.send(Vec::new());
        }
        let result = std::thread::scope(|scope| {
            spawn(scope, move || hash_steps(&heard, &hashed, shared))?;
            let disk = spawn(scope, move || self.write_steps(&to_write, &give_back, out))?;
            let heard = self.hear(&mut frames, session, steps, &pool, out);
            // The channel is closed now: whatever came is written.
            let _ = disk.join();
            heard
        });
        if let Some(fault) = self.tally(|tally| tally.fatal.take()) {
            self.drain(&mut frames);
            return Err(TransferError::Own(fault));
        }
        match result {
            Ok(()) => {
                let times = shared.times();
                let files = self.tally(|tally| tally.files);
                let bytes = shared.bytes.load(Ordering::Relaxed);
                let (disk, hash, waited) = (times.disk, times.hash, times.network);
                let (told, missed) =
                    self.tally(|tally| (std::mem::take(&mut tally.missed), tally.missed_count));
                for TransferProblem { path, fault } in told {
                    say(out, &TransferMessage::Missed { path, fault })?;
                }
                say(out, &TransferMessage::Finished { files, bytes, disk, hash, waited, missed })?;
                Ok(())
            }
            Err(TransferError::Protocol(why)) => {
                let _ = say(out, &TransferMessage::Failed(TransferFault::new(Code::Protocol, why)));
                self.drain(&mut frames);
                Err(TransferError::Protocol(why))
            }
            Err(error) => Err(error),
        }
    }

    /// Hears on for a while, so that what was said last is not lost with the line.
    fn drain<R: Read>(&self, frames: &mut FrameReader<'_, R>) {
        self.shared.end_within(DRAIN);
        let start = self.shared.moved.load(Ordering::Relaxed);
        let mut block = Vec::new();
        while !self.shared.is_cancelled() {
            let moved = self.shared.moved.load(Ordering::Relaxed);
            if frames.next(&mut block).is_err() || moved.saturating_sub(start) > DRAIN_BYTES {
                return;
            }
        }
    }

    /// Hears the sender to its end.
    fn hear<R: Read>(
        &self,
        frames: &mut FrameReader<'_, R>,
        session: &Session<'_>,
        steps: SyncSender<ReceiverStep>,
        pool: &Receiver<Vec<u8>>,
        out: &Out,
    ) -> Result<(), TransferError> {
        let shared = self.shared;
        let mut announced: Option<Announced> = None;
        let mut offers = Offers::default();
        let mut current: Option<Current> = None;
        let mut busy = None;
        let mut told = 0_u64;
        let mut block = pool.recv().map_err(|_| TransferError::Closed)?;
        // When the disk's thread has ended, it has said why.
        let pass = |step| steps.send(step).map_err(|_| TransferError::Closed);
        loop {
            let message = match shared.network.on(|| frames.next(&mut block))? {
                IncomingFrame::Message(message) => message,
                IncomingFrame::Data(len) => {
                    busy = None;
                    if take(&mut current, len as u64)?.is_useless {
                        continue;
                    }
                    shared.bytes.fetch_add(len as u64, Ordering::Relaxed);
                    pass(ReceiverStep::Block(block, len))?;
                    block = pool.recv().map_err(|_| TransferError::Closed)?;
                    continue;
                }
            };
            if message == TransferMessage::Busy {
                shared.excuse(&mut busy, offers.owed());
                continue;
            }
            busy = None;
            let Some(Announced { entries: all, peer }) = &announced else {
                if matches!(message, TransferMessage::Summary { roots: 2.., .. }) && self.place.has_one_name()
                {
                    let text = "several sources need a directory that is there as their target";
                    let fault = TransferFault::new(Code::Path, text);
                    say(out, &TransferMessage::Failed(fault.clone()))?;
                    self.tally(|tally| tally.fatal = Some(fault));
                    return Err(TransferError::Closed);
                }
                announced = Some(self.announced(message, session)?);
                continue;
            };
            match message {
                TransferMessage::Offer { first, entries } => {
                    let answers = self.judge(&mut offers, *all, peer, first, entries, out)?;
                    say(out, &answers)?;
                }
                TransferMessage::Ahead { index } => {
                    if current.is_some() {
                        return Err(TransferError::Protocol("a file begins within another"));
                    }
                    // Once: a sender cannot have us take useless bytes for ever.
                    match offers.ahead.take() {
                        Some((first, true)) if first == index => {
                            let begun = self.begin(&mut offers, index, 0, peer)?;
                            current = Some(begun.0);
                            pass(begun.1)?;
                        }
                        Some((first, false)) if first == index => {
                            current = Some(Current { left: MAX_AHEAD, is_useless: true });
                        }
                        _ => return Err(TransferError::Protocol("what comes ahead is another file")),
                    }
                }
                TransferMessage::Withdraw => {
                    if !current.take().is_some_and(|current| current.is_useless) {
                        return Err(TransferError::Protocol("nothing to withdraw"));
                    }
                }
                TransferMessage::Begin { index, offset } => {
                    if current.is_some() {
                        return Err(TransferError::Protocol("a file begins within another"));
                    }
                    let begun = self.begin(&mut offers, index, offset, peer)?;
                    current = Some(begun.0);
                    pass(begun.1)?;
                }
                TransferMessage::Same { index } => {
                    let wanted = offers.open.iter_mut().find_map(|(open, _)| open.remove(&index));
                    let wanted = wanted.filter(|_| current.is_none());
                    let wanted = wanted.ok_or(TransferError::Protocol("the same as nothing"))?;
                    pass(ReceiverStep::Same(Box::new(wanted.entry), peer.clone()))?;
                }
                TransferMessage::Hole { len } => {
                    if take(&mut current, len)?.is_useless {
                        continue;
                    }
                    let mut progress = shared.progress();
                    progress.spared = progress.spared.saturating_add(len);
                    drop(progress);
                    pass(ReceiverStep::Hole(len))?;
                }
                TransferMessage::End { hash } => {
                    match current.take() {
                        Some(Current { left: 0, is_useless: false }) => {}
                        _ => return Err(TransferError::Protocol("a file ends too early")),
                    }
                    pass(ReceiverStep::End(hash))?;
                }
                TransferMessage::Abandon(fault) => {
                    if current.take().is_none_or(|current| current.is_useless) {
                        return Err(TransferError::Protocol("nothing to abandon"));
                    }
                    pass(ReceiverStep::Abandon(fault))?;
                }
                TransferMessage::Seal { whole, path, mode, modified } => {
                    match offers.unsealed.remove(&path) {
                        Some(seal) => {
                            let names = offers.names.remove(&path);
                            let mark = (mode, modified);
                            if seal != DirectorySeal::Nothing || names.is_some() {
                                let peer = peer.clone();
                                pass(ReceiverStep::Seal { path, peer, seal, mark, names, whole })?;
                            }
                        }
                        None => return Err(TransferError::Protocol("a directory that was not offered")),
                    }
                }
                TransferMessage::Missed { path, fault } => {
                    told += 1;
                    if told > MAX_PROBLEMS as u64 {
                        return Err(TransferError::Protocol("more was not sent than a sender tells"));
                    }
                    self.problem(path, fault);
                }
                TransferMessage::Finish { missed } => {
                    let untold = missed.saturating_sub(told);
                    self.tally(|tally| tally.failed = tally.failed.saturating_add(untold));
                    return Ok(());
                }
                TransferMessage::Failed(fault) => return Err(TransferError::Peer(fault)),
                _ => return Err(TransferError::Protocol("a message that only receivers send, or too late")),
            }
        }
    }

    /// Begins with a file that was asked for.
    fn begin(
        &self,
        offers: &mut Offers,
        index: u64,
        offset: u64,
        peer: &Peer,
    ) -> Result<(Current, ReceiverStep), TransferError> {
        let wanted = offers.open.iter_mut().find_map(|(open, _)| open.remove(&index));
        let wanted = wanted.ok_or(TransferError::Protocol("a file that was not asked for"))?;
        let may = wanted.resumed.as_ref().map_or(0, |resumed| resumed.offset);
        let EntryKind::File { size } = wanted.entry.kind else {
            return Err(TransferError::Protocol("the content of what is no file"));
        };
        if offset != 0 && offset != may {
            return Err(TransferError::Protocol("a file begins at a wrong place"));
        }
        let mut progress = self.shared.progress();
        progress.name = wanted.entry.path.to_string();
        progress.spared = progress.spared.saturating_add(offset);
        drop(progress);
        let current = Current { left: size.saturating_sub(offset), is_useless: false };
        let (wanted, peer) = (Box::new(wanted), peer.clone());
        Ok((current, ReceiverStep::Begin { index, wanted, peer, offset }))
    }

    /// The first message says what there will be, and who sends it.
    fn announced(&self, message: TransferMessage, session: &Session<'_>) -> Result<Announced, TransferError> {
        let TransferMessage::Summary { entries, bytes, sender, .. } = message else {
            return match message {
                TransferMessage::Failed(fault) => Err(TransferError::Peer(fault)),
                _ => Err(TransferError::Protocol("it does not say what it will send")),
            };
        };
        let mut progress = self.shared.progress();
        (progress.total_entries, progress.total_bytes) = (entries, bytes);
        drop(progress);
        let peer = if !session.is_stranger() {
            Peer::Proved
        } else {
            Peer::Stranger(Stranger::new(sender).map_err(TransferError::Own)?)
        };
        Ok(Announced { entries, peer })
    }

    fn judge(
        &self,
        offers: &mut Offers,
        announced: u64,
        peer: &Peer,
        first: u64,
        entries: Vec<FileEntry>,
        out: &Out,
    ) -> Result<TransferMessage, TransferError> {
        let count = entries.len() as u64;
        if first != offers.next || first.saturating_add(count) > announced.min(MAX_ENTRIES) {
            return Err(TransferError::Protocol("an offer out of order, or of more than was announced"));
        }
        offers.next = first + count;
        let mut spoke = Instant::now();
        let mut keep_waiting = || {
            if spoke.elapsed() < BUSY {
                return true;
            }
            spoke = Instant::now();
            // Nobody waits for it any more if the line is broken.
            say(out, &TransferMessage::Busy).is_ok()
        };
        let mut wanted = BTreeMap::new();
        let (mut resumed, mut owed) = (0, 0_u64);
        let mut verdicts = Vec::new();
        for (index, entry) in (first..).zip(entries) {
            if offers.last.as_ref().is_some_and(|last| !entry.path.comes_after(last)) {
                return Err(TransferError::Protocol("an entry comes twice, or not in the order of names"));
            }
            // Both would get the same name here, and the second would replace the first.
            let is_other = |last: &RelPath| last.names().next() != entry.path.names().next();
            if self.place.has_one_name() && offers.last.as_ref().is_some_and(is_other) {
                return Err(TransferError::Protocol("more names at the top than it has said"));
            }
            offers.last = Some(entry.path.clone());
            let (path, kind) = (entry.path.clone(), entry.kind.clone());
            let is_first_file =
                matches!(kind, EntryKind::File { .. }) && first == 0 && offers.ahead.is_none();
            let judged = self.place.judge(entry, peer, resumed < MAX_RESUMED, self.shared, &mut keep_waiting);
            if is_first_file {
                offers.ahead = Some((index, judged.verdict == FileVerdict::Send));
            }
            if let FileVerdict::Refused(fault) = &judged.verdict {
                self.problem(path.to_string(), fault.clone());
            }
            if self.place.is_dry()
                && judged.verdict == FileVerdict::Made
                && matches!(kind, EntryKind::Link { .. })
            {
                self.plan(path.to_string(), 0);
            }
            if self.place.deletes() {
                offers.remember(&path, kind == EntryKind::Directory);
            }
            if kind == EntryKind::Directory {
                offers.unsealed.insert(path, judged.seal);
                if offers.unsealed.len() > MAX_UNSEALED {
                    return Err(TransferError::Protocol("directories are never complete"));
                }
            }
            owed = owed.saturating_add(judged.hashed);
            if let Some(take) = judged.wanted {
                resumed += usize::from(take.resumed.is_some());
                wanted.insert(index, take);
            }
            verdicts.push(judged.verdict);
        }
        if offers.open.len() == OPEN_OFFERS {
            offers.open.pop_front();
        }
        offers.open.push_back((wanted, owed));
        Ok(TransferMessage::Answers { first, verdicts })
    }

    /// In a dry run, this would be received.
    fn plan(&self, name: String, bytes: u64) {
        self.tally(|tally| {
            if tally.planned.len() < MAX_PLANNED {
                tally.planned.push((name, bytes));
            }
        });
    }
    fn problem(&self, path: String, fault: TransferFault) {
        self.tally(|tally| {
            tally.failed += 1;
            if tally.problems.len() < MAX_PROBLEMS {
                tally.problems.push(TransferProblem { path, fault });
            }
        });
    }

    /// Writes what has been hashed, and acknowledges each file. Ends early, and says why, when all further
    /// files would fail, too.
    fn write_steps(&self, steps: &Receiver<ReceiverStep>, give_back: &Sender<Vec<u8>>, out: &Out) {
        let shared = self.shared;
        let mut at: Option<Writing> = None;
        for step in steps {
            let ended = match step {
                ReceiverStep::Begin { index, wanted, offset, .. } if self.place.is_dry() => {
                    let EntryKind::File { size } = wanted.entry.kind else { continue };
                    self.plan(wanted.entry.path.to_string(), size.saturating_sub(offset));
                    self.tally(|tally| tally.files += 1);
                    self.shared.progress().files += 1;
                    let _ = say(out, &TransferMessage::Done { index, fault: None });
                    None
                }
                ReceiverStep::Begin { index, wanted, peer, offset } => {
                    let name = wanted.entry.path.to_string();
                    let partial = shared.disk.on(|| self.place.open(*wanted, &peer, offset));
                    // A fault that ends all is told without the file's name.
                    let partial = partial.map_err(|fault| match fault.is_fatal() {
                        true => TransferFault::new(fault.code, format_args!("{name}: {fault}")),
                        false => fault,
                    });
                    at = Some(Writing { index, name, partial, is_told: false });
                    at.as_mut().and_then(|writing| self.tell_early(writing, out))
                }
                ReceiverStep::Same(entry, peer) => {
                    self.place.touch(&entry, &peer);
                    None
                }
                ReceiverStep::Block(block, len) => {
                    if let Some(writing) = &mut at {
                        let bytes = block.get(..len).unwrap_or_default();
                        shared
                            .disk
                            .on(|| writing.change(self.place, |partial| partial.write(self.place, bytes)));
                    }
                    let _ = give_back.send(block);
                    at.as_mut().and_then(|writing| self.tell_early(writing, out))
                }
                ReceiverStep::Hole(len) => {
                    if let Some(writing) = &mut at {
                        writing.change(self.place, |partial| partial.skip(self.place, len));
                    }
                    at.as_mut().and_then(|writing| self.tell_early(writing, out))
                }
                ReceiverStep::Hashed(theirs, ours) => {
                    let content =
                        if theirs == ours { ReceivedContent::Same(ours) } else { ReceivedContent::Differs };
                    at.take().and_then(|writing| self.finish(writing, content, out))
                }
                ReceiverStep::Abandon(fault) => {
                    at.take().and_then(|writing| self.finish(writing, ReceivedContent::Abandoned(fault), out))
                }
                ReceiverStep::Seal { path, peer, seal, mark, names, whole } => {
                    self.remove(&path, &peer, names, whole);
                    self.place.seal(&path, &peer, seal, mark);
                    None
                }
                // It has been hashed before.
                ReceiverStep::End(_) => None,
            };
            if let Some(fault) = ended {
                if let Some(Writing { partial: Ok(partial), .. }) = at {
                    partial.leave(self.place);
                }
                let _ = say(out, &TransferMessage::Failed(fault.clone()));
                self.tally(|tally| tally.fatal = Some(fault));
                return;
            }
        }
        if let Some(Writing { partial: Ok(partial), .. }) = at {
            partial.leave(self.place);
        }
    }

    /// Removes from a directory what the sender does not have.
    fn remove(&self, path: &RelPath, peer: &Peer, names: Option<Option<BTreeSet<OsString>>>, whole: bool) {
        let fault = match names {
            None => return,
            Some(None) => {
                let text = format!("more than {MAX_REMEMBERED} names: nothing is deleted in it");
                Some(TransferFault::new(Code::Limit, text))
            }
            // What is in it here, and the sender could not look at, stays.
            Some(Some(keep)) if !whole => self.place.has_others(path, peer, &keep).then(|| {
                let text = "nothing is deleted in it, because something in it was not sent";
                TransferFault::new(Code::Other, text)
            }),
            Some(Some(keep)) => {
                let mut told = |gone: &RelPath| {
                    self.tally(|tally| {
                        if tally.deleted.len() < MAX_PLANNED {
                            tally.deleted.push(gone.to_string());
                        }
                    });
                };
                self.place.remove_others(path, peer, &keep, &mut told).err()
            }
        };
        if let Some(fault) = fault {
            self.tally(|tally| {
                tally.missed_count += 1;
                if tally.missed.len() < MAX_PROBLEMS {
                    tally.missed.push(TransferProblem { path: path.to_string(), fault: fault.clone() });
                }
            });
            self.problem(path.to_string(), fault);
        }
    }

    /// Tells the sender at once of a file that cannot be stored, so that it does not send the rest. A fault
    /// is returned if it ends all.
    fn tell_early(&self, writing: &mut Writing, out: &Out) -> Option<TransferFault> {
        let fault = writing.partial.as_ref().err()?.clone();
        if fault.is_fatal() {
            return Some(fault);
        }
        if !std::mem::replace(&mut writing.is_told, true) {
            self.tell(writing.index, writing.name.clone(), Some(fault), out);
        }
        None
    }

    /// Counts what became of a file, and tells the sender.
    fn tell(&self, index: u64, name: String, fault: Option<TransferFault>, out: &Out) {
        match &fault {
            None => self.tally(|tally| tally.files += 1),
            Some(fault) => self.problem(name, fault.clone()),
        }
        self.shared.progress().files += 1;
        // If the line is broken, whoever hears it will find out.
        let _ = say(out, &TransferMessage::Done { index, fault });
    }

    /// Keeps or leaves a file and tells the sender. A fault is told if it ends all.
    fn finish(&self, writing: Writing, content: ReceivedContent, out: &Out) -> Option<TransferFault> {
        let Writing { index, name, partial, is_told } = writing;
        if is_told {
            return None;
        }
        let done = match (partial, content) {
            (Ok(partial), ReceivedContent::Abandoned(fault)) => {
                partial.leave(self.place);
                Err(fault)
            }
            (Err(_), ReceivedContent::Abandoned(fault)) | (Err(fault), _) => Err(fault),
            (Ok(partial), ReceivedContent::Same(hash)) => {
                self.shared.disk.on(|| partial.keep(self.place, &hash))
            }
            (Ok(partial), ReceivedContent::Differs) => {
                partial.discard(self.place);
                Err(TransferFault::new(Code::Mismatch, "what arrived is not what was sent; it was not kept"))
            }
        };
        let fault = done.err();
        let fatal = fault.clone().filter(TransferFault::is_fatal);
        self.tell(index, name, fault, out);
        fatal
    }
}

struct Writing {
    index: u64,
    name: String,
    partial: Result<Partial, TransferFault>,
    /// The sender knows already that it cannot be stored.
    is_told: bool,
}

/// What came of a file.
enum ReceivedContent {
    /// All of it, with this hash.
    Same(Hash),
    Differs,
    Abandoned(TransferFault),
}

impl Writing {
    /// After a fault, what was written until then is left.
    fn change(
        &mut self,
        place: &Destination,
        change: impl FnOnce(&mut Partial) -> Result<(), TransferFault>,
    ) {
        if let Ok(partial) = &mut self.partial
            && let Err(fault) = change(partial)
            && let Ok(partial) = std::mem::replace(&mut self.partial, Err(fault))
        {
            partial.leave(place);
        }
    }
}

/// Takes so many bytes of what the file at hand still needs.
fn take(current: &mut Option<Current>, len: u64) -> Result<&Current, TransferError> {
    let current = current.as_mut().ok_or(TransferError::Protocol("data without a file"))?;
    current.left =
        current.left.checked_sub(len).ok_or(TransferError::Protocol("more data than the file has"))?;
    Ok(current)
}

/// Hashes what was heard and passes it on.
fn hash_steps(heard: &Receiver<ReceiverStep>, out: &SyncSender<ReceiverStep>, shared: &LineState) {
    let mut hasher = ContentHasher::default();
    for mut step in heard {
        match &mut step {
            ReceiverStep::Begin { wanted, offset, .. } => {
                hasher = match &mut wanted.resumed {
                    Some(resumed) if *offset != 0 => std::mem::take(&mut resumed.prefix.hasher),
                    _ => ContentHasher::default(),
                };
            }
            ReceiverStep::Block(block, len) => {
                shared.hash.on(|| hasher.update(block.get(..*len).unwrap_or_default()));
            }
            ReceiverStep::Hole(len) => hasher.zeros(*len),
            ReceiverStep::End(theirs) => step = ReceiverStep::Hashed(*theirs, hasher.result()),
            _ => {}
        }
        if out.send(step).is_err() {
            return;
        }
    }
}
