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
    use crate::{Cause, RecordDirection, RecoveryState};
    use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
    use farpace_wire::tcp::SackBlocks;

    /// Breaks: every sink gets every record, for example to write CSV and Parquet of one run.
    #[test]
    fn every_sink_gets_every_record() {
        let record = || Record {
            time: Instant::from_nanos(1),
            connection: 2,
            direction: RecordDirection::Sent,
            seq: Seq::new(3),
            len: ByteCount::new(4),
            ack: Seq::new(5),
            sack: SackBlocks::new(),
            snd_una: Seq::new(6),
            snd_nxt: Seq::new(7),
            cwnd: Packets::new(8),
            ssthresh: Packets::new(9),
            in_flight: Packets::new(10),
            packets_out: Packets::new(11),
            lost_out: Packets::new(12),
            sacked_out: Packets::new(13),
            fackets_out: Packets::new(14),
            retrans_out: Packets::new(15),
            state: RecoveryState::Recovery,
            srtt: Span::from_nanos(16),
            rttvar: Span::from_nanos(17),
            rto: Span::from_nanos(18),
            rwnd: ByteCount::new(19),
            bandwidth: Rate::from_bits_per_sec(20),
            cause: Some(Cause::FastRetransmit),
        };
        let (mut first, mut second): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
        let mut all: Vec<Box<dyn RecordSink + '_>> = vec![Box::new(&mut first), Box::new(&mut second)];
        all.record(&record());
        all.record(&record());
        drop(all);
        assert_eq!(first, vec![record(), record()]);
        assert_eq!(second, first);
    }
}
