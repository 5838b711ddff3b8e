//! Requests for acknowledgments, and answers to them, in the headers of a connection (CDL, TARR).

use super::{AckState, Connection};
use crate::ack_request::{Mark, Moment, RequestAnswer, RequestForm};
use crate::recovery::SendView;
use crate::segment::{OutgoingSegment, Segment};
use crate::segments::Tags;
use bytes::Bytes;
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Span};
use farpace_wire::tcp::{self, AckDelay, SackBlocks, Tarr, TcpFlags, TcpHeader};

/// Offers in this many SYNs; then the path may be one that drops SYNs with options it does not know.
const MAX_OFFERS: u64 = 2;
/// Bytes of a header that a request and an answer take together.
const ANSWER_ROOM: u64 = 12;

/// What an ACK tells of requests, for the input of recovery.
#[derive(Debug, Default)]
pub(super) struct RequestReport {
    /// The round trip of a segment that asked.
    pub undelayed: Option<Span>,
    /// The ACK is the answer to a probe, and no duplicate.
    pub answers_probe: bool,
    /// The SACK blocks without the one that speaks of the probe; none: as they are.
    pub sack: Option<SackBlocks>,
}

impl Connection {
    // What we ask

    /// Options of our SYN or SYN-ACK.
    pub(super) fn ack_control_of_syn(&self, offer: bool) -> tcp::AckControl {
        if self.counters.timeouts >= MAX_OFFERS {
            tcp::AckControl::default()
        } else if offer {
            self.ack.requester.offer()
        } else {
            self.ack.requester.reply()
        }
    }

    /// Whether a new segment of at most `len` bytes asks for an ACK at once, and how.
    #[inline]
    pub(super) fn request_for(&self, now: Instant, len: u32) -> (Moment, Option<Mark>) {
        if !self.ack.requester.asks() || len == 0 || len > self.snd.mss {
            return (Moment::default(), None);
        }
        self.decide_request(now, len)
    }

    fn decide_request(&self, now: Instant, len: u32) -> (Moment, Option<Mark>) {
        let after = self.snd.unsent() - u64::from(len);
        let next = after.min(u64::from(self.snd.mss)) as u32;
        let in_flight = self.flight.recovery.in_flight(&self.flight.segments) + Packets::new(1);
        let calm = self.flight.recovery.state() <= RecoveryState::Disorder;
        let moment = Moment {
            timed: self.flight.timed.is_free(),
            calm,
            slow_start: calm && self.flight.window.in_slow_start(),
            fills_window: after > 0
                && (in_flight >= self.flight.window.cwnd() || self.snd.usable_window() < len + next),
            last: after == 0,
            first: self.flight.segments.is_empty(),
            probing: self.flight.cc.measures_empty_path(),
            fin: after == 0 && self.snd.fin_queued,
        };
        (moment, self.ack.requester.mark(now, &moment, self.flight.rto.srtt()))
    }

    /// New data has been put into the retransmission queue, with or without a request.
    #[inline]
    pub(super) fn note_request(&mut self, now: Instant, moment: &Moment, mark: Option<Mark>) {
        if self.ack.requester.asks() {
            self.counters.asked += u64::from(mark.is_some());
            let timestamp = self.timestamp(now);
            self.ack.requester.on_sent(now, self.snd.nxt, timestamp, moment, mark);
        }
    }

    /// The old byte that makes the peer answer for the data before it.
    pub(super) fn send_ack_probe(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) {
        let seq = self.snd.una - 1;
        if !self.ack.requester.on_probe_sent(now, seq, self.snd.nxt) {
            return;
        }
        self.ack.mark = (self.ack.requester.form() == RequestForm::Classic).then_some(Mark::Bare);
        self.emit(now, out, seq, TcpFlags::ACK, Bytes::from_static(&[0]), Cause::AckProbe);
    }

    /// A row is sent again: it does not ask, and what it had asked is void.
    pub(super) fn withdraw_request(&mut self, now: Instant, index: usize) {
        if !self.ack.requester.asks() {
            return;
        }
        let end = |at: usize| self.flight.segments.row(at).map(|row| row.end());
        let missing = |at: usize| {
            self.flight.segments.tags(at).any(Tags::LOST)
                && !end(at).is_some_and(|e| self.ack.requester.is_bare(e))
        };
        let alone = !index.checked_sub(1).is_some_and(missing) && !missing(index + 1);
        if let Some(end) = end(index) {
            self.ack.requester.on_retransmit(now, end, alone);
        }
    }

