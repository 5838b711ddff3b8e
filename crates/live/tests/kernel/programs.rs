//! What runs at our end.

use crate::stream::pattern;
use bytes::Bytes;
use farpace_host::Application;
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::Instant;
use std::collections::VecDeque;

/// Bytes that an echo keeps before it stops reading.
const KEPT: usize = 1 << 20;

/// Sends so many bytes of the [`pattern`], then closes.
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

/// Sends back what comes, and closes when the peer does and all has been sent back.
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
pub struct Deaf;

impl Application for Deaf {
    fn on_event(&mut self, _: Instant, _: &mut Connection, _: ConnectionEvent) {}
}

/// Resets the connection as soon as something comes.
pub struct Rude;

impl Application for Rude {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if event == ConnectionEvent::Readable {
            connection.abort();
        }
    }
}
