//! A table as Parquet, for data sets whose columns are chosen by the program that writes them.
//!
//! Rows are written as a row group after every [`ROW_GROUP_ROWS`]: memory does not grow with the table,
//! except for a few kilobytes of file index per row group.

use crate::error::TraceError;
use crate::parquet::ROW_GROUP_ROWS;
use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

/// What a column of a table holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Text.
    Text,
    /// A floating-point number of 64 bits.
    Number,
    /// A signed whole number of 64 bits.
    Count,
    /// True or false.
    Truth,
    /// Nanoseconds since 1970-01-01, UTC.
    Time,
}

impl TableKind {
    /// The type in documentation.
    pub const fn name(self) -> &'static str {
        match self {
            TableKind::Text => "string",
            TableKind::Number => "double",
            TableKind::Count => "int64",
            TableKind::Truth => "boolean",
            TableKind::Time => "timestamp",
        }
    }

    fn types(self) -> (PhysicalType, Option<LogicalType>) {
        match self {
            TableKind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
            TableKind::Number => (PhysicalType::DOUBLE, None),
            TableKind::Count => (PhysicalType::INT64, None),
            TableKind::Truth => (PhysicalType::BOOLEAN, None),
            TableKind::Time => {
                let unit = parquet::basic::TimeUnit::NANOS;
                (PhysicalType::INT64, Some(LogicalType::timestamp(true, unit)))
            }
        }
    }
}

/// A column of a table. Its values may be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParquetColumn {
    /// The name in the file.
    pub name: String,
    /// What it holds.
    pub kind: TableKind,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum ParquetCell {
    /// No value.
    Null,
    /// Of a column of [`TableKind::Text`].
    Text(String),
    /// Of a column of [`TableKind::Number`].
    Number(f64),
    /// Of a column of [`TableKind::Count`], or of [`TableKind::Time`].
    Count(i64),
    /// Of a column of [`TableKind::Truth`].
    Truth(bool),
}

/// Writes a table as Parquet (Snappy). The file is readable only after [`finish`](TableWriter::finish) has
/// succeeded. Equal rows yield equal bytes.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<ParquetColumn>,
    rows: Vec<Vec<ParquetCell>>,
}

impl<W: Write + Send> TableWriter<W> {
    /// A table named `name`, with key-value metadata.
    ///
    /// # Errors
    /// The first bytes cannot be written.
    pub fn new(
        out: W,
        name: &str,
        columns: Vec<ParquetColumn>,
        metadata: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, TraceError> {
        let field = |column: &ParquetColumn| {
            let (physical, logical) = column.kind.types();
            let field = Type::primitive_type_builder(&column.name, physical);
            let field = field.with_logical_type(logical).with_repetition(Repetition::OPTIONAL);
            field.build().map(Arc::new)
        };
        let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder(name).with_fields(fields).build()?;
        let metadata = metadata.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(metadata))
            .build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?;
        Ok(TableWriter { writer, columns, rows: Vec::new() })
    }

