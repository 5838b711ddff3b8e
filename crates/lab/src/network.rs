//! From a scenario to a world: hosts, routers and switches, then for each link its chain of elements and the
//! NICs that pace.

use crate::hosts::{self, HostKind};
use crate::network_error::NetworkError;
use crate::parts::{HostElements, Parts};
use crate::scenario::{Direction, Scenario, SwitchKind};
use crate::{link_chain, pacing_nics};
use farpace_path as path;
use farpace_path::world::{ElementId, World};
use farpace_path::{Element, Port};
use farpace_units::Instant;
use farpace_wire::MacAddr;
use std::collections::BTreeMap;

/// Builds the world of `scenario`, without flows.
pub(crate) fn build(scenario: &Scenario, seed: u64, ends: HostKind) -> Result<(World, Parts), NetworkError> {
    let mut world = World::new(seed);
    let hosts = hosts::build(&mut world, scenario, seed, ends)?;
    let ports = number_ports(scenario);
    let forwarders = add_forwarders(&mut world, scenario, &ports, &hosts)?;
    let mut parts = Parts { hosts, links: Vec::new(), nodes: Vec::new(), pacing_nics: Vec::new() };
    for (index, link) in scenario.links.iter().enumerate() {
        let asked = Direction::BOTH.map(|direction| {
            let host = parts.hosts.get(link.direction(direction).from);
            host.and_then(|host| host.transmit_queue.clone())
        });
        let chain = link_chain::build(&mut world, link, asked.clone())?;
        let node = |end: usize| {
            let name = link.between[end].as_str();
            let port = ports[&(name, index)];
            let host = parts.hosts.get(name).map(|host| host.end(port.0));
            host.or_else(|| forwarders.get(name).map(|id| (*id, port)))
                .map(|end| (end, port.0))
                .ok_or_else(|| NetworkError::NoNode { link: link.name.clone(), node: name.to_owned() })
        };
        let nodes = [node(0)?, node(1)?];
        let mut nics = [None, None];
        for direction in Direction::BOTH {
            let end = direction.entrance();
            let resolved = link.direction(direction);
            nics[end] = pacing_nics::connect(
                &mut world,
                link,
                &resolved,
                nodes[end],
                chain[end],
                asked[end].clone(),
            )?;
        }
        parts.links.push(chain);
        parts.nodes.push(nodes.map(|(end, _)| end));
        parts.pacing_nics.push(nics);
    }
    Ok((world, parts))
}

/// Adds routers and switches.
fn add_forwarders<'s>(
    world: &mut World,
    scenario: &'s Scenario,
    ports: &BTreeMap<(&str, usize), Port>,
    hosts: &BTreeMap<String, HostElements>,
) -> Result<BTreeMap<&'s str, ElementId>, NetworkError> {
    let mut forwarders = BTreeMap::new();
    let addresses = scenario.addresses();
    for name in scenario.routers.keys() {
        let router = router(scenario, name, ports, &addresses)
            .map_err(|error| NetworkError::Router { router: name.clone(), error })?;
        forwarders.insert(name.as_str(), world.add(name, Box::new(router))?);
    }
    let resolving = hosts::resolving(scenario);
    let known: Vec<(&str, MacAddr)> = hosts
        .iter()
        .filter(|(name, _)| !resolving.contains(name.as_str()))
        .map(|(name, host)| (name.as_str(), host.mac))
        .collect();
    for (name, spec) in &scenario.switches {
        let switch: Box<dyn Element> = match spec.kind {
            SwitchKind::Switch => Box::new(switch(scenario, name, ports, &known)),
            SwitchKind::Hub => Box::new(path::Hub::new(count(name, ports))),
        };
        forwarders.insert(name.as_str(), world.add(name, switch)?);
    }
    Ok(forwarders)
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
            && scenario.leads_to_switch(spec, name)
        {
            router.share_link(*port);
        }
    }
    Ok(router)
}

/// A switch that knows the ports of these hosts.
fn switch(
    scenario: &Scenario,
    name: &str,
    ports: &BTreeMap<(&str, usize), Port>,
    hosts: &[(&str, MacAddr)],
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

/// How many ports a node has.
fn count(name: &str, ports: &BTreeMap<(&str, usize), Port>) -> u16 {
    ports.keys().filter(|(node, _)| *node == name).count() as u16
}
