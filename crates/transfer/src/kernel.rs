//! The kernel's own sockets, and the streams of a program, as lines.

use crate::line::FramedStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long to wait for a connection before looking whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Hundredths of a second that a program gets to end by itself.
const GRACE: u32 = 300;

/// A connection of the kernel as a line.
///
/// # Errors
/// The process has no descriptors left.
pub fn line_of(stream: TcpStream) -> io::Result<FramedStream> {
    // Ends of files must not wait for acknowledgements of the data before.
    let _ = stream.set_nodelay(true);
    stream.set_nonblocking(false)?;
    let (reader, closer) = (stream.try_clone()?, stream.try_clone()?);
    Ok(FramedStream {
        reader: Box::new(reader),
        writer: Box::new(stream),
        close: Box::new(move || drop(closer.shutdown(Shutdown::Both))),
    })
}

/// What a program says and hears as a line; closing it ends the program. None: its streams were not asked for.
pub fn line_of_child(mut child: Child) -> Option<FramedStream> {
    let (reader, writer) = (child.stdout.take()?, child.stdin.take()?);
    Some(line_of_parts(reader, writer, child))
}

/// The same where something of it has been read already.
pub fn line_of_parts(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    child: Child,
) -> FramedStream {
    let child = Mutex::new(child);
    let close = move || {
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
    };
    FramedStream { reader: Box::new(reader), writer: Box::new(writer), close: Box::new(close) }
}

/// Waits a moment for a program that should end by itself, then ends it.
pub fn end_child(child: &mut Child) {
    for _ in 0..GRACE {
        // An error means that there is nothing to wait for.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// The next connection; none: `stop` said so.
///
/// # Errors
/// The listener is of no use any more.
pub fn accept(listener: &TcpListener, stop: impl Fn() -> bool) -> io::Result<Option<TcpStream>> {
    listener.set_nonblocking(true)?;
    while !stop() {
        let mut fds = [PollFd::new(listener, PollFlags::IN)];
        let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
        match poll(&mut fds, Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            // It went away before we looked, or there are no descriptors just now: later.
            Err(error) if is_passing(&error) => std::thread::sleep(Duration::from_millis(10)),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    let exhausted = [
        rustix::io::Errno::MFILE,
        rustix::io::Errno::NFILE,
        rustix::io::Errno::NOBUFS,
        rustix::io::Errno::NOMEM,
    ];
    matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted | WouldBlock)
        || exhausted.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// A one-time token nobody can guess: 64 hexadecimal digits.
///
/// # Errors
/// The system gives no random numbers.
pub fn one_time_token() -> io::Result<String> {
    Ok(blake3::Hash::from_bytes(random_key()?).to_hex().to_string())
}

/// Bytes that nobody can guess.
///
/// # Errors
/// The system gives no random numbers.
pub fn random_key() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// A key for one purpose out of parts of which one is secret: BLAKE3's `derive_key` over them, each with its length in
/// front.
pub fn derive_key(context: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
    }
    *hasher.finalize().as_bytes()
}
