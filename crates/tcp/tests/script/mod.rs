//! Segment scripts: one line per event, with its time in milliseconds.
//!
//! ```text
//! 0    > S 0 mss 1000            we send a SYN at 0 ms
//! 10           < S. 0 ack 1      the peer's SYN-ACK arrives at 10 ms
//! 10   ! write 500               the application writes
//! 10   > . 1+500 ack 1           sequence number and payload length
//! ```
//! Flags are those of tcpdump: `S`, `F`, `R`, `.` for ACK, `U`, `E` (ECE), `W` (CWR), `e` (AE), and `D` for the CDL bit
//! (alone: CDL-only). Numbers are relative to the initial sequence numbers, so the first byte is 1. After them come `ack N`,
//! `win N` (unscaled), `sack A-B,C-D`, `mss N`, `ws N`, `sackok`, `ts VALUE/ECHO`, `urg N` (the pointer), `ecn none`, `ect0`
//! or `ce`, and for segments we send `why CAUSE`; for the control of ACKs `allow`, `can BITS`, `asks`, `confirms MS`, `tarr`
//! and `rate N`. Of a segment we send, what is not named is not checked, but for SACK blocks and the control of ACKs: none
//! named means none sent. A segment that is sent and not in the script is an error, so every
//! gap in the times is a check of silence.
//!
//! Calls are `write N`, `write_urgent N`, `read N`, `close`, `stop_reading`, `abort`, `end_orphan`,
//! `departed N` (the SYN has number 1), `rate N` (the program's limit, bit/s), `more`, `no_more`, `cork`,
//! `uncork`, `nagle`, `nodelay`, `quick` and `slow` (options of sockets), `too_big MTU SEQ` and
//! `unreachable SEQ` (reports of the network), `mss N`, `state X`, `recovery X`, `cwnd N`, `ssthresh N`,
//! `rto MS`, `event X`, and `quiet` (nothing was sent until now).

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::panic, reason = "this is how a script fails")]

use super::common::{drain, expire};
use bytes::Bytes;
use farpace_events::Cause;
use farpace_tcp::config::{MtuProbing, Profile, Settings};
use farpace_tcp::{Connection, Ecn, OutgoingSegment, PathError, Ports, Segment, TransmitRoom};
use farpace_units::{ByteCount, Instant, Rate, Seq, Span};
use farpace_wire::Unreachable;
use farpace_wire::tcp::{
    AckDelay, CdlCapability, SackBlock, Tarr, TcpFlags, TcpHeader, TcpOptions, Timestamps,
};
use std::collections::VecDeque;

/// Our initial sequence number lies just below the wrap.
const ISS: Seq = Seq::new(u32::MAX - 2_000);
const PEER_ISS: Seq = Seq::new(700_000);
const BUDGET: usize = 64;
/// Calls that change nothing, so they may stand before the segments of the same instant.
const LOOKS: [&str; 7] = ["state", "recovery", "cwnd", "ssthresh", "rto", "event", "mss"];

/// A connection under a script.
pub struct Script {
    pub connection: Connection,
    now: Instant,
    sent: VecDeque<(Instant, OutgoingSegment)>,
    written: u32,
    read: u32,
}

/// NewReno with 1000-byte segments and without options: the barest TCP.
pub fn plain() -> Settings {
    Settings {
        profile: Some(Profile::NewReno),
        mss: Some(1000),
        timestamps: Some(false),
        window_scale: Some(false),
        receive_buffer: Some(ByteCount::new(20_000)),
        mtu_probing: Some(MtuProbing::Off),
        ..Settings::default()
    }
}

/// The repaired Linux 2.6 with SACK, otherwise as [`plain`].
pub fn linux() -> Settings {
    Settings { profile: Some(Profile::AistFix), ..plain() }
}

impl Drop for Script {
    fn drop(&mut self) {
        if let (Some((at, o)), false) = (self.sent.front(), std::thread::panicking()) {
            panic!("after the script: not in it: {at} > {}", show(o));
        }
    }
}

fn byte(at: u32) -> u8 {
    (at % 251) as u8
}

fn payload(from: u32, len: u32) -> Bytes {
    (from..from + len).map(byte).collect()
}

fn ms(text: &str) -> Span {
    let nanos: f64 = text.parse::<f64>().unwrap_or_else(|_| panic!("`{text}` is not a time")) * 1e6;
    Span::from_nanos(nanos.round() as u64)
}

impl Script {
    /// An active open; nothing is sent yet.
    pub fn connect(settings: &Settings) -> Self {
        let config = settings.resolve().expect("settings");
        Self::of(Connection::connect(Instant::ZERO, &config, Ports { local: 1, remote: 2 }, ISS))
    }

