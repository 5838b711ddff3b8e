//! The gateway as an element of a world.

use crate::budget::Budget;
use crate::comparison::{Comparison, ComparisonGroup, ComparisonResult, Sample};
use crate::drain::Drain;
use crate::far_probes::{FarProbe, FarProbes};
use crate::flow::{Ends, FlowSetup, SplitFlow, Verdict};
use crate::ledger::{FlowLedger, KeptLedger};
use crate::limits::{DEFAULT_MEMORY, MAX_CONNECTIONS, MAX_HALF_OPEN};
use crate::offer::LegLimits;
use crate::policy::{Action, PolicyTable};
use crate::record::{EndedFlow, EndedFlows, FlowEnd};
use crate::route_mtus::RouteMtus;
use crate::shared_flows::{ConnectionKey, SharedFlows, connection_key};
use crate::view::{FlowView, GatewaySide, GatewayTotals};
use farpace_host::ip::fragments::{FragmentDrop, FragmentReassembly};
use farpace_host::ip::icmp::{SoftError, path_message};
use farpace_host::is_host_address;
use farpace_path::{Cx, DropReason, Element, Inspection, Port};
use farpace_tcp::config::Config;
use farpace_tcp::{OutgoingSegment, PathError};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;
use farpace_wire::ip::PROTOCOL_TCP;
use farpace_wire::tcp::TcpFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Packets that arrive together are taken together: what they call for is sent so much later.
const TOGETHER: Span = Span::from_nanos(1);

/// Configuration of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// Which connections are split, and how.
    pub policies: PolicyTable,
    /// MTU of the LAN side, in bytes.
    pub lan_mtu: u16,
    /// MTU of the WAN side, in bytes.
    pub wan_mtu: u16,
    /// Longest super-segment that both devices take, in bytes of an IP packet; zero: none.
    pub super_segment: u32,
    /// Memory of all connections.
    pub memory: ByteCount,
    /// Split connections at most.
    pub max_connections: usize,
    /// Connections at most whose handshake is not complete.
    pub max_half_open: usize,
    /// Share of the connections that could be split and pass unsplit, for
    /// [`take_results`](Gateway::take_results): 0 to [`MAX_CONTROL_GROUP`](crate::MAX_CONTROL_GROUP).
    pub control_group: f64,
    /// Connections that have ended are kept for [`take_ended`](Gateway::take_ended).
    pub keep_ended: bool,
}

impl GatewayConfig {
    /// With MTUs of 1500 bytes, and the limits of [`limits`](crate::limits).
    pub fn new(policies: PolicyTable) -> Self {
        GatewayConfig {
            policies,
            lan_mtu: 1500,
            wan_mtu: 1500,
            super_segment: 0,
            memory: DEFAULT_MEMORY,
            max_connections: MAX_CONNECTIONS,
            max_half_open: MAX_HALF_OPEN,
            control_group: 0.0,
            keep_ended: false,
        }
    }
}

/// A split-TCP gateway between a LAN side ([`Port(0)`](Gateway::LAN)) and a WAN side
/// ([`Port(1)`](Gateway::WAN)).
///
/// The contract:
/// * A connection is split when its SYN passes. The leg to the host that it is sent to repeats the SYN; the
///   host that sent it is answered when the other has answered. Both legs have the numbers, the addresses
///   and the options of the hosts.
/// * What is not split passes unchanged: other protocols, connections whose SYN was not seen, connections
///   beyond a limit, and fragments, except of TCP between hosts that have a split connection. Those are put
///   together, within the limits of [`fragments`](farpace_host::ip::fragments): a host that put them together
///   itself would acknowledge what its leg has never sent.
/// * Each byte that a host has sent reaches the other host once and in order, or the connection ends with a
///   reset.
/// * After [`drain`](Gateway::drain) new connections pass, and each split connection is handed over to its
///   hosts as soon as all that was acknowledged to one was acknowledged by the other.
pub struct Gateway {
    config: GatewayConfig,
    flows: Vec<Option<Box<SplitFlow>>>,
    free: Vec<usize>,
    index: BTreeMap<ConnectionKey, usize>,
    timers: BTreeSet<(Instant, usize)>,
    /// Flows with packets whose answers wait for those that came together with them.
    touched: Vec<usize>,
    touched_until: Option<Instant>,
    budget: Budget,
    shard: SharedFlows,
    fragments: FragmentReassembly,
    comparison: Comparison,
    routes: Option<Box<dyn RouteMtus>>,
    ledger: KeptLedger,
    far_probes: FarProbes,
    ended: EndedFlows,
    totals: GatewayTotals,
    half_open: usize,
    drain: Option<Drain>,
    batch: Vec<OutgoingSegment>,
    last_configs: [Option<Arc<Config>>; 2],
}

