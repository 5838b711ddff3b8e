//! The memory budget of a host, with peers that take as much of it as they can. The allocator counts what is
//! really held: so this is a program of its own, and its tests take turns.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use bytes::Bytes;
use common::{A, B, Bench, config};
use farpace_host::{Application, ConnectError, ConnectionId, ListenSettings, MemoryLevel};
use farpace_path::DropReason;
use farpace_tcp::{Connection, ConnectionEvent, ConnectionState};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;
static TURN: Mutex<()> = Mutex::new(());

fn my_turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held(region: &Region<'_, System>) -> u64 {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated) as u64
}

const LIMIT: u64 = 4 << 20;
const PEERS: u32 = 100;
const SEGMENT: u32 = 1_000;

/// Writes as much as it can, and reads nothing unless it is told to.
#[derive(Default)]
struct Program {
    writes: bool,
}

impl Application for Program {
    fn on_event(&mut self, _: Instant, connection: &mut Connection, event: ConnectionEvent) {
        if self.writes && matches!(event, ConnectionEvent::Connected | ConnectionEvent::Writable) {
            while !connection.write_room().is_zero() {
                let len = connection.write_room().as_len().min(16 << 10);
                connection.write(&mut Bytes::from(vec![7; len]));
            }
        }
    }
}

/// The byte at `offset` of what peer `n` says.
fn said(n: u32, offset: u32) -> u8 {
    (offset.wrapping_mul(31) ^ n ^ (offset >> 8)) as u8
}

struct Peer {
    n: u32,
    iss: Seq,
    /// What the host has acknowledged, of the bytes that it says.
    acknowledged: u32,
    window: u32,
}

