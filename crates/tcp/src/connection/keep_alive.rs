//! How long a connection waits for a peer that is silent: keep-alive, the user timeout, and when to give up.

use super::{Connection, ConnectionEvent, ConnectionState};
use farpace_events::Cause;
use farpace_units::{Instant, Span};

/// Timeouts in a row, and probes of a closed window without an answer, after which a connection is given up
/// at the next one (Linux tcp_retries2), but not before [`R2`]. With the longest back-off that is after 32
/// minutes.
const MAX_TIMEOUTS: u32 = 15;
/// Least time before that (RFC 9293 §3.8.3, SHLD-11).
pub(super) const R2: Span = Span::from_secs(100);
/// Timeouts in a row that are reported (R1 of RFC 9293 §3.8.3, SHLD-9).
const R1: u32 = 3;
/// A SYN is given up at the first timeout after this (RFC 9293 §3.8.3, MUST-23).
const SYN_R2: Span = Span::from_secs(180);
/// Repetitions of a SYN-ACK (Linux tcp_synack_retries): whoever asked will ask again.
const MAX_SYN_ACKS: u32 = 5;

/// What is remembered of a silent peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeepAliveState {
    /// The last segment came that was acceptable.
    heard_at: Instant,
    /// The last one whose acknowledgment was looked at.
    acked_at: Instant,
    /// The last one with data, or the beginning.
    data_at: Instant,
    /// Keep-alive probes since then, and the time of the last one.
    probes: u32,
    probed_at: Instant,
    /// A probe is to be sent.
    pub due: bool,
    /// Probes of a closed window, and timeouts behind one, since the last segment came.
    unanswered: u32,
    /// Times in a row that the retransmission timer found its segment in the host.
    inside: u32,
    /// Something waits to be sent or acknowledged since then, without progress.
    waiting_since: Option<Instant>,
    /// When the timer that repeats or probes first fired, where the program limits that (Linux).
    again_since: Option<Instant>,
    /// Since its program has left it.
    pub orphan: Option<Orphan>,
}

/// When an orphan ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Orphan {
    /// Nothing new was acknowledged since then.
    pub since: Instant,
    /// By then all of its data is acknowledged.
    pub until: Instant,
}

impl KeepAliveState {
    pub fn new(now: Instant) -> Self {
        KeepAliveState { heard_at: now, acked_at: now, data_at: now, ..KeepAliveState::default() }
    }
    /// When an acknowledgment was last looked at. Linux does not where data comes in order and nothing else
    /// is new.
    pub fn acked_at(&self) -> Instant {
        self.acked_at
    }
    pub fn data_came(&mut self, now: Instant) {
        self.data_at = now;
    }
    pub fn acknowledged(&mut self, now: Instant) {
        self.acked_at = now;
    }
    /// When the last segment with data came, or the connection began.
    pub fn data_at(&self) -> Instant {
        self.data_at
    }
    /// Unanswered probes, of either kind.
    pub fn probes(&self) -> u32 {
        self.probes.max(self.unanswered)
    }
}

impl Connection {
    /// A segment of the peer has come, with data or without, whose numbers are those of this connection.
    /// Others may be anybody's, and nobody who guesses may make a peer that is gone look alive.
    #[inline]
    pub(super) fn heard(&mut self, now: Instant, data: bool) {
        self.keep_alive.heard_at = now;
        // Linux looks at data in order alone.
        if data && !self.config.is_linux() {
            self.keep_alive.data_at = now;
        }
        self.keep_alive.probes = 0;
        self.keep_alive.unanswered = 0;
    }

    /// Something new was acknowledged, or the handshake is complete.
    pub(super) fn progress(&mut self, now: Instant) {
        self.flight.timeouts_in_row = 0;
        self.keep_alive.again_since = None;
        if self.flight.recovery.state() != farpace_events::RecoveryState::Loss {
            self.statistics.on_progress(now);
        }
        self.keep_alive.inside = 0;
        self.keep_alive.waiting_since = self.waits().then_some(now);
        if let Some(orphan) = &mut self.keep_alive.orphan {
            orphan.since = now;
        }
    }

    /// Called whenever something may have begun to wait, or have ceased to.
    #[inline]
    pub(super) fn update_keep_alive(&mut self, now: Instant) {
        if !self.waits() {
            self.keep_alive.waiting_since = None;
        } else if self.keep_alive.waiting_since.is_none() {
            self.keep_alive.waiting_since = Some(now);
        }
        if !self.is_orphan() {
            self.keep_alive.orphan = None;
        } else if self.keep_alive.orphan.is_none() {
            self.keep_alive.orphan = Some(self.orphaned(now));
        }
    }

    fn waits(&self) -> bool {
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        opening || !self.flight.segments.is_empty() || (self.snd.has_unsent() && self.is_open())
    }

    pub(super) fn keep_alive_deadline(&self) -> Option<Instant> {
        let settings = self.config.keep_alive?;
        let idle = self.flight.segments.is_empty()
            && matches!(
                self.state,
                ConnectionState::Established | ConnectionState::CloseWait | ConnectionState::FinWait2
            );
        idle.then(|| match self.keep_alive.probes {
            0 => self.keep_alive.heard_at + settings.idle,
            _ => self.keep_alive.probed_at + settings.interval,
        })
    }

    /// With the next transmission the peer is asked whether it is there, as when the connection was idle for
    /// long; if keep-alive is on, and nothing is outstanding, which asks as well.
    pub fn probe_peer(&mut self) {
        self.keep_alive.due |= self.keep_alive_deadline().is_some();
    }

    pub(super) fn user_deadline(&self) -> Option<Instant> {
        if self.config.is_linux() {
            return None; // it is looked at when the retransmission timer fires, or that of window probes
        }
        Some(self.keep_alive.waiting_since? + self.config.user_timeout?)
    }

