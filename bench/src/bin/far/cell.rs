//! One cell: its runs, and what came out.

use crate::plan::{Args, Cell};
use anyhow::{Result, anyhow, bail};
use farpace_host::Host;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, VerifyError};
use farpace_path::DropReason;
use farpace_units::{ByteCount, Rate, Span};
use serde_json::json;
use std::collections::VecDeque;

/// The start ends when a round trip brings this part of the ceiling.
const STARTED: f64 = 0.9;
/// Time between two readings.
const BIN: Span = Span::from_millis(20);
/// Between the starts of two connections.
const APART: Span = Span::from_millis(500);

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Payload that arrived, all connections together, in percent of the ceiling.
    pub reached: f64,
    /// What was missed until nine tenths of the ceiling came in a round trip, in percent of the ceiling of
    /// the run.
    pub start: f64,
    /// When that was, in seconds; none: it never came.
    pub started: Option<f64>,
    /// Most bytes of all connections at one reading.
    pub memory: u64,
    /// Of them, those that senders held.
    pub send_memory: u64,
    /// Segments dropped by the queue, in percent of those sent.
    pub lost: f64,
    /// Retransmissions, in percent of all segments sent.
    pub again: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Milliseconds until the last byte of the last connection; none: not within the time.
    pub completed: Option<f64>,
    /// Part of the first connection of what arrived.
    pub share: f64,
}

/// Makes the runs of a cell. Of several seeds: the run in the middle by what was asked for.
///
/// # Errors
/// A setting that is wrong, or a defect of the lab.
pub fn run(cell: &Cell, args: &Args) -> Result<Outcome> {
    let mut all: Vec<Outcome> = (1..=args.seeds).map(|seed| once(cell, args, seed)).collect::<Result<_>>()?;
    let key = |o: &Outcome| match args.size {
        Some(_) => o.completed.unwrap_or(f64::INFINITY),
        None => o.reached,
    };
    all.sort_by(|a, b| key(a).total_cmp(&key(b)));
    Ok(all.swap_remove(all.len() / 2))
}

fn scenario(cell: &Cell, args: &Args, seed: u64) -> Result<Scenario> {
    let endless = cell.rate.bytes_in(args.time).get().saturating_mul(2).max(1_000_000);
    let size = args.size.unwrap_or(ByteCount::new(endless));
    let count = if cell.rival.is_some() { 2 } else { args.flows };
    let flows = (0..count).map(|n| {
        let start = format!("{} ns", (APART * n).as_nanos());
        let size = format!("{} B", size.get());
        json!({ "name": format!("bulk{n}"), "from": "a", "to": "b", "size": size, "start": start })
    });
    let scenario = json!({
        "title": cell.to_string(),
        "seed": seed,
        "duration": format!("{} ns", args.time.as_nanos()),
        "trace": { "bin": format!("{} ns", BIN.as_nanos()) },
        "hosts": { "a": {}, "b": {} },
        "routers": { "r": {} },
        "links": [
            { "name": "access", "between": ["a", "r"] },
            {
                "name": "line",
                "between": ["r", "b"],
                "rate": format!("{} bit/s", cell.rate.bits_per_sec()),
                "delay": format!("{} ns", (cell.rtt / 2).as_nanos()),
                "forward": { "loss": cell.loss, "queue": cell.queue },
            },
        ],
        "flows": flows.collect::<Vec<_>>(),
    });
    let mut set: Vec<(String, String)> = Vec::new();
    for n in 0..count {
        let sender = cell.rival.as_ref().filter(|_| n > 0).unwrap_or(&cell.sender);
        let profile = sender.settings.first().map(|(_, name)| name.clone()).unwrap_or_default();
        let path = format!("flows.bulk{n}.sender");
        set.extend(sender.settings.iter().map(|(key, value)| (format!("{path}.{key}"), value.clone())));
        set.push((format!("flows.bulk{n}.receiver.profile"), profile));
    }
    Scenario::parse_with(&toml(&scenario), "far", &set).map_err(|e| anyhow!("{e}"))
}

