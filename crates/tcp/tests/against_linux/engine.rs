//! The same script against the engine, in virtual time.

use super::common::{drain, expire};
use super::peer::{PORT, Peer, encoded};
use super::script::{ANSWER, App, Script};
use bytes::Bytes;
use farpace_tcp::config::{DelayedAck, Settings};
use farpace_tcp::{Connection, Ports, Segment};
use farpace_units::{Instant, Seq};
use farpace_wire::tcp::TcpHeader;
use std::collections::VecDeque;

const BUDGET: usize = 64;

struct Engine<'a> {
    connection: Connection,
    peer: Peer,
    script: &'a Script,
    answers: u32,
    /// What the peer sends at once.
    inbox: VecDeque<(TcpHeader, Bytes)>,
}

/// Nothing of Linux but when it acknowledges.
pub fn acks() -> Settings {
    Settings { delayed_ack: Some(DelayedAck::Linux), ..Settings::default() }
}

/// The peer when its segments have arrived at `times`: SYN, ACK, and the steps of `script`.
pub fn play(script: &Script, times: &[Instant], settings: &Settings) -> Peer {
    let config = settings.resolve().unwrap();
    let peer = Peer::new(2, script);
    let [syn_at, ack_at, steps @ ..] = times else { return peer };
    let syn = segment(peer.syn(*syn_at, script), Bytes::new());
    let ports = Ports { local: PORT, remote: 2 };
    let connection = Connection::accept(*syn_at, &config, ports, Seq::new(7), &syn);
    let mut e = Engine { connection, peer, script, answers: script.app.answers(), inbox: VecDeque::new() };
    e.send(*syn_at);
    e.advance(*ack_at);
    let ack = e.peer.ack(*ack_at);
    e.arrive(*ack_at, ack, Bytes::new());
    for (at, step) in steps.iter().zip(&script.steps) {
        e.advance(*at);
        let (header, payload) = e.peer.segment(*at, step);
        e.arrive(*at, header, payload);
    }
    e.advance(script.until());
    e.peer
}

fn segment(header: TcpHeader, payload: Bytes) -> Segment {
    Segment { header, payload, ..Segment::default() }
}

impl Engine<'_> {
    fn send(&mut self, now: Instant) {
        for o in drain(&mut self.connection, now, BUDGET) {
            self.hear(now, &o.segment);
        }
    }

    fn hear(&mut self, now: Instant, s: &Segment) {
        let answer = self.peer.hear(now, &s.header, &encoded(&s.header), s.payload.len() as u32);
        self.inbox.extend(answer.map(|a| (a, Bytes::new())));
    }

    fn arrive(&mut self, now: Instant, header: TcpHeader, payload: Bytes) {
        self.inbox.push_back((header, payload));
        while let Some((header, payload)) = self.inbox.pop_front() {
            self.connection.on_segment(now, segment(header, payload));
            self.send(now);
            if self.script.app != App::Sleeps {
                let read = self.connection.read(|_| {});
                self.send(now);
                if self.answers > 0 && !read.is_zero() {
                    self.answers -= 1;
                    self.connection.write(&mut Bytes::from_static(&ANSWER));
                    self.send(now);
                }
            }
        }
    }

    fn advance(&mut self, to: Instant) {
        while let Some((at, _)) = self.connection.deadline().filter(|(at, _)| *at <= to) {
            for o in expire(&mut self.connection, at, BUDGET) {
                self.hear(at, &o.segment);
            }
            if let Some((header, payload)) = self.inbox.pop_front() {
                self.arrive(at, header, payload);
            }
        }
    }
}
