//! The congestion states: Open, Disorder, CWR, Recovery, Loss; how they are entered, left, and undone.

use super::ack_flags::AckFlags;
use super::*;
use crate::cc::{CongestionEvent, Cut};

impl LinuxRecovery {
    /// An acknowledgment that is not plainly good. `duplicates`: so many it stands for.
    pub(super) fn alert(
        &mut self,
        ack: &AckInput<'_>,
        flags: &mut AckFlags,
        duplicates: u32,
        cx: &mut Context<'_>,
    ) {
        if cx.segments.is_empty() {
            cx.segments.set_assumed_out(Packets::ZERO);
        }
        if flags.ece {
            self.prior_ssthresh = None; // the network has said it: nothing to undo
        }
        if flags.reneging && flags.advanced {
            // The receiver may still come round: a short timeout decides (RFC 2018 §8).
            let delay = (cx.rto.srtt() / 2).max(Span::from_millis(10));
            self.timer.start(LinuxTimer::Retransmission, ack.now + delay);
            flags.set_timer = false;
            return;
        }
        if self.state == RecoveryState::Open {
            self.undo.stamp = None;
        } else if !ack.snd_una.before(self.high_seq) {
            match self.state {
                // Something above it must be acknowledged, so that CWR has reached the receiver.
                RecoveryState::Cwr if ack.snd_una != self.high_seq => {
                    self.end_reduction(ack.now, cx);
                    self.set_state(RecoveryState::Open, ack.now, cx);
                }
                RecoveryState::Recovery => {
                    self.reset_assumed(cx);
                    if self.undo_recovery(ack, cx) {
                        return;
                    }
                    self.end_reduction(ack.now, cx);
                }
                _ => {}
            }
        }
        match self.state {
            RecoveryState::Recovery => {
                if !flags.advanced {
                    if !self.sack {
                        self.add_assumed(duplicates, cx);
                    }
                } else if self.undo_partial(ack, cx) {
                    return;
                }
                if self.undo_by_dsack(ack, cx) {
                    self.try_to_open(ack, flags, cx);
                }
                self.identify(ack, flags, cx);
                if self.state != RecoveryState::Recovery {
                    if cx.segments.lost_out().is_zero() {
                        return;
                    }
                    self.enter_recovery(ack.now, ack.snd_una, ack.snd_nxt, flags.ece, cx);
                }
                self.resend = Resend::Lost;
            }
            RecoveryState::Loss => {
                self.go_on_after_loss(ack, flags, duplicates, cx);
                self.identify(ack, flags, cx);
                if self.state == RecoveryState::Open || flags.lost_again {
                    self.consider_recovery(ack, flags, duplicates, cx);
                }
            }
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr => {
                self.consider_recovery(ack, flags, duplicates, cx);
            }
        }
    }

    fn consider_recovery(
        &mut self,
        ack: &AckInput<'_>,
        flags: &mut AckFlags,
        duplicates: u32,
        cx: &mut Context<'_>,
    ) {
        if !self.sack {
            if flags.advanced {
                self.reset_assumed(cx);
            }
            self.add_assumed(duplicates, cx);
        }
        if self.state <= RecoveryState::Disorder {
            self.undo_by_dsack(ack, cx);
        }
        self.identify(ack, flags, cx);
        if cx.segments.lost_out().is_zero() {
            self.try_to_open(ack, flags, cx);
            return;
        }
        self.enter_recovery(ack.now, ack.snd_una, ack.snd_nxt, flags.ece, cx);
        self.resend = Resend::Lost;
    }

    /// Finds what is lost.
    fn identify(&mut self, ack: &AckInput<'_>, flags: &mut AckFlags, cx: &mut Context<'_>) {
        if cx.segments.is_empty() {
            return;
        }
        if self.sack {
            let before = cx.segments.retrans_out();
            if self.find_lost(ack.now, cx) {
                flags.set_timer = false;
            }
            flags.lost_again |= cx.segments.retrans_out() < before;
            return;
        }
        // RFC 6582: the head, when duplicates prove it, and again for each partial acknowledgment.
        let proven =
            self.state < RecoveryState::Recovery && cx.segments.assumed_out().get() >= self.reordering;
        let partial = self.state == RecoveryState::Recovery && flags.advanced;
        if (proven || partial) && !cx.segments.tags(0).any(Tags::LOST) {
            self.lose(0, cx.segments);
        }
    }

