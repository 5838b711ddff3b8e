//! The network of a scenario without its hosts: doors in their places, for what is outside.

use crate::hosts::{HostKind, resolving};
use crate::network::{self, NetworkError};
use crate::parts::Parts;
use crate::queueing::PathQueues;
use crate::scenario::{Direction, Hop, Scenario};
use farpace_link::multi_nic::MultiNic;
use farpace_path::world::{ElementId, End, WireId, World, WorldError};
use farpace_units::{Instant, Span};
use farpace_wire::MacAddr;
use std::net::IpAddr;

/// The door in the place of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundaryInfo {
    /// The host's name.
    pub host: String,
    /// The [`BoundaryPort`](farpace_path::BoundaryPort).
    pub door: ElementId,
    /// The address that the host has in the scenario.
    pub address: IpAddr,
    /// The MAC address that the network takes it to have.
    pub mac: MacAddr,
    /// It has to ask for the MAC addresses of others: it has, or is on an Ethernet with somebody who has, several cards.
    pub resolves: bool,
}

/// The network of a scenario, with a door in the place of each host. Processors and network cards of hosts stay: they are
/// below their stacks. Nothing has happened yet.
pub struct BoundaryNetwork {
    scenario: Scenario,
    parts: Parts,
    doors: Vec<BoundaryInfo>,
}

impl BoundaryNetwork {
    /// Builds the network. `seed` stands in place of the scenario's; flows are not looked at.
    ///
    /// # Errors
    /// What a checked scenario does not cause.
    pub fn build(scenario: &Scenario, seed: u64) -> Result<(World, BoundaryNetwork), NetworkError> {
        let (world, parts) = network::build(scenario, seed, HostKind::Doors)?;
        let (addresses, resolving) = (scenario.addresses(), resolving(scenario));
        let info = |(host, machine): (&String, &crate::hosts::HostElements)| {
            Some(BoundaryInfo {
                host: host.clone(),
                door: machine.host,
                address: *addresses.get(host.as_str())?,
                mac: machine.mac,
                resolves: resolving.contains(host.as_str()),
            })
        };
        let doors = parts.hosts.iter().filter_map(info).collect();
        Ok((world, BoundaryNetwork { scenario: scenario.clone(), parts, doors }))
    }
    /// The doors, in the order of names.
    pub fn doors(&self) -> &[BoundaryInfo] {
        &self.doors
    }
    /// Whose network this is.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }
    /// Where the packets of one direction of a link go in and come out. None: there is no such link.
    pub fn ends(&self, hop: Hop) -> Option<[End; 2]> {
        let (nodes, chain) = (self.parts.nodes.get(hop.link)?, self.parts.links.get(hop.link)?);
        Some(match hop.way {
            Direction::Forward => [nodes[0], chain[1]],
            Direction::Backward => [nodes[1], chain[0]],
        })
    }
    /// The wires at the beginning and at the end of one direction of a link, which an observer sees from now on.
    ///
    /// # Errors
    /// A world that is not that of these doors.
    pub fn observe(&self, world: &mut World, hop: Hop) -> Result<Option<[WireId; 2]>, WorldError> {
        let Some([sent, received]) = self.ends(hop) else { return Ok(None) };
        Ok(Some([world.observe(sent)?, world.observe(received)?]))
    }
    /// How long what waits in the queue of one direction of a link takes to leave.
    pub fn queueing_delay(&self, world: &mut World, hop: Hop, now: Instant) -> Span {
        PathQueues::along(world, &self.scenario, &self.parts, &[hop]).delay(world, now)
    }
    /// The layers of hosts with several cards, by host.
    pub fn multi_nics(&self) -> impl Iterator<Item = (&str, ElementId)> {
        self.parts.hosts.iter().filter_map(|(host, machine)| Some((host.as_str(), machine.layer?)))
    }
    /// The layer of a host with several cards.
    pub fn multi_nic<'w>(&self, world: &'w World, host: &str) -> Option<&'w MultiNic> {
        world.element(self.parts.hosts.get(host)?.layer?)
    }
}
