//! What Linux counts for TCP_INFO and nobody else needs: how long what was sending, and what timeouts have cost.

use super::{Blocked, Connection, ConnectionState, Transmit};
use farpace_events::Cause;
use farpace_units::{Instant, Span};

/// What held a sender with data back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SendingState {
    /// Nothing was unsent or unacknowledged.
    #[default]
    Nothing,
    /// The network, or congestion control.
    Busy,
    /// The peer's window.
    ReceiveWindow,
}

/// Times and counts since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    sending: SendingState,
    since: Instant,
    busy: Span,
    limited: Span,
    /// The connection was opened from this end.
    active: bool,
    established_at: Option<Instant>,
    /// Timeouts of data; sequences of them that began; how long those have lasted that are over, and when this one began.
    timeouts: u32,
    recoveries: u32,
    repairing: Span,
    repairing_since: Option<Instant>,
}

/// The same, to read. Names are those of `struct tcp_info`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitTimes {
    /// Something was unsent or unacknowledged.
    pub busy: Span,
    /// Of that, the peer's window held data back.
    pub receive_window_limited: Span,
    /// Retransmission timeouts of data.
    pub timeouts: u32,
    /// Sequences of such timeouts.
    pub timeout_recoveries: u32,
    /// How long these lasted.
    pub timeout_time: Span,
}

impl Statistics {
    pub fn open_actively(&mut self) {
        self.active = true;
    }
    pub fn established(&mut self, now: Instant) {
        self.established_at = Some(now);
    }
    /// Retransmission timeouts so far.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }
    /// When the handshake was complete.
    pub fn established_at(&self) -> Option<Instant> {
        self.established_at
    }
    /// The retransmission timer of data has fired.
    pub fn on_timeout(&mut self, now: Instant, first: bool) {
        self.timeouts += 1;
        if first {
            self.recoveries += 1;
            self.repairing_since = Some(now);
        }
    }
    /// The SYN-ACK was not answered in time, which was first sent at `since`.
    pub fn on_syn_ack_timeout(&mut self, since: Instant) {
        self.timeouts += 1;
        self.recoveries = 1;
        self.repairing_since = Some(since);
    }
    /// Something new was acknowledged, and nothing is left to repair.
    pub fn on_progress(&mut self, now: Instant) {
        if let Some(since) = self.repairing_since.take() {
            self.repairing += now.since(since);
        }
    }

    fn times(&self, now: Instant) -> LimitTimes {
        let (mut busy, mut limited) = (self.busy, self.limited);
        let still = now.since(self.since);
        match self.sending {
            SendingState::Nothing => {}
            SendingState::Busy => busy += still,
            SendingState::ReceiveWindow => {
                busy += still;
                limited += still;
            }
        }
        LimitTimes {
            busy,
            receive_window_limited: limited,
            timeouts: self.timeouts,
            timeout_recoveries: self.recoveries,
            timeout_time: self.repairing + self.repairing_since.map_or(Span::ZERO, |since| now.since(since)),
        }
    }
}

impl Connection {
    /// What could leave has left, and `result` says why the rest has not.
    pub(super) fn note_sending(&mut self, now: Instant, result: Transmit) {
        let waits = !self.segments.is_empty() || self.has_unsent();
        let sending = match result {
            _ if !waits => SendingState::Nothing,
            Transmit::Blocked(Blocked::ReceiveWindow) => SendingState::ReceiveWindow,
            _ => SendingState::Busy,
        };
        if sending == self.statistics.sending {
            return;
        }
        let times = self.statistics.times(now);
        let s = &mut self.statistics;
        (s.busy, s.limited, s.sending, s.since) = (times.busy, times.receive_window_limited, sending, now);
    }

    /// How long what was sending, as Linux counts it.
    pub(super) fn times(&self, now: Instant) -> LimitTimes {
        self.statistics.times(now)
    }

    /// The SYN was ours.
    pub(super) fn opened_actively(&self) -> bool {
        self.statistics.active
    }

    /// Numbers of ours that were acknowledged: bytes, the FIN, and the SYN of who opened the connection.
    pub(super) fn acknowledged_numbers(&self) -> u64 {
        let fin = self.fin_seq.is_some_and(|fin| self.snd_una.after(fin));
        let syn = self.statistics.active && self.statistics.established_at.is_some();
        self.una_offset.min(self.buffer.end()) + u64::from(fin) + u64::from(syn)
    }

    /// Numbers of the peer's that came in order: bytes and the FIN.
    pub(super) fn received_numbers(&self) -> u64 {
        let fin = self.peer_fin.is_some_and(|fin| self.rcv_nxt.after(fin));
        self.counters.bytes_received.get() + u64::from(fin)
    }

    /// Segments sent. A SYN-ACK does not count: in Linux there is no connection yet.
    pub(super) fn segments_sent(&self) -> u64 {
        let all: u64 = self.counters.sent.iter().sum();
        let of = |cause: Cause| self.counters.sent[cause as usize];
        if self.statistics.active { all } else { all - of(Cause::Syn) - of(Cause::SynRetransmit) }
    }

    /// Segments known to have arrived; the SYN, or what answered the SYN-ACK, is the first.
    pub(super) fn delivered(&self) -> u64 {
        let opened = !matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        self.recovery.tallies().delivered + u64::from(opened)
    }
}
