//! From a scenario to a world: hosts, routers, switches, and the chain of elements that makes each link.

use crate::hosts::{self, HostElements, HostKind};
use crate::paced_link::LinkTransmitter;
use crate::parts::Parts;
use crate::scenario::{self, Direction, ResolvedDirection, Scenario, SwitchKind};
use farpace_host::Host;
use farpace_link::nic::PacingNic;
use farpace_link::pacing::PacingConfig;
use farpace_path as path;
use farpace_path::world::{End, World, WorldError};
use farpace_path::{Duplex, Element, Port};
use farpace_units::{Instant, Span};
use farpace_wire::MacAddr;
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a scenario cannot become a world. A checked scenario does not cause these; a scenario made by a
/// program may.
#[derive(Debug, Error)]
pub enum NetworkError {
    /// The world refuses.
    #[error(transparent)]
    World(#[from] WorldError),
    /// An element refuses its parameters.
    #[error("link `{link}`: {error}")]
    Element {
        /// The link.
        link: String,
        /// What the element says.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A link leads to nobody.
    #[error("link `{link}` leads to `{node}`, which is no host, router or switch")]
    NoNode {
        /// The link.
        link: String,
        /// What it leads to.
        node: String,
    },
    /// A router refuses its routes.
    #[error("router `{router}`: {error}")]
    Router {
        /// The router.
        router: String,
        /// What it says.
        error: path::RouterError,
    },
}

/// Builds the world of `scenario`, without flows.
pub(crate) fn build(scenario: &Scenario, seed: u64, ends: HostKind) -> Result<(World, Parts), NetworkError> {
    let mut world = World::new(seed);
    let addresses = scenario.addresses();
    let hosts = hosts::build(&mut world, scenario, seed, ends)?;
    let ports = number_ports(scenario);
    share_lines(&mut world, scenario, &hosts);
    let (mut between, resolving) = (BTreeMap::new(), hosts::resolving(scenario));
    let taught = |(host, machine): (&String, &HostElements)| {
        (!resolving.contains(host.as_str())).then_some((host.clone(), machine.mac))
    };
    let taught: Vec<_> = hosts.iter().filter_map(taught).collect();
    for name in scenario.routers.keys() {
        let router = router(scenario, name, &ports, &addresses)
            .map_err(|error| NetworkError::Router { router: name.clone(), error })?;
        between.insert(name.as_str(), world.add(name, Box::new(router))?);
    }
    for (name, spec) in &scenario.switches {
        let switch: Box<dyn Element> = match spec.kind {
            SwitchKind::Switch => Box::new(switch(scenario, name, &ports, &taught)),
            SwitchKind::Hub => Box::new(path::Hub::new(count(name, &ports))),
        };
        between.insert(name.as_str(), world.add(name, switch)?);
    }
    let (mut links, mut nodes) = (Vec::new(), Vec::new());
    for (index, link) in scenario.links.iter().enumerate() {
        let chain = chain(&mut world, scenario, index)?;
        let node = |end: usize| {
            let name = link.between[end].as_str();
            let port = ports[&(name, index)];
            let host = hosts.get(name).map(|machine| machine.end(port.0));
            host.or_else(|| between.get(name).map(|id| (*id, port)))
                .ok_or_else(|| NetworkError::NoNode { link: link.name.clone(), node: name.to_owned() })
        };
        let ends = [node(0)?, node(1)?];
        world.connect(ends[0], chain[0])?;
        world.connect(chain[1], ends[1])?;
        links.push(chain);
        nodes.push(ends);
    }
    for link in &scenario.links {
        for way in [Direction::Forward, Direction::Backward] {
            let d = link.direction(way);
            if d.pacing.is_some_and(PacingConfig::follows_connections)
                && let Some(host) = hosts.get(d.from).and_then(|m| world.element_mut::<Host>(m.host))
            {
                host.say_rates();
            }
            if d.pacing.is_some()
                && let Some(host) = hosts.get(d.from).and_then(|m| world.element_mut::<Host>(m.host))
            {
                host.know_departures();
            }
        }
    }
    Ok((world, Parts { machines: hosts, links, nodes }))
}

/// The port of each node for each of its links, in the order of links.
fn number_ports(scenario: &Scenario) -> BTreeMap<(&str, usize), Port> {
    let mut used: BTreeMap<&str, u16> = BTreeMap::new();
    let mut ports = BTreeMap::new();
    for (index, link) in scenario.links.iter().enumerate() {
        for node in &link.between {
            let next = used.entry(node).or_default();
            ports.insert((node.as_str(), index), Port(*next));
            *next += 1;
        }
    }
    ports
}

fn router(
    scenario: &Scenario,
    name: &str,
    ports: &BTreeMap<(&str, usize), Port>,
    addresses: &BTreeMap<&str, std::net::IpAddr>,
) -> Result<path::Router, path::RouterError> {
    let mut routes = path::Routes::default();
    for (host, address) in addresses {
        if let Some(hop) = scenario.routes_to(host).get(name)
            && let Some(port) = ports.get(&(name, hop.link))
        {
            let bits = if address.is_ipv4() { 32 } else { 128 };
            routes.add(path::Prefix::new(*address, bits)?, *port)?;
        }
    }
    let mut router = path::Router::new(count(name, ports), routes)?;
    for (link, spec) in scenario.links.iter().enumerate() {
        if let Some(port) = ports.get(&(name, link))
            && leads_to_switch(scenario, spec, name)
        {
            router.share(*port);
        }
    }
    Ok(router)
}

/// A switch that knows where these hosts are.
fn switch(
    scenario: &Scenario,
    name: &str,
    ports: &BTreeMap<(&str, usize), Port>,
    hosts: &[(String, MacAddr)],
) -> path::Switch {
    let mut switch = path::Switch::new(count(name, ports));
    for (host, mac) in hosts {
        if let Some(hop) = scenario.routes_to(host).get(name)
            && let Some(port) = ports.get(&(name, hop.link))
        {
            switch.learn(Instant::ZERO, *mac, *port);
        }
    }
    switch
}

/// Hosts behind a switch or a hub see frames of others.
fn share_lines(world: &mut World, scenario: &Scenario, hosts: &BTreeMap<String, HostElements>) {
    for link in &scenario.links {
        for node in link.between.iter().filter(|node| leads_to_switch(scenario, link, node)) {
            if let Some(host) = hosts.get(node).and_then(|m| world.element_mut::<Host>(m.host)) {
                host.share_line();
            }
        }
    }
}

/// True if the other end of `link` than `node` is a switch or a hub.
fn leads_to_switch(scenario: &Scenario, link: &scenario::LinkSpec, node: &str) -> bool {
    let [first, second] = &link.between;
    (first == node && scenario.switches.contains_key(second))
        || (second == node && scenario.switches.contains_key(first))
}

/// How many ports a machine has.
fn count(name: &str, ports: &BTreeMap<(&str, usize), Port>) -> u16 {
    ports.keys().filter(|(node, _)| *node == name).count() as u16
}

/// The elements of one link in series: what befalls packets on their way forward stands before the queue on
/// the first node's side, what befalls them backward on the second's.
fn chain(world: &mut World, scenario: &Scenario, index: usize) -> Result<[End; 2], NetworkError> {
    let link = &scenario.links[index];
    let mut ids = Vec::new();
    let refuse = |error: LinkRefusal| NetworkError::Element { link: link.name.clone(), error };
    let (forward, backward) = (link.direction(Direction::Forward), link.direction(Direction::Backward));
    for (name, element) in troubles(&forward, Direction::Forward).map_err(refuse)? {
        ids.push(world.add(&format!("{}.forward.{name}", link.name), element)?);
    }
    // A card interrupts for what it has received whole: as the last.
    let interrupts = |d: &ResolvedDirection<'_>, way| {
        d.interrupts.map(|interrupts| one_way(path::InterruptsDirection::new(interrupts.config()), way))
    };
    if let Some(element) = interrupts(&backward, Direction::Backward) {
        ids.push(world.add(&format!("{}.backward.interrupts", link.name), element)?);
    }
    // Bits go wrong on the line, whose time they have taken: behind it.
    let bit_errors = |d: &ResolvedDirection<'_>, way| {
        (d.bit_errors > 0.0).then(|| one_way(path::BitErrorsDirection::new(d.bit_errors), way))
    };
    if let Some(element) = bit_errors(&backward, Direction::Backward) {
        ids.push(world.add(&format!("{}.backward.bit-errors", link.name), element)?);
    }
    ids.push(world.add(&link.name, line(&forward, &backward).map_err(refuse)?)?);
    if let Some(element) = bit_errors(&forward, Direction::Forward) {
        ids.push(world.add(&format!("{}.forward.bit-errors", link.name), element)?);
    }
    if let Some(element) = interrupts(&forward, Direction::Forward) {
        ids.push(world.add(&format!("{}.forward.interrupts", link.name), element)?);
    }
    let mut back = troubles(&backward, Direction::Backward).map_err(refuse)?;
    back.reverse(); // the first of the list is the first that a packet meets
    for (name, element) in back {
        ids.push(world.add(&format!("{}.backward.{name}", link.name), element)?);
    }
    for pair in ids.windows(2) {
        world.connect((pair[0], Port(1)), (pair[1], Port(0)))?;
    }
    let (first, last) = (ids[0], ids[ids.len() - 1]);
    Ok([(first, Port(0)), (last, Port(1))])
}

