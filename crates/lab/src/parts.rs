//! The parts of a network in its world, for meters, captures and counters.

use crate::scenario::{Hop, TapPlace};
use farpace_path::world::{ElementId, End, World};
use farpace_path::{Port, TransmitQueue};
use farpace_wire::MacAddr;
use std::collections::BTreeMap;

/// The elements of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostElements {
    /// The stack, or the boundary port in its place.
    pub host: ElementId,
    /// The address of its first NIC.
    pub mac: MacAddr,
    /// The multi-NIC layer, if it has several NICs.
    pub multi_nic: Option<ElementId>,
    /// The element at the bottom, and the port of its first link.
    pub bottom: End,
    /// The queue below the stack, if that asks it for room.
    pub transmit_queue: Option<TransmitQueue>,
}

impl HostElements {
    /// The end for the link of NIC `number`.
    pub fn end(&self, number: u16) -> End {
        (self.bottom.0, Port(self.bottom.1.0 + number))
    }
}

/// The parts of a network.
pub(crate) struct Parts {
    pub hosts: BTreeMap<String, HostElements>,
    /// Per link: the ends of its chain that face the first and the second node.
    pub links: Vec<[End; 2]>,
    /// Per link: the ends of its nodes, above NICs that pace.
    pub nodes: Vec<[End; 2]>,
    /// Per link: the NICs of its nodes, where they pace.
    pub pacing_nics: Vec<[Option<ElementId>; 2]>,
}

impl Parts {
    /// The stack of a host.
    pub fn host(&self, name: &str) -> Option<ElementId> {
        self.hosts.get(name).map(|host| host.host)
    }
    /// Both ends of the wire between a NIC and its link: frames that leave by the first are sent, by the
    /// second received.
    pub fn nic(&self, nic: Hop) -> Option<[End; 2]> {
        self.end(nic.link, nic.direction.entrance())
    }
    fn end(&self, link: usize, end: usize) -> Option<[End; 2]> {
        Some([*self.nodes.get(link)?.get(end)?, *self.links.get(link)?.get(end)?])
    }
    /// The NIC that paces what is sent over a hop; none if it is not paced.
    pub fn pacing_nic(&self, hop: Hop) -> Option<ElementId> {
        *self.pacing_nics.get(hop.link)?.get(hop.direction.entrance())?
    }
    /// The end by which frames leave that a host has received, by any NIC.
    pub fn received(&self, host: ElementId) -> Option<End> {
        let host = self.hosts.values().find(|elements| elements.host == host)?;
        if let Some(multi_nic) = host.multi_nic {
            return Some((multi_nic, Port(0)));
        }
        let ends = self.nodes.iter().flatten().zip(self.links.iter().flatten());
        ends.into_iter().find_map(|(node, chain)| (*node == host.end(0)).then_some(*chain))
    }
    /// Both ends of the wire of a tap.
    pub fn tapped(&self, place: &TapPlace, world: &World) -> Option<[End; 2]> {
        match place {
            TapPlace::End { link, end } => self.end(*link, *end),
            TapPlace::Stack { host } => {
                let above = (self.hosts.get(host)?.multi_nic?, Port(0));
                Some([world.peer(above)?, above])
            }
        }
    }
}
