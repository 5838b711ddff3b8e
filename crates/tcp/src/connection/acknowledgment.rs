//! The acknowledgment field of a segment (RFC 9293 §3.10.7.4, fifth check).

use super::{CloseReason, Connection, Event, State};
use crate::recovery::{AckInput, Context};
use crate::segment::Segment;
use farpace_units::{Instant, Span};

impl Connection {
    /// Processes SEG.ACK, the window and the SACK blocks. False: the segment is to be dropped.
    pub(super) fn on_acknowledgment(&mut self, now: Instant, segment: &Segment) -> bool {
        let h = &segment.header;
        if h.ack.after(self.snd_nxt) {
            self.counters.unacceptable += 1;
            self.challenge(now, segment);
            return false;
        }
        let prior_snd_una = self.snd_una;
        let window_update = self.update_send_window(segment);
        let advanced = h.ack.after(prior_snd_una);
        if advanced {
            self.snd_una = h.ack;
        }
        let tsecr = h.options.timestamps.filter(|_| self.timestamps).map(|t| t.echo);
        let clock = self.timestamp(now);
        let input = AckInput {
            now,
            prior_snd_una,
            snd_una: self.snd_una,
            ack: h.ack,
            snd_nxt: self.snd_nxt,
            sack: &h.options.sack,
            tsecr,
            rtt_by_timestamp: tsecr
                .map(|echo| clock.wrapping_sub(echo))
                .filter(|ms| *ms < 1 << 30)
                .map(|ms| Span::from_millis(u64::from(ms))),
            has_data: !segment.payload.is_empty(),
            window_update,
            ece: false,
            new_data_waiting: self.new_data_fits(),
            max_window: self.max_window,
        };
        let outcome = self.recovery.on_ack(
            &input,
            &mut Context {
                segments: &mut self.segments,
                window: &mut self.window,
                cc: self.cc.as_mut(),
                rto: &mut self.rto,
                sack: self.sack,
                causes: &mut self.causes,
            },
        );
        if advanced {
            self.release_acknowledged(prior_snd_una);
            self.timeouts_in_row = 0;
            self.persist = super::timers::Persist::default();
        }
        if !outcome.acknowledged.packets.is_zero() || outcome.reneged {
            // RFC 6298 §5.2, §5.3
            self.rto_deadline = if self.segments.is_empty() { None } else { Some(now + self.rto.rto()) };
        }
        self.update_persist(now);
        if let Some(fin) = self.fin_seq
            && self.snd_una.after(fin)
        {
            self.on_fin_acknowledged(now);
        }
        true
    }

    /// RFC 9293 §3.10.7.4: a segment newer than the last update tells the window. True: it was newer.
    fn update_send_window(&mut self, segment: &Segment) -> bool {
        let h = &segment.header;
        let window = u32::from(h.window) << self.snd_wscale;
        let newer = h.ack.after(self.snd_una)
            || h.seq.after(self.snd_wl1)
            || (h.seq == self.snd_wl1 && h.ack == self.snd_una && window > self.snd_wnd);
        if h.ack.before(self.snd_una) || !newer {
            return false;
        }
        self.snd_wnd = window;
        self.max_window = self.max_window.max(window);
        self.snd_wl1 = h.seq;
        true
    }

    fn release_acknowledged(&mut self, prior_snd_una: farpace_units::Seq) {
        let mut bytes = u64::from(self.snd_una.bytes_since(prior_snd_una));
        // The FIN has a number but no byte.
        if self.fin_seq.is_some_and(|fin| self.snd_una.after(fin)) {
            bytes -= 1;
        }
        self.una_offset += bytes;
        let had_room = !self.buffer.room().is_zero();
        self.buffer.release(self.una_offset);
        // Tell of room when there is a useful amount of it, not for every ACK.
        let useful = self.buffer.room().get() >= self.config.send_buffer.get() / 4;
        if !self.fin_queued && (useful || (!had_room && self.buffer.len().is_zero())) {
            self.tell(Event::Writable);
        }
    }

    fn on_fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(CloseReason::Finished),
            _ => {}
        }
    }
}
