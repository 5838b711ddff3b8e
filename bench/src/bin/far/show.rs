//! Results as text, JSON and a picture.

use crate::cell::Outcome;
use crate::plan::{Args, Cell};
use farpace_report::{HeatRow, Table, TableCell as Field, TableColumn, heat_map};
use serde_json::{Value, json};

type Done = [(Cell, Outcome)];
/// What a grid shows: its title, and a cell's value as text.
type Shown<'a> = (&'a str, Box<dyn Fn(&Cell, &Outcome) -> String + 'a>);

/// Grids of rates by round trips, or a table with a row for each cell.
pub fn text(args: &Args, done: &Done) -> String {
    if args.table { rows(args, done).to_text() } else { grids(args, done) }
}

fn in_bdp(cell: &Cell, bytes: u64) -> f64 {
    bytes as f64 / (cell.bdp().get() as f64).max(1.0)
}

fn grids(args: &Args, done: &Done) -> String {
    let bounded = |cell: &Cell| if cell.ceiling(args.time).1 { "w" } else { "" };
    let shown: Vec<Shown<'_>> = match args.size {
        Some(_) => vec![
            (
                "time until the last byte, ms",
                Box::new(|_, o| o.completed.map_or("–".to_owned(), |ms| format!("{ms:.1}"))),
            ),
            ("dropped by the full queue, %", Box::new(|_, o| format!("{:.2}", o.lost))),
        ],
        None => vec![
            ("percent of the ceiling", Box::new(move |c, o| format!("{:.1}{}", o.reached, bounded(c)))),
            ("missed in the start, percent of the ceiling", Box::new(|_, o| format!("{:.1}", o.start))),
            (
                "memory of both ends, bandwidth-delay products",
                Box::new(|c, o| format!("{:.2}", in_bdp(c, o.memory))),
            ),
        ],
    };
    let mut out = String::new();
    for group in groups(done) {
        let Some((first, _)) = group.first() else { continue };
        for (what, value) in &shown {
            let title = format!("{}, loss {}: {what}", first.name(), first.loss);
            let heads = args.rtts.iter().map(|ms| TableColumn::number(&format!("{ms} ms"), ""));
            let mut table = Table::new(&title, [TableColumn::text("")].into_iter().chain(heads).collect());
            for row in lines(group) {
                let name = row.first().map(|(cell, _)| Field::from(cell.rate.to_string()));
                let values = columns(args, row).map(|done| done.map(|(c, o)| value(c, o)).into());
                table.row(name.into_iter().chain(values));
            }
            out.push_str(&table.to_text());
            out.push('\n');
        }
    }
    out
}

/// Cells of one sender and one loss.
fn groups(done: &Done) -> impl Iterator<Item = &Done> {
    done.chunk_by(|(a, _), (b, _)| a.name() == b.name() && a.loss == b.loss)
}

/// Of these, those of one rate each.
fn lines(done: &Done) -> impl Iterator<Item = &Done> {
    done.chunk_by(|(a, _), (b, _)| a.name() == b.name() && a.loss == b.loss && a.rate == b.rate)
}

/// One for each round trip that was asked for, if there is one.
fn columns<'a>(args: &'a Args, row: &'a Done) -> impl Iterator<Item = Option<&'a (Cell, Outcome)>> {
    args.rtts.iter().map(|ms| row.iter().find(|(cell, _)| cell.rtt.as_millis() == *ms))
}

