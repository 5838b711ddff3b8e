//! The recovery of Linux 2.6.15 to 2.6.24: FACK scoreboard, rate halving, undo. The switches of
//! [`config::Linux26`] select the kernel, or one defect alone. The README beside this file maps each method
//! to the kernel's function.

mod scoreboard;
mod states;
mod undo;

use super::{AckInput, AckOutcome, Context, Expiry, Grant, LossRecovery, Resegmented, SendView, SentKind};
use crate::cc::{AckSample, Cut};
use crate::config::{self, Abc, LostRtx};
use crate::segments::{Segments, Tags};
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Seq};
use farpace_wire::tcp::SackBlock;

/// Greatest degree of reordering that is learned.
const MAX_REORDERING: u32 = 127;
/// Segments that may leave at once after a window was moderated.
const MAX_BURST: u32 = 3;

/// State of the recovery besides scoreboard and window. Names are the kernel's.
#[derive(Clone, Debug)]
pub struct Linux26Recovery {
    switches: config::Linux26,
    state: RecoveryState,
    /// SND.NXT when the present state began.
    high_seq: Seq,
    /// SND.UNA when the reduction that might be undone began.
    undo_marker: Option<Seq>,
    /// Retransmissions that no D-SACK has answered yet. May go below zero, as in the kernel.
    undo_retrans: i64,
    /// ssthresh before the reduction; none: there is nothing to go back to.
    prior_ssthresh: Option<Packets>,
    /// Timestamp of the first retransmission.
    retrans_stamp: Option<u32>,
    /// Timeouts in a row.
    retransmits: u32,
    reordering: u32,
    /// FACK: holes below the highest SACK count as lost. Off for good once reordering was seen.
    fack: bool,
    /// The blocks of the last ACK in wire order. Until 2.6.20 entries beyond its count keep older values.
    cache: [SackBlock; 4],
    /// Where the last walk stopped.
    hint: Option<usize>,
    /// The next retransmission is the timeout's.
    timed_out: bool,
    /// Entries of the queue that the kernel would have visited to read SACK blocks.
    visited: u64,
}

/// What an ACK meant, found out step by step (the kernel's FLAG_ bits).
#[derive(Clone, Copy, Debug, Default)]
struct AckFlags26 {
    /// Data was newly acknowledged.
    data_acked: bool,
    /// A SACK told something new.
    data_sacked: bool,
    /// The first block told of a duplicate.
    dsack: bool,
    /// A SACK beyond `high_seq` proves that something below is lost.
    data_lost: bool,
    /// SND.UNA unchanged, no data, no window update.
    is_dupack: bool,
    ece: bool,
}

impl Linux26Recovery {
    /// A connection without losses so far.
    pub fn new(switches: config::Linux26) -> Self {
        Linux26Recovery {
            switches,
            state: RecoveryState::Open,
            high_seq: Seq::default(),
            undo_marker: None,
            undo_retrans: 0,
            prior_ssthresh: None,
            retrans_stamp: None,
            retransmits: 0,
            reordering: switches.reordering.get(),
            fack: true,
            cache: [SackBlock::default(); 4],
            hint: None,
            timed_out: false,
            visited: 0,
        }
    }

    /// The kernel 2.6.24 marks retransmitted segments lost too.
    fn marks_retransmitted(&self) -> bool {
        self.switches.lost_rtx == LostRtx::NewlySacked
    }

    fn account_bytes(&self, ack: &AckInput<'_>, cx: &mut Context<'_>) {
        let acked = ack.snd_una.bytes_since(ack.prior_snd_una);
        let fed = match (self.switches.abc, self.state) {
            (Abc::Off, _) => 0,
            (_, RecoveryState::Open | RecoveryState::Disorder) => acked,
            (Abc::Fixed | Abc::Two, RecoveryState::Loss) => acked.min(cx.window.mss()),
            // The first defect: in Loss nothing is counted, so slow start waits for ever.
            _ => 0,
        };
        cx.window.bytes_acked = cx.window.bytes_acked.saturating_add(fed);
    }

