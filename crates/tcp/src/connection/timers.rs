//! Deadlines, and what happens when they come.

use super::{CloseReason, Connection, ConnectionState};
use crate::config::Rto;
use crate::recovery::{Expiry, RecoveryTimer};
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Span};

/// The first repetitions of a SYN of Linux come at equal distances (tcp_syn_linear_timeouts).
const MAX_LINEAR_SYNS: u32 = 4;

/// Why the next deadline exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Retransmission timeout (RFC 6298), of data or SYN.
    Retransmission,
    /// A segment will count as lost (RFC 8985 §6).
    Reordering,
    /// Nothing was heard for two round trips: the tail is probed (RFC 8985 §7).
    TailLossProbe,
    /// An acknowledgment was held back.
    DelayedAck,
    /// The peer's window is closed: time to ask (RFC 9293 §3.8.6.1).
    Persist,
    /// The program has said that more would come, and nothing has.
    Hold,
    /// Nothing was heard of the peer for long (RFC 9293 §3.8.4).
    KeepAlive,
    /// What waits makes no progress (RFC 5482).
    UserTimeout,
    /// The program has left, and the peer makes no progress.
    Orphan,
    /// TIME-WAIT is over.
    TimeWait,
    /// The next segment may leave.
    Pacing,
    /// The transmit queue of the host was full, and nothing is outstanding: it is tried again.
    TransmitQueue,
}

