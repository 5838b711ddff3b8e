//! Tables for Python: columns of Arrow, which any library takes over by the C data interface without a copy.

use arrow_array::builder::{StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use farpace_events::Record;
use farpace_study::TableKind;
use farpace_trace::{COLUMNS, ColumnKind, TraceCell, cells};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};
use serde_json::Value;
use std::sync::Arc;

/// A table. pandas, polars, pyarrow and duckdb take it as it is: `polars.DataFrame(table)`.
#[pyclass(frozen, name = "Table")]
#[derive(Clone)]
pub struct ArrowTable(RecordBatch);

#[pymethods]
impl ArrowTable {
    /// The Arrow C stream interface. The table is the same whatever schema is asked for.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The table as a stream of Arrow IPC, for pickle.
    fn to_ipc<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &self.0.schema()).map_err(arrow)?;
        writer.write(&self.0).and_then(|()| writer.finish()).map_err(arrow)?;
        drop(writer);
        Ok(PyBytes::new(py, &bytes))
    }

    /// The table of such a stream.
    #[staticmethod]
    fn from_ipc(bytes: &[u8]) -> PyResult<ArrowTable> {
        let mut batches = StreamReader::try_new(bytes, None).map_err(arrow)?;
        let only = batches.next().ok_or_else(|| PyValueError::new_err("the stream has no table"))?;
        only.map(ArrowTable).map_err(arrow)
    }

    /// Rows.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __repr__(&self) -> String {
        format!("<farpace.Table: {} rows, {}>", self.0.num_rows(), self.column_names().join(", "))
    }
}

fn arrow(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl ArrowTable {
    /// The columns of a trace.
    pub fn of_records(records: &[Record]) -> PyResult<ArrowTable> {
        let mut fields = Vec::new();
        let mut builders: Vec<TraceColumnBuilder> = Vec::new();
        for column in &COLUMNS {
            let (builder, kind) = match column.kind {
                ColumnKind::U32 => {
                    (TraceColumnBuilder::U32(UInt32Builder::with_capacity(records.len())), DataType::UInt32)
                }
                ColumnKind::U64 => {
                    (TraceColumnBuilder::U64(UInt64Builder::with_capacity(records.len())), DataType::UInt64)
                }
                ColumnKind::Name => (TraceColumnBuilder::Name(StringBuilder::new()), DataType::Utf8),
            };
            builders.push(builder);
            let metadata = [("unit", column.unit), ("description", column.description)];
            let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
            fields.push(Field::new(column.name, kind, column.nullable).with_metadata(metadata));
        }
        for record in records {
            for (builder, cell) in builders.iter_mut().zip(cells(record)) {
                builder.add(cell);
            }
        }
        let arrays = builders.into_iter().map(TraceColumnBuilder::finish).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(ArrowTable).map_err(arrow)
    }

    /// The flows of a summary.
    pub fn of_flows(flows: &[Value]) -> PyResult<ArrowTable> {
        let fields = SUMMARY_COLUMNS.iter().map(|(name, kind)| {
            let kind = match kind {
                TableKind::Text => DataType::Utf8,
                TableKind::Number => DataType::Float64,
                TableKind::Count | TableKind::Time => DataType::Int64,
                TableKind::Truth => DataType::Boolean,
            };
            Field::new(*name, kind, true)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let values = |name: &str| flows.iter().map(|flow| flow[name].clone()).collect::<Vec<Value>>();
        let arrays = SUMMARY_COLUMNS.iter().map(|(name, kind)| array(*kind, &values(name))).collect();
        RecordBatch::try_new(Arc::new(schema), arrays).map(ArrowTable).map_err(arrow)
    }

    /// Points of a study: columns of text, counts and numbers, in this order.
    pub fn of_columns(columns: Vec<(String, PointColumn)>) -> PyResult<ArrowTable> {
        let fields = columns.iter().map(|(name, column)| {
            let kind = match column {
                PointColumn::Text(_) => DataType::Utf8,
                PointColumn::Count(_) => DataType::Int64,
                PointColumn::Number(_) => DataType::Float64,
            };
            Field::new(name, kind, true)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|(_, column)| -> ArrayRef {
            match column {
                PointColumn::Text(values) => Arc::new(StringArray::from(values)),
                PointColumn::Count(values) => Arc::new(Int64Array::from(values)),
                PointColumn::Number(values) => Arc::new(Float64Array::from(values)),
            }
        });
        RecordBatch::try_new(Arc::new(schema), arrays.collect()).map(ArrowTable).map_err(arrow)
    }
}

/// The keys of a flow in `farpace run --json` that are one value.
const SUMMARY_COLUMNS: [(&str, TableKind); 16] = [
    ("name", TableKind::Text),
    ("class", TableKind::Text),
    ("from", TableKind::Text),
    ("to", TableKind::Text),
    ("profile", TableKind::Text),
    ("start_s", TableKind::Number),
    ("size_bytes", TableKind::Count),
    ("delivered_bytes", TableKind::Count),
    ("intact", TableKind::Truth),
    ("completion_s", TableKind::Number),
    ("elapsed_s", TableKind::Number),
    ("goodput_bit_s", TableKind::Count),
    ("efficiency", TableKind::Number),
    ("retransmissions", TableKind::Count),
    ("timeouts", TableKind::Count),
    ("base_rtt_s", TableKind::Number),
];

/// A column of a table of points.
pub enum PointColumn {
    /// Text.
    Text(Vec<String>),
    /// Counts.
    Count(Vec<i64>),
    /// Numbers; none: unknown.
    Number(Vec<Option<f64>>),
}

fn array(kind: TableKind, values: &[Value]) -> ArrayRef {
    match kind {
        TableKind::Text => Arc::new(values.iter().map(Value::as_str).collect::<StringArray>()),
        TableKind::Number => Arc::new(values.iter().map(Value::as_f64).collect::<Float64Array>()),
        TableKind::Count | TableKind::Time => {
            Arc::new(values.iter().map(Value::as_i64).collect::<Int64Array>())
        }
        TableKind::Truth => Arc::new(values.iter().map(Value::as_bool).collect::<BooleanArray>()),
    }
}

/// A column of a trace under construction.
enum TraceColumnBuilder {
    U32(UInt32Builder),
    U64(UInt64Builder),
    Name(StringBuilder),
}

impl TraceColumnBuilder {
    fn add(&mut self, cell: TraceCell) {
        match (self, cell) {
            (TraceColumnBuilder::U32(column), TraceCell::U32(n)) => column.append_value(n),
            (TraceColumnBuilder::U64(column), TraceCell::U64(n)) => column.append_value(n),
            (TraceColumnBuilder::Name(column), TraceCell::Name(name)) => column.append_value(name),
            (TraceColumnBuilder::U32(column), _) => column.append_null(),
            (TraceColumnBuilder::U64(column), _) => column.append_null(),
            (TraceColumnBuilder::Name(column), _) => column.append_null(),
        }
    }
    fn finish(self) -> ArrayRef {
        match self {
            TraceColumnBuilder::U32(mut column) => Arc::new(column.finish()),
            TraceColumnBuilder::U64(mut column) => Arc::new(column.finish()),
            TraceColumnBuilder::Name(mut column) => Arc::new(column.finish()),
        }
    }
}
