//! Relays a connection of the kernel over a stream to the other end, where another connection continues it.
//! What happens to one of the two connections happens to the other: data in order, a FIN behind the data
//! before it, and a reset.
//!
//! Both directions of the stream consist of frames: a length (4 bytes, big endian) and so many bytes. Length
//! 0 is the end of the direction, a FIN. The length [`RESET`] says that the connection there was reset;
//! nothing follows. A stream that ends without either was cut, and the connection here is reset: a program
//! must not take the part that it got for all of it. For the same reason the connections are reset when this
//! process ends before they do.

use crate::{SecureStream, TransferProbe};
use anyhow::Result;
use farpace_live::KernelTcp;
use farpace_live::socket::{Readiness, ReadinessWatch};
use farpace_process::stopwatch::Stopwatch;
use farpace_transfer::FramedStream;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::sockopt::set_socket_linger;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::Duration;

/// Bytes of a frame at most.
const MAX_FRAME: usize = 256 << 10;
/// Bytes of a length.
const HEAD: usize = 4;
/// The length that says that the connection was reset.
const RESET: u32 = u32::MAX;
/// When one of the connections has been reset or the stream is cut: the data before that is still passed on
/// as long as some of it moves within this time. After it both ends are reset.
const GRACE: Duration = Duration::from_secs(5);
/// The same of data that the program here has to acknowledge before it is told of the reset.
const DRAIN: Duration = Duration::from_secs(1);
/// Between two looks at what it has acknowledged.
const LOOK: Duration = Duration::from_millis(5);

/// How a relayed connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelayEnd {
    /// Both directions ended in order.
    Closed,
    /// The connection here or there was reset.
    Reset,
    /// The stream between was cut.
    Cut,
}

/// Makes every end of a connection a reset, unless [`relay`] sees it end in order.
///
/// # Errors
/// It is no socket.
pub(crate) fn reset_at_end(tcp: &TcpStream) -> io::Result<()> {
    Ok(set_socket_linger(tcp, Some(Duration::ZERO))?)
}

/// Relays until both directions have ended, or one of the connections was reset. `begin` reads what comes
/// before the frames of the other end; frames of this end are sent meanwhile.
///
/// # Errors
/// Of `begin`: the connection here is reset. There are no descriptors or threads left.
pub(crate) fn relay(
    tcp: TcpStream,
    far: SecureStream,
    begin: impl FnOnce(&mut dyn Read) -> Result<()> + Send,
) -> Result<RelayEnd> {
    reset_at_end(&tcp)?;
    // A short answer must not wait for the ACK of the one before it.
    let _ = tcp.set_nodelay(true);
    tcp.set_nonblocking(true)?;
    let SecureStream { line: FramedStream { mut reader, writer, close }, finish, probe, .. } = far;
    let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Arc::new);
    let relay = Relay {
        tcp,
        writer: Mutex::new(RelayWriter { writer, is_over: false }),
        finish,
        close,
        state: Mutex::default(),
        moved: AtomicU64::new(0),
        stopped: AtomicBool::new(false),
        stop: event()?,
        wake: event()?,
    };
    let gone = event()?;
    if let TransferProbe::Farpace(stream) = &probe {
        stream.watch(Box::new(GoneWatch(gone.clone())));
    }
    let ended = std::thread::scope(|scope| {
        let incoming = Builder::new().spawn_scoped(scope, || {
            let begun = begin(&mut *reader);
            let ended = begun.map(|()| relay.receive(&mut *reader));
            relay.end_receiving(&ended);
            ended
        })?;
        let outgoing = Builder::new().spawn_scoped(scope, || relay.send());
        if outgoing.is_err() {
            abort(&probe, &*relay.close);
            relay.stop();
        }
        relay.watch(&probe, &gone);
        let ended = incoming.join().unwrap_or(Ok(RelayEnd::Cut));
        outgoing.map(|_| ())?;
        ended
    });
    if let TransferProbe::Farpace(stream) = &probe {
        stream.unwatch();
    }
    let ended = match ended {
        // Nobody waits for what could not begin.
        Err(_) if relay.state().is_reset_here => RelayEnd::Reset,
        ended => ended?,
    };
    if ended == RelayEnd::Closed {
        // What the program here has not acknowledged yet is still sent.
        set_socket_linger(&relay.tcp, None)?;
        (relay.finish)();
    } else {
        (relay.close)();
    }
    Ok(ended)
}

