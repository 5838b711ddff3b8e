//! The programs on the hosts of the lab: one sends a payload, one checks it.

use crate::payload::{Payload, Verifier};
use farpace_host::Application;
use farpace_tcp::{CloseReason, Connection, ConnectionEvent};
use farpace_units::Instant;

/// Longest chunk that is written at once.
const CHUNK: usize = 256 * 1024;

/// Sends a payload, then closes.
pub(crate) struct SendingProgram {
    payload: Payload,
    offset: u64,
    pub ended: Option<CloseReason>,
}

impl SendingProgram {
    pub fn new(payload: Payload) -> Self {
        SendingProgram { payload, offset: 0, ended: None }
    }

    fn write(&mut self, connection: &mut Connection) {
        let len = self.payload.len().get();
        while self.offset < len {
            let room = connection.write_room().as_len();
            if room == 0 {
                return;
            }
            let mut chunk = self.payload.slice(self.offset, room.min(CHUNK));
            let taken = connection.write(&mut chunk).get();
            if taken == 0 {
                return;
            }
            self.offset += taken;
        }
        connection.close();
    }
}

impl Application for SendingProgram {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected | ConnectionEvent::Writable => self.write(connection),
            ConnectionEvent::Readable => _ = connection.read(drop),
            ConnectionEvent::PeerClosed
            | ConnectionEvent::Urgent
            | ConnectionEvent::Unanswered
            | ConnectionEvent::SoftError => {}
            ConnectionEvent::Closed(reason) => self.ended = Some(reason),
        }
    }
}

/// Receives a payload and compares every byte; closes when the sender has.
pub(crate) struct ReceivingProgram {
    /// None for a connection that was not expected: it is reset.
    pub verifier: Option<Verifier>,
    /// When the last byte arrived.
    pub completed: Option<Instant>,
    pub ended: Option<CloseReason>,
}

impl ReceivingProgram {
    pub fn new(verifier: Option<Verifier>) -> Self {
        ReceivingProgram { verifier, completed: None, ended: None }
    }
}

impl Application for ReceivingProgram {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: ConnectionEvent) {
        let Some(verifier) = &mut self.verifier else { return connection.abort() };
        match event {
            ConnectionEvent::Readable => {
                connection.read(|bytes| verifier.receive(&bytes));
                if verifier.is_complete() {
                    self.completed.get_or_insert(now);
                }
            }
            ConnectionEvent::PeerClosed => connection.close(),
            ConnectionEvent::Connected | ConnectionEvent::Writable => {}
            ConnectionEvent::Urgent | ConnectionEvent::Unanswered | ConnectionEvent::SoftError => {}
            ConnectionEvent::Closed(reason) => self.ended = Some(reason),
        }
    }
}