impl Peer {
    fn packet(&self, flags: TcpFlags, offset: u32, ack: Seq, payload: Bytes) -> Packet {
        let syn = flags.contains(TcpFlags::SYN);
        let header = TcpHeader {
            src_port: 1024 + self.n as u16,
            dst_port: 80,
            seq: Seq::new(if syn { 100 } else { 101 + offset }),
            ack,
            flags,
            window: 65_535,
            options: TcpOptions {
                mss: syn.then_some(1460),
                window_scale: syn.then_some(7),
                sack_permitted: syn,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        let pair = AddressPair::new(A, B).unwrap();
        Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 9).tcp(1, &header, payload)
    }

    /// None: the host refuses it.
    fn try_open(b: &mut Bench, n: u32) -> Option<Peer> {
        let mut peer = Peer { n, iss: Seq::new(0), acknowledged: 0, window: 0 };
        b.packet(peer.packet(TcpFlags::SYN, 0, Seq::new(0), Bytes::new()));
        peer.iss = b.headers().first()?.seq;
        b.packet(peer.packet(TcpFlags::ACK, 0, peer.iss + 1, Bytes::new()));
        peer.listen(b);
        Some(peer)
    }

    fn open(b: &mut Bench, n: u32) -> Peer {
        Peer::try_open(b, n).unwrap()
    }

    /// What the host says.
    fn listen(&mut self, b: &mut Bench) {
        for header in b.headers().iter().filter(|h| h.dst_port == 1024 + self.n as u16) {
            assert!(!header.flags.contains(TcpFlags::RST), "peer {} was reset", self.n);
            let acknowledged = header.ack.bytes_since(Seq::new(101));
            assert!(acknowledged >= self.acknowledged, "an acknowledgment was taken back");
            self.acknowledged = acknowledged;
            self.window = u32::from(header.window);
        }
    }

    fn say(&mut self, b: &mut Bench, offset: u32, len: u32) {
        let payload: Vec<u8> = (offset..offset + len).map(|at| said(self.n, at)).collect();
        b.packet(self.packet(TcpFlags::ACK, offset, self.iss + 1, payload.into()));
        self.listen(b);
    }
}

fn bench(writes: bool) -> Bench {
    let mut b = Bench::new(B);
    b.now = Instant::ZERO + Span::from_secs(1);
    b.host.set_memory_limit(ByteCount::new(LIMIT));
    b.host.listen(80, ListenSettings::new(config()), move || Box::new(Program { writes })).unwrap();
    b
}

fn ids(b: &Bench) -> Vec<ConnectionId> {
    b.host.connections().map(|(id, _)| id).collect()
}

/// Reads everything of a connection.
fn read(b: &mut Bench, id: ConnectionId) -> Vec<u8> {
    let mut all = Vec::new();
    b.with(|host, cx| host.with_connection(id, cx, |c| c.read(|piece| all.extend_from_slice(&piece))));
    all
}

/// Breaks: peers whose data nobody reads take all memory of the machine; or a host that is short of memory
/// loses what it has acknowledged, ends connections, or never opens their windows again.
#[test]
fn programs_that_do_not_read_hold_no_more_than_the_budget() {
    let _turn = my_turn();
    let region = Region::new(ALLOCATOR);
    let mut b = bench(false);
    let mut peers: Vec<Peer> = (0..PEERS).map(|n| Peer::open(&mut b, n)).collect();
    assert_eq!(b.host.memory().level, MemoryLevel::Enough);
    // Each says what is not acknowledged, again and again, whatever the window is.
    for _ in 0..100 {
        for peer in &mut peers {
            peer.say(&mut b, peer.acknowledged, SEGMENT);
        }
    }
    let memory = b.host.memory();
    let most = LIMIT + u64::from(PEERS * SEGMENT);
    assert!(memory.peak.get() <= most && held(&region) <= most, "{memory:?}, really {}", held(&region));
    assert!(memory.level >= MemoryLevel::Shares && memory.held_to_share > 0, "{memory:?}");
    assert!(memory.segments_refused > 1_000 && memory.growth_stopped == 1, "{memory:?}");
    assert!(peers.iter().all(|p| p.window == 0), "who held its share is told to stop");
    assert_eq!(memory.closed_windows, PEERS as usize);
    assert_eq!(b.host.open_connections(), PEERS as usize, "nobody is thrown out");

    // The programs read after all. Nothing that was acknowledged is missing, and the windows open without
    // being asked.
    let mut read_so_far: Vec<Vec<u8>> = vec![Vec::new(); PEERS as usize];
    for (n, id) in ids(&b).into_iter().enumerate() {
        read_so_far[n] = read(&mut b, id);
    }
    let headers = b.headers();
    for (peer, text) in peers.iter_mut().zip(&read_so_far) {
        assert_eq!(text.len() as u32, peer.acknowledged);
        let reopened = headers.iter().any(|h| h.dst_port == 1024 + peer.n as u16 && h.window > 0);
        assert!(reopened, "peer {} is not told", peer.n);
    }
    for (n, id) in ids(&b).into_iter().enumerate() {
        for _ in 0..20 {
            peers[n].say(&mut b, read_so_far[n].len() as u32, SEGMENT);
            let more = read(&mut b, id);
            read_so_far[n].extend(more);
        }
        let wanted: Vec<u8> = (0..read_so_far[n].len() as u32).map(|at| said(n as u32, at)).collect();
        assert!(read_so_far[n] == wanted && wanted.len() >= 20_000, "peer {n}");
    }
    assert_eq!((b.host.memory().level, b.host.memory().closed_windows), (MemoryLevel::Enough, 0));
}

/// Breaks: new connections push a host that is short of memory over its limit; or they are refused when there
/// is memory again.
#[test]
fn a_host_without_memory_takes_nobody() {
    let _turn = my_turn();
    let mut b = bench(false);
    let mut refused = 0;
    for n in 0..2_000 {
        let peer = Peer { n, iss: Seq::new(0), acknowledged: 0, window: 0 };
        b.packet(peer.packet(TcpFlags::SYN, 0, Seq::new(0), Bytes::new()));
        let answers = b.headers();
        refused += u32::from(answers.is_empty());
        if let Some(answer) = answers.first() {
            b.packet(peer.packet(TcpFlags::ACK, 0, answer.seq + 1, Bytes::new()));
        }
        b.sent();
    }
    let memory = b.host.memory();
    assert_eq!(
        (refused as usize, memory.level),
        (2_000 - b.host.open_connections(), MemoryLevel::NoConnections)
    );
    assert!(memory.held.get() < LIMIT && refused > 900, "{refused} refused, {memory:?}");
    assert!(b.drops().iter().all(|why| *why == DropReason::HostLimit));
    let connect = |b: &mut Bench| b.host.connect(b.now, A, 9, config(), None, Box::new(Program::default()));
    let error = connect(&mut b).unwrap_err();
    assert!(matches!(error, ConnectError::NoMemory(..)), "{error}");
    for id in ids(&b) {
        b.with(|host, cx| host.with_connection(id, cx, Connection::abort));
    }
    assert_eq!(b.host.memory().held, ByteCount::ZERO);
    assert!(connect(&mut b).is_ok());
}

/// Breaks: what waits beyond a hole fills the memory and keeps out what would fill the hole: no connection
/// goes on.
#[test]
fn data_in_order_pushes_out_what_waits_beyond_a_hole() {
    let _turn = my_turn();
    let mut b = bench(false);
    let mut peers: Vec<Peer> = (0..PEERS).map(|n| Peer::open(&mut b, n)).collect();
    for round in 1..=60 {
        for peer in &mut peers {
            peer.say(&mut b, 2 * round * SEGMENT, SEGMENT); // every other segment is lost
        }
    }
    let memory = b.host.memory();
    assert!(memory.held.get() <= LIMIT + u64::from(PEERS * SEGMENT), "{memory:?}");
    assert!(memory.level >= MemoryLevel::Shares && memory.segments_refused > 0, "{memory:?}");
    let all = ids(&b);
    for (peer, id) in peers.iter_mut().zip(&all) {
        let mut text = Vec::new();
        for _ in 0..200 {
            peer.say(&mut b, peer.acknowledged, SEGMENT);
            text.extend(read(&mut b, *id));
        }
        peer.listen(&mut b);
        assert!(text.len() >= 100_000, "peer {} has got {} bytes through", peer.n, text.len());
        assert!(
            text.iter().enumerate().all(|(at, byte)| *byte == said(peer.n, at as u32)),
            "peer {}",
            peer.n
        );
    }
    assert!(b.host.connections().any(|(_, c)| c.counters().pruned > 0), "somebody's island had to go");
    assert!(b.host.connections().all(|(_, c)| c.state() == ConnectionState::Established));
}

/// Breaks: a peer that acknowledges nothing, or sends crumbs, makes the host hold more than it counts.
#[test]
fn what_is_counted_is_what_is_held() {
    let _turn = my_turn();
    let crumbs: [(&str, bool, u32); 3] =
        [("unacknowledged", true, 0), ("crumbs", false, 1), ("holes", false, 2)];
    for (name, writes, step) in crumbs {
        let region = Region::new(ALLOCATOR);
        let mut b = bench(writes);
        let mut peers: Vec<Peer> = (0..PEERS).filter_map(|n| Peer::try_open(&mut b, n)).collect();
        assert!(
            peers.len() > 10 && writes == (peers.len() < PEERS as usize),
            "{name}: {} peers",
            peers.len()
        );
        for round in 0..if step > 0 { 2_500 } else { 0 } {
            for peer in &mut peers {
                let hole = u32::from(step > 1);
                peer.say(&mut b, hole + round * step, 1);
            }
        }
        b.sent();
        let (counted, really) = (b.host.memory().held.get(), held(&region));
        println!("{name}: counted {counted}, really {really}");
        assert!(really <= LIMIT * 5 / 4, "{name}: {really} bytes");
        assert!(really <= counted * 5 / 4, "{name}: {counted} counted, {really} held");
    }
}