    /// A passive open for the SYN that `line` describes (without time and direction).
    pub fn accept(settings: &Settings, line: &str) -> Self {
        let config = settings.resolve().expect("settings");
        let syn = segment(line);
        Self::of(Connection::accept(Instant::ZERO, &config, Ports { local: 1, remote: 2 }, ISS, &syn))
    }

    /// An active open that is complete at 10 ms, with a peer that has the options of `settings` and a window
    /// of `window` bytes. A second segment of the peer has told the window again: by the kernel's rule the
    /// first one after the SYN-ACK is a window update, and so never a duplicate.
    pub fn established(settings: &Settings, window: u16) -> Self {
        let mut s = Self::connect(settings);
        let sack = if settings.resolve().expect("settings").sack { "sackok" } else { "" };
        s.run(&format!(
            "0   > S 0 {sack}
             10         < S. 0 ack 1 win {window} mss 1000 {sack}
             10  > . 1 ack 1
             10         < . 1 ack 1 win {window}"
        ));
        s
    }

    fn of(connection: Connection) -> Self {
        Script { connection, now: Instant::ZERO, sent: VecDeque::new(), written: 0, read: 0 }
    }

    fn drain(&mut self) {
        let (at, out) = (self.now, drain(&mut self.connection, self.now, BUDGET));
        self.sent.extend(out.into_iter().map(|o| (at, o)));
    }

    /// Lets time pass, with all deadlines on the way.
    fn advance(&mut self, to: Instant) {
        self.drain();
        while let Some((at, _)) = self.connection.deadline().filter(|(at, _)| *at <= to) {
            self.now = at.max(self.now);
            let out = expire(&mut self.connection, self.now, BUDGET);
            self.sent.extend(out.into_iter().map(|o| (self.now, o)));
        }
        self.now = to;
    }

    /// Plays the lines of a script.
    pub fn run(&mut self, script: &str) {
        for line in script.lines().map(|l| l.split('#').next().unwrap_or("").trim()) {
            if line.is_empty() {
                continue;
            }
            let mut words = line.splitn(3, char::is_whitespace);
            let (at, rest) = (words.next().unwrap_or(""), words.collect::<Vec<_>>().join(" "));
            let (direction, rest) = rest.trim().split_at(1);
            self.advance(Instant::ZERO + ms(at));
            if direction == ">" {
                self.expect(line, rest);
            } else {
                let looks_only = LOOKS.iter().any(|l| rest.trim().starts_with(l));
                if let (Some((at, o)), false) = (self.sent.front(), looks_only) {
                    panic!("before `{line}`: not in the script: {at} > {}", show(o));
                }
                match direction {
                    "<" => self.connection.on_segment(self.now, segment(rest)),
                    "!" => self.call(line, rest.trim()),
                    other => panic!("`{other}` in `{line}`: expected >, < or !"),
                }
                self.drain();
            }
        }
    }

    fn expect(&mut self, line: &str, rest: &str) {
        let Some((at, got)) = self.sent.pop_front() else { panic!("`{line}`: nothing was sent") };
        let (want, cause) = rest.split_once("why").unwrap_or((rest, ""));
        let (want, got_segment) = (segment(want), &got.segment);
        let (w, g) = (&want.header, &got_segment.header);
        let fail = |what: &str| panic!("`{line}`: {what} differs: {at} > {}", show(&got));
        let psh = TcpFlags::PSH;
        let _ = (at != self.now).then(|| fail("time"));
        // PSH is looked at where the script has it.
        let flags = if w.flags.contains(psh) { g.flags } else { g.flags.without(psh) };
        let _ = (w.flags != flags).then(|| fail("flags"));
        let seq = g.seq - ISS.get();
        let _ = (w.seq - PEER_ISS.get() != seq).then(|| fail("sequence number"));
        let _ = (want.payload.len() != got_segment.payload.len()).then(|| fail("length"));
        let ack_differs = has(rest, "ack") && w.ack - ISS.get() != g.ack - PEER_ISS.get();
        let _ = ack_differs.then(|| fail("ack"));
        let _ = (has(rest, "win") && w.window != g.window).then(|| fail("window"));
        let shift = PEER_ISS.get().wrapping_sub(ISS.get());
        let sack: Vec<_> = w.options.sack.iter().map(|b| (b.start + shift, b.end + shift)).collect();
        let _ = (sack != g.options.sack.iter().map(|b| (b.start, b.end)).collect::<Vec<_>>())
            .then(|| fail("SACK"));
        let _ = (w.options.ack_control != g.options.ack_control).then(|| fail("control of ACKs"));
        let _ = (w.urgent != g.urgent).then(|| fail("urgent pointer"));
        let _ = (has(rest, "ecn") && want.ecn != got_segment.ecn).then(|| fail("ECN"));
        let _ = (has(rest, "mss") && w.options.mss != g.options.mss).then(|| fail("MSS"));
        if g.flags.contains(TcpFlags::SYN) {
            let options = |o: &TcpOptions| (o.window_scale, o.sack_permitted, o.timestamps.is_some());
            let _ = (options(&w.options) != options(&g.options)).then(|| fail("options"));
        }
        if let Some(t) = w.options.timestamps {
            // Our clock counts milliseconds from our initial sequence number.
            let relative = g.options.timestamps.map(|t| (t.value.wrapping_sub(ISS.get()), t.echo));
            let _ = (relative != Some((t.value, t.echo.wrapping_sub(ISS.get())))).then(|| fail("timestamps"));
        }
        let _ = (!cause.is_empty() && cause.trim() != got.cause.name()).then(|| fail("cause"));
        // The byte of a probe is old, and nobody's.
        if !got_segment.payload.is_empty() && got.cause != Cause::AckProbe {
            let from = seq.get() - 1;
            assert_eq!(
                got_segment.payload,
                payload(from, got_segment.payload.len() as u32),
                "`{line}`: payload"
            );
        }
    }

