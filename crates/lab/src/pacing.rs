//! What came of pacing, from the cards of a world.

use crate::outcome::PacingOutcome;
use crate::paced_link::PacedLink;
use crate::scenario::{Direction, Scenario};
use farpace_path::Port;
use farpace_path::world::World;

/// Of every paced direction, in the order of links, forward before backward.
pub(crate) fn outcomes(world: &World, scenario: &Scenario) -> Vec<PacingOutcome> {
    let mut outcomes = Vec::new();
    for link in &scenario.links {
        let Some(line) = world.find(&link.name).and_then(|id| world.element::<PacedLink>(id)) else {
            continue;
        };
        for (way, entrance) in [(Direction::Forward, Port(0)), (Direction::Backward, Port(1))] {
            let Some(nic) = line.direction(entrance).nic() else { continue };
            let direction = link.direction(way);
            outcomes.push(PacingOutcome {
                link: link.name.clone(),
                way,
                from: direction.from.to_owned(),
                to: direction.to.to_owned(),
                nic: *nic.stats(),
                classes: nic.classes(),
            });
        }
    }
    outcomes
}
