//! What connections cost in memory. A program of its own, with one test: the allocator counts for all
//! threads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use common::{B, Bench, Talker, between, config};
use farpace_host::{DEFAULT_BACKLOG, ListenSettings};
use farpace_path::Element;
use farpace_tcp::ConnectionState;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::Ipv4Addr;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Idle connections in one host.
const MANY: u32 = 100_000;
/// What one may take.
const EACH: usize = 4096;
/// What one in TIME-WAIT may take.
const TIME_WAIT_EACH: usize = 128;
/// Places that stay in a host's tables of connections and timers for those it once had at a time.
const PLACE: usize = 192;

fn held(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

fn header(n: u32, flags: TcpFlags, seq: u32, ack: Seq, clock: u32) -> TcpHeader {
    TcpHeader {
        src_port: 1024 + (n & 7) as u16,
        dst_port: 80,
        seq: Seq::new(seq),
        ack,
        flags,
        window: 65_535,
        options: TcpOptions {
            mss: flags.contains(TcpFlags::SYN).then_some(1460),
            window_scale: flags.contains(TcpFlags::SYN).then_some(7),
            sack_permitted: flags.contains(TcpFlags::SYN),
            timestamps: Some(Timestamps { value: clock, echo: 0 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    }
}

fn packet(n: u32, header: &TcpHeader, payload: &'static [u8]) -> farpace_wire::Packet {
    between(Ipv4Addr::from_bits(0xc612_0000 | n >> 3).into(), B, header, payload)
}

/// Breaks: servers with many idle clients, and the bound on a SYN flood: memory per connection, and what
/// wakes the host when nothing happens.
#[test]
fn connections_are_small() {
    // A question and an answer each, as idle connections of a server have behind them.
    let mut b = Bench::new(B);
    b.host
        .listen(80, ListenSettings::new(config()), || {
            Box::new(Talker { say: b"welcome", stays: true, ..Talker::default() })
        })
        .unwrap();
    let region = Region::new(ALLOCATOR);
    b.now = Instant::from_nanos(1_000_000_000);
    for n in 0..MANY {
        b.now += Span::from_micros(10);
        b.packet(packet(n, &header(n, TcpFlags::SYN, 100, Seq::new(0), n), b""));
        let iss = b.header().seq;
        b.packet(packet(n, &header(n, TcpFlags::ACK, 101, iss + 1, n + 1), b""));
        b.packet(packet(n, &header(n, TcpFlags::ACK, 101, iss + 8, n + 1), b"please"));
        b.sent();
    }
    b.run_until(b.now + Span::from_secs(60));
    b.sent();
    let each = held(&region) / MANY as usize;
    println!("{each} bytes per idle connection, of which {} stand in `Connection`", size());
    assert_eq!(
        b.host.connections().filter(|(_, c)| c.state() == ConnectionState::Established).count(),
        MANY as usize
    );
    assert!(each <= EACH, "{each} bytes per idle connection");

    // Whatever deadline idle connections have, it is not near.
    let next = b.host.deadline();
    assert!(next.is_none_or(|at| at.since(b.now) > Span::from_secs(60)), "{next:?}");

    let burst = after_a_burst();
    println!("{burst} bytes per connection after a burst");
    assert!(burst <= EACH, "{burst} bytes per connection after a burst");

    // They close, and their peers with them.
    let all: Vec<_> = b.host.connections().map(|(id, _)| id).collect();
    for id in all {
        b.with(|host, cx| host.with_connection(id, cx, farpace_tcp::Connection::close));
    }
    for (n, fin) in b.headers().into_iter().enumerate() {
        let flags = TcpFlags::ACK.with(TcpFlags::FIN);
        b.packet(packet(n as u32, &header(n as u32, flags, 107, fin.seq + 1, n as u32 + 1), b""));
        b.sent();
    }
    let waiting = held(&region);
    assert_eq!((b.host.time_waits(), b.host.open_connections()), (MANY as usize, MANY as usize));
    b.run_until(b.now + Span::from_secs(61));
    assert_eq!(b.host.open_connections(), 0);
    let over = held(&region);
    let (row, place) = ((waiting - over) / MANY as usize, over / MANY as usize);
    println!("{row} bytes per connection in TIME-WAIT, {place} per place");
    assert!(row <= TIME_WAIT_EACH, "{row} bytes per connection in TIME-WAIT");
    assert!(place <= PLACE, "{place} bytes per place");

    let region = Region::new(ALLOCATOR);
    let mut b = Bench::new(B);
    b.host.listen(80, ListenSettings::new(config()), Talker::that_stays).unwrap();
    for n in 0..MANY {
        b.packet(packet(n, &header(n, TcpFlags::SYN, 100, Seq::new(0), n), b""));
        b.sent();
    }
    let flooded = held(&region);
    println!("{flooded} bytes after {MANY} forged SYNs");
    assert!(flooded <= DEFAULT_BACKLOG * EACH, "{flooded} bytes");
}

/// What a connection takes that has sent `BIG` and received as much, in and out of order, and is idle now.
fn after_a_burst() -> usize {
    static BIG: [u8; 100_000] = [7; 100_000];
    let mut b = Bench::new(B);
    b.now = Instant::from_nanos(1_000_000_000);
    b.host
        .listen(80, ListenSettings::new(config()), || {
            Box::new(Talker { say: &BIG, stays: true, ..Talker::default() })
        })
        .unwrap();
    let region = Region::new(ALLOCATOR);
    let many = 500;
    for n in 0..many {
        b.packet(packet(n, &header(n, TcpFlags::SYN, 100, Seq::new(0), n), b""));
        let iss = b.header().seq;
        b.packet(packet(n, &header(n, TcpFlags::ACK, 101, iss + 1, n + 1), b""));
        // Every second segment first, then the rest.
        for at in (1..100).step_by(2).chain((0..100).step_by(2)) {
            let ack = header(n, TcpFlags::ACK, 101 + at * 1_000, iss + 1, n + 2);
            b.packet(packet(n, &ack, &BIG[..1_000]));
        }
        let mut acknowledged = iss + 1;
        while acknowledged != iss + 1 + BIG.len() as u32 {
            b.run_until(b.now + Span::from_millis(10));
            let ends = b.sent().into_iter().map(|p| p.tcp().unwrap().header().seq + p.payload().len() as u32);
            acknowledged = ends.fold(acknowledged, Seq::later);
            b.packet(packet(n, &header(n, TcpFlags::ACK, 100_101, acknowledged, n + 3), b""));
        }
    }
    b.run_until(b.now + Span::from_secs(60));
    b.sent();
    for (_, connection) in b.host.connections() {
        assert_eq!(connection.counters().bytes_received.get(), 100_000);
    }
    let ids: Vec<_> = b.host.connections().map(|(id, _)| id).collect();
    let heard: usize = ids.iter().map(|id| b.host.application::<Talker>(*id).unwrap().heard.capacity()).sum();
    (held(&region) - heard) / many as usize
}

fn size() -> usize {
    std::mem::size_of::<farpace_tcp::Connection>()
}
