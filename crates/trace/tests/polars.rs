//! The Parquet trace, read by polars.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use farpace_events::{Cause, Record, RecordDirection, RecordSink, RecoveryState};
use farpace_trace::{COLUMN_COUNT, COLUMNS, ColumnKind, ParquetSink, ROW_GROUP_ROWS, RunInfo};
use farpace_units::{ByteCount, Instant, Packets, Seq, Span};
use farpace_wire::SackBlock;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: u64 = ROW_GROUP_ROWS as u64 + 1000;

const SCRIPT: &str = r#"
import sys
try:
    import polars as pl
except ImportError:
    sys.exit(77)
t = pl.read_parquet(sys.argv[1])
print("rows", t.height)
for name, kind in t.schema.items():
    print("column", name, kind, t[name].null_count())
print("sum", t["time_ns"].sum(), t["seq"].cast(pl.UInt64).sum(), t["ssthresh"].cast(pl.UInt64).sum())
print("max", t["seq"].max(), t["rwnd"].max(), t["sack1_end"].max())
causes = t.group_by("cause").len().sort("cause")
print("causes", causes.rows())
print("late", pl.scan_parquet(sys.argv[1]).filter(pl.col("time_ns") >= 66_000_000).collect().height)
print("seed", pl.read_parquet_metadata(sys.argv[1])["farpace.seed"])
"#;

/// Exit code of the script if polars is not installed.
const NO_POLARS: i32 = 77;

fn record(n: u64) -> Record {
    let even = n.is_multiple_of(2);
    let mut record = Record {
        time: Instant::from_nanos(n * 1000),
        connection: 0,
        direction: if even { RecordDirection::Sent } else { RecordDirection::Received },
        seq: Seq::new(u32::MAX - n as u32),
        len: ByteCount::new(1448),
        ack: Seq::new(1),
        sack: Default::default(),
        snd_una: Seq::new(2),
        snd_nxt: Seq::new(3),
        cwnd: Packets::new(4),
        ssthresh: if even { Packets::new(1000) } else { Packets::MAX },
        in_flight: Packets::ZERO,
        packets_out: Packets::ZERO,
        lost_out: Packets::ZERO,
        sacked_out: Packets::ZERO,
        fackets_out: Packets::ZERO,
        retrans_out: Packets::ZERO,
        state: RecoveryState::Open,
        srtt: Span::from_millis(10),
        rttvar: Span::from_millis(1),
        rto: Span::from_millis(210),
        rwnd: ByteCount::new(u64::MAX),
        bandwidth: Default::default(),
        cause: even.then_some(Cause::NewData),
    };
    if n == 7 {
        record.sack.push(SackBlock { start: Seq::new(u32::MAX - 1), end: Seq::new(u32::MAX) });
    }
    record
}

fn write_trace(path: &Path) {
    let info = RunInfo { scenario: "test".into(), seed: 42 };
    let mut sink = ParquetSink::new(File::create(path).unwrap(), &info).unwrap();
    for n in 0..ROWS {
        sink.record(&record(n));
    }
    sink.finish().unwrap();
}

/// The Python interpreter: `FARPACE_PYTHON`, or that of the virtual environment of the checkout, or that of
/// the system.
fn python() -> PathBuf {
    if let Some(path) = std::env::var_os("FARPACE_PYTHON") {
        return path.into();
    }
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    if local.exists() { local } else { "python3".into() }
}

/// Breaks: pandas, polars and duckdb can read the trace: rows, names, types, values, nulls, row groups,
/// selection by time, metadata.
#[test]
fn polars_reads_our_traces() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    write_trace(&path);
    let mut command = Command::new(python());
    command.arg("-c").arg(SCRIPT).arg(&path);
    let Some(output) = common::run_if_installed(&mut command, "python") else { return };
    if output.status.code() == Some(NO_POLARS) {
        common::skip::<()>("polars", "no such module");
        return;
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(format!("rows {ROWS}").as_str()));
    for column in &COLUMNS {
        let kind = match column.kind {
            ColumnKind::U32 => "UInt32",
            ColumnKind::U64 => "UInt64",
            ColumnKind::Name => "String",
        };
        let nulls = match column.name {
            "sack1_start" | "sack1_end" => ROWS - 1,
            name if name.starts_with("sack") && column.nullable => ROWS,
            "ssthresh" | "cause" => ROWS / 2,
            _ => 0,
        };
        assert_eq!(lines.next(), Some(format!("column {} {kind} {nulls}", column.name).as_str()));
    }
    let numbers = ROWS * (ROWS - 1) / 2;
    let rest = [
        format!("sum {} {} {}", numbers * 1000, ROWS * u64::from(u32::MAX) - numbers, ROWS / 2 * 1000),
        format!("max {} {} {}", u32::MAX, u64::MAX, u32::MAX),
        format!("causes [(None, {}), ('new_data', {})]", ROWS / 2, ROWS / 2),
        format!("late {}", ROWS - 66_000),
        "seed 42".to_owned(),
    ];
    assert_eq!(lines.collect::<Vec<_>>(), rest);
    assert_eq!(text.lines().count(), 1 + COLUMN_COUNT + rest.len());
}
