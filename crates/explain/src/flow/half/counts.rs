//! What is counted of one direction.

use crate::flow::Stat;
use farpace_units::{Instant, Span};

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Segments of this sender, all kinds.
    pub segments: u64,
    /// Segments with data.
    pub data_segments: u64,
    /// Payload, new and again.
    pub bytes: u64,
    /// Segments with data that had been sent before, or that filled a hole.
    pub retransmissions: u64,
    /// Their payload.
    pub retransmitted_bytes: u64,
    /// Retransmissions of segments that had arrived.
    pub spurious: u64,
    /// Retransmissions that came after a silence, by a timer.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Segments that came late, after others that had been sent later.
    pub reordered: u64,
    /// Numbers passed over in the capture (holes), in segments.
    pub holes: u64,
    /// Holes that the receiver acknowledged although nothing was seen that fills them: the capture misses
    /// packets.
    pub unseen: u64,
    /// Payload that the receiver acknowledged and that was not captured.
    pub unseen_bytes: u64,
    /// Segments of the other side that acknowledge.
    pub acks: u64,
    /// Of these without data.
    pub pure_acks: u64,
    /// ACKs that repeat the last number while data is outstanding.
    pub duplicate_acks: u64,
    /// ACKs with SACK blocks.
    pub sack_acks: u64,
    /// D-SACK blocks.
    pub dsacks: u64,
    /// ACKs that acknowledge one, two, up to four, up to eight, and more full segments.
    pub ack_sizes: [u64; 5],
    /// ACKs that must have been lost before the capture point, by gaps of the IP identification.
    pub missing_acks: u64,
    /// ACKs whose IP identification follows on.
    pub numbered_acks: u64,
    /// Bytes by which ACKs of new data did not move the right edge of the window on: they lay in the
    /// receiver's buffer.
    pub unread_bytes: u64,
    /// Segments shorter than full ones that were not the last.
    pub short_segments: u64,
    /// Window probes and keep-alives.
    pub keep_alives: u64,
    /// Segments with the congestion experienced mark.
    pub marked: u64,
    /// Segments that can be marked.
    pub ecn_capable: u64,
    /// ECN echoes of the other side.
    pub echoes: u64,
    /// Segments with a wrong checksum.
    pub damaged: u64,
    /// Payload of the largest segment.
    pub largest: u32,
    /// The window was announced as zero so often.
    pub zero_windows: u64,
    /// Retransmissions that were lost again.
    pub lost_again: u64,
    /// Segments after which a retransmission's loss was overlooked.
    pub overlooked: u64,
}

/// Round trips, in full: near (capture point to sender) and far (capture point to receiver).
#[derive(Clone, Copy, Debug, Default)]
pub struct Trips {
    /// All far samples.
    pub far: Stat,
    /// All near samples.
    pub near: Stat,
    /// Of the handshake, whose segments are short: from the capture point to the receiver and back.
    pub hello: Option<Span>,
}

/// How a sender came out of its timeouts.
#[derive(Clone, Copy, Debug, Default)]
pub struct AfterTimeout {
    /// ACKs of new data in the recovery after timeouts.
    pub acks: u64,
    /// Of these that came a round trip after the one before and had released one segment at most.
    pub single: u64,
    /// Time in it.
    pub time: Span,
    /// Begin of the present one.
    pub(super) since: Option<Instant>,
    /// Segments sent since the last ACK.
    pub(super) sent: u64,
    /// First and last frame.
    pub frames: Option<(u64, u64)>,
    /// Bytes acknowledged in it.
    pub bytes: u64,
}
