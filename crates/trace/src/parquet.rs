//! The trace as Parquet, for pandas, polars and duckdb.
//!
//! Values are collected by column and written as a row group after every [`ROW_GROUP_ROWS`] rows. So memory
//! does not grow with the run, except for a few kilobytes of file index per row group.

use crate::column::ColumnKind;
use crate::column_buffer::{ColumnBuffer, ColumnValues};
use crate::error::TraceError;
use crate::schema::{COLUMN_COUNT, COLUMNS, gather};
use bytes::Bytes;
use farpace_events::{Record, RecordSink};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::io::Write;
use std::sync::Arc;

/// Rows per row group: enough to compress well, at about 10 MB of memory.
pub const ROW_GROUP_ROWS: usize = 64 * 1024;

/// Number of rows that are split into columns at a time.
const PENDING_ROWS: usize = 256;
const _: () = assert!(ROW_GROUP_ROWS.is_multiple_of(PENDING_ROWS));

/// Columns that grow in small steps, and so compress well as differences.
const GROWING: [&str; 5] = ["time_ns", "seq", "ack", "snd_una", "snd_nxt"];

/// The run that a trace file belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// The name of the scenario.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
}

/// Writes records as Parquet (Snappy). The key-value metadata is `farpace.scenario`, `farpace.seed`, and for
/// each column `farpace.unit.NAME` (if it has a unit) and `farpace.description.NAME`.
///
/// The file is readable only after [`finish`](Self::finish) has succeeded. Equal records yield equal bytes.
pub struct ParquetSink<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// Rows that are not yet in `columns`; few enough to stay in the cache.
    pending: Vec<Record>,
    columns: [ColumnBuffer; COLUMN_COUNT],
    /// Number of rows in `columns`.
    gathered: usize,
    rows: u64,
    failed: Option<TraceError>,
}

impl<W: Write + Send> ParquetSink<W> {
    /// A sink that writes to `out`.
    ///
    /// # Errors
    /// The first bytes cannot be written.
    pub fn new(out: W, info: &RunInfo) -> Result<Self, TraceError> {
        let writer = SerializedFileWriter::new(out, Arc::new(file_schema()?), Arc::new(properties(info)))?;
        Ok(ParquetSink {
            writer,
            pending: Vec::with_capacity(PENDING_ROWS),
            columns: COLUMNS.each_ref().map(ColumnBuffer::new),
            gathered: 0,
            rows: 0,
            failed: None,
        })
    }

