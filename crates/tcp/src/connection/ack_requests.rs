//! Requests for acknowledgments, and answers to them, in the headers of a connection (CDL, TARR).

use super::Connection;
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
            self.solicitor.offer()
        } else {
            self.solicitor.reply()
        }
    }

    /// Whether a new segment of at most `len` bytes asks for an ACK at once, and how.
    #[inline]
    pub(super) fn request_for(&self, now: Instant, len: u32) -> (Moment, Option<Mark>) {
        if !self.solicitor.asks() || len == 0 || len > self.mss {
            return (Moment::default(), None);
        }
        self.decide_request(now, len)
    }

    fn decide_request(&self, now: Instant, len: u32) -> (Moment, Option<Mark>) {
        let after = self.unsent() - u64::from(len);
        let next = after.min(u64::from(self.mss)) as u32;
        let in_flight = self.recovery.in_flight(&self.segments) + Packets::new(1);
        let calm = self.recovery.state() <= RecoveryState::Disorder;
        let moment = Moment {
            timed: self.timed.is_free(),
            calm,
            slow_start: calm && self.window.in_slow_start(),
            fills_window: after > 0 && (in_flight >= self.window.cwnd() || self.usable_window() < len + next),
            last: after == 0,
            first: self.segments.is_empty(),
            probing: self.cc.measures_empty_path(),
            fin: after == 0 && self.fin_queued,
        };
        (moment, self.solicitor.mark(now, &moment, self.rto.srtt()))
    }

    /// New data has been put into the retransmission queue, with or without a request.
    #[inline]
    pub(super) fn note_request(&mut self, now: Instant, moment: &Moment, mark: Option<Mark>) {
        if self.solicitor.asks() {
            self.counters.asked += u64::from(mark.is_some());
            let timestamp = self.timestamp(now);
            self.solicitor.on_sent(now, self.snd_nxt, timestamp, moment, mark);
        }
    }

    /// The old byte that makes the peer answer for the data before it.
    pub(super) fn send_ack_probe(&mut self, now: Instant, out: &mut Vec<OutgoingSegment>) {
        let seq = self.snd_una - 1;
        if !self.solicitor.on_probe_sent(now, seq, self.snd_nxt) {
            return;
        }
        self.mark = (self.solicitor.form() == RequestForm::Classic).then_some(Mark::Bare);
        self.emit(now, out, seq, TcpFlags::ACK, Bytes::from_static(&[0]), Cause::AckProbe);
    }

    /// A row is sent again: it does not ask, and what it had asked is void.
    pub(super) fn withdraw_request(&mut self, now: Instant, index: usize) {
        if !self.solicitor.asks() {
            return;
        }
        let end = |at: usize| self.segments.row(at).map(|row| row.end());
        let missing = |at: usize| {
            self.segments.tags(at).any(Tags::LOST) && !end(at).is_some_and(|e| self.solicitor.is_bare(e))
        };
        let alone = !index.checked_sub(1).is_some_and(missing) && !missing(index + 1);
        if let Some(end) = end(index) {
            self.solicitor.on_retransmit(now, end, alone);
        }
    }

    /// What an ACK says of our requests. `advanced`: it acknowledges something new.
    #[inline]
    pub(super) fn read_answer(&mut self, now: Instant, segment: &Segment, advanced: bool) -> RequestReport {
        if self.solicitor.asks() {
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
                confirms: self.confirmation(segment),
                echo: h.options.timestamps.filter(|_| self.timestamps).map(|t| t.echo),
            };
            told.undelayed = self.solicitor.on_ack(&answer);
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
        let Some(probe) = self.solicitor.probe() else { return };
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
        let answered = match self.solicitor.form() {
            RequestForm::Classic => self.confirmation(segment).is_some(),
            _ => told.answers_probe,
        };
        if answered {
            told.undelayed = told.undelayed.or(self.solicitor.on_probe_answered(now, true));
        } else if !self.sack && self.solicitor.form() == RequestForm::Unilateral {
            // Nobody says so, but the ACK for the data before it cannot have been held back beyond it; another may follow.
            told.answers_probe = segment.payload.is_empty() && h.ack == self.snd_una && !advanced;
            if told.answers_probe || (advanced && h.ack.after_eq(probe.end)) {
                told.undelayed = self.solicitor.on_probe_answered(now, told.answers_probe);
            }
        }
        told.answers_probe &= !advanced;
    }

    /// The segment says that it was sent because we had asked, and how long it was held back.
    fn confirmation(&self, segment: &Segment) -> Option<Span> {
        let flags = segment.header.flags;
        let flag = flags.contains(self.solicitor.bit().with(TcpFlags::ACK));
        let option = segment.header.options.ack_control.confirmation.and_then(AckDelay::span);
        match self.solicitor.form() {
            RequestForm::Classic => flag.then_some(Span::ZERO),
            RequestForm::Flag => option.or((flag && segment.payload.is_empty()).then_some(Span::ZERO)),
            RequestForm::Safe => option,
            RequestForm::None | RequestForm::Tarr | RequestForm::Unilateral => None,
        }
    }

    // What we are asked

    /// A data segment without ACK whose acknowledgment counts all the same (CDL-only).
    pub(super) fn is_bare_request(&self, h: &TcpHeader, data: bool) -> bool {
        let others =
            TcpFlags::ACK | TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST | TcpFlags::PSH | TcpFlags::URG;
        data && self.solicitor.answers() == RequestForm::Classic
            && h.flags.contains(self.solicitor.bit())
            && !h.flags.intersects(others)
    }

    /// Looks whether a segment asks; [`answer_request`](Self::answer_request) decides what comes of it.
    #[inline]
    pub(super) fn read_request(&mut self, segment: &Segment) {
        if self.solicitor.answers() != RequestForm::None {
            self.find_request(segment);
        }
    }

    fn find_request(&mut self, segment: &Segment) {
        let (h, data) = (&segment.header, !segment.payload.is_empty());
        let control = &h.options.ack_control;
        let asked = match self.solicitor.answers() {
            _ if !data => false,
            RequestForm::None | RequestForm::Unilateral => false,
            RequestForm::Classic => self.is_bare_request(h, data),
            RequestForm::Flag => control.request || h.flags.contains(self.solicitor.bit()),
            RequestForm::Safe => control.request,
            RequestForm::Tarr => control.tarr == Some(Tarr::Rate(0)),
        };
        self.counters.requests += u64::from(asked);
        if asked {
            self.answering.by_flag = !control.request;
        }
        self.answering.asked = asked;
    }

    /// An acceptable segment sets how many segments an ACK is for from now on. Not before: nobody who merely knows the
    /// ports may set it.
    pub(super) fn read_rate(&mut self, segment: &Segment) {
        if self.solicitor.answers() == RequestForm::Tarr
            && !segment.payload.is_empty()
            && let Some(Tarr::Rate(rate @ 1..)) = segment.header.options.ack_control.tarr
        {
            self.ack_policy.set_rate(Packets::new(u32::from(rate)));
        }
    }

    /// The data of the segment at hand has been taken; true: the request in it is answered at once.
    #[inline]
    pub(super) fn answer_request(&mut self, now: Instant) -> bool {
        if !std::mem::take(&mut self.answering.asked) {
            return false;
        }
        let window = self.receive.size() / self.ack_policy.full_size().max(1);
        self.answering.take(now, window)
    }

    /// An answer is owed that must leave before any data, because data would carry the acknowledgment away without it.
    pub(super) fn answer_goes_first(&self) -> bool {
        if self.answering.owed.is_none() {
            return false;
        }
        let view = SendView { segments: &self.segments, cwnd: self.window.cwnd(), can_send_new: false };
        let short = self.unsent() > 0 && self.unsent() + ANSWER_ROOM <= u64::from(self.mss);
        let carries = matches!(self.solicitor.answers(), RequestForm::Safe | RequestForm::Flag)
            && short
            && self.new_data_fits()
            && self.recovery.may_send_new(&self.segments, self.window.cwnd())
            && self.recovery.next_segment(&view).is_none();
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
        let nothing = self.mark.is_none() && self.answering.owed.is_none();
        nothing || self.put_request_and_answer(now, flags, control, payload)
    }

    fn put_request_and_answer(
        &mut self,
        now: Instant,
        flags: &mut TcpFlags,
        control: &mut tcp::AckControl,
        payload: usize,
    ) -> bool {
        let mark = self.mark.take();
        match mark {
            Some(Mark::Bare) => {
                *flags = flags.without(TcpFlags::ACK | TcpFlags::PSH).with(self.solicitor.bit());
            }
            Some(Mark::Flag) => *flags = flags.with(self.solicitor.bit()),
            Some(Mark::Option(request)) => *control = request,
            Some(Mark::Probe) | None => {}
        }
        let Some(since) = self.answering.owed else { return true };
        match self.solicitor.answers() {
            RequestForm::Classic if mark.is_none() => *flags = flags.with(self.solicitor.bit()),
            RequestForm::Flag if payload == 0 && self.answering.by_flag => {
                *flags = flags.with(self.solicitor.bit())
            }
            RequestForm::Safe | RequestForm::Flag => {
                let fits = payload as u64 + ANSWER_ROOM <= u64::from(self.mss);
                if payload > 0 && !fits {
                    return false;
                }
                control.confirmation = Some(AckDelay::of(now.since(since)));
            }
            RequestForm::Tarr => {}
            RequestForm::Classic | RequestForm::None | RequestForm::Unilateral => return false,
        }
        self.answering.owed = None;
        self.counters.confirmations += 1;
        true
    }
}
