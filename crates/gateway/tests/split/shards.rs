//! Gateways that share the connections of a router, as those of several threads do. The kernel gives all
//! packets of a connection to the same one, as a rule; here each packet comes to any of them.

use crate::harness::*;
use crate::limits::syn;
use farpace_gateway::{Gateway, GatewayConfig, GatewayTotals, MAX_HANDED_OVER, PolicyTable, SharedFlows};
use farpace_path::world::{ElementId, World};
use farpace_path::{BoundaryPort, Cx, Element, Inspection, Port};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;

/// What came by `Port(0)` leaves by any of the other ports, and the reverse.
struct Queues(u16);

impl Element for Queues {
    fn ports(&self) -> u16 {
        self.0 + 1
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        let to = match port.0 {
            0 => 1 + cx.rng().below(self.0.into()) as u16,
            _ => 0,
        };
        cx.emit(Port(to), packet);
    }
    fn on_wake(&mut self, _: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        Vec::new()
    }
}

/// Gateways between two hosts, with a network that spreads the packets over them.
pub struct ShardNet {
    pub net: Net,
    pub gateways: Vec<(ElementId, SharedFlows)>,
}

impl ShardNet {
    pub fn new(count: u16, plan: Plan) -> Self {
        let config = plan.config.clone();
        let (mut net, [lan, wan]) = Net::without_gateway(plan);
        let world = &mut net.world;
        let [near, far] = ["near", "far"].map(|name| world.add(name, Box::new(Queues(count))).unwrap());
        world.connect((lan, Port(1)), (near, Port(0))).unwrap();
        world.connect((far, Port(0)), (wan, Port(0))).unwrap();
        let mut gateways = Vec::new();
        for (n, flows) in (1..).zip(SharedFlows::all(count.into())) {
            let gateway = Box::new(Gateway::in_shard(config.clone(), flows.clone()));
            let gateway = world.add(&format!("gateway{n}"), gateway).unwrap();
            world.connect((near, Port(n)), (gateway, Gateway::LAN)).unwrap();
            world.connect((far, Port(n)), (gateway, Gateway::WAN)).unwrap();
            gateways.push((gateway, flows));
        }
        net.gateway = gateways[0].0;
        ShardNet { net, gateways }
    }

    /// Each gateway gets what was handed over to it, in the time that a thread takes to wake up.
    pub fn run_for(&mut self, span: Span) {
        let until = self.net.world.now() + span;
        while self.net.world.now() < until {
            let next = self.net.world.next_event_time().map_or(until, |at| at.max(self.net.world.now()));
            let step = (next + Span::from_micros(50)).min(until);
            self.net.world.run_until(step, &mut self.net.tap).unwrap();
            for (gateway, flows) in &self.gateways {
                for (port, packet) in flows.handed_over() {
                    let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| gateway.take_over(port, packet, cx);
                    self.net.world.call(*gateway, &mut self.net.tap, act).unwrap();
                }
            }
        }
        self.net.world.check().unwrap();
    }

