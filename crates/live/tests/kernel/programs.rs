//! Applications of the host.

use crate::stream::pattern;
use bytes::Bytes;
use farpace_host::Application;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::Instant;
use std::collections::VecDeque;

/// Bytes that an echo buffers before it stops reading.
const KEPT: usize = 1 << 20;

/// Sends this many bytes of the [`pattern`], then closes.
pub struct Source {
    sent: usize,
    all: usize,
    pattern: Bytes,
}

impl Source {
    pub fn of(all: usize) -> Self {
        Source { sent: 0, all, pattern: pattern() }
    }
}

impl Application for Source {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Connected | ConnectionEvent::Writable) {
            while self.sent < self.all {
                let at = self.sent % self.pattern.len();
                let end = self.pattern.len().min(at + self.all - self.sent);
                let taken = connection.write(&mut self.pattern.slice(at..end)).as_len();
                self.sent += taken;
                if taken == 0 {
                    return;
                }
            }
            connection.close();
        }
    }
}

/// Reads everything, and closes when the peer does.
pub struct Sink;

impl Application for Sink {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Readable => {
                connection.read(drop);
            }
            ConnectionEvent::PeerClosed => {
                connection.read(drop);
                connection.close();
            }
            _ => {}
        }
    }
}

/// Echoes received data, and closes when the peer has closed and everything was echoed.
#[derive(Default)]
pub struct Echo {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    peer_closed: bool,
}

impl Application for Echo {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        self.peer_closed |= event == ConnectionEvent::PeerClosed;
        loop {
            while let Some(front) = self.waiting.front_mut() {
                let taken = connection.write(front).as_len();
                self.bytes -= taken;
                if !front.is_empty() {
                    return;
                }
                self.waiting.pop_front();
            }
            if self.bytes < KEPT
                && connection
                    .read(|bytes| {
                        self.bytes += bytes.len();
                        self.waiting.push_back(bytes);
                    })
                    .is_zero()
            {
                break;
            }
        }
        if self.peer_closed && self.waiting.is_empty() {
            connection.close();
        }
    }
}

/// Never reads.
pub struct NeverReads;

impl Application for NeverReads {
    fn on_event(&mut self, _: Instant, _: &mut Connection, _: ConnectionEvent) {}
}

/// Resets the connection on the first data.
pub struct ResetsOnData;

impl Application for ResetsOnData {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Readable {
            connection.abort();
        }
    }
}
