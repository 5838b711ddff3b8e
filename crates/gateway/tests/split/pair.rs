//! Two gateways with paths between them, and a host behind each:
//! `host - lan - gate - gateway - link to the peer - layer = paths = layer - ... - host`.

use crate::harness::{Program, SERVER_PORT, assert_done, linux, policy, record};
use farpace_gateway::{Gateway, GatewayConfig, GatewayTotals, LinkEnd, PeerLink, PolicyTable};
use farpace_host::{Application, Host, ListenSettings, Secret};
use farpace_link::multi_nic::{MultiNic, MultiNicConfig, NicSpec, Resequence};
use farpace_path::world::{ElementId, Observer, WireId, World};
use farpace_path::{
    Cx, DropReason, DropTail, Duplicate, DuplicateDirection, Element, Framing, Inspection, Link, LinkConfig,
    Loss, LossDirection, ManagedLink, ManagedLinkDirection, Port, Prefix, QueueLimit, RateStep, Reorder,
    ReorderDirection, Schedule,
};
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Span};
use farpace_wire::{MacAddr, NicKind, Packet};
use std::net::{IpAddr, Ipv4Addr};

/// The rate that a layer takes its tunnels for.
const USUAL_RATE: Rate = Rate::from_mbit(1_000);
/// The longest packet inside a tunnel.
pub const TUNNEL_MTU: u16 = 1_420;

/// A place where a cable can be cut, in either direction.
pub struct CableGate {
    /// By the port where packets enter.
    pub open: [bool; 2],
    /// What is behind it does not run.
    pub is_stopped: bool,
}

impl CableGate {
    fn new() -> Box<CableGate> {
        Box::new(CableGate { open: [true; 2], is_stopped: false })
    }
    pub fn lets_in(&self, port: Port) -> bool {
        self.open[usize::from(port.0)] && !self.is_stopped
    }
}

impl Element for CableGate {
    fn ports(&self) -> u16 {
        2
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        match self.lets_in(port) {
            true => cx.emit(Port(1 - port.0), packet),
            false => cx.drop(packet, DropReason::Outage),
        }
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

/// The layer of a process that can be killed: what waits there is gone then.
pub struct MortalLayer {
    inner: Option<MultiNic>,
    ports: u16,
    gone: u64,
}

impl MortalLayer {
    pub fn layer(&self) -> Option<&MultiNic> {
        self.inner.as_ref()
    }
    fn replace(&mut self, layer: Option<MultiNic>) {
        self.gone = self.held();
        self.inner = layer;
    }
}

impl Element for MortalLayer {
    fn ports(&self) -> u16 {
        self.ports
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        match &mut self.inner {
            Some(layer) => layer.on_packet(port, packet, cx),
            None => cx.drop(packet, DropReason::Outage),
        }
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        if let Some(layer) = &mut self.inner {
            layer.on_wake(cx);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner.as_ref()?.deadline()
    }
    fn held(&self) -> u64 {
        self.gone + self.inner.as_ref().map_or(0, Element::held)
    }
    fn inspect(&self) -> Inspection {
        self.inner.as_ref().map(Element::inspect).unwrap_or_default()
    }
}

/// What a path does to frames, in each direction.
#[derive(Clone, Debug)]
pub struct PathPlan {
    /// Rates and delays over time, and after which time they repeat.
    pub steps: Vec<RateStep>,
    pub period: Span,
    pub queue: ByteCount,
    pub loss: f64,
    pub duplicate: f64,
    pub reorder: f64,
}

impl PathPlan {
    pub fn steady(rate: Rate, delay: Span) -> Self {
        let queue = ByteCount::new((rate.bits_per_sec() / 8 / 5).max(30_000));
        let steps = vec![RateStep { at: Span::ZERO, rate: Some(rate), delay }];
        PathPlan { steps, period: Span::from_secs(60), queue, loss: 0.0, duplicate: 0.0, reorder: 0.0 }
    }
}

/// One of the two sites.
#[derive(Clone, Copy)]
pub struct PairSite {
    pub host: ElementId,
    pub gate: ElementId,
    pub gateway: ElementId,
    link: ElementId,
    layer: ElementId,
    end: LinkEnd,
    prefix: Prefix,
}

/// The network of a test.
pub struct PairNet {
    pub world: World,
    pub sites: [PairSite; 2],
    /// One for each path.
    pub cuts: Vec<ElementId>,
    /// Where packets enter both hosts.
    pub wires: [WireId; 2],
    configs: [GatewayConfig; 2],
    /// Each start of a process has another.
    starts: u64,
}

/// The addresses of both hosts.
pub const ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1))];
/// Others of the same hosts.
pub const SECOND_ADDRESSES: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(10, 1, 9, 1)), IpAddr::V4(Ipv4Addr::new(10, 2, 9, 1))];