/// A scenario is TOML; its inline tables and arrays take what JSON has but the colons.
fn toml(value: &serde_json::Value) -> String {
    let Some(table) = value.as_object() else { return String::new() };
    table.iter().map(|(key, value)| format!("{key} = {}\n", inline(value))).collect()
}

fn inline(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(table) => {
            let fields: Vec<String> = table.iter().map(|(k, v)| format!("{k} = {}", inline(v))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        serde_json::Value::Array(list) => {
            format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn once(cell: &Cell, args: &Args, seed: u64) -> Result<Outcome> {
    let scenario = scenario(cell, args, seed)?;
    let mut run = Run::new(&scenario, Inputs::default())?;
    let (ceiling, _) = cell.ceiling(args.time);
    let a_second = Rate::of(ceiling, args.time).as_bytes_per_sec_f64();
    let mut outcome = Outcome::default();
    // Of the last round trip, bin by bin.
    let bins = (cell.rtt.as_nanos() / BIN.as_nanos()).max(5) as usize;
    let mut recent: VecDeque<u64> = VecDeque::new();
    loop {
        let progress = run.advance(None)?;
        let delivered: u64 = run.samples().iter().map(|s| s.delivered.get()).sum();
        let (sending, receiving) = memory(&run);
        if sending + receiving > outcome.memory {
            (outcome.memory, outcome.send_memory) = (sending + receiving, sending);
        }
        recent.push_back(delivered);
        if recent.len() > bins {
            recent.pop_front();
        }
        let sum: u64 = recent.iter().sum();
        let whole = a_second * BIN.as_secs_f64() * bins as f64;
        if outcome.started.is_none() && recent.len() == bins && sum as f64 >= STARTED * whole {
            let at = progress.now.as_nanos() as f64 / 1e9;
            outcome.started = Some(at);
            let missed = a_second * at - progress.delivered.get() as f64;
            outcome.start = 100.0 * missed.max(0.0) / ceiling.get() as f64;
        }
        if progress.finished {
            break;
        }
    }
    let end = run.finish()?;
    for flow in &end.flows {
        match &flow.verified {
            // The run ends by its time.
            Ok(_) | Err(VerifyError::Short { .. }) => {}
            Err(error) => bail!("flow `{}`: {error}", flow.name),
        }
    }
    let delivered: u64 = end.flows.iter().map(|f| f.delivered.get()).sum();
    let sent: u64 = end.flows.iter().flat_map(|f| f.sent()).map(|(_, n)| n).sum();
    let again: u64 = end.flows.iter().map(|f| f.retransmissions()).sum();
    let full = end.drops.iter().filter(|d| d.reason == DropReason::QueueFull);
    let dropped: u64 = full.map(|d| d.packets).sum();
    let percent = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    outcome.reached = percent(delivered, ceiling.get());
    outcome.lost = percent(dropped, sent);
    outcome.again = percent(again, sent);
    outcome.timeouts = end.flows.iter().map(|f| f.timeouts).sum();
    outcome.share = end.flows.first().map_or(0.0, |f| percent(f.delivered.get(), delivered));
    if outcome.started.is_none() {
        outcome.start = 100.0 - outcome.reached;
    }
    let times: Option<Vec<f64>> =
        end.flows.iter().map(|f| f.completed.map(|at| at.as_nanos() as f64 / 1e6)).collect();
    outcome.completed = times.map(|all| all.into_iter().fold(0.0, f64::max));
    Ok(outcome)
}

/// Bytes that all connections hold: to be sent or acknowledged, and received.
fn memory(run: &Run) -> (u64, u64) {
    let world = run.world();
    let hosts = world.ids().filter_map(|id| world.element::<Host>(id));
    let held = hosts.flat_map(|host| host.connections().map(|(_, c)| c.memory()));
    held.fold((0, 0), |(sending, receiving), m| {
        (sending + m.send_bytes.get(), receiving + m.readable_bytes.get() + m.waiting_bytes.get())
    })
}
