//! The outcome of hosts with several NICs.

use crate::outcome::{NicOutcome, NicsOutcome};
use crate::parts::Parts;
use crate::scenario::Scenario;
use crate::watch::Watch;
use farpace_path::world::{World, WorldError};

/// Counts the frames of all NICs.
pub(crate) fn observe(
    world: &mut World,
    watch: &mut Watch,
    scenario: &Scenario,
    parts: &Parts,
) -> Result<(), WorldError> {
    for (host, _) in parts.hosts.iter().filter(|(_, machine)| machine.layer.is_some()) {
        for end in scenario.cards(host).into_iter().filter_map(|card| parts.card(card)).flatten() {
            let wire = world.observe(end)?;
            watch.count(wire);
        }
    }
    Ok(())
}

/// The outcome of every host with several NICs, by name.
pub(crate) fn outcomes(
    world: &mut World,
    watch: &Watch,
    scenario: &Scenario,
    parts: &Parts,
) -> Result<Vec<NicsOutcome>, WorldError> {
    let mut outcomes = Vec::new();
    for (host, machine) in &parts.hosts {
        let Some(layer) = machine.layer else { continue };
        let mut cards = Vec::new();
        for (number, card) in scenario.cards(host).into_iter().enumerate() {
            let Some([sent, received]) = parts.card(card) else { continue };
            let (sent, received) = (world.observe(sent)?, world.observe(received)?);
            let (sent, received) = (watch.counted(sent), watch.counted(received));
            cards.push(NicOutcome {
                name: format!("nic{number}"),
                link: scenario.links.get(card.link).map_or_else(String::new, |link| link.name.clone()),
                rate: scenario.card_rate(card).unwrap_or_default(),
                sent: sent.frames,
                sent_bytes: sent.bytes,
                received: received.frames,
                received_bytes: received.bytes,
            });
        }
        let dropped = world.ledger(layer).map_or(0, |ledger| ledger.drops().map(|(_, n)| n).sum());
        let readings = world.any(layer).map(|element| element.inspect()).unwrap_or_default();
        outcomes.push(NicsOutcome { host: host.clone(), cards, dropped, readings });
    }
    Ok(outcomes)
}
