//! The columns of a trace: a table of names, types, units and values for all writers and the documentation.

use crate::column::{Column, ColumnKind, TraceCell};
use crate::column_buffer::ColumnBuffer;
use farpace_events::Record;
use farpace_units::{Packets, Seq};
use farpace_wire::tcp::SackBlock;

/// Associates the type of a column's values with its [`ColumnKind`].
trait ColumnValue {
    const KIND: ColumnKind;
    const NULLABLE: bool = false;
    fn cell(self) -> TraceCell;
}

impl ColumnValue for u32 {
    const KIND: ColumnKind = ColumnKind::U32;
    fn cell(self) -> TraceCell {
        TraceCell::U32(self)
    }
}

impl ColumnValue for u64 {
    const KIND: ColumnKind = ColumnKind::U64;
    fn cell(self) -> TraceCell {
        TraceCell::U64(self)
    }
}

impl ColumnValue for &'static str {
    const KIND: ColumnKind = ColumnKind::Name;
    fn cell(self) -> TraceCell {
        TraceCell::Name(self)
    }
}

impl<V: ColumnValue> ColumnValue for Option<V> {
    const KIND: ColumnKind = V::KIND;
    const NULLABLE: bool = true;
    fn cell(self) -> TraceCell {
        self.map_or(TraceCell::Null, V::cell)
    }
}

macro_rules! schema {
    ($row:pat => $($name:ident: $type:ty, $unit:literal, $description:literal = $value:expr;)*) => {
        /// Number of columns.
        pub const COLUMN_COUNT: usize = [$(stringify!($name)),*].len();

        /// All columns, in file order.
        pub const COLUMNS: [Column; COLUMN_COUNT] = [$(Column {
            name: stringify!($name),
            kind: <$type as ColumnValue>::KIND,
            nullable: <$type as ColumnValue>::NULLABLE,
            unit: $unit,
            description: $description,
        }),*];

        /// The values of one row, in the order of [`COLUMNS`].
        #[inline]
        pub fn cells(record: &Record) -> [TraceCell; COLUMN_COUNT] {
            let $row = record;
            [$(<$type as ColumnValue>::cell($value)),*]
        }

        /// Appends the values of many rows, column by column. This is faster than row by row, because each
        /// loop handles one type.
        pub(crate) fn gather(records: &[Record], buffers: &mut [ColumnBuffer; COLUMN_COUNT]) {
            let mut buffers = buffers.iter_mut();
            $(if let Some(buffer) = buffers.next() {
                buffer.extend(records.iter().map(|record| {
                    #[allow(unused_variables, reason = "each column takes one field")]
                    let $row = record;
                    <$type as ColumnValue>::cell($value)
                }));
            })*
        }
    };
}

schema! {
    // No `..`, so that a new field of the record requires columns.
    Record {
        time, connection, direction, seq, len, ack, sack, snd_una, snd_nxt, cwnd, ssthresh, in_flight,
        packets_out, lost_out, sacked_out, fackets_out, retrans_out, state, srtt, rttvar, rto, rwnd, bandwidth,
        cause,
    } =>
    time_ns: u64, "ns", "Time since the start of the run" = time.as_nanos();
    connection: u32, "", "Which connection, counted from 0 within the run" = *connection;
    direction: &'static str, "", "sent, received, or internal (timer or window cut)" = direction.name();
    seq: u32, "", "SEG.SEQ; SND.NXT in internal rows" = seq.get();
    len: u64, "bytes", "Payload of the segment" = len.get();
    ack: u32, "", "SEG.ACK; RCV.NXT in internal rows" = ack.get();
    sack1_start: Option<u32>, "", "First SACK block in wire order: left edge" = edge(sack.first(), START);
    sack1_end: Option<u32>, "", "First SACK block: right edge, exclusive" = edge(sack.first(), END);
    sack2_start: Option<u32>, "", "Second SACK block: left edge" = edge(sack.get(1), START);
    sack2_end: Option<u32>, "", "Second SACK block: right edge, exclusive" = edge(sack.get(1), END);
    sack3_start: Option<u32>, "", "Third SACK block: left edge" = edge(sack.get(2), START);
    sack3_end: Option<u32>, "", "Third SACK block: right edge, exclusive" = edge(sack.get(2), END);
    sack4_start: Option<u32>, "", "Fourth SACK block: left edge" = edge(sack.get(3), START);
    sack4_end: Option<u32>, "", "Fourth SACK block: right edge, exclusive" = edge(sack.get(3), END);
    snd_una: u32, "", "SND.UNA: oldest sequence number not acknowledged" = snd_una.get();
    snd_nxt: u32, "", "SND.NXT: next sequence number to send" = snd_nxt.get();
    cwnd: u32, "packets", "Congestion window" = cwnd.get();
    ssthresh: Option<u32>, "packets", "Slow-start threshold; none before the first cut" = finite(*ssthresh);
    in_flight: u32, "packets", "packets_out - (sacked_out + lost_out) + retrans_out" = in_flight.get();
    packets_out: u32, "packets", "Segments sent and not cumulatively acknowledged" = packets_out.get();
    lost_out: u32, "packets", "Segments believed lost" = lost_out.get();
    sacked_out: u32, "packets", "Segments SACKed" = sacked_out.get();
    fackets_out: u32, "packets", "Segments from SND.UNA up to the highest SACKed one" = fackets_out.get();
    retrans_out: u32, "packets", "Retransmissions believed in flight" = retrans_out.get();
    state: &'static str, "", "Congestion state: open, disorder, cwr, recovery, loss" = state.name();
    srtt_ns: u64, "ns", "Smoothed round-trip time; 0 before the first sample" = srtt.as_nanos();
    rttvar_ns: u64, "ns", "Variation of the round-trip time" = rttvar.as_nanos();
    rto_ns: u64, "ns", "Retransmission timeout in force, back-off included" = rto.as_nanos();
    rwnd: u64, "bytes", "Receive window of the peer" = rwnd.get();
    bandwidth: u64, "bit/s", "Bandwidth that congestion control has estimated; 0 if it estimates \
                              none" = bandwidth.bits_per_sec();
    cause: Option<&'static str>, "", "Why; none for a received segment" = cause.map(|c| c.name());
}