/// How a packet has come to a gateway.
#[derive(Clone, Copy)]
enum Route {
    /// By its own port.
    Direct,
    /// From another gateway.
    HandedOver,
}

impl Gateway {
    /// The port of the LAN side.
    pub const LAN: Port = Port(0);
    /// The port of the WAN side.
    pub const WAN: Port = Port(1);
    /// Where [errors of the router itself](SharedFlows::tell_of) seem to come from. Nothing is connected
    /// there.
    pub const ROUTER: Port = Port(2);

    /// A gateway without connections.
    pub fn new(config: GatewayConfig) -> Self {
        Gateway::in_shard(config, SharedFlows::alone())
    }

    /// One of the gateways that share the connections of a router. Limits apply to all of them together.
    pub fn in_shard(config: GatewayConfig, shard: SharedFlows) -> Self {
        Gateway {
            budget: Budget::new(config.memory, shard.clone()),
            shard,
            fragments: FragmentReassembly::default(),
            comparison: Comparison::default(),
            routes: None,
            ledger: KeptLedger::default(),
            far_probes: FarProbes::default(),
            ended: EndedFlows::default(),
            config,
            flows: Vec::new(),
            free: Vec::new(),
            index: BTreeMap::new(),
            timers: BTreeSet::new(),
            touched: Vec::new(),
            touched_until: None,
            totals: GatewayTotals::default(),
            half_open: 0,
            drain: None,
            batch: Vec::new(),
            last_configs: [None, None],
        }
    }

    /// Takes another configuration. Connections that are split already keep theirs.
    pub fn reconfigure(&mut self, config: GatewayConfig) {
        self.budget.set_limit(config.memory);
        if config.control_group <= 0.0 {
            // Nobody takes results any more, and with them what is silent.
            self.comparison = Comparison::default();
        }
        if !config.keep_ended {
            self.ended = EndedFlows::default();
        }
        self.config = config;
    }

    /// Sets the MTU of the WAN side for connections that are opened from now on.
    pub fn set_wan_mtu(&mut self, mtu: u16) {
        self.config.wan_mtu = mtu;
    }

    /// Sets the MTU of both sides for connections that are opened from now on.
    pub fn set_mtus(&mut self, lan: u16, wan: u16) {
        (self.config.lan_mtu, self.config.wan_mtu) = (lan, wan);
    }

    /// From now on segments of new connections fit the routes of the router.
    pub fn set_routes(&mut self, routes: Box<dyn RouteMtus>) {
        self.routes = Some(routes);
    }

    /// From now on new connections pass, and split ones are handed over to their hosts when nothing of them
    /// is undelivered.
    pub fn drain(&mut self, cx: &mut Cx<'_>) {
        self.set_drain(Some(Drain::All), cx);
    }

    /// Drains so from now on; none: connections are split again.
    pub fn set_drain(&mut self, drain: Option<Drain>, cx: &mut Cx<'_>) {
        self.drain = drain;
        for slot in 0..self.flows.len() {
            self.service(slot, cx);
        }
    }

