//! What can be seen of a connection from outside: its state, what happened, and what it holds.

use farpace_events::{Cause, RecoveryState};
use farpace_units::{ByteCount, Packets, Rate, Span};

/// The states of RFC 9293 §3.3.2, without LISTEN, which belongs to the host's listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConnectionState {
    /// SYN sent, nothing heard.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the peer may still send.
    FinWait2,
    /// The peer closed; we may still send.
    CloseWait,
    /// Both closed at once.
    Closing,
    /// The peer closed, then we; our FIN is not acknowledged.
    LastAck,
    /// Both closed; waiting for stray segments to die.
    TimeWait,
    /// Nothing is left.
    Closed,
}

impl ConnectionState {
    /// The peer may still send data.
    pub(crate) const fn receives(self) -> bool {
        matches!(self, ConnectionState::Established | ConnectionState::FinWait1 | ConnectionState::FinWait2)
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CloseReason {
    /// Both sides closed in order.
    Finished,
    /// The peer sent a reset.
    Reset,
    /// Nobody answered for too long.
    TimedOut,
    /// The network says that the peer cannot be reached; or nobody answered for too long, and the network has
    /// reported trouble on the way (RFC 1122 §4.2.3.9).
    Unreachable,
    /// [`Connection::abort`](crate::Connection::abort) was called, or data came that nobody will read.
    Aborted,
}

/// What an application should hear of. Each stands at most once in the queue, so it cannot grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionEvent {
    /// The handshake is complete.
    Connected,
    /// There is something to read.
    Readable,
    /// There is room to write again.
    Writable,
    /// The peer has finished sending, and everything it sent can be read.
    PeerClosed,
    /// The peer has sent urgent data: see [`Connection::urgent_ahead`](crate::Connection::urgent_ahead).
    Urgent,
    /// Three retransmissions in a row were not answered (R1 of RFC 9293 §3.8.3): another route may help.
    Unanswered,
    /// The network has reported trouble on the way, which may pass (RFC 9293 §3.9.2.2).
    SoftError,
    /// The connection is over.
    Closed(CloseReason),
}

/// Causes of segments. Those after them are of window changes and timers.
const SENT_CAUSES: usize = Cause::CutFastRetransmit as usize;

/// Causes of window changes and timers.
const OTHER_CAUSES: usize = Cause::ALL.len() - SENT_CAUSES;

/// How often each cause of a window change was noted. It takes memory once one was: most connections are over
/// before they lose anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CauseCounts(Option<Box<[u32; OTHER_CAUSES]>>);

impl CauseCounts {
    /// One more.
    pub(crate) fn note(&mut self, cause: Cause) {
        let counts = self.0.get_or_insert_with(|| Box::new([0; OTHER_CAUSES]));
        if let Some(count) = (cause as usize).checked_sub(SENT_CAUSES).and_then(|at| counts.get_mut(at)) {
            *count += 1;
        }
    }
    /// How often `cause` was noted.
    pub fn of(&self, cause: Cause) -> u64 {
        self.all()[cause as usize]
    }
    /// The counts of all causes (index: position in [`Cause::ALL`]).
    pub fn all(&self) -> [u64; Cause::ALL.len()] {
        let mut all = [0; Cause::ALL.len()];
        let counts = self.0.iter().flat_map(|counts| counts.iter());
        all[SENT_CAUSES..].iter_mut().zip(counts).for_each(|(into, count)| *into = (*count).into());
        all
    }
}

/// Counters of one connection since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    /// Segments sent, by cause (index: position in [`Cause::ALL`], which begins with the causes of segments).
    pub sent: [u64; SENT_CAUSES],
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Window reductions, undos and renegings, by cause.
    pub window_changes: CauseCounts,
    /// Times that the retransmission timer found its segment in the host, where it waited to leave.
    pub found_inside: u64,
    /// Payload bytes sent, retransmissions included.
    pub bytes_sent: ByteCount,
    /// Of them, those that had been sent before.
    pub bytes_sent_again: ByteCount,
    /// Segments with payload sent, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments with payload received, good or bad.
    pub data_segments_received: u64,
    /// Payload bytes delivered in order.
    pub bytes_received: ByteCount,
    /// Segments received, good or bad.
    pub segments_received: u64,
    /// Segments received that were dropped as unacceptable (RFC 9293 §3.10.7.4), PAWS included.
    pub unacceptable: u64,
    /// Segments received whose payload was there already.
    pub duplicates: u64,
    /// Segments received out of order.
    pub out_of_order: u64,
    /// Segments received and dropped because the host was short of memory. The peer sends them again.
    pub refused_for_memory: u64,
    /// Times that data beyond a hole was dropped to make room for data in order.
    pub pruned: u64,
    /// Segments sent that asked for an ACK at once.
    pub asked: u64,
    /// ACKs received that confirm such a request.
    pub confirmed: u64,
    /// Segments received that asked for an ACK at once.
    pub requests: u64,
    /// Confirmations sent. What lacks to `requests` was answered as if it had not asked, or lost its turn to
    /// another.
    pub confirmations: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            sent: [0; SENT_CAUSES],
            timeouts: 0,
            found_inside: 0,
            window_changes: CauseCounts::default(),
            bytes_sent: ByteCount::ZERO,
            bytes_sent_again: ByteCount::ZERO,
            data_segments_sent: 0,
            data_segments_received: 0,
            bytes_received: ByteCount::ZERO,
            segments_received: 0,
            unacceptable: 0,
            duplicates: 0,
            out_of_order: 0,
            refused_for_memory: 0,
            pruned: 0,
            asked: 0,
            confirmed: 0,
            requests: 0,
            confirmations: 0,
        }
    }
}

