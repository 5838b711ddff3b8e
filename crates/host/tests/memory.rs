//! What connections cost in memory. A program of its own, with one test: the allocator counts for all threads.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod common;

use common::{B, Bench, Talker, between, config};
use farpace_host::{DEFAULT_BACKLOG, ListenSettings};
use farpace_path::Element;
use farpace_tcp::State;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::Ipv4Addr;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Idle connections in one host.
const MANY: u32 = 100_000;
/// What they may take together.
const BUDGET: usize = 1 << 30;
/// What one may take, so that twice as many would still fit. It was 3,200 when this was written.
const EACH: usize = BUDGET / MANY as usize / 2;

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

/// Breaks: servers with many idle clients, and the bound on a SYN flood: memory per connection, and what wakes the
/// host when nothing happens.
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
    assert_eq!(b.host.connections().filter(|(_, c)| c.state() == State::Established).count(), MANY as usize);
    assert!(each <= EACH, "{each} bytes per idle connection");

    // Whatever deadline idle connections have, it is not near.
    let next = b.host.deadline();
    assert!(next.is_none_or(|at| at.since(b.now) > Span::from_secs(60)), "{next:?}");

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

fn size() -> usize {
    std::mem::size_of::<farpace_tcp::Connection>()
}
