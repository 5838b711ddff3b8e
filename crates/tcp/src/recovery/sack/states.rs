//! Entering and leaving the congestion states, and the window in each of them.

use super::*;
use crate::cc::{CongestionEvent, Cut};
use aen::AenVerdict;
use farpace_wire::tcp::SackBlock;

impl SackRecovery {
    /// Timestamps and F-RTO: was the last recovery for nothing? True: it was, and the window is back.
    pub(super) fn check_spurious(
        &mut self,
        ack: &AckInput<'_>,
        news: &AckDelta,
        cx: &mut Context<'_>,
    ) -> bool {
        let by_timestamp =
            news.advanced && self.in_recovery() && self.undo.is_some_and(|u| u.is_spurious_by(ack.tsecr));
        if by_timestamp {
            if self.state == RecoveryState::Recovery {
                self.rack.on_spurious();
            }
            self.take_back(ack.now, Cause::UndoTimestamp, cx);
        }
        if self.state != RecoveryState::Loss {
            return by_timestamp;
        }
        let sign = Sign {
            snd_una: ack.snd_una,
            snd_nxt: ack.snd_nxt,
            advanced: news.advanced,
            original: news.original,
            beyond: news.beyond,
            duplicate: !news.advanced && !ack.has_data && !ack.window_update,
            new_data: ack.new_data_waiting,
        };
        let by_order = self.f_rto.on_ack(&sign);
        if by_order {
            self.take_back(ack.now, Cause::UndoFRto, cx);
        }
        by_order
    }

    /// The reduction was a mistake.
    pub(super) fn take_back(&mut self, now: Instant, cause: Cause, cx: &mut Context<'_>) {
        if self.in_recovery() {
            cx.segments.clear_lost();
            self.rack.reset();
            self.counting.reset();
            self.state = RecoveryState::Open;
            self.f_rto = FRto::Off;
            (self.timed_out, self.fast) = (false, false);
        }
        if let Some(undo) = self.undo.take() {
            undo.apply(now, cause, cx);
        }
    }

    /// The receiver has dropped what it had SACKed (RFC 2018 §8): believe nothing, begin at the head.
    pub(super) fn on_reneging(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) {
        cx.causes.push(Cause::Reneging);
        let (now, snd_una, snd_nxt) = (ack.now, ack.snd_una, ack.snd_nxt);
        let expiry = Expiry {
            window_shut: false,
            now,
            snd_una,
            snd_nxt,
            new_data_waiting: ack.new_data_waiting,
            unsent_in_window: false,
            tail_inside: false,
        };
        self.enter_loss(&expiry, true, cx);
    }

    /// Everything that was outstanding when the state began is acknowledged. True: a recovery ended.
    pub(super) fn leave(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> bool {
        if !ack.snd_una.after_eq(self.high_seq) {
            return false;
        }
        match self.state {
            RecoveryState::Recovery | RecoveryState::Cwr => {
                cx.reduce_to(cx.window.ssthresh()); // RFC 9937 §6.4
                cx.cc.on_event(ack.now, cx.window, CongestionEvent::ExitRecovery);
            }
            RecoveryState::Loss => cx.cc.on_event(ack.now, cx.window, CongestionEvent::ExitRecovery),
            RecoveryState::Open | RecoveryState::Disorder => return false,
        }
        if self.in_recovery() {
            self.rack.on_recovered();
        }
        self.state = RecoveryState::Open;
        self.f_rto = FRto::Off;
        (self.timed_out, self.fast) = (false, false);
        true
    }

    /// Remembers what a reduction may have to restore, and asks congestion control for the threshold.
    fn cut(&mut self, now: Instant, cut: Cut, snd_una: Seq, cx: &mut Context<'_>) {
        self.undo = self.switches.undo.then(|| SackUndo::new(cx, snd_una, cx.segments.retrans_out()));
        cx.cut(now, cut);
    }

    /// RFC 6675 §5 step 4, RFC 9937 §6.1. `delivered`: what the ACK at hand brought.
    pub(super) fn enter_recovery(
        &mut self,
        now: Instant,
        snd_una: Seq,
        snd_nxt: Seq,
        delivered: Packets,
        cx: &mut Context<'_>,
    ) {
        // A window that is coming down already is not cut twice for one round trip.
        if self.state != RecoveryState::Cwr {
            self.cut(now, Cut::FastRetransmit, snd_una, cx);
        }
        self.begin_reduction(snd_nxt, delivered, cx);
        self.state = RecoveryState::Recovery;
        self.aen = Aen::Off;
        self.fast = true;
        self.counting.on_recovery();
        self.tail.reset();
        cx.cc.on_event(now, cx.window, CongestionEvent::EnterRecovery);
    }

    fn begin_reduction(&mut self, snd_nxt: Seq, delivered: Packets, cx: &mut Context<'_>) {
        self.high_seq = snd_nxt;
        self.prr = Prr::new(cx.segments.packets_out() - cx.segments.sacked_out() + delivered);
        if self.switches.reduction == Reduction::AtOnce {
            cx.reduce_to(cx.window.ssthresh());
        }
    }

    /// RFC 3168 §6.1.2: a mark counts like a loss, once per round trip, and nothing is sent again.
    pub(super) fn on_ece(&mut self, ack: &AckInput<'_>, delivered: Packets, cx: &mut Context<'_>) {
        if !matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            return;
        }
        self.cut(ack.now, Cut::Ecn, ack.snd_una, cx);
        self.begin_cwr(ack.snd_nxt, delivered, cx);
    }

