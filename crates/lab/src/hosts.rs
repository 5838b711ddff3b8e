//! Hosts of a scenario as elements: a stack, below it its stalls and a processor if it has them, and below
//! that several NICs if it has them.

use crate::network_error::NetworkError;
use crate::parts::HostElements;
use crate::scenario::{Hop, Scenario, periods};
use farpace_host::{Host, LocalLink, Secret};
use farpace_link::multi_nic::{MultiNic, NicSpec};
use farpace_link::pacing::PacingConfig;
use farpace_path::world::World;
use farpace_path::{
    BoundaryPort, MachineStall, MachineStallDirection, Port, Processor, ProcessorWork, TransmitQueue,
};
use farpace_units::{Instant, RandomStream};
use farpace_wire::{MacAddr, NicKind};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What is in the place of a host's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostKind {
    /// Our own stacks.
    Stacks,
    /// Boundary ports, with stacks of others behind them.
    BoundaryPorts,
}

/// Adds all hosts to a world.
pub(crate) fn build(
    world: &mut World,
    scenario: &Scenario,
    seed: u64,
    ends: HostKind,
) -> Result<BTreeMap<String, HostElements>, NetworkError> {
    let mut hosts = BTreeMap::new();
    let resolving = resolving(scenario);
    for (&name, &address) in &scenario.addresses() {
        hosts.insert(name.to_owned(), add_host(world, scenario, seed, (name, address, ends), &resolving)?);
    }
    Ok(hosts)
}

fn add_host(
    world: &mut World,
    scenario: &Scenario,
    seed: u64,
    (name, address, ends): (&str, IpAddr, HostKind),
    resolving: &BTreeSet<&str>,
) -> Result<HostElements, NetworkError> {
    // A stream of its own: the host's random numbers do not depend on it.
    let secret = Secret::from_stream(&mut RandomStream::new(seed, &format!("{name}.secret")));
    let mut host = Host::new(address, secret);
    host.keep_closed(usize::MAX); // results are read from them after the run
    if let Some(limit) = scenario.hosts.get(name).and_then(|host| host.memory) {
        host.set_memory_limit(limit);
    }
    let mac = host.mac();
    let processor = scenario.hosts.get(name).and_then(|host| host.processor.as_ref());
    let multi_nic = scenario.multi_nic(name);
    let paced = scenario.nics(name).into_iter().filter_map(|nic| scenario.direction(nic)?.pacing);
    if processor.is_some() || multi_nic.is_some() || paced.clone().next().is_some() {
        host.know_departures();
    }
    if paced.into_iter().any(PacingConfig::follows_connections) {
        host.say_rates();
    }
    if scenario.links.iter().any(|link| scenario.leads_to_switch(link, name)) {
        host.share_link();
    }
    let work = ProcessorWork::default();
    if processor.is_some_and(|processor| !processor.per_entry.is_zero()) {
        host.charge_processor(work.clone());
    }
    let transmit_queue = scenario.transmit_queue(name).map(TransmitQueue::new);
    if let Some(queue) = &transmit_queue {
        host.ask_queue(queue.clone());
    }
    if resolving.contains(name) {
        host.join_link(mac, LocalLink::default());
    }
    let host = match ends {
        HostKind::Stacks => world.add(name, Box::new(host))?,
        HostKind::BoundaryPorts => world.add(name, Box::new(BoundaryPort::timed()))?,
    };
    let mut bottom = (host, Port(0));
    let stalls = scenario.hosts.get(name).map_or(&[][..], |host| &host.stalls);
    if !stalls.is_empty() {
        let refuse = |error| NetworkError::Stalls { host: name.to_owned(), error };
        let still = periods(stalls).map_err(refuse)?;
        let stall =
            MachineStall::new(MachineStallDirection::new(still.clone()), MachineStallDirection::new(still));
        let id = world.add(&format!("{name}.stalls"), Box::new(stall))?;
        world.connect(bottom, (id, Port(0)))?;
        bottom = (id, Port(1));
    }
    if let Some(processor) = processor {
        let id = world.add(
            &format!("{name}.processor"),
            Box::new(Processor::new(processor.config()).charged_for(work)),
        )?;
        world.connect(bottom, (id, Port(0)))?;
        bottom = (id, Port(1));
    }
    let mut layer = None;
    if let Some(config) = multi_nic {
        let specs = specs(scenario, mac, &scenario.nics(name));
        let rng = RandomStream::new(seed, &format!("{name}.lists"));
        let nics = MultiNic::new(Instant::ZERO, config, &specs, &[address], rng);
        let id = world.add(&format!("{name}.nics"), Box::new(nics))?;
        world.connect(bottom, (id, Port(0)))?;
        (layer, bottom) = (Some(id), (id, Port(1)));
    }
    Ok(HostElements { host, mac, multi_nic: layer, bottom, transmit_queue })
}

/// The NICs of a host whose first has the address `mac`.
fn specs(scenario: &Scenario, mac: MacAddr, nics: &[Hop]) -> Vec<NicSpec> {
    let spec = |(number, nic): (usize, &Hop)| {
        let rate = scenario.nic_max_rate(*nic).unwrap_or_default();
        let kind = NicKind::of_rate(scenario.nic_rate(*nic).unwrap_or_default());
        NicSpec { mac: nic_mac(mac, number), rate, kind }
    };
    nics.iter().enumerate().map(spec).collect()
}

/// The address of a NIC. The lab's hosts leave the upper half of the second byte free. With at most 16 NICs
/// it distinguishes them.
fn nic_mac(MacAddr(mut first): MacAddr, number: usize) -> MacAddr {
    first[1] |= (number as u8) << 4;
    MacAddr(first)
}

/// The hosts that have to resolve MAC addresses: those on an Ethernet with a host that has several NICs.
pub(crate) fn resolving(scenario: &Scenario) -> BTreeSet<&str> {
    let (shared, of) = (scenario.shared_ethernets(), scenario.ethernets());
    let asks = |name: &&str| scenario.nics(name).iter().any(|nic| shared.contains(&of[nic.link]));
    scenario.hosts.keys().map(String::as_str).filter(asks).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: two NICs of a network have the same address, and switches send to the wrong one.
    #[test]
    fn every_nic_has_its_own_address() {
        let mut all = BTreeSet::new();
        for address in ["10.0.0.1", "10.0.0.2", "fd00::a00:1", "fd00::1"] {
            let address: IpAddr = address.parse().expect("an address");
            let secret = Secret::from_stream(&mut RandomStream::new(1, "secret"));
            let first = Host::new(address, secret).mac();
            assert_eq!(nic_mac(first, 0), first);
            for number in 0..16 {
                let mac = nic_mac(first, number);
                assert!(!mac.is_multicast() && mac.0[0] & 2 != 0, "{mac:?} is not locally administered");
                assert!(all.insert(mac), "{mac:?} twice");
            }
        }
    }
}
