//! The driver's side of a stream: the application of its connection.

use super::duplex::{DuplexPhase, StreamDuplex};
use super::pipe::Pipe;
use super::pump::{pump, take_in};
use farpace_host::{Application, ConnectionId, SocketEnds};
use farpace_tcp::{CloseReason, Connection, ConnectionEvent, PathError};
use farpace_units::Instant;
use farpace_wire::Unreachable;
use nix::errno::Errno;
use std::sync::Arc;

/// Moves data between a connection and the [`Pipe`] of its program. It belongs to the host, and remains after
/// the program has closed the stream until the connection has ended.
pub(super) struct Bridge {
    pipe: Option<Arc<Pipe>>,
    /// Reports the established connection to its listener.
    announce: Option<Box<dyn FnOnce(Arc<Pipe>) -> bool>>,
}

impl Bridge {
    /// For an outgoing connection.
    pub fn new(pipe: Arc<Pipe>) -> Self {
        Bridge { pipe: Some(pipe), announce: None }
    }
    /// For an accepted connection: `announce` is called when it is established. It returns false if the
    /// connection is not wanted.
    pub fn announced(pipe: Arc<Pipe>, announce: impl FnOnce(Arc<Pipe>) -> bool + 'static) -> Self {
        Bridge { pipe: Some(pipe), announce: Some(Box::new(announce)) }
    }
    /// Bytes between program and engine: unread by the program, and not taken by the engine.
    pub fn between(&self) -> (usize, usize) {
        let count =
            |duplex: &mut StreamDuplex| (duplex.incoming_bytes + duplex.reader_bytes, duplex.outgoing_bytes);
        self.pipe.as_ref().map_or((0, 0), |pipe| pipe.shared.with(count))
    }
}

impl Application for Bridge {
    fn on_begin(&mut self, id: ConnectionId, ends: SocketEnds) {
        if let Some(pipe) = &self.pipe {
            pipe.shared.with(|duplex| (duplex.id, duplex.ends) = (Some(id), Some(ends)));
        }
    }

    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: ConnectionEvent) {
        let Some(pipe) = &self.pipe else { return };
        match event {
            ConnectionEvent::Readable | ConnectionEvent::Writable | ConnectionEvent::Urgent => {
                pipe.shared.with(|duplex| pump(duplex, connection, now))
            }
            ConnectionEvent::PeerClosed => pipe.shared.with(|duplex| {
                duplex.peer_closed = true;
                pump(duplex, connection, now);
            }),
            ConnectionEvent::Connected => {
                pipe.shared.with(|duplex| {
                    (duplex.phase, duplex.was_open) = (DuplexPhase::Open, true);
                    if duplex.rate_cap.is_some() {
                        connection.set_rate_cap(duplex.rate_cap);
                    }
                    pump(duplex, connection, now);
                });
                if let Some(announce) = self.announce.take()
                    && !announce(pipe.clone())
                {
                    connection.abort();
                }
            }
            ConnectionEvent::Closed(reason) => {
                pipe.shared.with(|duplex| close(duplex, connection, reason));
                self.pipe = None;
            }
            ConnectionEvent::SoftError => {
                let error = connection.soft_error().filter(|_| connection.config().tuning.reports_errors);
                if let Some(error) = error.map(errno_of) {
                    connection.take_soft_error();
                    pipe.shared.with(|duplex| duplex.fail(error));
                }
            }
            ConnectionEvent::Unanswered => {}
        }
    }
}

impl Drop for Bridge {
    /// The host is dropped, with all its connections.
    fn drop(&mut self) {
        if let Some(pipe) = &self.pipe {
            pipe.shared.with(|duplex| duplex.end(Some(Errno::ENETDOWN)));
        }
    }
}

/// What Linux makes of a report of the network.
pub(super) fn errno_of(error: PathError) -> Errno {
    let PathError::Unreachable { why, .. } = error else {
        return if error == PathError::Malformed { Errno::EPROTO } else { Errno::EHOSTUNREACH };
    };
    match why {
        Unreachable::Route => Errno::ENETUNREACH,
        Unreachable::Host | Unreachable::Prohibited => Errno::EHOSTUNREACH,
        Unreachable::Protocol => Errno::ENOPROTOOPT,
        Unreachable::Port => Errno::ECONNREFUSED,
        // The codes of RFC 792 and RFC 1122 §3.2.2.1.
        Unreachable::Other(5) => Errno::EOPNOTSUPP,
        Unreachable::Other(6 | 9 | 11) => Errno::ENETUNREACH,
        Unreachable::Other(7) => Errno::EHOSTDOWN,
        Unreachable::Other(8) => Errno::ENONET,
        Unreachable::Other(_) => Errno::EHOSTUNREACH,
    }
}

fn close(duplex: &mut StreamDuplex, connection: &mut Connection, reason: CloseReason) {
    if duplex.close_mode.is_none() {
        take_in(duplex, connection, usize::MAX);
    }
    let error = match reason {
        CloseReason::Finished => None,
        // Both ends have closed, and both know it: the reset only shortened TIME-WAIT.
        CloseReason::Reset if duplex.flushed && duplex.peer_closed => None,
        CloseReason::Reset if duplex.phase == DuplexPhase::Opening => Some(Errno::ECONNREFUSED),
        // A peer that has closed its direction does not accept more data either. If both have closed
        // (LAST-ACK), it is an ordinary reset.
        CloseReason::Reset if duplex.peer_closed && !duplex.fin_sent => Some(Errno::EPIPE),
        CloseReason::Reset => Some(Errno::ECONNRESET),
        CloseReason::TimedOut => Some(Errno::ETIMEDOUT),
        CloseReason::Unreachable => Some(connection.soft_error().map_or(Errno::EHOSTUNREACH, errno_of)),
        CloseReason::Aborted => duplex.close_mode.is_none().then_some(Errno::ECONNABORTED),
    };
    duplex.flushed &= error.is_none();
    duplex.flushed |= reason == CloseReason::Finished;
    duplex.end(error);
}