    /// Adds a row: a cell for each column. A missing cell, or one of another kind, is null.
    ///
    /// # Errors
    /// A row group cannot be written.
    pub fn add(&mut self, row: Vec<ParquetCell>) -> Result<(), TraceError> {
        self.rows.push(row);
        if self.rows.len() >= ROW_GROUP_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what is left and the index, and returns the writer.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.flush()?;
        Ok(self.writer.into_inner()?)
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (index, column) in self.columns.iter().enumerate() {
            let cells = self.rows.iter().map(|row| row.get(index).unwrap_or(&ParquetCell::Null));
            let missing = || ParquetError::General("a column is missing".into());
            let mut out = group.next_column()?.ok_or_else(missing)?;
            write_column(&mut out, column.kind, cells)?;
            out.close()?;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

/// The number of rows of a table in Parquet.
///
/// # Errors
/// It is none, or not complete.
pub fn table_rows(file: &Bytes) -> Result<u64, TraceError> {
    let reader = SerializedFileReader::new(file.clone())?;
    Ok(reader.metadata().file_metadata().num_rows().try_into().unwrap_or(0))
}

fn write_column<'a>(
    out: &mut SerializedColumnWriter<'_>,
    kind: TableKind,
    cells: impl Iterator<Item = &'a ParquetCell> + Clone,
) -> Result<(), ParquetError> {
    /// The levels and the values of the cells for which `of` has a value.
    fn split<'a, T>(
        cells: impl Iterator<Item = &'a ParquetCell>,
        of: impl Fn(&'a ParquetCell) -> Option<T>,
    ) -> (Vec<i16>, Vec<T>) {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        for value in cells.map(of) {
            levels.push(i16::from(value.is_some()));
            values.extend(value);
        }
        (levels, values)
    }
    match kind {
        TableKind::Text => {
            let text = |cell: &'a ParquetCell| match cell {
                ParquetCell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            };
            let (levels, values) = split(cells, text);
            out.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)?;
        }
        TableKind::Number => {
            let number =
                |cell: &'a ParquetCell| if let ParquetCell::Number(n) = cell { Some(*n) } else { None };
            let (levels, values) = split(cells, number);
            out.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        }
        TableKind::Count | TableKind::Time => {
            let count =
                |cell: &'a ParquetCell| if let ParquetCell::Count(n) = cell { Some(*n) } else { None };
            let (levels, values) = split(cells, count);
            out.typed::<Int64Type>().write_batch(&values, Some(&levels), None)?;
        }
        TableKind::Truth => {
            let truth =
                |cell: &'a ParquetCell| if let ParquetCell::Truth(t) = cell { Some(*t) } else { None };
            let (levels, values) = split(cells, truth);
            out.typed::<BoolType>().write_batch(&values, Some(&levels), None)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::record::Field;

    fn columns() -> Vec<ParquetColumn> {
        let column = |name: &str, kind| ParquetColumn { name: name.to_owned(), kind };
        vec![
            column("text", TableKind::Text),
            column("number", TableKind::Number),
            column("count", TableKind::Count),
            column("truth", TableKind::Truth),
            column("time", TableKind::Time),
        ]
    }

    fn written(rows: usize, row: impl Fn(usize) -> Vec<ParquetCell>) -> Bytes {
        let metadata = [("key".to_owned(), "value".to_owned())];
        let mut table = TableWriter::new(Vec::new(), "row", columns(), metadata).unwrap();
        for n in 0..rows {
            table.add(row(n)).unwrap();
        }
        table.finish().unwrap().into()
    }

    /// Breaks: a value that is lost, or stands in another column or row.
    #[test]
    fn readers_get_what_was_written() {
        let text = |n: usize| ParquetCell::Text(format!("row {n}"));
        let row = |n: usize| match n % 3 {
            0 => vec![ParquetCell::Null; 5],
            1 => vec![text(n)], // cells are missing
            _ => vec![
                text(n),
                ParquetCell::Number(n as f64 / 4.0),
                ParquetCell::Count(-(n as i64)),
                ParquetCell::Truth(true),
                ParquetCell::Count(1_700_000_000_000_000_000),
            ],
        };
        let rows = ROW_GROUP_ROWS + 2;
        let file = written(rows, row);
        assert_eq!(file, written(rows, row), "equal rows, equal bytes");
        assert_eq!(table_rows(&file).unwrap(), rows as u64);
        assert!(table_rows(&file.slice(..file.len() - 100)).is_err(), "it was cut");
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        assert!(metadata.iter().any(|kv| kv.key == "key" && kv.value.as_deref() == Some("value")));
        let mut seen = 0;
        for (n, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let cells: Vec<Field> = row.unwrap().into_columns().into_iter().map(|(_, cell)| cell).collect();
            let text = if n % 3 == 0 { Field::Null } else { Field::Str(format!("row {n}")) };
            assert_eq!(cells[0], text);
            if n % 3 == 2 {
                let expected = [Field::Double(n as f64 / 4.0), Field::Long(-(n as i64)), Field::Bool(true)];
                assert_eq!(cells[1..4], expected);
                assert!(format!("{}", cells[4]).contains("1700000000000000000"), "{}", cells[4]);
            } else {
                assert_eq!(cells[1..], [const { Field::Null }; 4]);
            }
            seen += 1;
        }
        assert_eq!(seen, rows);
    }
}
