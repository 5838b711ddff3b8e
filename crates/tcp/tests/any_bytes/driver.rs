//! A connection that is given any bytes as segments, in any order, at any time. The property tests and the
//! fuzz target share it.

#![allow(dead_code, reason = "each user uses its part")]

use bytes::Bytes;
use farpace_tcp::config::{Congestion, Profile, Settings};
use farpace_tcp::{Connection, Ports, Segment, Transmit};
use farpace_units::{ByteCount, Instant, Packets, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions};

/// Longest byte string that is taken for a segment.
pub const LONGEST: usize = 120;
/// More segments than one call may give: nobody can write so much here.
const STORM: usize = 5_000;

/// Where a sequence number is counted from.
#[derive(Clone, Copy, Debug)]
pub enum From {
    Zero,
    Left,
    Edge,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Op {
    /// These bytes arrive, TCP header first.
    Raw(Vec<u8>),
    /// A segment near the windows, with options that may be anything.
    Near {
        flags: u16,
        from: From,
        seq: i32,
        ack: i32,
        window: u16,
        options: Vec<u8>,
        len: u8,
    },
    /// The next deadline comes.
    Deadline,
    /// So many milliseconds pass, with all their deadlines.
    Wait(u16),
    Write(u16),
    Read,
    Close,
    Abort,
}

/// How the connection is made.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub profile: u8,
    pub switches: u8,
    pub buffers: u8,
    pub active: bool,
    pub iss: u32,
}

impl Start {
    fn config(self) -> farpace_tcp::config::Config {
        let bit = |n: u8| self.switches >> n & 1 == 1;
        let profile = Profile::ALL[usize::from(self.profile) % Profile::ALL.len()];
        let settings = Settings {
            profile: Some(profile),
            congestion: bit(6).then_some(Congestion::Reno),
            timestamps: Some(bit(0)),
            window_scale: Some(bit(1)),
            mss: Some(if bit(2) { 88 } else { 1460 }),
            sack: bit(3).then_some(bit(4)),
            initial_window: bit(5).then_some(Packets::new(100)),
            receive_buffer: Some(ByteCount::new(
                [1_460, 9_000, 65_536, 1 << 30][usize::from(self.buffers) % 4],
            )),
            send_buffer: Some(ByteCount::new([1, 900, 65_536, 1 << 20][usize::from(self.buffers / 4) % 4])),
            ..Settings::default()
        };
        settings.resolve().or_else(|_| Settings::default().resolve()).expect("the defaults are right")
    }
}

/// The connection and what is known of it from outside.
pub struct Driver {
    pub connection: Connection,
    now: Instant,
    una: Seq,
    nxt: Seq,
    left: Seq,
    edge: Seq,
}

impl Driver {
    pub fn new(start: Start) -> Driver {
        let config = start.config();
        let now = Instant::ZERO + Span::from_secs(u64::from(start.buffers));
        let (ports, iss) = (Ports { local: 1, remote: 2 }, Seq::new(start.iss));
        let connection = if start.active {
            Connection::connect(now, &config, ports, iss)
        } else {
            let mut syn = Segment::default();
            syn.header.seq = Seq::new(start.iss.rotate_left(16));
            syn.header.flags = TcpFlags::SYN;
            syn.header.window = 65_535;
            let bit = |n: u8| start.switches >> n & 1 == 1;
            syn.header.options = TcpOptions {
                mss: Some(1_000),
                sack_permitted: bit(7),
                window_scale: bit(1).then_some(9),
                ..TcpOptions::default()
            };
            Connection::accept(now, &config, ports, iss, &syn)
        };
        let mut d =
            Driver { connection, now, una: iss, nxt: iss, left: Seq::default(), edge: Seq::default() };
        d.drain();
        d
    }

    /// Does it, and checks the contract.
    pub fn act(&mut self, op: &Op) {
        match op {
            Op::Raw(bytes) => self.arrive(bytes),
            Op::Near { flags, from, seq, ack, window, options, len } => {
                let from = match from {
                    From::Zero => Seq::default(),
                    From::Left => self.left,
                    From::Edge => self.edge,
                };
                let bytes =
                    self.near(*flags, from + *seq as u32, self.una + *ack as u32, *window, options, *len);
                self.arrive(&bytes);
            }
            Op::Deadline => {
                if let Some((at, _)) = self.connection.deadline() {
                    self.expire(at.max(self.now));
                }
            }
            Op::Wait(ms) => {
                let until = self.now + Span::from_millis(u64::from(*ms));
                let mut deadlines = 0;
                while let Some((at, why)) = self.connection.deadline().filter(|(at, _)| *at <= until) {
                    self.expire(at.max(self.now));
                    deadlines += 1;
                    assert!(deadlines < 10_000, "deadlines without end: {why:?}");
                }
                self.now = until;
            }
            Op::Write(len) => _ = self.connection.write(&mut Bytes::from(vec![5; usize::from(*len)])),
            Op::Read => _ = self.connection.read(drop),
            Op::Close => self.connection.close(),
            Op::Abort => self.connection.abort(),
        }
        self.drain();
        let mut events = 0;
        while let Some(event) = self.connection.poll_event() {
            events += 1;
            assert!(events <= 8, "each event stands once: {event:?}");
        }
        let i = self.connection.inspect();
        assert!(!i.cwnd.is_zero() && i.mss > 0, "{i:?}");
    }

