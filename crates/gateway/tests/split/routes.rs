//! What the router knows of its routes.

use crate::harness::*;
use farpace_gateway::{Gateway, RouteMtus, SharedFlows};
use farpace_host::ip::icmp::path_message;
use farpace_path::Cx;
use farpace_units::{Instant, Span};
use farpace_wire::{Below, Icmp, Packet};
use std::net::IpAddr;

/// Tells one MTU for each direction, and checks which hosts it is asked for.
struct KnownRoutes {
    hosts: [IpAddr; 2],
    mtus: [Option<u16>; 2],
}

impl RouteMtus for KnownRoutes {
    fn mtus(&mut self, _: Instant, lan: IpAddr, wan: IpAddr) -> [Option<u16>; 2] {
        assert_eq!([lan, wan], self.hosts);
        self.mtus
    }
}

/// Breaks: segments do not fit the routes between two hosts, or are shorter than both sides and routes allow.
#[test]
fn segments_fit_the_routes_of_the_router() {
    for (mtus, wanted) in [
        ([None, None], 1_500),
        ([Some(1_300), None], 1_300),
        ([Some(1_300), Some(1_000)], 1_000),
        ([Some(9_000), Some(9_000)], 1_500),
    ] {
        let mut net = Net::new(Plan::new());
        let hosts = net.addresses;
        let act = |gateway: &mut Gateway, _: &mut Cx<'_>| {
            gateway.set_routes(Box::new(KnownRoutes { hosts, mtus }));
        };
        net.world.call(net.gateway, &mut net.tap, act).unwrap();
        net.tap.on = true;
        let server = serve(&mut net, linux(), 100_000);
        let client = call(&mut net, linux(), 100_000);
        net.run_for(Span::from_secs(20));
        assert_done(&client, 100_000);
        assert_done(&server, 100_000);
        for way in [FROM_CLIENT, FROM_SERVER, TO_CLIENT, TO_SERVER] {
            let longest = net.tap.seen[way].iter().map(|packet| packet.network_len().get()).max();
            assert_eq!(longest, Some(wanted), "{mtus:?} {way}");
        }
    }
}

/// An error of the router about a packet that a gateway has sent.
fn too_big(packet: &Packet, mtu: u32) -> Packet {
    let ip = packet.ip().unwrap();
    let quoted = [packet.headers_from_ip(), &packet.payload()[..]].concat();
    let about = Icmp::TooBig { mtu, quoted: &quoted[..60] };
    let (src, dst) = packet.macs();
    let error = Below::new(dst, src, ip.addresses().reversed(), 64).icmp(0, &about).unwrap();
    assert!(path_message(&error).is_some());
    error
}

/// Breaks: an error of the router itself does not reach the leg that it is about, it reaches one although the
/// number that it quotes is not outstanding, or it is sent to the host twice.
#[test]
fn errors_of_the_router_reach_their_leg() {
    let mut net = Net::new(Plan::new());
    let shard = SharedFlows::alone();
    let config = Plan::new().config;
    *net.world.element_mut::<Gateway>(net.gateway).unwrap() = Gateway::in_shard(config, shard.clone());
    let _server = serve(&mut net, linux(), 0);
    let _client = call(&mut net, linux(), 50_000_000);
    net.run_for(Span::from_secs(3));
    net.tap.on = true;
    net.run_for(Span::from_millis(100));
    let sent = net.tap.seen[TO_SERVER].last().unwrap().clone();
    let mss = |net: &Net| net.gateway().flows(net.world.now()).next().unwrap().to_acceptor.mss;
    let before = mss(&net);
    let tell = |net: &mut Net, error: Packet| {
        shard.tell_of(error);
        let passed = net.totals().packets_passed;
        for (port, packet) in shard.handed_over() {
            let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.take_over(port, packet, cx);
            net.world.call(net.gateway, &mut net.tap, act).unwrap();
        }
        assert_eq!(net.totals().packets_passed, passed);
    };
    net.run_for(Span::from_secs(2));
    // By now it is acknowledged.
    tell(&mut net, too_big(&sent, 1_000));
    assert_eq!(mss(&net), before);
    net.tap.seen[TO_SERVER].clear();
    net.run_for(Span::from_millis(100));
    let sent = net.tap.seen[TO_SERVER].last().unwrap().clone();
    tell(&mut net, too_big(&sent, 1_000));
    assert_eq!(mss(&net), before - 500);
    net.run_for(Span::from_secs(1));
}
