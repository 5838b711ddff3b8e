//! What strangers control is bounded, and what is beyond a bound passes.

use crate::harness::*;
use bytes::Bytes;
use farpace_gateway::limits::MAX_HALF_OPEN;
use farpace_gateway::{Gateway, GatewayConfig, PolicyTable};
use farpace_units::{ByteCount, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};

/// A SYN of a connection of its own.
pub fn syn(n: u32) -> Packet {
    numbered_syn(n, n)
}

/// The same with an initial sequence number.
pub fn numbered_syn(n: u32, isn: u32) -> Packet {
    let from = std::net::Ipv4Addr::from(0x0a00_0000 + 1 + n / 50_000);
    let below =
        Below::new(MacAddr([2; 6]), MacAddr([4; 6]), AddressPair::V4(from, "192.0.2.9".parse().unwrap()), 9);
    let header = TcpHeader {
        src_port: (n % 50_000) as u16 + 1000,
        dst_port: 80,
        seq: Seq::new(isn),
        flags: TcpFlags::SYN,
        window: 65_535,
        ..TcpHeader::default()
    };
    below.tcp(1, &header, Bytes::new())
}

// Breaks: 100,000 SYNs to a server that never answers take all memory, or the hosts cannot reach each other
// any more.
#[test]
fn half_open_connections_are_bounded_and_others_pass() {
    let mut net = Net::new(Plan::new());
    for n in 0..100_000 {
        net.inject(Gateway::LAN, syn(n));
    }
    let totals = net.totals();
    assert_eq!((totals.half_open, totals.connections), (MAX_HALF_OPEN, MAX_HALF_OPEN));
    assert_eq!(totals.passed_limit, 100_000 - MAX_HALF_OPEN as u64);
    assert!(totals.memory < ByteCount::new(256 << 20), "{}", totals.memory);
    // A connection passes meanwhile.
    let server = serve(&mut net, linux(), 10_000);
    let client = call(&mut net, linux(), 10_000);
    net.run_for(Span::from_secs(20));
    assert_done(&client, 10_000);
    assert_done(&server, 10_000);
    // All of them end.
    net.run_for(Span::from_secs(120));
    assert_eq!((net.totals().half_open, net.totals().connections), (0, 0));
    assert_eq!(net.totals().memory, ByteCount::ZERO);
}

// Breaks: the limit of connections, or that of memory, is not kept.
#[test]
fn connections_beyond_a_limit_pass() {
    let policies = PolicyTable::new(vec![], policy());
    let few = GatewayConfig { max_connections: 3, ..GatewayConfig::new(policies.clone()) };
    let little = GatewayConfig { memory: ByteCount::new(64 << 10), ..GatewayConfig::new(policies) };
    for (config, most) in [(few, 3), (little, 16)] {
        let mut net = Net::new(Plan { config, ..Plan::new() });
        for n in 0..50 {
            net.inject(Gateway::LAN, syn(n));
        }
        let totals = net.totals();
        assert!(totals.connections <= most && totals.connections > 0, "{}", totals.connections);
        assert_eq!(totals.passed_limit, 50 - totals.connections as u64);
    }
}

// Breaks: many connections hold more than the memory of the gateway, or stop when they reach it.
#[test]
fn memory_of_many_connections_is_bounded() {
    let mut plan = Plan { rate: farpace_units::Rate::from_mbit(20), ..Plan::new() };
    plan.config.memory = ByteCount::new(2 << 20);
    let mut net = Net::new(plan);
    let server = serve(&mut net, linux(), 0);
    let clients: Vec<_> = (0..20).map(|_| call(&mut net, linux(), 1_000_000)).collect();
    net.run_for(Span::from_secs(400));
    assert!(server.borrow().peer_closed);
    assert!(clients.iter().all(|client| client.borrow().peer_closed));
    let totals = net.totals();
    assert_eq!((totals.split, totals.connections), (20, 0));
    // A segment for each leg more than the limit.
    assert!(totals.memory_peak < ByteCount::new((2 << 20) + 40 * 2000), "{}", totals.memory_peak);
}