fn mac(site: usize, path: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, site as u8 + 1, path as u8])
}

fn new_host(seed: u64, site: usize) -> Host {
    let secret = Secret::from_stream(&mut RandomStream::new(seed, &format!("host.{site}")));
    let mut host = Host::new(ADDRESSES[site], secret);
    host.add_address(SECOND_ADDRESSES[site]);
    host
}

fn new_layer(now: Instant, site: &PairSite, paths: usize, start: u64) -> MultiNic {
    let config =
        MultiNicConfig { resequence: (paths > 1).then(Resequence::default), ..MultiNicConfig::default() };
    let own = site.end.mac.0[4] as usize - 1;
    let nic = |path| NicSpec { mac: mac(own, path), rate: USUAL_RATE, kind: NicKind::of_rate(USUAL_RATE) };
    let nics: Vec<NicSpec> = (0..paths).map(nic).collect();
    let lists = RandomStream::new(start, "lists");
    let mut layer = MultiNic::new(now, &config, &nics, &[site.end.address.into()], lists);
    layer.prioritise_datagrams();
    layer.limit_queue_time(Span::from_millis(10));
    layer
}

fn new_link(now: Instant, own: &PairSite, peer: &PairSite) -> PeerLink {
    PeerLink::new(now, own.end, peer.end, vec![own.prefix], vec![peer.prefix])
}

