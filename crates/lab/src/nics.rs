//! The outcome of hosts with several NICs.

use crate::outcome::{NicOutcome, NicRate, NicsOutcome};
use crate::parts::Parts;
use crate::run_observer::RunObserver;
use crate::scenario::Scenario;
use farpace_path::world::{World, WorldError};
use farpace_units::Span;

/// Counts the frames of all NICs.
pub(crate) fn observe(
    world: &mut World,
    observer: &mut RunObserver,
    scenario: &Scenario,
    parts: &Parts,
) -> Result<(), WorldError> {
    for (host, _) in parts.hosts.iter().filter(|(_, host)| host.multi_nic.is_some()) {
        for end in scenario.nics(host).into_iter().filter_map(|nic| parts.nic(nic)).flatten() {
            let wire = world.observe(end)?;
            observer.count(wire);
        }
    }
    Ok(())
}

/// Counts the frames that all NICs send over time.
pub(crate) fn observe_rates(
    world: &mut World,
    observer: &mut RunObserver,
    scenario: &Scenario,
    parts: &Parts,
    bin: Span,
) -> Result<(), WorldError> {
    for (host, _) in parts.hosts.iter().filter(|(_, host)| host.multi_nic.is_some()) {
        for [sent, _] in scenario.nics(host).into_iter().filter_map(|nic| parts.nic(nic)) {
            let wire = world.observe(sent)?;
            observer.count_rate(wire, bin);
        }
    }
    Ok(())
}

/// What every NIC sent over time, in the order of [`outcomes`].
pub(crate) fn rates(
    world: &mut World,
    observer: &RunObserver,
    scenario: &Scenario,
    parts: &Parts,
) -> Result<Vec<NicRate>, WorldError> {
    let mut rates = Vec::new();
    for (host, _) in parts.hosts.iter().filter(|(_, host)| host.multi_nic.is_some()) {
        for (number, nic) in scenario.nics(host).into_iter().enumerate() {
            let Some([sent, _]) = parts.nic(nic) else { continue };
            let wire = world.observe(sent)?;
            let Some(sent) = observer.counted_rate(wire) else { continue };
            rates.push(NicRate {
                host: host.clone(),
                name: format!("nic{number}"),
                link: scenario.links.get(nic.link).map_or_else(String::new, |link| link.name.clone()),
                sent: sent.clone(),
            });
        }
    }
    Ok(rates)
}

/// The outcome of every host with several NICs, by name.
pub(crate) fn outcomes(
    world: &mut World,
    observer: &RunObserver,
    scenario: &Scenario,
    parts: &Parts,
) -> Result<Vec<NicsOutcome>, WorldError> {
    let mut outcomes = Vec::new();
    for (name, host) in &parts.hosts {
        let Some(multi_nic) = host.multi_nic else { continue };
        let mut nics = Vec::new();
        for (number, nic) in scenario.nics(name).into_iter().enumerate() {
            let Some([sent, received]) = parts.nic(nic) else { continue };
            let (sent, received) = (world.observe(sent)?, world.observe(received)?);
            let (sent, received) = (observer.counted(sent), observer.counted(received));
            nics.push(NicOutcome {
                name: format!("nic{number}"),
                link: scenario.links.get(nic.link).map_or_else(String::new, |link| link.name.clone()),
                rate: scenario.nic_rate(nic).unwrap_or_default(),
                sent: sent.frames,
                sent_bytes: sent.bytes,
                received: received.frames,
                received_bytes: received.bytes,
            });
        }
        let dropped = world.ledger(multi_nic).map_or(0, |ledger| ledger.drops().map(|(_, n)| n).sum());
        let readings = world.any(multi_nic).map(|element| element.inspect()).unwrap_or_default();
        outcomes.push(NicsOutcome { host: name.clone(), nics, dropped, readings });
    }
    Ok(outcomes)
}
