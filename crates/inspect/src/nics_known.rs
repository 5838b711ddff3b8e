//! What a host with several NICs knows of its neighbours' NICs.

use farpace_link::multi_nic::{MultiNic, NicId, NicPath};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::{ByteCount, Instant};
use farpace_wire::{MacAddr, NicKind};
use serde_json::{Value, json};

/// Delays are those of a full frame: what it takes of the line.
const FULL: ByteCount = ByteCount::new(1538);

/// The paths to a neighbour, whether they work or not.
fn paths(nics: &MultiNic, first: MacAddr) -> Vec<(NicId, NicPath)> {
    let (all, neighbour) = (nics.paths(), nics.neighbour(first));
    all.ids().filter_map(|nic| Some((nic, *all.any_path(neighbour, nic)?))).collect()
}

/// What of the frames a path carries, if all that work have as much to do as they can.
fn share(path: &NicPath, all: &[(NicId, NicPath)]) -> f64 {
    let rate = |path: &NicPath| if path.up { path.rate.as_mbit_f64() } else { 0.0 };
    let sum: f64 = all.iter().map(|(_, path)| rate(path)).sum();
    if sum > 0.0 { rate(path) / sum } else { 0.0 }
}

/// What it knows, as a table for a terminal with `width` columns if there is one.
pub fn host_text(host: &str, nics: &MultiNic, width: Option<usize>) -> String {
    let own = nics.paths().nics().iter().map(|nic| {
        let down = if nic.up { "" } else { ", no carrier" };
        format!("{} ({}{down})", nic.mac, nic.link.rate())
    });
    let mut text = format!("{host}: {}\n", own.collect::<Vec<_>>().join(", "));
    let Some(announcer) = nics.announcer() else {
        return text + "  tells nobody of its NICs (extended_arp = false)\n";
    };
    text += &format!("  tells of them with generation {}\n", announcer.generation());
    let mut table = Table::new(
        &format!("Neighbours of {host}, and the paths to them"),
        vec![
            TableColumn::text("neighbour"),
            TableColumn::text("can"),
            TableColumn::number("generation", ""),
            TableColumn::text("NIC"),
            TableColumn::text("to"),
            TableColumn::text("works"),
            TableColumn::number("rate", "Mbit/s"),
            TableColumn::number("delay", "ms"),
            TableColumn::number("guard", "ms"),
            TableColumn::number("share", "%"),
        ],
    );
    let mut any = false;
    for (address, mac, host) in announcer.cache().neighbours() {
        any = true;
        let all = paths(nics, mac);
        for (nic, path) in &all {
            let to = path.to.unwrap_or(mac);
            table.row(vec![
                address.to_string().into(),
                host.map_or_else(|| "ordinary".to_owned(), |m| m.flags.to_string()).into(),
                host.map_or_else(|| "-".into(), |m| u64::from(m.generation).into()),
                format!("nic{}", nic.0).into(),
                to.to_string().into(),
                if path.up { "yes" } else { "no" }.into(),
                TableCell::Number(path.rate.as_mbit_f64(), Some(1)),
                TableCell::Number(path.delay.of(FULL).as_secs_f64() * 1e3, Some(3)),
                TableCell::Number(path.guard.as_secs_f64() * 1e3, Some(3)),
                TableCell::Number(share(path, &all) * 100.0, Some(2)),
            ]);
        }
    }
    text += &if any { table.to_text_for(width) } else { "  knows of no neighbour\n".to_owned() };
    for (why, times) in &announcer.stats().refused {
        text += &format!("  {times} lists were not believed: {why}\n");
    }
    text
}

/// What it knows, for programs.
pub fn host_json(host: &str, nics: &MultiNic) -> Value {
    let nic = |nic: &farpace_link::multi_nic::Nic| {
        json!({
            "mac": nic.mac.to_string(), "kind": nic.kind.to_string(),
            "rate_bit_s": nic.link.rate().bits_per_sec(),
            "up": nic.up,
        })
    };
    let path = |(nic, path): &(NicId, NicPath), all: &[(NicId, NicPath)]| {
        json!({
            "nic": nic.0, "to": path.to.map(|to| to.to_string()), "up": path.up,
            "rate_bit_s": path.rate.bits_per_sec(), "delay_ns": path.delay.of(FULL).as_nanos(),
            "guard_ns": path.guard.as_nanos(), "share": share(path, all),
        })
    };
    let neighbours = nics.announcer().map(|announcer| {
        let neighbour = |(address, mac, host): (std::net::IpAddr, MacAddr, _)| {
            let all = paths(nics, mac);
            let host: Option<&farpace_link::multi_nic::arp::MultiNicHost> = host;
            let nics = host.map(|m| {
                let nic = |(mac, kind): &(MacAddr, NicKind)| {
                    json!({ "mac": mac.to_string(), "kind": kind.to_string() })
                };
                m.nics.iter().map(nic).collect::<Vec<_>>()
            });
            json!({
                "address": address, "mac": mac.to_string(), "nics": nics,
                "flags": host.map(|m| m.flags.to_string()), "generation": host.map(|m| m.generation),
                "heard_s": host.map(|m| m.last_heard.since(Instant::ZERO).as_secs_f64()),
                "paths": all.iter().map(|entry| path(entry, &all)).collect::<Vec<_>>(),
            })
        };
        announcer.cache().neighbours().map(neighbour).collect::<Vec<_>>()
    });
    let refused = nics.announcer().map(|announcer| {
        let refused = announcer.stats().refused.iter();
        refused.map(|(why, n)| json!({ "why": why.to_string(), "lists": n })).collect::<Vec<_>>()
    });
    json!({
        "host": host, "nics": nics.paths().nics().iter().map(nic).collect::<Vec<_>>(),
        "generation": nics.announcer().map(|announcer| announcer.generation()),
        "neighbours": neighbours, "refused": refused,
    })
}
