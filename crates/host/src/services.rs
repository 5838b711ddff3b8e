//! The old small services of TCP: echo (RFC 862), discard (RFC 863), chargen (RFC 864).

use crate::{Application, Host, ListenError, ListenSettings};
use bytes::Bytes;

use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::Instant;
use std::collections::VecDeque;
use std::fmt;

/// What a service does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ServiceKind {
    /// Sends back what comes.
    Echo,
    /// Reads what comes.
    Discard,
    /// Sends lines of text for as long as somebody reads them.
    Chargen,
}

/// A service at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HostService {
    /// What it does.
    pub kind: ServiceKind,
    /// Where.
    pub port: u16,
}

impl HostService {
    /// `echo`, or `echo:9000`.
    ///
    /// # Errors
    /// Anything else.
    pub fn parse(word: &str) -> Result<Self, String> {
        let (name, port) = word.split_once(':').map_or((word, None), |(name, port)| (name, Some(port)));
        let (kind, usual) = match name {
            "echo" => (ServiceKind::Echo, 7),
            "discard" => (ServiceKind::Discard, 9),
            "chargen" => (ServiceKind::Chargen, 19),
            _ => {
                return Err(format!(
                    "`{word}` is no service: there are echo, discard and chargen, with a port as in echo:9000"
                ));
            }
        };
        let port = match port {
            Some(port) => {
                let parsed = port.parse().ok().filter(|port| *port != 0);
                parsed.ok_or_else(|| format!("`{port}` is not a port: 1 to 65535"))?
            }
            None => usual,
        };
        Ok(HostService { kind, port })
    }

    /// Lets `host` offer it.
    ///
    /// # Errors
    /// Another service has the port.
    pub fn offer(self, host: &mut Host, settings: &ListenSettings) -> Result<(), ListenError> {
        let lines = lines();
        let make = move || -> Box<dyn Application> {
            match self.kind {
                ServiceKind::Echo => Box::new(EchoService::default()),
                ServiceKind::Discard => Box::new(Discard),
                ServiceKind::Chargen => Box::new(Chargen { rest: Bytes::new(), lines: lines.clone() }),
            }
        };
        host.listen(self.port, settings.clone(), make)
    }
}

impl fmt::Display for HostService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            ServiceKind::Echo => "echo",
            ServiceKind::Discard => "discard",
            ServiceKind::Chargen => "chargen",
        };
        write!(f, "{name} on port {}", self.port)
    }
}

/// The peer has finished, and all that it said was read. What is left for it must not be kept for ever if it
/// takes nothing.
fn leave(connection: &mut Connection) {
    connection.close();
    connection.stop_reading();
}

#[derive(Default)]
struct EchoService {
    /// Read, and not taken by the send buffer yet. More is read only when there is none: so the peer is held
    /// back.
    waiting: VecDeque<Bytes>,
    ended: bool,
}

impl Application for EchoService {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        self.ended |= event == ConnectionEvent::PeerClosed;
        if !matches!(
            event,
            ConnectionEvent::Readable | ConnectionEvent::Writable | ConnectionEvent::PeerClosed
        ) {
            return;
        }
        loop {
            while let Some(first) = self.waiting.front_mut() {
                connection.write(first);
                if !first.is_empty() {
                    return;
                }
                self.waiting.pop_front();
            }
            connection.read(|bytes| self.waiting.push_back(bytes));
            if self.waiting.is_empty() {
                break;
            }
        }
        if self.ended {
            leave(connection);
        }
    }
}

struct Discard;

impl Application for Discard {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Readable | ConnectionEvent::PeerClosed) {
            connection.read(drop);
        }
        if event == ConnectionEvent::PeerClosed {
            leave(connection);
        }
    }
}

struct Chargen {
    rest: Bytes,
    lines: Bytes,
}

impl Application for Chargen {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if matches!(event, ConnectionEvent::Readable | ConnectionEvent::PeerClosed) {
            connection.read(drop);
        }
        match event {
            ConnectionEvent::PeerClosed => leave(connection),
            ConnectionEvent::Connected | ConnectionEvent::Writable => loop {
                if self.rest.is_empty() {
                    self.rest = self.lines.clone();
                }
                connection.write(&mut self.rest);
                if !self.rest.is_empty() {
                    break;
                }
            },
            _ => {}
        }
    }
}

/// All lines of chargen once: 95 of 72 printable characters, each beginning one character later. Many times
/// over, so that a send buffer is filled in few calls.
fn lines() -> Bytes {
    const PRINTABLE: usize = 95;
    const TIMES: usize = 32;
    let line = |from: usize| (0..72).map(move |at| b' ' + ((from + at) % PRINTABLE) as u8).chain(*b"\r\n");
    (0..PRINTABLE).flat_map(line).collect::<Vec<u8>>().repeat(TIMES).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: services at other ports than asked for, or nonsense taken for one.
    #[test]
    fn services_are_read_as_typed() {
        assert_eq!(HostService::parse("echo").unwrap(), HostService { kind: ServiceKind::Echo, port: 7 });
        assert_eq!(
            HostService::parse("chargen:1900").unwrap(),
            HostService { kind: ServiceKind::Chargen, port: 1900 }
        );
        for bad in ["", "ftp", "echo:", "echo:70000", "7"] {
            assert!(HostService::parse(bad).is_err(), "{bad}");
        }
    }

    /// Breaks: chargen sends something else than RFC 864 describes.
    #[test]
    fn lines_turn() {
        let lines = lines();
        assert!(lines.starts_with(
            b" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefg\r\n!\"#"
        ));
        assert_eq!(lines.len(), 32 * 95 * 74);
    }
}
