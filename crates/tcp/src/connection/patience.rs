//! How long a connection waits for a peer that is silent: keep-alive, the user timeout, and when to give up.

use super::{Connection, Event, State};
use farpace_trace::Cause;
use farpace_units::{Instant, Span};

/// Timeouts in a row after which a connection is given up (Linux tcp_retries2), but not before [`R2`].
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
pub(super) struct Patience {
    /// The last segment came.
    heard_at: Instant,
    /// The last one with data, or the beginning.
    data_at: Instant,
    /// Keep-alive probes since then, and the time of the last one.
    probes: u32,
    probed_at: Instant,
    /// A probe is to be sent.
    pub due: bool,
    /// Something waits to be sent or acknowledged since then, without progress.
    waiting_since: Option<Instant>,
    /// Its program has left it since then, without progress.
    pub orphan_since: Option<Instant>,
}

impl Patience {
    pub fn new(now: Instant) -> Self {
        Patience { heard_at: now, data_at: now, ..Patience::default() }
    }
    /// When the last segment came.
    pub fn heard_at(&self) -> Instant {
        self.heard_at
    }
    /// When the last segment with data came, or the connection began.
    pub fn data_at(&self) -> Instant {
        self.data_at
    }
    /// Unanswered keep-alive probes.
    pub fn probes(&self) -> u32 {
        self.probes
    }
}

impl Connection {
    /// A segment of the peer has come, with data or without.
    #[inline]
    pub(super) fn heard(&mut self, now: Instant, data: bool) {
        self.patience.heard_at = now;
        if data {
            self.patience.data_at = now;
        }
        self.patience.probes = 0;
    }

    /// Something new was acknowledged, or the handshake is complete.
    pub(super) fn progress(&mut self, now: Instant) {
        self.timeouts_in_row = 0;
        self.patience.waiting_since = self.waits().then_some(now);
        self.patience.orphan_since = self.is_orphan().then_some(now);
    }

    /// Called whenever something may have begun to wait, or have ceased to.
    #[inline]
    pub(super) fn update_patience(&mut self, now: Instant) {
        if !self.waits() {
            self.patience.waiting_since = None;
        } else if self.patience.waiting_since.is_none() {
            self.patience.waiting_since = Some(now);
        }
        if !self.is_orphan() {
            self.patience.orphan_since = None;
        } else if self.patience.orphan_since.is_none() {
            self.patience.orphan_since = Some(now);
        }
    }

    fn waits(&self) -> bool {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        opening || !self.segments.is_empty() || (self.has_unsent() && self.is_open())
    }

    pub(super) fn keep_alive_deadline(&self) -> Option<Instant> {
        let settings = self.config.keep_alive?;
        let idle = self.segments.is_empty()
            && matches!(self.state, State::Established | State::CloseWait | State::FinWait2);
        idle.then(|| match self.patience.probes {
            0 => self.patience.heard_at + settings.idle,
            _ => self.patience.probed_at + settings.interval,
        })
    }

    pub(super) fn user_deadline(&self) -> Option<Instant> {
        Some(self.patience.waiting_since? + self.config.user_timeout?)
    }

    /// RFC 9293 §3.8.4: the peer of an idle connection is asked, and given up after so many questions.
    pub(super) fn on_keep_alive(&mut self, now: Instant) {
        self.note_internal(now, Cause::TimerKeepAlive);
        if self.config.keep_alive.is_some_and(|k| self.patience.probes >= k.count) {
            self.give_up();
            return;
        }
        self.patience.probes += 1;
        self.patience.probed_at = now;
        self.patience.due = true;
    }

    /// RFC 5482: what waits has made no progress for as long as the application allows. This also ends a connection
    /// to a peer that keeps its window closed for ever.
    pub(super) fn on_user_timeout(&mut self, now: Instant) {
        self.note_internal(now, Cause::TimerUserTimeout);
        self.give_up();
    }

    /// Ends the connection; a peer that is there after all learns of it.
    pub(super) fn give_up(&mut self) {
        if !matches!(self.state, State::SynSent | State::SynReceived) {
            self.reset_pending = Some((self.snd_nxt, self.rcv_nxt));
        }
        self.time_out();
    }

    /// The retransmission timer has fired once more. True: it was the last time.
    pub(super) fn is_hopeless(&mut self, now: Instant) -> bool {
        let waited = self.patience.waiting_since.map_or(Span::ZERO, |since| now.since(since));
        self.timeouts_in_row += 1;
        if self.timeouts_in_row == R1 {
            self.tell(Event::Unanswered);
        }
        match self.state {
            State::SynSent => waited >= SYN_R2,
            State::SynReceived => self.timeouts_in_row > MAX_SYN_ACKS,
            // A peer that has taken its window back and says so is not gone (RFC 9293 §3.8.6, SHLD-17).
            _ if self.snd_wnd == 0 && now.since(self.patience.heard_at) <= crate::rto::MAX_RTO => false,
            _ => self.timeouts_in_row > MAX_TIMEOUTS && waited >= R2,
        }
    }
}
