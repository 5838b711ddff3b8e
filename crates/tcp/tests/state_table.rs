//! Every state under every kind of segment: the reply and the next state, as one table.

mod common;
mod script;

use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, ConnectionState, Segment};
use farpace_units::{Instant, Packets, Span};
use farpace_wire::tcp::TcpFlags;
use script::{Script, plain};

/// A connection in `state` at 100 ms, and the next sequence numbers: the peer's, and the one it acknowledges.
fn in_state(state: ConnectionState) -> (Script, i64, i64) {
    let settings = Settings { initial_window: Some(Packets::new(4)), ..plain() };
    let established = || Script::established(&settings, 9000);
    let (mut s, script, rcv_nxt, snd_nxt) = match state {
        ConnectionState::SynSent => (Script::connect(&settings), "0 > S 0", 0, 1),
        ConnectionState::SynReceived => (Script::accept(&settings, "S 0 win 9000"), "0 > S. 0 ack 1", 1, 1),
        ConnectionState::Established => (established(), "", 1, 1),
        ConnectionState::FinWait1 => (established(), "20 ! close\n 20 > F. 1 ack 1", 1, 2),
        ConnectionState::FinWait2 => (established(), "20 ! close\n 20 > F. 1 ack 1\n 30 < . 1 ack 2", 1, 2),
        ConnectionState::CloseWait => (established(), "20 < F. 1 ack 1\n 20 > . 1 ack 2", 2, 1),
        ConnectionState::Closing => {
            (established(), "20 ! close\n 20 > F. 1 ack 1\n 30 < F. 1 ack 1\n 30 > . 2 ack 2", 2, 2)
        }
        ConnectionState::LastAck => {
            (established(), "20 < F. 1 ack 1\n 20 > . 1 ack 2\n 30 ! close\n 30 > F. 1 ack 2", 2, 2)
        }
        ConnectionState::TimeWait => {
            (established(), "20 ! close\n 20 > F. 1 ack 1\n 30 < F. 1 ack 2\n 30 > . 2 ack 2", 2, 2)
        }
        ConnectionState::Closed => (established(), "20 ! abort\n 20 > R. 1 ack 1", 1, 1),
    };
    s.run(script);
    s.run("100 ! quiet");
    assert_eq!(s.connection.state(), state);
    (s, rcv_nxt, snd_nxt)
}

fn short(state: ConnectionState) -> &'static str {
    match state {
        ConnectionState::SynSent => "SYN-SENT",
        ConnectionState::SynReceived => "SYN-RCVD",
        ConnectionState::Established => "ESTAB",
        ConnectionState::FinWait1 => "FIN-W1",
        ConnectionState::FinWait2 => "FIN-W2",
        ConnectionState::CloseWait => "CLOSE-W",
        ConnectionState::Closing => "CLOSING",
        ConnectionState::LastAck => "LAST-ACK",
        ConnectionState::TimeWait => "TIME-W",
        ConnectionState::Closed => "CLOSED",
    }
}

/// What was sent at once: A for an ACK, R for a reset, S for a SYN-ACK, `.` for nothing; and the next state.
fn outcome(mut s: Script, segment: Segment) -> String {
    let now = Instant::ZERO + Span::from_millis(100);
    let before = s.connection.state();
    s.connection.on_segment(now, segment);
    let sent = common::drain(&mut s.connection, now, 8);
    let kind = |f: TcpFlags| match () {
        () if f.contains(TcpFlags::RST) => 'R',
        () if f.contains(TcpFlags::SYN) => 'S',
        () => 'A',
    };
    let mut reply: String = sent.iter().map(|o| kind(o.segment.header.flags)).collect();
    if reply.is_empty() {
        reply = if delayed(&s.connection) { "d".into() } else { ".".into() };
    }
    let after = s.connection.state();
    if after == before { reply } else { format!("{reply} {}", short(after)) }
}

fn delayed(c: &Connection) -> bool {
    c.deadline().is_some_and(|(_, why)| why == farpace_tcp::Reason::DelayedAck)
}

const STATES: [ConnectionState; 10] = [
    ConnectionState::SynSent,
    ConnectionState::SynReceived,
    ConnectionState::Established,
    ConnectionState::FinWait1,
    ConnectionState::FinWait2,
    ConnectionState::CloseWait,
    ConnectionState::Closing,
    ConnectionState::LastAck,
    ConnectionState::TimeWait,
    ConnectionState::Closed,
];