    /// Number of rows accepted.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the last row group and the index, and returns the writer.
    ///
    /// # Errors
    /// The first error of this sink.
    pub fn finish(mut self) -> Result<W, TraceError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.gather();
        self.flush()?;
        Ok(self.writer.into_inner()?)
    }

    fn gather(&mut self) {
        gather(&self.pending, &mut self.columns);
        self.gathered += self.pending.len();
        self.pending.clear();
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.gathered == 0 {
            return Ok(());
        }
        self.gathered = 0;
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let mut writer =
                group.next_column()?.ok_or_else(|| ParquetError::General("a column is missing".into()))?;
            write_column(column, &mut writer)?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

impl<W: Write + Send> RecordSink for ParquetSink<W> {
    fn record(&mut self, record: &Record) {
        if self.failed.is_some() {
            return;
        }
        self.rows += 1;
        self.pending.push(record.clone());
        if self.pending.len() < PENDING_ROWS {
            return;
        }
        self.gather();
        if self.gathered >= ROW_GROUP_ROWS
            && let Err(error) = self.flush()
        {
            self.failed = Some(error.into());
        }
    }
}

fn write_column(
    buffer: &mut ColumnBuffer,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<(), ParquetError> {
    let levels = buffer.nullable.then_some(buffer.levels.as_slice());
    match &buffer.values {
        ColumnValues::U32(values) => writer.typed::<Int32Type>().write_batch(values, levels, None)?,
        ColumnValues::U64(values) => writer.typed::<Int64Type>().write_batch(values, levels, None)?,
        ColumnValues::Name(names) => {
            let names: Vec<ByteArray> =
                names.iter().map(|name| Bytes::from_static(name.as_bytes()).into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&names, levels, None)?
        }
    };
    buffer.clear();
    Ok(())
}

fn file_schema() -> Result<Type, ParquetError> {
    let mut fields = Vec::with_capacity(COLUMN_COUNT);
    for column in &COLUMNS {
        let (physical, logical) = match column.kind {
            ColumnKind::U32 => (PhysicalType::INT32, LogicalType::integer(32, false)),
            ColumnKind::U64 => (PhysicalType::INT64, LogicalType::integer(64, false)),
            ColumnKind::Name => (PhysicalType::BYTE_ARRAY, LogicalType::String),
        };
        let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(column.name, physical)
            .with_logical_type(Some(logical))
            .with_repetition(repetition)
            .build()?;
        fields.push(Arc::new(field));
    }
    Type::group_type_builder("record").with_fields(fields).build()
}

fn properties(info: &RunInfo) -> WriterProperties {
    let mut metadata = vec![
        KeyValue::new("farpace.scenario".into(), info.scenario.clone()),
        KeyValue::new("farpace.seed".into(), info.seed.to_string()),
    ];
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // Readers skip row groups by time and connection. Statistics of other columns are not worth their
        // cost.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled("time_ns".into(), EnabledStatistics::Chunk)
        .set_column_statistics_enabled("connection".into(), EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        // Fast to write; Snappy compresses repetitions.
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::PLAIN);
    for column in &COLUMNS {
        let path = ColumnPath::from(column.name);
        if GROWING.contains(&column.name) {
            builder = builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else if column.kind == ColumnKind::Name {
            builder = builder.set_column_dictionary_enabled(path, true);
        }
        if !column.unit.is_empty() {
            metadata.push(KeyValue::new(format!("farpace.unit.{}", column.name), column.unit.to_owned()));
        }
        let key = format!("farpace.description.{}", column.name);
        metadata.push(KeyValue::new(key, column.description.to_owned()));
    }
    builder.set_key_value_metadata(Some(metadata)).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::TraceCell;
    use crate::schema::cells;
    use crate::test_records::{any_record, distinct, full_disk};
    use farpace_units::Instant;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use proptest::prelude::*;

    fn info() -> RunInfo {
        RunInfo { scenario: "stops".into(), seed: 7 }
    }

    fn written(records: &[Record]) -> SerializedFileReader<Bytes> {
        let mut sink = ParquetSink::new(Vec::new(), &info()).unwrap();
        for record in records {
            sink.record(record);
        }
        assert_eq!(sink.rows(), records.len() as u64);
        SerializedFileReader::new(Bytes::from(sink.finish().unwrap())).unwrap()
    }

    fn field(cell: TraceCell) -> Field {
        match cell {
            TraceCell::Null => Field::Null,
            TraceCell::U32(n) => Field::UInt(n),
            TraceCell::U64(n) => Field::ULong(n),
            TraceCell::Name(name) => Field::Str(name.to_owned()),
        }
    }

    proptest! {
        /// Breaks: values in Parquet: limits of numbers, nulls, names, and the order of rows.
        #[test]
        fn any_record_survives(records in proptest::collection::vec(any_record(), 0..50)) {
            let reader = written(&records);
            let mut rows = reader.get_row_iter(None).unwrap();
            for record in &records {
                let row = rows.next().unwrap().unwrap();
                let expected = COLUMNS.iter().map(|c| c.name.to_owned()).zip(cells(record).map(field));
                prop_assert_eq!(row.into_columns(), expected.collect::<Vec<_>>());
            }
            prop_assert!(rows.next().is_none());
        }
    }

    /// Breaks: memory is bounded by the row groups, and no row is lost between two groups.
    #[test]
    fn row_groups_are_bounded() {
        let count = ROW_GROUP_ROWS + 3;
        let mut record = distinct();
        let records: Vec<_> = (0..count as u64)
            .map(|n| {
                record.time = Instant::from_nanos(n);
                record.clone()
            })
            .collect();
        let reader = written(&records);
        let rows: Vec<_> = reader.metadata().row_groups().iter().map(|g| g.num_rows()).collect();
        assert_eq!(rows, [ROW_GROUP_ROWS as i64, 3]);
        let times: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(|row| row.unwrap().into_columns().swap_remove(0).1)
            .collect();
        assert!(times.iter().enumerate().all(|(n, time)| *time == Field::ULong(n as u64)));
        assert_eq!(times.len(), count);
    }

    /// Breaks: a file identifies its run, and the units of its columns.
    #[test]
    fn the_file_has_metadata() {
        let reader = written(&[]);
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| metadata.iter().find(|kv| kv.key == key).and_then(|kv| kv.value.as_deref());
        assert_eq!(value("farpace.scenario"), Some("stops"));
        assert_eq!(value("farpace.seed"), Some("7"));
        assert_eq!(value("farpace.unit.cwnd"), Some("packets"));
        assert_eq!(value("farpace.unit.state"), None);
        assert_eq!(value("farpace.description.cwnd"), Some("Congestion window"));
    }

    /// Breaks: the compression and encodings on which the file size depends.
    #[test]
    fn columns_are_encoded_as_intended() {
        let reader = written(&[distinct(), distinct()]);
        let group = reader.metadata().row_group(0);
        assert!(GROWING.iter().all(|name| COLUMNS.iter().any(|c| c.name == *name)));
        for column in group.columns() {
            assert_eq!(column.compression(), Compression::SNAPPY);
            let is_name = column.column_type() == PhysicalType::BYTE_ARRAY;
            assert_eq!(column.dictionary_page_offset().is_some(), is_name);
            let name = column.column_path().string();
            let is_delta = column.encodings().any(|e| e == Encoding::DELTA_BINARY_PACKED);
            assert_eq!(is_delta, GROWING.contains(&name.as_str()), "{name}");
            let skippable = ["time_ns", "connection"].contains(&name.as_str());
            assert_eq!(column.statistics().is_some(), skippable);
        }
    }

    /// Breaks: a trace on a full disk is reported as incomplete.
    #[test]
    fn the_first_error_is_reported_at_the_end() {
        let mut sink = ParquetSink::new(full_disk(), &info()).unwrap();
        for n in 0..2 * ROW_GROUP_ROWS as u64 {
            let mut record = distinct();
            record.time = Instant::from_nanos(n * n);
            sink.record(&record);
        }
        assert_eq!(sink.rows(), ROW_GROUP_ROWS as u64);
        assert!(sink.finish().unwrap_err().to_string().contains("cannot write the Parquet trace"));
        // An error in the last, partial group is reported too.
        let mut sink = ParquetSink::new(full_disk(), &info()).unwrap();
        sink.record(&distinct());
        assert!(sink.finish().is_err());
    }
}
