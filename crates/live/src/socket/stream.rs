//! TCP streams for programs.

use super::bridge::errno_of;
use super::duplex::DuplexPhase;
use super::engine::{call_host, ended};
use super::linger;
use super::pipe::Pipe;
use super::shared::{IoDirection, Readiness, ReadinessWatch, deadline};
use super::snapshot::ConnectionSnapshot;
use bytes::Bytes;
use farpace_host::{Host, SocketEnds};
use farpace_path::Cx;
use farpace_tcp::Connection;
use nix::errno::Errno;
use std::any::Any;
use std::io::{self, IoSliceMut, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A TCP connection of a program.
///
/// It behaves like [`std::net::TcpStream`]: reads and writes wait, unless it is non-blocking or has timeouts.
/// Clones are handles of the same stream. Dropping the last one closes the stream: written data is still
/// sent, but unread data causes a reset. Several threads may read and write at once.
///
/// Memory is bounded in both directions: 512 KiB each, in addition to the buffers of the engine. If the
/// program does not read, the receive window closes; if the peer does not, writes wait.
#[derive(Clone)]
pub struct Stream(Arc<StreamInner>);

struct StreamInner {
    pipe: Arc<Pipe>,
    nonblocking: AtomicBool,
    times: Mutex<StreamTimeouts>,
}

#[derive(Clone, Copy, Default)]
struct StreamTimeouts {
    read: Option<Duration>,
    write: Option<Duration>,
    linger: Option<Duration>,
    /// The peer has said that it has everything.
    delivered: bool,
}

impl Drop for StreamInner {
    fn drop(&mut self) {
        let StreamTimeouts { linger, delivered, .. } = self.times();
        linger::leave(&self.pipe, linger, delivered);
    }
}

impl StreamInner {
    fn times(&self) -> StreamTimeouts {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn change(&self, change: impl FnOnce(&mut StreamTimeouts)) {
        change(&mut self.times.lock().unwrap_or_else(PoisonError::into_inner));
    }
    /// Repeats a call until it succeeds or must not wait.
    fn call<T>(&self, direction: IoDirection, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let mut until = None;
        loop {
            match attempt() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.nonblocking.load(Ordering::Relaxed) {
                        return Err(error);
                    }
                }
                done => return done,
            }
            let times = self.times();
            let timeout = if direction == IoDirection::In { times.read } else { times.write };
            let until = *until.get_or_insert_with(|| deadline(timeout));
            self.pipe.shared.wait(direction, until)?;
        }
    }
}

/// Refuses a timeout of zero, like the standard library.
fn checked(timeout: Option<Duration>) -> io::Result<Option<Duration>> {
    match timeout {
        Some(Duration::ZERO) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a timeout of zero")),
        timeout => Ok(timeout),
    }
}

impl Stream {
    pub(super) fn new(pipe: Arc<Pipe>, linger: Option<Duration>) -> Self {
        let times = Mutex::new(StreamTimeouts { linger, ..StreamTimeouts::default() });
        Stream(Arc::new(StreamInner { pipe, nonblocking: AtomicBool::new(false), times }))
    }
    pub(in crate::socket) fn pipe(&self) -> &Arc<Pipe> {
        &self.0.pipe
    }

    /// Another handle of the same stream.
    ///
    /// # Errors
    /// None; the method of the standard library may fail.
    pub fn try_clone(&self) -> io::Result<Stream> {
        Ok(self.clone())
    }

    /// Waits until a connection of [`Stack::begin_connect`](super::Stack::begin_connect) is established, at
    /// most `timeout`.
    ///
    /// # Errors
    /// It was refused or not answered; `TimedOut` after `timeout`.
    pub fn finish_connect(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self.0.pipe.shared.wait(IoDirection::Out, deadline(timeout)) {
            Ok(()) => {}
            Err(super::shared::Wake::TimedOut) => return Err(io::ErrorKind::TimedOut.into()),
            Err(wake) => return Err(wake.into()),
        }
        self.take_error().map_or(Ok(()), Err)
    }
    /// True until the handshake has succeeded or failed.
    pub fn is_connecting(&self) -> bool {
        self.0.pipe.shared.with(|duplex| duplex.phase == DuplexPhase::Opening)
    }

