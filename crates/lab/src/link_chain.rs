//! The elements of one link in series.

use crate::network_error::NetworkError;
use crate::scenario::{Direction, ElementRefusal, ImpairmentPosition, LinkSpec, ResolvedDirection};
use farpace_path::world::{End, World};
use farpace_path::{Duplex, Element, LinkDirection, ManagedLinkDirection, Port, TransmitQueue};

/// Adds the elements of `link` and connects them. Returns the ends at its first and second node.
///
/// Packets that travel forward meet the elements from left to right, packets that travel backward from right
/// to left. So the chain is: impairments before the forward queue, impairments after the backward delay, the
/// link itself, impairments after the forward delay, impairments before the backward queue.
///
/// `asked`: the hosts at the entrances of both directions that ask the queues there for room.
pub(crate) fn build(
    world: &mut World,
    link: &LinkSpec,
    asked: [Option<TransmitQueue>; 2],
) -> Result<[End; 2], NetworkError> {
    let [forward, backward] = Direction::BOTH.map(|direction| link.direction(direction));
    let mut ids = Vec::new();
    let mut add = |name: String, element: Result<Box<dyn Element>, ElementRefusal>| {
        let refuse = |error| NetworkError::Element { link: link.name.clone(), error };
        ids.push(world.add(&name, element.map_err(refuse)?)?);
        Ok::<(), NetworkError>(())
    };
    let elements = |d: &ResolvedDirection<'_>, position| {
        let (direction, link) = (d.direction, &link.name);
        let all = d.impairments().filter(move |impairment| impairment.position == position);
        all.map(|i| (format!("{link}.{}.{}", direction.key(), i.element_name()), i.element(direction)))
            .collect::<Vec<_>>()
    };
    for (name, element) in elements(&forward, ImpairmentPosition::BeforeQueue) {
        add(name, element)?;
    }
    for (name, element) in elements(&backward, ImpairmentPosition::AfterDelay).into_iter().rev() {
        add(name, element)?;
    }
    add(link.name.clone(), link_element(&forward, &backward, asked))?;
    for (name, element) in elements(&forward, ImpairmentPosition::AfterDelay) {
        add(name, element)?;
    }
    for (name, element) in elements(&backward, ImpairmentPosition::BeforeQueue).into_iter().rev() {
        add(name, element)?;
    }
    for pair in ids.windows(2) {
        world.connect((pair[0], Port(1)), (pair[1], Port(0)))?;
    }
    let (first, last) = (ids[0], ids[ids.len() - 1]);
    Ok([(first, Port(0)), (last, Port(1))])
}

/// Queues, rates and delays of both directions. A managed queue or a rate that changes needs twice the
/// events, so only links that have one pay for it.
fn link_element(
    forward: &ResolvedDirection<'_>,
    backward: &ResolvedDirection<'_>,
    [ahead, behind]: [Option<TransmitQueue>; 2],
) -> Result<Box<dyn Element>, ElementRefusal> {
    if !forward.is_managed() && !backward.is_managed() {
        // A NIC that paces has the queue itself.
        let made = |d: &ResolvedDirection<'_>, asked: Option<TransmitQueue>| {
            LinkDirection::new(d.link()).map(|link| link.asked_by(asked.filter(|_| d.pacing.is_none())))
        };
        return Ok(Box::new(Duplex::new(made(forward, ahead)?, made(backward, behind)?)));
    }
    let managed = |d: &ResolvedDirection<'_>| -> Result<ManagedLinkDirection, ElementRefusal> {
        let managed = ManagedLinkDirection::new(d.discipline()?, d.link_schedule()?, d.framing());
        let managed = match d.opportunities()? {
            Some(opportunities) => managed.at_opportunities(opportunities),
            None => managed,
        };
        Ok(if d.schedule.is_some_and(|s| s.reorders) { managed.reordering() } else { managed })
    };
    Ok(Box::new(Duplex::new(managed(forward)?, managed(backward)?)))
}
