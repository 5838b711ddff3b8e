//! What waits on a path: the queueing delay that a packet would meet.

use crate::paced_link::PacedLink;
use crate::scenario::{Direction, FlowSpec, Hop, Scenario};
use farpace_path::world::{ElementId, World};
use farpace_path::{Link, ManagedLink, Port};
use farpace_units::{Instant, Span};

/// The lines on the way of a flow's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<(ElementId, Port)>);

impl Lines {
    /// Those of `flow`, in order.
    pub fn of(world: &World, scenario: &Scenario, flow: &FlowSpec) -> Lines {
        Lines::along(world, scenario, &scenario.path(flow))
    }
    /// Those of some hops, in order.
    pub fn along(world: &World, scenario: &Scenario, hops: &[Hop]) -> Lines {
        let line = |hop: &Hop| {
            let link = scenario.links.get(hop.link)?;
            let entrance = match hop.way {
                Direction::Forward => Port(0),
                Direction::Backward => Port(1),
            };
            Some((world.find(&link.name)?, entrance))
        };
        Lines(hops.iter().filter_map(line).collect())
    }

    /// The time that their queues take to drain, one after the other.
    pub fn delay(&self, world: &mut World, now: Instant) -> Span {
        let mut total = Span::ZERO;
        for (id, entrance) in &self.0 {
            total += if let Some(line) = world.element_mut::<Link>(*id) {
                line.direction_mut(*entrance).drains_in(now)
            } else if let Some(line) = world.element_mut::<ManagedLink>(*id) {
                line.direction_mut(*entrance).drains_in(now)
            } else if let Some(line) = world.element_mut::<PacedLink>(*id) {
                line.direction_mut(*entrance).drains_in(now)
            } else {
                Span::ZERO
            };
        }
        total
    }
}
