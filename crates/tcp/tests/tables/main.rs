//! Every state under every segment: flags, place in the window, acknowledgment, with sequence numbers that
//! wrap. What is expected comes from rules that were written from the RFCs alone (`model.rs`).

#![allow(clippy::panic, reason = "this is how a rule fails")]

mod drive;
mod model;

use bytes::Bytes;
use drive::{PEER_WINDOW, Subject, options};
use farpace_tcp::{ConnectionState, Segment};
use farpace_units::Seq;
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use model::{Expected, Reply};
use std::collections::{BTreeMap, BTreeSet};

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

/// Flags and payload.
fn kinds() -> Vec<(TcpFlags, usize)> {
    let (ack, rst, syn, fin) = (TcpFlags::ACK, TcpFlags::RST, TcpFlags::SYN, TcpFlags::FIN);
    vec![
        (TcpFlags::NONE, 0),
        (TcpFlags::NONE, 10),
        (ack, 0),
        (rst, 0),
        (rst | ack, 0),
        (syn, 0),
        (syn | ack, 0),
        (fin, 0),
        (fin | ack, 0),
        (fin | ack, 10),
        (ack | TcpFlags::PSH, 1),
        (ack | TcpFlags::PSH, 10),
        (ack | TcpFlags::URG, 0),
        (ack | TcpFlags::URG, 10),
        (syn | fin, 0),
        (TcpFlags::from_bits(0xfff), 10),
    ]
}

/// Where a segment of `len` begins, around the window `left..edge` of a stream that began at `irs`.
fn places(left: Seq, edge: Seq, irs: Seq, len: u32) -> BTreeMap<&'static str, Seq> {
    BTreeMap::from([
        ("left edge", left),
        ("one left", left - 1),
        ("duplicate", left - len.max(1)),
        ("across the left edge", left - (len / 2).max(1)),
        ("one right of the left edge", left + 1),
        ("in the window", left + 400),
        ("last in the window", edge - 1),
        ("fills the window", edge - len),
        ("across the right edge", edge - len / 2),
        ("right edge", edge),
        ("one beyond", edge + 1),
        ("far right", left + 0x7fff_0000),
        ("far left", left - 0x7fff_0000),
        ("the SYN's", irs),
    ])
}

/// Initial sequence numbers that put what matters onto the two places where comparisons may go wrong.
fn numbers() -> Vec<Seq> {
    let mut all = vec![700_000];
    for wrap in [0u32, 1 << 31] {
        for before in [0u32, 1, 2, 5, 200, 301, 7_999, 8_000, 8_001] {
            all.push(wrap.wrapping_sub(before));
        }
    }
    all.into_iter().map(Seq::new).collect()
}

/// What came of it.
fn outcome(s: &mut Subject, segment: Segment) -> Result<(Vec<Reply>, ConnectionState, u32), String> {
    let before = s.model;
    s.connection.on_segment(s.now, segment);
    let sent = s.drain();
    let mut replies = Vec::new();
    for o in &sent {
        let h = &o.segment.header;
        let reply = match () {
            () if h.flags.contains(TcpFlags::RST) => Reply::Reset(h.seq),
            () if h.flags.contains(TcpFlags::SYN | TcpFlags::ACK) => Reply::SynAck,
            () => Reply::Ack(h.ack),
        };
        // §3.10.7.4: <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>
        if matches!(reply, Reply::Ack(_)) && (h.seq != before.snd_nxt || !o.segment.payload.is_empty()) {
            return Err(format!("an answer with seq {} and {} B", h.seq, o.segment.payload.len()));
        }
        if !replies.contains(&reply) {
            replies.push(reply);
        }
    }
    let mut delivered = 0;
    s.connection.read(|bytes| delivered += bytes.len() as u32);
    if replies.is_empty() {
        // Held back, it acknowledges what has come.
        replies.push(if s.owes_ack() {
            Reply::AckInTime(before.rcv_nxt + delivered)
        } else {
            Reply::Nothing
        });
    }
    Ok((replies, s.connection.state(), delivered))
}

fn agrees(expected: &Expected, replies: &[Reply], state: ConnectionState, delivered: u32) -> bool {
    let [reply] = replies else { return false };
    let fits = expected.replies.iter().any(|e| match (e, reply) {
        (Reply::AckInTime(a), Reply::Ack(b)) => a == b,
        (a, b) => a == b,
    });
    fits && expected.states.contains(&state) && expected.delivered == delivered
}

