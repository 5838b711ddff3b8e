//! The peer of a run: turns relative numbers into those of this run's connections, and back.

use super::program::{self, Echo, Icmp, Segment};
use super::wire::{Tcp, TcpOption, options};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The peer's ports: that of connection 0, and so on.
pub const FIRST_PORT: u16 = 40_000;
/// Where programs listen, unless they say otherwise.
pub const LISTENER: u16 = 5001;
/// Byte `n` of a stream.
pub fn byte(n: i64) -> u8 {
    (n % 251) as u8
}

/// The peer's initial number on connection `conn`.
fn irs(conn: u8) -> u32 {
    1_000_000_000u32.wrapping_add(u32::from(conn).wrapping_mul(400_000_000))
}

/// A segment that the stack sent, in relative numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// In nanoseconds from the beginning.
    pub at: i64,
    pub conn: u8,
    pub flags: u16,
    pub seq: i64,
    pub ack: i64,
    pub len: u32,
    pub window: u16,
    pub urgent: u16,
    /// Kinds in their order; SACK blocks are relative, timestamps as they are.
    pub options: Vec<TcpOption>,
    pub sack: Vec<(i64, i64)>,
    pub times: Option<(u32, u32)>,
    pub tos: u8,
    pub ttl: u8,
    /// When it left by the stack's own clock: timers of ours are never late.
    pub left: i64,
    /// The payload is that part of the stream.
    pub intact: bool,
}

#[derive(Clone, Debug, Default)]
struct Conn {
    iss: Option<u32>,
    port: Option<u16>,
    /// When, where, TSval.
    stamps: Vec<(i64, i64, u32)>,
}

/// What the peer knows of a run.
#[derive(Clone, Debug)]
pub struct Peer {
    pub local: Ipv4Addr,
    pub remote: Ipv4Addr,
    /// Added to the ports of the program.
    pub shift: u16,
    conns: BTreeMap<u8, Conn>,
}

impl Peer {
    /// `local` is the stack.
    pub fn new(local: Ipv4Addr, remote: Ipv4Addr, shift: u16) -> Self {
        Peer { local, remote, shift, conns: BTreeMap::new() }
    }

    /// The packet of `segment`, sent at `now`.
    pub fn packet(&mut self, segment: &Segment, now: i64) -> Vec<u8> {
        let conn = self.conns.entry(segment.conn).or_default();
        let (iss, irs) = (conn.iss.unwrap_or(0), irs(segment.conn));
        let of = |base: u32, n: i64| base.wrapping_add(n as u32);
        let mut options = Vec::new();
        if let Some(mss) = segment.mss {
            options.extend([2, 4]);
            options.extend(mss.to_be_bytes());
        }
        if segment.sackok {
            options.extend([4, 2, 1, 1]);
        }
        if let Some((value, echo)) = segment.ts {
            options.extend([1, 1, 8, 10]);
            options.extend(value.to_be_bytes());
            options.extend(conn.echo(echo, now).to_be_bytes());
        }
        if let Some(shift) = segment.wscale {
            options.extend([1, 3, 3, shift]);
        }
        if !segment.sack.is_empty() {
            options.extend([1, 1, 5, 2 + 8 * segment.sack.len() as u8]);
            for (from, to) in &segment.sack {
                options.extend(of(iss, *from).to_be_bytes());
                options.extend(of(iss, *to).to_be_bytes());
            }
        }
        let has_ack = segment.flags & program::ACK != 0 || segment.ack != 0;
        let first = segment.seq + i64::from(segment.flags & program::SYN != 0);
        let tcp = Tcp {
            src_port: FIRST_PORT + u16::from(segment.conn),
            dst_port: conn.port.unwrap_or(LISTENER + self.shift),
            seq: of(irs, segment.seq),
            ack: if has_ack { of(iss, segment.ack) } else { 0 },
            flags: segment.flags,
            window: segment.window,
            urgent: segment.urgent,
            options,
            payload: (0..i64::from(segment.len)).map(|n| byte(first + n)).collect(),
            tos: segment.ecn,
            ttl: 64,
        };
        tcp.encode(self.remote, self.local)
    }