    fn call(&mut self, line: &str, call: &str) {
        let (name, argument) = call.split_once(' ').unwrap_or((call, ""));
        let number = || argument.parse::<u32>().unwrap_or_else(|_| panic!("`{line}`: a number is missing"));
        let c = &mut self.connection;
        let seen = c.inspect();
        match name {
            "write" | "write_urgent" => {
                let mut data = payload(self.written, number());
                let took = if name == "write" { c.write(&mut data) } else { c.write_urgent(&mut data) };
                assert_eq!(took.get(), u64::from(number()), "`{line}`: all of it is taken");
                self.written += number();
            }
            "stop_reading" => c.stop_reading(),
            "rate" => c.set_rate_cap(Some(Rate::from_bits_per_sec(number().into()))),
            "more" | "no_more" => c.set_more(name == "more"),
            "cork" | "uncork" | "nagle" | "nodelay" => {
                let mut config = c.config().clone();
                match name {
                    "cork" | "uncork" => config.tuning.cork = name == "cork",
                    _ => config.nagle = name == "nagle",
                }
                c.retune(&config);
            }
            "quick" | "slow" => c.set_quick_ack(name == "quick"),
            "too_big" => {
                let (mtu, seq) = argument.split_once(' ').unwrap_or_else(|| panic!("`{line}`: MTU SEQ"));
                let mtu = mtu.parse().unwrap_or_else(|_| panic!("`{line}`: the MTU"));
                let seq = seq.parse::<i64>().unwrap_or_else(|_| panic!("`{line}`: the number")) as u32;
                c.on_path_error(self.now, PathError::TooBig { mtu }, ISS + seq);
            }
            "unreachable" | "unreachable-hard" => {
                let error =
                    PathError::Unreachable { hard: name == "unreachable-hard", why: Unreachable::Host };
                c.on_path_error(self.now, error, ISS + number());
            }
            "mss" => assert_eq!(seen.mss, number(), "`{line}`"),
            "read" => {
                let mut got = Vec::new();
                c.read(|b| got.extend_from_slice(&b));
                assert_eq!(got.len() as u32, number(), "`{line}`");
                assert_eq!(got, payload(self.read, number()), "`{line}`: the bytes");
                self.read += number();
            }
            "close" => c.close(),
            "abort" => c.abort(),
            "end_orphan" => c.end_orphan(self.now),
            "departed" => c.set_departed(number()),
            "room" => {
                c.set_transmit_room(Some(TransmitRoom {
                    packets: number().into(),
                    bytes: 1 << 20,
                    below: 34,
                }));
            }
            "quiet" => {}
            "state" => assert_eq!(format!("{:?}", seen.state), argument, "`{line}`"),
            "recovery" => assert_eq!(format!("{:?}", seen.recovery), argument, "`{line}`"),
            "cwnd" => assert_eq!(seen.cwnd.get(), number(), "`{line}`"),
            "ssthresh" => assert_eq!(seen.ssthresh.get(), number(), "`{line}`"),
            "rto" => assert_eq!(seen.rto, ms(argument), "`{line}`"),
            "event" => loop {
                let event = c.poll_event().unwrap_or_else(|| panic!("`{line}`: no such event"));
                if format!("{event:?}") == argument {
                    break;
                }
            },
            other => panic!("`{line}`: unknown call `{other}`"),
        }
    }
}

