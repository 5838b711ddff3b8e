//! What the hosts of a scenario know of each other's cards.

use super::Args;
use crate::{scenario, terminal};
use anyhow::{Result, bail};
use farpace_lab::{Inputs, Run};
use farpace_link::multi_nic::{MultiNic, NicId, NicPath};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::MacAddr;
use serde_json::{Value, json};

/// How long a scenario is run unless somebody says.
const TIME: Span = Span::from_millis(200);
/// Delays are those of a full frame: what it takes of the line.
const FULL: ByteCount = ByteCount::new(1538);

/// Runs and prints.
pub fn show(args: &Args) -> Result<()> {
    let mut scenario = scenario::load(&args.file, &args.set)?;
    let time = args.time.unwrap_or(TIME);
    if time.is_zero() {
        bail!("--for must be more than nothing");
    }
    scenario.duration = time;
    let mut run = Run::new(&scenario, Inputs::default())?;
    if run.multi_nics().next().is_none() {
        bail!(
            "scenario `{}` has no host with several network cards: [hosts.NAME.multi_nic] in docs/scenarios.md",
            args.file.display()
        );
    }
    while !run.advance(None)?.finished {}
    if args.json {
        let hosts = run.multi_nics().map(|(host, nics)| host_json(host, nics)).collect::<Vec<_>>();
        return terminal::print_json(&json!({
            "format": "farpace-nics-known/1", "time_s": run.now().since(Instant::ZERO).as_secs_f64(), "hosts": hosts,
        }));
    }
    let mut text = format!("After {}:\n", run.now().since(Instant::ZERO));
    for (host, nics) in run.multi_nics() {
        text += "\n";
        text += &host_text(host, nics);
    }
    terminal::print(&text)
}

/// The lanes to a neighbour, whether they work or not.
fn lanes(nics: &MultiNic, first: MacAddr) -> Vec<(NicId, NicPath)> {
    let (all, neighbour) = (nics.paths(), nics.neighbour(first));
    all.ids().filter_map(|nic| Some((nic, *all.any_path(neighbour, nic)?))).collect()
}

/// What of the frames a lane carries, if all that work have as much to do as they can.
fn share(lane: &NicPath, all: &[(NicId, NicPath)]) -> f64 {
    let rate = |lane: &NicPath| if lane.up { lane.rate.as_mbit_f64() } else { 0.0 };
    let sum: f64 = all.iter().map(|(_, lane)| rate(lane)).sum();
    if sum > 0.0 { rate(lane) / sum } else { 0.0 }
}

fn host_text(host: &str, nics: &MultiNic) -> String {
    let own = nics.paths().nics().iter().map(|nic| {
        let down = if nic.up { "" } else { ", no carrier" };
        format!("{} ({}{down})", nic.mac, nic.link.rate())
    });
    let mut text = format!("{host}: {}\n", own.collect::<Vec<_>>().join(", "));
    let Some(speaker) = nics.announcer() else {
        return text + "  tells nobody of its cards (extended_arp = false)\n";
    };
    text += &format!("  tells of them with generation {}\n", speaker.generation());
    let mut table = Table::new(
        &format!("Neighbours of {host}, and the ways to them"),
        vec![
            TableColumn::text("neighbour"),
            TableColumn::text("can"),
            TableColumn::number("generation", ""),
            TableColumn::text("card"),
            TableColumn::text("to"),
            TableColumn::text("works"),
            TableColumn::number("rate", "Mbit/s"),
            TableColumn::number("delay", "ms"),
            TableColumn::number("guard", "ms"),
            TableColumn::number("share", "%"),
        ],
    );
    let mut any = false;
    for (address, mac, machine) in speaker.cache().neighbours() {
        any = true;
        let all = lanes(nics, mac);
        for (nic, lane) in &all {
            let to = lane.to.unwrap_or(mac);
            table.row(vec![
                address.to_string().into(),
                machine.map_or_else(|| "ordinary".to_owned(), |m| m.flags.to_string()).into(),
                machine.map_or_else(|| "-".into(), |m| u64::from(m.generation).into()),
                format!("nic{}", nic.0).into(),
                to.to_string().into(),
                if lane.up { "yes" } else { "no" }.into(),
                TableCell::Number(lane.rate.as_mbit_f64(), Some(1)),
                TableCell::Number(lane.delay.of(FULL).as_secs_f64() * 1e3, Some(3)),
                TableCell::Number(lane.guard.as_secs_f64() * 1e3, Some(3)),
                TableCell::Number(share(lane, &all) * 100.0, Some(2)),
            ]);
        }
    }
    text += &if any { table.to_text() } else { "  knows of no neighbour\n".to_owned() };
    for (why, times) in &speaker.stats().refused {
        text += &format!("  {times} lists were not believed: {why}\n");
    }
    text
}

fn host_json(host: &str, nics: &MultiNic) -> Value {
    let card = |nic: &farpace_link::multi_nic::Nic| {
        json!({
            "mac": nic.mac.to_string(), "kind": nic.kind.to_string(), "rate_bit_s": nic.link.rate().bits_per_sec(),
            "up": nic.up,
        })
    };
    let way = |(nic, lane): &(NicId, NicPath), all: &[(NicId, NicPath)]| {
        json!({
            "card": nic.0, "to": lane.to.map(|to| to.to_string()), "up": lane.up,
            "rate_bit_s": lane.rate.bits_per_sec(), "delay_ns": lane.delay.of(FULL).as_nanos(),
            "guard_ns": lane.guard.as_nanos(), "share": share(lane, all),
        })
    };
    let neighbours = nics.announcer().map(|speaker| {
        let neighbour = |(address, mac, machine): (std::net::IpAddr, MacAddr, _)| {
            let all = lanes(nics, mac);
            let machine: Option<&farpace_link::multi_nic::arp::MultiNicHost> = machine;
            let cards = machine.map(|m| {
                let card =
                    |(mac, kind): &(MacAddr, farpace_wire::NicKind)| json!({ "mac": mac.to_string(), "kind": kind.to_string() });
                m.nics.iter().map(card).collect::<Vec<_>>()
            });
            json!({
                "address": address, "mac": mac.to_string(), "cards": cards,
                "flags": machine.map(|m| m.flags.to_string()), "generation": machine.map(|m| m.generation),
                "heard_s": machine.map(|m| m.last_heard.since(Instant::ZERO).as_secs_f64()),
                "ways": all.iter().map(|lane| way(lane, &all)).collect::<Vec<_>>(),
            })
        };
        speaker.cache().neighbours().map(neighbour).collect::<Vec<_>>()
    });
    let refused = nics.announcer().map(|speaker| {
        let refused = speaker.stats().refused.iter();
        refused.map(|(why, n)| json!({ "why": why.to_string(), "lists": n })).collect::<Vec<_>>()
    });
    json!({
        "host": host, "cards": nics.paths().nics().iter().map(card).collect::<Vec<_>>(),
        "generation": nics.announcer().map(|speaker| speaker.generation()),
        "neighbours": neighbours, "refused": refused,
    })
}
