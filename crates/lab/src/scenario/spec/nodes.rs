//! The nodes of a network: hosts, routers, switches.

use super::super::periods::PeriodSpec;
use super::super::processor::ProcessorSpec;
use super::Scenario;
use farpace_link::multi_nic::MultiNicConfig;
use farpace_path::QueueLimit;
use farpace_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

/// A host: it sends and receives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostSpec {
    /// IPv4 or IPv6 address; omitted: the first free one from 10.0.0.1 on, in the order of names.
    pub address: Option<IpAddr>,
    /// The host has a NIC for each of its links, in the order of the links, and uses all of them together as
    /// one.
    pub multi_nic: Option<MultiNicConfig>,
    /// Memory limit of its connections; omitted: 16 GiB. Autotuned buffers reach a quarter of it.
    pub memory: Option<ByteCount>,
    /// The time that frames take in the host; omitted: none.
    pub processor: Option<ProcessorSpec>,
    /// The queue of its NIC is its transmit queue: TCP asks it for room, and where it is full keeps the
    /// segment and brings its window down (Linux: NET_XMIT_DROP). Otherwise what finds it full is lost.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub transmit_queue: bool,
    /// Times when its machine stands still, in order: packets that come and packets that it sends wait for
    /// the end, and go on together then. Its timers run on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<PeriodSpec>,
}

/// A router: it forwards. It takes no time and has no keys of its own: rates, queues and policers belong to
/// its links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouterSpec {}

/// A switch or a hub: it joins links into one Ethernet. It takes no time: rates and queues belong to its
/// links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchSpec {
    /// A switch, which sends a frame to the link of its receiver, or a hub, which repeats it to all links.
    pub kind: SwitchKind,
}

/// What joins links into one Ethernet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// Learns where stations are. Link-local frames, like the gap frames of pacing, end there. It knows all
    /// hosts from the start, unless a host on the same Ethernet has several NICs.
    #[default]
    Switch,
    /// Repeats every frame to all other links, gap frames too.
    Hub,
}

impl Scenario {
    /// The limit of the transmit queue that TCP of this host asks for room; none: it asks none.
    pub fn transmit_queue(&self, host: &str) -> Option<QueueLimit> {
        self.hosts.get(host).filter(|host| host.transmit_queue)?;
        let direction = self.direction(*self.nics(host).first()?)?;
        Some(match direction.pacing {
            Some(pacing) => pacing.classes.first().and_then(|class| class.limit).unwrap_or(pacing.limit),
            None => direction.queue,
        })
    }

    /// All routers and switches: their table, their kind in words, and their names.
    pub(in super::super) fn forwarders(&self) -> impl Iterator<Item = (&'static str, &'static str, &String)> {
        let routers = self.routers.keys().map(|name| ("routers", "router", name));
        routers.chain(self.switches.iter().map(|(name, switch)| match switch.kind {
            SwitchKind::Switch => ("switches", "switch", name),
            SwitchKind::Hub => ("switches", "hub", name),
        }))
    }
    /// The kind of a node that forwards, in words; none: there is no router or switch of this name.
    pub(in super::super) fn forwarder_kind(&self, name: &str) -> Option<&'static str> {
        self.forwarders().find(|(.., other)| *other == name).map(|(_, kind, _)| kind)
    }

    /// The address of every host: the one given, or the first free one from 10.0.0.1 on, in the order of
    /// names.
    pub fn addresses(&self) -> BTreeMap<&str, IpAddr> {
        let mut taken: BTreeSet<IpAddr> = self.hosts.values().filter_map(|h| h.address).collect();
        let mut next = u32::from(Ipv4Addr::new(10, 0, 0, 1));
        let mut addresses = BTreeMap::new();
        for (name, host) in &self.hosts {
            let address = host.address.unwrap_or_else(|| {
                while taken.contains(&IpAddr::from(Ipv4Addr::from(next))) {
                    next += 1;
                }
                Ipv4Addr::from(next).into()
            });
            taken.insert(address);
            addresses.insert(name.as_str(), address);
        }
        addresses
    }
}