    pub(super) fn set_state(&mut self, state: RecoveryState, now: Instant, cx: &mut Context<'_>) {
        let was = std::mem::replace(&mut self.state, state);
        if was >= RecoveryState::Cwr && state <= RecoveryState::Disorder {
            cx.cc.on_event(now, cx.window, CongestionEvent::ExitRecovery);
        }
    }

    fn reset_assumed(&mut self, cx: &mut Context<'_>) {
        if !self.sack {
            cx.segments.set_assumed_out(Packets::ZERO);
        }
    }

    fn try_to_open(&mut self, ack: &AckInput<'_>, flags: &AckFlags, cx: &mut Context<'_>) {
        if !Self::any_resent(cx.segments) {
            self.undo.stamp = None;
        }
        if flags.ece {
            self.enter_cwr(ack.now, ack.snd_nxt, Cut::Ecn, Cause::CutEcn, cx);
        }
        if self.state != RecoveryState::Cwr {
            self.try_keep_open(ack.snd_nxt, cx);
        }
    }

    pub(super) fn try_keep_open(&mut self, snd_nxt: Seq, cx: &mut Context<'_>) {
        let calm = cx.segments.left_out().is_zero() && !Self::any_resent(cx.segments);
        let state = if calm { RecoveryState::Open } else { RecoveryState::Disorder };
        if self.state != state {
            self.state = state;
            self.high_seq = snd_nxt;
        }
    }

    pub(super) fn enter_cwr(
        &mut self,
        now: Instant,
        snd_nxt: Seq,
        cut: Cut,
        cause: Cause,
        cx: &mut Context<'_>,
    ) {
        self.prior_ssthresh = None;
        if self.state < RecoveryState::Cwr {
            self.undo.marker = None;
            self.begin_reduction(now, snd_nxt, cut, cause, cx);
            self.state = RecoveryState::Cwr;
        }
    }

    fn begin_undo(&mut self, snd_una: Seq, cx: &Context<'_>) {
        let probe = self.probe.is_some_and(|(_, repeated)| repeated);
        let open = i64::from(cx.segments.retrans_out().get()) + i64::from(probe);
        self.undo.marker = Some(snd_una);
        self.undo.open = if open == 0 { -1 } else { open };
    }

    /// The threshold now: a window above it that is not being reduced counts, too.
    fn current_ssthresh(&self, cx: &Context<'_>) -> Packets {
        if self.in_reduction() {
            return cx.window.ssthresh();
        }
        let cwnd = cx.window.cwnd().get();
        cx.window.ssthresh().max(Packets::new(cwnd / 2 + cwnd / 4))
    }

    pub(super) fn enter_recovery(
        &mut self,
        now: Instant,
        snd_una: Seq,
        snd_nxt: Seq,
        ece: bool,
        cx: &mut Context<'_>,
    ) {
        self.prior_ssthresh = None;
        self.begin_undo(snd_una, cx);
        if !self.in_reduction() {
            if !ece {
                self.prior_ssthresh = Some(self.current_ssthresh(cx));
            }
            self.begin_reduction(now, snd_nxt, Cut::FastRetransmit, Cause::CutFastRetransmit, cx);
        }
        self.state = RecoveryState::Recovery;
        cx.cc.on_event(now, cx.window, CongestionEvent::EnterRecovery);
    }

    pub(super) fn begin_reduction(
        &mut self,
        now: Instant,
        snd_nxt: Seq,
        cut: Cut,
        cause: Cause,
        cx: &mut Context<'_>,
    ) {
        self.high_seq = snd_nxt;
        self.probe = None;
        cx.window.cwnd_cnt = 0;
        self.prr = LinuxPrr { prior_cwnd: cx.window.cwnd().get(), delivered: 0, out: 0 };
        cx.cut_because(now, cut, cause);
    }