impl PairNet {
    pub fn new(seed: u64, configs: [GatewayConfig; 2], paths: &[PathPlan]) -> Self {
        let mut world = World::new(seed);
        let mut wires = Vec::new();
        let mut sites = [0, 1].map(|n: usize| {
            let name = |what: &str| format!("{what}.{n}");
            let host = world.add(&name("host"), Box::new(new_host(seed, n))).unwrap();
            let lan = LinkConfig {
                rate: Some(Rate::from_mbit(1_000)),
                delay: Span::from_micros(50),
                queue: QueueLimit::Bytes(ByteCount::new(1 << 20)),
                framing: Framing::ETHERNET,
            };
            let lan = world.add(&name("lan"), Box::new(Link::symmetric(lan).unwrap())).unwrap();
            let gate = world.add(&name("gate"), CableGate::new()).unwrap();
            let gateway = Box::new(Gateway::new(configs[n].clone()));
            let gateway = world.add(&name("gateway"), gateway).unwrap();
            let end = LinkEnd { mac: mac(n, 0), address: Ipv4Addr::new(100, 64, 0, n as u8 + 1) };
            let prefix = format!("10.{}.0.0/16", n + 1).parse().unwrap();
            // The link and the layer know the other site, and follow below.
            PairSite { host, gate, gateway, link: lan, layer: lan, end, prefix }
        });
        for n in 0..2 {
            let (own, peer) = (sites[n], sites[1 - n]);
            let link = Box::new(new_link(Instant::ZERO, &own, &peer));
            let link = world.add(&format!("peer.{n}"), link).unwrap();
            let inner = Some(new_layer(Instant::ZERO, &own, paths.len(), seed * 2 + n as u64));
            let layer = MortalLayer { inner, ports: paths.len() as u16 + 1, gone: 0 };
            let layer = world.add(&format!("layer.{n}"), Box::new(layer)).unwrap();
            let lan = own.link;
            for (near, far) in [
                ((own.host, Port(0)), (lan, Port(0))),
                ((lan, Port(1)), (own.gate, Port(0))),
                ((own.gate, Port(1)), (own.gateway, Gateway::LAN)),
                ((own.gateway, Gateway::WAN), (link, PeerLink::GATEWAY)),
                ((link, PeerLink::PATHS), (layer, Port(0))),
            ] {
                world.connect(near, far).unwrap();
            }
            wires.push(world.observe((lan, Port(0))).unwrap());
            (sites[n].link, sites[n].layer) = (link, layer);
        }
        let mut cuts = Vec::new();
        for (number, plan) in (1_u16..).zip(paths) {
            let mut add = |what: &str, element| world.add(&format!("{what}.p{number}"), element).unwrap();
            let direction = || {
                let schedule = Schedule::new(plan.steps.clone(), Some(plan.period)).unwrap();
                let queue = DropTail::new(QueueLimit::Bytes(plan.queue)).unwrap();
                ManagedLinkDirection::new(Box::new(queue), schedule, Framing::ETHERNET)
            };
            let cut = add("cut", CableGate::new() as Box<dyn Element>);
            let loss = Loss::new(LossDirection::new(plan.loss), LossDirection::new(plan.loss));
            let loss = add("loss", Box::new(loss));
            let duplicate = || DuplicateDirection::new(plan.duplicate);
            let duplicate = add("duplicate", Box::new(Duplicate::new(duplicate(), duplicate())));
            let reorder = || ReorderDirection::new(plan.reorder, Span::from_millis(20));
            let reorder = add("reorder", Box::new(Reorder::new(reorder(), reorder())));
            let link = add("link", Box::new(ManagedLink::new(direction(), direction())));
            for (near, far) in [
                ((sites[0].layer, Port(number)), (cut, Port(0))),
                ((cut, Port(1)), (loss, Port(0))),
                ((loss, Port(1)), (duplicate, Port(0))),
                ((duplicate, Port(1)), (reorder, Port(0))),
                ((reorder, Port(1)), (link, Port(0))),
                ((link, Port(1)), (sites[1].layer, Port(number))),
            ] {
                world.connect(near, far).unwrap();
            }
            cuts.push(cut);
        }
        let wires = [wires[0], wires[1]];
        PairNet { world, sites, cuts, wires, configs, starts: seed * 2 + 2 }
    }

    pub fn set_gate(&mut self, gate: ElementId, open: [bool; 2]) {
        self.world.element_mut::<CableGate>(gate).unwrap().open = open;
    }

    /// Nothing comes to a gateway from its LAN, nor leaves there.
    pub fn hold(&mut self, site: usize, is_held: bool) {
        self.world.element_mut::<CableGate>(self.sites[site].gate).unwrap().is_stopped = is_held;
    }

    /// The process of a site is gone. Nothing passes until it [starts](PairNet::start).
    pub fn stop(&mut self, site: usize) {
        let own = self.sites[site];
        self.hold(site, true);
        self.world.element_mut::<MortalLayer>(own.layer).unwrap().replace(None);
    }

    /// Another process takes its place.
    pub fn start(&mut self, site: usize) {
        let (own, peer, now) = (self.sites[site], self.sites[1 - site], self.world.now());
        self.starts += 1;
        let (layer, config) =
            (new_layer(now, &own, self.cuts.len(), self.starts), self.configs[site].clone());
        *self.world.element_mut::<Gateway>(own.gateway).unwrap() = Gateway::new(config);
        *self.world.element_mut::<PeerLink>(own.link).unwrap() = new_link(now, &own, &peer);
        self.world.element_mut::<MortalLayer>(own.layer).unwrap().replace(Some(layer));
        self.hold(site, false);
    }

