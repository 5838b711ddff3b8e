//! The comparison of split connections with a control group.

use crate::harness::*;
use crate::limits::syn;
use bytes::Bytes;
use farpace_gateway::{ComparisonGroup, ComparisonResult, Gateway, GatewayConfig, MAX_RESULTS, MAX_WATCHED};
use farpace_path::Cx;
use farpace_units::{ByteCount, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};

fn results(net: &mut Net) -> Vec<ComparisonResult> {
    let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.take_results(cx.now());
    net.world.call(net.gateway, &mut net.tap, act).unwrap()
}

fn with_control_group(share: f64) -> Plan {
    let mut plan = Plan { loss: 0.01, rate: farpace_units::Rate::from_mbit(200), ..Plan::new() };
    plan.config.control_group = share;
    plan
}

/// Breaks: a group gets other connections than the other, or more of them; payload or time of either is not
/// what the hosts have seen; or connections of the control group are split after all.
#[test]
fn both_groups_are_measured_alike() {
    let mut net = Net::new(with_control_group(0.5));
    let servers = serve_each(&mut net, linux(), 40_000);
    let mut clients = Vec::new();
    for _ in 0..60 {
        clients.push(call(&mut net, linux(), 150_000));
        net.run_for(Span::from_millis(100));
    }
    net.run_for(Span::from_secs(60));
    clients.iter().for_each(|client| assert_done(client, 40_000));
    servers.borrow().iter().for_each(|server| assert_done(server, 150_000));
    let totals = net.totals();
    assert_eq!((totals.split + totals.passed_control, totals.connections), (60, 0));
    let results = results(&mut net);
    for group in [ComparisonGroup::Split, ComparisonGroup::Unsplit] {
        let own: Vec<_> = results.iter().filter(|result| result.group == group).collect();
        assert!((18..=42).contains(&own.len()), "{group:?}: {}", own.len());
        for result in &own {
            assert_eq!(result.payload, [150_000, 40_000].map(ByteCount::new), "{result:?}");
            // A handshake of 560 ms, and at least three round trips for the windows.
            assert!(result.time > Span::from_millis(1_600), "{result:?}");
            assert!(result.time < Span::from_secs(20), "{result:?}");
        }
        let expected = match group {
            ComparisonGroup::Split => totals.split,
            ComparisonGroup::Unsplit => totals.passed_control,
        };
        assert_eq!(own.len() as u64, expected);
    }
    assert!(self::results(&mut net).is_empty());
}

/// Breaks: connections are compared that nobody has allowed, or those that would not be split.
#[test]
fn only_what_could_be_split_is_compared() {
    for (share, min_rtt, compared) in
        [(0.0, Span::ZERO, 0), (0.2, Span::from_secs(1), 0), (0.2, Span::ZERO, 1)]
    {
        let mut plan = Plan { delay: Span::from_millis(20), loss: 0.0, ..with_control_group(share) };
        let mut own = policy();
        own.min_rtt = min_rtt;
        own.action = farpace_gateway::Action::Auto;
        plan.config.policies = farpace_gateway::PolicyTable::new(vec![], own);
        let mut net = Net::new(plan);
        let _servers = serve_each(&mut net, linux(), 1_000);
        let clients: Vec<_> = (0..50).map(|_| call(&mut net, linux(), 1_000)).collect();
        net.run_for(Span::from_secs(60));
        clients.iter().for_each(|client| assert_done(client, 1_000));
        assert_eq!(usize::from(!results(&mut net).is_empty()), compared, "{share} {min_rtt}");
        if share == 0.0 {
            assert_eq!(net.totals().passed_control, 0);
        }
    }
}

fn segment(flags: TcpFlags, seq: u32, ack: u32, payload: usize, back: bool) -> Packet {
    let opener: std::net::Ipv4Addr = "10.0.0.1".parse().unwrap();
    let acceptor: std::net::Ipv4Addr = "192.0.2.9".parse().unwrap();
    let (from, to, src_port, dst_port) = match back {
        false => (opener, acceptor, 1000, 80),
        true => (acceptor, opener, 80, 1000),
    };
    let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), AddressPair::V4(from, to), 9);
    let (seq, ack) = (Seq::new(seq), Seq::new(ack));
    let header = TcpHeader { src_port, dst_port, seq, ack, flags, window: 65_535, ..TcpHeader::default() };
    below.tcp(1, &header, Bytes::from(vec![7; payload]))
}

/// Breaks: strangers make the gateway remember more than it may, or a host makes its connection count for
/// more than it has carried.
#[test]
fn what_strangers_put_into_the_comparison_is_bounded() {
    let mut plan = with_control_group(0.5);
    plan.config.max_half_open = 20_000;
    let mut net = Net::new(plan);
    for n in 0..60_000 {
        net.inject(Gateway::LAN, syn(n));
    }
    let totals = net.totals();
    assert_eq!(totals.passed_control, MAX_WATCHED as u64, "{totals:?}");
    assert!(results(&mut net).len() <= MAX_RESULTS);
    // Switched off, and on again: there is room for as many as before.
    let passed = totals.passed_control;
    let off = GatewayConfig { control_group: 0.0, ..with_control_group(0.5).config };
    net.world.element_mut::<Gateway>(net.gateway).unwrap().reconfigure(off);
    let on = GatewayConfig { max_half_open: 20_100, ..with_control_group(0.5).config };
    net.world.element_mut::<Gateway>(net.gateway).unwrap().reconfigure(on);
    for n in 60_000..61_000 {
        net.inject(Gateway::LAN, syn(n));
    }
    assert!(net.totals().passed_control > passed);

    let ack = TcpFlags::ACK;
    for seed in 0.. {
        let mut plan = Plan { seed, ..with_control_group(0.5) };
        let own = farpace_gateway::Policy { action: farpace_gateway::Action::Split, ..policy() };
        plan.config.policies = farpace_gateway::PolicyTable::new(vec![], own);
        let mut net = Net::new(plan);
        net.inject(Gateway::LAN, segment(TcpFlags::SYN, 99, 0, 0, false));
        if net.totals().passed_control == 0 {
            continue;
        }
        net.inject(Gateway::WAN, segment(TcpFlags::SYN.with(ack), 499, 100, 0, true));
        net.inject(Gateway::LAN, segment(ack, 100, 500, 1000, false));
        // Acknowledges what was not sent, and what was, twice.
        net.inject(Gateway::WAN, segment(ack, 500, 2_000_000_000, 0, true));
        net.inject(Gateway::WAN, segment(ack, 500, 1100, 0, true));
        net.inject(Gateway::WAN, segment(ack, 500, 1100, 0, true));
        net.inject(Gateway::WAN, segment(TcpFlags::RST, 500, 0, 0, true));
        let results = results(&mut net);
        assert_eq!(results.len(), 1);
        assert_eq!(results[0].payload, [1000, 0].map(ByteCount::new));
        break;
    }
}
