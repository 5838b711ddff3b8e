//! Sinks that forward a record to several sinks.

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

/// Every sink gets every record, in order. With `Vec<&mut dyn RecordSink>` the caller keeps the sinks and can
/// finish them. An empty vector discards records.
impl<S: RecordSink> RecordSink for Vec<S> {
    fn record(&mut self, record: &Record) {
        for sink in self {
            sink.record(record);
        }
    }
}

/// Stores the records in memory, for tests and small runs.
impl RecordSink for Vec<Record> {
    fn record(&mut self, record: &Record) {
        self.push(record.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordDirection, RecoveryState};
    use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};

    fn record_at(nanos: u64) -> Record {
        Record {
            time: Instant::from_nanos(nanos),
            connection: 0,
            direction: RecordDirection::Sent,
            seq: Seq::new(1),
            len: ByteCount::new(1460),
            ack: Seq::new(1),
            sack: farpace_wire::tcp::SackBlocks::new(),
            snd_una: Seq::new(1),
            snd_nxt: Seq::new(1461),
            cwnd: Packets::new(10),
            ssthresh: Packets::new(u32::MAX),
            in_flight: Packets::new(1),
            packets_out: Packets::new(1),
            lost_out: Packets::new(0),
            sacked_out: Packets::new(0),
            fackets_out: Packets::new(0),
            retrans_out: Packets::new(0),
            state: RecoveryState::Open,
            srtt: Span::from_nanos(0),
            rttvar: Span::from_nanos(0),
            rto: Span::from_nanos(0),
            rwnd: ByteCount::new(65535),
            bandwidth: Rate::from_bits_per_sec(0),
            cause: None,
        }
    }

    /// Breaks: writing CSV and Parquet of the same run: one of them would miss rows.
    #[test]
    fn every_sink_sees_every_record() {
        let (mut first, mut second): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
        let mut all: Vec<Box<dyn RecordSink + '_>> = vec![Box::new(&mut first), Box::new(&mut second)];
        all.record(&record_at(1));
        all.record(&record_at(2));
        drop(all);
        assert_eq!(first, vec![record_at(1), record_at(2)]);
        assert_eq!(second, first);
    }
}
