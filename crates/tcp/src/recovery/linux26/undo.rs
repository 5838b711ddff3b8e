//! Taking a reduction back when it proves to be a mistake.

use super::{Linux26Recovery, MAX_BURST};
use crate::recovery::Context;
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Packets, Seq};

impl Linux26Recovery {
    /// cwnd <= in_flight + 3: no burst when much was acknowledged at once.
    pub(super) fn moderate_cwnd(&self, cx: &mut Context<'_>) {
        let most = cx.segments.in_flight() + Packets::new(MAX_BURST);
        cx.window.set_cwnd(cx.window.cwnd().min(most));
    }

    /// All retransmissions were needless: D-SACKs answered them all, or the ACK is older than the first.
    fn may_undo(&self, tsecr: Option<u32>) -> bool {
        let delayed = match (self.retrans_stamp, tsecr) {
            (None, _) => true,
            (Some(stamp), Some(echo)) => echo != 0 && (echo.wrapping_sub(stamp) as i32) < 0,
            (Some(_), None) => false,
        };
        self.undo_marker.is_some() && (self.undo_retrans == 0 || delayed)
    }

    fn undo_cwr(&mut self, restore_ssthresh: bool, cx: &mut Context<'_>) {
        match self.prior_ssthresh {
            Some(prior) => {
                let cwnd = cx.cc.undo_cwnd(cx.window);
                cx.window.set_cwnd(cwnd);
                if restore_ssthresh && prior > cx.window.ssthresh() {
                    cx.window.set_ssthresh(prior);
                }
            }
            None => cx.window.set_cwnd(cx.window.cwnd().max(cx.window.ssthresh())),
        }
        self.moderate_cwnd(cx);
        self.hint = None;
        cx.causes.push(Cause::Undo);
    }

    /// `high_seq` is reached. True: stay in the old state until something above it is acknowledged
    /// (connections without SACK, against false fast retransmits).
    pub(super) fn try_undo_recovery(
        &mut self,
        snd_una: Seq,
        tsecr: Option<u32>,
        cx: &mut Context<'_>,
    ) -> bool {
        if self.may_undo(tsecr) {
            self.undo_cwr(true, cx);
            self.undo_marker = None;
        }
        if snd_una == self.high_seq && !cx.sack {
            self.moderate_cwnd(cx);
            return true;
        }
        self.state = RecoveryState::Open;
        false
    }

    /// A partial ACK in Recovery. True: the next hole is lost too.
    pub(super) fn try_undo_partial(
        &mut self,
        tsecr: Option<u32>,
        acked: Packets,
        cx: &mut Context<'_>,
    ) -> bool {
        let failed = !cx.sack || cx.segments.fackets_out().get() > self.reordering;
        if !self.may_undo(tsecr) {
            return failed;
        }
        if cx.segments.retrans_out().is_zero() {
            self.retrans_stamp = None;
        }
        let fackets = if cx.sack { cx.segments.fackets_out() } else { cx.segments.sacked_out() };
        self.raise_reordering(fackets.get() + acked.get());
        self.undo_cwr(false, cx);
        false
    }

    /// D-SACKs have answered every retransmission.
    pub(super) fn try_undo_dsack(&mut self, cx: &mut Context<'_>) {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.undo_cwr(true, cx);
            self.undo_marker = None;
        }
    }

    /// The timeout was spurious: nothing is lost.
    pub(super) fn try_undo_loss(&mut self, tsecr: Option<u32>, cx: &mut Context<'_>) -> bool {
        if !self.may_undo(tsecr) {
            return false;
        }
        cx.segments.clear_lost();
        self.undo_cwr(true, cx);
        self.retransmits = 0;
        self.undo_marker = None;
        if cx.sack {
            self.state = RecoveryState::Open;
        }
        true
    }
}
