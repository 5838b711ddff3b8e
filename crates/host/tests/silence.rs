//! Peers that begin in every way and then fall silent. Whatever they have left behind ends within a stated
//! time.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use bytes::Bytes;
use common::{A, B, Bench};
use farpace_host::{Application, ConnectionId, ListenSettings};
use farpace_path::Element;
use farpace_tcp::config::{Config, Profile, Settings};
use farpace_tcp::{Connection, ConnectionEvent};
use farpace_units::{ByteCount, Instant, RandomStream, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};

/// A connection with something to send is given up after 15 retransmissions or window probes. With a timeout
/// of at most 120 s between them, and TIME-WAIT after it, everything is over by then.
const OVER: Span = Span::from_secs(35 * 60);
const PEERS: u64 = 12;

/// What a program does with its connection.
#[derive(Clone, Copy)]
struct Program {
    writes: usize,
    reads: bool,
    closes_at_once: bool,
}

impl Program {
    fn random(rng: &mut RandomStream) -> Self {
        let writes = [0, 10, 50_000, 2_000_000][rng.below(4) as usize];
        Program { writes, reads: rng.chance(0.5), closes_at_once: rng.chance(0.3) }
    }
}

impl Application for Program {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        match event {
            ConnectionEvent::Connected | ConnectionEvent::Writable => {
                while self.writes > 0 {
                    let mut data = Bytes::from(vec![1; self.writes.min(20_000)]);
                    let taken = connection.write(&mut data).as_len();
                    self.writes -= taken;
                    if taken == 0 {
                        return;
                    }
                }
                if self.closes_at_once {
                    connection.close();
                }
            }
            ConnectionEvent::Readable if self.reads => _ = connection.read(drop),
            _ => {}
        }
    }
}

/// One end of a connection that follows no rules.
struct Peer {
    port: u16,
    host_port: u16,
    seq: u32,
    /// What it has heard up to.
    heard: Seq,
    window: u16,
    stamps: bool,
}

impl Peer {
    fn packet(&self, flags: TcpFlags, ahead: u32, len: usize) -> Packet {
        let syn = flags.contains(TcpFlags::SYN);
        let header = TcpHeader {
            src_port: self.port,
            dst_port: self.host_port,
            seq: Seq::new(self.seq + ahead),
            ack: self.heard,
            flags,
            window: self.window,
            options: TcpOptions {
                mss: syn.then_some(1460),
                sack_permitted: syn,
                timestamps: self.stamps.then_some(Timestamps { value: 1, echo: 0 }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let pair = AddressPair::new(A, B).unwrap();
        Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 9).tcp(1, &header, Bytes::from(vec![9; len]))
    }

    /// Hears what the host has sent to it, and may believe it.
    fn hear(&mut self, b: &mut Bench, rng: &mut RandomStream) {
        let sent = b.sent();
        let all: Vec<_> =
            sent.iter().filter_map(|p| Some((p.tcp().ok()?.header(), p.payload().len()))).collect();
        for (header, len) in all.iter().filter(|(h, _)| h.dst_port == self.port) {
            let control = header.flags.contains(TcpFlags::SYN) || header.flags.contains(TcpFlags::FIN);
            if rng.chance(0.7) {
                self.heard = header.seq + (*len as u32 + u32::from(control));
                self.host_port = header.src_port;
            }
        }
    }

    fn act(&mut self, b: &mut Bench, rng: &mut RandomStream) {
        let ack = TcpFlags::ACK;
        let (flags, ahead, len, moves) = match rng.below(9) {
            0 => (ack, 0, 0, 0),
            1 | 2 => (ack, 0, 900, 900),
            3 => (ack, 2_000, 900, 0), // beyond a hole
            4 => (ack.with(TcpFlags::FIN), 0, 0, 1),
            5 => {
                self.window = 0;
                (ack, 0, 0, 0)
            }
            6 => (ack.with(TcpFlags::FIN), 3_000, 10, 0), // a FIN beyond a hole
            7 => (ack.with(TcpFlags::RST), 70_000, 0, 0), // beyond the window
            _ => (TcpFlags::SYN, 5, 0, 0),
        };
        b.packet(self.packet(flags, ahead, len));
        self.seq += moves;
    }
}

fn config(rng: &mut RandomStream) -> Config {
    let profile = Profile::ALL[rng.below(Profile::ALL.len() as u64) as usize];
    let send_buffer = rng.chance(0.3).then_some(ByteCount::new(3_000));
    Settings { profile: Some(profile), send_buffer, ..Settings::default() }.resolve().unwrap()
}

fn opened(b: &Bench) -> Vec<ConnectionId> {
    b.host.connections().map(|(id, _)| id).collect()
}

fn campaign(seed: u64) {
    let rng = &mut RandomStream::new(seed, "silence");
    let mut b = Bench::new(B);
    b.now = Instant::ZERO + Span::from_secs(1);
    let (listening, program) = (config(rng), Program::random(rng));
    b.host.listen(80, ListenSettings::new(listening), move || Box::new(program)).unwrap();
    for n in 0..PEERS {
        let mut peer = Peer {
            port: 2_000 + n as u16,
            host_port: 80,
            seq: 101,
            heard: Seq::new(0),
            window: 30_000,
            stamps: rng.chance(0.5),
        };
        if rng.chance(0.4) {
            let (config, program) = (config(rng), Program::random(rng));
            let opened = b.host.connect(b.now, A, peer.port, config, None, Box::new(program));
            opened.unwrap();
            b.run_until(b.now);
            peer.hear(&mut b, rng);
            if rng.chance(0.8) {
                peer.seq -= 1;
                b.packet(peer.packet(TcpFlags::SYN.with(TcpFlags::ACK), 0, 0));
                peer.seq += 1;
            }
        } else {
            peer.seq -= 1;
            b.packet(peer.packet(TcpFlags::SYN, 0, 0));
            peer.seq += 1;
        }
        for _ in 0..rng.below(12) {
            peer.hear(&mut b, rng);
            peer.act(&mut b, rng);
            b.run_until(b.now + Span::from_millis(rng.below(400)));
        }
        b.sent();
    }
    // Nobody says a word any more, and the programs leave.
    b.run_until(b.now + Span::from_secs(rng.below(100)));
    for id in opened(&b) {
        b.with(|host, cx| {
            host.with_connection(id, cx, |c| {
                c.close();
                c.stop_reading();
            })
        });
    }
    b.host.stop_listening(80);
    let end = b.now + OVER;
    b.run_until(end);
    let states: Vec<_> = b.host.connections().map(|(_, c)| (c.state(), c.deadline())).collect();
    let host = &b.host;
    let left = (host.open_connections(), host.half_open_connections(), host.orphans(), host.time_waits());
    assert_eq!(left, (0, 0, 0, 0), "seed {seed}: {states:?}");
    assert_eq!((host.memory().held, host.deadline()), (ByteCount::ZERO, None), "seed {seed}");
}

/// Breaks: the law that everything ends: a connection, a timer, a row or a byte that a silent peer keeps for
/// ever.
#[test]
fn everything_ends_when_the_peer_is_silent() {
    let one = std::env::var("FARPACE_SEED").ok().map(|seed| seed.parse().unwrap());
    match one {
        Some(seed) => campaign(seed),
        None => (0..400).for_each(campaign),
    }
}
