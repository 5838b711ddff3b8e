//! One row per segment sent, ACK processed, window reduction and timer.

use crate::{Cause, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::SackBlocks;

/// The direction of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordDirection {
    /// The connection sent it.
    Sent,
    /// The connection received and processed it.
    Received,
    /// No segment: a timer fired or the window was reduced.
    Internal,
}

impl RecordDirection {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            RecordDirection::Sent => "sent",
            RecordDirection::Received => "received",
            RecordDirection::Internal => "internal",
        }
    }
}

/// One row: a segment sent or an ACK processed, with the variables of the connection *after* it. The columns
/// contain those of the paper (§3.5 "epool").
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Time of the event.
    pub time: Instant,
    /// Index of the connection within the run.
    pub connection: u32,
    /// Direction of the segment.
    pub direction: RecordDirection,
    /// SEG.SEQ (internal rows: SND.NXT).
    pub seq: Seq,
    /// Payload length.
    pub len: ByteCount,
    /// SEG.ACK (internal rows: RCV.NXT).
    pub ack: Seq,
    /// SACK blocks of the segment, in wire order.
    pub sack: SackBlocks,
    /// SND.UNA.
    pub snd_una: Seq,
    /// SND.NXT.
    pub snd_nxt: Seq,
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow-start threshold; [`Packets::MAX`] before the first reduction.
    pub ssthresh: Packets,
    /// packets_out - (sacked_out + lost_out) + retrans_out.
    pub in_flight: Packets,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: Packets,
    /// Segments marked lost.
    pub lost_out: Packets,
    /// Segments SACKed.
    pub sacked_out: Packets,
    /// Segments from SND.UNA up to the highest SACKed one.
    pub fackets_out: Packets,
    /// Retransmissions in flight.
    pub retrans_out: Packets,
    /// Congestion state.
    pub state: RecoveryState,
    /// Smoothed round trip time; zero before the first sample.
    pub srtt: Span,
    /// Variation of the round trip time, in the scaling of the algorithm in use.
    pub rttvar: Span,
    /// Current retransmission timeout, with back-off.
    pub rto: Span,
    /// The peer's receive window.
    pub rwnd: ByteCount,
    /// Bandwidth estimate of congestion control; zero if it has none.
    pub bandwidth: Rate,
    /// The cause; none for a received segment.
    pub cause: Option<Cause>,
}

/// Receives records.
pub trait RecordSink {
    /// Handles one record. A sink that can fail stores its first error and reports it when it is finished.
    fn record(&mut self, record: &Record);
}
