//! The side that gets the files: one thread hears, one hashes, one writes to the disk and acknowledges.

use crate::fault::{Code, Fault, Problem, TransferError};
use crate::frame::{FrameReader, FrameWriter, Incoming};
use crate::handshake::{self, Role, shake};
use crate::limits::{BLOCKS, MAX_ENTRIES, MAX_RESUMED, OPEN_OFFERS, QUEUE};
use crate::line::{Line, Session, Shared, Times};
use crate::message::{Entry, FileTime, Hash, Kind, Message, Verdict};
use crate::path::RelPath;
use crate::pipeline::{hash_zeros, result};
use crate::place::{Partial, Place, Wanted};
use crate::sender::BUSY;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After a fault so long and so much is still heard, so that the other side hears of it before the line is closed.
const DRAIN: Duration = Duration::from_secs(3);
const DRAIN_BYTES: u64 = 64 << 20;
/// Problems that are kept in words.
const MAX_PROBLEMS: usize = 1_000;

/// What came of receiving.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Files written, verified and named.
    pub files: u64,
    /// Bytes of files that came over the line.
    pub bytes: u64,
    /// Bytes that did not have to, because they were there or are holes.
    pub spared: u64,
    /// What was not written, the first 1,000 of them.
    pub problems: Vec<Problem>,
    /// How many were not written.
    pub failed: u64,
    /// From the first hello to the last acknowledgement.
    pub elapsed: Duration,
    /// What the time went into.
    pub times: Times,
}

enum Step {
    Begin {
        index: u64,
        wanted: Box<Wanted>,
        offset: u64,
    },
    Block(Vec<u8>, usize),
    Hole(u64),
    End(Hash),
    /// What the sender says, and what came.
    Hashed(Hash, Hash),
    Abandon(Fault),
    Seal {
        path: RelPath,
        mode: u16,
        modified: FileTime,
    },
}

#[derive(Default)]
struct Tally {
    files: u64,
    failed: u64,
    problems: Vec<Problem>,
    /// What ended all.
    fatal: Option<Fault>,
}

/// Receives what a sender sends, into a place.
///
/// # Errors
/// See [`TransferError`]. What has been received until then stays there to be resumed.
pub fn receive(line: Line, session: &Session<'_>, place: &Place) -> Result<Received, TransferError> {
    let shared = Shared::new();
    let job = Job { shared: &shared, place, tally: Mutex::default() };
    let Line { reader, writer, close } = line;
    let close = &*close;
    // What the writer is, the watch learns when there are keys.
    let out = &Mutex::new(None);
    let result = std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let stop =
                || say(out, &Message::Failed(Fault::new(Code::Interrupted, "the receiver was stopped")));
            shared.watch(session, close, || {
                let _ = stop();
                close();
            });
        });
        let result = job.run(reader, writer, session, out);
        // The last words are out; nothing waits behind them.
        shared.end();
        watch.thread().unpark();
        result
    });
    result.map_err(|error| shared.cause(error, session))?;
    let progress = shared.snapshot();
    let tally = job.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Received {
        files: tally.files,
        bytes: shared.bytes.load(Ordering::Relaxed),
        spared: progress.spared,
        problems: tally.problems,
        failed: tally.failed,
        elapsed: progress.elapsed,
        times: shared.times(),
    })
}

/// Tells a side that has connected why nothing is received now.
pub fn turn_away(line: Line, session: &Session<'_>, fault: Fault) {
    let shared = Shared::new();
    let Line { reader, writer, close } = line;
    let close = &*close;
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| shared.watch(session, close, close));
        handshake::turn_away(reader, writer, fault, &shared.moved);
        shared.end();
        watch.thread().unpark();
    });
}

type Out = Mutex<Option<FrameWriter<Box<dyn Write + Send>>>>;

fn say(out: &Out, message: &Message) -> io::Result<()> {
    match &mut *out.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(out) => out.message(message).and_then(|()| out.flush()),
        None => Ok(()),
    }
}

