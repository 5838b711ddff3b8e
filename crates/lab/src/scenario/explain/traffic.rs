//! What is sent: each flow, workloads by class, and streams of datagrams.

use super::super::DatagramSpacing;
use super::super::number::size;
use super::super::spec::{FlowSpec, Scenario};
use super::flow::FlowPage;
use super::page::ExplainPage;
use farpace_units::ByteCount;

/// Flows by themselves, and of those that differ in size and start alone the first one.
pub(super) fn write(page: &mut ExplainPage, s: &Scenario) {
    let mut groups: Vec<Vec<(usize, &FlowSpec)>> = Vec::new();
    for (index, flow) in s.flows.iter().enumerate() {
        let group = groups.iter_mut().find(|group| group.first().is_some_and(|(_, f)| is_alike(f, flow)));
        match group {
            Some(group) => group.push((index, flow)),
            None => groups.push(vec![(index, flow)]),
        }
    }
    for group in &groups {
        let Some((index, flow)) = group.first().copied() else { continue };
        page.gap();
        if group.len() > 1 {
            class(page, group);
        }
        FlowPage { s, flow, segment: s.segment(flow), rtt: s.base_rtt(flow) }.write(index, page);
    }
    for (index, datagrams) in s.datagrams.iter().enumerate() {
        let spacing = match datagrams.spacing {
            DatagramSpacing::Constant => "equal distances",
            DatagramSpacing::Poisson => "random distances (Poisson)",
        };
        let lasts =
            datagrams.lasts.map_or("to the end of the run".to_owned(), |lasts| format!("for {lasts}"));
        page.gap();
        page.item(
            0,
            &format!(
                "Datagrams {}: {} of payload from {} to {} (port {}), {} in each, at {spacing}, from {} on \
                 {lasts}. They do not prolong the run.",
                datagrams.name,
                datagrams.rate,
                datagrams.from,
                datagrams.to,
                s.datagram_port(index),
                datagrams.payload,
                datagrams.start
            ),
        );
    }
}

/// Flows of one workload that differ in name, size and start alone.
fn is_alike(a: &FlowSpec, b: &FlowSpec) -> bool {
    a.class.is_some()
        && a.class == b.class
        && (&a.from, &a.to) == (&b.from, &b.to)
        && (&a.sender, &a.receiver) == (&b.sender, &b.receiver)
        && (a.writes, a.reads, &a.exchanges) == (b.writes, b.reads, &b.exchanges)
}

fn class(page: &mut ExplainPage, group: &[(usize, &FlowSpec)]) {
    let flows = || group.iter().map(|(_, flow)| flow);
    let total: ByteCount = flows().map(|flow| flow.size).sum();
    let (Some(least), Some(most)) = (flows().map(|f| f.size).min(), flows().map(|f| f.size).max()) else {
        return;
    };
    let (Some(first), Some(last)) = (flows().map(|f| f.start).min(), flows().map(|f| f.start).max()) else {
        return;
    };
    let class = group.first().and_then(|(_, flow)| flow.class.as_deref()).unwrap_or_default();
    page.item(
        0,
        &format!(
            "Class {class}: {} flows, together {}, from {} to {} each. The first of them starts at {first}, \
             the last at {last}. One of them:",
            group.len(),
            size(total),
            size(least),
            size(most),
        ),
    );
}
