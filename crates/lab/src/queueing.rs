//! What waits on a path: the queueing delay that a packet would meet.

use crate::scenario::{Flow, Scenario, Way};
use crate::world::{ElementId, World};
use farpace_path::{Link, Port};
use farpace_units::{Instant, Span};

/// The lines with a rate on the way of a flow's data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines(Vec<(ElementId, Port)>);

impl Lines {
    /// Those of `flow`, in order.
    pub fn of(world: &World, scenario: &Scenario, flow: &Flow) -> Lines {
        let line = |hop: crate::scenario::Hop| {
            let link = scenario.links.get(hop.link)?;
            link.direction(hop.way).rate?;
            let entrance = match hop.way {
                Way::Forward => Port(0),
                Way::Backward => Port(1),
            };
            Some((world.find(&link.name)?, entrance))
        };
        Lines(scenario.path(flow).into_iter().filter_map(line).collect())
    }

    /// The time that their queues take to drain, one after the other. The frame on a line counts in full.
    pub fn delay(&self, world: &mut World, now: Instant) -> Span {
        let mut total = Span::ZERO;
        for (id, entrance) in &self.0 {
            let Some(line) = world.element_mut::<Link>(*id) else { continue };
            let way = line.way_mut(*entrance);
            if let Some(rate) = way.config().rate {
                total += rate.time_for(way.queue(now).1);
            }
        }
        total
    }
}