    /// Growth is allowed in every state but Recovery and CWR; under ECN echo only below ssthresh.
    fn may_raise_cwnd(&self, flags: AckFlags26, cx: &Context<'_>) -> bool {
        (!flags.ece || cx.window.cwnd() < cx.window.ssthresh())
            && !matches!(self.state, RecoveryState::Recovery | RecoveryState::Cwr)
    }
}

impl LossRecovery for Linux26Recovery {
    fn on_ack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome {
        if ack.ack.before(ack.prior_snd_una) {
            if cx.sack && !ack.sack.is_empty() {
                self.update_scoreboard(ack, cx);
            }
            return AckOutcome::default();
        }
        self.account_bytes(ack, cx);
        let mut flags = AckFlags26 { ece: ack.ece, ..AckFlags26::default() };
        if cx.sack && !ack.sack.is_empty() {
            let news = self.update_scoreboard(ack, cx);
            flags.data_sacked = news.data_sacked;
            flags.data_lost = news.data_lost;
            flags.dsack = news.dsack;
        }
        if cx.segments.is_empty() {
            return AckOutcome::default();
        }
        let prior_in_flight = cx.segments.in_flight();
        let done = cx.drop_acknowledged(ack);
        flags.data_acked = !done.packets.is_zero();
        if flags.data_acked {
            self.hint = None; // every segment that is dropped clears the hints
        }
        let advanced = ack.snd_una != ack.prior_snd_una;
        flags.is_dupack =
            !advanced && !ack.has_data && !ack.window_update && !ack.answers_probe && !flags.data_acked;
        let plain = ack.has_data || ack.window_update || flags.data_acked;
        let dubious = !plain || flags.data_sacked || flags.ece || self.state != RecoveryState::Open;
        let grow = AckSample { state: self.state, ..cx.sample(ack, &done, prior_in_flight) };
        cx.measure(&grow);
        if flags.data_acked && (!dubious || self.may_raise_cwnd(flags, cx)) {
            cx.cc.on_ack(cx.window, &grow);
        }
        let reneged = dubious && self.run_state_machine(ack, flags, done.packets, cx);
        AckOutcome { acknowledged: done, reneged }
    }

    fn take_visited(&mut self) -> u64 {
        std::mem::take(&mut self.visited)
    }

    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant> {
        let segments = view.segments;
        if segments.is_empty() || segments.in_flight() >= view.cwnd {
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
        // Forward retransmission: only in Recovery, and only if nothing new can be sent.
        if self.state != RecoveryState::Recovery || view.can_send_new {
            return None;
        }
        let end = segments.fackets_out().get() as usize;
        let index = segments.find(0, end, Tags::COUNTED, Tags::NONE)?;
        Some(Grant { index, cause: Cause::ForwardRetransmit })
    }

    fn on_sent(&mut self, sent: &SentKind, _: &Segments) {
        if !sent.fresh {
            self.timed_out = false;
            self.retrans_stamp.get_or_insert(sent.timestamp);
            self.undo_retrans += 1;
        }
    }

    fn on_transmit_queue_full(&mut self, now: Instant, _: Seq, snd_nxt: Seq, cx: &mut Context<'_>) {
        // tcp_enter_cwr
        self.enter_cwr(now, snd_nxt, Cut::FastRetransmit, Cause::CutTransmitQueue, cx);
    }
    fn on_timeout(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        // A SACKed head that times out: the receiver has dropped it (RFC 2018 §8).
        let forget = cx.segments.tags(0).any(Tags::SACKED);
        self.enter_loss(expiry.now, expiry.snd_una, expiry.snd_nxt, forget, cx);
        self.retransmits += 1;
        self.timed_out = true;
    }

    /// The kernel's tcp_simple_retransmit: the segments go again in the state Loss, with the window as it is.
    fn on_resegmented(&mut self, why: Resegmented, at: &Expiry, cx: &mut Context<'_>) {
        self.hint = None;
        if why == Resegmented::PathShrank && self.state != RecoveryState::Loss {
            cx.window.set_ssthresh(self.current_ssthresh(cx));
            self.prior_ssthresh = None;
            self.undo_marker = None;
            self.high_seq = at.snd_nxt;
            self.state = RecoveryState::Loss;
        }
    }

    fn state(&self) -> RecoveryState {
        self.state
    }
}
