//! The recovery of Linux 6: RACK and tail loss probes where there is SACK, NewReno where there is none, PRR,
//! F-RTO and undo, with the kernel's states, counters and its one timer for all of them.
//!
//! Where the RFCs leave something open, or Linux departs from them, this does as Linux does:
//! `crates/capi/tests/against_linux` plays random programs to both. Begin at [`ack`]: what an acknowledgment
//! goes through. [`board`] tags segments, [`rack`] finds the lost ones, [`states`] enters and leaves the
//! congestion states, [`timer`] is the timer, [`usage`] knows whether the window is used.

mod ack;
mod ack_flags;
mod board;
mod rack;
mod states;
mod timer;
mod usage;

use super::{
    AckInput, AckOutcome, Context, Expiry, Grant, LossRecovery, Pushed, RecoveryTimer, Resegmented, SendView,
    SentKind, Tallies,
};
use crate::cc::Cut;
use crate::config::Linux;
use crate::segments::{Segments, Tags};
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Seq, Span};
use rack::LinuxRack;
use timer::{LinuxTimer, Timer};
use usage::Usage;

/// What may leave after an acknowledgment or a timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Resend {
    /// Nothing is sent again.
    #[default]
    Nothing,
    /// What is lost, as the window allows.
    Lost,
    /// New data first; if there was none, what is lost (RFC 5682 §3.1 step 2b).
    NewFirst,
    /// The head, whatever the window says: the retransmission timer fired.
    Head,
    /// The last segment, which is not counted as a retransmission in flight.
    Probe,
}

/// What would undo a reduction.
#[derive(Clone, Copy, Debug, Default)]
struct LinuxUndo {
    /// SND.UNA when the episode began; none: nothing is to be undone.
    marker: Option<Seq>,
    /// Retransmissions that no D-SACK has answered; below zero: none was sent yet.
    open: i64,
    /// Our clock, as TSval, at the first retransmission of the episode.
    stamp: Option<u32>,
}

/// Proportional rate reduction (RFC 9937).
#[derive(Clone, Copy, Debug, Default)]
struct LinuxPrr {
    prior_cwnd: u32,
    delivered: u32,
    out: u32,
}

/// State of the recovery besides segments and window.
#[derive(Clone, Debug)]
pub struct LinuxRecovery {
    switches: Linux,
    sack: bool,
    state: RecoveryState,
    /// SND.NXT when the present state began.
    high_seq: Seq,
    rack: LinuxRack,
    prr: LinuxPrr,
    undo: LinuxUndo,
    /// ssthresh before the reduction; none: it must not be undone.
    prior_ssthresh: Option<Packets>,
    /// Degree of reordering, in segments.
    reordering: u32,
    /// F-RTO is under way.
    frto: bool,
    /// SND.NXT at the probe, until it is answered; whether it repeated a segment.
    probe: Option<(Seq, bool)>,
    /// Timeouts in a row.
    timeouts: u32,
    timer: Timer,
    resend: Resend,
    /// The transmit queue had no room for the head: it stays due.
    refused: bool,
    /// The loss probe may send new data beyond the window.
    probe_new: bool,
    usage: Usage,
    tallies: Tallies,
    /// Segments found lost so far.
    lost: u64,
}

impl LinuxRecovery {
    /// A connection without losses so far. `sack`: both ends use it.
    pub fn new(switches: Linux, sack: bool) -> Self {
        LinuxRecovery {
            switches,
            sack,
            state: RecoveryState::Open,
            high_seq: Seq::default(),
            rack: LinuxRack::default(),
            prr: LinuxPrr::default(),
            undo: LinuxUndo::default(),
            prior_ssthresh: None,
            reordering: switches.reordering.get(),
            frto: false,
            probe: None,
            timeouts: 0,
            timer: Timer::default(),
            resend: Resend::Nothing,
            refused: false,
            probe_new: false,
            usage: Usage::default(),
            tallies: Tallies::default(),
            lost: 0,
        }
    }

    /// End of the highest segment SACKed; SND.UNA if none is.
    fn highest_sacked(&self, segments: &Segments, snd_una: Seq) -> Seq {
        let index = segments.fackets_out().get().checked_sub(1).filter(|_| !segments.sacked_out().is_zero());
        index.and_then(|i| segments.row(i as usize)).map_or(snd_una, |row| row.end())
    }

    fn in_reduction(&self) -> bool {
        matches!(self.state, RecoveryState::Cwr | RecoveryState::Recovery)
    }

    /// A segment of the queue is lost, or its retransmission is.
    fn lose(&mut self, index: usize, segments: &mut Segments) {
        let tags = segments.tags(index);
        if tags.any(Tags::SACKED) {
            return;
        }
        if !tags.any(Tags::LOST) {
            segments.mark_lost(index);
            self.lost += 1;
        } else if tags.any(Tags::RETRANSMITTED) {
            segments.mark_retransmission_lost(index);
            self.lost += 1;
        }
    }

    /// Something was sent again and is not acknowledged.
    fn any_resent(segments: &Segments) -> bool {
        !segments.retrans_out().is_zero() || segments.tags(0).any(Tags::EVER_RETRANSMITTED)
    }
}

