//! A connection whose far end was started by ssh. It ends soon after ssh has said that the far end is gone.

use crate::TransferStream;
use farpace_process::stopwatch::Stopwatch;
use farpace_transfer::{FramedStream, kernel};
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Between two looks, in nanoseconds.
const LOOK: u64 = 200_000_000;
/// After the far end has ended, what is still on its way has so long without a byte.
const GONE: Duration = Duration::from_secs(2);
/// After ssh has lost its connection: the other one may survive that, as at a change of networks.
const LOST: Duration = Duration::from_secs(20);
/// After the stream was closed from here, ssh has so long to exit.
const CLOSED: Duration = Duration::from_secs(3);
/// The same where nothing moved for longer than this. Where the network is down, ssh never exits by itself.
const CLOSED_SILENT: Duration = Duration::from_millis(200);
const SILENT: Duration = Duration::from_secs(1);
/// What ssh exits with when it has lost its connection, or a signal has ended the far end.
const SSH_FAILED: i32 = 255;

/// The stream of `call`; `child` is ssh, which ends with it.
pub fn beside_ssh(call: TransferStream, input: ChildStdin, child: Child) -> TransferStream {
    let TransferStream { line: FramedStream { reader, writer, close }, peer, address, probe, finish } = call;
    let ssh = Mutex::new((Some(input), child));
    let beside = Arc::new(BesideSsh {
        ssh,
        close,
        moved: AtomicU64::new(0),
        seen: Mutex::new((0, Stopwatch::start())),
        is_over: AtomicBool::new(false),
    });
    let watch = beside.clone();
    // Without a thread for it the transfer's own timeout is left.
    let _ = Builder::new().spawn(move || watch.watch());
    let reader = CountedEnd { end: reader, beside: beside.clone() };
    let writer = CountedEnd { end: writer, beside: beside.clone() };
    let owner = StreamOwner(beside);
    let close = move || owner.close();
    let line = FramedStream { reader: Box::new(reader), writer: Box::new(writer), close: Box::new(close) };
    TransferStream { line, peer, address, probe, finish }
}

struct BesideSsh {
    ssh: Mutex<(Option<ChildStdin>, Child)>,
    close: Box<dyn Fn() + Send + Sync>,
    /// Bytes in both directions.
    moved: AtomicU64,
    /// How many they were when they were last seen to change, and the time since then.
    seen: Mutex<(u64, Stopwatch)>,
    is_over: AtomicBool,
}

impl BesideSsh {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
    /// For how long nothing has moved, as far as somebody has looked.
    fn silence(&self) -> Duration {
        let moved = self.moved.load(Ordering::Relaxed);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.0 != moved {
            *seen = (moved, Stopwatch::start());
        }
        seen.1.elapsed()
    }
    /// Closes the stream when ssh has ended and nothing moves any more.
    fn watch(&self) {
        while !self.is_over() {
            Stopwatch::start().wait_until(LOOK, || self.is_over());
            let silence = self.silence();
            let ended = self.ssh.lock().unwrap_or_else(PoisonError::into_inner).1.try_wait();
            if let Ok(Some(status)) = ended
                && silence > timeout_after(status)
            {
                return (self.close)();
            }
        }
    }
}

fn timeout_after(status: ExitStatus) -> Duration {
    if matches!(status.code(), None | Some(SSH_FAILED)) { LOST } else { GONE }
}

/// Who has the stream.
struct StreamOwner(Arc<BesideSsh>);

impl StreamOwner {
    fn close(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        let grace = if self.0.silence() > SILENT { CLOSED_SILENT } else { CLOSED };
        (self.0.close)();
        let mut ssh = self.0.ssh.lock().unwrap_or_else(PoisonError::into_inner);
        // The far end hears the end of its input, or finds out by the connection: it ends by itself.
        ssh.0 = None;
        kernel::end_child(&mut ssh.1, grace);
    }
}

impl Drop for StreamOwner {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        // Its input ends.
        self.0.ssh.lock().unwrap_or_else(PoisonError::into_inner).0 = None;
    }
}

struct CountedEnd<T> {
    end: T,
    beside: Arc<BesideSsh>,
}

impl<T> CountedEnd<T> {
    fn count(&self, done: io::Result<usize>) -> io::Result<usize> {
        done.inspect(|n| {
            self.beside.moved.fetch_add(*n as u64, Ordering::Relaxed);
        })
    }
}

impl<T: Read> Read for CountedEnd<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let done = self.end.read(into);
        self.count(done)
    }
}

impl<T: Write> Write for CountedEnd<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.end.write(bytes);
        self.count(done)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.end.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransferProbe;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Command, Stdio};

    fn beside(script: &str) -> (TransferStream, io::PipeWriter) {
        let ssh = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn();
        let mut ssh = ssh.unwrap();
        let input = ssh.stdin.take().unwrap();
        let (reader, theirs) = io::pipe().unwrap();
        let (_, writer) = io::pipe().unwrap();
        let call = TransferStream {
            line: kernel::line_of_pipes(reader.into(), writer.into()),
            peer: "far".to_owned(),
            address: None,
            probe: TransferProbe::Through,
            finish: Box::new(|| ()),
        };
        (beside_ssh(call, input, ssh), theirs)
    }

    /// Breaks: a copy whose far end is gone waits until its timeout, which may be long; or one ends that
    /// still moves.
    #[test]
    fn a_stream_ends_soon_after_its_far_end() {
        let begun = Stopwatch::start();
        let (mut call, mut theirs) = beside("exit 3");
        for _ in 0..4 {
            Stopwatch::start().wait_until(1_000_000_000, || false);
            theirs.write_all(b"x").unwrap();
            assert_eq!(call.line.reader.read(&mut [0; 9]).unwrap(), 1, "what moves goes on");
        }
        assert!(call.line.reader.read(&mut [0; 9]).is_err());
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert_eq!(timeout_after(ExitStatus::from_raw(255 << 8)), LOST);
        assert_eq!(timeout_after(ExitStatus::from_raw(9)), LOST);
        assert_eq!(timeout_after(ExitStatus::from_raw(0)), GONE);
    }

    /// Breaks: ssh and the far end stay when a transfer is over.
    #[test]
    fn ssh_ends_with_its_stream() {
        let begun = Stopwatch::start();
        let (call, _theirs) = beside("cat");
        (call.line.close)();
        let (call, mut theirs) = beside("cat; exit 3");
        drop(call);
        // Nobody reads any more.
        while theirs.write_all(b"x").is_ok() {
            assert!(begun.elapsed() < Duration::from_secs(20));
        }
    }
}
