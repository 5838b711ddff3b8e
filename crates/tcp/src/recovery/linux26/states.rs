//! The state machine that runs for every dubious ACK: Open, Disorder, CWR, Recovery, Loss.

use super::{AckFlags26, Linux26Recovery};
use crate::cc::Cut;
use crate::config::Reduction;
use crate::recovery::{AckInput, Context};
use crate::segments::Tags;
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Seq};

impl Linux26Recovery {
    /// Runs the machine; the steps A to G are those of the kernel's comment. True: the peer has reneged.
    pub(super) fn run_state_machine(
        &mut self,
        ack: &AckInput<'_>,
        flags: AckFlags26,
        acked: Packets,
        cx: &mut Context<'_>,
    ) -> bool {
        // A. ECN echo forbids undo.
        if flags.ece {
            self.prior_ssthresh = None;
        }
        // B. The head cannot be SACKed: the receiver has dropped what it had.
        if cx.segments.tags(0).any(Tags::SACKED) {
            cx.causes.push(Cause::Reneging);
            self.enter_loss(ack.now, ack.snd_una, ack.snd_nxt, true, cx);
            self.retransmits += 1;
            return true;
        }
        // C. A SACK beyond high_seq proves holes.
        let fackets = cx.segments.fackets_out().get();
        if flags.data_lost
            && ack.snd_una.before(self.high_seq)
            && self.state != RecoveryState::Open
            && fackets > self.reordering
        {
            self.mark_head_lost(fackets - self.reordering, cx);
        }
        // E. Leave the state when high_seq is reached.
        if self.state == RecoveryState::Open {
            self.retrans_stamp = None;
        } else if !ack.snd_una.before(self.high_seq) && self.leave_state(ack, cx) {
            return false;
        }
        // F. Process the state.
        let advanced = ack.snd_una != ack.prior_snd_una;
        let do_lost = match self.state {
            RecoveryState::Recovery => {
                if advanced {
                    self.count_without_sack(-i64::from(acked.get()), cx);
                    self.try_undo_partial(ack.tsecr, acked, cx)
                } else {
                    self.count_without_sack(i64::from(flags.is_dupack), cx);
                    flags.is_dupack
                }
            }
            RecoveryState::Loss => {
                if flags.data_acked {
                    self.retransmits = 0;
                }
                if !self.try_undo_loss(ack.tsecr, cx) {
                    self.moderate_cwnd(cx);
                    return false;
                }
                if self.state != RecoveryState::Open {
                    return false;
                }
                if !self.enter_recovery_if_due(ack, flags, advanced, cx) {
                    return false;
                }
                flags.is_dupack
            }
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr => {
                if !self.enter_recovery_if_due(ack, flags, advanced, cx) {
                    return false;
                }
                flags.is_dupack
            }
        };
        // G. Mark losses, bring the window down; the retransmit queue runs when the connection sends.
        if do_lost || self.head_timed_out(ack.now, cx) {
            self.mark_losses(ack.now, cx);
        }
        let progress = advanced || flags.data_sacked || flags.dsack || (!cx.sack && flags.is_dupack);
        if self.switches.reduction == Reduction::RateHalving || progress {
            self.cwnd_down(cx);
        }
        false
    }

