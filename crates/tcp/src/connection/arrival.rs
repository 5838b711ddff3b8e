//! A segment arrives (RFC 9293 §3.10.7).

use super::log::LogEntry;
use super::{CloseReason, Connection, ConnectionEvent, ConnectionState};
use crate::ack::{DataArrival, Decision};
use crate::cc;
use crate::receive::ArrivedData;
use crate::rto::RttSample;
use crate::segment::Segment;
use farpace_events::{Cause, RecordDirection, RecoveryState};
use farpace_units::{ByteCount, Instant, Packets, Seq, Span};
use farpace_wire::tcp::{TcpFlags, TcpOptions};

/// A SYN is repeated so soon after an answer to another one (Linux: TCP_TIMEOUT_MIN, two ticks of 4 ms).
const SOON: Span = Span::from_millis(8);

/// Bytes of the options that segments with data have, as they stand in most headers.
fn options_len(options: &TcpOptions) -> u32 {
    let stamps = if options.timestamps.is_some() { 12 } else { 0 };
    let blocks = options.sack.len() as u32;
    stamps + if blocks > 0 { 4 + 8 * blocks } else { 0 }
}

impl Connection {
    /// A segment has arrived.
    pub fn on_segment(&mut self, now: Instant, segment: Segment) {
        let (count, data) = (u64::from(segment.segments()), !segment.payload.is_empty());
        self.counters.segments_received += count;
        if data {
            self.counters.data_segments_received += count;
        }
        if self.config.is_linux() {
            self.linux.may_idle(now);
        } else {
            self.end_more();
        }
        match self.state {
            ConnectionState::Closed => {}
            ConnectionState::SynSent => self.on_segment_syn_sent(now, &segment),
            ConnectionState::TimeWait => self.on_segment_time_wait(now, &segment),
            _ => self.on_segment_synchronized(now, segment),
        }
        self.note_causes(now);
        #[cfg(debug_assertions)]
        debug_assert_eq!(self.flight.segments.check_in_turn(), Ok(()));
    }

    /// The program wants to hear of a connection when there is something to read: an ACK alone does not open
    /// it, until the SYN-ACK was repeated often enough.
    fn defers(&mut self, segment: &Segment) -> bool {
        let bare = segment.payload.is_empty() && !segment.header.flags.contains(TcpFlags::FIN);
        let defers = bare && self.flight.timeouts_in_row < self.config.tuning.defer_accept;
        self.handshake.deferred |= defers;
        defers
    }

