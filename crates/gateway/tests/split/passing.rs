//! What is not split passes unchanged.

use crate::harness::*;
use bytes::Bytes;
use farpace_gateway::{Action, Gateway, PolicyTable};
use farpace_units::{Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet};

fn below() -> Below {
    let pair = AddressPair::V4("10.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
    Below::new(MacAddr([2; 6]), MacAddr([4; 6]), pair, 9)
}

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut frame = Vec::new();
    packet.write_frame(&mut frame);
    frame
}

// Breaks: a policy that passes connections, or the RTT below which they pass, has no effect, or connections
// that pass are harmed.
#[test]
fn policies_and_short_paths_pass() {
    let from = |action| farpace_gateway::Policy { action, ..policy() };
    let tables = [
        (PolicyTable::new(vec![("192.0.2.0/24".parse().unwrap(), from(Action::Pass))], policy()), 280, false),
        (PolicyTable::new(vec![("192.0.3.0/24".parse().unwrap(), from(Action::Pass))], policy()), 280, true),
        (PolicyTable::new(vec![], from(Action::Auto)), 1, false),
        (PolicyTable::new(vec![], from(Action::Split)), 1, true),
    ];
    for (table, delay, split) in tables {
        let mut plan = Plan { delay: Span::from_millis(delay), loss: 0.0, ..Plan::new() };
        plan.config.policies = table;
        let mut net = Net::new(plan);
        let server = serve(&mut net, linux(), 100_000);
        let client = call(&mut net, linux(), 100_000);
        net.run_for(Span::from_millis(delay * 2 + 100));
        assert_eq!(net.totals().split, u64::from(split));
        net.run_for(Span::from_secs(60));
        assert_done(&client, 100_000);
        assert_done(&server, 100_000);
        let totals = net.totals();
        assert_eq!(totals.passed_by_policy + totals.passed_short, u64::from(!split));
    }
}

// Breaks: the round trip of the LAN decides whether a connection from the WAN is short, and none is split;
// or one that passes late loses bytes.
#[test]
fn connections_from_the_wan_are_judged_by_the_wan() {
    for (delay, split) in [(280, true), (1, false)] {
        let mut net = Net::new(Plan { delay: Span::from_millis(delay), ..Plan::new() });
        let kept = record();
        let made = kept.clone();
        // The host of the LAN listens.
        let client = net.world.element_mut::<farpace_host::Host>(net.client).unwrap();
        let settings = farpace_host::ListenSettings::new(linux());
        client.listen(SERVER_PORT, settings, move || Box::new(Program::new(70_000, [2, 1], &made))).unwrap();
        let caller = record();
        let (now, to) = (net.world.now(), net.addresses[0]);
        let server = net.world.element_mut::<farpace_host::Host>(net.server).unwrap();
        let program = Box::new(Program::new(90_000, [1, 2], &caller));
        server.connect(now, to, SERVER_PORT, linux(), None, program).unwrap();
        net.run_for(Span::from_secs(30));
        assert_done(&caller, 70_000);
        assert_done(&kept, 90_000);
        let totals = net.totals();
        assert_eq!((totals.split, totals.passed_short), if split { (1, 0) } else { (0, 1) });
    }
}

// Breaks: packets of connections whose SYN was not seen, and of other protocols, are changed or lost.
#[test]
fn what_is_not_known_passes_unchanged() {
    let mut net = Net::new(Plan::new());
    let header = TcpHeader {
        src_port: 5,
        dst_port: 80,
        seq: Seq::new(7),
        ack: Seq::new(9),
        flags: TcpFlags::ACK.with(TcpFlags::PSH),
        ..TcpHeader::default()
    };
    let payload = Bytes::from(vec![3; 700]);
    let udp = farpace_wire::UdpHeader { src_port: 1, dst_port: 2 };
    let datagram = below().udp(3, udp, payload.clone()).unwrap();
    let fragments = farpace_wire::fragment(below_cut().tcp(1, &header, payload.clone()), 300, 7).unwrap();
    let mut packets = vec![below().tcp(1, &header, payload), datagram];
    packets.extend(fragments);
    net.tap.on = true;
    for packet in &packets {
        net.inject(Gateway::LAN, packet.clone());
    }
    let passed: Vec<_> = net.tap.seen[TO_SERVER].iter().map(bytes_of).collect();
    assert_eq!(passed, packets.iter().map(bytes_of).collect::<Vec<_>>());
    assert_eq!(net.totals().packets_passed, packets.len() as u64);
}

fn below_cut() -> Below {
    Below { dont_fragment: false, ..below() }
}

// Breaks: connections with options that both hosts have to see are split, and lose what they have agreed on.
#[test]
fn connections_with_foreign_options_pass() {
    for kind in [19u8, 29, 30, 34, 2] {
        let mut net = Net::new(Plan::new());
        let header = TcpHeader { src_port: 5, dst_port: 80, flags: TcpFlags::SYN, ..TcpHeader::default() };
        let plain = below().tcp(1, &header, Bytes::new());
        let mut frame = bytes_of(&plain);
        // Eight bytes of options behind the header: the kind, its length, and data.
        frame.extend([kind, if kind == 2 { 4 } else { 8 }, 5, 0xb4, 1, 1, 1, 1]);
        frame[14 + 20 + 12] = 7 << 4;
        let total = (frame.len() - 14) as u16;
        frame[16..18].copy_from_slice(&total.to_be_bytes());
        let mut syn = Packet::from_frame(&frame).unwrap();
        syn.trust_checksum();
        net.inject(Gateway::LAN, syn);
        let totals = net.totals();
        assert_eq!(
            (totals.passed_options, totals.connections),
            if kind == 2 { (0, 1) } else { (1, 0) },
            "{kind}"
        );
    }
}
