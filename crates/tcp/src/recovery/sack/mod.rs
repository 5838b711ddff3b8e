//! SACK recovery of today: RACK-TLP or RFC 6675 find what is lost, PRR brings the window down, F-RTO, Eifel
//! and D-SACK take it back when nothing was lost.
//!
//! One file for each RFC: [`scoreboard`] (2018, 2883), [`rack`] and [`tail_loss_probe`] (8985), [`counting`]
//! (6675), [`prr`] (9937), [`f_rto`] (5682), [`undo`] (3522, 4015); [`aen`] is TCP-STAR's. This file lets an
//! ACK go through them in order; `states` enters and leaves the congestion states.

mod aen;
mod counting;
mod f_rto;
mod prr;
mod rack;
mod scoreboard;
mod states;
mod tail_loss_probe;
mod undo;

use super::{
    AckInput, AckOutcome, Context, Expiry, Grant, LossRecovery, RecoveryTimer, Resegmented, SendView,
    SentKind,
};
use crate::cc::Cut;
use crate::config::{Detection, Modern, Reduction, TimeoutProcedure};
use crate::segments::{SegmentRow, Segments, Tags};
use aen::Aen;
use counting::Counting;
use f_rto::{FRto, Sign};
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Seq, Span};
use farpace_wire::tcp::SackBlock;
use prr::Prr;
use rack::{EchoedTimestamp, Rack};
use scoreboard::Scoreboard;
use tail_loss_probe::{TailLossProbe, TlpState};
use undo::SackUndo;

/// State of the recovery besides segments and window.
#[derive(Clone, Debug)]
pub struct SackRecovery {
    switches: Modern,
    state: RecoveryState,
    /// SND.NXT when the present state began: RecoveryPoint.
    high_seq: Seq,
    scoreboard: Scoreboard,
    rack: Rack,
    counting: Counting,
    prr: Prr,
    tail: TailLossProbe,
    f_rto: FRto,
    aen: Aen,
    undo: Option<SackUndo>,
    /// Timeouts since the last ACK that advanced SND.UNA.
    timeouts: u32,
    /// The next retransmission is the timeout's.
    timed_out: bool,
    /// The first retransmission of a recovery leaves at once, whatever the window says (RFC 6675 §5 step
    /// 4.3).
    fast: bool,
}

/// What an ACK tells that was not known.
#[derive(Clone, Copy, Debug, Default)]
struct AckDelta {
    /// Segments acknowledged that were not SACKed before.
    acked: u32,
    /// Segments newly SACKed.
    sacked: u32,
    /// When the newest of them was sent that was sent only once.
    newest: Option<Instant>,
    /// One of them was never sent again and left before the recovery point.
    original: bool,
    /// One of them left after it.
    beyond: bool,
    /// SND.UNA has moved.
    advanced: bool,
    /// Segments found lost.
    lost: u32,
    /// The window may grow: no recovery has just ended, and the receiver has dropped nothing.
    may_grow: bool,
}

impl AckDelta {
    fn see(&mut self, row: &SegmentRow, tags: Tags, point: Seq) {
        let beyond = row.end().after(point);
        self.beyond |= beyond;
        if !tags.any(Tags::EVER_RETRANSMITTED) {
            self.newest = Some(self.newest.map_or(row.sent_at, |n| n.max(row.sent_at)));
            self.original |= !beyond;
        }
    }

    fn delivered(&self) -> Packets {
        Packets::new(self.acked + self.sacked)
    }
}

impl SackRecovery {
    /// A connection without losses so far.
    pub fn new(switches: Modern) -> Self {
        SackRecovery {
            switches,
            state: RecoveryState::Open,
            high_seq: Seq::default(),
            scoreboard: Scoreboard::default(),
            rack: Rack::default(),
            counting: Counting::default(),
            prr: Prr::default(),
            tail: TailLossProbe::default(),
            f_rto: FRto::default(),
            aen: Aen::default(),
            undo: None,
            timeouts: 0,
            timed_out: false,
            fast: false,
        }
    }

    fn uses_rack(&self) -> bool {
        self.switches.detection == Detection::Rack
    }

    /// Retransmissions have to wait for a verdict.
    fn holds(&self) -> bool {
        self.f_rto.holds() || self.aen.holds()
    }

    fn in_recovery(&self) -> bool {
        matches!(self.state, RecoveryState::Recovery | RecoveryState::Loss)
    }