    /// Nothing comes to the gateway any more: the hosts go on with each other. Connections of which something
    /// is undelivered end: the host on the LAN side gets a reset at once. The other host gets it, and is
    /// asked whether it is there of the connections that go on, by the LAN side: the router may know a way.
    /// Both happen again when [the peer is back](Gateway::peer_is_back).
    pub fn abandon(&mut self, cx: &mut Cx<'_>) {
        for slot in 0..self.flows.len() {
            let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) else { continue };
            let (is_whole, now) = (flow.can_be_handed_over(), cx.now());
            let ask = |packet: Packet| self.far_probes.ask(now, Self::LAN, packet);
            if is_whole {
                flow.probe_wan(now, &mut self.batch, ask);
            } else {
                flow.reset(now, GatewaySide::Wan, &mut self.batch, ask);
                flow.reset(now, GatewaySide::Lan, &mut self.batch, |packet| {
                    cx.made();
                    cx.emit(Self::LAN, packet);
                });
            }
            self.totals.handed_over += u64::from(is_whole);
            self.totals.ended_by_error += u64::from(!is_whole);
            let end = if is_whole { FlowEnd::HandedOver } else { FlowEnd::Abandoned };
            self.remove(slot, Some(end), cx.now());
        }
    }

    /// A path leads to the peer again. It may have died meanwhile with bytes of connections, and their hosts
    /// behind it were reset: hosts here hear of it by the answer to a question.
    pub fn peer_is_back(&mut self, cx: &mut Cx<'_>) {
        self.far_probes.begin(cx.now());
        self.ask_far_hosts(cx);
    }

    fn ask_far_hosts(&mut self, cx: &mut Cx<'_>) {
        if self.far_probes.is_round_due(cx.now()) {
            self.far_probes.begin_round(cx.now(), Self::WAN, self.index.values().copied());
        }
        for probe in self.far_probes.due(cx.now()) {
            match probe {
                FarProbe::Packet(port, packet) => {
                    cx.made();
                    cx.emit(port, packet);
                }
                FarProbe::Flow(slot) => {
                    if let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) {
                        flow.probe_wan(cx.now(), &mut self.batch, |packet| {
                            cx.made();
                            cx.emit(Self::WAN, packet);
                        });
                    }
                    self.service(slot, cx);
                }
            }
        }
    }

    /// From now on connections are written to a ledger.
    pub fn set_ledger(&mut self, ledger: Box<dyn FlowLedger>) {
        self.ledger.0 = Some(ledger);
    }

    /// The gateway is about to end: connections of which something is undelivered end, with a reset for both
    /// hosts. The others are handed over.
    pub fn cut(&mut self, cx: &mut Cx<'_>) {
        for slot in 0..self.flows.len() {
            let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) else { continue };
            if flow.can_be_handed_over() {
                self.totals.handed_over += 1;
                self.remove(slot, Some(FlowEnd::HandedOver), cx.now());
                continue;
            }
            for side in [GatewaySide::Lan, GatewaySide::Wan] {
                flow.reset(cx.now(), side, &mut self.batch, |packet| {
                    cx.made();
                    cx.emit(port_of(side), packet);
                });
            }
            self.totals.cut += 1;
            self.remove(slot, Some(FlowEnd::Cut), cx.now());
        }
    }

    /// A packet of a connection of this gateway came to another one, which has handed it over; or an error of
    /// the router is about one.
    pub fn take_over(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        cx.made();
        self.totals.packets_handed_over += 1;
        // Errors of the router come to the first gateway, whichever has the connection.
        let route = if port == Self::ROUTER { Route::Direct } else { Route::HandedOver };
        self.on_ip(port, packet, route, cx);
    }

    /// What connections of the comparison have done that have ended since the last call.
    pub fn take_results(&mut self, now: Instant) -> Vec<ComparisonResult> {
        self.comparison.take(now)
    }

    /// The connections that have ended since the last call, in the order of their ends, and how many more had
    /// no room. Nothing if the configuration [keeps none](GatewayConfig::keep_ended).
    pub fn take_ended(&mut self) -> (Vec<EndedFlow>, u64) {
        self.ended.take()
    }

    /// The counters. Memory is that of all gateways that share connections.
    pub fn totals(&self) -> GatewayTotals {
        let zero = [self.totals.wan_bytes_sent, self.totals.wan_bytes_retransmitted];
        let [sent, again] = self.flows.iter().flatten().fold(zero, |sum, flow| add(sum, flow.wan_sent()));
        GatewayTotals {
            wan_bytes_sent: sent,
            wan_bytes_retransmitted: again,
            connections: self.index.len(),
            half_open: self.half_open,
            memory: self.budget.held(),
            memory_peak: self.budget.peak(),
            memory_limit: self.budget.limit(),
            draining: self.drain.is_some(),
            moved: self.flows.iter().flatten().fold(self.totals.moved, |sum, flow| add(sum, flow.moved())),
            ..self.totals
        }
    }

    /// The split connections, in no order.
    pub fn flows(&self, now: Instant) -> impl Iterator<Item = FlowView> + '_ {
        self.flows.iter().flatten().map(move |flow| flow.view(now))
    }

    /// The split connections with the highest rates, so many at most; of equal ones those that have moved the
    /// most bytes.
    pub fn busiest(&self, now: Instant, most: usize) -> Vec<FlowView> {
        let rank = |flow: &SplitFlow| FlowView::rank(flow.rates(now), flow.moved());
        let flows = self.flows.iter().enumerate();
        let mut ranked: Vec<_> =
            flows.filter_map(|(slot, flow)| flow.as_ref().map(|flow| (rank(flow), slot))).collect();
        if most < ranked.len() {
            ranked.select_nth_unstable(most);
            ranked.truncate(most);
        }
        ranked.sort_unstable();
        let flow = |slot: usize| self.flows.get(slot).and_then(Option::as_ref);
        ranked.into_iter().filter_map(|(_, slot)| flow(slot)).map(|flow| flow.view(now)).collect()
    }

    fn on_ip(&mut self, port: Port, packet: Packet, route: Route, cx: &mut Cx<'_>) {
        let Some(ip) = packet.ip() else { return self.pass(port, packet, cx) };
        if ip.dst().is_multicast() {
            // Groups of the devices themselves. What is for others is not routed here.
            self.totals.packets_dropped += 1;
            return cx.drop(packet, DropReason::Martian);
        }
        if !ip.is_fragment() && ip.protocol() == ip.icmp_protocol() {
            return self.on_icmp(port, packet, route, cx);
        }
        let is_tcp_fragment = ip.is_fragment() && ip.protocol() == PROTOCOL_TCP;
        if is_tcp_fragment && self.shard.is_between(ip.src(), ip.dst()) {
            return self.on_fragment(port, packet, cx);
        }
        self.on_tcp(port, packet, route, cx);
    }

    /// A fragment of TCP between hosts that have a split connection. What belongs to none of them goes on in
    /// the parts that it came in.
    fn on_fragment(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        if packet.verify_checksums().is_err() {
            self.totals.packets_dropped += 1;
            return cx.drop(packet, DropReason::BadChecksum);
        }
        let mut dropped = Vec::new();
        let whole = self.fragments.on_fragment(cx.now(), packet, &mut dropped);
        self.drop_fragments(dropped, cx);
        let Some(whole) = whole else { return };
        let key = whole.packet.ip_tcp().ok().map(|(ip, tcp)| {
            let ends = (ip.src(), tcp.src_port(), ip.dst(), tcp.dst_port());
            connection_key(SocketAddr::new(ends.0, ends.1), SocketAddr::new(ends.2, ends.3))
        });
        let is_split =
            key.is_some_and(|key| self.index.contains_key(&key) || self.shard.other_owner(&key).is_some());
        if !is_split {
            return whole.parts.into_iter().for_each(|part| self.pass(port, part, cx));
        }
        whole.parts.into_iter().for_each(|part| cx.consume(part));
        cx.made();
        self.on_tcp(port, whole.packet, Route::Direct, cx);
    }

    fn drop_fragments(&mut self, dropped: Vec<(Packet, FragmentDrop)>, cx: &mut Cx<'_>) {
        self.totals.packets_dropped += dropped.len() as u64;
        dropped.into_iter().for_each(|(packet, _)| cx.drop(packet, DropReason::Fragment));
    }

    fn on_tcp(&mut self, port: Port, packet: Packet, route: Route, cx: &mut Cx<'_>) {
        let Ok((ip, tcp)) = packet.ip_tcp() else { return self.pass(port, packet, cx) };
        let from = SocketAddr::new(ip.src(), tcp.src_port());
        let to = SocketAddr::new(ip.dst(), tcp.dst_port());
        let flags = tcp.flags();
        let control = TcpFlags::ACK.with(TcpFlags::RST).with(TcpFlags::FIN);
        let opens = flags.contains(TcpFlags::SYN) && !flags.intersects(control);
        let key = connection_key(from, to);
        let Some(slot) = self.index.get(&key).copied() else {
            if let Some(other) = self.other_owner(&key, route) {
                return self.hand_over(other, port, packet, cx);
            }
            if self.comparison.is_running() {
                let (header, length) = (tcp.header(), packet.payload().len());
                if self.comparison.on_passing(cx.now(), &key, side_of(port), &header, length) {
                    return self.pass(port, packet, cx);
                }
            }
            if opens && packet.payload().is_empty() {
                return self.open(port, Ends { opener: from, acceptor: to }, packet, cx);
            }
            return self.pass(port, packet, cx);
        };
        if packet.verify_checksums().is_err() {
            self.totals.packets_dropped += 1;
            return cx.drop(packet, DropReason::BadChecksum);
        }
        let rate = self.rate_for(slot);
        let freeze = self.drain.is_some_and(|drain| drain == Drain::All || port == Self::LAN);
        let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) else {
            return self.pass(port, packet, cx);
        };
        let verdict = match flow.ends.opener == from {
            true => flow.on_opener(cx.now(), &packet, freeze),
            false => flow.on_acceptor(cx.now(), &packet, rate, freeze),
        };
        match verdict {
            Verdict::Taken => {
                self.totals.packets_split += 1;
                cx.consume(packet);
                self.answer(slot, cx);
            }
            Verdict::HandOver => {
                self.remove(slot, Some(FlowEnd::NotOpened), cx.now());
                self.pass(port, packet, cx);
            }
            Verdict::Asymmetric => {
                self.totals.asymmetric += 1;
                self.remove(slot, Some(FlowEnd::Asymmetric), cx.now());
                self.pass(port, packet, cx);
            }
            Verdict::Short => {
                self.totals.passed_short += 1;
                self.totals.split -= 1;
                self.remove(slot, None, cx.now());
                self.pass(port, packet, cx);
            }
            Verdict::Anew => {
                self.remove(slot, Some(FlowEnd::Replaced), cx.now());
                self.open(port, Ends { opener: from, acceptor: to }, packet, cx);
            }
        }
    }

    /// Another gateway that has the connection. What was handed over once stays here: two gateways never
    /// send a packet to and fro.
    fn other_owner(&self, key: &ConnectionKey, route: Route) -> Option<usize> {
        match route {
            Route::Direct => self.shard.other_owner(key),
            Route::HandedOver => None,
        }
    }

    fn hand_over(&mut self, to: usize, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        let packet = cx.hand_over(packet);
        if let Err(packet) = self.shard.hand_over(to, port, packet) {
            cx.made();
            self.totals.packets_dropped += 1;
            cx.drop(packet, DropReason::QueueFull);
        }
    }

    /// The rate of the policy for the WAN leg of a flow that was opened from the WAN.
    fn rate_for(&self, slot: usize) -> Option<farpace_units::Rate> {
        let flow = self.flows.get(slot)?.as_ref().filter(|flow| flow.opener_side() == GatewaySide::Wan)?;
        self.config.policies.find(flow.ends.opener.ip()).rate
    }

    /// A SYN of a connection that is not split yet.
    fn open(&mut self, port: Port, ends: Ends, packet: Packet, cx: &mut Cx<'_>) {
        let opener_side = side_of(port);
        let far = match opener_side {
            GatewaySide::Lan => ends.acceptor,
            GatewaySide::Wan => ends.opener,
        };
        let policy = self.config.policies.find(far.ip());
        let honest = is_host_address(ends.opener.ip()) && is_host_address(ends.acceptor.ip());
        let account = self.shard.account();
        let full = account.connections.load(Relaxed) >= self.config.max_connections
            || account.half_open.load(Relaxed) >= self.config.max_half_open;
        let count = match () {
            () if policy.action == Action::Pass => Some(&mut self.totals.passed_by_policy),
            () if self.drain.is_some() => Some(&mut self.totals.passed_draining),
            () if full || self.budget.is_short() || !honest => Some(&mut self.totals.passed_limit),
            () => None,
        };
        if let Some(count) = count {
            *count += 1;
            return self.pass(port, packet, cx);
        }
        if packet.verify_checksums().is_err() {
            self.totals.packets_dropped += 1;
            return cx.drop(packet, DropReason::BadChecksum);
        }
        let of_sides = self.config.lan_mtu.min(self.config.wan_mtu);
        let of_routes = self.routes.as_mut().map(|routes| match opener_side {
            GatewaySide::Lan => routes.mtus(cx.now(), ends.opener.ip(), ends.acceptor.ip()),
            GatewaySide::Wan => routes.mtus(cx.now(), ends.acceptor.ip(), ends.opener.ip()),
        });
        let configs = match opener_side {
            GatewaySide::Lan => [&policy.lan, &policy.wan],
            GatewaySide::Wan => [&policy.wan, &policy.lan],
        };
        let setup = FlowSetup {
            ends,
            opener_side,
            limits: LegLimits {
                mtu: of_routes.into_iter().flatten().flatten().fold(of_sides, u16::min),
                is_ipv6: ends.opener.is_ipv6(),
                super_segment: self.config.super_segment,
                buffer: policy.buffer,
            },
            configs,
            min_rtt: (policy.action == Action::Auto).then_some(policy.min_rtt),
            rate: policy.rate,
        };
        let (now, min_rtt) = (cx.now(), setup.min_rtt);
        let Some(mut flow) = SplitFlow::open(now, &setup, &packet) else {
            self.totals.passed_options += 1;
            return self.pass(port, packet, cx);
        };
        let key = connection_key(ends.opener, ends.acceptor);
        match self.comparison.draw(self.config.control_group, cx.rng()) {
            Some(ComparisonGroup::Unsplit) => {
                if let Ok(syn) = packet.tcp() {
                    self.comparison.watch(now, key, opener_side, min_rtt, &syn.header());
                }
                self.totals.passed_control += 1;
                return self.pass(port, packet, cx);
            }
            Some(ComparisonGroup::Split) => flow.sample = Some(Sample::begin(now)),
            None => {}
        }
        if let Err(other) = self.shard.claim(&key) {
            // The same SYN came to another one at the same time.
            return self.hand_over(other, port, packet, cx);
        }
        cx.consume(packet);
        self.totals.packets_split += 1;
        self.totals.split += 1;
        self.half_open += 1;
        let account = self.shard.account();
        account.connections.fetch_add(1, Relaxed);
        account.half_open.fetch_add(1, Relaxed);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() - 1
        });
        self.flows[slot] = Some(Box::new(flow));
        self.index.insert(key, slot);
        self.service(slot, cx);
    }

    /// A flow has taken a packet. What it calls for waits for packets that have come with it, if it may.
    fn answer(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) else { return };
        if !flow.may_wait() {
            return self.service(slot, cx);
        }
        if !std::mem::replace(&mut flow.is_touched, true) {
            self.touched.push(slot);
            self.touched_until.get_or_insert(cx.now() + TOGETHER);
        }
    }

    /// Moves and sends what can be, and books what has become of the flow.
    fn service(&mut self, slot: usize, cx: &mut Cx<'_>) {
        let pressure = self.budget.pressure(self.shard.connections());
        let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) else { return };
        flow.share_configs(&mut self.last_configs);
        flow.run(cx.now(), pressure, &mut self.batch, |side, packet| {
            cx.made();
            cx.emit(port_of(side), packet);
        });
        flow.measure(cx.now());
        self.ledger.update(slot, flow.ledger_entry(), &mut flow.is_in_ledger);
        let weight = flow.weigh();
        self.budget.change(std::mem::replace(&mut flow.weight, weight), weight);
        if flow.was_half_open && !flow.is_half_open() {
            flow.was_half_open = false;
            self.half_open -= 1;
            self.shard.account().half_open.fetch_sub(1, Relaxed);
        }
        if flow.is_over() {
            let end = flow.end();
            self.totals.ended_by_error += u64::from(matches!(end, FlowEnd::Failed(..)));
            if let Some(sample) = flow.sample {
                self.comparison.finish(sample.result());
            }
            return self.remove(slot, Some(end), cx.now());
        }
        if self.drain.is_some_and(|drain| drain != Drain::Hold) && flow.can_be_handed_over() {
            self.totals.handed_over += 1;
            return self.remove(slot, Some(FlowEnd::HandedOver), cx.now());
        }
        let wanted = flow.deadline();
        if flow.armed != wanted {
            if let Some(before) = std::mem::replace(&mut flow.armed, wanted) {
                self.timers.remove(&(before, slot));
            }
            self.timers.extend(wanted.map(|at| (at, slot)));
        }
    }

    /// `end`: how it has ended; none if it was never split.
    fn remove(&mut self, slot: usize, end: Option<FlowEnd>, now: Instant) {
        let Some(mut flow) = self.flows.get_mut(slot).and_then(Option::take) else { return };
        self.ledger.update(slot, None, &mut flow.is_in_ledger);
        if let Some(end) = end.filter(|_| self.config.keep_ended) {
            self.ended.add(EndedFlow { at: now, end, view: flow.view(now) });
        }
        let key = connection_key(flow.ends.opener, flow.ends.acceptor);
        self.index.remove(&key);
        self.shard.release(&key);
        self.budget.change(flow.weight, 0);
        self.half_open -= usize::from(flow.was_half_open);
        let account = self.shard.account();
        account.connections.fetch_sub(1, Relaxed);
        account.half_open.fetch_sub(usize::from(flow.was_half_open), Relaxed);
        self.totals.moved = add(self.totals.moved, flow.moved());
        let [sent, again] = flow.wan_sent();
        self.totals.wan_bytes_sent += sent;
        self.totals.wan_bytes_retransmitted += again;
        if let Some(at) = flow.armed {
            self.timers.remove(&(at, slot));
        }
        if flow.is_touched {
            self.touched.retain(|other| *other != slot);
        }
        self.free.push(slot);
    }

    /// An ICMP error about a packet of a leg. It goes on to the host as well, which judges it by its own
    /// numbers.
    fn on_icmp(&mut self, port: Port, packet: Packet, route: Route, cx: &mut Cx<'_>) {
        if let Some(message) = path_message(&packet)
            && let (Some((src, dst)), Some(seq)) = (message.quoted.ports, message.quoted.seq)
        {
            let from = SocketAddr::new(message.quoted.addresses.src(), src);
            let to = SocketAddr::new(message.quoted.addresses.dst(), dst);
            let error = match message.soft_error {
                SoftError::TooBig { mtu } => {
                    PathError::TooBig { mtu: u32::try_from(mtu.get()).unwrap_or(u32::MAX) }
                }
                SoftError::Unreachable { hard, why } => PathError::Unreachable { hard, why },
                SoftError::TimeExceeded => PathError::Discarded,
                SoftError::ParameterProblem => PathError::Malformed,
            };
            let key = connection_key(from, to);
            if let Some(other) = self.other_owner(&key, route) {
                return self.hand_over(other, port, packet, cx);
            }
            if let Some(slot) = self.index.get(&key).copied() {
                if let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) {
                    let to_acceptor = flow.ends.opener == from;
                    if let Some(tcp) = flow.leg(to_acceptor) {
                        tcp.on_path_error(cx.now(), error, seq);
                    }
                }
                self.service(slot, cx);
            }
        }
        self.pass(port, packet, cx);
    }

    fn pass(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        if port == Self::ROUTER {
            return cx.consume(packet); // the router has sent it to the host
        }
        self.totals.packets_passed += 1;
        cx.emit(port_of(side_of(port).other()), packet);
    }
}