    /// RFC 9293 §3.8.4: the peer of an idle connection is asked, and given up after so many questions.
    pub(super) fn on_keep_alive(&mut self, now: Instant) {
        self.note_internal(now, Cause::TimerKeepAlive);
        if self.config.keep_alive.is_some_and(|k| self.keep_alive.probes >= k.count) {
            self.give_up();
            return;
        }
        self.keep_alive.probes += 1;
        self.keep_alive.probed_at = now;
        self.keep_alive.due = true;
    }

    /// RFC 5482: what waits has made no progress for as long as the application allows. This also ends a
    /// connection to a peer that keeps its window closed for ever.
    pub(super) fn on_user_timeout(&mut self, now: Instant) {
        self.note_internal(now, Cause::TimerUserTimeout);
        self.give_up();
    }

    /// Ends the connection; a peer that is there after all learns of it.
    pub(super) fn give_up(&mut self) {
        if !matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived) {
            self.reset_pending = Some((self.snd.nxt, self.rcv.nxt));
        }
        self.time_out();
    }

    /// Linux: the retransmission timer has fired once more. True: what goes again has done so for as long as
    /// the program wants.
    pub(super) fn is_past_user_timeout(&mut self, now: Instant) -> bool {
        let Some(limit) = self.config.user_timeout.filter(|_| self.config.is_linux()) else { return false };
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        let first = if opening { self.handshake.syn_sent_at } else { self.keep_alive.again_since };
        if self.flight.timeouts_in_row == 0 {
            self.keep_alive.again_since = Some(now);
            return false;
        }
        first.is_some_and(|first| now.since(first) >= limit)
    }

    /// Linux: a timer set for `at` fires when that time is over.
    pub(super) fn within_user_timeout(&self, now: Instant, at: Instant) -> Instant {
        match (self.config.user_timeout, self.keep_alive.again_since) {
            (Some(limit), Some(first)) if self.config.is_linux() => {
                at.min((first + limit).max(now + Span::from_millis(4)))
            }
            _ => at,
        }
    }

    /// The retransmission timer has fired once more. True: it was the last time.
    pub(super) fn retries_exhausted(&mut self, now: Instant) -> bool {
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        if self.snd.wnd == 0 && !opening {
            // A peer that has taken its window back and says so is not gone (RFC 9293 §3.8.6, SHLD-17).
            return self.is_silent(now);
        }
        self.flight.timeouts_in_row += 1;
        if self.flight.timeouts_in_row == R1 {
            self.tell(ConnectionEvent::Unanswered);
        }
        self.is_enough(now, self.flight.timeouts_in_row)
    }

    /// So many expiries of the retransmission timer in a row end the connection.
    fn is_enough(&self, now: Instant, expiries: u32) -> bool {
        let waited = self.keep_alive.waiting_since.map_or(Span::ZERO, |since| now.since(since));
        match self.state {
            ConnectionState::SynSent => match self.config.tuning.syn_retries {
                Some(most) => expiries > most,
                None => waited >= SYN_R2,
            },
            ConnectionState::SynReceived if self.handshake.deferred => {
                expiries > MAX_SYN_ACKS.max(self.config.tuning.defer_accept)
            }
            ConnectionState::SynReceived => expiries > MAX_SYN_ACKS,
            _ => expiries > MAX_TIMEOUTS && waited >= R2,
        }
    }

    /// The retransmission timer has fired. True: its segment has not left the host. So nobody was asked, and
    /// nothing is lost: the timer starts anew, after longer and longer times, and once more when the segment
    /// has left. A host that never lets it go ends the connection as a peer does that never answers.
    pub(super) fn waits_for_departure(&mut self, now: Instant) -> bool {
        let opening = matches!(self.state, ConnectionState::SynSent | ConnectionState::SynReceived);
        let segments = &self.flight.segments;
        let inside =
            if opening { segments.is_inside(self.handshake.syn_number) } else { segments.waits_inside(0) };
        if inside {
            self.counters.found_inside += 1;
            self.keep_alive.inside += 1;
            if self.is_enough(now, self.keep_alive.inside) {
                self.time_out();
            } else {
                let wait = self.flight.rto.rto() * (1 << self.keep_alive.inside.min(16));
                self.start_retransmission_timer(now + wait.min(crate::rto::MAX_RTO));
            }
            return true;
        }
        let has_left = std::mem::take(&mut self.keep_alive.inside) > 0;
        if has_left {
            let at = self.timeout_from(now);
            self.start_retransmission_timer(at);
        }
        has_left
    }

    /// The persist timer has fired. True: a probe is to be sent. A peer that answers may keep its window
    /// closed as long as it likes (RFC 9293 §3.8.6.1, MUST-37); one that does not is given up as if data were
    /// outstanding.
    pub(super) fn may_probe_window(&mut self, now: Instant) -> bool {
        if let Some(limit) = self.config.user_timeout.filter(|_| self.config.is_linux()) {
            if self.keep_alive.again_since.is_some_and(|first| now.since(first) >= limit) {
                self.time_out();
                return false;
            }
            self.keep_alive.again_since.get_or_insert(now);
        }
        let silent = self.is_silent(now);
        if silent {
            self.give_up();
        }
        !silent
    }

    /// The peer's window is closed, and it is to be asked once more. True: it has been asked often enough.
    fn is_silent(&mut self, now: Instant) -> bool {
        self.keep_alive.unanswered += 1;
        if self.keep_alive.unanswered == R1 {
            self.tell(ConnectionEvent::Unanswered);
        }
        self.keep_alive.unanswered > MAX_TIMEOUTS && now.since(self.keep_alive.heard_at) >= R2
    }
}
