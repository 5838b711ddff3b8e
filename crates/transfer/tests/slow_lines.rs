//! Transfers over lines that are slow, that stand still for a while, and that break; and what a receiver
//! cannot store.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "helpers of tests")]

use farpace_transfer::{
    Code, Destination, FramedStream, ReceiveReport, SendReport, Session, Timeouts, TransferError,
    WritePolicy, receive, send, walk,
};
use farpace_units::Rate;
use std::fs;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

fn line(stream: UnixStream) -> FramedStream {
    let (reader, closer) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
    FramedStream {
        reader: Box::new(reader),
        writer: Box::new(stream),
        close: Box::new(move || drop(closer.shutdown(Shutdown::Both))),
    }
}

/// What a line does with what is written to it, beside taking it.
struct Hindered<F>(UnixStream, F);

impl<F: FnMut(usize) -> io::Result<()>> Write for Hindered<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = bytes.get(..8_192).unwrap_or(bytes);
        (self.1)(part.len())?;
        self.0.write(part)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hindered(
    stream: UnixStream,
    hinder: impl FnMut(usize) -> io::Result<()> + Send + 'static,
) -> FramedStream {
    let writer = Hindered(stream.try_clone().unwrap(), hinder);
    FramedStream { writer: Box::new(writer), ..line(stream) }
}

type Outcome = (Result<SendReport, TransferError>, Result<ReceiveReport, TransferError>);

/// Sends `film` of this size to a directory, with what the line does and a session.
fn transfer(
    size: usize,
    to: &Path,
    idle: Duration,
    limit: Option<Rate>,
    acknowledged: &(dyn Fn() -> u64 + Sync),
    hinder: impl FnMut(usize) -> io::Result<()> + Send + 'static,
) -> Outcome {
    let from = tempfile::tempdir().unwrap();
    fs::write(from.path().join("film"), vec![7; size]).unwrap();
    let (a, b) = UnixStream::pair().unwrap();
    let place = Destination::new(to, WritePolicy::default()).unwrap();
    let walk = walk(&[from.path().join("film")]).unwrap();
    let timeouts = Timeouts { idle, ..Timeouts::default() };
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let timeouts = Timeouts { idle: Duration::from_secs(30), ..timeouts };
            receive(
                line(b),
                &Session { token: b"t", connected: false, timeouts, ..Session::default() },
                &place,
            )
        });
        let session = Session { token: b"t", timeouts, acknowledged, ..Session::default() };
        let sent = send(hindered(a, hinder), &session, walk, limit);
        (sent, receiver.join().unwrap())
    })
}

/// Breaks: a transfer over a line that needs longer than `--timeout` for a frame is given up, although bytes
/// arrive all the time.
#[test]
fn a_slow_line_is_not_silent() {
    let to = tempfile::tempdir().unwrap();
    // 1 MiB takes 4 s.
    let slow = |bytes| {
        sleep(Duration::from_micros(4 * bytes as u64));
        Ok(())
    };
    let (sent, received) = transfer(1_300_000, to.path(), Duration::from_secs(2), None, &|| 0, slow);
    assert_eq!((sent.unwrap().files, received.unwrap().files), (1, 1));
}

/// Breaks: a line that is so slow that its buffer takes nothing for `--timeout` is given up, although the
/// other side acknowledges; or one that is dead is waited for.
#[test]
fn a_line_that_acknowledges_is_not_silent() {
    let hinder = || {
        let mut written = 0;
        move |bytes| {
            if written < 300_000 && written + bytes >= 300_000 {
                sleep(Duration::from_secs(4));
            }
            written += bytes;
            Ok(())
        }
    };
    let (to, begun) = (tempfile::tempdir().unwrap(), Instant::now());
    let idle = Duration::from_secs(1);
    let acknowledged = || begun.elapsed().as_millis() as u64;
    let sent = transfer(1_000_000, to.path(), idle, None, &acknowledged, hinder()).0;
    assert_eq!(sent.unwrap().files, 1);
    let to = tempfile::tempdir().unwrap();
    let sent = transfer(1_000_000, to.path(), idle, None, &|| 7, hinder()).0;
    assert!(matches!(sent, Err(TransferError::Silent(_))), "{sent:?}");
}

/// Breaks: what arrived of a frame whose rest is lost has to be sent again.
#[test]
fn what_came_of_a_broken_frame_is_kept() {
    let to = tempfile::tempdir().unwrap();
    let mut written = 0;
    let cut = move |bytes| {
        written += bytes;
        if written > 900_000 { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    };
    let (sent, received) = transfer(3_000_000, to.path(), Duration::from_secs(20), None, &|| 0, cut);
    assert!(sent.is_err() && received.is_err());
    let kept: Vec<_> = fs::read_dir(to.path()).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(kept.len(), 1);
    let len = kept[0].metadata().unwrap().len();
    assert!((880_000..=900_000).contains(&len), "{len}");
}

/// Breaks: a file that cannot be created is sent to its end before anybody hears of it.
#[test]
fn a_file_that_cannot_be_stored_is_not_sent_to_its_end() {
    // Nobody can create files there.
    let limit = Some(Rate::from_mbit(80));
    let begun = Instant::now();
    let (sent, received) =
        transfer(60_000_000, Path::new("/proc"), Duration::from_secs(20), limit, &|| 0, |_| Ok(()));
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.failed, received.files, received.failed), (0, 1, 0, 1));
    assert!(sent.problems[0].fault.text.starts_with("cannot create it"), "{:?}", sent.problems);
    assert_eq!(sent.problems[0].fault.code, Code::Vanished);
    assert!(sent.bytes < 30_000_000, "{} B in {:?}", sent.bytes, begun.elapsed());
}
