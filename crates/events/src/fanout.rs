//! One record to several sinks.

use crate::{Record, RecordSink};

impl<S: RecordSink + ?Sized> RecordSink for &mut S {
    fn record(&mut self, record: &Record) {
        (**self).record(record);
    }
}

impl<S: RecordSink + ?Sized> RecordSink for Box<S> {
    fn record(&mut self, record: &Record) {
        (**self).record(record);
    }
}

/// Every sink gets every record, in order. `Vec<&mut dyn RecordSink>` lets the caller keep the sinks and finish
/// them; an empty one records nothing.
impl<S: RecordSink> RecordSink for Vec<S> {
    fn record(&mut self, record: &Record) {
        for sink in self {
            sink.record(record);
        }
    }
}

/// Keeps the records in memory, for tests and small runs.
impl RecordSink for Vec<Record> {
    fn record(&mut self, record: &Record) {
        self.push(record.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_records::distinct;

    /// Breaks: writing CSV and Parquet of the same run: one of them would miss rows.
    #[test]
    fn every_sink_sees_every_record() {
        let (mut first, mut second): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
        let mut all: Vec<Box<dyn RecordSink + '_>> = vec![Box::new(&mut first), Box::new(&mut second)];
        all.record(&distinct());
        all.record(&distinct());
        drop(all);
        assert_eq!(first, vec![distinct(), distinct()]);
        assert_eq!(second, first);
    }
}
