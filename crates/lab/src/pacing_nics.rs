//! The NICs that pace what their node sends. Each is between a port of the node and the link.

use crate::network_error::NetworkError;
use crate::outcome::PacingOutcome;
use crate::parts::Parts;
use crate::scenario::{Direction, Hop, LinkSpec, ResolvedDirection, Scenario};
use farpace_link::nic::PacingNic;
use farpace_path::world::{ElementId, End, World};
use farpace_path::{Duplex, Port, TransmitQueue};
use farpace_units::Span;

/// A paced NIC as an element: what its node sends passes [`PacingNic`], what it receives passes untouched.
pub(crate) type PacingNicElement = Duplex<Option<PacingNic>>;

/// The port of a [`PacingNicElement`] at its node.
pub(crate) const NODE_PORT: Port = Port(0);
/// The port of a [`PacingNicElement`] at the link.
const LINK_PORT: Port = Port(1);

/// Connects a node to the link that leads away from it in `direction`: by a NIC that paces, if there is one.
/// The NIC has the name `NODE.nicN`, with `number`. Returns it.
pub(crate) fn connect(
    world: &mut World,
    link: &LinkSpec,
    direction: &ResolvedDirection<'_>,
    (node, number): (End, u16),
    link_end: End,
    asked: Option<TransmitQueue>,
) -> Result<Option<ElementId>, NetworkError> {
    let Some(config) = direction.pacing else {
        world.connect(node, link_end)?;
        return Ok(None);
    };
    let refuse = |error| NetworkError::Element { link: link.name.clone(), error };
    let rate = direction.rate.ok_or_else(|| refuse("pacing needs a rate".into()))?;
    let nic = PacingNic::new(config, rate, Span::ZERO).map_err(|error| refuse(error.into()))?;
    let element: PacingNicElement = Duplex::new(Some(nic.asked_by(asked)), None);
    let name = format!("{}.nic{}", direction.from, number);
    let id = world.add(&name, Box::new(element))?;
    world.connect(node, (id, NODE_PORT))?;
    world.connect((id, LINK_PORT), link_end)?;
    Ok(Some(id))
}

/// The outcome of every paced direction, in the order of links, forward before backward.
pub(crate) fn outcomes(world: &World, scenario: &Scenario, parts: &Parts) -> Vec<PacingOutcome> {
    let mut outcomes = Vec::new();
    for (index, link) in scenario.links.iter().enumerate() {
        for direction in Direction::BOTH {
            let id = parts.pacing_nic(Hop { link: index, direction });
            let element = id.and_then(|id| world.element::<PacingNicElement>(id));
            let Some(nic) = element.and_then(|nic| nic.direction(NODE_PORT).as_ref()) else { continue };
            let ends = link.direction(direction);
            outcomes.push(PacingOutcome {
                link: link.name.clone(),
                direction,
                from: ends.from.to_owned(),
                to: ends.to.to_owned(),
                nic: *nic.stats(),
                classes: nic.classes(),
            });
        }
    }
    outcomes
}
