//! Connections that their programs have left. Nobody would miss them, so they must not wait for ever for
//! their peers: a peer that never closes, or that keeps its window closed, could hold as many as it likes
//! (sockstress).

use super::keep_alive::{Orphan, R2};
use super::{Connection, ConnectionState};
use farpace_events::Cause;
use farpace_units::{Instant, Rate};

/// What an orphan has to send must leave at this rate at least, on average. Without that a peer that
/// acknowledges a byte before every deadline would keep a full buffer for years; with it, 16 MB end after
/// less than five hours.
pub const MIN_ORPHAN_RATE: Rate = Rate::from_bits_per_sec(8_192);

impl Connection {
    /// True from when the program has closed both directions ([`stop_reading`](Connection::stop_reading) and
    /// [`close`](Connection::close)) until nothing of the peer is waited for any more.
    ///
    /// Such a connection ends when it has made no progress for
    /// [`Config::fin_timeout`](crate::config::Config::fin_timeout) in FIN-WAIT-2, where the peer's FIN alone
    /// is missing, and for at least 100 s where data or our FIN is not acknowledged (R2 of RFC 9293 §3.8.3),
    /// however well the peer answers with a closed window. It ends also when its data takes longer than these
    /// 100 s and what [`MIN_ORPHAN_RATE`] allows.
    pub fn is_orphan(&self) -> bool {
        self.rcv.read_shutdown
            && self.snd.fin_queued
            && !matches!(self.state, ConnectionState::TimeWait | ConnectionState::Closed)
    }

    /// Ends an orphan before its time, because there are too many. A peer that is still there gets a reset.
    /// Other connections stay as they are.
    pub fn end_orphan(&mut self, now: Instant) {
        if self.is_orphan() {
            self.note_internal(now, Cause::OrphanLimit);
            self.abort();
        }
    }

    /// The program has left just now.
    pub(super) fn orphaned(&self, now: Instant) -> Orphan {
        let time = self.config.fin_timeout.max(R2) + MIN_ORPHAN_RATE.time_for(self.snd.buffer.len());
        Orphan { since: now, until: now + time }
    }

    #[inline]
    pub(super) fn orphan_deadline(&self) -> Option<Instant> {
        let Orphan { since, until } = self.keep_alive.orphan.filter(|_| self.is_orphan())?;
        Some(match self.state {
            ConnectionState::FinWait2 => since + self.config.fin_timeout,
            _ => until.min(since + self.config.fin_timeout.max(R2)),
        })
    }

    pub(super) fn on_orphan_timeout(&mut self, now: Instant) {
        self.note_internal(now, Cause::TimerOrphan);
        // As for an abort: whoever has both closed needs no reset (RFC 9293 §3.10.5).
        if matches!(self.state, ConnectionState::Closing | ConnectionState::LastAck) {
            self.time_out()
        } else {
            self.give_up()
        }
    }
}
