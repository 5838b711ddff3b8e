//! What waits: the queueing delay that a packet would meet on a path, and the queues of a whole network.

use crate::pacing_nics::{NODE_PORT, PacingNicElement};
use crate::parts::Parts;
use crate::scenario::{Direction, FlowSpec, Hop, Scenario};
use farpace_path::world::{ElementId, World};
use farpace_path::{Link, ManagedLink, Port, QueueReading};
use farpace_units::{Instant, Span};

/// The queues on the path of a flow's data: of NICs that pace, and of links.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathQueues {
    nics: Vec<ElementId>,
    /// With the port at which the data enters.
    links: Vec<(ElementId, Port)>,
}

impl PathQueues {
    /// Those of `flow`.
    pub fn of(world: &World, scenario: &Scenario, parts: &Parts, flow: &FlowSpec) -> PathQueues {
        PathQueues::along(world, scenario, parts, &scenario.path(flow))
    }
    /// Those of some hops.
    pub fn along(world: &World, scenario: &Scenario, parts: &Parts, hops: &[Hop]) -> PathQueues {
        let link = |hop: &Hop| {
            let id = world.find(&scenario.links.get(hop.link)?.name)?;
            Some((id, Port(hop.direction.entrance() as u16)))
        };
        PathQueues {
            nics: hops.iter().filter_map(|hop| parts.pacing_nic(*hop)).collect(),
            links: hops.iter().filter_map(link).collect(),
        }
    }

    /// The time that all of them take to drain, one after the other.
    pub fn delay(&self, world: &mut World, now: Instant) -> Span {
        let mut total = Span::ZERO;
        for id in &self.nics {
            let element = world.element::<PacingNicElement>(*id);
            let nic = element.and_then(|element| element.direction(NODE_PORT).as_ref());
            total += nic.map_or(Span::ZERO, |nic| nic.drains_in(now));
        }
        for (id, entrance) in &self.links {
            total += if let Some(link) = world.element_mut::<Link>(*id) {
                link.direction_mut(*entrance).drains_in(now)
            } else if let Some(link) = world.element_mut::<ManagedLink>(*id) {
                link.direction_mut(*entrance).drains_in(now)
            } else {
                Span::ZERO
            };
        }
        total
    }
}

/// All queues of a network, with names.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkQueues {
    queues: Vec<(String, QueueElement)>,
}

#[derive(Clone, Copy, Debug)]
enum QueueElement {
    Nic(ElementId),
    /// With the port at which packets enter.
    Link(ElementId, Port),
}

impl NetworkQueues {
    /// Those of `scenario`: of a paced direction the NIC's, of another the link's. What is infinitely fast
    /// has none.
    pub fn of(world: &World, scenario: &Scenario, parts: &Parts) -> NetworkQueues {
        let mut queues = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            for direction in Direction::BOTH {
                let resolved = link.direction(direction);
                let (name, from, to) = (&link.name, resolved.from, resolved.to);
                if let Some(nic) = parts.pacing_nic(Hop { link: index, direction }) {
                    queues.push((format!("paced NIC of {name}, {from} to {to}"), QueueElement::Nic(nic)));
                } else if let (Some(id), Some(_)) = (world.find(name), resolved.max_rate()) {
                    let entrance = Port(direction.entrance() as u16);
                    queues.push((format!("{name}, {from} to {to}"), QueueElement::Link(id, entrance)));
                }
            }
        }
        NetworkQueues { queues }
    }

    /// The names, in the order of readings.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.queues.iter().map(|(name, _)| name.as_str())
    }

    /// What waited since the last readings.
    pub fn readings(&self, world: &mut World, now: Instant) -> Vec<QueueReading> {
        let read = |element: &QueueElement, world: &mut World| match *element {
            QueueElement::Nic(id) => {
                let nic = world.element_mut::<PacingNicElement>(id)?;
                Some(nic.direction_mut(NODE_PORT).as_mut()?.take_peak())
            }
            QueueElement::Link(id, entrance) => {
                if let Some(link) = world.element_mut::<Link>(id) {
                    return Some(link.direction_mut(entrance).take_peak(now));
                }
                Some(world.element_mut::<ManagedLink>(id)?.direction_mut(entrance).take_peak())
            }
        };
        self.queues.iter().map(|(_, element)| read(element, world).unwrap_or_default()).collect()
    }
}
