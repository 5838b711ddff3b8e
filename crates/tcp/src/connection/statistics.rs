//! What Linux counts for TCP_INFO and nobody else needs: how long what was sending, and what timeouts have
//! cost.

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
    /// The program's send buffer: what it holds is all sent, and the program waits for room.
    SendBuffer,
}

/// Times and counts since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    sending: SendingState,
    since: Instant,
    busy: Span,
    limited: Span,
    starved: Span,
    /// The program has more than the send buffer takes.
    refused: bool,
    /// The connection was opened from this end.
    active: bool,
    /// The program had closed before the peer's FIN came.
    closed_first: bool,
    /// Numbers that were not acknowledged when it ended.
    left: u64,
    /// Segments sent before the connection was open.
    sent_before: u64,
    established_at: Option<Instant>,
    /// Timeouts of data; sequences of them that began; how long those have lasted that are over, and when
    /// this one began.
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
    /// Of that, the send buffer did.
    pub send_buffer_limited: Span,
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
    /// `sent`: so many segments before that, `resets` of them with RST. Others than those count where the SYN
    /// was ours; else there was no connection yet.
    pub fn established(&mut self, now: Instant, sent: u64, resets: u64) {
        self.established_at = Some(now);
        self.sent_before = if self.active { resets } else { sent };
    }
    /// The connection ends with so many numbers that were not acknowledged.
    pub fn leave(&mut self, numbers: u64) {
        self.left = numbers;
    }
    /// The program had closed before the peer's FIN came.
    pub fn close_first(&mut self) {
        self.closed_first = true;
    }
    /// The same, to read.
    pub fn closed_first(&self) -> bool {
        self.closed_first
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
        let (mut busy, mut limited, mut starved) = (self.busy, self.limited, self.starved);
        let still = now.since(self.since);
        match self.sending {
            SendingState::Nothing => {}
            SendingState::Busy => busy += still,
            SendingState::ReceiveWindow => {
                busy += still;
                limited += still;
            }
            SendingState::SendBuffer => {
                busy += still;
                starved += still;
            }
        }
        LimitTimes {
            busy,
            receive_window_limited: limited,
            send_buffer_limited: starved,
            timeouts: self.timeouts,
            timeout_recoveries: self.recoveries,
            timeout_time: self.repairing + self.repairing_since.map_or(Span::ZERO, |since| now.since(since)),
        }
    }
}

impl Connection {
    /// What could leave has left, and `result` says why the rest has not. `new`: new segments have left.
    pub(super) fn note_sending(&mut self, now: Instant, result: Transmit, new: bool) {
        let waits = !self.flight.segments.is_empty() || self.snd.has_unsent();
        let was = self.statistics.sending;
        let room = !self.statistics.refused;
        let sending = match result {
            _ if !waits => SendingState::Nothing,
            // Linux notes what holds it back when it tries to send.
            _ if self.config.is_linux() && !self.linux.tried => match was {
                SendingState::Nothing => SendingState::Busy,
                SendingState::SendBuffer if room => SendingState::Busy,
                other => other,
            },
            Transmit::Blocked(Blocked::ReceiveWindow) => SendingState::ReceiveWindow,
            Transmit::Idle if was == SendingState::SendBuffer && !room => was,
            Transmit::Idle if new && !room && !self.snd.has_unsent() => SendingState::SendBuffer,
            _ => SendingState::Busy,
        };
        if sending == self.statistics.sending {
            return;
        }
        let times = self.statistics.times(now);
        let s = &mut self.statistics;
        (s.busy, s.limited, s.starved) =
            (times.busy, times.receive_window_limited, times.send_buffer_limited);
        (s.sending, s.since) = (sending, now);
    }

    /// The send buffer took all that the program had, or not.
    pub(super) fn note_room(&mut self, refused: bool) {
        self.statistics.refused = refused;
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
        let fin = self.snd.fin_seq.is_some_and(|fin| self.snd.una.after(fin));
        let syn = self.statistics.active && self.statistics.established_at.is_some();
        self.snd.una_offset.min(self.snd.buffer.end()) + u64::from(fin) + u64::from(syn)
    }

    /// Numbers of the peer's that came in order: bytes and the FIN.
    pub(super) fn received_numbers(&self) -> u64 {
        let fin = self.rcv.peer_fin.is_some_and(|fin| self.rcv.nxt.after(fin));
        self.counters.bytes_received.get() + u64::from(fin)
    }

    /// Segments sent. A SYN-ACK does not count, nor what else left before the handshake was over: in Linux
    /// there is no connection yet.
    pub(super) fn segments_sent(&self) -> u64 {
        let all = self.all_sent();
        let opened = self.statistics.active || self.statistics.established_at.is_some();
        if opened { all - self.statistics.sent_before } else { 0 }
    }

    /// What SIOCOUTQ counts: the same; nothing while the connection opens, and what was left when it ended.
    pub(super) fn unacknowledged_numbers(&self) -> u64 {
        match self.state {
            ConnectionState::SynSent | ConnectionState::SynReceived => 0,
            ConnectionState::Closed => self.statistics.left,
            _ => self.snd.outstanding_bytes(),
        }
    }

    /// New segments with data or FIN so far.
    pub(super) fn data_segments_sent(&self) -> u64 {
        self.counters.sent[Cause::NewData as usize]
    }

    pub(super) fn all_sent(&self) -> u64 {
        self.counters.sent.iter().sum()
    }

    /// Segments known to have arrived; the SYN, or what answered the SYN-ACK, is the first.
    pub(super) fn delivered(&self) -> u64 {
        let opened = !matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        // Where two SYNs have crossed, both that and what answered the SYN-ACK.
        let crossed = opened && self.linux.crossed;
        self.flight.recovery.tallies().delivered + u64::from(opened) + u64::from(crossed)
    }
}
