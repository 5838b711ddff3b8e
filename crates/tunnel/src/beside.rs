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
/// What ssh exits with when it has lost its connection, or a signal has ended the far end.
const SSH_FAILED: i32 = 255;

/// The stream of `call`; `child` is ssh, which ends with it.
pub fn beside_ssh(call: TransferStream, input: ChildStdin, child: Child) -> TransferStream {
    let TransferStream { line: FramedStream { reader, writer, close }, peer, address, probe, finish } = call;
    let ssh = Mutex::new((Some(input), child));
    let beside =
        Arc::new(BesideSsh { ssh, close, moved: AtomicU64::new(0), is_over: AtomicBool::new(false) });
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
    is_over: AtomicBool,
}

impl BesideSsh {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
    /// Closes the stream when ssh has ended and nothing moves any more.
    fn watch(&self) {
        let (mut moved, mut quiet) = (0, Stopwatch::start());
        while !self.is_over() {
            Stopwatch::start().wait_until(LOOK, || self.is_over());
            let now = self.moved.load(Ordering::Relaxed);
            if now != moved {
                (moved, quiet) = (now, Stopwatch::start());
            }
            let ended = self.ssh.lock().unwrap_or_else(PoisonError::into_inner).1.try_wait();
            if let Ok(Some(status)) = ended
                && quiet.elapsed() > timeout_after(status)
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
        (self.0.close)();
        let mut ssh = self.0.ssh.lock().unwrap_or_else(PoisonError::into_inner);
        // The far end has what it needs, or finds out by the connection: it ends by itself.
        ssh.0 = None;
        kernel::end_child(&mut ssh.1);
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
