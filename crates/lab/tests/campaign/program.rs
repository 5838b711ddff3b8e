//! The program at one end of a connection, and its observations.

use super::knobs::{Close, Program, Read, Wait};
use bytes::Bytes;
use farpace_lab::Payload;
use farpace_tcp::{CloseReason, Connection, ConnectionEvent};
use farpace_units::{ByteCount, Instant};

/// The bytes of all streams of one end: those of connection number n begin at `n * STRIDE`.
const STRIDE: u64 = 7_919;

/// The bytes that an end sends; made once, and shared.
pub fn streams() -> [Payload; 2] {
    [1, 2].map(|seed| Payload::pattern(seed, ByteCount::new(1 << 40)))
}

/// A program that runs.
pub struct Running {
    pub does: Program,
    peer: Program,
    side: usize,
    number: u32,
    streams: [Payload; 2],
    pub written: u64,
    pub received: u64,
    pub connected: bool,
    pub peer_closed: bool,
    pub has_closed: bool,
    pub aborted: bool,
    pub ended: Option<CloseReason>,
    /// When the last byte or the end of the stream arrived.
    pub last_progress: Instant,
    readable: bool,
    /// It does not read before this time.
    sleeps_until: Instant,
    paused: bool,
}

impl Running {
    pub fn new(does: [Program; 2], side: usize, number: u32, streams: &[Payload; 2]) -> Self {
        Running {
            does: does[side],
            peer: does[1 - side],
            side,
            number,
            streams: streams.clone(),
            written: 0,
            received: 0,
            connected: false,
            peer_closed: false,
            has_closed: false,
            aborted: false,
            ended: None,
            last_progress: Instant::ZERO,
            readable: false,
            sleeps_until: Instant::ZERO,
            paused: false,
        }
    }

    /// It wants to be called at this time.
    pub fn wake(&self) -> Option<Instant> {
        (self.readable && self.ended.is_none()).then_some(self.sleeps_until)
    }

    /// Handles the events of the connection, then reads, writes and closes.
    pub fn act(&mut self, now: Instant, connection: &mut Connection) {
        let mut events = 0;
        while let Some(event) = connection.poll_event() {
            events += 1;
            assert!(events <= 8, "each event stands once");
            match event {
                ConnectionEvent::Connected => self.connected = true,
                ConnectionEvent::Readable => self.readable = true,
                ConnectionEvent::PeerClosed => {
                    assert!(!self.peer_closed, "the peer closes once");
                    self.peer_closed = true;
                    self.last_progress = now;
                }
                ConnectionEvent::Closed(reason) => {
                    assert_eq!(self.ended.replace(reason), None, "closed once")
                }
                _ => {}
            }
        }
        if self.readable && (now >= self.sleeps_until || self.ended.is_some()) {
            self.read(now, connection);
        }
        if self.ended.is_some() || !self.connected {
            return;
        }
        if self.does.abort.is_some_and(|at| self.written + self.received >= at) {
            self.aborted = true;
            connection.abort();
            return;
        }
        self.write(connection);
        let done = self.written == self.does.total;
        if done && !self.has_closed && (self.does.close == Close::AtOnce || self.peer_closed) {
            self.has_closed = true;
            connection.close();
        }
    }

    fn read(&mut self, now: Instant, connection: &mut Connection) {
        let from = self.received;
        let (mut at, stream) = (from, &self.streams[1 - self.side]);
        let start = u64::from(self.number) * STRIDE;
        let number = self.number;
        connection.read(|bytes| {
            let sent = stream.slice(start + at, bytes.len());
            assert!(bytes == sent, "connection {number}: byte {at} and on are not those that were sent");
            at += bytes.len() as u64;
        });
        self.received = at;
        self.readable = false;
        if at > from {
            self.last_progress = now;
        }
        match self.does.read {
            Read::Eager => {}
            Read::Every(every) => self.sleeps_until = now + every,
            Read::Pause { after, lasts } if at > after && !self.paused => {
                self.paused = true;
                self.sleeps_until = now + lasts;
            }
            Read::Pause { .. } => {}
        }
    }

    /// The number of bytes that may be written by now.
    fn allowed(&self) -> u64 {
        let heard = self.received / self.peer.turn;
        // No turn waits for more than the peer sends.
        let heard_all = self.received == self.peer.total;
        let turns = match self.does.wait {
            Wait::Nothing => u64::MAX,
            Wait::Answer | Wait::Request if heard_all => u64::MAX,
            Wait::Answer => 1 + heard,
            Wait::Request => heard,
            Wait::PeerClosed if self.peer_closed => u64::MAX,
            Wait::PeerClosed => 0,
        };
        self.does.turn.saturating_mul(turns).min(self.does.total)
    }

    fn write(&mut self, connection: &mut Connection) {
        while self.written < self.allowed() {
            let len = (self.allowed() - self.written).min(self.does.piece as u64) as usize;
            let start = u64::from(self.number) * STRIDE + self.written;
            let mut data: Bytes = self.streams[self.side].slice(start, len);
            let taken = connection.write(&mut data).get();
            self.written += taken;
            if taken == 0 {
                break;
            }
        }
    }
}
