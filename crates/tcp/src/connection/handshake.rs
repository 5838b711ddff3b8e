//! The SYN or SYN-ACK of this end (RFC 9293 §3.5).

use farpace_events::Cause;
use farpace_units::{Instant, Span};

/// What is to be sent of the handshake, and what became of it.
#[derive(Default)]
pub(super) struct Handshake {
    /// SYN or SYN-ACK is to be sent (again).
    pub syn_pending: Option<Cause>,
    pub syn_sent_at: Option<Instant>,
    pub syn_retransmitted: bool,
    /// The transmission that carried it last.
    pub syn_number: u32,
    /// Of a SYN that was sent once. Segments with data take longer on slow links, so that it is not a sample
    /// of `min_rtt`.
    pub rtt: Option<Span>,
    /// The handshake was complete, but what the program waits for has not come.
    pub deferred: bool,
}
