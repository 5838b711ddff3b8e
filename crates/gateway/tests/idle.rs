//! What many split connections take. The allocator counts what is really held: so this is a program of its
//! own.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bytes::Bytes;
use farpace_gateway::{Gateway, GatewayConfig, GatewayTotals, Policy, PolicyTable};
use farpace_path::{Cx, Effects, Element, Port};
use farpace_tcp::config::{Profile, Settings};
use farpace_units::{ByteCount, Instant, RandomStream, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader, TcpOptions, Timestamps};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::net::Ipv4Addr;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CONNECTIONS: u32 = 20_000;
/// A hundred thousand connections take a GiB at most.
const MAX_EACH: u64 = (1 << 30) / 100_000;

struct Bench {
    gateway: Gateway,
    now: Instant,
    effects: Effects,
    rng: RandomStream,
}

impl Bench {
    fn new() -> Self {
        let profile = |profile| Settings { profile: Some(profile), ..Settings::default() }.resolve().unwrap();
        let policy = Policy::new(profile(Profile::Linux), profile(Profile::Farpace));
        let mut config = GatewayConfig::new(PolicyTable::new(vec![], policy));
        config.memory = ByteCount::new(4 << 30);
        Bench {
            gateway: Gateway::new(config),
            now: Instant::ZERO,
            effects: Effects::default(),
            rng: RandomStream::new(1, "bench"),
        }
    }
    fn call(&mut self, act: impl FnOnce(&mut Gateway, &mut Cx<'_>)) {
        act(&mut self.gateway, &mut Cx::new(self.now, &mut self.effects, &mut self.rng));
        self.effects.emitted.clear();
    }
    fn packet(&mut self, port: Port, packet: Packet) {
        self.call(|gateway, cx| gateway.on_packet(port, packet, cx));
    }
    /// What waits for packets that came together is sent.
    fn flush(&mut self) {
        self.now += Span::from_nanos(1);
        self.call(|gateway, cx| gateway.on_wake(cx));
    }
    fn totals(&self) -> GatewayTotals {
        self.gateway.totals()
    }
}

/// A segment of connection `n`, from its client or its server.
fn segment(n: u32, from_client: bool, flags: TcpFlags, seq: u32, ack: u32, payload: &[u8]) -> Packet {
    let client = Ipv4Addr::from(0x0a00_0001 + n / 50_000);
    let pair = AddressPair::V4(client, Ipv4Addr::new(192, 0, 2, 1));
    let ports = ((n % 50_000) as u16 + 1000, 80);
    let (pair, (src_port, dst_port)) =
        if from_client { (pair, ports) } else { (pair.reversed(), (ports.1, ports.0)) };
    let syn = flags.contains(TcpFlags::SYN);
    let header = TcpHeader {
        src_port,
        dst_port,
        seq: Seq::new(seq),
        ack: Seq::new(ack),
        flags,
        window: 60_000,
        options: TcpOptions {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(7),
            sack_permitted: syn,
            timestamps: Some(Timestamps { value: 1000, echo: 0 }),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 60);
    below.tcp(1, &header, Bytes::copy_from_slice(payload))
}

// Breaks: idle connections take so much that a site of a hundred thousand does not fit into a GiB; or ended
// ones keep memory.
#[test]
fn idle_connections_are_small() {
    let mut bench = Bench::new();
    let region = Region::new(ALLOCATOR);
    let ack = TcpFlags::ACK;
    for n in 0..CONNECTIONS {
        bench.packet(Gateway::LAN, segment(n, true, TcpFlags::SYN, n, 0, b""));
        bench.now += Span::from_millis(20);
        bench.packet(Gateway::WAN, segment(n, false, TcpFlags::SYN.with(ack), n + 7, n + 1, b""));
        bench.packet(Gateway::LAN, segment(n, true, ack, n + 1, n + 8, b""));
        // A question and an answer.
        bench.packet(Gateway::LAN, segment(n, true, ack, n + 1, n + 8, &[1; 500]));
        bench.flush();
        bench.packet(Gateway::WAN, segment(n, false, ack, n + 8, n + 501, &[2; 500]));
        bench.flush();
        bench.packet(Gateway::LAN, segment(n, true, ack, n + 501, n + 508, b""));
        bench.flush();
        if n == 0 {
            assert_eq!(bench.totals().moved, [ByteCount::new(500); 2]);
        }
    }
    let totals = bench.totals();
    assert_eq!((totals.connections, totals.half_open), (CONNECTIONS as usize, 0));
    let change = region.change();
    let held = change.bytes_allocated.saturating_sub(change.bytes_deallocated) as u64;
    let each = held / u64::from(CONNECTIONS);
    println!("{each} B for each idle connection");
    assert!(each <= MAX_EACH, "{each} B each");
    // The account is no less than what is held.
    assert!(totals.memory.get() >= held / 2, "{} of {held}", totals.memory);
    for n in 0..CONNECTIONS {
        bench.packet(Gateway::LAN, segment(n, true, TcpFlags::RST, n + 501, 0, b""));
    }
    assert_eq!((bench.totals().connections, bench.totals().memory), (0, ByteCount::ZERO));
    let change = region.change();
    let held = change.bytes_allocated.saturating_sub(change.bytes_deallocated) as u64;
    assert!(held < 8 << 20, "{held} B are held by ended connections");
}
