//! The log of connections: a line of JSON for each that has ended.
//!
//! A thread of its own writes it: a slow disk delays no packet. If it does not keep up, lines are left out
//! and counted; if it fails, the log pauses with a note until SIGHUP, and the gateway goes on.

use super::records::ConnectionRecord;
use crate::Note;
use anyhow::{Context, Result, bail};
use nix::fcntl::OFlag;
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bundles of lines that wait for the disk at most; the gateway makes one a second.
const MAX_BUNDLES: usize = 16;
/// Bytes that are written at once.
const CHUNK: usize = 64 << 10;
/// A line is shorter.
const MAX_LINE: u64 = 1 << 20;
/// For so long the end of a gateway waits for the disk.
const MAX_END: Duration = Duration::from_secs(1);

enum LogJob {
    /// Connections that have ended, and how many more were left out.
    Write(Vec<Arc<ConnectionRecord>>, u64),
    /// The file may have been renamed: it is opened again.
    Reopen,
}

/// The log that is being written.
pub struct ConnectionLog {
    jobs: SyncSender<LogJob>,
    done: Receiver<()>,
    thread: JoinHandle<()>,
    /// Connections left out since the last bundle that was taken.
    left_out: u64,
}

impl ConnectionLog {
    /// Appends to a file from now on. It is readable for its user alone if it is made here.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, note: Note) -> Result<Self> {
        let file = append_to(path)?;
        let (jobs, queue) = sync_channel(MAX_BUNDLES);
        let (end, done) = sync_channel(0);
        let path = path.to_owned();
        let write = move || {
            let _end = end;
            write_all(&queue, file, &path, note);
        };
        let thread = std::thread::Builder::new().name("log".to_owned());
        let thread = thread.spawn(write).context("cannot start a thread")?;
        Ok(ConnectionLog { jobs, done, thread, left_out: 0 })
    }

    /// Connections have ended; `left_out`: and so many more.
    pub fn add(&mut self, records: Vec<Arc<ConnectionRecord>>, left_out: u64) {
        self.left_out += left_out;
        if records.is_empty() && self.left_out == 0 {
            return;
        }
        let count = records.len() as u64;
        match self.jobs.try_send(LogJob::Write(records, self.left_out)) {
            Ok(()) => self.left_out = 0,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => self.left_out += count,
        }
    }

    /// Opens the file again, after it was renamed.
    pub fn reopen(&self) {
        // Where too much waits, the next SIGHUP does it.
        let _ = self.jobs.try_send(LogJob::Reopen);
    }

    /// Waits a moment for the disk.
    pub fn end(self) {
        drop(self.jobs);
        if self.done.recv_timeout(MAX_END) == Err(RecvTimeoutError::Disconnected) {
            let _ = self.thread.join();
        }
    }
}

fn append_to(path: &Path) -> Result<File> {
    let cannot = || format!("cannot write the log {}", path.display());
    // A FIFO without a reader must not hold up the gateway.
    let nonblocking = OFlag::O_NONBLOCK.bits();
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600).custom_flags(nonblocking);
    let file = options.open(path).with_context(cannot)?;
    let kind = file.metadata().with_context(cannot)?.file_type();
    if !kind.is_file() && !kind.is_char_device() {
        bail!("{}: it is no regular file; name another one with --log", cannot());
    }
    Ok(file)
}

/// Takes away a line that was cut, by a full disk or a crash, behind the first `from` bytes. How many whole
/// lines are there, and whether one was cut.
fn cut_to_lines(path: &Path, from: u64) -> io::Result<(u64, bool)> {
    let mut file =
        OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok((0, false));
    }
    file.seek(SeekFrom::Start(from))?;
    let (mut lines, mut whole, mut at) = (0, from, from);
    let mut buffer = vec![0; CHUNK];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        for (n, _) in buffer[..read].iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
            lines += 1;
            whole = at + n as u64 + 1;
        }
        at += read as u64;
    }
    if whole < at {
        file.set_len(whole)?;
    }
    Ok((lines, whole < at))
}

/// The same for a file that may end with a cut line, of which only the end is read.
fn cut_the_end(path: &Path) -> io::Result<bool> {
    let length = std::fs::metadata(path)?.len();
    Ok(cut_to_lines(path, length.saturating_sub(MAX_LINE))?.1)
}

fn write_all(queue: &Receiver<LogJob>, file: File, path: &Path, note: Note) {
    let mut out = Some(file);
    // What a crash or a full disk has cut before.
    let mut missed = u64::from(cut_the_end(path).unwrap_or(false));
    for job in queue {
        let done = match job {
            LogJob::Reopen => append_to(path).map(|file| {
                missed += u64::from(cut_the_end(path).unwrap_or(false));
                out = Some(file);
            }),
            LogJob::Write(records, left_out) => {
                missed += left_out;
                let length = out.as_ref().and_then(|out| out.metadata().ok()).map_or(0, |file| file.len());
                let written =
                    out.as_mut().map_or(Ok(false), |out| write(out, &records, missed).map(|()| true));
                let count = records.len() as u64;
                match written {
                    Ok(true) => missed = 0,
                    Ok(false) => missed += count,
                    // Those with a whole line are there.
                    Err(_) => {
                        let lines = cut_to_lines(path, length).map_or(0, |(lines, _)| lines);
                        missed += count.saturating_sub(lines);
                    }
                }
                written.map(drop).with_context(|| format!("cannot write the log {}", path.display()))
            }
        };
        if let Err(error) = done {
            out = None;
            note(&format!("{error:#}; the gateway goes on without it, and tries again at SIGHUP"));
        }
    }
}