    /// What an ACK says of our requests. `advanced`: it acknowledges something new.
    #[inline]
    pub(super) fn read_answer(&mut self, now: Instant, segment: &Segment, advanced: bool) -> RequestReport {
        if self.ack.requester.asks() {
            self.find_answer(now, segment, advanced)
        } else {
            RequestReport::default()
        }
    }

    fn find_answer(&mut self, now: Instant, segment: &Segment, advanced: bool) -> RequestReport {
        let h = &segment.header;
        let mut told = RequestReport::default();
        if advanced {
            let answer = RequestAnswer {
                now,
                ack: h.ack,
                confirms: self.ack.confirmation(segment),
                echo: h.options.timestamps.filter(|_| self.ts.enabled).map(|t| t.echo),
            };
            told.undelayed = self.ack.requester.on_ack(&answer);
        }
        self.read_probe_answer(now, segment, advanced, &mut told);
        self.counters.confirmed += u64::from(told.undelayed.is_some());
        told
    }

    fn read_probe_answer(
        &mut self,
        now: Instant,
        segment: &Segment,
        advanced: bool,
        told: &mut RequestReport,
    ) {
        let Some(probe) = self.ack.requester.probe() else { return };
        let h = &segment.header;
        if !h.ack.after(probe.seq) {
            return; // it was sent before what the probe came behind
        }
        // RFC 2883: the receiver tells what it had already.
        if h.options.sack.first().is_some_and(|b| b.start == probe.seq && b.end == probe.seq + 1) {
            told.sack = Some(h.options.sack.iter().skip(1).copied().collect());
            told.answers_probe = true;
        }
        // A receiver may answer an old byte without ACK though it knows nothing of the bit.
        let answered = match self.ack.requester.form() {
            RequestForm::Classic => self.ack.confirmation(segment).is_some(),
            _ => told.answers_probe,
        };
        if answered {
            told.undelayed = told.undelayed.or(self.ack.requester.on_probe_answered(now, true));
        } else if !self.sack && self.ack.requester.form() == RequestForm::Unilateral {
            // Nobody says so, but the ACK for the data before it cannot have been held back beyond it;
            // another may follow.
            told.answers_probe = segment.payload.is_empty() && h.ack == self.snd.una && !advanced;
            if told.answers_probe || (advanced && h.ack.after_eq(probe.end)) {
                told.undelayed = self.ack.requester.on_probe_answered(now, told.answers_probe);
            }
        }
        told.answers_probe &= !advanced;
    }

    // What we are asked

    /// Looks whether a segment asks; [`answer_request`](Self::answer_request) decides what comes of it.
    #[inline]
    pub(super) fn read_request(&mut self, segment: &Segment) {
        if self.ack.requester.answers() != RequestForm::None {
            self.find_request(segment);
        }
    }

    fn find_request(&mut self, segment: &Segment) {
        let (h, data) = (&segment.header, !segment.payload.is_empty());
        let control = &h.options.ack_control;
        let asked = match self.ack.requester.answers() {
            _ if !data => false,
            RequestForm::None | RequestForm::Unilateral => false,
            RequestForm::Classic => self.ack.is_bare_request(h, data),
            RequestForm::Flag => control.request || h.flags.contains(self.ack.requester.bit()),
            RequestForm::Safe => control.request,
            RequestForm::Tarr => control.tarr == Some(Tarr::Rate(0)),
        };
        self.counters.requests += u64::from(asked);
        if asked {
            self.ack.answering.by_flag = !control.request;
        }
        self.ack.answering.asked = asked;
    }