fn rows(args: &Args, done: &Done) -> Table {
    let mut columns = vec![
        TableColumn::text("sender"),
        TableColumn::text("rate"),
        TableColumn::number("RTT", "ms"),
        TableColumn::number("loss", ""),
        TableColumn::number("reached", "%"),
        TableColumn::number("start", "%"),
        TableColumn::number("started", "s"),
        TableColumn::number("memory", "BDP"),
        TableColumn::number("of the sender", "BDP"),
        TableColumn::number("lost", "%"),
        TableColumn::number("sent again", "%"),
        TableColumn::number("timeouts", ""),
    ];
    if args.size.is_some() {
        columns.push(TableColumn::number("completed", "ms"));
    }
    if args.flows > 1 || !args.against.is_empty() {
        columns.push(TableColumn::number("share of the first", "%"));
    }
    let mut table = Table::new("", columns);
    let number = |value, decimals| Field::Number(value, Some(decimals));
    for (cell, o) in done {
        let mut row: Vec<Field> = vec![
            cell.name().into(),
            cell.rate.to_string().into(),
            cell.rtt.as_millis().into(),
            cell.loss.into(),
            number(o.reached, 1),
            number(o.start, 1),
            o.started.map(|s| number(s, 2)).into_field(),
            number(in_bdp(cell, o.memory), 2),
            number(in_bdp(cell, o.send_memory), 2),
            number(o.lost, 2),
            number(o.again, 2),
            o.timeouts.into(),
        ];
        if args.size.is_some() {
            row.push(o.completed.map(|ms| number(ms, 1)).into_field());
        }
        if args.flows > 1 || !args.against.is_empty() {
            row.push(number(o.share, 1));
        }
        table.row(row);
    }
    table
}

trait IntoField {
    fn into_field(self) -> Field;
}

impl IntoField for Option<Field> {
    fn into_field(self) -> Field {
        self.unwrap_or(Field::Missing)
    }
}

/// Everything, with the arguments that it holds for.
pub fn json(args: &Args, done: &Done) -> Value {
    let cells = done.iter().map(|(cell, o)| {
        let (ceiling, bounded) = cell.ceiling(args.time);
        json!({
            "sender": cell.sender.name,
            "beside": cell.rival.as_ref().map(|rival| &rival.name),
            "rate_bits_per_sec": cell.rate.bits_per_sec(),
            "rtt_ms": cell.rtt.as_millis(),
            "loss": cell.loss,
            "queue": cell.queue,
            "bdp_bytes": cell.bdp().get(),
            "ceiling_bytes": ceiling.get(),
            "ceiling_by_window": bounded,
            "reached_percent": o.reached,
            "start_percent": o.start,
            "started_s": o.started,
            "memory_bytes": o.memory,
            "send_memory_bytes": o.send_memory,
            "dropped_by_queue_percent": o.lost,
            "retransmitted_percent": o.again,
            "timeouts": o.timeouts,
            "completed_ms": o.completed,
            "share_of_first_percent": o.share,
        })
    });
    json!({
        "time_s": args.time.as_secs_f64(),
        "size_bytes": args.size.map(farpace_units::ByteCount::get),
        "flows": args.flows,
        "seeds": args.seeds,
        "cells": cells.collect::<Value>(),
    })
}

/// The grid as a picture.
pub fn svg(args: &Args, done: &Done) -> String {
    let heads: Vec<String> = args.rtts.iter().map(|ms| format!("{ms} ms")).collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut rows: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for row in lines(done) {
        let Some((cell, _)) = row.first() else { continue };
        let label = format!("{}, loss {}, {}", cell.name(), cell.loss, cell.rate);
        rows.push((label, columns(args, row).map(|done| value(args, &done?.1)).collect()));
    }
    let rows: Vec<HeatRow<'_>> =
        rows.iter().map(|(label, values)| HeatRow { label, values: values.clone() }).collect();
    let (title, unit) = match args.size {
        Some(size) => (format!("Transfers of {size}, queue {}", args.queue), "ms until the last byte"),
        None => (format!("Transfers of {}, queue {}", args.time, args.queue), "percent of the ceiling"),
    };
    heat_map(&title, [unit, "–"], &heads, &rows).wide
}

fn value(args: &Args, outcome: &Outcome) -> Option<f64> {
    if args.size.is_some() { outcome.completed } else { Some(outcome.reached) }
}