/// The persist timer: backs off like the retransmission timer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Persist {
    deadline: Option<Instant>,
    /// Times it has fired in a row.
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
        consider(self.flight.rto_deadline, Reason::Retransmission);
        if let Some((at, timer)) = self.flight.recovery_deadline() {
            let why = match timer {
                RecoveryTimer::Reordering => Reason::Reordering,
                RecoveryTimer::TailLossProbe => Reason::TailLossProbe,
                RecoveryTimer::Retransmission => Reason::Retransmission,
            };
            consider(Some(at), why);
        }
        consider(self.ack.deadline, Reason::DelayedAck);
        consider(self.persist.deadline, Reason::Persist);
        consider(self.cork.deadline, Reason::Hold);
        if self.config.keep_alive.is_some() {
            consider(self.keep_alive_deadline(), Reason::KeepAlive);
        }
        if self.config.user_timeout.is_some() {
            consider(self.user_deadline(), Reason::UserTimeout);
        }
        consider(self.orphan_deadline(), Reason::Orphan);
        consider(self.time_wait_deadline(), Reason::TimeWait);
        consider(self.pacer.deadline(), Reason::Pacing);
        consider(self.retry_deadline(), Reason::TransmitQueue);
        (next.0 != Instant::FAR_FUTURE).then_some(next)
    }

    /// `now` has reached the deadline. Calling it earlier changes nothing.
    pub fn on_deadline(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if due(self.time_wait_deadline()) {
            self.note_internal(now, Cause::TimerTimeWait);
            self.finish(CloseReason::Finished);
            return;
        }
        self.notice_empty_line(now);
        self.linux.may_idle(now);
        if due(self.pacer.deadline()) {
            self.pacer.release();
            self.linux.looks_again();
            self.flight.recovery.on_pacing_timer();
        }
        if due(self.retry_deadline()) {
            self.on_retry();
        }
        if due(self.user_deadline()) {
            self.on_user_timeout(now);
            return;
        }
        if due(self.orphan_deadline()) {
            self.on_orphan_timeout(now);
            return;
        }
        if due(self.keep_alive_deadline()) {
            self.on_keep_alive(now);
        }
        if due(self.ack.deadline) {
            self.note_internal(now, Cause::TimerDelayedAck);
            self.ack.deadline = None;
            let cause = self.ack.policy.on_timer(self.flight.rto.rto());
            self.ack.due.get_or_insert(cause);
        }
        if due(self.cork.deadline) {
            self.on_hold_timeout();
        }
        if due(self.persist.deadline) {
            self.note_internal(now, Cause::TimerPersist);
            if !self.may_probe_window(now) {
                return;
            }
            self.persist.due = true;
            self.persist.count = (self.persist.count + 1).min(16);
            let at = now + self.persist_interval();
            self.persist.deadline = Some(self.within_user_timeout(now, at));
        }
        if let Some((at, timer)) = self.flight.recovery_deadline()
            && at <= now
        {
            self.on_recovery_timer(now, timer);
        }
        if due(self.flight.rto_deadline) {
            self.on_retransmission_timeout(now);
        }
        self.note_causes(now);
        #[cfg(debug_assertions)]
        debug_assert_eq!(self.flight.segments.check_in_turn(), Ok(()));
    }

    /// The path carries again after an outage, as whoever carries the packets has noticed. What waits for a
    /// timeout that was doubled meanwhile is sent again now: the doubling is for a path that is full, and
    /// would add up to the length of the outage to it (as in RFC 6069, which undoes it for reports of ICMP).
    pub fn retry_now(&mut self, now: Instant) {
        if self.flight.rto.doublings() > 0
            && let Some(at) = &mut self.flight.rto_deadline
        {
            *at = now.min(*at);
        }
    }

    /// When the retransmission timer fires if it starts now.
    pub(super) fn timeout_from(&mut self, now: Instant) -> Instant {
        if self.config.rto == Rto::Cdl {
            let outstanding = self.flight.segments.len();
            self.flight
                .rto
                .set_guarded_asked(outstanding > 0 && self.ack.requester.outstanding() == outstanding);
        }
        self.flight.rto.deadline(now)
    }

    pub(super) fn expiry(&self, now: Instant) -> Expiry {
        let (snd_una, snd_nxt) = (self.snd.una, self.snd.nxt);
        let tail_inside = self.flight.segments.waits_inside(self.flight.segments.len().saturating_sub(1));
        let unsent_in_window = self.config.is_linux() && self.snd.next_in_window();
        let new_data_waiting = self.new_data_fits();
        let window_shut = self.snd.wnd == 0;
        Expiry { now, snd_una, snd_nxt, new_data_waiting, unsent_in_window, tail_inside, window_shut }
    }

    fn on_recovery_timer(&mut self, now: Instant, timer: RecoveryTimer) {
        let expiry = self.expiry(now);
        let calm = self.flight.recovery.state() <= RecoveryState::Disorder;
        let (recovery, mut cx) = self.flight.recovery(self.sack);
        let restart = recovery.on_timer(&expiry, &mut cx);
        cx.tell_losses(now);
        self.judge_probe(now, calm);
        if timer == RecoveryTimer::Retransmission {
            if restart {
                self.on_retransmission_timeout(now);
            }
            return;
        }
        if restart && !self.flight.segments.is_empty() {
            self.flight.rto_deadline = Some(self.timeout_from(now));
        }
        let cause = match timer {
            RecoveryTimer::Reordering => Cause::TimerReordering,
            RecoveryTimer::TailLossProbe => Cause::TimerTailLossProbe,
            RecoveryTimer::Retransmission => Cause::TimerRto,
        };
        self.note_internal(now, cause);
    }

    fn on_retransmission_timeout(&mut self, now: Instant) {
        let handshake = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        if self.waits_for_departure(now) {
            self.note_internal(now, Cause::TimerRto);
            return;
        }
        if self.is_past_user_timeout(now) || self.retries_exhausted(now) {
            self.note_internal(now, Cause::TimerRto);
            self.time_out();
            return;
        }
        self.counters.timeouts += 1;
        if self.handshake.deferred && self.flight.timeouts_in_row < self.config.tuning.defer_accept {
            // The peer has our SYN-ACK: only the last repetition asks for the ACK that opens the connection.
        } else if handshake {
            self.handshake.syn_pending = Some(Cause::SynRetransmit);
            self.handshake.syn_retransmitted = true;
            if self.opened_actively() {
                self.statistics.on_timeout(now, self.flight.timeouts_in_row <= 1);
            } else {
                self.statistics.on_syn_ack_timeout(self.handshake.syn_sent_at.unwrap_or(now));
            }
        } else {
            if self.snd.wnd > 0 {
                self.statistics.on_timeout(now, self.flight.timeouts_in_row <= 1);
            }
            self.suspect_black_hole(now);
            self.ack.requester.on_timeout(now);
            self.flight.timed.cancel();
            let expiry = self.expiry(now);
            let (recovery, mut cx) = self.flight.recovery(self.sack);
            recovery.on_timeout(&expiry, &mut cx);
            cx.tell_losses(now);
            self.judge_probe(now, false);
        }
        self.note_internal(now, Cause::TimerRto);
        let linear = self.config.is_linux()
            && self.state == ConnectionState::SynSent
            && self.statistics.timeouts() <= MAX_LINEAR_SYNS;
        if !linear {
            self.flight.rto.back_off(); // RFC 6298 §5.5
        }
        let at = self.timeout_from(now);
        let at = self.within_user_timeout(now, at);
        self.start_retransmission_timer(at);
    }

    /// The one timer of Linux's recovery is the retransmission timer too, but for SYNs.
    pub(super) fn start_retransmission_timer(&mut self, at: Instant) {
        let handshake = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        let recovery_has_it = self.config.is_linux() && !handshake;
        self.flight.rto_deadline = (!recovery_has_it).then_some(at);
        if recovery_has_it {
            self.flight.recovery.set_timer(Some(at));
        }
    }

    /// Starts or stops the persist timer: it runs while there is something to send, nothing outstanding that
    /// would be acknowledged, and no window, or too small a one.
    pub(super) fn update_persist(&mut self, now: Instant) {
        let waits = self.flight.segments.is_empty() && self.snd.has_unsent() && self.is_open();
        let held = || {
            self.config.is_linux()
                && self.is_held(self.snd.unsent())
                && self.snd.unsent() < u64::from(self.snd.mss)
        };
        let wanted = waits && (self.window_blocks() || (!self.snd.fin_queued && held()));
        if !wanted {
            self.persist = Persist::default();
        } else if self.persist.deadline.is_none() {
            // What the retransmission timer has backed off by counts from the first probe on.
            let first = if self.config.is_linux() { self.flight.rto.rto() } else { self.persist_interval() };
            self.persist.deadline = Some(now + first);
        }
    }

    /// An acknowledgment has come, with nothing outstanding: the timer begins anew (Linux: tcp_ack_probe).
    pub(super) fn restart_persist(&mut self, now: Instant) {
        if !self.config.is_linux() || !self.flight.segments.is_empty() || self.persist.deadline.is_none() {
            return;
        }
        if self.window_blocks() {
            self.persist.deadline = Some(now + self.persist_interval());
        } else {
            self.persist = Persist::default();
        }
    }

    /// The peer's window keeps the next segment back. Linux sends a whole segment or probes
    /// (`tcp_snd_wnd_test`).
    fn window_blocks(&self) -> bool {
        if self.config.is_linux() { !self.snd.next_in_window() } else { self.snd.window_blocks() }
    }

    fn persist_interval(&self) -> Span {
        self.flight.rto.doubled(self.doublings())
    }

    /// Doublings of the timer that probes windows. In Linux it has them in common with the retransmission
    /// timer.
    pub(super) fn doublings(&self) -> u32 {
        let earlier = if self.config.is_linux() { self.flight.rto.doublings() } else { 0 };
        self.persist.count + earlier
    }
}
