//! `farpace kernel trace`.

use super::TraceArgs;
use crate::realtime::RealtimeFigures;
use crate::terminal;
use anyhow::{Context, Result};
use farpace_emulate::LiveFigures;
use farpace_events::RecordSink;
use farpace_kernel::{KernelTrace, TraceRow, connections};
use farpace_process::interrupt;
use farpace_process::outdir::OutDir;
use farpace_process::stopwatch::Stopwatch;
use farpace_trace::{ParquetSink, RunInfo};
use farpace_units::{Instant, Span};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use std::time::Duration;

/// How long it takes until Ctrl-C is heard.
const LOOK: Duration = Duration::from_millis(100);
/// Most connections of a trace; rows of more are counted.
const MAX_CONNECTIONS: usize = 1 << 20;
const TABLE: &str = "trace.parquet";
const NAMES: &str = "connections.json";

/// Who a connection number is.
struct TraceState {
    number: u32,
    row: TraceRow,
    rows: u64,
}

/// Reads and writes until the end.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    interrupt::install();
    let out = OutDir::open(&args.out, &[TABLE.to_owned(), NAMES.to_owned()])?;
    let file = File::create(out.staging().join(TABLE)).context("cannot write the trace")?;
    let info = RunInfo { scenario: "kernel".into(), seed: 0 };
    let mut sink = ParquetSink::new(BufWriter::with_capacity(1 << 20, file), &info)?;
    let lost_before = connections()?.trace_lost;
    let mut trace = KernelTrace::start()?;
    let begun = Stopwatch::start();
    let lasts = args.lasts.map_or(Duration::MAX, |lasts| Duration::from_nanos(lasts.as_nanos()));
    let (tick, mut start) = (KernelTrace::tick(), None);
    let mut seen: BTreeMap<u64, TraceState> = BTreeMap::new();
    let (mut rows, mut left_out, mut foreign) = (0u64, 0u64, 0);
    let mut figures = RealtimeFigures::new(args.json);
    while !interrupt::asked() && begun.elapsed() < lasts {
        foreign += trace.read(LOOK, |row| {
            let start: Instant = *start.get_or_insert(row.time);
            if seen.len() >= MAX_CONNECTIONS && !seen.contains_key(&row.id) {
                left_out += 1;
                return;
            }
            let number = u32::try_from(seen.len()).unwrap_or(u32::MAX);
            let one = seen.entry(row.id).or_insert_with(|| TraceState { number, row: row.clone(), rows: 0 });
            one.rows += 1;
            rows += 1;
            sink.record(&row.record(one.number, start, tick));
        })?;
        let now =
            Instant::ZERO + Span::from_nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if figures.is_due(now) {
            figures.show(now, &[format!("{rows} ACKs of {} connections", seen.len())]);
        }
    }
    figures.clear();
    drop(trace);
    sink.finish()?.into_inner().context("cannot write the trace")?;
    let lost =
        connections().map_or(0, |found| found.trace_lost.saturating_sub(lost_before)) + left_out + foreign;
    let mut all: Vec<_> = seen.values().collect();
    all.sort_by_key(|one| one.number);
    let names: Vec<Value> = all.iter().map(|one| name(one)).collect();
    out.write(NAMES, format!("{}\n", serde_json::to_string_pretty(&names)?).as_bytes())?;
    let directory = out.dir().to_owned();
    let files = out.commit()?;
    let seconds = begun.elapsed().as_secs_f64();
    if args.json {
        terminal::print_json(&json!({
            "format": "farpace-kernel-trace/1", "seconds": seconds, "rows": rows, "lost_rows": lost,
            "connections": names, "directory": directory, "files": files,
        }))?;
    } else {
        let lost = if lost > 0 {
            format!(" {lost} rows were lost: nobody read them in time.")
        } else {
            String::new()
        };
        terminal::print(&format!(
            "{rows} ACKs of {} connections in {seconds:.1} s.{lost}\nTrace: {}\n",
            names.len(),
            directory.join(TABLE).display()
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn name(one: &TraceState) -> Value {
    json!({
        "connection": one.number,
        "id": one.row.id,
        "local": one.row.addresses.local,
        "remote": one.row.addresses.remote,
        "namespace": one.row.addresses.namespace,
        "control": one.row.control,
        "rows": one.rows,
    })
}
