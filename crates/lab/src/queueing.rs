//! What waits on a path: the queueing delay that a packet would meet.

use crate::pacing_nics::{NODE_PORT, PacingNicElement};
use crate::parts::Parts;
use crate::scenario::{FlowSpec, Hop, Scenario};
use farpace_path::world::{ElementId, World};
use farpace_path::{Link, ManagedLink, Port};
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
