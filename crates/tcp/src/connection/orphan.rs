//! Connections that their programs have left. Nobody would miss them, so they must not wait for ever for their peers: a peer
//! that never closes, or that keeps its window closed, could hold as many as it likes (sockstress).

use super::patience::R2;
use super::{Connection, State};
use farpace_trace::Cause;
use farpace_units::Instant;

impl Connection {
    /// True from when the program has closed both directions ([`stop_reading`](Connection::stop_reading) and
    /// [`close`](Connection::close)) until nothing of the peer is waited for any more.
    ///
    /// Such a connection ends when it has made no progress for [`Config::fin_timeout`](crate::config::Config::fin_timeout)
    /// in FIN-WAIT-2, where the peer's FIN alone is missing, and for at least 100 s where data or our FIN is not acknowledged
    /// (R2 of RFC 9293 §3.8.3), however well the peer answers with a closed window.
    pub fn is_orphan(&self) -> bool {
        self.deaf && self.fin_queued && !matches!(self.state, State::TimeWait | State::Closed)
    }

    /// Ends an orphan before its time, because there are too many. A peer that is still there gets a reset. Other
    /// connections stay as they are.
    pub fn end_orphan(&mut self, now: Instant) {
        if self.is_orphan() {
            self.note_internal(now, Cause::OrphanLimit);
            self.abort();
        }
    }

    pub(super) fn orphan_deadline(&self) -> Option<Instant> {
        let limit = match self.state {
            State::FinWait2 => self.config.fin_timeout,
            _ => self.config.fin_timeout.max(R2),
        };
        self.patience.orphan_since.filter(|_| self.is_orphan()).map(|since| since + limit)
    }

    pub(super) fn on_orphan_timeout(&mut self, now: Instant) {
        self.note_internal(now, Cause::TimerOrphan);
        // As for an abort: whoever has both closed needs no reset (RFC 9293 §3.10.5).
        if matches!(self.state, State::Closing | State::LastAck) { self.time_out() } else { self.give_up() }
    }
}