    /// RFC 9937 §6.2.
    pub(super) fn reduce(&mut self, delivered: u32, lost: u32, advanced: bool, cx: &mut Context<'_>) {
        if delivered == 0 || self.prr.prior_cwnd == 0 {
            return;
        }
        let (ssthresh, in_flight) =
            (i64::from(cx.window.ssthresh().get()), i64::from(cx.segments.in_flight().get()));
        let delta = ssthresh - in_flight;
        self.prr.delivered = self.prr.delivered.saturating_add(delivered);
        let (total, out) = (i64::from(self.prr.delivered), i64::from(self.prr.out));
        let send = if delta < 0 {
            let prior = i64::from(self.prr.prior_cwnd);
            (ssthresh * total + prior - 1) / prior - out
        } else {
            let more = (total - out).max(i64::from(delivered)) + i64::from(advanced && lost == 0);
            more.min(delta)
        };
        // The fast retransmit itself always goes.
        let send = send.max(i64::from(self.prr.out == 0));
        cx.reduce_to(Packets::new(u32::try_from(in_flight + send).unwrap_or(0)));
    }

    pub(super) fn end_reduction(&mut self, now: Instant, cx: &mut Context<'_>) {
        let holds = self.state == RecoveryState::Cwr || self.undo.marker.is_some();
        if cx.window.ssthresh() < Packets::MAX && holds {
            cx.reduce_to(cx.window.ssthresh());
            self.usage.restart(now);
        }
        cx.cc.on_event(now, cx.window, CongestionEvent::ExitRecovery);
    }

    // Undo (RFC 3522, 4015; D-SACK)

    /// The echoed timestamp is from before the first retransmission; or there was none yet.
    fn was_delayed(&self, ack: &AckInput<'_>) -> bool {
        match self.undo.stamp {
            Some(stamp) => ack.tsecr.is_some_and(|echo| echo != 0 && (echo.wrapping_sub(stamp) as i32) < 0),
            None => self.sack || ack.snd_una.before(self.high_seq),
        }
    }

    fn may_undo(&self, ack: &AckInput<'_>) -> bool {
        self.undo.marker.is_some() && (self.undo.open == 0 || self.was_delayed(ack))
    }

    fn take_back(&mut self, now: Instant, unmark: bool, cause: Cause, cx: &mut Context<'_>) {
        if unmark {
            cx.segments.clear_lost();
        }
        cx.causes.push(cause);
        if cx.cc.owns_window() {
            cx.cc.on_event(now, cx.window, CongestionEvent::Undo);
        } else if let Some(prior) = self.prior_ssthresh {
            let cwnd = cx.cc.undo_cwnd(cx.window);
            cx.window.set_cwnd(cwnd);
            if prior > cx.window.ssthresh() {
                cx.window.set_ssthresh(prior);
            }
            cx.cc.on_event(now, cx.window, CongestionEvent::Undo);
        }
        self.usage.restart(now);
        self.undo.marker = None;
        self.rack.look_again();
    }

    /// Without SACK the state is held until something above it is acknowledged (RFC 6582 §4.1).
    fn stays(&mut self, ack: &AckInput<'_>, cx: &Context<'_>) -> bool {
        let stays = !self.sack && ack.snd_una == self.high_seq;
        if stays && !Self::any_resent(cx.segments) {
            self.undo.stamp = None;
        }
        stays
    }