    /// The host of a site is started anew: it knows no connection any more, and says nothing of that.
    pub fn restart_host(&mut self, site: usize) {
        self.starts += 1;
        let id = self.sites[site].host;
        *self.world.element_mut::<Host>(id).unwrap() = new_host(self.starts, site);
    }

    /// A path leads to the peer, as the layer of a site sees it.
    pub fn is_up(&self, site: usize) -> bool {
        let peer = mac(1 - site, 0);
        self.layer(site).is_some_and(|layer| layer.paths().working(layer.neighbour(peer)).next().is_some())
    }

    /// Works on a gateway.
    pub fn on_gateway(
        &mut self,
        site: usize,
        observer: &mut dyn Observer,
        act: impl FnOnce(&mut Gateway, &mut Cx<'_>),
    ) {
        self.world.call(self.sites[site].gateway, observer, act).unwrap();
    }

    pub fn gateway(&self, site: usize) -> &Gateway {
        self.world.element::<Gateway>(self.sites[site].gateway).unwrap()
    }

    pub fn totals(&self) -> [GatewayTotals; 2] {
        [0, 1].map(|site| self.gateway(site).totals())
    }

    pub fn layer(&self, site: usize) -> Option<&MultiNic> {
        self.world.element::<MortalLayer>(self.sites[site].layer).unwrap().layer()
    }

    /// Frames that wait in a layer.
    pub fn frames_held(&self, site: usize) -> u64 {
        self.layer(site).map_or(0, Element::held)
    }

    /// The host of a site makes a program for each connection.
    pub fn listen(&mut self, site: usize, make: impl Fn() -> Box<dyn Application> + 'static) {
        let host = self.world.element_mut::<Host>(self.sites[site].host).unwrap();
        host.listen(SERVER_PORT, ListenSettings::new(linux()), make).unwrap();
    }

    /// The host of a site opens a connection now, from `port` if that is not 0.
    /// False: it has that port still.
    pub fn connect(&mut self, site: usize, port: u16, to: IpAddr, program: Box<dyn Application>) -> bool {
        let now = self.world.now();
        let host = self.world.element_mut::<Host>(self.sites[site].host).unwrap();
        host.connect_from(Some(port), now, to, SERVER_PORT, linux(), None, program).is_ok()
    }

    fn run_for(&mut self, span: Span) {
        self.world.run_until(self.world.now() + span, &mut ()).unwrap();
    }
}

/// A pair over steady paths that has found them: rates in kbit/s, and delays in ms.
fn steady_pair(paths: &[(u64, u64)]) -> PairNet {
    let mut config = GatewayConfig::new(PolicyTable::new(vec![], policy()));
    config.wan_mtu = TUNNEL_MTU;
    let plan = |(kbit, ms): &(u64, u64)| {
        PathPlan::steady(Rate::from_bits_per_sec(1_000 * kbit), Span::from_millis(*ms))
    };
    let plans: Vec<PathPlan> = paths.iter().map(plan).collect();
    let mut net = PairNet::new(1, [config.clone(), config], &plans);
    net.run_for(Span::from_secs(5));
    net
}

/// Breaks: an outage that a TCP survives ends connections that were just being opened, though their server
/// has answered.
#[test]
fn an_outage_within_a_handshake_ends_no_connection() {
    let mut net = steady_pair(&[(50_000, 20)]);
    let (client, server) = (record(), record());
    let kept = server.clone();
    net.listen(1, move || Box::new(Program::new(1_000, [2, 1], &kept)));
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(1_000, [1, 2], &client))));
    // The answer is under way; what the client says to it gets lost.
    net.run_for(Span::from_millis(30));
    net.set_gate(net.cuts[0], [false, true]);
    net.run_for(Span::from_secs(12));
    assert!(client.borrow().connected && client.borrow().ended.is_none() && !server.borrow().connected);
    net.set_gate(net.cuts[0], [true; 2]);
    net.run_for(Span::from_secs(60));
    assert_done(&client, 1_000);
    assert_done(&server, 1_000);
}