    /// A header as bytes, with what is needed to be heard.
    fn near(&self, flags: u16, seq: Seq, ack: Seq, window: u16, options: &[u8], len: u8) -> Vec<u8> {
        let options = &options[..options.len().min(40)];
        let words = options.len().div_ceil(4);
        let mut bytes = Vec::with_capacity(LONGEST);
        bytes.extend([0, 2, 0, 1]);
        bytes.extend(seq.get().to_be_bytes());
        bytes.extend(ack.get().to_be_bytes());
        bytes.extend(((5 + words as u16) << 12 | flags & 0xfff).to_be_bytes());
        bytes.extend(window.to_be_bytes());
        bytes.extend([0, 0, 1, 2]);
        bytes.extend(options);
        bytes.resize(20 + words * 4, 0);
        bytes.extend(std::iter::repeat_n(seq.get() as u8, usize::from(len)));
        bytes
    }

    /// Any bytes arrive. What is not a header is refused before a connection sees it.
    pub fn arrive(&mut self, bytes: &[u8]) {
        let bytes = &bytes[..bytes.len().min(LONGEST)];
        let Ok((header, len)) = TcpHeader::parse(bytes) else { return };
        let payload = Bytes::copy_from_slice(&bytes[len..]);
        if header.flags.contains(TcpFlags::ACK)
            && header.ack.after(self.una)
            && header.ack.before_eq(self.nxt)
        {
            self.una = header.ack;
        }
        self.connection.on_segment(self.now, Segment { header, payload, ..Segment::default() });
    }

    fn expire(&mut self, now: Instant) {
        self.now = now;
        self.connection.on_deadline(now);
        self.drain();
        let next = self.connection.deadline();
        let state = self.connection.state();
        assert!(next.is_none_or(|(at, _)| at > now), "deadline law: {next:?} at {now:?} in {state:?}");
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        loop {
            let before = out.len();
            match self.connection.poll_transmit(self.now, &mut out, 16) {
                Transmit::Sent(n) => assert!(n == out.len() - before && (1..=16).contains(&n)),
                _ => {
                    assert_eq!(out.len(), before);
                    break;
                }
            }
            assert!(out.len() < STORM, "poll_transmit does not end");
        }
        for o in &out {
            let h = &o.segment.header;
            if h.flags.contains(TcpFlags::RST) {
                continue;
            }
            self.nxt = self.nxt.later(h.seq + o.segment.sequence_length());
            if h.flags.contains(TcpFlags::ACK) {
                (self.left, self.edge) = (h.ack, h.ack + u32::from(h.window));
            }
        }
    }
}

/// Reads a list of things to do from any bytes, for fuzzing.
pub fn decode(bytes: &[u8]) -> (Start, Vec<Op>) {
    let mut rest = bytes.iter().copied();
    let mut next = || rest.next().unwrap_or(0);
    let start = Start {
        profile: next(),
        switches: next(),
        buffers: next(),
        active: next() & 1 == 0,
        iss: u32::from_be_bytes([next(), next(), next(), next()]),
    };
    let mut ops = Vec::new();
    while let Some(kind) = rest.next() {
        let mut next = || rest.next().unwrap_or(0);
        let small = |a: u8, b: u8| i32::from(i16::from_be_bytes([a, b]));
        ops.push(match kind % 16 {
            0 => Op::Abort,
            1 => Op::Close,
            2 | 3 => Op::Read,
            4 | 5 => Op::Write(u16::from_be_bytes([next(), next()])),
            6 => Op::Wait(u16::from_be_bytes([next(), next()])),
            7 | 8 => Op::Deadline,
            9 => {
                let len = usize::from(next()).min(LONGEST);
                Op::Raw((0..len).map(|_| next()).collect())
            }
            from => Op::Near {
                flags: u16::from_be_bytes([kind >> 4 & 1, next()]) | if kind & 0x80 == 0 { 0x10 } else { 0 },
                from: match from {
                    10 => From::Zero,
                    11 => From::Edge,
                    _ => From::Left,
                },
                seq: small(next(), next()),
                ack: small(next(), next()),
                window: u16::from_be_bytes([next(), next()]),
                len: next() % 64,
                options: {
                    let len = usize::from(next() % 41);
                    (0..len).map(|_| next()).collect()
                },
            },
        });
    }
    (start, ops)
}
