//! What a connection sends, and in which order: control, retransmissions, new data, acknowledgments.

use super::{Connection, ConnectionState};
use crate::ack_request::{Mark, RequestForm};
use crate::cc::{self, SentSample};
use crate::config::MAX_SUPER_SEGMENT;
use crate::recovery::{SendView, SentKind};
use crate::segment::OutgoingSegment;
use crate::segments::{SegmentRow, Tags};
use bytes::Bytes;
use farpace_events::Cause;
use farpace_units::{Instant, Seq};
use farpace_wire::tcp::TcpFlags;

/// What [`Connection::poll_transmit`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// So many segments were appended; ask again.
    Sent(usize),
    /// There is data, but it may not be sent now.
    Blocked(Blocked),
    /// There is nothing to send.
    Idle,
}

/// What holds data back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The congestion window is full.
    CongestionWindow,
    /// The peer's window is full.
    ReceiveWindow,
    /// Less than a full segment, with others outstanding (RFC 9293 §3.7.4, Nagle).
    Nagle,
    /// The pacing rate; the deadline says until when.
    Pacing,
    /// The transmit queue of the host is full.
    TransmitQueue,
}

impl Connection {
    /// Appends up to `budget` segments to `out` (zero counts as one), as far as windows and data allow.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, budget: usize) -> Transmit {
        let before = out.len();
        let result = self.fill(now, out, budget);
        self.flight.segments.trim();
        self.note_causes(now);
        match out.len() - before {
            0 => result,
            sent => Transmit::Sent(sent),
        }
    }

    fn fill(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, budget: usize) -> Transmit {
        let full = out.len().saturating_add(budget.max(1));
        if let Some((seq, ack)) = self.reset_pending.take() {
            let known = ack != Seq::default();
            let flags = if known { TcpFlags::RST.with(TcpFlags::ACK) } else { TcpFlags::RST };
            self.emit(now, out, seq, flags, Bytes::new(), Cause::Reset);
        }
        if let Some(ack) = self.linux.stranger_reset.take() {
            self.emit_as_stranger(out, ack);
        }
        if out.len() < full
            && let Some(cause) = self.handshake.syn_pending.take()
        {
            self.send_syn(now, out, cause);
        }
        if out.len() < full && std::mem::take(&mut self.keep_alive.due) {
            // An old number: the peer answers, whatever it thinks of the rest (RFC 9293 §3.8.4).
            self.emit(now, out, self.snd.nxt - 1, TcpFlags::ACK, Bytes::new(), Cause::KeepAlive);
        }
        if out.len() < full {
            self.send_before_change(now, out);
            self.send_before_block(now, out);
            self.send_acks_of_parts(now, out, full);
        }
        if !self.is_open() {
            self.update_keep_alive(now);
            if out.len() < full {
                self.send_pure_ack(now, out);
            }
            return Transmit::Idle;
        }
        self.notice_empty_line(now);
        let before = self.data_segments_sent();
        self.set_pace();
        if out.len() < full && (std::mem::take(&mut self.linux.acks_syn_ack) || self.answer_goes_first()) {
            self.send_pure_ack(now, out);
        }
        let result = if self.sends_as_linux() {
            self.fill_linux(now, out, full)
        } else {
            self.fill_as_usual(now, out, full)
        };
        self.note_empty_line(now, result);
        self.note_sending(now, result, self.data_segments_sent() > before);
        // Also for what was written after the window had closed.
        self.update_persist(now);
        self.update_hold(now, result);
        self.tell_of_unsent();
        self.update_keep_alive(now);
        if self.persist.due && out.len() < full {
            self.probe_window(now, out);
        }
        if out.len() < full {
            self.send_pure_ack(now, out);
        }
        result
    }

    fn probe_window(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) {
        if !self.sends_as_linux() || !self.probe_with_data(now, out) {
            // An old number makes the peer answer with its window. RFC 9293 §3.8.6.1 leaves the form open;
            // with a byte of new data a peer that does take it would cut our segments at odd places, and the
            // byte would need a row.
            let seq = self.snd.una - 1;
            self.emit(now, out, seq, TcpFlags::ACK, Bytes::new(), Cause::WindowProbe);
        }
        self.persist.due = false;
    }

    /// Retransmissions, then new data.
    fn fill_as_usual(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, full: usize) -> Transmit {
        if self.flight.segments.is_empty() && !self.ack.probe_due && !self.snd.has_unsent() {
            return self.ran_out(); // who only receives asks for nothing more
        }
        while out.len() < full && self.send_retransmission(now, out) {}
        loop {
            if out.len() >= full {
                break Transmit::Sent(0);
            }
            if std::mem::take(&mut self.ack.probe_due) {
                self.send_ack_probe(now, out);
                continue;
            }
            match self.next_new_segment(now) {
                Ok(len) if !self.may_leave(now, len) => break Transmit::Blocked(Blocked::Pacing),
                Ok(len) if self.queue_takes(now, len) => self.send_new(now, out, len),
                Ok(_) => break Transmit::Blocked(Blocked::TransmitQueue),
                Err(None) => break self.ran_out(),
                Err(Some(why)) => break Transmit::Blocked(why),
            }
        }
    }

    /// Nothing waits to be sent, unless the pacer keeps a retransmission.
    fn ran_out(&self) -> Transmit {
        if self.pacer.deadline().is_some() { Transmit::Blocked(Blocked::Pacing) } else { Transmit::Idle }
    }

    /// True in the states in which data or FIN may be sent or be outstanding.
    pub(super) fn is_open(&self) -> bool {
        matches!(
            self.state,
            ConnectionState::Established
                | ConnectionState::CloseWait
                | ConnectionState::FinWait1
                | ConnectionState::Closing
                | ConnectionState::LastAck
        )
    }

    fn send_pure_ack(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) {
        if matches!(self.state, ConnectionState::Closed | ConnectionState::SynSent) {
            self.ack.due = None;
        } else if let Some(cause) = self.ack.due {
            self.emit(now, out, self.acceptable_number(), TcpFlags::ACK, Bytes::new(), cause);
        }
    }

    /// The number of a segment without data. Linux keeps it within a window that has shrunk, but for less
    /// than a unit of our scale.
    pub(super) fn acceptable_number(&self) -> Seq {
        let edge = self.snd.una + self.snd.wnd;
        if !self.snd.nxt.after(edge) || !self.config.is_linux() {
            return self.snd.nxt;
        }
        let slack = if self.snd.wscale > 0 || self.rcv.wscale > 0 { 1 << self.rcv.wscale } else { 0 };
        if self.snd.nxt.bytes_since(edge) >= slack { edge } else { self.snd.nxt }
    }

    fn send_syn(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, cause: Cause) {
        let flags = if self.state == ConnectionState::SynSent {
            TcpFlags::SYN.with(self.ecn.offer(cause == Cause::SynRetransmit))
        } else {
            TcpFlags::SYN.with(TcpFlags::ACK).with(self.ecn.answer())
        };
        self.snd.nxt = self.snd.iss + 1;
        self.handshake.syn_sent_at.get_or_insert(now);
        let number = self.flight.segments.begin_transmission();
        self.handshake.syn_number = number;
        if self.flight.rto_deadline.is_none_or(|d| d <= now) {
            self.flight.rto_deadline = Some(self.timeout_from(now));
        }
        self.emit(now, out, self.snd.iss, flags, Bytes::new(), cause);
        expect(out, number);
    }

    /// Sends one segment again, if recovery grants one that fits the peer's window.
    pub(super) fn send_retransmission(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) -> bool {
        let view = SendView {
            segments: &self.flight.segments,
            cwnd: self.flight.window.cwnd(),
            can_send_new: self.new_data_fits()
                && self.flight.recovery.may_send_new(&self.flight.segments, self.flight.window.cwnd()),
        };
        let Some(grant) = self.flight.recovery.next_segment(&view) else { return false };
        let several = self.begin_unit(&grant);
        let Some(&row) = self.flight.segments.row(grant.index) else { return false };
        let beyond = !row.seq.before(self.snd.una + self.snd.wnd) && grant.index != 0;
        if beyond {
            return false; // the peer has taken its window back
        }
        if self.flight.segments.waits_inside(grant.index) {
            return false; // it has yet to leave: a second copy would wait behind the first
        }
        if !self.may_leave(now, row.len) || !self.queue_takes(now, row.len) {
            return false;
        }
        if self.is_probing() && row.len > self.snd.mss + 1 {
            // Whatever recovery thinks of it, a probe is not sent again at its size.
            self.probe_failed(now, false);
            return true;
        }
        // A row that was acknowledged in part is sent from SND.UNA on.
        let seq = row.seq.later(self.snd.una);
        self.cut_at_edge(grant.index);
        let row = self.join_short(grant.index).unwrap_or(row);
        let pushed = several || self.flight.segments.tags(grant.index).any(Tags::PUSHED);
        let (fin, payload) = self.snd.stored(seq, row.end().bytes_since(seq));
        self.withdraw_request(now, grant.index);
        let number = self.flight.segments.begin_transmission();
        if self.flight.recovery.counts_as_retransmission() {
            let stamp = self.linux.stamp(now);
            self.flight.segments.mark_retransmitted(grant.index, stamp, self.snd.nxt);
        } else {
            self.flight.segments.mark_probed(grant.index, now);
        }
        self.flight.timed.cancel();
        if grant.index == 0 && !self.config.is_linux() {
            self.flight.rto_deadline = Some(self.timeout_from(now));
        }
        self.tell_sent(now, grant.index, false);
        let mut flags = if fin { TcpFlags::ACK.with(TcpFlags::FIN) } else { TcpFlags::ACK };
        if pushed {
            flags = flags.with(TcpFlags::PSH);
        }
        self.emit(now, out, seq, flags, payload, grant.cause);
        let first = self.linux.shared.is_none() && self.linux.in_unit(row.end());
        self.share_header(out, first, several || !self.linux.in_unit(row.end()));
        expect(out, number);
        true
    }

    /// Of a segment that lies in the peer's window in part Linux sends that part.
    fn cut_at_edge(&mut self, index: usize) {
        let edge = self.snd.una + self.snd.wnd;
        let Some(row) = self.flight.segments.row(index).copied() else { return };
        let payload_end =
            if self.snd.fin_seq.is_some_and(|f| row.end() == f + 1) { row.end() - 1 } else { row.end() };
        let from = row.seq.later(self.snd.una);
        if self.config.is_linux() && from.before(edge) && payload_end.after(edge) {
            self.flight.segments.split(index, edge.bytes_since(row.seq));
        }
    }

    /// A short segment takes those behind it along that fit (Linux: tcp_retrans_collapse).
    fn join_short(&mut self, index: usize) -> Option<SegmentRow> {
        if !self.config.is_linux() {
            return None;
        }
        let una = self.snd.una;
        let payload = |row: &SegmentRow, fin: Option<Seq>| {
            row.end().bytes_since(row.seq.later(una)) - u32::from(fin.is_some_and(|f| row.end() == f + 1))
        };
        let (edge, mss) = (self.snd.una + self.snd.wnd, self.mss_beside_sack());
        loop {
            let row = *self.flight.segments.row(index)?;
            let Some(next) = self.flight.segments.row(index + 1) else { return Some(row) };
            let len = payload(&row, self.snd.fin_seq) + payload(next, self.snd.fin_seq);
            let single = !self.flight.segments.tags(index + 1).any(Tags::JOINED)
                && !self.flight.segments.tags(index + 2).any(Tags::JOINED)
                && !self.linux.in_unit(row.end());
            let fits =
                single && payload(&row, self.snd.fin_seq) < mss && len <= mss && !next.end().after(edge);
            let (behind, before) = (self.flight.segments.len(), self.flight.segments.tags(index + 1));
            if !fits || before.any(Tags::SACKED) || self.flight.segments.tags(index).any(Tags::SACKED) {
                return Some(row);
            }
            self.flight.segments.join(index);
            if self.flight.segments.len() == behind {
                return Some(row);
            }
        }
    }

    /// Tells recovery and congestion control of a segment that is being sent.
    fn tell_sent(&mut self, now: Instant, index: usize, fresh: bool) {
        let sent = SentKind {
            now,
            index,
            fresh,
            timestamp: self.timestamp(now),
            snd_nxt: self.snd.nxt,
            srtt: self.flight.rto.srtt(),
            rto_deadline: self.flight.rto_deadline,
            rto: self.flight.rto.rto(),
        };
        self.flight.recovery.on_sent(&sent, &self.flight.segments);
        let sample = SentSample {
            now,
            in_flight: self.flight.segments.in_flight(),
            retransmission: !fresh,
            srtt: self.flight.rto.srtt(),
        };
        self.flight.cc.on_sent(&mut self.flight.window, &sample);
        let len = self.flight.segments.row(index).map_or(0, |r| r.len);
        self.pacer.on_sent(now, len);
    }

    /// New data is there, the peer's window has room for a segment of it, and Nagle's algorithm lets it go.
    pub(super) fn new_data_fits(&self) -> bool {
        self.fits(self.snd.unsent())
    }

    /// The same, when so many bytes are unsent.
    pub(super) fn fits(&self, unsent: u64) -> bool {
        let next = unsent.min(u64::from(self.snd.mss)) as u32;
        self.snd.fin_seq.is_none()
            && next > 0
            && next <= self.snd.usable_window()
            && !self.nagle_holds(next, unsent)
    }

    /// RFC 9293 §3.7.4: a segment of `len` of the `unsent` bytes has to wait while others are outstanding.
    fn nagle_holds(&self, len: u32, unsent: u64) -> bool {
        let last = self.snd.fin_queued && u64::from(len) == unsent;
        if len >= self.snd.mss || last {
            return false;
        }
        self.is_held(unsent) || (self.config.nagle && !self.flight.segments.is_empty())
    }

    /// Length of the next new segment (zero: a FIN alone), or why there is none.
    fn next_new_segment(&mut self, now: Instant) -> Result<u32, Option<Blocked>> {
        let unsent = self.snd.unsent();
        if self.snd.fin_seq.is_some() || (unsent == 0 && !self.snd.fin_queued) {
            return Err(None);
        }
        let outstanding = !self.flight.segments.is_empty();
        if !outstanding {
            self.restart_after_idle(now);
        }
        if !self.flight.recovery.may_send_new(&self.flight.segments, self.flight.window.cwnd()) {
            self.snd.limited_at = Some(self.snd.nxt);
            return Err(Some(Blocked::CongestionWindow));
        }
        let usable = self.snd.usable_window();
        if unsent == 0 {
            // A FIN has a sequence number, and a place in the window as well.
            return if usable > 0 { Ok(0) } else { Err(Some(Blocked::ReceiveWindow)) };
        }
        if let Some(len) = self.probe_len(now, unsent, usable) {
            return Ok(len);
        }
        let mut len = unsent.min(u64::from(self.snd.mss)) as u32;
        if len > usable {
            // Silly-window avoidance (RFC 9293 §3.8.6.2.1): wait for room; if nothing would ever make any,
            // half of the largest window is enough, and when the persist timer has fired, any.
            if outstanding || usable == 0 || (usable < self.snd.max_wnd / 2 && !self.persist.due) {
                return Err(Some(Blocked::ReceiveWindow));
            }
            len = usable;
        }
        if self.nagle_holds(len, unsent) {
            return Err(Some(Blocked::Nagle));
        }
        Ok(len)
    }

    fn send_new(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>, len: u32) {
        let (moment, mark) = self.request_for(now, len);
        // The option comes off the segment that carries it, not on top of it (RFC 6691 §2).
        let len = mark.map_or(len, |m| len.min(self.snd.mss - m.cost()));
        let seq = self.snd.nxt;
        let start = self.snd.una_offset + u64::from(seq.bytes_since(self.snd.una));
        let size = self.snd.mss;
        let most = self.most_at_once(start, len);
        let number = self.flight.segments.begin_transmission();
        let mut flags = self.enqueue(now, len);
        self.note_request(now, &moment, mark);
        self.book_new(now);
        // Each segment of a super-segment is booked as if it left alone: recovery, congestion control and the
        // pacer need not know that there are such.
        let run = self.certain_run(len, most);
        self.book_run(now, len, run);
        let (mut total, mut next) = (len * (1 + run), len);
        while next == size && total < most {
            match self.next_new_segment(now) {
                Ok(more) if more > 0 && more <= size && total + more <= most && self.may_leave(now, more) => {
                    flags = self.enqueue(now, more);
                    self.book_new(now);
                    (total, next) = (total + more, more);
                }
                _ => break,
            }
        }
        let payload = self.snd.buffer.slice(start, total as usize);
        let cause = match len {
            0 => Cause::Fin,
            _ if len > self.snd.mss => {
                self.probe_sent(seq, len);
                Cause::MtuProbe
            }
            _ => Cause::NewData,
        };
        self.ack.mark = mark.filter(|m| *m != Mark::Probe);
        self.emit(now, out, seq, flags, payload, cause);
        expect(out, number);
        self.ack.probe_due = mark == Some(Mark::Probe);
        if total > len
            && let Some(sent) = out.last_mut()
        {
            sent.segment.segment_size = len as u16;
            let others = u64::from(sent.segment.segments() - 1);
            self.counters.sent[cause as usize] += others;
            self.counters.data_segments_sent += others;
        }
    }

    /// Segments of `len` that may follow the one that was just booked whatever each of them changes, up to
    /// `most` bytes with it: full ones, and never the last of the data.
    fn certain_run(&self, len: u32, most: u32) -> u32 {
        if len != self.snd.mss || most < 2 * len || self.pacer.paces() || !self.path.is_settled(len) {
            return 0;
        }
        let bytes =
            u64::from((most - len).min(self.snd.usable_window())).min(self.snd.unsent().saturating_sub(1));
        ((bytes / u64::from(len)) as u32)
            .min(self.flight.recovery.may_send_run(&self.flight.segments, self.flight.window.cwnd()))
    }

    /// Puts `count` new segments of `len` into the retransmission queue, and lets them leave.
    fn book_run(&mut self, now: Instant, len: u32, count: u32) {
        if count > 0 {
            self.flight.segments.push_run(self.snd.nxt, len, count, now);
            self.snd.nxt += len * count;
            self.book_new(now);
        }
    }

    /// Puts `len` new bytes into the retransmission queue, with the FIN if it is their turn. Returns their
    /// flags.
    pub(super) fn enqueue(&mut self, now: Instant, len: u32) -> TcpFlags {
        let seq = self.snd.nxt;
        let last = u64::from(len) == self.snd.unsent();
        let mut flags = TcpFlags::ACK;
        if last && len > 0 && !self.config.is_linux() {
            flags = flags.with(TcpFlags::PSH);
        }
        let mut sequence_length = len;
        // A FIN behind data has a place in the window, too, or waits for one (RFC 9293 §3.4).
        let has_room = len == 0 || self.config.is_linux() || len < self.snd.usable_window();
        if last && self.snd.fin_queued && has_room {
            flags = flags.with(TcpFlags::FIN);
            self.snd.fin_seq = Some(seq + len);
            sequence_length += 1;
            self.state = match self.state {
                ConnectionState::CloseWait => ConnectionState::LastAck,
                _ => ConnectionState::FinWait1,
            };
        }
        if self.flight.segments.is_empty() {
            let idle = now.since(self.snd.last_sent);
            self.flight.cc.on_event(now, &mut self.flight.window, cc::CongestionEvent::Restart(idle));
        }
        self.flight.segments.push(seq, sequence_length, now);
        self.flight.timed.on_sent(seq, now);
        self.snd.nxt += sequence_length;
        flags
    }

    /// The row that was just put into the queue leaves.
    pub(super) fn book_new(&mut self, now: Instant) {
        if self.config.is_linux() {
            self.tell_sent(now, self.flight.segments.len() - 1, true);
            return;
        }
        if self.flight.rto_deadline.is_none() {
            self.flight.rto_deadline = Some(self.timeout_from(now));
        }
        self.tell_sent(now, self.flight.segments.len() - 1, true);
        self.validate_window(now);
    }

    /// Most bytes that may leave under one header with the new segment of `len` bytes at stream offset
    /// `start`.
    ///
    /// No more than that segment where a header says something of it alone: requests for ACKs and answers to
    /// them, urgent data, CWR, and the counters of accurate ECN, whose bits a device that cuts would change.
    fn most_at_once(&mut self, start: u64, len: u32) -> u32 {
        let limit = self.config.super_segment.min(MAX_SUPER_SEGMENT);
        let alone = len != self.snd.mss
            || limit < 2 * len
            || self.asks_queue()
            || self.ack.requester.asks()
            || self.ack.requester.answers() != RequestForm::None
            || self.urgent_pointer(self.snd.nxt).is_some()
            || !self.ecn.may_be_cut();
        if alone { len } else { self.snd.buffer.run(start, len, limit / len * len) }
    }
}

/// What was just put out is sent again until it is acknowledged.
pub(super) fn expect(out: &mut [OutgoingSegment], number: u32) {
    if let Some(sent) = out.last_mut() {
        sent.number = Some(number);
    }
}
