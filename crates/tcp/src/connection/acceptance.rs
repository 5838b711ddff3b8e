//! Which segments are taken, and what answers the others (RFC 9293 §3.10.7.4, RFC 7323 §5, RFC 5961).

use super::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use crate::segment::Segment;
use farpace_events::Cause;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::tcp::TcpFlags;

/// Least time between two answers to unacceptable segments without data (Linux: tcp_invalid_ratelimit).
const CHALLENGE_INTERVAL: Span = Span::from_millis(500);
/// Most answers in that time to unacceptable segments with data or FIN, which do ask for one.
const MAX_ANSWERS: u32 = 100;
/// Age in ticks at which TS.Recent tells nothing any more: half the circle, less a bit (RFC 7323 §5.5: 24 days of 1 ms).
const TS_RECENT_LIFE: u64 = 24 * 86_400_000;

impl Connection {
    /// It acknowledges something else than our SYN-ACK. Linux looks at that before anything else.
    pub(super) fn answers_wrongly(&self, segment: &Segment) -> bool {
        let ack = segment.header.flags.contains(TcpFlags::ACK);
        self.config.is_linux() && !self.opened_actively() && ack && segment.header.ack != self.iss + 1
    }

    /// A reset that stands where the peer's FIN stood: a peer that forgets its FIN sends such (Linux: tcp_reset_check).
    pub(super) fn resets_after_fin(&self, segment: &Segment) -> bool {
        let closed = matches!(
            self.state,
            ConnectionState::CloseWait | ConnectionState::LastAck | ConnectionState::Closing
        );
        closed && segment.header.seq + 1 == self.rcv_nxt
    }

    /// The four cases of RFC 9293 table 6, the first two taken together.
    pub(super) fn acceptable(&self, segment: &Segment) -> bool {
        let reset = segment.header.flags.contains(TcpFlags::RST);
        // What a reset carries does not matter, only where it stands (RFC 9293 §3.10.7.4, MUST-66).
        let any = reset && !self.config.is_linux();
        let (seq, len) = (segment.header.seq, if any { 0 } else { segment.sequence_length() });
        let window = self.rcv_adv.bytes_since(self.rcv_nxt);
        let inside = |s: Seq| s.after_eq(self.rcv_nxt) && s.before(self.rcv_nxt + window);
        // In SYN-RECEIVED the peer's SYN itself may come again.
        let again = segment.header.flags.contains(TcpFlags::SYN) && seq == self.irs;
        if self.state == ConnectionState::SynReceived
            && (again || !self.is_request())
            && segment.header.flags.contains(TcpFlags::SYN)
        {
            return again;
        }
        if self.is_request() {
            return self.lies_in_window(seq, segment.sequence_length(), window);
        }
        if self.config.is_linux() {
            // A segment that ends where the last acknowledgment stands has news for the clock of timestamps.
            return !(seq + len).before(self.last_ack_sent) && !seq.after(self.rcv_nxt + window);
        }
        match (len, window) {
            // An acknowledgment may stand at the right edge: a peer that has filled the window sends from there,
            // and until the first hole is filled the table of the RFC would throw away all it acknowledges.
            // A reset has no such excuse (RFC 5961 §3.2).
            (0, w) => inside(seq) || (seq == self.rcv_nxt + window && (w == 0 || !reset)),
            (_, 0) => false,
            _ => inside(seq) || inside(seq + (len - 1)),
        }
    }

    /// Where there is no whole connection Linux looks at the window alone (tcp_in_window).
    fn lies_in_window(&self, seq: Seq, len: u32, window: u32) -> bool {
        seq == self.rcv_nxt
            || ((seq + len).after(self.rcv_nxt) && seq.before(self.rcv_nxt + window))
            || (seq == self.rcv_nxt + window && len == 0)
    }

    /// A segment for what is left of a connection that the program has closed and the peer has not (Linux keeps no more of it
    /// than in TIME-WAIT). True: nothing is left to do.
    pub(super) fn is_settled_in_fin_wait_2(&mut self, now: Instant, segment: &Segment) -> bool {
        let (seq, len) = (segment.header.seq, segment.sequence_length());
        let window = self.rcv_adv.bytes_since(self.rcv_nxt);
        if !self.lies_in_window(seq, len, window) || self.is_old_by_timestamp(now, segment) {
            self.counters.unacceptable += 1;
            if !segment.header.flags.contains(TcpFlags::RST) {
                self.answer(now, segment, true);
            }
            return true;
        }
        if segment.header.flags.contains(TcpFlags::RST) {
            self.finish(CloseReason::Reset);
            return true;
        }
        if segment.header.flags.contains(TcpFlags::SYN) && !seq.before(self.rcv_nxt) {
            self.refuse_as_stranger(segment);
            return true;
        }
        if len == 0 || !segment.header.flags.contains(TcpFlags::ACK) {
            return true;
        }
        let closes = segment.header.flags.contains(TcpFlags::FIN) && seq + len == self.rcv_nxt + 1;
        if closes {
            // Whatever it acknowledges.
            self.update_ts_recent(now, segment);
            self.peer_fin = Some(self.rcv_nxt);
            self.rcv_nxt += 1;
            self.enter_time_wait(now);
            self.ack_now = Some(Cause::AckNow);
            self.tell(ConnectionEvent::PeerClosed);
        } else {
            self.refuse_data(segment.header.ack);
        }
        true
    }