/// Failures by rule, so that one wrong rule is one line, and how often each rule was asked.
#[derive(Default)]
struct Findings {
    wrong: BTreeMap<(&'static str, ConnectionState), (u64, String)>,
    asked: BTreeMap<&'static str, u64>,
}

impl Findings {
    fn check(&mut self, mut s: Subject, segment: Segment, what: &str) {
        let expected = s.model.answer(&segment);
        *self.asked.entry(expected.rule).or_default() += 1;
        let (model, h) = (s.model, segment.header.clone());
        let found = outcome(&mut s, segment);
        if let Ok((replies, state, delivered)) = &found
            && agrees(&expected, replies, *state, *delivered)
        {
            return;
        }
        let entry = self.wrong.entry((expected.rule, model.state)).or_default();
        entry.0 += 1;
        if entry.1.is_empty() {
            entry.1 =
                format!("{what}\n    {h:?}\n    {model:?}\n    expected {expected:?}\n    found {found:?}");
        }
    }

    fn report(self, rules: usize) {
        let text: String = self
            .wrong
            .iter()
            .map(|((rule, state), (n, text))| format!("\n{n}x {rule}, {state:?}: {text}"))
            .collect();
        assert!(self.wrong.is_empty(), "{text}");
        let asked: u64 = self.asked.values().sum();
        assert!(asked > 10_000);
        println!("{asked} cells, by rule: {:#?}", self.asked);
        assert!(self.asked.len() >= rules, "only {} rules were asked: {:?}", self.asked.len(), self.asked);
    }
}

/// Breaks: RFC 9293 §3.10.7 with RFC 5961, in any state, for any kind of segment at any place, also where
/// sequence numbers wrap: what is answered, what the next state is, and what the application gets.
#[test]
fn every_state_under_every_segment_at_every_place() {
    let mut findings = Findings::default();
    let all = numbers();
    for (n, irs) in all.iter().enumerate() {
        // Ours walk as well, in another order.
        let iss = all[(n * 7 + 3) % all.len()];
        for (state, flight) in STATES.into_iter().flat_map(|s| [(s, false), (s, true)]) {
            // One connection tells where things are; each segment gets a fresh one.
            let m = Subject::new(state, flight, false, iss, *irs).model;
            let (left, edge) =
                if state == ConnectionState::SynSent { (*irs, *irs + 8_000) } else { (m.rcv_nxt, m.edge) };
            for (flags, len) in kinds() {
                for (place, seq) in places(left, edge, *irs, len as u32) {
                    for (ack_place, ack) in [
                        ("all", m.snd_nxt),
                        ("nothing new", m.snd_una),
                        ("one less", m.snd_una - 1),
                        ("unsent", m.snd_nxt + 1),
                        ("oldest", m.snd_una - u32::from(PEER_WINDOW)),
                        ("too old", m.snd_una - u32::from(PEER_WINDOW) - 1),
                        ("far", m.snd_una + 0x7fff_0000),
                    ] {
                        let header = TcpHeader {
                            seq,
                            ack,
                            flags,
                            window: PEER_WINDOW,
                            urgent: if flags.contains(TcpFlags::URG) { 5 } else { 0 },
                            ..TcpHeader::default()
                        };
                        let segment =
                            Segment { header, payload: Bytes::from(vec![9; len]), ..Segment::default() };
                        let what =
                            format!("{state:?} flight {flight}: {flags} +{len} {place}, ack {ack_place}");
                        findings.check(Subject::new(state, flight, false, iss, *irs), segment, &what);
                    }
                }
            }
        }
    }
    findings.report(18);
}

/// Breaks: PAWS (RFC 7323 §5): old timestamps are taken, new ones refused, at the wrap of the peer's clock as
/// well.
#[test]
fn every_state_under_every_timestamp() {
    let mut findings = Findings::default();
    let seen: BTreeSet<_> = STATES
        .into_iter()
        .filter(|s| !matches!(s, ConnectionState::SynSent | ConnectionState::Closed))
        .collect();
    for irs in numbers() {
        let iss = irs + 12_345;
        for state in &seen {
            let m = Subject::new(*state, false, true, iss, irs).model;
            let recent = m.ts_recent.expect("timestamps are in use");
            for (flags, len) in kinds() {
                for ticks in [0, 1, u32::MAX, 1 << 30, (1 << 31) - 1, (1 << 31) + 1, 3 << 30] {
                    let header = TcpHeader {
                        seq: m.rcv_nxt,
                        ack: m.snd_nxt,
                        flags,
                        window: PEER_WINDOW,
                        options: options(true, recent.wrapping_add(ticks)),
                        ..TcpHeader::default()
                    };
                    let segment = Segment {
                        header: header.clone(),
                        payload: Bytes::from(vec![9; len]),
                        ..Segment::default()
                    };
                    let what = format!("{state:?}: {flags} +{len}, timestamp {ticks:#x} later");
                    findings.check(Subject::new(*state, false, true, iss, irs), segment, &what);
                }
            }
        }
    }
    findings.report(8);
}