    /// Takes the rows that `ack` acknowledges or SACKs, and tells the detectors of them.
    fn deliver(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> (AckDelta, AckOutcome) {
        let (clock, min_rtt) = (cx.rto.clock(), cx.min_rtt.get());
        let mss = cx.window.mss();
        let echo = EchoedTimestamp { now: ack.now, age: ack.rtt_by_timestamp, clock, min_rtt, mss };
        let point = self.f_rto.recovery_point().unwrap_or(ack.snd_nxt);
        let mut news = AckDelta { advanced: ack.snd_una.after(ack.prior_snd_una), ..AckDelta::default() };
        // The receiver echoes the timestamp of the segment that it waited for (RFC 7323 §4.3). Of what lies
        // beyond, the echo says nothing; it is as old as the hole. Where segments come out of order it keeps
        // late originals from passing for copies all the same.
        let age = echo.age.filter(|_| self.rack.reordering_seen());
        let beyond = EchoedTimestamp { age, ..echo };
        let rack = &mut self.rack;
        let acknowledged = cx.drop_acknowledged_each(ack, |row, tags, rows| {
            if !tags.any(Tags::SACKED) {
                news.acked += rows;
                news.see(row, tags, point);
                let awaited = row.seq.before_eq(ack.prior_snd_una);
                rack.on_delivered(row, tags, if awaited { &echo } else { &beyond });
            }
        });
        self.scoreboard.advance(ack.snd_una);
        if !ack.sack.is_empty() {
            self.scoreboard.take(ack, cx.segments, |row, tags| {
                news.sacked += 1;
                news.see(row, tags, point);
                rack.on_delivered(row, tags, &beyond);
            });
        }
        if acknowledged.packets.is_zero()
            && let Some(sent_at) = news.newest
        {
            // A long recovery acknowledges nothing; round trips are measured all the same.
            let rtt = ack.now.since(sent_at);
            cx.sample_sacked(ack, rtt);
        }
        (news, AckOutcome { acknowledged, reneged: false })
    }

    fn reo_wnd(&self, cx: &Context<'_>) -> Span {
        let reo_wnd = self.rack.reo_wnd(self.in_recovery(), cx.min_rtt.get(), cx.rto.srtt(), cx.segments);
        reo_wnd.max(cx.min_rtt.reordering())
    }

    /// Marks what is lost now, and says how many segments that were.
    fn detect(&mut self, now: Instant, cx: &mut Context<'_>) -> u32 {
        if self.uses_rack() {
            let reo_wnd = self.reo_wnd(cx);
            self.rack.detect(now, reo_wnd, cx.segments)
        } else {
            self.counting.detect(&self.scoreboard, cx.window.mss(), cx.segments)
        }
    }

    /// D-SACKs: the reordering window may be too small, or a reduction wrong.
    fn on_dsack(&mut self, ack: &AckInput<'_>, dsack: Option<SackBlock>, cx: &mut Context<'_>) {
        let wrong = dsack.filter(|block| !self.tail.explains(*block));
        self.rack.on_ack(ack.snd_una, ack.snd_nxt, wrong.is_some());
        if let (Some(block), Some(undo)) = (wrong, &mut self.undo)
            && block.end.after(undo.marker)
        {
            let segments = block.end.bytes_since(block.start).div_ceil(cx.window.mss().max(1));
            if undo.on_dsack(segments) {
                self.take_back(ack.now, Cause::UndoDsack, cx);
            }
        }
    }
}

impl LossRecovery for SackRecovery {
    fn on_ack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome {
        self.tail.pending = None;
        let dsack = scoreboard::dsack(ack);
        if cx.segments.is_empty() {
            self.scoreboard.advance(ack.snd_una);
            self.on_dsack(ack, dsack, cx);
            self.tail.on_ack(ack, dsack);
            return AckOutcome::default();
        }
        let before = cx.segments.in_flight();
        let (mut news, mut outcome) = self.deliver(ack, cx);
        let advanced = news.advanced;
        if self.aen == Aen::Due && cx.segments.is_empty() {
            self.aen = Aen::Off; // the answer has come before the question could leave
        }
        if advanced {
            self.timeouts = 0;
        }
        if news.newest.is_some() || (advanced && ack.rtt_by_timestamp.is_some()) {
            self.tail.on_sample();
        }
        self.counting.on_ack(advanced, news.sacked > 0);
        let answers = dsack.is_some_and(|block| self.aen.explains(block));
        self.judge_probe(ack, dsack, cx);
        // Proofs that nothing was lost come before anything is found lost.
        self.on_dsack(ack, dsack.filter(|_| !answers), cx);
        let spurious = self.check_spurious(ack, &news, cx);
        let probe_repaired = self.switches.tail_loss_probe && self.tail.on_ack(ack, dsack);
        if cx.segments.tags(0).any(Tags::SACKED) {
            // What is next in order was SACKed and is not acknowledged: the receiver has dropped it.
            outcome.reneged = true;
            self.on_reneging(ack, cx);
        }
        // What has just been taken back would be found lost again, and the window never be used.
        news.lost = if self.holds() || spurious { 0 } else { self.detect(ack.now, cx) };
        let left = self.leave(ack, cx);
        if probe_repaired {
            self.on_probe_repair(ack.now, cx);
        }
        if ack.ece {
            self.on_ece(ack, news.delivered(), cx);
        }
        if !cx.segments.lost_out().is_zero() && !self.in_recovery() {
            self.enter_recovery(ack.now, ack.snd_una, ack.snd_nxt, news.delivered(), cx);
        }
        self.settle_disorder(cx);
        news.may_grow = !left && !outcome.reneged;
        self.resize(ack, before, &news, cx);
        self.arm_probe(ack, advanced, cx);
        #[cfg(debug_assertions)]
        debug_assert_eq!(self.scoreboard.check_in_turn(cx.segments), Ok(()));
        outcome
    }

    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant> {
        let segments = view.segments;
        if self.tail.pending == Some(TlpState::Last) {
            let index = segments.len().checked_sub(1)?;
            return Some(Grant { index, cause: Cause::TailLossProbe });
        }
        if self.aen == Aen::Due {
            let index = segments.len().checked_sub(1)?;
            return Some(Grant { index, cause: Cause::AenProbe });
        }
        if self.holds() || !(self.fast || segments.in_flight() < view.cwnd) {
            return None;
        }
        if let Some(index) = segments.first_waiting() {
            let cause = match self.state {
                _ if self.timed_out => Cause::TimeoutRetransmit,
                RecoveryState::Loss => Cause::LossRetransmit,
                _ if segments.row(index).is_some_and(|r| r.lost_again()) => Cause::LostRetransmission,
                _ => Cause::FastRetransmit,
            };
            return Some(Grant { index, cause });
        }
        // RACK and the tail loss probe do better than the last two rules of NextSeg.
        if self.uses_rack() || self.state != RecoveryState::Recovery || view.can_send_new {
            return None;
        }
        let index =
            self.counting.forward(&self.scoreboard, segments).or_else(|| self.counting.rescue(segments))?;
        Some(Grant { index, cause: Cause::ForwardRetransmit })
    }