    /// §3.10.7.3
    fn on_segment_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let h = &segment.header;
        let has_ack = h.flags.contains(TcpFlags::ACK);
        if has_ack && (h.ack.before_eq(self.snd.iss) || h.ack.after(self.snd.nxt)) {
            if !h.flags.contains(TcpFlags::RST) {
                self.reset_pending = Some((h.ack, Seq::default()));
            }
            if self.config.is_linux() && self.flight.timeouts_in_row == 0 {
                // It may be what is left of an older connection, which our reset ends.
                self.flight.rto_deadline = Some(now + SOON);
            }
            return;
        }
        if h.flags.contains(TcpFlags::RST) {
            if has_ack {
                self.finish(CloseReason::Reset);
            }
            return;
        }
        if !h.flags.contains(TcpFlags::SYN) {
            return;
        }
        self.heard(now, false);
        self.learn_from_syn(now, segment);
        if has_ack {
            self.ecn.on_syn_ack(h.flags, segment.ecn);
            self.snd.una = h.ack;
            self.established(now, segment);
            self.ack.due = Some(Cause::AckNow);
            self.linux.acks_syn_ack = self.config.is_linux();
        } else {
            // Simultaneous open: answer with a SYN-ACK.
            self.ecn.on_syn(h.flags, segment.ecn);
            self.state = ConnectionState::SynReceived;
            // Linux counts it as sent for the first time.
            let linux = self.config.is_linux();
            self.handshake.syn_pending = Some(if linux { Cause::Syn } else { Cause::SynRetransmit });
            self.linux.crossed = true;
            if linux {
                self.handshake.syn_sent_at = None;
            }
        }
        self.note_received(now, segment);
    }

    /// `by` completes the handshake.
    fn established(&mut self, now: Instant, by: &Segment) {
        self.state = ConnectionState::Established;
        let resets = self.counters.sent[Cause::Reset as usize];
        self.statistics.established(now, self.all_sent(), resets);
        self.flight.rto_deadline = None;
        self.progress(now);
        self.handshake.syn_pending = None;
        let rtt = self
            .handshake
            .syn_sent_at
            .filter(|_| !self.handshake.syn_retransmitted)
            .map(|sent| now.since(sent));
        self.flight.cc.on_event(
            now,
            &mut self.flight.window,
            cc::CongestionEvent::Established(rtt.unwrap_or_default()),
        );
        if self.config.is_linux() {
            self.linux.looks_again();
            if !self.opened_actively() {
                self.ack.challenged_at = None; // what was answered before is another matter
                // The SYN, and what completes the handshake: others came before there was a connection.
                self.counters.segments_received = 1 + u64::from(by.segments());
            }
            self.established_as_linux(now, rtt, by);
            self.tell(ConnectionEvent::Connected);
            self.tell(ConnectionEvent::Writable);
            return;
        }
        match (self.handshake.syn_sent_at, rtt) {
            (Some(_), Some(rtt)) => {
                self.ack.answering.on_handshake(rtt);
                self.handshake.rtt = Some(rtt);
                self.rcv.window.rtt().on_handshake(rtt);
                let (snd_una, snd_nxt) = (self.snd.una, self.snd.nxt);
                self.flight.rto.sample(&RttSample { now, rtt, undelayed: None, snd_una, snd_nxt });
            }
            (Some(_), None) => {
                self.flight.rto.restart_after_syn_timeout();
                if !self.config.quirks.keeps_window_after_syn_timeout {
                    self.flight.window.set_cwnd(Packets::new(1)); // RFC 5681 §3.1, RFC 6928 §2
                }
            }
            (None, _) => {} // a cookie came back: nothing was measured, nothing lost
        }
        self.tune_send_buffer();
        self.tell(ConnectionEvent::Connected);
        self.tell(ConnectionEvent::Writable);
    }

    /// §3.10.7.4, with the checks of RFC 7323 (PAWS) and RFC 5961 (challenge ACKs) in their places.
    fn on_segment_synchronized(&mut self, now: Instant, mut segment: Segment) {
        let flags = segment.header.flags;
        let reset = flags.contains(TcpFlags::RST);
        if !reset && self.ts.enabled && segment.header.options.timestamps.is_none() && !self.config.is_linux()
        {
            // RFC 7323 §3.2: once agreed on, every segment has them; one without is dropped in silence. Linux
            // takes it.
            self.counters.unacceptable += 1;
            return;
        }
        if self.state == ConnectionState::SynReceived && self.answers_wrongly(&segment) {
            if !reset {
                self.reset_pending = Some((segment.header.ack, Seq::default()));
            }
            return;
        }
        if self.state == ConnectionState::FinWait2
            && self.config.is_linux()
            && self.is_orphan()
            && self.is_settled_in_fin_wait_2(now, &segment)
        {
            return;
        }
        let repeats = flags.contains(TcpFlags::SYN)
            && !flags.contains(TcpFlags::ACK)
            && segment.header.seq == self.rcv.irs;
        if self.is_request() && !repeats && self.echoes_wrongly(&segment) {
            self.on_unacceptable(now, &segment, reset);
            return;
        }
        self.read_request(&segment);
        self.ts.note_echo(&segment);
        if reset && self.config.is_linux() && self.resets_after_fin(&segment) {
            self.finish(CloseReason::Reset);
            return;
        }
        if !self.acceptable(&segment)
            || (!reset && self.ts.is_old(now, self.flight.rto.clock().tick(), &segment))
        {
            self.on_unacceptable(now, &segment, reset);
            return;
        }
        if reset {
            // RFC 5961 §3.2: only the exact number resets; anything else in the window is challenged.
            // Linux also takes the end of what the peer knows to have arrived.
            let known = if self.config.is_linux() { self.rcv.sack_blocks.end() } else { None };
            if segment.header.seq == self.rcv.nxt || known == Some(segment.header.seq) || self.is_request() {
                self.finish(CloseReason::Reset);
            } else {
                self.challenge(now, &segment);
            }
            return;
        }
        let mut again = false;
        if flags.contains(TcpFlags::SYN) {
            // RFC 5961 §4.2. In SYN-RECEIVED a repeated SYN means that our SYN-ACK was lost, and a SYN-ACK
            // that the peer has opened at the same time: what it acknowledges is processed below, the SYN is
            // old.
            match self.state {
                ConnectionState::SynReceived if segment.header.seq == self.rcv.irs => {
                    // Of a whole connection Linux takes the SYN-ACK alone for what answers the SYN that
                    // crossed it.
                    let answers = flags.contains(TcpFlags::ACK)
                        && segment.header.ack == self.snd.nxt
                        && segment.sequence_length() == 1;
                    if self.config.is_linux() && self.opened_actively() && !answers {
                        self.challenge(now, &segment);
                        return;
                    }
                    if !flags.contains(TcpFlags::ACK) {
                        if self.config.is_linux() {
                            if !self.ack.may_answer(now) {
                                return;
                            }
                            self.flight.rto_deadline = Some(self.timeout_from(now));
                        }
                        if !self.config.is_linux() && !self.ecn.on_syn_again(flags, segment.ecn) {
                            self.finish(CloseReason::Reset);
                            self.reset_pending = Some((self.snd.nxt, self.rcv.nxt));
                            return;
                        }
                        self.handshake.syn_pending = Some(Cause::SynRetransmit);
                        self.handshake.syn_retransmitted = true;
                        return;
                    }
                    again = true;
                }
                ConnectionState::SynReceived if self.is_request() => {
                    self.refuse_as_stranger(&segment);
                    return;
                }
                _ => {
                    self.challenge(now, &segment);
                    return;
                }
            }
        }
        if !flags.contains(TcpFlags::ACK)
            && !self.ack.is_bare_request(&segment.header, !segment.payload.is_empty())
        {
            self.counters.unacceptable += 1;
            return;
        }
        let opening = self.state == ConnectionState::SynReceived;
        if opening {
            let ack = segment.header.ack;
            if ack.before_eq(self.snd.iss) || ack.after(self.snd.nxt) {
                self.reset_pending = Some((ack, Seq::default()));
                return;
            }
            if self.defers(&segment) {
                return;
            }
            self.snd.una = self.snd.iss + 1;
            self.established(now, &segment);
        }
        let predicted = self.is_predicted(&segment);
        if self.config.is_linux()
            && self.state == ConnectionState::Closing
            && segment.header.ack == self.snd.nxt
        {
            self.ts.update(now, self.ack.last_sent, &segment); // what is left of the connection goes on with it
        }
        let prior_snd_una = self.snd.una;
        let established = self.state == ConnectionState::Established && !opening;
        if !self.on_acknowledgment(now, &segment, opening) {
            return;
        }
        // Not before: a segment that acknowledges what was never sent must not set the clock either. In Linux
        // what is older than the last acknowledgment does not, unless it takes the fast path.
        let sets_clock = match (self.config.is_linux(), self.linux.fast) {
            (true, true) => self.rcv.nxt == self.ack.last_sent,
            (true, false) => !segment.header.ack.before(prior_snd_una),
            (false, _) => true,
        };
        if sets_clock {
            self.ts.update(now, self.ack.last_sent, &segment);
        }
        if established && self.config.is_linux() {
            self.time_echo(now, segment.payload.len());
        }
        self.ack.read_rate(&segment);
        if again {
            self.ack.due = Some(Cause::AckNow);
            if self.config.is_linux() {
                // To Linux it is data that has come before.
                if self.sack {
                    self.rcv.sack_blocks.set_duplicate(self.rcv.irs, self.rcv.nxt);
                }
                let arrival = self.data_arrival(now, &segment, true);
                self.decide_ack(&arrival);
            }
            // The SYN has the number before that of the first byte (RFC 9293 §3.4).
            segment.header.seq += 1;
        }
        self.on_urgent(flags, segment.header.seq, segment.header.urgent);
        let waits = self.ack.deadline.is_some() || self.ack.due.is_some();
        let unacknowledged = waits.then_some(self.rcv.nxt);
        if self.ecn.on_segment(flags, segment.ecn, !segment.payload.is_empty(), unacknowledged) {
            self.ack.due.get_or_insert(Cause::AckNow);
        }
        let others = segment.segments() - 1;
        if others > 0 && self.ecn.on_coalesced(others, segment.ecn) {
            self.ack.due.get_or_insert(Cause::AckNow);
        }
        self.note_received(now, &segment);
        self.note_causes(now);
        let fin = flags.contains(TcpFlags::FIN);
        let shut = self.rcv.adv.before_eq(self.rcv.nxt) && !self.config.is_linux();
        if shut && !segment.payload.is_empty() {
            // A probe of a window that is closed. A FIN alone needs no room.
            self.counters.unacceptable += 1;
            self.answer(now, &segment, true);
        } else if fin || !segment.payload.is_empty() {
            self.on_text(now, segment, fin);
        } else if self.ack.deadline.is_some()
            && !predicted
            && self.ack.policy.on_other(now, self.flight.rto.srtt())
        {
            self.ack.due.get_or_insert(Cause::AckDelayed);
        }
    }

    /// What Linux expects of a segment, and takes without a closer look: it is next, tells no window, and has
    /// no other flags or options than all have (header prediction).
    pub(super) fn is_predicted(&self, segment: &Segment) -> bool {
        let h = &segment.header;
        let plain = TcpFlags::ACK.with(TcpFlags::PSH);
        self.state == ConnectionState::Established
            && h.flags.with(plain) == plain
            && h.seq == self.rcv.nxt
            && u32::from(h.window) << self.snd.wscale == self.snd.wnd
            && h.options.sack.is_empty()
            && h.options.timestamps.is_some() == self.ts.enabled
            && !self.rcv.sack_blocks.any()
            && !self.rcv.reassembly.has_hole()
    }

    /// The answer to our SYN-ACK echoes a timestamp that no SYN-ACK had (Linux: tcp_check_req).
    fn echoes_wrongly(&self, segment: &Segment) -> bool {
        let Some((first, last)) = self.linux.syn_stamps.filter(|_| self.ts.enabled) else { return false };
        let echo = segment.header.options.timestamps.map_or(0, |t| t.echo);
        echo != 0 && echo.wrapping_sub(first) > last.wrapping_sub(first)
    }

    /// A connection that somebody else opens, and that Linux keeps no more of than the SYN.
    pub(super) fn is_request(&self) -> bool {
        self.config.is_linux() && self.state == ConnectionState::SynReceived && !self.opened_actively()
    }

    /// Ends the connection with a reset like that of a host which does not know it.
    pub(super) fn refuse_as_stranger(&mut self, segment: &Segment) {
        self.finish(CloseReason::Reset);
        if segment.header.flags.contains(TcpFlags::ACK) {
            self.reset_pending = Some((segment.header.ack, Seq::default()));
        } else {
            self.linux.stranger_reset = Some(segment.header.seq + segment.sequence_length());
        }
    }

    /// Payload and FIN of an acceptable segment.
    fn on_text(&mut self, now: Instant, segment: Segment, fin: bool) {
        let mut arrival = self.data_arrival(now, &segment, false);
        let count = u64::from(segment.segments());
        let (seq, ack, mut data) = (segment.header.seq, segment.header.ack, segment.payload);
        let mut fin_at = fin.then(|| seq + data.len() as u32);
        if !matches!(
            self.state,
            ConnectionState::Established | ConnectionState::FinWait1 | ConnectionState::FinWait2
        ) {
            // The peer has closed already; only its FIN may come again.
            if self.config.is_linux() {
                let end = seq + data.len() as u32;
                if seq.before(self.rcv.nxt) && end.after(self.rcv.nxt) {
                    self.refuse_data(ack);
                } else if seq.before(self.rcv.nxt) {
                    if self.sack {
                        self.rcv.sack_blocks.set_duplicate(seq, fin_at.map_or(end, |at| at + 1));
                    }
                    arrival.duplicate = true;
                    self.decide_ack(&arrival);
                }
                return;
            }
            self.ack.due = Some(Cause::AckUnacceptable);
            return;
        }
        let closed =
            self.rcv.read_shutdown || (self.rcv.shut && self.snd.fin_queued && self.config.is_linux());
        if closed && !data.is_empty() && (seq + data.len() as u32).after(self.rcv.nxt) {
            // RFC 9293 §3.6.1: data that nobody will read. The peer should know.
            if self.config.is_linux() {
                self.refuse_data(ack);
            } else {
                self.abort();
            }
            return;
        }
        // Cut to the window on the right; what lies to the left is a duplicate.
        let room = self.rcv.adv.bytes_since(seq) as usize;
        if data.len() > room {
            data.truncate(room);
            fin_at = None;
        }
        if self.config.is_linux() {
            self.rcv.sack_blocks.forget_duplicate(); // it is told of the last segment with data alone
        }
        let turn = seq.before_eq(self.rcv.nxt) && (seq + data.len() as u32).after(self.rcv.nxt);
        if !self.config.is_linux() {
            self.time_echo(now, data.len());
        }
        self.time_window(now, turn);
        let had_hole = self.rcv.reassembly.has_hole();
        let (mut disorder, mut duplicate, mut ahead_of_turn) = (had_hole, false, false);
        let len = data.len();
        let (place, mut ahead_by, mut behind_by) = (self.rcv.reassembly.next(), 0, 0);
        if !data.is_empty() {
            let behind = self.rcv.nxt.bytes_since(seq) as usize;
            if behind > 0 && self.sack {
                self.rcv.sack_blocks.set_duplicate(seq, (seq + data.len() as u32).earlier(self.rcv.nxt));
                // What is new of it counts as in order, in Linux.
                duplicate = !self.config.is_linux() || behind >= data.len();
            }
            let fresh = data.split_off(behind.min(data.len()));
            let ahead = (seq + behind as u32).bytes_since(self.rcv.nxt);
            let before = self.rcv.reassembly.next();
            (ahead_by, behind_by) = (ahead, behind as u64);
            if !fresh.is_empty() && self.lacks_memory(fresh.len(), ahead == 0) {
                return; // neither it nor its FIN has come
            }
            match self.rcv.reassembly.insert(before + u64::from(ahead), fresh) {
                ArrivedData::InOrder => {
                    if self.sack && self.config.is_linux() {
                        // What it has in common with what waited (tcp_ofo_queue).
                        self.rcv.sack_blocks.set_filled(seq + len as u32);
                    }
                    let moved = self.rcv.reassembly.next() - before;
                    self.rcv.nxt += moved as u32;
                    self.counters.bytes_received += ByteCount::new(moved);
                    self.rcv.sack_blocks.advance(self.rcv.nxt);
                    self.keep_alive.data_came(now);
                    self.linux.predicts = true;
                    self.tell(ConnectionEvent::Readable);
                }
                ArrivedData::OutOfOrder => {
                    disorder = true;
                    ahead_of_turn = true;
                    self.counters.out_of_order += count;
                    if self.sack {
                        if self.config.is_linux() {
                            self.rcv.sack_blocks.set_overlap(seq, seq + len as u32);
                        }
                        self.add_block(seq, fin_at.map_or(seq + len as u32, |at| at + 1));
                    }
                }
                ArrivedData::Duplicate => {
                    duplicate = true;
                    if self.config.is_linux() && ahead > 0 {
                        ahead_of_turn = true;
                        self.counters.out_of_order += count;
                        if self.sack {
                            self.add_block(seq, seq + len as u32);
                        }
                    }
                    self.counters.duplicates += count;
                    if self.sack {
                        let known = fin_at.filter(|at| self.rcv.peer_fin == Some(*at));
                        self.rcv.sack_blocks.set_duplicate(seq, known.map_or(seq + len as u32, |at| at + 1));
                    }
                }
                ArrivedData::Refused => disorder = true,
            }
        }
        if let Some(at) = fin_at {
            // A FIN ahead of its turn is kept, so it is told of, too: without it a sender would take its last
            // segment, data and FIN, for lost.
            if len == 0 && at.after(self.rcv.nxt) {
                if self.sack {
                    self.add_block(at, at + 1);
                }
                if self.config.is_linux() {
                    ahead_of_turn = true;
                    self.counters.out_of_order += 1;
                }
            }
            // The first FIN is where the data ends. Another one ahead of it was sent by somebody else.
            let first = self.rcv.peer_fin.filter(|first| !first.before(self.rcv.nxt));
            self.rcv.peer_fin = Some(first.map_or(at, |first| first.earlier(at)));
        }
        let early = ahead_of_turn && !duplicate;
        if len > 0 && self.rcv.memory.is_some() {
            if !duplicate {
                let end = place + u64::from(ahead_by) + (len as u64).saturating_sub(behind_by);
                self.charge(&mut arrival, end, len, early);
            }
        } else if len > 0 && !duplicate {
            arrival.opens = self.rcv.window.on_data(now, len as u32, self.window_unit());
            self.rcv.reassembly.set_buffer(ByteCount::new(u64::from(self.rcv.window.size())));
        }
        arrival.len = len as u32;
        arrival.segment = arrival.segment.min(arrival.len);
        (arrival.disorder, arrival.duplicate) = (disorder, duplicate);
        arrival.unacknowledged = self.rcv.nxt.bytes_since(self.ack.last_sent);
        (arrival.next, arrival.holes) = (self.rcv.nxt, self.rcv.reassembly.has_hole());
        if self.rcv.peer_fin == Some(self.rcv.nxt) {
            self.on_peer_fin(&mut arrival);
            return;
        }
        arrival.disorder |= fin_at.is_some();
        if ahead_of_turn && self.config.is_linux() {
            // It says nothing of the sender's pace.
            let decision = self.ack.policy.on_early(&arrival);
            self.ack.obey(decision);
            return;
        }
        self.decide_ack(&arrival);
    }

    /// Ends the connection; the reset answers the segment that brought the data.
    pub(super) fn refuse_data(&mut self, ack: Seq) {
        self.finish(CloseReason::Reset);
        self.reset_pending = Some((ack, Seq::default()));
    }

    /// What the policy hears of a segment that is all there already or, so far, in order.
    #[inline(always)]
    pub(super) fn data_arrival(&self, now: Instant, segment: &Segment, duplicate: bool) -> DataArrival {
        let len = segment.payload.len() as u32;
        let options = self.ts.option_bytes();
        // What is longer than we allow must have been put together on the way, by a device that does not say
        // of what.
        let longest = u32::from(self.config.mss).saturating_sub(options);
        let segment_size = match segment.segment_size {
            0 if self.config.is_linux() => len, // it takes what comes for one segment
            0 => longest,
            size => u32::from(size),
        };
        let arrival = DataArrival {
            now,
            len,
            segment: len.min(segment_size),
            disorder: false,
            duplicate,
            unacknowledged: self.rcv.nxt.bytes_since(self.ack.last_sent),
            ..DataArrival::default()
        };
        if !self.ack.policy.looks_closely() {
            return arrival;
        }
        let flags = segment.header.flags;
        DataArrival {
            most: longest,
            all_options: options_len(&segment.header.options),
            usual_options: options,
            push: flags.contains(TcpFlags::PSH),
            ends: flags.intersects(TcpFlags::PSH.with(TcpFlags::FIN).with(TcpFlags::URG)),
            window: self.rcv.memory.as_ref().map_or(self.rcv.window.size(), |memory| memory.window()),
            steady: true,
            opens: false,
            mss: self.snd.mss,
            rto: self.flight.rto.rto(),
            srtt: self.flight.rto.srtt(),
            receive_rtt: self.rcv.window.rtt_estimate(),
            sack: self.sack,
            ..arrival
        }
    }

    pub(super) fn decide_ack(&mut self, arrival: &DataArrival) {
        let decision = self.ack.policy.on_data(arrival);
        self.ack.joined |= arrival.len > arrival.segment;
        // What is out of order is answered at once anyway, and not for the segment that asked.
        if !arrival.disorder && self.answer_request(arrival.now) {
            self.ack.due = Some(Cause::AckRequested);
            return;
        }
        self.ack.obey(decision);
    }

    /// The peer's FIN is next in order.
    fn on_peer_fin(&mut self, arrival: &mut DataArrival) {
        let now = arrival.now;
        if self.config.is_linux() {
            // Nothing can come behind it, and what was to be told of duplicates is forgotten.
            self.rcv.sack_blocks.forget_duplicate();
            self.rcv.sack_blocks.forget_from(self.rcv.nxt);
            if let Some(memory) = &mut self.rcv.memory {
                memory.forget_early();
            }
        }
        self.rcv.nxt += 1;
        arrival.unacknowledged += 1;
        // Only while the program may still close is there an answer to wait for.
        let closes = self.config.is_linux() && self.snd.fin_queued;
        let waits =
            self.state == ConnectionState::Established && !arrival.disorder && !arrival.duplicate && !closes;
        let decision = if waits { self.ack.policy.on_fin(arrival) } else { Decision::Now(Cause::AckNow) };
        if self.answer_request(now) {
            self.ack.due = Some(Cause::AckRequested);
        } else {
            self.ack.obey(decision);
        }
        if self.state == ConnectionState::Established && self.snd.fin_queued {
            self.statistics.close_first();
        }
        self.state = match self.state {
            ConnectionState::Established => ConnectionState::CloseWait,
            ConnectionState::FinWait1 => ConnectionState::Closing,
            ConnectionState::FinWait2 => {
                self.enter_time_wait(now);
                ConnectionState::TimeWait
            }
            other => other,
        };
        self.tell(ConnectionEvent::PeerClosed);
    }

    /// Whatever is to be sent may wait until the other segments that arrived with the last one have been
    /// taken, too: one call of [`poll_transmit`](Connection::poll_transmit) at the end is enough, with one
    /// ACK for all of them.
    ///
    /// Not so while there is something to repair. A peer counts duplicate ACKs (RFC 5681 §3.2), so each
    /// segment out of order gets its own, or each super-segment, as in Linux; and recovery is asked after
    /// every ACK for what it grants. Nor while a connection opens or has ended.
    pub fn may_wait(&self) -> bool {
        let open = matches!(
            self.state,
            ConnectionState::Established
                | ConnectionState::CloseWait
                | ConnectionState::FinWait1
                | ConnectionState::FinWait2
                | ConnectionState::Closing
                | ConnectionState::LastAck
        );
        open && matches!(self.ack.due, None | Some(Cause::AckNow | Cause::AckWindow))
            && !self.rcv.sack_blocks.any()
            && self.reset_pending.is_none()
            && !self.ecn.change_pending()
            && self.ack.answering.owed.is_none()
            && self.flight.recovery.state() == RecoveryState::Open
    }

    pub(super) fn note_received(&mut self, now: Instant, segment: &Segment) {
        if self.log.is_none() {
            return;
        }
        let entry = LogEntry {
            direction: RecordDirection::Received,
            seq: segment.header.seq,
            len: segment.payload.len(),
            ack: segment.header.ack,
            sack: &segment.header.options.sack,
            cause: None,
        };
        self.note(now, &entry);
    }
}