    /// Reads into several buffers.
    ///
    /// # Errors
    /// As [`read`](Read::read).
    pub fn read_into(&self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.call(IoDirection::In, || self.0.pipe.try_read(buffers))
    }
    /// The next received piece, at most `limit` bytes, without a copy; none: the peer has closed its
    /// direction.
    ///
    /// # Errors
    /// As [`read`](Read::read).
    pub fn read_bytes(&self, limit: usize) -> io::Result<Option<Bytes>> {
        self.0.call(IoDirection::In, || self.0.pipe.try_read_bytes(limit))
    }
    /// Copies received data without consuming it.
    ///
    /// # Errors
    /// As [`read`](Read::read).
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.0.call(IoDirection::In, || self.0.pipe.try_peek(buffer, 0))
    }
    /// Writes some of `bytes` without a copy, and leaves the rest.
    ///
    /// # Errors
    /// As [`write`](Write::write).
    pub fn write_some_bytes(&self, bytes: &mut Bytes) -> io::Result<usize> {
        self.0.call(IoDirection::Out, || self.0.pipe.try_write_bytes(bytes))
    }
    /// Writes all of `bytes` without a copy. A non-blocking stream may fail after a part; use
    /// [`write_some_bytes`](Self::write_some_bytes) there.
    ///
    /// # Errors
    /// As [`write_all`](Write::write_all).
    pub fn write_bytes(&self, mut bytes: Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            self.write_some_bytes(&mut bytes)?;
        }
        Ok(())
    }

    /// Ends one or both directions. After `Write` a FIN follows the written data; after `Read` reads return
    /// the received data and then the end.
    ///
    /// # Errors
    /// `NotConnected`: it has ended.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if self
            .0
            .pipe
            .shared
            .with(|duplex| duplex.phase == DuplexPhase::Over || (duplex.flushed && duplex.peer_closed))
        {
            return Err(Errno::ENOTCONN.into());
        }
        if matches!(how, Shutdown::Read | Shutdown::Both) {
            self.0.pipe.stop_reading();
        }
        if matches!(how, Shutdown::Write | Shutdown::Both) {
            self.0.pipe.finish();
        }
        Ok(())
    }
    /// Closes this handle, and the stream if it is the last one. With `linger` it waits for the peer to
    /// acknowledge everything.
    ///
    /// # Errors
    /// `TimedOut`: the peer has not within the time of `linger`; the rest is still being sent.
    pub fn close(self) -> io::Result<()> {
        let StreamTimeouts { linger, delivered, .. } = self.0.times();
        let linger = linger.filter(|linger| !linger.is_zero());
        if linger.is_some() && Arc::strong_count(&self.0) == 1 {
            self.set_linger(None);
            if !linger::leave(&self.0.pipe, linger, delivered) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
    /// Resets the connection; all waiting calls return.
    pub fn abort(&self) {
        self.0.pipe.leave(super::duplex::CloseMode::Abort);
    }
    /// All threads that wait in this stream get [`Interrupted`](super::Interrupted).
    pub fn interrupt(&self) {
        self.0.pipe.shared.interrupt();
    }

    /// Calls that would wait fail with `WouldBlock` instead.
    ///
    /// # Errors
    /// None; the method of the standard library may fail.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.0.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }
    /// Reads fail with `WouldBlock` after waiting for this time; none: they wait without limit.
    ///
    /// # Errors
    /// `InvalidInput`: zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = checked(timeout)?;
        self.0.change(|times| times.read = timeout);
        Ok(())
    }
    /// Writes fail with `WouldBlock` after waiting for this time; none: they wait without limit.
    ///
    /// # Errors
    /// `InvalidInput`: zero.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = checked(timeout)?;
        self.0.change(|times| times.write = timeout);
        Ok(())
    }
    /// How long closing waits; see [`SocketOptions::linger`](super::SocketOptions).
    pub fn set_linger(&self, linger: Option<Duration>) {
        self.0.change(|times| times.linger = linger);
    }

    /// The peer has said, in words of the program's own, that it has everything. With `linger`, a close then
    /// waits for the peer's FIN in place of the ACK of its own: a round trip less.
    pub fn set_delivered(&self) {
        self.0.change(|times| times.delivered = true);
    }

    /// Its local and remote addresses.
    ///
    /// # Errors
    /// `NotConnected`: it has none yet.
    pub fn ends(&self) -> io::Result<SocketEnds> {
        self.0.pipe.shared.with(|duplex| duplex.ends).ok_or_else(|| Errno::ENOTCONN.into())
    }
    /// The local address and port.
    ///
    /// # Errors
    /// As [`ends`](Self::ends).
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.ends()?.local)
    }
    /// The address and port of the peer.
    ///
    /// # Errors
    /// As [`ends`](Self::ends).
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.ends()?.remote)
    }
    /// The pending error; returned once (SO_ERROR).
    pub fn take_error(&self) -> Option<io::Error> {
        self.0.pipe.take_error()
    }
    /// What the network last reported of the path, once, if it ended nothing and nothing was acknowledged
    /// since.
    pub fn take_soft_error(&self) -> Option<io::Error> {
        let error = self.inspect_with(|connection, _| connection.soft_error()).flatten()?;
        let _ = self.tune_later(|connection, _| {
            connection.take_soft_error();
        });
        Some(errno_of(error).into())
    }
    /// Bytes that can be read without waiting (FIONREAD). More may be on the way from the engine.
    pub fn available(&self) -> usize {
        self.0.pipe.available()
    }
    /// The operations that are possible without waiting.
    pub fn readiness(&self) -> Readiness {
        self.0.pipe.shared.readiness()
    }
    /// Sets the watch for changes of the readiness, and reports the current one.
    pub fn watch(&self, watch: Box<dyn ReadinessWatch>) {
        self.0.pipe.shared.watch(watch);
    }
    /// Removes the watch.
    pub fn unwatch(&self) {
        self.0.pipe.shared.unwatch();
    }
    /// The value attached by its listener ([`Listening::extra`](super::Listening)).
    pub fn extra(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.0.pipe.extra().cloned()
    }

    /// A snapshot of the connection: round trip time, windows, state, retransmissions, and what limits the
    /// sender.
    ///
    /// # Errors
    /// `NotConnected`: it has not begun, or ended long ago.
    pub fn inspect(&self) -> io::Result<ConnectionSnapshot> {
        let waiting = self.0.pipe.waiting_to_leave();
        self.with_connection(move |connection, now| ConnectionSnapshot::of(connection, now, waiting))
    }
    /// Changes the running connection with the setters of [`Connection`].
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn tune(&self, change: impl FnOnce(&mut Connection) + Send + 'static) -> io::Result<()> {
        let id = self.0.pipe.connection()?;
        let changed =
            call_host(self.0.pipe.engine(), move |host, cx| host.with_connection(id, cx, change).is_some())?;
        if changed { Ok(()) } else { Err(Errno::ENOTCONN.into()) }
    }
    /// Changes the connection without waiting, before all later requests.
    ///
    /// # Errors
    /// Network down.
    pub(super) fn tune_later(
        &self,
        change: impl FnOnce(&mut Connection, farpace_units::Instant) + Send + 'static,
    ) -> io::Result<()> {
        let id = self.0.pipe.connection()?;
        let job = move |host: &mut Host, cx: &mut Cx<'_>| {
            let now = cx.now();
            host.with_connection(id, cx, |connection| change(connection, now));
        };
        self.0.pipe.engine().run(Box::new(job)).map_err(|_| ended())
    }
    /// The result of `work` on the connection; none: it ended long ago.
    pub(super) fn inspect_with<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, farpace_units::Instant) -> R + Send + 'static,
    ) -> Option<R> {
        self.with_connection(work).ok()
    }
    /// True if the stream has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.0.pipe.shared.with(|duplex| duplex.phase == DuplexPhase::Over)
    }
    /// True if it has ended and was never established.
    pub(super) fn has_failed_to_open(&self) -> bool {
        self.0.pipe.shared.with(|duplex| duplex.phase == DuplexPhase::Over && !duplex.was_open)
    }
    /// Sets the number of bytes at which the stream becomes readable (SO_RCVLOWAT).
    pub(super) fn set_low_water(&self, bytes: usize) {
        self.0.pipe.shared.with(|duplex| duplex.want(bytes));
        self.0.pipe.kick();
    }
    /// Urgent data is read in order with the rest (SO_OOBINLINE), or separately.
    pub(super) fn set_urgent_inline(&self, inline: bool) {
        self.0.pipe.shared.with(|duplex| duplex.urgent_inline = inline);
    }
    /// Short segments are sent at once (TCP_NODELAY), or wait for ACKs.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.tune(move |connection| connection.set_nagle(!nodelay))
    }

    fn with_connection<R: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, farpace_units::Instant) -> R + Send + 'static,
    ) -> io::Result<R> {
        let id = self.0.pipe.connection().map_err(|_| ended())?;
        let seen = call_host(self.0.pipe.engine(), move |host, cx| {
            let now = cx.now();
            host.connection(id).map(|connection| work(connection, now))
        })?;
        seen.ok_or_else(|| Errno::ENOTCONN.into())
    }
}

impl Read for &Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.read_into(&mut [IoSliceMut::new(buffer)])
    }
    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_into(buffers)
    }
}

impl Write for &Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        self.0.call(IoDirection::Out, || self.0.pipe.try_write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }
    fn read_vectored(&mut self, buffers: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.read_into(buffers)
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
