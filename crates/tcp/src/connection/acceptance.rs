//! Which segments are taken, and what answers the others (RFC 9293 §3.10.7.4, RFC 7323 §5, RFC 5961).

use super::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use crate::segment::Segment;
use farpace_events::Cause;
use farpace_units::{Instant, Seq};
use farpace_wire::tcp::TcpFlags;

impl Connection {
    /// It acknowledges something else than our SYN-ACK. Linux looks at that before anything else.
    pub(super) fn answers_wrongly(&self, segment: &Segment) -> bool {
        let ack = segment.header.flags.contains(TcpFlags::ACK);
        self.config.is_linux() && !self.opened_actively() && ack && segment.header.ack != self.snd.iss + 1
    }

    /// A reset that stands where the peer's FIN stood: a peer that forgets its FIN sends such (Linux:
    /// tcp_reset_check).
    pub(super) fn resets_after_fin(&self, segment: &Segment) -> bool {
        let closed = matches!(
            self.state,
            ConnectionState::CloseWait | ConnectionState::LastAck | ConnectionState::Closing
        );
        closed && segment.header.seq + 1 == self.rcv.nxt
    }

    /// The four cases of RFC 9293 table 6, the first two taken together.
    pub(super) fn acceptable(&self, segment: &Segment) -> bool {
        let reset = segment.header.flags.contains(TcpFlags::RST);
        // What a reset carries does not matter, only where it stands (RFC 9293 §3.10.7.4, MUST-66).
        let any = reset && !self.config.is_linux();
        let (seq, len) = (segment.header.seq, if any { 0 } else { segment.sequence_length() });
        let window = self.rcv.adv.bytes_since(self.rcv.nxt);
        let inside = |s: Seq| s.after_eq(self.rcv.nxt) && s.before(self.rcv.nxt + window);
        // In SYN-RECEIVED the peer's SYN itself may come again.
        let again = segment.header.flags.contains(TcpFlags::SYN) && seq == self.rcv.irs;
        if self.state == ConnectionState::SynReceived
            && (again || !self.is_request())
            && segment.header.flags.contains(TcpFlags::SYN)
        {
            return again;
        }
        if self.is_request() {
            return self.rcv.lies_in_window(seq, segment.sequence_length(), window);
        }
        if self.config.is_linux() {
            // A segment that ends where the last acknowledgment stands has news for the clock of timestamps.
            return !(seq + len).before(self.ack.last_sent) && !seq.after(self.rcv.nxt + window);
        }
        match (len, window) {
            // An acknowledgment may stand at the right edge: a peer that has filled the window sends from
            // there, and until the first hole is filled the table of the RFC would throw away all it
            // acknowledges. A reset has no such excuse (RFC 5961 §3.2).
            (0, w) => inside(seq) || (seq == self.rcv.nxt + window && (w == 0 || !reset)),
            // Its data is not taken, but what else it says is (RFC 9293 §3.10.7.4).
            (_, 0) => seq == self.rcv.nxt,
            _ => inside(seq) || inside(seq + (len - 1)),
        }
    }

    /// A segment for what is left of a connection that the program has closed and the peer has not (Linux
    /// keeps no more of it than in TIME-WAIT). True: nothing is left to do.
    pub(super) fn is_settled_in_fin_wait_2(&mut self, now: Instant, segment: &Segment) -> bool {
        let (seq, len) = (segment.header.seq, segment.sequence_length());
        let window = self.rcv.adv.bytes_since(self.rcv.nxt);
        if !self.rcv.lies_in_window(seq, len, window)
            || self.ts.is_old(now, self.flight.rto.clock().tick(), segment)
        {
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
        if segment.header.flags.contains(TcpFlags::SYN) && !seq.before(self.rcv.nxt) {
            self.refuse_as_stranger(segment);
            return true;
        }
        if len == 0 || !segment.header.flags.contains(TcpFlags::ACK) {
            return true;
        }
        let closes = segment.header.flags.contains(TcpFlags::FIN) && seq + len == self.rcv.nxt + 1;
        if closes {
            // Whatever it acknowledges.
            self.ts.update(now, self.ack.last_sent, segment);
            self.rcv.peer_fin = Some(self.rcv.nxt);
            self.rcv.nxt += 1;
            self.enter_time_wait(now);
            self.ack.due = Some(Cause::AckNow);
            self.tell(ConnectionEvent::PeerClosed);
        } else {
            self.refuse_data(segment.header.ack);
        }
        true
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
        if !segment.payload.is_empty() && end.before_eq(self.rcv.nxt) {
            // All of it is old: tell the sender (RFC 2883) and be quick for a while.
            self.counters.duplicates += u64::from(segment.segments());
            if self.sack && !(self.config.is_linux() && self.state == ConnectionState::SynReceived) {
                let end = seq + segment.sequence_length();
                self.rcv.sack_blocks.set_duplicate(seq, end.earlier(self.rcv.nxt));
            }
            let arrival = self.data_arrival(now, segment, true);
            self.decide_ack(&arrival);
            return;
        }
        self.answer(now, segment, true);
        let end = seq + segment.sequence_length();
        let old = whole && end != seq && seq.before(self.rcv.nxt);
        if old && self.sack && self.ack.due == Some(Cause::AckUnacceptable) {
            self.rcv.sack_blocks.set_duplicate(seq, end.earlier(self.rcv.nxt));
        }
    }

    /// Answers a segment that is not taken with an ACK. If it asks for nothing itself, not too often (RFC
    /// 5961 §7): two sides whose acknowledgments overtake each other would answer answers for ever.
    pub(super) fn challenge(&mut self, now: Instant, segment: &Segment) {
        self.answer(now, segment, !self.config.is_linux());
    }

    /// The same. `for_data`: where the segment has data or FIN, more often.
    pub(super) fn answer(&mut self, now: Instant, segment: &Segment, for_data: bool) {
        let flags = segment.header.flags;
        let syn = flags.contains(TcpFlags::SYN) && self.config.is_linux();
        if for_data && !syn && (!segment.payload.is_empty() || flags.contains(TcpFlags::FIN)) {
            if !self.ack.may_answer_data(now) {
                return;
            }
        } else if !self.ack.may_answer(now) {
            return;
        }
        self.ack.due = Some(Cause::AckUnacceptable);
        let answers_ours = segment.header.seq == self.rcv.irs && segment.header.ack == self.snd.iss + 1;
        if flags.contains(TcpFlags::SYN.with(TcpFlags::ACK)) && answers_ours && !self.config.is_linux() {
            self.ecn.on_syn_ack_again(flags, segment.ecn);
        }
    }
}
