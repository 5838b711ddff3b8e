//! The data set of a study: a row for each flow of each run, as one Parquet file.
//!
//! Rows stand in the order of points, seeds and flows, so the same runs give the same file, however they were
//! made.

use crate::error::StudyError;
use crate::quantity::{QuantityKind, QuantityValue};
use crate::record::{FlowRecord, Measurement, RunRecord, RunStatus};
use bytes::Bytes;
use farpace_trace::{ParquetCell, ParquetColumn, TableKind, TableWriter, TraceError};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A column of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StudyColumn {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: TableKind,
    /// What it means.
    pub description: &'static str,
}

const fn column(name: &'static str, kind: TableKind, description: &'static str) -> StudyColumn {
    StudyColumn { name, kind, description }
}

use TableKind::{Count, Number, Text, Truth};

/// The columns of a run. Those of the varied values come after `seed`.
pub const RUN_COLUMNS: [StudyColumn; 6] = [
    column("run", Text, "identifies the run by its content: version, scenario, values, seed"),
    column("seed", Count, "the seed"),
    column("status", Text, "complete, incomplete, damaged, refused, failed, crashed or overdue"),
    column("reason", Text, "why the run has not measured anything; null if it has"),
    column("ended_s", Number, "virtual time at the end of the run"),
    column("events", Count, "events processed"),
];

/// The columns of a flow; null for a run that has not measured anything.
pub const FLOW_COLUMNS: [StudyColumn; 21] = [
    column("flow", Text, "name of the flow"),
    column("class", Text, "its class: that of its workload, or its name"),
    column("from", Text, "the host that sends"),
    column("to", Text, "the host that receives"),
    column("profile", Text, "the sender's profile"),
    column("congestion", Text, "the sender's congestion control"),
    column("start_s", Number, "when the sender connected"),
    column("size_bytes", Count, "payload to be sent"),
    column("delivered_bytes", Count, "payload that reached the receiving program"),
    column("intact", Truth, "everything was delivered, and right"),
    column("damaged", Truth, "received bytes differ from those sent"),
    column("completion_s", Number, "from connecting to the last byte; null if it did not arrive"),
    column("elapsed_s", Number, "from connecting to the last byte or the end of the run"),
    column("goodput_bit_s", Count, "delivered payload per elapsed time"),
    column("efficiency", Number, "goodput over the lowest rate on the path; null on a path without a rate"),
    column("segments_sent", Count, "segments sent, retransmissions included"),
    column("retransmissions", Count, "of these, those that had been sent before"),
    column("timeouts", Count, "retransmission timeouts"),
    column(
        "queue_delay_s",
        Number,
        "time in queues on the path of data: mean of a reading in each bin in which something arrived",
    ),
    column(
        "silence_s",
        Number,
        "the stretches with at most one packet per round trip and something to send, together",
    ),
    column("base_rtt_s", Number, "round-trip time with empty queues"),
];

/// The key of the metadata that names the varied paths.
const PATHS_KEY: &str = "farpace.study.paths";

/// The cell of a JSON value.
fn cell_of(value: &Value, kind: TableKind) -> ParquetCell {
    match (kind, value) {
        (Text, Value::String(text)) => ParquetCell::Text(text.clone()),
        (Number, value) => value.as_f64().map_or(ParquetCell::Null, ParquetCell::Number),
        (Count, value) => {
            let count = value.as_u64().map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            count.map_or(ParquetCell::Null, ParquetCell::Count)
        }
        (Truth, Value::Bool(truth)) => ParquetCell::Truth(*truth),
        _ => ParquetCell::Null,
    }
}

/// The paths of all records, those of `first` in front.
fn paths(first: &[&str], records: &[RunRecord]) -> Vec<String> {
    let mut paths: Vec<String> = first.iter().map(|path| (*path).to_owned()).collect();
    let others: BTreeSet<&str> =
        records.iter().flat_map(|record| record.values.iter().map(|(path, _)| path.as_str())).collect();
    paths.extend(others.into_iter().filter(|path| !first.contains(path)).map(str::to_owned));
    paths
}

/// The kind of quantity that all values of a path are; none if they are not of one kind.
fn kind_of(path: &str, records: &[RunRecord]) -> Option<QuantityKind> {
    let mut found = None;
    for record in records {
        let Some((_, value)) = record.values.iter().find(|(p, _)| p == path) else { continue };
        let kind = QuantityValue::parse(value)?.kind;
        if *found.get_or_insert(kind) != kind {
            return None;
        }
    }
    found
}

/// What the column of the numbers of a path ends in.
const fn suffix(kind: QuantityKind) -> &'static str {
    match kind {
        QuantityKind::Number => "_number",
        QuantityKind::Time => "_s",
        QuantityKind::Rate => "_bit_s",
        QuantityKind::Size => "_bytes",
        QuantityKind::Packets => "_packets",
    }
}