/// Offers whose files have not all been sent.
#[derive(Default)]
struct Offers {
    open: VecDeque<BTreeMap<u64, Wanted>>,
    next: u64,
    announced: u64,
}

/// The file that is coming in.
struct Current {
    left: u64,
}

struct Job<'a> {
    shared: &'a Shared,
    place: &'a Place,
    tally: Mutex<Tally>,
}

impl Job<'_> {
    fn tally<T>(&self, change: impl FnOnce(&mut Tally) -> T) -> T {
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
        let (mut frames, writer) =
            shake(reader, writer, session.token, session.connected, Role::Receives, &shared.moved)?;
        *out.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        shared.ready.store(true, Ordering::Relaxed);
        let (steps, heard) = sync_channel(QUEUE);
        let (hashed, to_write) = sync_channel(QUEUE);
        let (give_back, pool) = channel();
        for _ in 0..BLOCKS {
            let _ = give_back.send(Vec::new());
        }
        let result = std::thread::scope(|scope| {
            scope.spawn(move || hash_steps(&heard, &hashed, shared));
            let disk = scope.spawn(move || self.write_steps(&to_write, &give_back, out));
            let heard = self.hear(&mut frames, steps, &pool, out);
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
                say(out, &Message::Finished { files, bytes, disk, hash, waited })?;
                Ok(())
            }
            Err(TransferError::Protocol(why)) => {
                let _ = say(out, &Message::Failed(Fault::new(Code::Protocol, why)));
                self.drain(&mut frames);
                Err(TransferError::Protocol(why))
            }
            Err(error) => Err(error),
        }
    }

    /// Hears on for a while, so that what was said last is not lost with the line.
    fn drain<R: Read>(&self, frames: &mut FrameReader<'_, R>) {
        let until = Instant::now() + DRAIN;
        let start = self.shared.moved.load(Ordering::Relaxed);
        let mut block = Vec::new();
        while Instant::now() < until && !self.shared.stopped() {
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
        steps: SyncSender<Step>,
        pool: &Receiver<Vec<u8>>,
        out: &Out,
    ) -> Result<(), TransferError> {
        let shared = self.shared;
        let mut offers = Offers { announced: u64::MAX, ..Offers::default() };
        let mut current: Option<Current> = None;
        let mut block = pool.recv().map_err(|_| TransferError::Closed)?;
        // When the disk's thread has ended, it has said why.
        let pass = |step| steps.send(step).map_err(|_| TransferError::Closed);
        loop {
            let message = match shared.network.on(|| frames.next(&mut block))? {
                Incoming::Message(message) => message,
                Incoming::Data(len) => {
                    take(&mut current, len as u64)?;
                    shared.bytes.fetch_add(len as u64, Ordering::Relaxed);
                    pass(Step::Block(block, len))?;
                    block = pool.recv().map_err(|_| TransferError::Closed)?;
                    continue;
                }
            };
            match message {
                Message::Summary { entries, bytes, .. } => {
                    offers.announced = entries;
                    let mut progress = shared.progress();
                    (progress.total_entries, progress.total_bytes) = (entries, bytes);
                }
                Message::Offer { first, entries } => {
                    let answers = self.judge(&mut offers, first, entries, out)?;
                    say(out, &answers)?;
                }
                Message::Begin { index, offset } => {
                    if current.is_some() {
                        return Err(TransferError::Protocol("a file begins within another"));
                    }
                    let wanted = offers.open.iter_mut().find_map(|open| open.remove(&index));
                    let wanted = wanted.ok_or(TransferError::Protocol("a file that was not asked for"))?;
                    let may = wanted.resumed.as_ref().map_or(0, |resumed| resumed.offset);
                    let Kind::File { size } = wanted.entry.kind else {
                        return Err(TransferError::Protocol("the content of what is no file"));
                    };
                    if offset != 0 && offset != may {
                        return Err(TransferError::Protocol("a file begins at a wrong place"));
                    }
                    let mut progress = shared.progress();
                    progress.name = wanted.entry.path.to_string();
                    progress.spared = progress.spared.saturating_add(offset);
                    drop(progress);
                    current = Some(Current { left: size.saturating_sub(offset) });
                    pass(Step::Begin { index, wanted: Box::new(wanted), offset })?;
                }
                Message::Hole { len } => {
                    take(&mut current, len)?;
                    let mut progress = shared.progress();
                    progress.spared = progress.spared.saturating_add(len);
                    drop(progress);
                    pass(Step::Hole(len))?;
                }
                Message::End { hash } => {
                    match current.take() {
                        Some(Current { left: 0 }) => {}
                        _ => return Err(TransferError::Protocol("a file ends too early")),
                    }
                    pass(Step::End(hash))?;
                }
                Message::Abandon(fault) => {
                    current.take().ok_or(TransferError::Protocol("nothing to abandon"))?;
                    pass(Step::Abandon(fault))?;
                }
                Message::Seal { path, mode, modified } => pass(Step::Seal { path, mode, modified })?,
                Message::Finish => return Ok(()),
                Message::Failed(fault) => return Err(TransferError::Peer(fault)),
                Message::Busy => {}
                _ => return Err(TransferError::Protocol("a message that only receivers send")),
            }
        }
    }

    fn judge(
        &self,
        offers: &mut Offers,
        first: u64,
        entries: Vec<Entry>,
        out: &Out,
    ) -> Result<Message, TransferError> {
        let count = entries.len() as u64;
        if first != offers.next || first.saturating_add(count) > offers.announced.min(MAX_ENTRIES) {
            return Err(TransferError::Protocol("an offer out of order, or of more than was announced"));
        }
        offers.next = first + count;
        let mut spoke = Instant::now();
        let mut patience = || {
            if spoke.elapsed() > BUSY {
                spoke = Instant::now();
                // If the line is broken, the next read tells.
                let _ = say(out, &Message::Busy);
            }
        };
        let mut wanted = BTreeMap::new();
        let mut resumed = 0;
        let mut verdicts = Vec::new();
        for (index, entry) in (first..).zip(entries) {
            let path = entry.path.to_string();
            let (verdict, take) = self.place.judge(entry, resumed < MAX_RESUMED, self.shared, &mut patience);
            if let Verdict::Refused(fault) = &verdict {
                self.problem(path, fault.clone());
            }
            if let Some(take) = take {
                resumed += usize::from(take.resumed.is_some());
                wanted.insert(index, take);
            }
            verdicts.push(verdict);
        }
        if offers.open.len() == OPEN_OFFERS {
            offers.open.pop_front();
        }
        offers.open.push_back(wanted);
        Ok(Message::Answers { first, verdicts })
    }

    fn problem(&self, path: String, fault: Fault) {
        self.tally(|tally| {
            tally.failed += 1;
            if tally.problems.len() < MAX_PROBLEMS {
                tally.problems.push(Problem { path, fault });
            }
        });
    }

    /// Writes what has been hashed, and acknowledges each file. Ends early, and says why, when all further files would fail, too.
    fn write_steps(&self, steps: &Receiver<Step>, give_back: &Sender<Vec<u8>>, out: &Out) {
        let shared = self.shared;
        let mut at: Option<Writing> = None;
        for step in steps {
            let ended = match step {
                Step::Begin { index, wanted, offset } => {
                    let name = wanted.entry.path.to_string();
                    let partial = shared.disk.on(|| self.place.open(*wanted, offset));
                    at = Some(Writing { index, name, partial });
                    None
                }
                Step::Block(block, len) => {
                    if let Some(writing) = &mut at {
                        shared.disk.on(|| writing.write(block.get(..len).unwrap_or_default()));
                    }
                    let _ = give_back.send(block);
                    at.as_ref().and_then(Writing::fatal)
                }
                Step::Hole(len) => {
                    if let Some(Writing { partial: Ok(partial), .. }) = &mut at {
                        partial.skip(len);
                    }
                    None
                }
                Step::Hashed(theirs, ours) => {
                    at.take().and_then(|writing| self.finish(writing, theirs == ours, None, out))
                }
                Step::Abandon(fault) => {
                    at.take().and_then(|writing| self.finish(writing, false, Some(fault), out))
                }
                Step::Seal { path, mode, modified } => {
                    self.place.seal(&path, mode, modified);
                    None
                }
                // It has been hashed before.
                Step::End(_) => None,
            };
            if let Some(fault) = ended {
                if let Some(Writing { partial: Ok(partial), .. }) = at {
                    partial.leave();
                }
                let _ = say(out, &Message::Failed(fault.clone()));
                self.tally(|tally| tally.fatal = Some(fault));
                return;
            }
        }
        if let Some(Writing { partial: Ok(partial), .. }) = at {
            partial.leave();
        }
    }

    /// Keeps or leaves a file and tells the sender. A fault is told if it ends all.
    fn finish(&self, writing: Writing, same: bool, abandoned: Option<Fault>, out: &Out) -> Option<Fault> {
        let Writing { index, name, partial } = writing;
        let done = match (partial, abandoned) {
            (Ok(partial), Some(fault)) => {
                partial.leave();
                Err(fault)
            }
            (Err(_), Some(fault)) | (Err(fault), None) => Err(fault),
            (Ok(partial), None) if same => self.shared.disk.on(|| self.place.keep(partial)),
            (Ok(partial), None) => {
                partial.discard();
                Err(Fault::new(Code::Mismatch, "what arrived is not what was sent; it was not kept"))
            }
        };
        let fault = done.err();
        match &fault {
            None => self.tally(|tally| tally.files += 1),
            Some(fault) => self.problem(name, fault.clone()),
        }
        self.shared.progress().files += 1;
        let fatal = fault.clone().filter(Fault::is_fatal);
        // If the line is broken, whoever hears it will find out.
        let _ = say(out, &Message::Done { index, fault });
        fatal
    }
}

