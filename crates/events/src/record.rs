//! One row per segment sent, ACK processed, window cut and timer.

use crate::{Cause, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Rate, Seq, Span};
use farpace_wire::tcp::SackBlocks;

/// Which way a segment went, or that there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordDirection {
    /// The connection sent it.
    Sent,
    /// The connection received and processed it.
    Received,
    /// No segment: a timer fired or the window was cut.
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

/// One row: a segment sent or an ACK processed, with the connection's variables *after* it. The columns are
/// the paper's (§3.5 "epool") and more.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When.
    pub time: Instant,
    /// Which connection (index within the run).
    pub connection: u32,
    /// Sent, received, or internal.
    pub direction: RecordDirection,
    /// SEG.SEQ (internal rows: SND.NXT).
    pub seq: Seq,
    /// Payload bytes.
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
    /// Slow-start threshold; [`Packets::MAX`] while there is none.
    pub ssthresh: Packets,
    /// packets_out - (sacked_out + lost_out) + retrans_out.
    pub in_flight: Packets,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: Packets,
    /// Segments believed lost.
    pub lost_out: Packets,
    /// Segments SACKed.
    pub sacked_out: Packets,
    /// Segments from SND.UNA up to the highest SACKed one.
    pub fackets_out: Packets,
    /// Retransmissions believed in flight.
    pub retrans_out: Packets,
    /// Congestion state.
    pub state: RecoveryState,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
    /// Its variation, in the same form as the algorithm in use keeps it.
    pub rttvar: Span,
    /// Retransmission timeout in force, back-off included.
    pub rto: Span,
    /// The peer's receive window.
    pub rwnd: ByteCount,
    /// Bandwidth that congestion control has estimated; zero if it estimates none.
    pub bandwidth: Rate,
    /// Why; none for a received segment.
    pub cause: Option<Cause>,
}

/// Where records go.
pub trait RecordSink {
    /// Takes one record. A sink that can fail remembers its first error and reports it when it is finished.
    fn record(&mut self, record: &Record);
}