    fn on_sent(&mut self, sent: &SentKind, segments: &Segments) {
        if matches!(self.state, RecoveryState::Recovery | RecoveryState::Cwr) {
            self.prr.on_sent();
        }
        let probe = self.tail.pending.is_some() || self.aen == Aen::Due;
        self.tail.on_sent(sent.snd_nxt);
        if sent.fresh {
            self.f_rto.on_new();
            if self.switches.tail_loss_probe && !probe && !self.in_recovery() {
                self.tail.arm(sent.now, sent.srtt, sent.rto_deadline, segments);
            }
            return;
        }
        if let (Aen::Due, Some(row)) = (self.aen, segments.row(sent.index)) {
            self.aen.on_sent(row.end(), sent.timestamp);
        } else {
            (self.timed_out, self.fast) = (false, false);
        }
        if let Some(undo) = self.undo.as_mut().filter(|_| !probe) {
            undo.on_retransmit(sent.timestamp);
        }
        let Some(row) = segments.row(sent.index) else { return };
        if self.uses_rack() {
            self.rack.on_retransmit(sent.now, row.seq, segments);
        } else if sent.index + 1 == segments.len() && !segments.tags(sent.index).any(Tags::LOST) {
            self.counting.on_rescue();
        }
    }

    fn on_transmit_queue_full(&mut self, now: Instant, _: Seq, snd_nxt: Seq, cx: &mut Context<'_>) {
        if !matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            return;
        }
        cx.cut_because(now, Cut::FastRetransmit, Cause::CutTransmitQueue);
        self.begin_cwr(snd_nxt, Packets::ZERO, cx);
    }
    fn on_timeout(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        // RFC 2018 §8: a SACKed head that times out was dropped by the receiver.
        let forget = cx.segments.tags(0).any(Tags::SACKED);
        if forget || !self.probe_first(expiry, cx) {
            self.enter_loss(expiry, forget, cx);
        }
    }

    fn deadline(&self) -> Option<(Instant, RecoveryTimer)> {
        let reordering = self.rack.deadline.map(|at| (at, RecoveryTimer::Reordering));
        let probe = self.tail.deadline.map(|at| (at, RecoveryTimer::TailLossProbe));
        match (reordering, probe) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    fn on_timer(&mut self, expiry: &Expiry, cx: &mut Context<'_>) -> bool {
        let mut restart = false;
        if self.tail.deadline.is_some_and(|at| at <= expiry.now) {
            restart = self.tail.on_timer(expiry.new_data_waiting, expiry.tail_inside);
        }
        if self.rack.deadline.is_some_and(|at| at <= expiry.now) {
            self.detect(expiry.now, cx);
            if !cx.segments.lost_out().is_zero() && !self.in_recovery() {
                self.enter_recovery(expiry.now, expiry.snd_una, expiry.snd_nxt, Packets::new(1), cx);
                self.reduce(Packets::new(1), false, cx);
            }
        }
        restart
    }

    fn on_resegmented(&mut self, why: Resegmented, at: &Expiry, cx: &mut Context<'_>) {
        self.aen = Aen::Off; // the reason is known
        self.repair_without_cut(why, at, cx);
    }

    fn state(&self) -> RecoveryState {
        self.state
    }

    fn may_send_new(&self, segments: &Segments, cwnd: Packets) -> bool {
        self.tail.pending == Some(TlpState::New)
            || self.f_rto.allows_new()
            || (!self.holds() && segments.in_flight() < cwnd)
    }

    fn may_send_run(&self, segments: &Segments, cwnd: Packets) -> u32 {
        // Elsewhere each segment sent is counted, by PRR or as a probe.
        let calm = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder);
        if !calm || self.holds() || self.tail.pending.is_some() {
            return 0;
        }
        cwnd.get().saturating_sub(segments.in_flight().get())
    }
}