    /// The window comes down to its threshold, and nothing is sent again.
    pub(super) fn begin_cwr(&mut self, snd_nxt: Seq, delivered: Packets, cx: &mut Context<'_>) {
        self.undo = None; // the network has said it itself
        self.begin_reduction(snd_nxt, delivered, cx);
        self.state = RecoveryState::Cwr;
    }

    /// RFC 8985 §7.4.2: the probe repaired the only loss; the window comes down as for any other.
    pub(super) fn on_probe_repair(&mut self, now: Instant, cx: &mut Context<'_>) {
        if !matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            return;
        }
        self.undo = None;
        cx.cut_because(now, Cut::FastRetransmit, Cause::CutTailLoss);
        cx.reduce_to(cx.window.cwnd().min(cx.window.ssthresh()));
        cx.cc.on_event(now, cx.window, CongestionEvent::EnterRecovery);
        cx.cc.on_event(now, cx.window, CongestionEvent::ExitRecovery);
    }

    /// RFC 5681 §3.1, RFC 6675 §5.1, RFC 8985 §6.3.
    pub(super) fn enter_loss(&mut self, expiry: &Expiry, forget: bool, cx: &mut Context<'_>) {
        // One reduction per window, but another for each timeout that nothing was heard before.
        let fresh = matches!(self.state, RecoveryState::Open | RecoveryState::Disorder)
            || expiry.snd_una.after_eq(self.high_seq)
            || (self.state == RecoveryState::Loss && self.timeouts == 0);
        let again = self.state == RecoveryState::Loss && self.f_rto == FRto::First;
        if fresh {
            self.cut(expiry.now, Cut::Timeout, expiry.snd_una, cx);
        }
        if forget {
            self.undo = None;
            self.scoreboard.forget();
        }
        let by_time = self.uses_rack() && !forget;
        if by_time {
            let reo_wnd = self.reo_wnd(cx);
            self.rack.mark_at_timeout(expiry.now, reo_wnd, cx.segments);
        } else {
            cx.segments.lose_all(forget);
            self.rack.reset();
            self.counting.reset();
        }
        let f_rto = self.switches.timeout == TimeoutProcedure::FRto;
        self.f_rto = if f_rto && !forget && (fresh || again) { FRto::First } else { FRto::Off };
        self.state = RecoveryState::Loss;
        self.aen = Aen::Off;
        self.high_seq = expiry.snd_nxt;
        self.timeouts += 1;
        (self.timed_out, self.fast) = (true, true);
        self.tail.reset();
        cx.window.cwnd_cnt = 0;
        cx.window.bytes_acked = 0;
        // One segment more than what may still be in flight: the head.
        cx.reduce_to(cx.segments.in_flight() + Packets::new(1));
        cx.enter_loss(expiry.now);
    }

    /// A timeout has come. True: what was lost is asked first.
    pub(super) fn probe_first(&mut self, expiry: &Expiry, cx: &mut Context<'_>) -> bool {
        let literal = match self.switches.timeout {
            TimeoutProcedure::AenLiteral => true,
            TimeoutProcedure::Aen => false,
            TimeoutProcedure::Conventional | TimeoutProcedure::FRto => return false,
        };
        if self.aen.holds() {
            self.aen = Aen::Off;
            cx.causes.push(AenVerdict::Probe.cause());
            return false;
        }
        if !literal && self.timeouts > 0 {
            return false; // what went after the last timeout was not answered, either: one more asks the same
        }
        if expiry.tail_inside {
            return false; // the newest segment has yet to leave: a copy of it asks nothing
        }
        let newest = cx.segments.tags(cx.segments.len() - 1);
        if !literal && newest.any(Tags::SACKED) {
            cx.causes.push(AenVerdict::Data.cause());
            return false;
        }
        self.aen = Aen::Due;
        self.tail.reset();
        self.rack.deadline = None;
        true
    }

    /// Is this ACK the answer to the probe, and what does it say?
    pub(super) fn judge_probe(&mut self, ack: &AckInput<'_>, dsack: Option<SackBlock>, cx: &mut Context<'_>) {
        let Aen::Sent { end, .. } = self.aen else { return };
        let literal = self.switches.timeout == TimeoutProcedure::AenLiteral;
        let newest = cx.segments.len().checked_sub(1).map(|i| cx.segments.tags(i));
        let sacked = newest.is_some_and(|t| t.any(Tags::SACKED)) || dsack.is_some_and(|d| d.end == end);
        let Some(verdict) = self.aen.judge(literal, ack, sacked, dsack) else { return };
        self.aen = Aen::Off;
        cx.causes.push(verdict.cause());
        match verdict {
            AenVerdict::Acks | AenVerdict::Probe => {}
            AenVerdict::Tail => self.on_probe_repair(ack.now, cx),
            AenVerdict::Data => {
                let (now, snd_una, snd_nxt) = (ack.now, ack.snd_una, ack.snd_nxt);
                let expiry = Expiry {
                    window_shut: false,
                    now,
                    snd_una,
                    snd_nxt,
                    new_data_waiting: ack.new_data_waiting,
                    tail_inside: false,
                    unsent_in_window: false,
                };
                self.enter_loss(&expiry, false, cx);
            }
        }
    }

    /// Segments that were too big for the path go again in parts, in the state Loss, which cuts nothing: they
    /// say nothing of congestion.
    pub(super) fn repair_without_cut(&mut self, why: Resegmented, at: &Expiry, cx: &mut Context<'_>) {
        match (why, self.state) {
            (Resegmented::PathShrank, RecoveryState::Cwr) => cx.reduce_to(cx.window.ssthresh()),
            (Resegmented::PathShrank, RecoveryState::Open | RecoveryState::Disorder) => {}
            (Resegmented::ProbeLost { alone: true }, RecoveryState::Recovery) => {
                // RFC 4821 §7.6.2: the probe alone was the reason for the cut.
                let Some(undo) = self.undo.take() else { return };
                undo.apply(at.now, Cause::Undo, cx);
            }
            _ => return,
        }
        self.undo = None;
        self.f_rto = FRto::Off;
        self.tail.reset();
        (self.timed_out, self.fast) = (false, true);
        self.state = RecoveryState::Loss;
        self.high_seq = at.snd_nxt;
    }

    /// Open or Disorder, by what is SACKed.
    pub(super) fn settle_disorder(&mut self, cx: &Context<'_>) {
        if matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            let orderly = cx.segments.sacked_out().is_zero();
            self.state = if orderly { RecoveryState::Open } else { RecoveryState::Disorder };
        }
    }

    /// The window in a reduction (RFC 9937 §6.2).
    pub(super) fn reduce(&mut self, delivered: Packets, safe: bool, cx: &mut Context<'_>) {
        if self.switches.reduction == Reduction::Prr
            && let Some(cwnd) =
                self.prr.on_ack(delivered, cx.segments.in_flight(), cx.window.ssthresh(), safe)
        {
            cx.reduce_to(cwnd);
        }
    }

    /// The window after an ACK: it comes down, grows, or stays. `before`: segments in flight when it arrived.
    pub(super) fn resize(
        &mut self,
        ack: &AckInput<'_>,
        before: Packets,
        news: &AckDelta,
        cx: &mut Context<'_>,
    ) {
        let mut sample = cx.sample(ack, &Default::default(), before);
        sample.acked = Packets::new(news.acked);
        sample.delivered = news.delivered();
        sample.marked = ack.marked.min(sample.delivered);
        sample.lost = Packets::new(news.lost);
        sample.rtt = news.newest.map(|at| ack.now.since(at));
        sample.state = self.state;
        // Segments that wait to be sent again fill the window as new ones would.
        sample.cwnd_limited |= self.state == RecoveryState::Loss;
        cx.measure(&sample);
        match self.state {
            RecoveryState::Recovery | RecoveryState::Cwr => {
                self.reduce(news.delivered(), news.advanced && news.lost == 0, cx);
            }
            _ if news.acked > 0 && news.may_grow => cx.grow(&sample),
            _ => {}
        }
        if cx.cc.owns_window() {
            sample.in_flight = cx.segments.in_flight();
            cx.cc.on_ack(cx.window, &sample);
        }
    }

    pub(super) fn arm_probe(&mut self, ack: &AckInput<'_>, advanced: bool, cx: &mut Context<'_>) {
        if !self.switches.tail_loss_probe {
            return;
        }
        if self.in_recovery()
            || self.aen.holds()
            || cx.segments.is_empty()
            || !cx.segments.sacked_out().is_zero()
        {
            self.tail.deadline = None;
        } else if advanced {
            let rto = Some(cx.rto.deadline(ack.now));
            self.tail.arm(ack.now, cx.rto.srtt(), rto, cx.segments);
        }
    }
}
