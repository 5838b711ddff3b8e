//! The acknowledgment field of a segment (RFC 9293 §3.10.7.4, fifth check).

use super::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use crate::recovery::AckInput;
use crate::segment::Segment;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Span};
use farpace_wire::tcp::{SackBlocks, TcpFlags};

/// Room in the send buffer of which the application is always told.
const USEFUL_ROOM: u64 = 16_384;

impl Connection {
    /// Processes SEG.ACK, the window and the SACK blocks. `opening`: it completes the handshake. False: the
    /// segment is to be dropped.
    pub(super) fn on_acknowledgment(&mut self, now: Instant, segment: &Segment, opening: bool) -> bool {
        let h = &segment.header;
        if h.ack.after(self.snd.nxt) {
            self.counters.unacceptable += 1;
            self.challenge(now, segment);
            return false;
        }
        // RFC 5961 §5.2: nor may it be older than what the peer can have under way.
        let behind = if self.config.is_linux() {
            self.snd.max_wnd.min(u32::try_from(self.acknowledged_numbers()).unwrap_or(u32::MAX))
        } else {
            self.snd.max_wnd
        };
        if h.ack.before(self.snd.una - behind) {
            self.counters.unacceptable += 1;
            // The fast path comes before the look at the number, and takes the data all the same.
            let fast = self.config.is_linux() && self.takes_fast_path(segment);
            if fast && self.rcv.nxt == self.ack.last_sent {
                self.ts.update(now, self.ack.last_sent, segment);
            }
            self.challenge(now, segment);
            self.linux.fast = fast;
            return fast && !segment.payload.is_empty();
        }
        self.heard(now, !segment.payload.is_empty());
        // The kernel's fast path takes what is expected; where it acknowledges nothing new, no look at what
        // may be sent follows.
        let fast = self.takes_fast_path(segment);
        self.linux.fast = fast && self.config.is_linux();
        let unseen = fast && !segment.payload.is_empty() && h.ack == self.snd.una;
        if !unseen {
            self.keep_alive.acknowledged(now);
        }
        let fast = unseen && self.config.is_linux();
        if !fast {
            self.end_more();
            self.linux.looks_again();
            self.restart_persist(now);
            if self.config.is_linux() && !h.ack.before(self.snd.una) {
                self.soft_error = None;
            }
        }
        self.notice_empty_line(now);
        self.follow_path(now);
        let prior_snd_una = self.snd.una;
        let marked = if h.ack.after_eq(prior_snd_una) {
            self.ecn.echoed(h.flags, opening, Self::is_plain_ack(segment))
        } else {
            Packets::ZERO
        };
        let window_update = self.update_send_window(segment);
        let advanced = h.ack.after(prior_snd_una);
        let unsent = self.snd.unsent();
        if advanced {
            self.snd.una = h.ack;
        }
        if !advanced
            && self.flight.segments.is_empty()
            && h.options.sack.is_empty()
            && !segment.payload.is_empty()
        {
            // Data from a peer to whom we send nothing: there is nothing to recover.
            self.update_persist(now);
            return true;
        }
        let (one_timer, outstanding) = (self.config.is_linux(), !self.flight.segments.is_empty());
        let told = self.read_answer(now, segment, advanced);
        let (none, agreed) = (SackBlocks::new(), self.sack || !one_timer);
        let blocks = told.sack.as_ref().unwrap_or(if agreed { &h.options.sack } else { &none });
        let timestamps = h.options.timestamps.filter(|_| self.ts.enabled);
        let tsecr = timestamps.map(|t| t.echo);
        let clock = self.timestamp(now);
        let input = AckInput {
            now,
            prior_snd_una,
            snd_una: self.snd.una,
            ack: h.ack,
            snd_nxt: self.snd.nxt,
            sack: blocks,
            tsecr,
            tsval: timestamps.map(|t| t.value),
            rtt_by_timestamp: tsecr
                .map(|echo| clock.wrapping_sub(echo))
                .and_then(|ticks| self.believable(now, ticks)),
            timed_at: if advanced { self.flight.timed.on_ack(self.snd.una) } else { None },
            undelayed: told.undelayed,
            answers_probe: told.answers_probe,
            has_data: !segment.payload.is_empty() || (one_timer && segment.sequence_length() > 0),
            window_update,
            ece: !marked.is_zero(),
            marked,
            new_data_waiting: self.fits(unsent),
            unsent_in_window: one_timer
                && self.snd.fin_seq.is_none()
                && (unsent > 0 || self.snd.fin_queued)
                && self.snd.usable_window() > 0,
            max_window: self.snd.max_wnd,
            cwnd_limited: self.snd.limited_at.is_some_and(|at| self.snd.una.before_eq(at)),
        };
        let calm = self.flight.recovery.state() <= RecoveryState::Disorder;
        let (recovery, mut cx) = self.flight.recovery(self.sack);
        let outcome = recovery.on_ack(&input, &mut cx);
        if self.flight.cc.hides_rate() {
            self.flight.segments.mark_app_limited();
        }
        if self.is_probing() {
            self.judge_probe(now, calm);
        }
        if !input.cwnd_limited {
            self.snd.limited_at = None; // sequence numbers come round again
        }
        if advanced {
            self.snd.release_acknowledged(prior_snd_una);
            self.tune_send_buffer();
            self.tell_of_room();
            self.progress(now);
            self.path_works();
            self.persist = super::timers::Persist::default();
        }
        if !advanced && !h.options.sack.is_empty() && self.tune_send_buffer() {
            self.tell_of_room();
        }
        if one_timer {
            if outstanding && !unseen && !h.ack.before(prior_snd_una) {
                self.reckon_pace();
            }
        } else if advanced || outcome.reneged {
            // RFC 6298 §5.2, §5.3
            self.flight.rto_deadline =
                if self.flight.segments.is_empty() { None } else { Some(self.timeout_from(now)) };
        }
        self.update_persist(now);
        if let Some(fin) = self.snd.fin_seq
            && self.snd.una.after(fin)
        {
            self.on_fin_acknowledged(now);
        }
        true
    }