fn write(out: &mut impl Write, records: &[Arc<ConnectionRecord>], left_out: u64) -> io::Result<()> {
    // Not by a BufWriter: it would write what is left of a cut line when it is dropped.
    let mut text = Vec::new();
    for record in records {
        writeln!(text, "{}", record.json())?;
        if text.len() >= CHUNK {
            out.write_all(&text)?;
            text.clear();
        }
    }
    if left_out > 0 {
        writeln!(text, "{}", json!({ "left_out_connections": left_out }))?;
    }
    out.write_all(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::tests;
    use serde_json::Value;
    use std::os::unix::fs::PermissionsExt;

    fn ended() -> Arc<ConnectionRecord> {
        Arc::new(tests::ended())
    }

    fn lines(path: &Path) -> Vec<Value> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Breaks: a connection has no line; others can read who speaks with whom; or a log that was renamed, as
    /// logrotate does, goes on in the old file.
    #[test]
    fn each_connection_has_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = ConnectionLog::open(&path, |_| {}).unwrap();
        log.add(vec![ended(), ended()], 0);
        log.end();
        assert_eq!(lines(&path).len(), 2);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let mut log = ConnectionLog::open(&path, |_| {}).unwrap();
        log.add(vec![ended()], 0);
        // The thread has to have written it before the file is renamed.
        while lines(&path).len() < 3 {
            std::thread::yield_now();
        }
        let old = folder.path().join("log.1");
        std::fs::rename(&path, &old).unwrap();
        log.reopen();
        log.add(vec![ended()], 5);
        log.end();
        assert_eq!(lines(&old).len(), 3);
        let new = lines(&path);
        assert_eq!(new.len(), 2);
        assert_eq!((&new[0]["end"], &new[1]["left_out_connections"]), (&"reset".into(), &5.into()));
        let error = ConnectionLog::open(&folder.path().join("none/log"), |_| {}).err().unwrap();
        assert!(format!("{error:#}").contains("none/log"), "{error:#}");
    }

    /// Breaks: the first line after a full disk or a crash is glued to one that was cut, or the one that
    /// was cut is counted nowhere, or twice.
    #[test]
    fn a_cut_line_is_taken_away_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, "{\"a\": 1}\n{\"b\"").unwrap();
        let mut log = ConnectionLog::open(&path, |_| {}).unwrap();
        log.add(vec![ended()], 0);
        log.end();
        let found = lines(&path);
        assert_eq!((found.len(), &found[2]["left_out_connections"]), (3, &1.into()), "{found:?}");
        // Two of three lines of a bundle were written.
        let before = path.metadata().unwrap().len();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "{}\n{}\n{\"c").unwrap();
        assert_eq!(cut_to_lines(&path, before).unwrap(), (2, true));
        assert_eq!(lines(&path).len(), 5);
        assert_eq!(cut_to_lines(&path, 0).unwrap(), (5, false));
    }

    /// Breaks: a FIFO that nobody reads holds up the start of a gateway, and its end.
    #[test]
    fn a_fifo_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(ConnectionLog::open(&path, |_| {}).is_err());
        let _reader =
            OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(&path).unwrap();
        let error = ConnectionLog::open(&path, |_| {}).err().unwrap().to_string();
        assert!(error.contains("no regular file"), "{error}");
    }

    /// Breaks: a disk that does not keep up, or is full, takes the memory of the gateway, or ends it.
    #[test]
    fn a_log_that_fails_costs_nothing() {
        let mut log = ConnectionLog::open(Path::new("/dev/full"), |_| {}).unwrap();
        for _ in 0..100 {
            log.add(vec![ended()], 0);
        }
        log.end();
        // What could not be written is counted when there is room again.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut log = ConnectionLog::open(&path, |_| {}).unwrap();
        (0..2).for_each(|_| log.add(vec![ended(), ended()], 0));
        std::fs::remove_file(&path).unwrap();
        log.reopen();
        log.add(vec![ended()], 0);
        log.end();
        let found = lines(&path);
        assert_eq!((found.len(), &found[1]["left_out_connections"]), (2, &4.into()), "{found:?}");
        let (jobs, queue) = sync_channel(MAX_BUNDLES);
        let (_end, done) = sync_channel(0);
        let thread = std::thread::Builder::new().spawn(|| {}).unwrap();
        let mut log = ConnectionLog { jobs, done, thread, left_out: 0 };
        for _ in 0..MAX_BUNDLES + 3 {
            log.add(vec![ended(), ended()], 0);
        }
        assert_eq!(log.left_out, 6, "they are counted");
        assert_eq!(queue.try_iter().count(), MAX_BUNDLES);
        log.add(vec![ended()], 0);
        let Ok(LogJob::Write(_, left_out)) = queue.try_recv() else { panic!("nothing came") };
        assert_eq!(left_out, 6);
    }
}