/// Queues, rates and delays of both directions. Only what needs it pays for a managed queue or a changing line.
fn line(
    forward: &ResolvedDirection<'_>,
    backward: &ResolvedDirection<'_>,
) -> Result<Box<dyn Element>, LinkRefusal> {
    let managed = |d: &ResolvedDirection<'_>| -> Result<path::ManagedLinkDirection, LinkRefusal> {
        let way = path::ManagedLinkDirection::new(d.discipline()?, d.line()?, d.framing());
        Ok(if d.schedule.is_some_and(|s| s.reorders) { way.reordering() } else { way })
    };
    if forward.pacing.is_some() || backward.pacing.is_some() {
        let way = |d: &ResolvedDirection<'_>| -> Result<LinkTransmitter, LinkRefusal> {
            Ok(match d.pacing {
                Some(config) => {
                    let rate = d.rate.ok_or("an infinitely fast line cannot be paced")?;
                    LinkTransmitter::Paced(Box::new(PacingNic::new(config, rate, d.delay)?))
                }
                None => LinkTransmitter::Other(Box::new(managed(d)?)),
            })
        };
        return Ok(Box::new(Duplex::new(way(forward)?, way(backward)?)));
    }
    if forward.is_managed() || backward.is_managed() {
        return Ok(Box::new(Duplex::new(managed(forward)?, managed(backward)?)));
    }
    let way = |d: &ResolvedDirection<'_>| path::LinkDirection::new(d.link());
    Ok(Box::new(Duplex::new(way(forward)?, way(backward)?)))
}

