//! Synthetic rows for tests.

use farpace_events::{Record, RecordDirection, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};

/// A row of connection 0: a segment of 1448 bytes sent at `seq`, without loss.
pub(crate) fn row(time: Instant, seq: u32) -> Record {
    Record {
        time,
        connection: 0,
        direction: RecordDirection::Sent,
        seq: Seq::new(seq),
        len: ByteCount::new(1448),
        ack: Seq::new(1),
        sack: Default::default(),
        snd_una: Seq::new(seq),
        snd_nxt: Seq::new(seq) + 1448,
        cwnd: Packets::new(2),
        ssthresh: Packets::new(1000),
        in_flight: Packets::new(1),
        packets_out: Packets::new(1),
        lost_out: Packets::ZERO,
        sacked_out: Packets::ZERO,
        fackets_out: Packets::ZERO,
        retrans_out: Packets::ZERO,
        state: RecoveryState::Open,
        srtt: Span::from_millis(10),
        rttvar: Span::from_millis(5),
        rto: Span::from_millis(210),
        rwnd: ByteCount::new(3_000_000),
        bandwidth: Rate::default(),
        cause: None,
    }
}
