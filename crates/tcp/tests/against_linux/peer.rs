//! The far peer: writes headers, and notes what it hears.

use super::script::{Script, Step};
use bytes::Bytes;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{MAX_TCP_LEN, TCP_LEN, TcpFlags, TcpHeader, TcpOptions, Timestamps, raw_options};
use std::fmt;

pub const PORT: u16 = 5001;
const ISS: Seq = Seq::new(1_000_000);

/// A segment from the receiver, its numbers counted from the first byte.
#[derive(Clone)]
pub struct Heard {
    pub at: Instant,
    pub ack: i32,
    /// Payload bytes.
    pub len: u32,
    pub sack: Vec<(i32, i32)>,
    /// Bytes that it has room for.
    pub window: u32,
}

impl fmt::Debug for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.at.since(Instant::ZERO).as_micros() as f64 / 1000.0;
        write!(f, "{ms:.1} ack {} len {} sack {:?} win {}", self.ack, self.len, self.sack, self.window)
    }
}

/// The options as they stand there, with zeros for what timestamps and SACK blocks say.
pub fn form(options: &[u8]) -> Vec<u8> {
    let mut form = Vec::new();
    for (kind, data) in raw_options(options).map(|option| option.expect("whole options")) {
        form.push(kind);
        match kind {
            1 => {}
            5 | 8 => form.extend([vec![data.len() as u8 + 2], vec![0; data.len()]].concat()),
            _ => form.extend([&[data.len() as u8 + 2], data].concat()),
        }
    }
    form
}

/// The options of a header of ours.
pub fn encoded(h: &TcpHeader) -> Vec<u8> {
    let mut bytes = [0; MAX_TCP_LEN];
    let len = h.encode(&mut bytes);
    bytes[TCP_LEN..len].to_vec()
}

/// The peer's end of a connection.
pub struct Peer {
    rcv_nxt: Seq,
    /// Timestamps heard, and when: one comes back a round trip later.
    timestamps: Vec<(Instant, u32)>,
    rtt: Span,
    pub syn_ack: Option<TcpHeader>,
    pub heard: Vec<Heard>,
    source: u16,
    stamps: bool,
    /// Options of all that was heard, without what timestamps and SACK blocks say.
    pub options: Vec<Vec<u8>>,
}

impl Peer {
    pub fn new(source: u16, script: &Script) -> Self {
        let (rcv_nxt, rtt) = (Seq::default(), Span::from_millis(script.rtt.saturating_sub(2)));
        Peer {
            rcv_nxt,
            timestamps: Vec::new(),
            rtt,
            syn_ack: None,
            heard: Vec::new(),
            source,
            stamps: script.timestamps,
            options: Vec::new(),
        }
    }

    pub fn source(&self) -> u16 {
        self.source
    }

    fn header(&self, now: Instant) -> TcpHeader {
        let old = self.timestamps.iter().rfind(|(at, _)| *at + self.rtt <= now);
        let echo = old.map_or(0, |(_, value)| *value);
        let value = now.since(Instant::ZERO).as_millis() as u32 + 1;
        TcpHeader {
            src_port: self.source,
            dst_port: PORT,
            ack: self.rcv_nxt,
            flags: TcpFlags::ACK,
            window: 512,
            options: TcpOptions {
                timestamps: self.stamps.then_some(Timestamps { value, echo }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        }
    }

    pub fn syn(&self, now: Instant, script: &Script) -> TcpHeader {
        let mut h = self.header(now);
        h.seq = ISS;
        h.flags = TcpFlags::SYN | script.syn_flags;
        h.options.mss = Some(1460);
        h.options.window_scale = Some(7);
        h.options.sack_permitted = script.sack;
        h.options.ack_control = script.syn_control;
        h
    }

    /// An acknowledgment of all that came.
    pub fn ack(&self, now: Instant) -> TcpHeader {
        TcpHeader { seq: ISS + 1, ..self.header(now) }
    }

    pub fn reset(&self, now: Instant, script: &Script) -> TcpHeader {
        // The last number that was acknowledged is the exact one.
        let at = self.heard.iter().map(|h| h.ack).max().unwrap_or(0).min(script.end() + 1);
        TcpHeader { seq: ISS + 1 + at as u32, flags: TcpFlags::RST | TcpFlags::ACK, ..self.header(now) }
    }

    pub fn segment(&self, now: Instant, step: &Step) -> (TcpHeader, Bytes) {
        let mut h = self.header(now);
        h.seq = Seq::new((ISS + 1).get().wrapping_add_signed(step.from));
        h.flags = step.flags;
        h.options.ack_control = step.control;
        (h, Bytes::from(vec![b'x'; step.len as usize]))
    }

    /// Takes a segment in; if it carried data, gives the ACK for it.
    pub fn hear(&mut self, now: Instant, h: &TcpHeader, options: &[u8], len: u32) -> Option<TcpHeader> {
        self.options.push(form(options));
        if let Some(t) = h.options.timestamps {
            self.timestamps.push((now, t.value));
        }
        if h.flags.contains(TcpFlags::SYN) {
            self.rcv_nxt = h.seq + 1;
            self.syn_ack = Some(h.clone());
            return None;
        }
        let offset = |seq: Seq| seq.distance(ISS + 1);
        let sack = h.options.sack.iter().map(|b| (offset(b.start), offset(b.end))).collect();
        let shift = self.syn_ack.as_ref().and_then(|s| s.options.window_scale).unwrap_or(0);
        let window = u32::from(h.window) << shift;
        self.heard.push(Heard { at: now, ack: offset(h.ack), len, sack, window });
        self.rcv_nxt = self.rcv_nxt.later(h.seq + len);
        (len > 0).then(|| TcpHeader { seq: h.ack, ..self.ack(now) })
    }
}
