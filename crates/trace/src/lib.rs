//! Trace files: tables of the records of connections (the paper's "epool"), and captures.
//!
//! * A connection passes [`Record`](farpace_events::Record)s to a [`RecordSink`](farpace_events::RecordSink):
//!   [`ParquetSink`] for analysis, [`CsvSink`] for spreadsheets. [`COLUMNS`] defines the columns of both.
//! * A [`TableWriter`] writes other tables as Parquet, whose columns the caller chooses.
//! * A tap passes packets to a [`PcapngWriter`]. [`CaptureReader`] reads captures, also those of other
//!   programs.
//!
//! Start reading at [`COLUMNS`]. This crate never opens files: it reads and writes streams of the caller.
//!
//! ```
//! use farpace_events::{Record, RecordSink};
//! use farpace_trace::{CsvSink, ParquetSink, RunInfo, TraceError};
//!
//! fn write(records: &[Record]) -> Result<(Vec<u8>, Vec<u8>), TraceError> {
//!     let info = RunInfo { scenario: "stops".into(), seed: 1 };
//!     let mut table = ParquetSink::new(Vec::new(), &info)?;
//!     let mut text = CsvSink::new(Vec::new());
//!     let mut sinks: Vec<&mut dyn RecordSink> = vec![&mut table, &mut text];
//!     for record in records {
//!         sinks.record(record);
//!     }
//!     Ok((table.finish()?, text.finish()?))
//! }
//! # let (table, text) = write(&[]).unwrap();
//! # assert!(table.starts_with(b"PAR1") && text.starts_with(b"time_ns,connection,"));
//! ```

#![forbid(unsafe_code)]

mod column;
mod column_buffer;
mod csv;
mod error;
mod parquet;
mod pcapng;
mod reader;
mod schema;
mod table;
#[cfg(test)]
mod test_records;

pub use self::csv::CsvSink;
pub use self::parquet::{ParquetSink, ROW_GROUP_ROWS, RunInfo};
pub use column::{Column, ColumnKind, TraceCell};
pub use error::TraceError;
pub use pcapng::{DEFAULT_CAPTURE_LIMIT, InterfaceId, MAX_TEXT, PcapngWriter, Resolution};
pub use reader::{
    CaptureInterface, CaptureReadError, CaptureReader, CapturedPacket, MAX_BLOCK, MAX_INTERFACES,
};
pub use schema::{COLUMN_COUNT, COLUMNS, cells};
pub use table::{ParquetCell, ParquetColumn, TableKind, TableWriter, table_rows};