const START: fn(&SackBlock) -> Seq = |block| block.start;
const END: fn(&SackBlock) -> Seq = |block| block.end;

fn edge(block: Option<&SackBlock>, which: fn(&SackBlock) -> Seq) -> Option<u32> {
    block.map(|block| which(block).get())
}

fn finite(threshold: Packets) -> Option<u32> {
    (threshold != Packets::MAX).then_some(threshold.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_records::distinct;
    use farpace_wire::tcp::SackBlocks;
    use std::collections::BTreeSet;

    fn cell(record: &Record, name: &str) -> TraceCell {
        let at = COLUMNS.iter().position(|c| c.name == name).unwrap();
        cells(record)[at]
    }

    /// Breaks: each column contains its own field.
    #[test]
    fn every_column_contains_its_own_field() {
        let record = distinct();
        let expected = [
            ("time_ns", TraceCell::U64(1)),
            ("connection", TraceCell::U32(2)),
            ("direction", TraceCell::Name("sent")),
            ("seq", TraceCell::U32(3)),
            ("len", TraceCell::U64(4)),
            ("ack", TraceCell::U32(5)),
            ("sack1_start", TraceCell::U32(6)),
            ("sack1_end", TraceCell::U32(7)),
            ("sack2_start", TraceCell::U32(8)),
            ("sack2_end", TraceCell::U32(9)),
            ("sack3_start", TraceCell::U32(10)),
            ("sack3_end", TraceCell::U32(11)),
            ("sack4_start", TraceCell::U32(12)),
            ("sack4_end", TraceCell::U32(13)),
            ("snd_una", TraceCell::U32(14)),
            ("snd_nxt", TraceCell::U32(15)),
            ("cwnd", TraceCell::U32(16)),
            ("ssthresh", TraceCell::U32(17)),
            ("in_flight", TraceCell::U32(18)),
            ("packets_out", TraceCell::U32(19)),
            ("lost_out", TraceCell::U32(20)),
            ("sacked_out", TraceCell::U32(21)),
            ("fackets_out", TraceCell::U32(22)),
            ("retrans_out", TraceCell::U32(23)),
            ("state", TraceCell::Name("recovery")),
            ("srtt_ns", TraceCell::U64(24)),
            ("rttvar_ns", TraceCell::U64(25)),
            ("rto_ns", TraceCell::U64(26)),
            ("rwnd", TraceCell::U64(27)),
            ("bandwidth", TraceCell::U64(28)),
            ("cause", TraceCell::Name("fast_retransmit")),
        ];
        let names: Vec<_> = COLUMNS.iter().map(|c| c.name).collect();
        assert_eq!(names, expected.map(|(name, _)| name));
        assert_eq!(cells(&record), expected.map(|(_, cell)| cell));
    }

    /// Breaks: absent values are null. A missing threshold would otherwise be 4 billion packets, a missing
    /// block byte 0.
    #[test]
    fn absent_values_are_null() {
        let mut record = distinct();
        record.ssthresh = Packets::MAX;
        record.cause = None;
        record.sack.truncate(1);
        for absent in ["ssthresh", "cause", "sack2_start", "sack2_end", "sack4_end"] {
            assert_eq!(cell(&record, absent), TraceCell::Null, "{absent}");
        }
        assert_eq!(cell(&record, "sack1_end"), TraceCell::U32(7));
    }

    /// Breaks: there are columns for all SACK blocks that a header can contain.
    #[test]
    fn there_is_a_pair_of_columns_for_every_sack_block() {
        let pairs = COLUMNS.iter().filter(|c| c.name.starts_with("sack") && c.nullable).count();
        assert_eq!(pairs, 2 * SackBlocks::new().capacity());
    }

    /// Breaks: columns can be looked up by name, and are documented.
    #[test]
    fn names_are_unique_and_columns_are_described() {
        let names: BTreeSet<_> = COLUMNS.iter().map(|c| c.name).collect();
        assert_eq!(names.len(), COLUMN_COUNT);
        for column in &COLUMNS {
            assert!(!column.description.is_empty(), "{}", column.name);
            assert_eq!(column.name.ends_with("_ns"), column.unit == "ns", "{}", column.name);
        }
    }
}
