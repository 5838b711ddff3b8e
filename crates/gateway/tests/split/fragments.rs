//! Fragments of segments of split connections.

use crate::harness::*;
use bytes::Bytes;
use farpace_gateway::{Gateway, GatewayConfig};
use farpace_host::ip::fragments::{FRAGMENT_COST, MAX_DATAGRAMS, MAX_FRAGMENT_BYTES, REASSEMBLY_TIME};
use farpace_path::world::ElementId;
use farpace_path::{Cx, Element, Port};
use farpace_units::{Instant, RandomStream, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpHeader};
use farpace_wire::{AddressPair, Below, MacAddr, Packet, fragment};
use std::net::IpAddr;

/// A router before the gateway that cuts what is longer than its link.
struct Cutter {
    toward_gateway: Port,
    ident: u32,
    cut: u64,
}

impl Element for Cutter {
    fn ports(&self) -> u16 {
        2
    }

    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        let out = Port(1 - port.0);
        if out != self.toward_gateway || packet.network_len().as_len() <= 1000 {
            return cx.emit(out, packet);
        }
        self.ident += 1;
        self.cut += 1;
        for part in fragment(cx.hand_over(packet), 600, self.ident).unwrap() {
            cx.made();
            cx.emit(out, part);
        }
    }

    fn on_wake(&mut self, _: &mut Cx<'_>) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn held(&self) -> u64 {
        0
    }

    fn inspect(&self) -> farpace_path::Inspection {
        vec![("cut", self.cut.to_string())]
    }
}

/// The gateway between two routers that cut.
fn between_cutters(plan: Plan) -> (Net, [ElementId; 2]) {
    let config: GatewayConfig = plan.config.clone();
    let (mut net, [lan, wan]) = Net::without_gateway(plan);
    let gateway = net.world.add("gateway", Box::new(Gateway::new(config))).unwrap();
    let mut cutter = |name: &str, toward_gateway| {
        net.world.add(name, Box::new(Cutter { toward_gateway, ident: 0, cut: 0 })).unwrap()
    };
    let (near, far) = (cutter("near", Port(1)), cutter("far", Port(0)));
    for (a, b) in [
        ((lan, Port(1)), (near, Port(0))),
        ((near, Port(1)), (gateway, Gateway::LAN)),
        ((gateway, Gateway::WAN), (far, Port(0))),
        ((far, Port(1)), (wan, Port(0))),
    ] {
        net.world.connect(a, b).unwrap();
    }
    (Net { gateway, ..net }, [near, far])
}

/// Breaks: a split connection hangs for good, or loses bytes, when its segments arrive as fragments: they
/// pass to the other host, which acknowledges what its leg has never sent.
#[test]
fn fragments_belong_to_their_connection() {
    for addresses in [["10.0.0.1", "192.0.2.1"], ["fd00::1", "2001:db8::1"]] {
        let addresses: [IpAddr; 2] = addresses.map(|text| text.parse().unwrap());
        for loss in [0.0, 0.01] {
            let (mut net, cutters) = between_cutters(Plan { addresses, loss, ..Plan::new() });
            let server = serve(&mut net, linux(), 700_000);
            let client = call(&mut net, linux(), 900_000);
            net.run_for(Span::from_secs(300));
            assert_done(&client, 700_000);
            assert_done(&server, 900_000);
            let totals = net.totals();
            assert_eq!((totals.split, totals.connections, totals.ended_by_error), (1, 0, 0));
            assert_eq!(totals.packets_passed, 0, "a fragment passed");
            for cutter in cutters {
                assert!(net.world.element::<Cutter>(cutter).unwrap().cut > 400);
            }
        }
    }
}

fn parts_of(src_port: u16, ident: u16, payload: Bytes) -> Vec<Packet> {
    let addresses = AddressPair::V4("10.0.0.1".parse().unwrap(), "192.0.2.1".parse().unwrap());
    let below = Below::new(MacAddr([2; 6]), MacAddr([4; 6]), addresses, 64);
    let below = Below { dont_fragment: false, ..below };
    let header = TcpHeader {
        src_port,
        dst_port: SERVER_PORT,
        seq: Seq::new(7),
        ack: Seq::new(9),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    fragment(below.tcp(ident, &header, payload), 300, 0).unwrap()
}

/// Breaks: fragments of a connection that passes are lost or changed, because another one between its hosts
/// is split.
#[test]
fn fragments_of_other_connections_pass_as_they_came() {
    let mut net = Net::new(Plan::new());
    serve(&mut net, linux(), 0);
    let kept = record();
    net.connect(linux(), Program { closes: false, ..Program::new(1_000, [1, 2], &kept) });
    net.run_for(Span::from_secs(5));
    assert_eq!(net.totals().connections, 1);
    let parts = parts_of(5, 1, Bytes::from(vec![3; 700]));
    assert!(parts.len() > 2);
    net.tap.on = true;
    parts.iter().rev().for_each(|part| net.inject(Gateway::LAN, part.clone()));
    let frame = |packet: &Packet| {
        let mut bytes = Vec::new();
        packet.write_frame(&mut bytes);
        bytes
    };
    let passed: Vec<_> = net.tap.seen[TO_SERVER].iter().map(frame).collect();
    assert_eq!(passed, parts.iter().map(frame).collect::<Vec<_>>());
}

/// Breaks: strangers fill the memory with fragments that never come together, or fragments that overlap pass
/// to a host of a split connection, or end it.
#[test]
fn hostile_fragments_are_bounded_and_pass_nowhere() {
    let mut net = Net::new(Plan::new());
    let server = serve(&mut net, linux(), 0);
    let kept = record();
    net.connect(linux(), Program { closes: false, ..Program::new(1_000, [1, 2], &kept) });
    net.run_for(Span::from_secs(5));
    let most = MAX_DATAGRAMS.max(MAX_FRAGMENT_BYTES / FRAGMENT_COST) as u64;
    let mut random = RandomStream::new(1, "fragments");
    let mut injected = 0;
    for round in 0..20_000u32 {
        let parts =
            parts_of(random.below(60_000) as u16, round as u16, Bytes::from(vec![round as u8; 1_000]));
        // Some of the parts, some twice, some with other bytes at the same place.
        for part in parts {
            if random.chance(0.3) {
                continue;
            }
            net.inject(Gateway::LAN, part.clone());
            injected += 1;
            if random.chance(0.1) {
                net.inject(Gateway::WAN, part);
                injected += 1;
            }
        }
        assert!(net.gateway().held() <= most);
    }
    assert!(injected > 50_000);
    let held = net.gateway().held();
    assert!(held > 0);
    net.run_for(REASSEMBLY_TIME + Span::from_secs(1));
    assert_eq!(net.gateway().held(), 0, "they stay for good");
    // The connection goes on.
    net.with(net.client, &kept, |program, connection| {
        (program.sends, program.closes) = (300_000, true);
        program.write(connection);
    });
    net.run_for(Span::from_secs(60));
    assert_done(&server, 300_000);
    assert_eq!(net.totals().ended_by_error, 0);
}