    /// The data of the segment at hand has been taken; true: the request in it is answered at once.
    #[inline]
    pub(super) fn answer_request(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.ack.answering.asked) {
            return false;
        }
        let window = self.rcv.window.size() / self.ack.policy.full_size().max(1);
        self.ack.answering.take(now, window)
    }

    /// An answer is owed that must leave before any data, because data would carry the acknowledgment away
    /// without it.
    pub(super) fn answer_goes_first(&self) -> bool {
        if self.ack.answering.owed.is_none() {
            return false;
        }
        let view = SendView {
            segments: &self.flight.segments,
            cwnd: self.flight.window.cwnd(),
            can_send_new: false,
        };
        let short = self.snd.unsent() > 0 && self.snd.unsent() + ANSWER_ROOM <= u64::from(self.snd.mss);
        let carries = matches!(self.ack.requester.answers(), RequestForm::Safe | RequestForm::Flag)
            && short
            && self.new_data_fits()
            && self.flight.recovery.may_send_new(&self.flight.segments, self.flight.window.cwnd())
            && self.flight.recovery.next_segment(&view).is_none();
        !carries
    }

    /// Puts request and answer into a header that acknowledges. True: no answer is owed any more.
    #[inline]
    pub(super) fn put_ack_control(
        &mut self,
        now: Instant,
        flags: &mut TcpFlags,
        control: &mut tcp::AckControl,
        payload: usize,
    ) -> bool {
        let nothing = self.ack.mark.is_none() && self.ack.answering.owed.is_none();
        nothing || self.put_request_and_answer(now, flags, control, payload)
    }

    fn put_request_and_answer(
        &mut self,
        now: Instant,
        flags: &mut TcpFlags,
        control: &mut tcp::AckControl,
        payload: usize,
    ) -> bool {
        let mark = self.ack.mark.take();
        match mark {
            Some(Mark::Bare) => {
                *flags = flags.without(TcpFlags::ACK | TcpFlags::PSH).with(self.ack.requester.bit());
            }
            Some(Mark::Flag) => *flags = flags.with(self.ack.requester.bit()),
            Some(Mark::Option(request)) => *control = request,
            Some(Mark::Probe) | None => {}
        }
        let Some(since) = self.ack.answering.owed else { return true };
        match self.ack.requester.answers() {
            RequestForm::Classic if mark.is_none() => *flags = flags.with(self.ack.requester.bit()),
            RequestForm::Flag if payload == 0 && self.ack.answering.by_flag => {
                *flags = flags.with(self.ack.requester.bit())
            }
            RequestForm::Safe | RequestForm::Flag => {
                let fits = payload as u64 + ANSWER_ROOM <= u64::from(self.snd.mss);
                if payload > 0 && !fits {
                    return false;
                }
                control.confirmation = Some(AckDelay::of(now.since(since)));
            }
            RequestForm::Tarr => {}
            RequestForm::Classic | RequestForm::None | RequestForm::Unilateral => return false,
        }
        self.ack.answering.owed = None;
        self.counters.confirmations += 1;
        true
    }
}

impl AckState {
    /// The segment says that it was sent because we had asked, and how long it was held back.
    pub fn confirmation(&self, segment: &Segment) -> Option<Span> {
        let flags = segment.header.flags;
        let flag = flags.contains(self.requester.bit().with(TcpFlags::ACK));
        let option = segment.header.options.ack_control.confirmation.and_then(AckDelay::span);
        match self.requester.form() {
            RequestForm::Classic => flag.then_some(Span::ZERO),
            RequestForm::Flag => option.or((flag && segment.payload.is_empty()).then_some(Span::ZERO)),
            RequestForm::Safe => option,
            RequestForm::None | RequestForm::Tarr | RequestForm::Unilateral => None,
        }
    }

    /// A data segment without ACK whose acknowledgment counts all the same (CDL-only).
    pub fn is_bare_request(&self, h: &TcpHeader, data: bool) -> bool {
        let others =
            TcpFlags::ACK | TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::PSH | TcpFlags::URG;
        data && self.requester.answers() == RequestForm::Classic
            && h.flags.contains(self.requester.bit())
            && !h.flags.intersects(others)
    }

    /// An acceptable segment sets how many segments an ACK is for from now on. Not before: nobody who merely
    /// knows the ports may set it.
    pub fn read_rate(&mut self, segment: &Segment) {
        if self.requester.answers() == RequestForm::Tarr
            && !segment.payload.is_empty()
            && let Some(Tarr::Rate(rate @ 1..)) = segment.header.options.ack_control.tarr
        {
            self.policy.set_rate(Packets::new(u32::from(rate)));
        }
    }
}
