//! The trace as CSV: a row of column names, then one line per record. A null value is an empty field.

use crate::error::TraceError;
use crate::schema::{COLUMNS, cells};
use farpace_events::{Record, RecordSink};
use std::io::Write;

/// Writes records as CSV (RFC 4180, but with LF line ends). It buffers its output.
pub struct CsvSink<W: Write> {
    writer: csv::Writer<W>,
    rows: u64,
    failed: Option<TraceError>,
}

impl<W: Write> CsvSink<W> {
    /// A sink that writes to `out`, starting with the header row. An error is reported by
    /// [`finish`](Self::finish).
    pub fn new(out: W) -> Self {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
        let failed = writer.write_record(COLUMNS.iter().map(|c| c.name)).err().map(TraceError::from);
        CsvSink { writer, rows: 0, failed }
    }

    /// Number of rows accepted, without the header.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Flushes the buffer and returns the writer.
    ///
    /// # Errors
    /// The first error of this sink.
    pub fn finish(self) -> Result<W, TraceError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.writer.into_inner().map_err(|e| TraceError::Io(e.into_error())),
        }
    }
}

impl<W: Write> RecordSink for CsvSink<W> {
    fn record(&mut self, record: &Record) {
        if self.failed.is_some() {
            return;
        }
        match self.writer.serialize(cells(record).as_slice()) {
            Ok(()) => self.rows += 1,
            Err(error) => self.failed = Some(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::TraceCell;
    use crate::schema::COLUMN_COUNT;
    use crate::test_records::{any_record, full_disk};
    use proptest::prelude::*;

    fn text(cell: TraceCell) -> String {
        match cell {
            TraceCell::Null => String::new(),
            TraceCell::U32(n) => n.to_string(),
            TraceCell::U64(n) => n.to_string(),
            TraceCell::Name(name) => name.to_owned(),
        }
    }

    proptest! {
        /// Breaks: values in CSV: limits of numbers, nulls, and the order of rows.
        #[test]
        fn any_record_survives(records in proptest::collection::vec(any_record(), 0..20)) {
            let mut sink = CsvSink::new(Vec::new());
            for record in &records {
                sink.record(record);
            }
            prop_assert_eq!(sink.rows(), records.len() as u64);
            let bytes = sink.finish().unwrap();
            let mut reader = csv::Reader::from_reader(bytes.as_slice());
            let names = COLUMNS.map(|c| c.name);
            prop_assert_eq!(reader.headers().unwrap(), names.as_slice());
            let mut lines = 0;
            for (line, record) in reader.records().zip(&records) {
                let line = line.unwrap();
                prop_assert_eq!(line.len(), COLUMN_COUNT);
                for (field, cell) in line.iter().zip(cells(record)) {
                    prop_assert_eq!(field, text(cell));
                }
                lines += 1;
            }
            prop_assert_eq!(lines, records.len());
        }
    }

    /// Breaks: a trace on a full disk is reported as incomplete.
    #[test]
    fn the_first_error_is_reported_at_the_end() {
        let mut sink = CsvSink::new(full_disk());
        for _ in 0..10_000 {
            sink.record(&crate::test_records::distinct());
        }
        assert!(sink.rows() < 10_000);
        assert!(matches!(sink.finish(), Err(TraceError::Csv(_))));
    }
}