/// Writes the records as a Parquet file, in their order. `first` are the paths of the plan.
pub(crate) fn write(out: &Path, first: &[&str], records: &[RunRecord]) -> Result<(), StudyError> {
    let file = File::create(out).map_err(|error| StudyError::write(out, error))?;
    let failed = |error: TraceError| StudyError::write(out, std::io::Error::other(error));
    let file = write_to(file, first, records).map_err(failed)?;
    file.sync_all().map_err(|error| StudyError::write(out, error))
}

fn write_to<W: Write + Send>(out: W, first: &[&str], records: &[RunRecord]) -> Result<W, TraceError> {
    let paths = paths(first, records);
    let kinds: Vec<Option<QuantityKind>> = paths.iter().map(|path| kind_of(path, records)).collect();
    let fixed = |c: &StudyColumn| ParquetColumn { name: c.name.to_owned(), kind: c.kind };
    let mut columns: Vec<ParquetColumn> = RUN_COLUMNS[..2].iter().map(fixed).collect();
    for (path, kind) in paths.iter().zip(&kinds) {
        columns.push(ParquetColumn { name: path.clone(), kind: Text });
        if let Some(kind) = kind {
            columns.push(ParquetColumn { name: format!("{path}{}", suffix(*kind)), kind: Number });
        }
    }
    columns.extend(RUN_COLUMNS[2..].iter().chain(&FLOW_COLUMNS).map(fixed));
    let paths_text = serde_json::to_string(&paths).unwrap_or_default();
    let described = RUN_COLUMNS.iter().chain(&FLOW_COLUMNS);
    let described = described
        .map(|column| (format!("farpace.description.{}", column.name), column.description.to_owned()));
    let metadata = std::iter::once((PATHS_KEY.to_owned(), paths_text)).chain(described);
    let mut writer = TableWriter::new(out, "run", columns, metadata)?;
    for record in records {
        for row in cells(record, &paths, &kinds) {
            writer.add(row)?;
        }
    }
    writer.finish()
}

/// The rows of a run: one for each flow, or one without a flow.
fn cells(record: &RunRecord, paths: &[String], kinds: &[Option<QuantityKind>]) -> Vec<Vec<ParquetCell>> {
    let mut before = vec![
        ParquetCell::Text(record.run.clone()),
        ParquetCell::Count(i64::try_from(record.seed).unwrap_or(i64::MAX)),
    ];
    for (path, kind) in paths.iter().zip(kinds) {
        let value = record.values.iter().find(|(p, _)| p == path).map(|(_, value)| value);
        before.push(value.map_or(ParquetCell::Null, |value| ParquetCell::Text(value.clone())));
        if kind.is_some() {
            let number = value.and_then(|value| QuantityValue::parse(value));
            before.push(number.map_or(ParquetCell::Null, |number| ParquetCell::Number(number.base)));
        }
    }
    let measured = record.status.is_measured();
    let (ended, events) = (record.measured.ended_s, record.measured.events);
    before.push(ParquetCell::Text(record.status.name().to_owned()));
    before.push(record.reason.clone().map_or(ParquetCell::Null, ParquetCell::Text));
    before.push(if measured { ParquetCell::Number(ended) } else { ParquetCell::Null });
    before.push(if measured { ParquetCell::Count(events as i64) } else { ParquetCell::Null });
    let row = |flow: Value| {
        let flow_cells = FLOW_COLUMNS.iter().map(|column| cell_of(&flow[column.name], column.kind));
        before.iter().cloned().chain(flow_cells).collect::<Vec<ParquetCell>>()
    };
    if record.measured.flows.is_empty() {
        return vec![row(Value::Null)];
    }
    let flows = record.measured.flows.iter();
    flows.map(|flow| row(serde_json::to_value(flow).unwrap_or_default())).collect()
}

/// Reads the records of a file; none if there is no file.
pub(crate) fn read(path: &Path) -> Result<Vec<RunRecord>, StudyError> {
    let file = match std::fs::read(path) {
        Ok(file) => Bytes::from(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StudyError::read(path, error)),
    };
    let damaged = |problem: String| StudyError::Damaged { path: path.to_owned(), problem };
    let reader = SerializedFileReader::new(file).map_err(|error| damaged(error.to_string()))?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let paths = metadata.and_then(|all| all.iter().find(|kv| kv.key == PATHS_KEY)?.value.clone());
    let paths: Vec<String> = paths
        .and_then(|text| serde_json::from_str(&text).ok())
        .ok_or_else(|| damaged("it does not name the varied paths".into()))?;
    let mut records: Vec<RunRecord> = Vec::new();
    for row in reader.get_row_iter(None).map_err(|error| damaged(error.to_string()))? {
        let row = row.map_err(|error| damaged(error.to_string()))?;
        let cells: Map<String, Value> = row.into_columns().into_iter().map(|(k, v)| (k, json(v))).collect();
        let (record, flow) = record(&cells, &paths).ok_or_else(|| damaged("a row is no run".into()))?;
        match records.last_mut() {
            Some(last) if last.run == record.run => last.measured.flows.extend(flow),
            _ => {
                records.push(record);
                if let Some(last) = records.last_mut() {
                    last.measured.flows.extend(flow);
                }
            }
        }
    }
    Ok(records)
}