fn has(text: &str, key: &str) -> bool {
    text.split_whitespace().any(|w| w == key)
}

/// Reads a segment as the peer sends it: its own numbers from PEER_ISS, ours from ISS.
pub fn segment(text: &str) -> Segment {
    let mut words = text.split_whitespace();
    let flags = words.next().unwrap_or("");
    let flags = flags.chars().fold(TcpFlags::NONE, |f, c| {
        f | match c {
            'S' => TcpFlags::SYN,
            'F' => TcpFlags::FIN,
            'R' => TcpFlags::RST,
            '.' => TcpFlags::ACK,
            'P' => TcpFlags::PSH,
            'U' => TcpFlags::URG,
            'E' => TcpFlags::ECE,
            'W' => TcpFlags::CWR,
            'e' => TcpFlags::AE,
            'D' => TcpFlags::from_bits(0x800),
            '-' => TcpFlags::NONE,
            other => panic!("flag `{other}` in `{text}`"),
        }
    });
    let int =
        |w: &str| w.parse::<i64>().unwrap_or_else(|_| panic!("`{w}` in `{text}` is not a number")) as u32;
    let place = words.next().unwrap_or("");
    let (seq, len) = match place.split_once('+') {
        Some((seq, len)) => (int(seq), int(len)),
        None => (int(place), 0),
    };
    let mut h = TcpHeader {
        src_port: 2,
        dst_port: 1,
        seq: PEER_ISS + seq,
        flags,
        window: 60_000,
        ..TcpHeader::default()
    };
    let mut ecn = Ecn::NotEct;
    while let Some(key) = words.next() {
        let mut value = || words.next().unwrap_or_else(|| panic!("`{key}` in `{text}` lacks its value"));
        match key {
            "ack" => h.ack = ISS + int(value()),
            "win" => h.window = int(value()) as u16,
            "mss" => h.options.mss = Some(int(value()) as u16),
            "ws" => h.options.window_scale = Some(int(value()) as u8),
            "urg" => h.urgent = int(value()) as u16,
            "ecn" => {
                ecn = match value() {
                    "none" => Ecn::NotEct,
                    "ect0" => Ecn::Ect0,
                    "ce" => Ecn::Ce,
                    other => panic!("codepoint `{other}` in `{text}`"),
                }
            }
            "sackok" => h.options.sack_permitted = true,
            "allow" => h.options.ack_control.cdl_allow = true,
            "can" => h.options.ack_control.capability = Some(CdlCapability::from_bits(int(value()) as u8)),
            "asks" => h.options.ack_control.request = true,
            "confirms" => h.options.ack_control.confirmation = Some(AckDelay::of(ms(value()))),
            "tarr" => h.options.ack_control.tarr = Some(Tarr::Capable),
            "rate" => h.options.ack_control.tarr = Some(Tarr::Rate(int(value()) as u8)),
            "ts" => {
                let (v, e) = value().split_once('/').unwrap_or_else(|| panic!("ts VALUE/ECHO in `{text}`"));
                h.options.timestamps =
                    Some(Timestamps { value: int(v), echo: int(e).wrapping_add(ISS.get()) });
            }
            "sack" => {
                for block in value().split(',') {
                    let (a, b) =
                        block.split_once('-').unwrap_or_else(|| panic!("block `{block}` in `{text}`"));
                    h.options.sack.push(SackBlock { start: ISS + int(a), end: ISS + int(b) });
                }
            }
            other => panic!("`{other}` in `{text}`"),
        }
    }
    Segment { header: h, payload: payload(seq.wrapping_sub(1) % (1 << 30), len), ecn, segment_size: 0 }
}

fn show(o: &OutgoingSegment) -> String {
    let h = &o.segment.header;
    let sack: Vec<_> =
        h.options.sack.iter().map(|b| (b.start - PEER_ISS.get(), b.end - PEER_ISS.get())).collect();
    format!(
        "{} {:?} {}+{} ack {} win {} sack {sack:?} mss {:?} ws {:?} sackok {} ts {:?} {:?} why {}",
        h.flags,
        o.segment.ecn,
        h.seq - ISS.get(),
        o.segment.payload.len(),
        h.ack - PEER_ISS.get(),
        h.window,
        h.options.mss,
        h.options.window_scale,
        h.options.sack_permitted,
        h.options.timestamps.map(|t| (t.value.wrapping_sub(ISS.get()), t.echo)),
        h.options.ack_control,
        o.cause.name()
    )
}
