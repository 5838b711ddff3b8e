//! The programs on the hosts of the lab: one sends a payload, one checks it. Either may take its time.

use crate::awaited::{AwaitedAt, AwaitedFlows};
use crate::exchanges::ExchangeSide;
use crate::payload::{Payload, Verifier};
use crate::scenario::{ExchangeSpec, PortionsSpec};
use bytes::Bytes;
use farpace_host::{Application, ConnectionId, SocketEnds};
use farpace_path::world::ElementId;
use farpace_tcp::{CloseReason, Connection, ConnectionEvent};
use farpace_units::{ByteCount, Instant};
use std::sync::Arc;

/// Longest chunk that is written at once.
const CHUNK: usize = 256 * 1024;

/// What a program that takes its time may do by now.
pub(crate) struct Allowance {
    portions: PortionsSpec,
    begun: Option<Instant>,
    /// Portions that have been due.
    due: u64,
    /// Bytes used.
    used: u64,
}

impl Allowance {
    fn new(portions: PortionsSpec) -> Self {
        Allowance { portions, begun: None, due: 0, used: 0 }
    }

    fn begin(&mut self, now: Instant) {
        if self.begun.is_none() {
            self.begun = Some(now);
            self.due = 1;
        }
    }

    /// When the next portion is due; none before the connection is established.
    fn next(&self) -> Option<Instant> {
        Some(self.begun? + self.portions.every * self.due)
    }

    fn reach(&mut self, now: Instant) {
        while self.next().is_some_and(|next| next <= now) {
            self.due += 1;
        }
    }

    fn left(&self) -> u64 {
        (self.portions.size.get().saturating_mul(self.due)).saturating_sub(self.used)
    }
}

/// Sends a payload, then closes.
pub(crate) struct SendingProgram {
    payload: Payload,
    offset: u64,
    allowance: Option<Allowance>,
    exchanges: Option<ExchangeSide>,
    pub ended: Option<CloseReason>,
}

impl SendingProgram {
    pub fn new(payload: Payload, portions: Option<PortionsSpec>, exchanges: &Arc<[ExchangeSpec]>) -> Self {
        let (allowance, exchanges) = (portions.map(Allowance::new), ExchangeSide::asking(exchanges));
        SendingProgram { payload, offset: 0, allowance, exchanges, ended: None }
    }

    /// When it wants to be woken.
    pub fn wake_at(&self) -> Option<Instant> {
        let unfinished = self.offset < self.payload.len().get() && self.ended.is_none();
        let portion = self.allowance.as_ref().and_then(Allowance::next);
        let request = self.exchanges.as_ref().and_then(ExchangeSide::wake_at);
        portion.into_iter().chain(request).min().filter(|_| unfinished)
    }

    /// Another portion or request may be due.
    pub fn wake(&mut self, now: Instant) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.wake(now);
        }
        if let Some(allowance) = &mut self.allowance {
            allowance.reach(now);
        }
    }

    pub fn write(&mut self, connection: &mut Connection) {
        let len = self.payload.len().get();
        while self.offset < len {
            let room = connection.write_room().as_len();
            if room == 0 {
                return;
            }
            let portions = self.allowance.as_ref().map_or(u64::MAX, Allowance::left);
            let requests = self.exchanges.as_ref().map_or(u64::MAX, |e| e.allowed() - self.offset);
            let may = portions.min(requests);
            let may = usize::try_from(may).unwrap_or(usize::MAX);
            if may == 0 {
                return;
            }
            let mut chunk = self.payload.slice(self.offset, room.min(CHUNK).min(may));
            let taken = connection.write(&mut chunk).get();
            if taken == 0 {
                return;
            }
            if let Some(allowance) = &mut self.allowance {
                allowance.used += taken;
            }
            self.offset += taken;
        }
        connection.close();
    }
}