fn json(field: Field) -> Value {
    match field {
        Field::Str(text) => Value::String(text),
        Field::Double(number) => Value::from(number),
        Field::Long(count) => Value::from(count),
        Field::Bool(truth) => Value::Bool(truth),
        _ => Value::Null,
    }
}

/// A run, and its flow if the row has one.
fn record(cells: &Map<String, Value>, paths: &[String]) -> Option<(RunRecord, Option<FlowRecord>)> {
    let text = |key: &str| cells.get(key).and_then(Value::as_str).map(str::to_owned);
    let value = |path: &String| Some((path.clone(), text(path)?));
    let number = |key: &str| cells.get(key).and_then(Value::as_f64);
    let measured = Measurement {
        ended_s: number("ended_s").unwrap_or_default(),
        events: cells.get("events").and_then(Value::as_u64).unwrap_or_default(),
        flows: Vec::new(),
    };
    let record = RunRecord {
        run: text("run")?,
        seed: cells.get("seed")?.as_u64()?,
        values: paths.iter().filter_map(value).collect(),
        status: RunStatus::named(&text("status")?)?,
        reason: text("reason"),
        measured,
    };
    let flow = match cells.get("flow") {
        None | Some(Value::Null) => None,
        Some(_) => {
            let of_flow = FLOW_COLUMNS
                .iter()
                .map(|column| (column.name.to_owned(), cells.get(column.name).cloned().unwrap_or_default()));
            Some(serde_json::from_value(Value::Object(of_flow.collect())).ok()?)
        }
    };
    Some((record, flow))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn flow(name: &str, goodput: u64) -> FlowRecord {
        FlowRecord {
            flow: name.into(),
            class: name.into(),
            from: "a".into(),
            to: "b".into(),
            profile: "modern".into(),
            congestion: "cubic".into(),
            start_s: 0.25,
            size_bytes: 1 << 40,
            delivered_bytes: 12_345,
            intact: false,
            damaged: false,
            completion_s: None,
            elapsed_s: 1.1,
            goodput_bit_s: goodput,
            efficiency: Some(0.1 + 0.2),
            segments_sent: 9,
            retransmissions: 2,
            timeouts: 1,
            queue_delay_s: Some(1e-9),
            silence_s: 0.0,
            base_rtt_s: 0.02,
        }
    }

    pub(crate) fn run(seed: u64, value: &str, flows: Vec<FlowRecord>) -> RunRecord {
        let measured = Measurement { ended_s: 1.5, events: 77, flows };
        RunRecord {
            run: format!("{seed:016x}{value}"),
            seed,
            values: vec![("links.wan.delay".into(), value.into())],
            status: RunStatus::Incomplete,
            reason: None,
            measured,
        }
    }

    /// Breaks: a value that is lost or changed between two sweeps of a study.
    #[test]
    fn records_survive() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.parquet");
        let crashed = RunRecord {
            status: RunStatus::Crashed,
            reason: Some("index out of bounds".into()),
            measured: Measurement::default(),
            ..run(3, "9 ms", Vec::new())
        };
        let mut other = run(4, "5 ms", vec![flow("x", 3)]);
        other.values = vec![("flows.*.size".into(), "1 MB".into())];
        let records = vec![
            run(1, "5 ms", vec![flow("x", 1), flow("y", u64::MAX >> 1)]),
            run(2, "5 ms", vec![flow("x", 2)]),
            crashed,
            other,
        ];
        assert_eq!(read(&path).unwrap(), []);
        write(&path, &["links.wan.delay"], &records).unwrap();
        assert_eq!(read(&path).unwrap(), records);
        let first = std::fs::read(&path).unwrap();
        write(&path, &["links.wan.delay"], &records).unwrap();
        assert_eq!(first, std::fs::read(&path).unwrap(), "the same records give the same bytes");
        let reader = SerializedFileReader::new(Bytes::from(first)).unwrap();
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap().into_columns();
        let cell = |name: &str| row.iter().find(|(n, _)| n == name).map(|(_, field)| field.clone());
        assert_eq!(cell("links.wan.delay_s"), Some(Field::Double(0.005)), "numbers for plots");
        std::fs::write(&path, "no parquet").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("is damaged"));
    }

    /// Breaks: a new field of a flow that has no column.
    #[test]
    fn every_field_has_its_column() {
        let Value::Object(fields) = serde_json::to_value(flow("x", 1)).unwrap() else { unreachable!() };
        let names: BTreeSet<&str> = FLOW_COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(fields.keys().map(String::as_str).collect::<BTreeSet<_>>(), names);
    }
}
