//! TIME-WAIT of a connection that a host has not put into its table yet: there is something to read, or no
//! host.

use super::{CloseReason, Connection, ConnectionState};
use crate::segment::Segment;
use crate::time_wait::{Remains, TimeWait, TimeWaitOutcome};
use farpace_events::Cause;
use farpace_units::{Instant, Seq};

impl Connection {
    /// Both ends have closed.
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        let left = self.rcv.adv.bytes_since(self.rcv.nxt);
        // Linux has kept the window of a connection that was left in FIN-WAIT-2 as it was.
        let kept = self.config.is_linux() && self.state == ConnectionState::FinWait2 && self.is_orphan();
        self.state = ConnectionState::TimeWait;
        self.flight.rto_deadline = None;
        let window = if kept {
            let most = u32::from(u16::MAX) << self.rcv.wscale;
            ((left + 1).min(most) >> self.rcv.wscale) as u16
        } else {
            self.announce(false)
        };
        let fresh = !self.ts.recent_expired(now, self.flight.rto.clock().tick());
        let remains = Remains {
            snd_nxt: self.snd.nxt,
            rcv_nxt: self.rcv.nxt,
            window: (window, self.rcv.adv.bytes_since(self.rcv.nxt)),
            ts_recent: (self.ts.enabled && fresh).then_some(self.ts.recent),
            ts_offset: self.ts.offset,
            clock: self.flight.rto.clock(),
            lasts: self.config.time_wait,
        };
        self.time_wait = Some(Box::new(TimeWait::new(now, remains)));
    }

    pub(super) fn time_wait_deadline(&self) -> Option<Instant> {
        self.time_wait.as_ref().map(|row| row.until())
    }

    pub(super) fn on_segment_time_wait(&mut self, now: Instant, segment: &Segment) {
        let ports = self.ports;
        let Some(row) = &mut self.time_wait else { return };
        match row.on_segment(now, ports, segment) {
            TimeWaitOutcome::Ignored => {}
            TimeWaitOutcome::Answer(_) => {
                self.counters.unacceptable += 1;
                self.ack.due = Some(Cause::AckUnacceptable);
            }
            // Both directions are complete: there is nothing to signal (RFC 9293 §3.10.7.4).
            TimeWaitOutcome::Ended => self.finish(CloseReason::Finished),
        }
        self.note_received(now, segment);
    }

    /// What is left of a connection in TIME-WAIT with nothing to read or to send, for a table of a host. The
    /// connection is [`Closed`](ConnectionState::Closed) then, with [`CloseReason::Finished`]. None: it is
    /// needed as it is.
    pub fn take_time_wait(&mut self) -> Option<TimeWait> {
        let needed = !self.rcv.reassembly.readable().is_zero()
            || self.ack.due.is_some()
            || self.reset_pending.is_some();
        if needed {
            return None;
        }
        let row = self.time_wait.take()?;
        self.finish(CloseReason::Finished);
        Some(*row)
    }

    /// See [`TimeWait::may_be_reused_by`]. In other states it is always false.
    pub fn may_be_reused_by(&self, syn: &Segment) -> bool {
        self.time_wait.as_ref().is_some_and(|row| row.may_be_reused_by(syn))
    }

    /// See [`TimeWait::next_iss_floor`].
    pub fn next_iss_floor(&self) -> Seq {
        self.time_wait.as_ref().map_or(self.snd.nxt, |row| row.next_iss_floor())
    }
}