impl Application for SendingProgram {
    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected | ConnectionEvent::Writable => {
                if let Some(allowance) = &mut self.allowance {
                    allowance.begin(now);
                }
                self.write(connection);
            }
            ConnectionEvent::Readable => {
                let read = connection.read(drop);
                if let Some(exchanges) = &mut self.exchanges {
                    exchanges.on_read(now, read.get());
                }
            }
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
    awaited: AwaitedFlows,
    /// Where it was listened.
    host: ElementId,
    /// None for a connection that was not expected: it is reset.
    pub verifier: Option<Verifier>,
    /// When the last byte arrived.
    pub completed: Option<Instant>,
    pub ended: Option<CloseReason>,
    /// The sender has closed, and not all of its data has been read.
    closing: bool,
    allowance: Option<Allowance>,
    exchanges: Option<ExchangeSide>,
    /// Bytes of answers that were written.
    answered: u64,
}

impl ReceivingProgram {
    /// For any of the flows that are waited for at a host.
    pub fn new(awaited: AwaitedFlows, host: ElementId) -> Self {
        ReceivingProgram {
            awaited,
            host,
            verifier: None,
            completed: None,
            ended: None,
            closing: false,
            allowance: None,
            exchanges: None,
            answered: 0,
        }
    }

    /// When it wants to be woken.
    pub fn wake_at(&self) -> Option<Instant> {
        let unfinished = self.completed.is_none() && self.ended.is_none();
        let portion = self.allowance.as_ref().and_then(Allowance::next);
        let answer = self.exchanges.as_ref().and_then(ExchangeSide::wake_at);
        portion.into_iter().chain(answer).min().filter(|_| unfinished)
    }

    /// Another portion or answer may be due.
    pub fn wake(&mut self, now: Instant) {
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.wake(now);
        }
        if let Some(allowance) = &mut self.allowance {
            allowance.reach(now);
        }
    }

    /// Writes what is left of its answers.
    pub fn answer(&mut self, connection: &mut Connection) {
        static ANSWER: [u8; 16 * 1024] = [b'.'; 16 * 1024];
        let allowed = self.exchanges.as_ref().map_or(0, ExchangeSide::allowed);
        while self.answered < allowed {
            let left = usize::try_from(allowed - self.answered).unwrap_or(usize::MAX);
            let room = connection.write_room().as_len();
            let mut piece = Bytes::from_static(&ANSWER).split_to(left.min(room).min(ANSWER.len()));
            let taken = connection.write(&mut piece).get();
            if taken == 0 {
                return;
            }
            self.answered += taken;
        }
    }

    /// Reads what it may.
    pub fn read(&mut self, now: Instant, connection: &mut Connection) {
        let Some(verifier) = &mut self.verifier else { return };
        let may = self.allowance.as_ref().map_or(ByteCount::MAX, |a| ByteCount::new(a.left()));
        let taken = connection.read_up_to(may, |bytes| verifier.receive(&bytes));
        if let Some(allowance) = &mut self.allowance {
            allowance.used += taken.get();
        }
        if let Some(exchanges) = &mut self.exchanges {
            exchanges.on_read(now, taken.get());
        }
        if verifier.is_complete() {
            self.completed.get_or_insert(now);
        }
        self.close_after_data(connection);
    }

    /// A program closes when it has read the end of the data, and not when the end arrives.
    fn close_after_data(&mut self, connection: &mut Connection) {
        if self.closing && connection.readable().is_zero() {
            self.closing = false;
            connection.close();
        }
    }
}

impl Application for ReceivingProgram {
    fn on_begin(&mut self, id: ConnectionId, ends: SocketEnds) {
        let (port, from_port) = (ends.local.port(), Some(ends.remote.port()));
        let found = self.awaited.take(AwaitedAt { host: self.host, port, from_port }, id);
        if let Some(flow) = found {
            self.verifier = Some(flow.verifier);
            self.allowance = flow.reads.map(Allowance::new);
            self.exchanges = ExchangeSide::answering(&flow.exchanges);
        }
    }

    fn on_event(&mut self, now: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if self.verifier.is_none() {
            return connection.abort();
        }
        if let Some(allowance) = &mut self.allowance {
            allowance.begin(now);
        }
        match event {
            ConnectionEvent::Readable => self.read(now, connection),
            ConnectionEvent::PeerClosed => {
                self.closing = true;
                self.close_after_data(connection);
            }
            ConnectionEvent::Connected | ConnectionEvent::Writable => self.answer(connection),
            ConnectionEvent::Urgent | ConnectionEvent::Unanswered | ConnectionEvent::SoftError => {}
            ConnectionEvent::Closed(reason) => self.ended = Some(reason),
        }
    }
}