/// Breaks: a pair carries less than nine tenths of what its paths carry together.
#[test]
fn bulk_gets_the_sum_of_both_paths() {
    let mut net = steady_pair(&[(50_000, 20), (20_000, 50)]);
    let server = record();
    let (bytes, kept) = (200_000_000, server.clone());
    net.listen(1, move || Box::new(Program::new(0, [2, 1], &kept)));
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(bytes, [1, 2], &record()))));
    net.run_for(Span::from_secs(5));
    let before = server.borrow().received;
    net.run_for(Span::from_secs(10));
    let rate = (server.borrow().received - before) as f64 * 8.0 / 10.0;
    println!("{:.1} Mbit/s of payload", rate / 1e6);
    assert!(rate >= 0.9 * 70e6, "{rate} bit/s");
}

/// Breaks: bulk stays on a thin path, or its congestion control takes the way to the wide one for a queue and
/// ends its start; or a short exchange after it waits for the round trip of the widest path though a shorter
/// one has room for it.
#[test]
fn bulk_takes_the_wide_path_and_a_little_the_short_one() {
    let mut net = steady_pair(&[(2_000, 15), (50_000, 280)]);
    let (bulk, short) = (record(), record());
    let makes = std::cell::RefCell::new(vec![short.clone(), bulk.clone()]);
    net.listen(1, move || Box::new(Program::new(3_000, [2, 1], &makes.borrow_mut().pop().expect("two"))));
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(60_000_000, [1, 2], &record()))));
    net.run_for(Span::from_secs(9));
    let before = bulk.borrow().received;
    net.run_for(Span::from_secs(4));
    let rate = (bulk.borrow().received - before) as f64 * 8.0 / 4.0;
    println!("{:.1} Mbit/s of payload", rate / 1e6);
    assert!(rate >= 0.85 * 50e6, "{rate} bit/s");
    net.run_for(Span::from_secs(10));
    assert_done(&bulk, 60_000_000);
    let client = record();
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(1_000, [1, 2], &client))));
    net.run_for(Span::from_millis(200));
    assert_done(&client, 3_000);
    assert_done(&short, 1_000);
}

/// Breaks: a terminal, or a small object, waits behind a bulk transfer of others that fills all paths.
#[test]
fn a_little_does_not_wait_behind_bulk() {
    let mut net = steady_pair(&[(20_000, 15), (50_000, 280)]);
    let (bulk, short) = (record(), record());
    let makes = std::cell::RefCell::new(vec![short.clone(), bulk.clone()]);
    net.listen(1, move || Box::new(Program::new(3_000, [2, 1], &makes.borrow_mut().pop().expect("two"))));
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(200_000_000, [1, 2], &record()))));
    net.run_for(Span::from_secs(10));
    let (client, before) = (record(), bulk.borrow().received);
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(1_000, [1, 2], &client))));
    net.run_for(Span::from_millis(200));
    assert_done(&client, 3_000);
    assert_done(&short, 1_000);
    let rate = (bulk.borrow().received - before) as f64 * 8.0 / 0.2;
    assert!(rate >= 0.8 * 65e6, "the bulk goes on: {rate} bit/s");
}

/// Breaks: the probes of a path that is much slower than the NICs at its ends leave nothing of it to others,
/// and do not arrive either, so that it fails again and again.
#[test]
fn probes_leave_a_slow_path_to_others() {
    let mut net = steady_pair(&[(200, 300)]);
    let (client, server) = (record(), record());
    let kept = server.clone();
    net.listen(1, move || Box::new(Program::new(100_000, [2, 1], &kept)));
    assert!(net.connect(0, 0, ADDRESSES[1], Box::new(Program::new(300_000, [1, 2], &client))));
    net.run_for(Span::from_secs(45));
    assert_done(&client, 100_000);
    assert_done(&server, 300_000);
}