/// The rows: flags, place of the sequence number (0: the next one), what is acknowledged (0: everything, -1:
/// nothing new, 1: too much), payload.
const SEGMENTS: [(&str, &str, i64, i64, u32); 17] = [
    ("ACK", ".", 0, 0, 0),
    ("ACK old", ".", -5, 0, 0),
    ("ACK beyond", ".", 50_000, 0, 0),
    ("ACK unsent", ".", 0, 1, 0),
    ("data", ".", 0, 0, 10),
    ("data in window", ".", 100, 0, 10),
    ("data old", ".", -10, 0, 10),
    ("data beyond", ".", 50_000, 0, 10),
    ("FIN", "F.", 0, 0, 0),
    ("FIN, ours not acked", "F.", 0, -1, 0),
    ("FIN old", "F.", -1, 0, 0),
    ("RST exact", "R", 0, 0, 0),
    ("RST in window", "R", 100, 0, 0),
    ("RST beyond", "R", 50_000, 0, 0),
    ("SYN", "S", 0, 0, 0),
    ("SYN-ACK", "S.", 0, 0, 0),
    ("no flags", "-", 0, 0, 10),
];

/// RFC 9293 §3.10.7 with RFC 5961, read cell by cell: the reply (A: ACK at once, d: delayed ACK, S: SYN-ACK,
/// R: reset, `.`: nothing), and the next state if it is another one. Old or foreign segments are answered and
/// change nothing; a reset counts with the exact number only; after the peer's FIN its data is answered and
/// ignored. In CLOSED nothing is answered: that is the host's part, which knows no connection then.
const TABLE: &str = "
                    | SYN-SENT   | SYN-RCVD  | ESTAB     | FIN-W1    | FIN-W2   | CLOSE-W  | CLOSING  | \
                    LAST-ACK | TIME-W   | CLOSED
ACK                 | .          | . ESTAB   | .         | . FIN-W2  | .        | .        | . TIME-W | . \
CLOSED | .        | .
ACK old             | .          | A         | A         | A         | A        | A        | A        | \
A        | A        | .
ACK beyond          | .          | A         | A         | A         | A        | A        | A        | \
A        | A        | .
ACK unsent          | R          | R         | A         | A         | A        | A        | A        | \
A        | A        | .
data                | .          | d ESTAB   | d         | d FIN-W2  | d        | A        | A TIME-W | . \
CLOSED | A        | .
data in window      | .          | A ESTAB   | A         | A FIN-W2  | A        | A        | A TIME-W | . \
CLOSED | A        | .
data old            | .          | A         | A         | A         | A        | A        | A        | \
A        | A        | .
data beyond         | .          | A         | A         | A         | A        | A        | A        | \
A        | A        | .
FIN                 | .          | A CLOSE-W | A CLOSE-W | A TIME-W  | A TIME-W | A        | A TIME-W | . \
CLOSED | A        | .
FIN, ours not acked | R          | R         | A CLOSE-W | A CLOSING | A TIME-W | A        | A        | \
A        | A        | .
FIN old             | .          | A         | A         | A         | A        | A        | A        | \
A        | A        | .
RST exact           | .          | . CLOSED  | . CLOSED  | . CLOSED  | . CLOSED | . CLOSED | . CLOSED | . \
CLOSED | . CLOSED | .
RST in window       | .          | A         | A         | A         | A        | A        | A        | \
A        | A        | .
RST beyond          | .          | .         | .         | .         | .        | .        | .        | \
.        | .        | .
SYN                 | S SYN-RCVD | A         | A         | A         | A        | A        | A        | \
A        | A        | .
SYN-ACK             | A ESTAB    | A         | A         | A         | A        | A        | A        | \
A        | A        | .
no flags            | .          | .         | .         | .         | .        | .        | .        | \
.        | .        | .
";

/// Breaks: RFC 9293 §3.10.7, in any state, for any kind of segment.
#[test]
fn every_state_under_every_segment() {
    let mut lines = TABLE.trim_matches('\n').lines().map(|l| l.split('|').map(str::trim).collect::<Vec<_>>());
    let header = lines.next().expect("the states");
    assert_eq!(header[1..], STATES.map(short));
    let mut rows = 0;
    for line in lines {
        let &(name, flags, at, ack, len) =
            SEGMENTS.iter().find(|c| c.0 == line[0]).unwrap_or_else(|| panic!("`{}` in the table", line[0]));
        for (state, expected) in STATES.into_iter().zip(&line[1..]) {
            let (s, rcv_nxt, snd_nxt) = in_state(state);
            let text = format!("{flags} {}+{len} ack {}", rcv_nxt + at, snd_nxt + ack);
            assert_eq!(outcome(s, script::segment(&text)), *expected, "{name} in {state:?}");
        }
        rows += 1;
    }
    assert_eq!(rows, SEGMENTS.len(), "every kind of segment has its row");
}
