//! Deadlines, and what happens when they come.

use super::{CloseReason, Connection, State};
use crate::recovery::Context;
use farpace_trace::Cause;
use farpace_units::{Instant, Span};

/// Why the next deadline exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Retransmission timeout (RFC 6298), of data or SYN.
    Retransmission,
    /// An acknowledgment was held back.
    DelayedAck,
    /// The peer's window is closed: time to ask (RFC 9293 §3.8.6.1).
    Persist,
    /// TIME-WAIT is over.
    TimeWait,
}

/// Timeouts in a row after which a connection is given up (Linux tcp_retries2; RFC 1122 §4.2.3.5 asks for
/// 100 s at least).
const MAX_TIMEOUTS: u32 = 15;
/// The same for SYN and SYN-ACK.
const MAX_SYN_TIMEOUTS: u32 = 5;

/// The persist timer: backs off like the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    deadline: Option<Instant>,
    count: u32,
    /// A probe is to be sent.
    pub due: bool,
}

impl Connection {
    /// When [`on_deadline`](Connection::on_deadline) has to be called, and why. Pure.
    pub fn deadline(&self) -> Option<(Instant, Reason)> {
        // Nearly every segment asks: no iterator here.
        let mut next = (Instant::FAR_FUTURE, Reason::Retransmission);
        let mut consider = |at: Option<Instant>, why| {
            if let Some(at) = at.filter(|at| *at < next.0) {
                next = (at, why);
            }
        };
        consider(self.rto_deadline, Reason::Retransmission);
        consider(self.ack_by, Reason::DelayedAck);
        consider(self.persist.deadline, Reason::Persist);
        consider(self.time_wait_until, Reason::TimeWait);
        (next.0 != Instant::FAR_FUTURE).then_some(next)
    }

    /// `now` has reached the deadline. Calling it earlier changes nothing.
    pub fn on_deadline(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.time_wait_until) {
            self.note_internal(now, Cause::TimerTimeWait);
            self.finish(CloseReason::Finished);
            return;
        }
        if due(self.ack_by) {
            self.note_internal(now, Cause::TimerDelayedAck);
            self.ack_by = None;
            self.ack_now.get_or_insert(Cause::AckDelayed);
        }
        if due(self.persist.deadline) {
            self.note_internal(now, Cause::TimerPersist);
            self.persist.due = true;
            self.persist.count = (self.persist.count + 1).min(16);
            self.persist.deadline = Some(now + self.persist_interval());
        }
        if due(self.rto_deadline) {
            self.on_retransmission_timeout(now);
        }
        self.note_causes(now);
        debug_assert_eq!(self.segments.check(), Ok(()));
    }

    fn on_retransmission_timeout(&mut self, now: Instant) {
        let handshake = matches!(self.state, State::SynSent | State::SynReceived);
        self.timeouts_in_row += 1;
        if self.timeouts_in_row > if handshake { MAX_SYN_TIMEOUTS } else { MAX_TIMEOUTS } {
            self.note_internal(now, Cause::TimerRto);
            self.finish(CloseReason::TimedOut);
            return;
        }
        self.counters.timeouts += 1;
        if handshake {
            self.syn_pending = Some(Cause::SynRetransmit);
            self.syn_retransmitted = true;
        } else {
            self.recovery.on_timeout(
                self.snd_una,
                self.snd_nxt,
                &mut Context {
                    segments: &mut self.segments,
                    window: &mut self.window,
                    cc: self.cc.as_mut(),
                    rto: &mut self.rto,
                    sack: self.sack,
                    causes: &mut self.causes,
                },
            );
        }
        self.note_internal(now, Cause::TimerRto);
        self.rto.back_off(); // RFC 6298 §5.5
        self.rto_deadline = Some(now + self.rto.rto());
    }

    /// Starts or stops the persist timer: it runs while there is something to send, nothing outstanding that
    /// would be acknowledged, and no window.
    pub(super) fn update_persist(&mut self, now: Instant) {
        let wanted = self.segments.is_empty() && self.snd_wnd == 0 && self.has_unsent() && self.is_open();
        if !wanted {
            self.persist = Persist::default();
        } else if self.persist.deadline.is_none() {
            self.persist.deadline = Some(now + self.persist_interval());
        }
    }

    fn persist_interval(&self) -> Span {
        (self.rto.rto() * (1 << self.persist.count.min(16))).min(crate::rto::MAX_RTO)
    }
}
