//! What one acknowledgment brought, as its steps tell each other (the `FLAG_` bits of `tcp_ack`).

/// What an acknowledgment brought.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckFlags {
    /// SND.UNA has moved.
    pub advanced: bool,
    /// Segments were taken off the queue.
    pub acked: bool,
    /// It carried data, or told the window.
    pub data_or_window: bool,
    /// Segments were newly SACKed.
    pub sacked: bool,
    /// A D-SACK that may be believed.
    pub dsack: bool,
    /// Which answers a loss probe.
    pub dsack_of_probe: bool,
    /// Of segments sent again some were taken off.
    pub resent_acked: bool,
    /// A segment sent once, before the present state began, has arrived.
    pub original: bool,
    /// The head of the queue is SACKed and not acknowledged.
    pub reneging: bool,
    /// A retransmission was found lost.
    pub lost_again: bool,
    /// The timer is to be set anew.
    pub set_timer: bool,
    pub ece: bool,
}

impl AckFlags {
    /// RFC 5681 §2: what makes it no duplicate.
    pub fn not_duplicate(&self) -> bool {
        self.data_or_window || self.acked
    }
}
