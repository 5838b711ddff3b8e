//! The tables, for the terminal, for the report, and for programs.

use super::plan::SCENARIO;
use super::results::{Effect, Measured, Results, gain};
use super::words::{AUTO, Choice, GROWTHS, OFF};
use farpace_report::{Table, TableCell, TableColumn};
use serde_json::{Value, json};

/// Of all flows to each receiver: what asking gains, and what it costs.
pub fn effects(results: &Results) -> Table {
    let plan = &results.plan;
    let mut columns = vec![TableColumn::text("receiver"), TableColumn::text("asked")];
    for growth in &plan.growths {
        columns.push(TableColumn::number(&format!("saved, {}", growth.name), "%: middle (worst … best)"));
        columns.push(TableColumn::number("", "flows ±1 %"));
    }
    columns.extend([
        TableColumn::number("ACKs", "per MB"),
        TableColumn::number("", "kB per MB"),
        TableColumn::number("data", "bytes, %"),
        TableColumn::number("confirmed", "%"),
    ]);
    let title = format!(
        "What asking changes, over {} flows in each row (ACKs and bytes: window grows by bytes)",
        plan.flows().count()
    );
    let mut table = Table::new(&title, columns);
    for &receiver in &plan.receivers {
        for &asked in [OFF].iter().chain(&plan.asked) {
            let mut row: Vec<TableCell> = vec![receiver.name.into(), asked.name.into()];
            for &growth in &plan.growths {
                match results.effect(growth, receiver, asked).filter(|_| asked != OFF) {
                    Some(e) => row.extend([saved(&e).into(), moved(&e).into()]),
                    None => row.extend([TableCell::Missing, TableCell::Missing]),
                }
            }
            if let Some(e) = results.effect(GROWTHS[0], receiver, asked) {
                row.push(TableCell::Number(e.acks_per_mb, Some(0)));
                row.push(TableCell::Number(e.ack_kb_per_mb, Some(1)));
                row.push(if asked == OFF {
                    TableCell::Missing
                } else {
                    format!("{:+.2}", e.data_more + 0.0).into()
                });
                row.push(TableCell::Number(e.confirmed, Some(0)));
            }
            table.row(row);
        }
    }
    table
}

fn saved(e: &Effect) -> String {
    let [worst, middle, best] = e.gain.map(|g| if g.abs() < 0.05 { 0.0 } else { g });
    format!("{middle:.1} ({worst:.1} … {best:.1})")
}

fn moved(e: &Effect) -> String {
    format!("+{} −{} of {}", e.moved.0, e.moved.1, e.flows)
}

/// The heads of [`fields`].
pub fn places(results: &Results) -> Vec<String> {
    let plan = &results.plan;
    let sizes = plan.receivers.iter().flat_map(|r| plan.sizes.iter().map(move |s| (r, s)));
    sizes.map(|(r, size)| format!("{}, {}", r.name, amount(*size))).collect()
}

/// What asking saves on each path (rows) for each receiver and size of flow (columns), in percent.
pub fn fields(results: &Results, growth: Choice, asked: Choice) -> Vec<(String, Vec<Option<f64>>)> {
    let plan = &results.plan;
    let paths = plan.rates.iter().flat_map(|rate| plan.rtts.iter().map(move |rtt| (*rate, *rtt)));
    paths
        .map(|(rate, rtt)| {
            let flows = plan.receivers.iter().flat_map(|r| plan.sizes.iter().map(move |s| (*r, *s)));
            let gain = |(receiver, size)| {
                results.gain(&super::plan::Cell { growth, receiver, rate, rtt, size, asked })
            };
            (format!("{}, {rtt} ms", speed(rate)), flows.map(gain).collect())
        })
        .collect()
}

/// The same as a table.
pub fn by_path(results: &Results, growth: Choice, asked: Choice) -> Table {
    let plan = &results.plan;
    let mut columns = vec![TableColumn::text("path")];
    for receiver in &plan.receivers {
        for (i, size) in plan.sizes.iter().enumerate() {
            columns.push(TableColumn::number(if i == 0 { receiver.name } else { "" }, &amount(*size)));
        }
    }
    let title =
        format!("Completion time saved, in percent: asked {}, window grows {}", asked.name, growth.name);
    let mut table = Table::new(&title, columns);
    for (path, gains) in fields(results, growth, asked) {
        let cell = |g: Option<f64>| {
            g.map_or(TableCell::Missing, |g| TableCell::Number(if g.abs() < 0.05 { 0.0 } else { g }, Some(1)))
        };
        table.row([TableCell::from(path)].into_iter().chain(gains.into_iter().map(cell)).collect());
    }
    table
}

/// Where it is worth most, and where nothing: one sentence per receiver.
pub fn verdicts(results: &Results) -> Vec<String> {
    let [bytes, ..] = GROWTHS;
    let sentence = |receiver: Choice| {
        let e = results.effect(bytes, receiver, AUTO)?;
        let best = results.best(bytes, receiver, AUTO)?;
        let nil = e.flows - e.moved.0 - e.moved.1;
        Some(format!(
            "Receiver {}: of {} flows that are asked as `auto` does, {nil} end within 1 % of the same time, {} end sooner, {} \
             later; best {:.1} % ({}, {} ms, {}), worst {:.1} %.",
            receiver.name,
            e.flows,
            e.moved.0,
            e.moved.1,
            e.gain[2],
            speed(best.rate),
            best.rtt,
            amount(best.size),
            e.gain[0],
        ))
    };
    results.plan.receivers.iter().filter_map(|r| sentence(*r)).collect()
}

/// Everything for a terminal.
pub fn text(results: &Results) -> String {
    let mut out = format!(
        "Asking for ACKs on paths of today: {} runs, seed 1 (nothing is drawn), every byte compared\n\n",
        results.len()
    );
    out.push_str(&effects(results).to_text());
    for growth in results.plan.growths.iter().take(2) {
        out.push('\n');
        out.push_str(&by_path(results, *growth, AUTO).to_text());
    }
    out.push('\n');
    for verdict in verdicts(results) {
        out.push_str(&crate::papers::wrapped(&verdict, "", "  "));
    }
    out
}

/// For programs; docs/acks.md describes it.
pub fn json(results: &Results) -> Value {
    let run = |(cell, m, off): (&super::plan::Cell, &Measured, &Measured)| {
        json!({
            "rate_mbit_s": cell.rate,
            "rtt_ms": cell.rtt,
            "size_kb": cell.size,
            "receiver": cell.receiver.name,
            "growth": cell.growth.name,
            "asked": cell.asked.name,
            "completion_s": m.completion,
            "saved_percent": gain(m, off),
            "acks_per_mb": m.acks_per_mb(),
            "ack_kb_per_mb": m.ack_kb_per_mb(),
            "data_ip_bytes": m.data.1,
            "requests": m.asked,
            "confirmed": m.confirmed,
            "retransmissions": m.retransmissions,
            "timeouts": m.timeouts,
        })
    };
    json!({
        "format": "farpace-acks-today/1",
        "seed": 1,
        "scenario": SCENARIO,
        "runs": results.all().map(run).collect::<Vec<Value>>(),
    })
}

/// `10 Gbit/s`.
pub fn speed(mbit: u64) -> String {
    if mbit >= 1_000 && mbit.is_multiple_of(1_000) {
        format!("{} Gbit/s", mbit / 1_000)
    } else {
        format!("{mbit} Mbit/s")
    }
}

fn amount(kb: u64) -> String {
    if kb >= 1_000 && kb.is_multiple_of(1_000) { format!("{} MB", kb / 1_000) } else { format!("{kb} kB") }
}