    /// Step E. True: nothing more is to be done for this ACK.
    fn leave_state(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> bool {
        match self.state {
            RecoveryState::Loss => {
                self.retransmits = 0;
                self.try_undo_recovery(ack.snd_una, ack.tsecr, cx)
            }
            RecoveryState::Cwr => {
                // Held until something above high_seq is acknowledged.
                if ack.snd_una != self.high_seq {
                    cx.window.set_cwnd(cx.window.cwnd().min(cx.window.ssthresh()));
                    self.state = RecoveryState::Open;
                }
                false
            }
            RecoveryState::Disorder => {
                self.try_undo_dsack(cx);
                if self.undo_marker.is_none() || !cx.sack || ack.snd_una != self.high_seq {
                    self.undo_marker = None;
                    self.state = RecoveryState::Open;
                }
                false
            }
            RecoveryState::Recovery => {
                cx.segments.set_assumed_out(Packets::ZERO);
                if self.try_undo_recovery(ack.snd_una, ack.tsecr, cx) {
                    return true;
                }
                cx.window.set_cwnd(cx.window.cwnd().min(cx.window.ssthresh()));
                false
            }
            RecoveryState::Open => false,
        }
    }

    /// Step F for the states without retransmissions. True: Recovery has begun.
    fn enter_recovery_if_due(
        &mut self,
        ack: &AckInput<'_>,
        flags: AckFlags26,
        advanced: bool,
        cx: &mut Context<'_>,
    ) -> bool {
        if !cx.sack {
            if advanced {
                cx.segments.set_assumed_out(Packets::ZERO);
            }
            self.count_without_sack(i64::from(flags.is_dupack), cx);
        }
        if self.state == RecoveryState::Disorder {
            self.try_undo_dsack(cx);
        }
        if !self.time_to_recover(ack, cx) {
            self.try_to_open(ack, flags, cx);
            return false;
        }
        self.high_seq = ack.snd_nxt;
        self.undo_marker = Some(ack.snd_una);
        self.undo_retrans = i64::from(cx.segments.retrans_out().get());
        self.prior_ssthresh = None;
        if self.state < RecoveryState::Cwr {
            if !flags.ece {
                self.prior_ssthresh = Some(self.current_ssthresh(cx));
            }
            cx.cut(ack.now, Cut::FastRetransmit);
        }
        cx.window.bytes_acked = 0;
        cx.window.cwnd_cnt = 0;
        self.state = RecoveryState::Recovery; // cwnd itself is not cut here: rate halving does that
        true
    }

    /// Without SACK each duplicate ACK stands for one segment that has arrived; a partial ACK takes its own
    /// segments off, all but the retransmitted one.
    fn count_without_sack(&self, change: i64, cx: &mut Context<'_>) {
        if cx.sack || change == 0 {
            return;
        }
        let now = i64::from(cx.segments.assumed_out().get());
        let change = if change < 0 { (change + 1).min(0) } else { change };
        cx.segments.set_assumed_out(Packets::new(u32::try_from((now + change).max(0)).unwrap_or(u32::MAX)));
    }

    fn time_to_recover(&self, ack: &AckInput<'_>, cx: &Context<'_>) -> bool {
        let segments = &*cx.segments;
        let fackets = if cx.sack { segments.fackets_out().get() } else { segments.sacked_out().get() + 1 };
        let packets_out = segments.packets_out().get();
        let may_send = ack.new_data_waiting && segments.in_flight() < cx.window.cwnd();
        let few = packets_out <= self.reordering
            && segments.sacked_out().get() >= (packets_out / 2).max(self.switches.reordering.get())
            && !may_send;
        !segments.lost_out().is_zero() || fackets > self.reordering || self.head_timed_out(ack.now, cx) || few
    }

    fn try_to_open(&mut self, ack: &AckInput<'_>, flags: AckFlags26, cx: &mut Context<'_>) {
        if cx.segments.retrans_out().is_zero() {
            self.retrans_stamp = None;
        }
        if flags.ece {
            self.enter_cwr(ack.now, ack.snd_nxt, Cut::Ecn, Cause::CutEcn, cx);
        }
        if self.state == RecoveryState::Cwr {
            self.cwnd_down(cx);
            return;
        }
        let disorder = !cx.segments.left_out().is_zero()
            || !cx.segments.retrans_out().is_zero()
            || self.undo_marker.is_some();
        let state = if disorder { RecoveryState::Disorder } else { RecoveryState::Open };
        if self.state != state {
            self.state = state;
            self.high_seq = ack.snd_nxt;
        }
        self.moderate_cwnd(cx);
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
        cx.window.bytes_acked = 0;
        if self.state < RecoveryState::Cwr {
            self.undo_marker = None;
            cx.cut_because(now, cut, cause);
            let most = cx.segments.in_flight() + Packets::new(1);
            cx.window.set_cwnd(cx.window.cwnd().min(most));
            cx.window.cwnd_cnt = 0;
            self.high_seq = snd_nxt;
            self.state = RecoveryState::Cwr;
        }
    }

    /// After a timeout, or when the receiver has reneged (`forget_sacks`).
    pub(super) fn enter_loss(
        &mut self,
        now: Instant,
        snd_una: Seq,
        snd_nxt: Seq,
        forget_sacks: bool,
        cx: &mut Context<'_>,
    ) {
        // One reduction per window.
        if self.state <= RecoveryState::Disorder
            || snd_una == self.high_seq
            || (self.state == RecoveryState::Loss && self.retransmits == 0)
        {
            self.prior_ssthresh = Some(self.current_ssthresh(cx));
            cx.cut(now, Cut::Timeout);
        }
        cx.window.set_cwnd(Packets::new(1));
        cx.window.cwnd_cnt = 0;
        cx.window.bytes_acked = 0;
        let ever_retransmitted = cx.segments.lose_all(forget_sacks);
        self.undo_retrans = 0;
        self.undo_marker = if ever_retransmitted || forget_sacks { None } else { Some(snd_una) };
        self.reordering = self.reordering.min(self.switches.reordering.get());
        self.state = RecoveryState::Loss;
        self.high_seq = snd_nxt;
        self.hint = None;
        cx.enter_loss(now);
    }

    pub(super) fn current_ssthresh(&self, cx: &Context<'_>) -> Packets {
        let (cwnd, ssthresh) = (cx.window.cwnd().get(), cx.window.ssthresh());
        match self.state {
            RecoveryState::Cwr | RecoveryState::Recovery => ssthresh,
            _ => ssthresh.max(Packets::new((cwnd / 2).saturating_add(cwnd / 4))),
        }
    }

    fn head_timed_out(&self, now: Instant, cx: &Context<'_>) -> bool {
        cx.segments.row(0).is_some_and(|head| now.since(head.sent_at) > cx.rto.rto())
    }

    /// The kernel's update_scoreboard: what lies far enough below the highest SACK is lost, and so is what
    /// has waited longer than the timeout.
    fn mark_losses(&self, now: Instant, cx: &mut Context<'_>) {
        let distance = if self.fack && cx.sack {
            cx.segments.fackets_out().get().saturating_sub(self.reordering).max(1)
        } else {
            1
        };
        self.mark_head_lost(distance, cx);
        if cx.sack && self.head_timed_out(now, cx) {
            let rto = cx.rto.rto();
            for i in 0..cx.segments.len() {
                if cx.segments.row(i).is_none_or(|r| now.since(r.sent_at) <= rto) {
                    break;
                }
                if !cx.segments.tags(i).any(Tags::COUNTED) {
                    cx.segments.mark_lost(i);
                }
            }
        }
    }

    /// The first `n` segments are lost, as far as they end at or below `high_seq` and have no tag.
    fn mark_head_lost(&self, n: u32, cx: &mut Context<'_>) {
        let below = cx.segments.index_at_or_after(self.high_seq);
        let end = below.min(n as usize);
        let mask = if self.marks_retransmitted() { Tags::SACKED.with(Tags::LOST) } else { Tags::COUNTED };
        let mut at = 0;
        while let Some(i) = cx.segments.find(at, end, mask, Tags::NONE) {
            if cx.segments.row(i).is_some_and(|r| r.end().after(self.high_seq)) {
                break;
            }
            cx.segments.mark_lost(i);
            at = i + 1;
        }
    }

    /// Rate halving: one segment for every two ACKs, not below the floor; and never more than one above
    /// what is in flight, which may take it far below.
    fn cwnd_down(&self, cx: &mut Context<'_>) {
        let decrement = cx.window.cwnd_cnt + 1;
        cx.window.cwnd_cnt = decrement & 1;
        let (cwnd, floor) = (cx.window.cwnd(), cx.cc.min_cwnd(cx.window));
        let lower =
            if decrement >> 1 > 0 && cwnd > floor { cwnd - Packets::new(decrement >> 1) } else { cwnd };
        cx.window.set_cwnd(lower.min(cx.segments.in_flight() + Packets::new(1)));
    }
}