    /// All that was out is acknowledged. True: the state is held.
    fn undo_recovery(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> bool {
        if self.may_undo(ack) {
            let cause = if self.undo.open == 0 { Cause::UndoDsack } else { Cause::UndoTimestamp };
            self.take_back(ack.now, false, cause, cx);
        } else {
            self.rack.persist(false);
        }
        if self.stays(ack, cx) {
            return true;
        }
        self.set_state(RecoveryState::Open, ack.now, cx);
        false
    }

    fn undo_partial(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> bool {
        if self.undo.marker.is_none() || !self.was_delayed(ack) {
            return false;
        }
        // The hole was filled by what was delayed.
        let fack = self.highest_sacked(cx.segments, ack.snd_una);
        self.see_reordering(ack.prior_snd_una, fack, cx);
        if !cx.segments.retrans_out().is_zero() {
            return true;
        }
        if !Self::any_resent(cx.segments) {
            self.undo.stamp = None;
        }
        self.take_back(ack.now, true, Cause::UndoTimestamp, cx);
        self.try_keep_open(ack.snd_nxt, cx);
        false
    }

    fn undo_by_dsack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> bool {
        if self.undo.marker.is_none() || self.undo.open != 0 {
            return false;
        }
        self.rack.persist(true);
        self.take_back(ack.now, false, Cause::UndoDsack, cx);
        true
    }

    fn undo_loss(&mut self, ack: &AckInput<'_>, by_frto: bool, cx: &mut Context<'_>) -> bool {
        if !by_frto && !self.may_undo(ack) {
            return false;
        }
        let cause = if by_frto { Cause::UndoFRto } else { Cause::UndoTimestamp };
        self.take_back(ack.now, true, cause, cx);
        self.timeouts = 0;
        if self.stays(ack, cx) {
            return true;
        }
        if by_frto || self.sack {
            self.set_state(RecoveryState::Open, ack.now, cx);
        }
        true
    }

    /// An acknowledgment after a timeout: F-RTO (RFC 5682 §3.1), or slow start over the holes.
    fn go_on_after_loss(
        &mut self,
        ack: &AckInput<'_>,
        flags: &AckFlags,
        duplicates: u32,
        cx: &mut Context<'_>,
    ) {
        let recovered = !ack.snd_una.before(self.high_seq);
        if flags.advanced && self.undo_loss(ack, false, cx) {
            return;
        }
        if self.frto {
            if flags.original && self.undo_loss(ack, true, cx) {
                return;
            }
            if ack.snd_nxt.after(self.high_seq) {
                if flags.sacked || duplicates > 0 {
                    self.frto = false;
                }
            } else if flags.advanced && !recovered {
                self.high_seq = ack.snd_nxt;
                if ack.unsent_in_window {
                    self.resend = Resend::NewFirst;
                    return;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.undo_recovery(ack, cx);
            return;
        }
        if !self.sack {
            if ack.snd_nxt.after(self.high_seq) && duplicates > 0 {
                self.add_assumed(duplicates, cx);
            } else if flags.advanced {
                self.reset_assumed(cx);
            }
        }
        self.resend = Resend::Lost;
    }

    /// The retransmission timer has fired (RFC 5681 §3.1, RFC 8985 §6.3).
    pub(super) fn enter_loss(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        let fresh = self.state < RecoveryState::Recovery;
        let reneged = cx.segments.tags(0).any(Tags::SACKED);
        if reneged {
            cx.causes.push(Cause::Reneging);
            cx.segments.forget_sacks();
        } else {
            self.reset_assumed(cx);
        }
        for index in 0..cx.segments.len() {
            let spared = !reneged
                && index > 0
                && cx
                    .segments
                    .row(index)
                    .is_some_and(|r| self.keep_alive(expiry.now, r, Span::ZERO).is_some());
            if !spared {
                self.lose(index, cx.segments);
            }
        }
        let cuts = self.state <= RecoveryState::Disorder
            || !self.high_seq.after(expiry.snd_una)
            || (self.state == RecoveryState::Loss && self.timeouts == 0);
        if cuts {
            self.prior_ssthresh = Some(self.current_ssthresh(cx));
            self.prr.prior_cwnd = cx.window.cwnd().get();
            cx.cut(expiry.now, Cut::Timeout);
            self.begin_undo(expiry.snd_una, cx);
        }
        cx.reduce_to(cx.segments.in_flight() + Packets::new(1));
        cx.window.cwnd_cnt = 0;
        self.usage.restart(expiry.now);
        if self.state <= RecoveryState::Disorder && cx.segments.sacked_out() >= self.switches.reordering {
            self.reordering = self.reordering.min(self.switches.reordering.get());
        }
        self.state = RecoveryState::Loss;
        self.high_seq = expiry.snd_nxt;
        self.probe = None;
        cx.enter_loss(expiry.now);
        self.frto = self.switches.frto && (fresh || self.timeouts > 0);
    }

    /// Segments were too big for the path, and go again in parts: no sign of congestion.
    pub(super) fn simple_retransmit(&mut self, why: Resegmented, at: &Expiry, cx: &mut Context<'_>) {
        if let Resegmented::ProbeLost { .. } = why {
            return;
        }
        if self.state != RecoveryState::Loss {
            self.high_seq = at.snd_nxt;
            cx.window.set_ssthresh(self.current_ssthresh(cx));
            self.prior_ssthresh = None;
            self.undo.marker = None;
            self.state = RecoveryState::Loss;
        }
        self.resend = Resend::Lost;
    }
}