    /// Acts on each gateway now.
    pub fn on_each(&mut self, act: impl Fn(&mut Gateway, &mut Cx<'_>)) {
        for (gateway, _) in &self.gateways {
            self.net.world.call(*gateway, &mut self.net.tap, &act).unwrap();
        }
    }

    /// The process is killed, with what waits between its threads, and another takes its place.
    pub fn restart(&mut self, config: &GatewayConfig) {
        let fresh = SharedFlows::all(self.gateways.len());
        for ((gateway, own), flows) in self.gateways.iter_mut().zip(fresh) {
            let new = Gateway::in_shard(config.clone(), flows.clone());
            *self.net.world.element_mut::<Gateway>(*gateway).unwrap() = new;
            *own = flows;
        }
    }

    pub fn totals(&self) -> GatewayTotals {
        let each = self.gateways.iter();
        let each = each.map(|(id, _)| self.net.world.element::<Gateway>(*id).unwrap().totals());
        each.reduce(GatewayTotals::with).unwrap()
    }
}

/// Breaks: packets of a connection that come to the gateway of another thread are passed unsplit, split anew,
/// lost or sent to and fro; or a connection is counted twice, or stays in the common table.
#[test]
fn each_connection_is_in_one_gateway() {
    for (count, seed) in [(2, 1), (3, 2), (8, 3)] {
        let plan = Plan { delay: Span::from_millis(100), seed, ..Plan::new() };
        let mut net = ShardNet::new(count, plan);
        let servers = serve_each(&mut net.net, linux(), 200_000);
        let clients: Vec<_> = (0..20).map(|_| call(&mut net.net, linux(), 300_000)).collect();
        net.run_for(Span::from_secs(3));
        let totals = net.totals();
        assert_eq!(totals.split, 20);
        net.run_for(Span::from_secs(57));
        clients.iter().for_each(|client| assert_done(client, 200_000));
        servers.borrow().iter().for_each(|server| assert_done(server, 300_000));
        assert_eq!(servers.borrow().len(), 20);
        let totals = net.totals();
        assert_eq!((totals.split, totals.connections, totals.half_open), (20, 0, 0));
        assert_eq!((totals.memory, totals.passed_short), (ByteCount::ZERO, 0));
        assert_eq!((totals.packets_dropped, totals.ended_by_error), (0, 0));
        // Only the last acknowledgments of a connection find it gone.
        assert!(totals.packets_passed <= 5 * totals.split, "{totals:?}");
        assert!(totals.packets_handed_over > totals.packets_split / 4, "{totals:?}");
        assert!(net.gateways.iter().all(|(_, shard)| shard.connections() == 0));
        let used = net
            .gateways
            .iter()
            .filter(|(id, _)| net.net.world.element::<Gateway>(*id).unwrap().totals().split > 0);
        assert!(used.count() > 1, "one gateway has them all");
    }
}

/// Breaks: each thread admits as many connections as all of them may have, or hands over more packets than
/// another one can take.
#[test]
fn limits_hold_for_all_gateways_together() {
    let shards = SharedFlows::all(2);
    let mut world = World::new(1);
    let sink = |world: &mut World, name: &str| world.add(name, Box::new(BoundaryPort::default())).unwrap();
    let ids: Vec<_> = shards
        .iter()
        .enumerate()
        .map(|(n, shard)| {
            let config = GatewayConfig {
                max_connections: 5,
                ..GatewayConfig::new(PolicyTable::new(vec![], policy()))
            };
            let id = world.add(&format!("g{n}"), Box::new(Gateway::in_shard(config, shard.clone()))).unwrap();
            let lan = sink(&mut world, &format!("l{n}"));
            let wan = sink(&mut world, &format!("w{n}"));
            world.connect((id, Gateway::LAN), (lan, Port(0))).unwrap();
            world.connect((id, Gateway::WAN), (wan, Port(0))).unwrap();
            id
        })
        .collect();
    let mut give = |id: ElementId, packet: Packet| {
        let act = |gateway: &mut Gateway, cx: &mut Cx<'_>| {
            cx.made();
            gateway.on_packet(Gateway::LAN, packet, cx);
        };
        world.call(id, &mut (), act).unwrap();
    };
    for n in 0..20 {
        give(ids[n as usize % 2], syn(n));
    }
    assert_eq!(shards[0].connections(), 5);
    // A flood of packets of a connection of the first to the second, whose thread does not get to it.
    for _ in 0..2 * MAX_HANDED_OVER {
        give(ids[1], syn(0));
    }
    assert_eq!(shards[0].handed_over().len(), MAX_HANDED_OVER);
    let totals = world.element::<Gateway>(ids[1]).unwrap().totals();
    assert_eq!(totals.packets_dropped, MAX_HANDED_OVER as u64);
    assert!(shards[1].handed_over().is_empty());
}