/// What can be seen of a connection from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionInspection {
    /// State of RFC 9293.
    pub state: ConnectionState,
    /// Congestion state.
    pub recovery: RecoveryState,
    /// Congestion window.
    pub cwnd: Packets,
    /// Slow-start threshold; [`Packets::MAX`] while there is none.
    pub ssthresh: Packets,
    /// Segments in flight.
    pub in_flight: Packets,
    /// Payload bytes acknowledged by the peer.
    pub acknowledged: ByteCount,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// The same of ACKs that were not held back, if the timeout is `cdl` and there were any.
    pub undelayed_srtt: Option<Span>,
    /// Retransmission timeout in force.
    pub rto: Span,
    /// The peer's window.
    pub rwnd: ByteCount,
    /// Effective segment size: payload bytes of a full segment.
    pub mss: u32,
    /// The same as both ends allow it; the path may carry less.
    pub largest_mss: u32,
    /// Bytes that the program has written and that were not sent yet (tcpi_notsent_bytes).
    pub unsent: ByteCount,
    /// The bandwidth that congestion control has measured, if it measures any.
    pub bandwidth: Option<Rate>,
    /// The round trip of the empty path that congestion control goes by, if it has a filter of its own for it
    /// (BBR).
    pub min_rtt: Option<Span>,
}

/// What a connection holds besides itself; each of these has a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionMemory {
    /// Rows of the retransmission queue, one for each outstanding segment.
    pub rows: usize,
    /// Bytes written by the application and not acknowledged, at most the send buffer.
    pub send_bytes: ByteCount,
    /// Chunks they are in: as many as there were writes.
    pub send_chunks: usize,
    /// Bytes in order that wait to be read.
    pub readable_bytes: ByteCount,
    /// Chunks they are in: on average at least
    /// [`receive::SMALLEST_MEAN_CHUNK`](crate::receive::SMALLEST_MEAN_CHUNK) bytes each, but for the first
    /// thousand.
    pub readable_chunks: usize,
    /// Bytes that wait beyond a hole; with the readable ones at most the receive buffer.
    pub waiting_bytes: ByteCount,
    /// Pieces that they arrived in: see
    /// [`receive::SMALLEST_MEAN_CHUNK`](crate::receive::SMALLEST_MEAN_CHUNK).
    pub waiting_chunks: usize,
    /// Stretches without holes that these make.
    pub out_of_order_ranges: usize,
    /// Events that wait: at most one of each kind.
    pub events: usize,
}
