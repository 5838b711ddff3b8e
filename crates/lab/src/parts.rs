//! Where the parts of a network are in its world: what meters, captures and counters attach to.

use crate::hosts::HostElements;
use crate::scenario::{Hop, TapPlace};
use farpace_path::Port;
use farpace_path::world::{ElementId, End, World};
use std::collections::BTreeMap;

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
        self.hosts.get(name).map(|machine| machine.host)
    }
    /// Both ends of the wire between a card and its link: what leaves by the first is sent, what leaves by the second received.
    pub fn card(&self, card: Hop) -> Option<[End; 2]> {
        self.end(card.link, card.way.entrance())
    }
    fn end(&self, link: usize, end: usize) -> Option<[End; 2]> {
        Some([*self.nodes.get(link)?.get(end)?, *self.links.get(link)?.get(end)?])
    }
    /// The NIC that paces what is sent over a hop; none if nothing does.
    pub fn pacing_nic(&self, hop: Hop) -> Option<ElementId> {
        *self.pacing_nics.get(hop.link)?.get(hop.way.entrance())?
    }
    /// What leaves here has been received by a host, by whatever card.
    pub fn received(&self, host: ElementId) -> Option<End> {
        let machine = self.hosts.values().find(|machine| machine.host == host)?;
        if let Some(layer) = machine.layer {
            return Some((layer, Port(0)));
        }
        let ends = self.nodes.iter().flatten().zip(self.links.iter().flatten());
        ends.into_iter().find_map(|(node, chain)| (*node == machine.end(0)).then_some(*chain))
    }
    /// Both ends of the wire that a tap looks at.
    pub fn tapped(&self, place: &TapPlace, world: &World) -> Option<[End; 2]> {
        match place {
            TapPlace::End { link, end } => self.end(*link, *end),
            TapPlace::Stack { host } => {
                let above = (self.hosts.get(host)?.layer?, Port(0));
                Some([world.peer(above)?, above])
            }
        }
    }
}
