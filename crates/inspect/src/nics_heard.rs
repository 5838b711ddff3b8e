//! What is heard of hosts and their NICs in a capture.

use farpace_link::multi_nic::arp::{ArpObserver, ObservedHost, Probed};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::Instant;
use farpace_wire::{Extension, MacAddr};
use serde_json::{Value, json};
use std::net::IpAddr;

/// NICs in words: `02:00:00:00:00:01 (1G)`.
pub fn nic_list(list: &Extension) -> String {
    let nics = list.senders.iter().map(|(mac, kind)| format!("{mac} ({kind})"));
    nics.collect::<Vec<_>>().join(", ")
}

/// What was heard, as tables for a terminal with `width` columns if there is one. Times count from `first`.
pub fn to_text(observer: &ArpObserver, first: Instant, width: Option<usize>) -> String {
    let seconds = |at: Instant| TableCell::Number(at.since(first).as_secs_f64(), Some(3));
    let columns = vec![
        TableColumn::text("address"),
        TableColumn::text("at"),
        TableColumn::text("NICs"),
        TableColumn::text("can"),
        TableColumn::number("generation", ""),
        TableColumn::number("since", "s"),
        TableColumn::number("last", "s"),
        TableColumn::number("messages", ""),
        TableColumn::number("lists", ""),
    ];
    let mut table = Table::new("Machines", columns);
    for (address, heard) in observer.hosts() {
        let list = heard.list.as_ref();
        table.row(vec![
            address.to_string().into(),
            heard.mac.to_string().into(),
            list.map_or_else(|| "ordinary".to_owned(), nic_list).into(),
            list.map_or_else(|| "-".to_owned(), |list| list.flags.to_string()).into(),
            list.map_or_else(|| "-".into(), |list| u64::from(list.generation).into()),
            seconds(heard.since.unwrap_or(heard.first)),
            seconds(heard.last),
            heard.messages.into(),
            heard.lists.into(),
        ]);
    }
    let mut text = if observer.hosts().is_empty() {
        "No ARP and no neighbour discovery: no host has said where it is.\n".to_owned()
    } else {
        table.to_text_for(width)
    };
    for (address, heard) in observer.hosts() {
        for (why, times) in &heard.refused {
            text += &format!("{address}: {times} lists are not to be believed: {why}\n");
        }
    }
    if !observer.paths().is_empty() {
        let columns = vec![
            TableColumn::text("from"),
            TableColumn::text("to"),
            TableColumn::number("probes", ""),
            TableColumn::number("unanswered", "%"),
            TableColumn::number("least round trip", "ms"),
        ];
        let mut table = Table::new("Ways that are probed", columns);
        for ((from, to), path) in observer.paths() {
            table.row(vec![
                from.to_string().into(),
                to.to_string().into(),
                path.probes.into(),
                unanswered(path)
                    .map_or_else(|| "-".into(), |share| TableCell::Number(share * 100.0, Some(1))),
                path.min_rtt
                    .map_or_else(|| "-".into(), |rtt| TableCell::Number(rtt.as_secs_f64() * 1e3, Some(3))),
            ]);
        }
        text += "\n";
        text += &table.to_text_for(width);
    }
    if observer.left_out() > 0 {
        text += &format!("{} messages of further hosts and paths are left out.\n", observer.left_out());
    }
    text
}

/// The share of probes without an answer; none without probes.
fn unanswered(path: &Probed) -> Option<f64> {
    let missing = path.probes.saturating_sub(path.replies);
    (path.probes > 0).then(|| missing as f64 / path.probes as f64)
}

/// What was heard, for programs.
pub fn to_json(observer: &ArpObserver) -> Value {
    let host = |(address, heard): (&IpAddr, &ObservedHost)| {
        let refused = heard.refused.iter().map(|(why, n)| json!({ "why": why.to_string(), "lists": n }));
        json!({
            "address": address, "mac": heard.mac.to_string(),
            "list": heard.list.as_ref().map(list_json),
            "list_since_ns": heard.since.map(Instant::as_nanos),
            "first_ns": heard.first.as_nanos(), "last_ns": heard.last.as_nanos(),
            "messages": heard.messages, "lists": heard.lists,
            "refused": refused.collect::<Vec<_>>(),
        })
    };
    let path = |((from, to), path): (&(MacAddr, MacAddr), &Probed)| {
        json!({
            "from": from.to_string(), "to": to.to_string(),
            "probes": path.probes, "replies": path.replies, "unanswered": unanswered(path),
            "least_rtt_ns": path.min_rtt.map(|rtt| rtt.as_nanos()),
        })
    };
    json!({
        "format": "farpace-nics-heard/2",
        "hosts": observer.hosts().iter().map(host).collect::<Vec<_>>(),
        "paths": observer.paths().iter().map(path).collect::<Vec<_>>(),
        "left_out": observer.left_out(),
    })
}

/// A list of NICs as JSON.
pub fn list_json(list: &Extension) -> Value {
    let nics = |nics: &[(MacAddr, farpace_wire::NicKind)]| {
        nics.iter().map(|(mac, kind)| json!({ "mac": mac.to_string(), "kind": kind.to_string() })).collect()
    };
    let (senders, targets): (Vec<_>, Vec<_>) = (nics(&list.senders), nics(&list.targets));
    json!({
        "owner": list.owner, "nics": senders, "targets": targets,
        "flags": list.flags.to_string(), "generation": list.generation,
    })
}