struct Writing {
    index: u64,
    name: String,
    partial: Result<Partial, Fault>,
}

impl Writing {
    fn write(&mut self, bytes: &[u8]) {
        if let Ok(partial) = &mut self.partial
            && let Err(fault) = partial.write(bytes)
            && let Ok(partial) = std::mem::replace(&mut self.partial, Err(fault))
        {
            partial.leave();
        }
    }
    fn fatal(&self) -> Option<Fault> {
        self.partial.as_ref().err().filter(|fault| fault.is_fatal()).cloned()
    }
}

/// Takes so many bytes of what the file at hand still needs.
fn take(current: &mut Option<Current>, len: u64) -> Result<(), TransferError> {
    let current = current.as_mut().ok_or(TransferError::Protocol("data without a file"))?;
    current.left =
        current.left.checked_sub(len).ok_or(TransferError::Protocol("more data than the file has"))?;
    Ok(())
}

/// Hashes what was heard and passes it on.
fn hash_steps(heard: &Receiver<Step>, out: &SyncSender<Step>, shared: &Shared) {
    let mut hasher = blake3::Hasher::new();
    for step in heard {
        let step = match step {
            Step::Begin { index, wanted, offset } => {
                hasher = match &wanted.resumed {
                    Some(resumed) if offset != 0 => resumed.hasher.clone(),
                    _ => blake3::Hasher::new(),
                };
                Step::Begin { index, wanted, offset }
            }
            Step::Block(block, len) => {
                shared.hash.on(|| hasher.update(block.get(..len).unwrap_or_default()));
                Step::Block(block, len)
            }
            Step::Hole(len) => {
                shared.hash.on(|| hash_zeros(&mut hasher, len, shared));
                Step::Hole(len)
            }
            Step::End(theirs) => Step::Hashed(theirs, result(&hasher)),
            other => other,
        };
        if out.send(step).is_err() {
            return;
        }
    }
}
