//! Kernel sockets, and the streams of a program, as framed streams.

use crate::line::FramedStream;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which a waiting accept checks whether to stop.
const LOOK: Duration = Duration::from_millis(100);

/// A connection of the kernel as a framed stream.
///
/// # Errors
/// The process has no descriptors left.
pub fn line_of(stream: TcpStream) -> io::Result<FramedStream> {
    // The end of a file must not wait for the ACK of the data before it.
    let _ = stream.set_nodelay(true);
    stream.set_nonblocking(false)?;
    let (reader, closer) = (stream.try_clone()?, stream.try_clone()?);
    Ok(FramedStream {
        reader: Box::new(reader),
        writer: Box::new(stream),
        close: Box::new(move || drop(closer.shutdown(Shutdown::Both))),
    })
}

/// The standard streams of a program as a framed stream; closing it ends the program. None: its streams are
/// not piped.
pub fn line_of_child(mut child: Child) -> Option<FramedStream> {
    let (reader, writer) = (child.stdout.take()?, child.stdin.take()?);
    Some(line_of_parts(reader, writer, child))
}

/// Like [`line_of_child`], after some of the output was read already.
pub fn line_of_parts(
    reader: impl Read + Send + 'static,
    writer: impl Write + Send + 'static,
    child: Child,
) -> FramedStream {
    let child = Mutex::new(child);
    let close = move || {
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have exited by itself.
        let _ = child.kill();
        let _ = child.wait();
    };
    FramedStream { reader: Box::new(reader), writer: Box::new(writer), close: Box::new(close) }
}

/// What a pipe takes without waiting, if it takes anything.
const PIPE: usize = 4_096;

/// Pipes, such as a process's own standard streams, as a framed stream. Closing it ends reads and writes that
/// wait.
pub fn line_of_pipes(reader: OwnedFd, writer: OwnedFd) -> FramedStream {
    let closed = Arc::new(AtomicBool::new(false));
    let end = |fd: OwnedFd| PipeEnd { pipe: File::from(fd), closed: closed.clone() };
    let (reader, writer) = (end(reader), end(writer));
    let close = move || closed.store(true, Ordering::Relaxed);
    FramedStream { reader: Box::new(reader), writer: Box::new(writer), close: Box::new(close) }
}

struct PipeEnd {
    pipe: File,
    closed: Arc<AtomicBool>,
}

impl PipeEnd {
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        while !self.closed.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&self.pipe, flags)];
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
            match poll(&mut fds, Some(&wait)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(io::ErrorKind::ConnectionAborted.into())
    }
}

impl Read for PipeEnd {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::IN)?;
        self.pipe.read(into)
    }
}

impl Write for PipeEnd {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(PollFlags::OUT)?;
        self.pipe.write(bytes.get(..PIPE).unwrap_or(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

/// Waits until a program exits by itself, but only for `grace`. Then kills it.
pub fn end_child(child: &mut Child, grace: Duration) {
    let end = Instant::now() + grace;
    while Instant::now() < end {
        // An error means that there is nothing to wait for.
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Accepts the next connection; none: `stop` returned true.
///
/// # Errors
/// The listener has failed.
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
            // The connection was closed before it was accepted, or no descriptors are left at present: retry.
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

/// A random one-time token of 64 hexadecimal digits.
///
/// # Errors
/// The system provides no random numbers.
pub fn one_time_token() -> io::Result<String> {
    Ok(blake3::Hash::from_bytes(random_key()?).to_hex().to_string())
}

/// Random bytes for a key.
///
/// # Errors
/// The system provides no random numbers.
pub fn random_key() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// A key for one purpose, derived from parts of which one is secret: BLAKE3's `derive_key` over them, each
/// preceded by its length.
pub fn derive_key(context: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
    }
    *hasher.finalize().as_bytes()
}