    /// PAWS (RFC 7323 §5.3), unless TS.Recent itself is so old that it tells nothing (§5.5).
    pub(super) fn is_old_by_timestamp(&self, now: Instant, segment: &Segment) -> bool {
        self.timestamps
            && now.since(self.ts_recent_at) < self.ts_recent_life()
            && segment
                .header
                .options
                .timestamps
                .is_some_and(|t| (t.value.wrapping_sub(self.ts_recent) as i32) < 0)
    }

    /// The peer's tick is not known: ours is taken for it if it is finer than 1 ms.
    pub(super) fn ts_recent_life(&self) -> Span {
        self.rto.clock().tick().min(Span::from_millis(1)) * TS_RECENT_LIFE
    }

    pub(super) fn update_ts_recent(&mut self, now: Instant, segment: &Segment) {
        if let (true, Some(t)) = (self.timestamps, segment.header.options.timestamps)
            && segment.header.seq.before_eq(self.last_ack_sent)
        {
            // What is older came through PAWS only because TS.Recent has expired.
            self.ts_recent = t.value;
            self.ts_recent_at = now;
        }
    }

    pub(super) fn on_unacceptable(&mut self, now: Instant, segment: &Segment, reset: bool) {
        self.counters.unacceptable += 1;
        if reset {
            return;
        }
        let whole = self.config.is_linux() && self.state != ConnectionState::SynReceived;
        if whole && segment.header.flags.contains(TcpFlags::SYN) {
            self.challenge(now, segment);
            return;
        }
        let (seq, end) = (segment.header.seq, segment.header.seq + segment.payload.len() as u32);
        if !segment.payload.is_empty() && end.before_eq(self.rcv_nxt) {
            // All of it is old: tell the sender (RFC 2883) and be quick for a while.
            self.counters.duplicates += u64::from(segment.segments());
            if self.sack && !(self.config.is_linux() && self.state == ConnectionState::SynReceived) {
                let end = seq + segment.sequence_length();
                self.islands.set_duplicate(seq, end.earlier(self.rcv_nxt));
            }
            let arrival = self.data_arrival(now, segment, true);
            self.decide_ack(&arrival);
            return;
        }
        self.answer(now, segment, true);
        let end = seq + segment.sequence_length();
        let old = whole && end != seq && seq.before(self.rcv_nxt);
        if old && self.sack && self.ack_now == Some(Cause::AckUnacceptable) {
            self.islands.set_duplicate(seq, end.earlier(self.rcv_nxt));
        }
    }

    /// Answers a segment that is not taken with an ACK. If it asks for nothing itself, not too often (RFC 5961
    /// §7): two sides whose acknowledgments overtake each other would answer answers for ever.
    pub(super) fn challenge(&mut self, now: Instant, segment: &Segment) {
        self.answer(now, segment, !self.config.is_linux());
    }

    /// The same. `for_data`: where the segment has data or FIN, more often.
    fn answer(&mut self, now: Instant, segment: &Segment, for_data: bool) {
        let flags = segment.header.flags;
        let syn = flags.contains(TcpFlags::SYN) && self.config.is_linux();
        if for_data && !syn && (!segment.payload.is_empty() || flags.contains(TcpFlags::FIN)) {
            if now.since(self.answers_since) >= CHALLENGE_INTERVAL {
                (self.answers_since, self.answers) = (now, 0);
            }
            self.answers += 1;
            if self.answers > MAX_ANSWERS {
                return;
            }
        } else if !self.may_answer(now) {
            return;
        }
        self.ack_now = Some(Cause::AckUnacceptable);
    }

    /// It is long enough since the last answer to what asked for none.
    pub(super) fn may_answer(&mut self, now: Instant) -> bool {
        if self.challenged_at.is_some_and(|at| now.since(at) < CHALLENGE_INTERVAL) {
            return false;
        }
        self.challenged_at = Some(now);
        true
    }
}
