//! The network of a scenario without the stacks of its hosts: a boundary port stands in place of each.

use crate::hosts::{HostKind, resolving};
use crate::network;
use crate::network_error::NetworkError;
use crate::parts::Parts;
use crate::queueing::PathQueues;
use crate::scenario::{Direction, Hop, Scenario};
use farpace_link::multi_nic::MultiNic;
use farpace_path::world::{ElementId, End, WireId, World, WorldError};
use farpace_units::{Instant, Span};
use farpace_wire::MacAddr;
use std::net::IpAddr;

/// The boundary port in the place of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryInfo {
    /// The host's name.
    pub host: String,
    /// The [`BoundaryPort`](farpace_path::BoundaryPort).
    pub port: ElementId,
    /// The address of the host in the scenario.
    pub address: IpAddr,
    /// The MAC address of the host in the network.
    pub mac: MacAddr,
    /// The host has to resolve the MAC addresses of others: it has several NICs, or is on an Ethernet with a
    /// host that has.
    pub resolves: bool,
}

/// The network of a scenario, with a boundary port in the place of each host's stack. Processors and NICs of
/// hosts stay: they are below the stacks.
pub struct BoundaryNetwork {
    scenario: Scenario,
    parts: Parts,
    ports: Vec<BoundaryInfo>,
}

impl BoundaryNetwork {
    /// Builds the network at the start of time. `seed` replaces the scenario's; flows are ignored.
    ///
    /// # Errors
    /// What a checked scenario does not cause.
    pub fn build(scenario: &Scenario, seed: u64) -> Result<(World, BoundaryNetwork), NetworkError> {
        let (world, parts) = network::build(scenario, seed, HostKind::BoundaryPorts)?;
        let (addresses, resolving) = (scenario.addresses(), resolving(scenario));
        let info = |(name, host): (&String, &crate::parts::HostElements)| {
            Some(BoundaryInfo {
                host: name.clone(),
                port: host.host,
                address: *addresses.get(name.as_str())?,
                mac: host.mac,
                resolves: resolving.contains(name.as_str()),
            })
        };
        let ports = parts.hosts.iter().filter_map(info).collect();
        Ok((world, BoundaryNetwork { scenario: scenario.clone(), parts, ports }))
    }
    /// The boundary ports, in the order of names.
    pub fn ports(&self) -> &[BoundaryInfo] {
        &self.ports
    }
    /// The scenario of this network.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }
    /// Where the packets of one direction of a link go in and come out. None: the link does not exist.
    pub fn ends(&self, hop: Hop) -> Option<[End; 2]> {
        let (nodes, chain) = (self.parts.nodes.get(hop.link)?, self.parts.links.get(hop.link)?);
        Some(match hop.direction {
            Direction::Forward => [nodes[0], chain[1]],
            Direction::Backward => [nodes[1], chain[0]],
        })
    }
    /// The wires at the beginning and at the end of one direction of a link, which an observer sees from now
    /// on.
    ///
    /// # Errors
    /// Another world than that of this network.
    pub fn observe(&self, world: &mut World, hop: Hop) -> Result<Option<[WireId; 2]>, WorldError> {
        let Some([sent, received]) = self.ends(hop) else { return Ok(None) };
        Ok(Some([world.observe(sent)?, world.observe(received)?]))
    }
    /// How long the queue of one direction of a link takes to drain.
    pub fn queueing_delay(&self, world: &mut World, hop: Hop, now: Instant) -> Span {
        PathQueues::along(world, &self.scenario, &self.parts, &[hop]).delay(world, now)
    }
    /// The multi-NIC layers, by host.
    pub fn multi_nics(&self) -> impl Iterator<Item = (&str, ElementId)> {
        self.parts.hosts.iter().filter_map(|(name, host)| Some((name.as_str(), host.multi_nic?)))
    }
    /// The multi-NIC layer of a host.
    pub fn multi_nic<'w>(&self, world: &'w World, host: &str) -> Option<&'w MultiNic> {
        world.element(self.parts.hosts.get(host)?.multi_nic?)
    }
}