type LinkRefusal = Box<dyn std::error::Error + Send + Sync>;
type Impairments = Vec<(&'static str, Box<dyn Element>)>;

/// What one direction has before its queue, in the order in which packets meet it.
fn troubles(d: &ResolvedDirection<'_>, way: Direction) -> Result<Impairments, LinkRefusal> {
    let mut list: Impairments = Vec::new();
    if !d.clock_jumps.is_empty() {
        let jumps = d.clock_jumps.iter().map(scenario::ClockJumpSpec::jump).collect();
        list.push((
            "clock",
            Box::new(match way {
                Direction::Forward => path::ClockJump::of_port_0(jumps),
                Direction::Backward => path::ClockJump::of_port_1(jumps),
            }),
        ));
    }
    if let Some(middlebox) = d.middlebox {
        list.push(("middlebox", one_way(path::MiddleboxDirection::new(middlebox.config()), way)));
    }
    if let Some(thinning) = d.ack_thinning {
        list.push(("ack-thinning", one_way(thinning.way(), way)));
    }
    if let Some(p) = d.policer {
        list.push(("policer", one_way(path::PolicerDirection::new(p.config())?, way)));
    }
    if let Some(mtu) = d.mtu {
        list.push(("mtu", one_way(mtu.way()?, way)));
    }
    if !d.outages.is_empty() {
        list.push(("outage", one_way(path::OutageDirection::new(d.down())?, way)));
    }
    if d.loss > 0.0 {
        list.push(("loss", one_way(path::LossDirection::new(d.loss), way)));
    }
    if let Some(burst) = d.burst_loss {
        list.push(("burst-loss", one_way(path::BurstLossDirection::new(burst.config()), way)));
    }
    if d.corrupt > 0.0 {
        list.push(("corrupt", one_way(path::CorruptDirection::new(d.corrupt), way)));
    }
    if d.duplicate > 0.0 {
        list.push(("duplicate", one_way(path::DuplicateDirection::new(d.duplicate), way)));
    }
    if !d.jitter.is_zero() {
        let jitter = path::Jitter { most: d.jitter, reorders: false };
        list.push(("jitter", one_way(path::DelayDirection::new(Span::ZERO, Some(jitter)), way)));
    }
    if let Some(r) = d.reorder {
        list.push(("reorder", one_way(path::ReorderDirection::new(r.chance, r.extra), way)));
    }
    Ok(list)
}

/// An element that works in one direction and lets the other pass.
fn one_way<W: path::ElementDirection>(what: W, way: Direction) -> Box<dyn Element> {
    Box::new(match way {
        Direction::Forward => Duplex::new(Some(what), None),
        Direction::Backward => Duplex::new(None, Some(what)),
    })
}