impl LossRecovery for LinuxRecovery {
    fn on_ack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome {
        self.rack.forget_judged(ack.prior_snd_una);
        let outcome = self.process(ack, cx);
        if cx.segments.is_empty() {
            self.rack.forget_copies();
        }
        outcome
    }

    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant> {
        let segments = view.segments;
        let room = segments.in_flight() < view.cwnd;
        match self.resend {
            Resend::Nothing | Resend::NewFirst => None,
            Resend::Probe => {
                let index = segments.len().checked_sub(1)?;
                Some(Grant { index, cause: Cause::TailLossProbe })
            }
            Resend::Head => {
                (!segments.is_empty()).then_some(Grant { index: 0, cause: Cause::TimeoutRetransmit })
            }
            Resend::Lost if room && segments.retrans_out() < segments.lost_out() => {
                let index = segments.first_waiting()?;
                let cause = match self.state {
                    RecoveryState::Loss => Cause::LossRetransmit,
                    _ if segments.row(index).is_some_and(|r| r.lost_again()) => Cause::LostRetransmission,
                    _ => Cause::FastRetransmit,
                };
                Some(Grant { index, cause })
            }
            Resend::Lost => None,
        }
    }

    fn on_sent(&mut self, sent: &SentKind, segments: &Segments) {
        if sent.fresh {
            let first = segments.len() == 1;
            if first || self.timer.kind() == Some(LinuxTimer::LossProbe) {
                self.timer.rearm(sent.now, sent.rto, segments);
            }
            return;
        }
        self.tallies.retransmitted += 1;
        self.rack.on_retransmit(sent.now, sent.index, segments);
        match self.resend {
            Resend::Probe => {
                self.probe = Some((sent.snd_nxt, true));
                self.timer.start(LinuxTimer::Retransmission, sent.now + sent.rto);
                self.resend = Resend::Nothing;
                return;
            }
            Resend::Head => self.resend = Resend::Nothing,
            Resend::Lost if sent.index == 0 && self.timer.kind() != Some(LinuxTimer::Reordering) => {
                self.timer.start(LinuxTimer::Retransmission, sent.now + sent.rto);
            }
            _ => {}
        }
        if self.in_reduction() {
            self.prr.out += 1;
        }
        self.undo.stamp.get_or_insert(sent.timestamp);
        self.undo.open = self.undo.open.max(0) + 1;
    }

    fn counts_as_retransmission(&self) -> bool {
        self.resend != Resend::Probe
    }

    fn on_transmit_queue_full(&mut self, now: Instant, _: Seq, snd_nxt: Seq, cx: &mut Context<'_>) {
        self.refused = self.resend == Resend::Head;
        self.enter_cwr(now, snd_nxt, Cut::FastRetransmit, Cause::CutTransmitQueue, cx);
    }
    fn on_timeout(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        self.enter_loss(expiry, cx);
        self.resend = Resend::Head;
        // What goes again behind a shut window only probes it.
        self.timeouts += u32::from(!expiry.window_shut);
    }

    fn owns_timer(&self) -> bool {
        true
    }

    fn set_timer(&mut self, at: Option<Instant>) {
        match at {
            Some(at) => self.timer.start(LinuxTimer::Retransmission, at),
            None => self.timer.stop(),
        }
    }

    fn deadline(&self) -> Option<(Instant, RecoveryTimer)> {
        self.timer.deadline()
    }

    fn on_timer(&mut self, expiry: &Expiry, cx: &mut Context<'_>) -> bool {
        match self.timer.kind() {
            Some(LinuxTimer::Reordering) => self.on_reordering_timer(expiry, cx),
            Some(LinuxTimer::LossProbe) => self.on_probe_timer(expiry, cx),
            Some(LinuxTimer::Retransmission) => {
                self.timer.stop();
                return true;
            }
            None => {}
        }
        false
    }

    /// What was found lost goes before new data (tcp_tsq_write).
    fn on_pacing_timer(&mut self) {
        if self.resend == Resend::Nothing {
            self.resend = Resend::Lost;
        }
    }

    fn pass_is_over(&mut self, snd_nxt: Seq) {
        match self.resend {
            // RFC 5682 §3.1 step 2b: without new data the timeout is taken for real.
            Resend::NewFirst if !snd_nxt.after(self.high_seq) => {
                self.frto = false;
                self.resend = Resend::Lost;
            }
            Resend::Head if std::mem::take(&mut self.refused) => {}
            _ => self.resend = Resend::Nothing,
        }
    }

    fn new_data_first(&self) -> bool {
        self.resend == Resend::NewFirst
    }

    fn probes_new(&self) -> bool {
        self.probe_new
    }

    fn pushed(&mut self, pushed: &Pushed, cx: &mut Context<'_>) {
        self.after_push(pushed, cx);
    }

    fn on_resegmented(&mut self, why: Resegmented, at: &Expiry, cx: &mut Context<'_>) {
        self.simple_retransmit(why, at, cx);
    }

    fn state(&self) -> RecoveryState {
        self.state
    }

    fn may_send_new(&self, segments: &Segments, cwnd: Packets) -> bool {
        self.probe_new || segments.in_flight() < cwnd
    }

    fn tallies(&self) -> Tallies {
        Tallies { reordering: Packets::new(self.reordering), ..self.tallies }
    }
}