/// Resets the stream between.
fn abort(probe: &TransferProbe, close: &(dyn Fn() + Send + Sync)) {
    match probe {
        TransferProbe::Farpace(stream) => stream.abort(),
        // It has no other error than the one that is already there.
        TransferProbe::Kernel(tcp) => drop(reset_at_end(tcp)),
        TransferProbe::Through => {}
    }
    close();
}

/// Tells of an end of farpace's connection that was no FIN.
struct GoneWatch(Arc<OwnedFd>);

impl ReadinessWatch for GoneWatch {
    fn update(&mut self, readiness: Readiness) {
        if readiness.failed {
            signal(&self.0);
        }
    }
}

fn signal(event: &OwnedFd) {
    // It fails when the counter is full, and is readable then, too.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

struct RelayWriter {
    writer: Box<dyn Write + Send>,
    /// A reset was sent, or the stream is cut.
    is_over: bool,
}

impl RelayWriter {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_over {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let done = self.writer.write_all(bytes).and_then(|()| self.writer.flush());
        self.is_over = done.is_err();
        done
    }
}

#[derive(Clone, Copy, Default)]
struct RelayState {
    /// The end of this direction was sent, or nothing more can be.
    sending_over: bool,
    /// The end of the other one was received, and passed on.
    got_end: bool,
    /// The thread that receives has ended.
    receiving_over: bool,
    /// One of the connections was reset, or the stream between is cut.
    is_broken: bool,
    /// It is the connection here that was reset.
    is_reset_here: bool,
}

impl RelayState {
    /// How the connection has ended if nothing more is received.
    const fn end(self) -> RelayEnd {
        match self {
            RelayState { is_reset_here: true, .. } => RelayEnd::Reset,
            RelayState { got_end: true, sending_over: true, is_broken: false, .. } => RelayEnd::Closed,
            _ => RelayEnd::Cut,
        }
    }
}

struct Relay {
    tcp: TcpStream,
    writer: Mutex<RelayWriter>,
    finish: Box<dyn Fn() + Send + Sync>,
    close: Box<dyn Fn() + Send + Sync>,
    state: Mutex<RelayState>,
    /// Bytes that were passed on in either direction.
    moved: AtomicU64,
    stopped: AtomicBool,
    /// Readable when all threads are to end.
    stop: Arc<OwnedFd>,
    /// Readable when the state has changed.
    wake: Arc<OwnedFd>,
}

impl Relay {
    fn state(&self) -> MutexGuard<'_, RelayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn change(&self, change: impl FnOnce(&mut RelayState)) -> RelayState {
        let state = {
            let mut state = self.state();
            change(&mut state);
            *state
        };
        signal(&self.wake);
        state
    }
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        signal(&self.stop);
    }
    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The connection here has been reset: the other end is told behind what was sent before.
    fn reset_here(&self) {
        self.change(|state| (state.is_broken, state.is_reset_here) = (true, true));
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writer.send(&RESET.to_be_bytes());
        writer.is_over = true;
    }

    /// What comes from the connection here goes to the other end.
    fn send(&self) {
        let mut room = vec![0; HEAD + MAX_FRAME];
        loop {
            let (head, body) = room.split_at_mut(HEAD);
            let Ok(n) = self.read(body) else {
                if !self.is_stopped() {
                    self.reset_here();
                }
                break;
            };
            head.copy_from_slice(&u32::try_from(n).unwrap_or(RESET).to_be_bytes());
            let frame = room.get(..HEAD + n).unwrap_or_default();
            if self.writer.lock().unwrap_or_else(PoisonError::into_inner).send(frame).is_err() {
                self.change(|state| state.is_broken = true);
                break;
            }
            if n == 0 {
                break;
            }
            self.moved.fetch_add(n as u64, Ordering::Relaxed);
        }
        if self.change(|state| state.sending_over = true).got_end {
            // The other end waits for nothing more.
            (self.finish)();
        }
    }

    /// What comes from the other end goes to the connection here.
    fn receive(&self, reader: &mut dyn Read) -> RelayEnd {
        let mut room = vec![0; MAX_FRAME];
        let mut discards = false;
        loop {
            let mut head = [0; HEAD];
            if reader.read_exact(&mut head).is_err() {
                return self.state().end();
            }
            match u32::from_be_bytes(head) {
                0 => {
                    // It fails if the connection was reset, which its reader finds.
                    let _ = self.tcp.shutdown(Shutdown::Write);
                    let state = self.change(|state| state.got_end = true);
                    if state.sending_over {
                        return state.end();
                    }
                }
                RESET => {
                    if !self.state().is_reset_here {
                        self.drain();
                    }
                    return RelayEnd::Reset;
                }
                n => {
                    let body = usize::try_from(n).ok().and_then(|n| room.get_mut(..n));
                    let Some(body) = body else { return RelayEnd::Cut };
                    if reader.read_exact(body).is_err() {
                        continue; // the next length fails, too
                    }
                    // After a reset here it is read and discarded, so that the other end hears of the reset.
                    if !discards && self.write_all(body).is_err() {
                        if self.is_stopped() {
                            return RelayEnd::Cut;
                        }
                        discards = true;
                        self.reset_here();
                    }
                }
            }
        }
    }

    /// Nothing more is received: the other direction ends, too, unless both ended in order.
    fn end_receiving(&self, ended: &Result<RelayEnd>) {
        if !matches!(ended, Ok(RelayEnd::Closed)) {
            if matches!(ended, Ok(RelayEnd::Cut)) {
                self.drain();
            }
            self.stop();
            (self.close)();
        }
        self.change(|state| state.receiving_over = true);
    }

    /// Ends what waits for ever: where one of the connections was reset or the stream is cut while the
    /// program at the other connection takes nothing.
    fn watch(&self, probe: &TransferProbe, gone: &OwnedFd) {
        let (mut sees_here, mut sees_far) = (true, true);
        let mut still: Option<(u64, Stopwatch)> = None;
        loop {
            let state = *self.state();
            if state.receiving_over && (state.sending_over || self.is_stopped()) {
                return;
            }
            let mut wait = None;
            if state.is_broken {
                let moved = self.moved.load(Ordering::Relaxed);
                let since = match &still {
                    Some((before, since)) if *before == moved => since.elapsed(),
                    _ => {
                        still = Some((moved, Stopwatch::start()));
                        Duration::ZERO
                    }
                };
                if since >= GRACE {
                    abort(probe, &*self.close);
                    self.stop();
                    return;
                }
                wait = Some(GRACE.saturating_sub(since));
            }
            let mut fds = vec![PollFd::new(&*self.wake, PollFlags::IN)];
            if sees_here {
                fds.push(PollFd::new(&self.tcp, PollFlags::empty()));
            }
            if sees_far {
                fds.push(match probe {
                    TransferProbe::Kernel(tcp) => PollFd::new(tcp, PollFlags::empty()),
                    _ => PollFd::new(gone, PollFlags::IN),
                });
            }
            let wait = wait.map(|wait| Timespec {
                tv_sec: wait.as_secs().cast_signed(),
                tv_nsec: wait.subsec_nanos().into(),
            });
            // A signal interrupts it at most.
            let _ = poll(&mut fds, wait.as_ref());
            let seen: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
            let mut seen = seen.into_iter();
            if seen.next().is_some_and(|flags| !flags.is_empty()) {
                let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
            }
            if sees_here && let Some(flags) = seen.next().filter(|flags| !flags.is_empty()) {
                // A hang-up without an error is an end of both directions.
                sees_here = false;
                if flags.contains(PollFlags::ERR) {
                    self.change(|state| (state.is_broken, state.is_reset_here) = (true, true));
                }
            }
            if sees_far && let Some(flags) = seen.next().filter(|flags| !flags.is_empty()) {
                sees_far = false;
                if !matches!(probe, TransferProbe::Kernel(_)) || flags.contains(PollFlags::ERR) {
                    self.change(|state| state.is_broken = true);
                }
            }
        }
    }

    /// Waits until the program here has what was written, as long as it takes some of it: a reset would
    /// discard the rest.
    fn drain(&self) {
        let mut last = None;
        while let Some(seen) = KernelTcp::of(&self.tcp) {
            if seen.unacknowledged == 0 && seen.unsent == 0 {
                return;
            }
            let since = match &last {
                Some((acknowledged, since)) if *acknowledged == seen.acknowledged => since,
                _ => &last.insert((seen.acknowledged, Stopwatch::start())).1,
            };
            if since.elapsed() >= DRAIN || self.is_stopped() {
                return;
            }
            let mut fds = [PollFd::new(&*self.stop, PollFlags::IN)];
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK.subsec_nanos().into() };
            let _ = poll(&mut fds, Some(&wait));
        }
    }

    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.tcp).read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::IN)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
    fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.tcp).write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::OUT)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(n) => {
                    bytes = bytes.get(n..).unwrap_or_default();
                    self.moved.fetch_add(n as u64, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
    /// Waits for the connection here.
    fn wait(&self, flags: PollFlags) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.tcp, flags), PollFd::new(&*self.stop, PollFlags::IN)];
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        if self.is_stopped() { Err(io::ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