    /// The packet of an ICMP error.
    pub fn icmp(&mut self, icmp: &Icmp) -> Vec<u8> {
        let conn = self.conns.entry(icmp.conn).or_default();
        let quoted = Tcp {
            src_port: conn.port.unwrap_or(LISTENER + self.shift),
            dst_port: FIRST_PORT + u16::from(icmp.conn),
            seq: conn.iss.unwrap_or(0).wrapping_add(icmp.seq as u32),
            flags: program::ACK,
            ttl: 64,
            ..Tcp::default()
        };
        quoted.icmp_error(icmp.kind, icmp.code, icmp.mtu, self.remote, self.local)
    }

    /// The stack has sent `packet`. None: it is no segment to this peer.
    pub fn heard(&mut self, packet: &[u8], at: i64) -> Option<Sent> {
        let (tcp, to) = Tcp::decode(packet)?;
        if to != self.remote {
            return None;
        }
        let conn = u8::try_from(tcp.dst_port.wrapping_sub(FIRST_PORT)).ok()?;
        let known = self.conns.entry(conn).or_default();
        if tcp.flags & program::SYN != 0 {
            known.iss = Some(tcp.seq);
            known.port = Some(tcp.src_port);
        }
        let (iss, irs) = (known.iss.unwrap_or(0), irs(conn));
        let from = |base: u32, n: u32| i64::from(n.wrapping_sub(base) as i32);
        // What answers a segment without ACK as from nowhere begins at zero itself.
        let nowhere = tcp.flags & program::RST != 0 && tcp.seq == 0;
        let seq = if nowhere { 0 } else { from(iss, tcp.seq) };
        let mut sent = Sent {
            at,
            conn,
            flags: tcp.flags,
            seq,
            ack: if tcp.flags & program::ACK != 0 { from(irs, tcp.ack) } else { i64::from(tcp.ack != 0) },
            len: tcp.payload.len() as u32,
            window: tcp.window,
            urgent: tcp.urgent,
            options: options(&tcp.options),
            sack: Vec::new(),
            times: None,
            tos: tcp.tos,
            ttl: tcp.ttl,
            left: at,
            intact: true,
        };
        let first = seq + i64::from(tcp.flags & program::SYN != 0);
        sent.intact = tcp.payload.iter().zip(first..).all(|(b, n)| *b == byte(n));
        for option in &mut sent.options {
            match option {
                TcpOption::Sack(blocks) => {
                    sent.sack = blocks.iter().map(|(a, b)| (from(irs, *a), from(irs, *b))).collect();
                }
                TcpOption::Times(value, echo) => {
                    known.stamps.push((at, seq, *value));
                    sent.times = Some((*value, *echo));
                    (*value, *echo) = (0, 0);
                }
                _ => {}
            }
            if let TcpOption::Sack(blocks) = option {
                blocks.iter_mut().for_each(|b| *b = (0, 0));
            }
        }
        Some(sent)
    }
}

impl Conn {
    fn echo(&self, echo: Echo, now: i64) -> u32 {
        let newest = || self.stamps.last().map_or(0, |s| s.2);
        match echo {
            Echo::Raw(n) => n,
            Echo::Off(n) => newest().wrapping_add_signed(n),
            Echo::Age(ms) => {
                let latest = now - i64::from(ms) * 1_000_000;
                let old = self.stamps.iter().rfind(|s| s.0 <= latest).or(self.stamps.first());
                old.map_or(0, |s| s.2)
            }
            Echo::Of(seq, n) => {
                let of = self.stamps.iter().filter(|s| s.1 == seq).nth(usize::from(n));
                of.map_or_else(newest, |s| s.2)
            }
        }
    }
}
