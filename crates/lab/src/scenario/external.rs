//! Congestion controls that the program supplies: a scenario names them like any other.

use super::document::{DocumentNode, DocumentStep, DocumentValue};
use super::fault::ScenarioFault;
use super::nearest::{list, nearest};
use super::spec::{FlowSpec, Scenario};
use farpace_tcp::config::{Congestion, ExternalControl, Settings};
use std::sync::Arc;

/// An end of a flow whose `congestion` names an external control.
pub(super) struct ControlledEnd {
    flow: usize,
    /// The part of the flow's `mix`; none: the flow itself.
    part: Option<usize>,
    side: ControlledSide,
    control: ExternalControl,
}

#[derive(Clone, Copy)]
enum ControlledSide {
    Sender,
    Receiver,
}

/// Takes the names of external controls out of the tree, because `congestion` has only ours.
pub(super) fn take(
    root: &mut DocumentNode,
    controls: &[ExternalControl],
) -> Result<Vec<ControlledEnd>, ScenarioFault> {
    let mut taken = Vec::new();
    if controls.is_empty() {
        return Ok(taken);
    }
    for (flow, entry) in items(root, "flows") {
        for (part, mixed) in items(entry, "mix") {
            take_sides(mixed, (flow, Some(part)), controls, &mut taken)?;
        }
        take_sides(entry, (flow, None), controls, &mut taken)?;
    }
    Ok(taken)
}

/// Gives the ends their controls.
pub(super) fn put(scenario: &mut Scenario, taken: Vec<ControlledEnd>) {
    for ControlledEnd { flow, part, side, control } in taken {
        if let Some(settings) = scenario.flows.get_mut(flow).and_then(|flow| end(flow, part, side)) {
            settings.external = Some(control);
        }
    }
}

/// True if a flow has a control of the program's own.
pub(super) fn any(scenario: &Scenario) -> bool {
    scenario.flows.iter().any(|flow| {
        let parts = flow.mix.iter().flat_map(|part| part.receiver.iter().chain([&part.sender]));
        parts.chain([&flow.sender, &flow.receiver]).any(|settings| settings.external.is_some())
    })
}

/// Writes the names of external controls into the text's tables, which have none: `congestion` has only ours.
pub(super) fn write(scenario: &Scenario, root: &mut toml::Table) {
    let mut put = |path: &[DocumentStep], settings: &Settings| {
        let Some(control) = &settings.external else { return };
        let table = path.iter().try_fold(root.get_mut("flows"), |node, step| {
            Some(match step {
                DocumentStep::Key(key) => node?.as_table_mut()?.get_mut(key.as_str()),
                DocumentStep::Index(at) => node?.as_array_mut()?.get_mut(*at),
            })
        });
        if let Some(table) = table.flatten().and_then(toml::Value::as_table_mut) {
            table.insert("congestion".to_owned(), toml::Value::String(control.name().to_owned()));
        }
    };
    for (at, flow) in scenario.flows.iter().enumerate() {
        let flow_at = DocumentStep::Index(at);
        put(&[flow_at.clone(), "sender".into()], &flow.sender);
        put(&[flow_at.clone(), "receiver".into()], &flow.receiver);
        for (part, mixed) in flow.mix.iter().enumerate() {
            let part_at = [flow_at.clone(), "mix".into(), DocumentStep::Index(part)];
            put(&[&part_at[..], &["sender".into()]].concat(), &mixed.sender);
            if let Some(receiver) = &mixed.receiver {
                put(&[&part_at[..], &["receiver".into()]].concat(), receiver);
            }
        }
    }
}

fn end(flow: &mut FlowSpec, part: Option<usize>, side: ControlledSide) -> Option<&mut Settings> {
    let settings = match (part, side) {
        (None, ControlledSide::Sender) => Some(&mut flow.sender),
        (None, ControlledSide::Receiver) => Some(&mut flow.receiver),
        (Some(part), ControlledSide::Sender) => flow.mix.get_mut(part).map(|part| &mut part.sender),
        (Some(part), ControlledSide::Receiver) => flow.mix.get_mut(part)?.receiver.as_mut(),
    };
    settings.map(Arc::make_mut)
}

fn items<'a>(
    node: &'a mut DocumentNode,
    key: &str,
) -> impl Iterator<Item = (usize, &'a mut DocumentNode)> + use<'a> {
    let list = match entry(node, key).map(|node| &mut node.value) {
        Some(DocumentValue::Array(items)) => items.as_mut_slice(),
        _ => &mut [],
    };
    list.iter_mut().enumerate()
}

fn entry<'a>(node: &'a mut DocumentNode, key: &str) -> Option<&'a mut DocumentNode> {
    match &mut node.value {
        DocumentValue::Table(entries) => entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.node),
        _ => None,
    }
}

fn take_sides(
    node: &mut DocumentNode,
    (flow, part): (usize, Option<usize>),
    controls: &[ExternalControl],
    taken: &mut Vec<ControlledEnd>,
) -> Result<(), ScenarioFault> {
    for (key, side) in [("sender", ControlledSide::Sender), ("receiver", ControlledSide::Receiver)] {
        let Some(settings) = entry(node, key) else { continue };
        let Some(congestion) = settings.child(&DocumentStep::from("congestion")) else { continue };
        let DocumentValue::String(word) = &congestion.value else { continue };
        if let Some(control) = controls.iter().find(|control| control.name() == word) {
            taken.push(ControlledEnd { flow, part, side, control: control.clone() });
            if let DocumentValue::Table(entries) = &mut settings.value {
                entries.retain(|e| e.key != "congestion");
            }
        } else if Congestion::ALL.iter().all(|c| c.name() != word) {
            let known = controls.iter().map(ExternalControl::name);
            let known: Vec<&str> = known.chain(Congestion::ALL.map(Congestion::name)).collect();
            let near = nearest(word, &known).map(|near| format!("did you mean \"{near}\"?\n"));
            let hint = format!("{}valid here: {}", near.unwrap_or_default(), list(&known));
            let fault = ScenarioFault::syntax(format!("unknown word \"{word}\""), congestion.origin.clone());
            return Err(fault.with_hint(hint));
        }
    }
    Ok(())
}