impl Element for Gateway {
    fn ports(&self) -> u16 {
        2
    }

    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        self.on_ip(port, packet, Route::Direct, cx);
    }

    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if self.fragments.deadline().is_some_and(|at| at <= now) {
            let mut dropped = Vec::new();
            self.fragments.on_deadline(now, &mut dropped);
            self.drop_fragments(dropped, cx);
        }
        self.ask_far_hosts(cx);
        if self.touched_until.is_some_and(|at| at <= now) {
            self.touched_until = None;
            for slot in std::mem::take(&mut self.touched) {
                if let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) {
                    flow.is_touched = false;
                }
                self.service(slot, cx);
            }
        }
        while let Some(&(at, slot)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            if let Some(flow) = self.flows.get_mut(slot).and_then(Option::as_mut) {
                flow.armed = None;
                flow.on_deadline(now);
            }
            self.service(slot, cx);
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let others = [self.touched_until, self.fragments.deadline(), self.far_probes.deadline()];
        others.into_iter().flatten().chain(timer).min()
    }

    fn held(&self) -> u64 {
        self.fragments.held() // all else that waits are bytes of connections
    }

    fn inspect(&self) -> Inspection {
        let totals = self.totals();
        vec![
            ("connections", totals.connections.to_string()),
            ("half_open", totals.half_open.to_string()),
            ("split", totals.split.to_string()),
            ("packets_passed", totals.packets_passed.to_string()),
            ("memory", totals.memory.to_string()),
        ]
    }
}

fn add(a: [ByteCount; 2], b: [ByteCount; 2]) -> [ByteCount; 2] {
    [a[0] + b[0], a[1] + b[1]]
}

const fn side_of(port: Port) -> GatewaySide {
    if port.0 == Gateway::LAN.0 { GatewaySide::Lan } else { GatewaySide::Wan }
}

const fn port_of(side: GatewaySide) -> Port {
    match side {
        GatewaySide::Lan => Gateway::LAN,
        GatewaySide::Wan => Gateway::WAN,
    }
}