    /// A segment as new as the last update has another window, and it counts.
    fn changes_window(&self, window: u32) -> bool {
        self.config.quirks.window_updates.takes(window, self.snd.wnd)
    }

    /// A round trip told by an echo of our clock. The peer may write anything; older than the connection is
    /// no echo.
    pub(super) fn believable(&self, now: Instant, ticks: u32) -> Option<Span> {
        let tick = self.flight.rto.clock().tick();
        let rtt = tick * u64::from(ticks);
        (rtt <= now.since(self.opened_at) + tick).then_some(rtt)
    }

    /// RFC 9293 §3.10.7.4: a segment newer than the last update tells the window. True: it was newer.
    fn update_send_window(&mut self, segment: &Segment) -> bool {
        let h = &segment.header;
        // The window in a SYN is not scaled (RFC 7323 §2.2). Linux scales that of a SYN-ACK that has crossed
        // its SYN.
        let is_scaled = self.config.is_linux() || !h.flags.contains(TcpFlags::SYN);
        let window = u32::from(h.window) << if is_scaled { self.snd.wscale } else { 0 };
        let newer = h.ack.after(self.snd.una)
            || h.seq.after(self.snd.wl1)
            || (h.seq == self.snd.wl1 && h.ack == self.snd.una && self.changes_window(window));
        if h.ack.before(self.snd.una) || !newer {
            return false;
        }
        self.linux.predicts |= window != self.snd.wnd;
        self.snd.wnd = window;
        if window > self.snd.max_wnd {
            self.snd.max_wnd = window;
            if self.config.is_linux() {
                self.size_anew();
            }
        }
        self.snd.wl1 = h.seq;
        true
    }

    /// Tells of room in the send buffer when there is a useful amount of it, not for every ACK; but a buffer
    /// that just holds what the path does must not run dry.
    fn tell_of_room(&mut self) {
        let room = self.writable_share().get();
        let useful =
            room >= (self.snd.buffer.limit().get() / 4).min(USEFUL_ROOM) || self.snd.buffer.len().is_zero();
        if room > 0 && useful && !self.snd.fin_queued {
            self.tell(ConnectionEvent::Writable);
        }
    }

    fn on_fin_acknowledged(&mut self, now: Instant) {
        match self.state {
            ConnectionState::FinWait1 => self.state = ConnectionState::FinWait2,
            ConnectionState::Closing => self.enter_time_wait(now),
            ConnectionState::LastAck => self.finish(CloseReason::Finished),
            _ => {}
        }
    }
}
