//! Fast retransmit and fast recovery without SACK (RFC 5681 §3.2, RFC 6582).

use super::{AckInput, AckOutcome, Context, Grant, LossRecovery, SendView};
use crate::cc::{AckSample, Cut, Event};
use crate::segments::{Segments, Tags};
use farpace_trace::{Cause, RecoveryState};
use farpace_units::{Packets, Seq};

/// Duplicate ACKs that prove a loss (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;

/// State of NewReno.
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    state: RecoveryState,
    dup_acks: u32,
    /// SND.NXT when recovery or loss began (RFC 6582 "recover").
    recover: Option<Seq>,
    /// The next retransmission is the timeout's.
    timed_out: bool,
}

impl NewReno {
    /// The head is lost; `next_segment` will send it.
    fn retransmit_head(segments: &mut Segments) {
        if segments.tags(0).any(Tags::RETRANSMITTED) {
            segments.mark_retransmission_lost(0);
        } else {
            segments.mark_lost(0);
        }
    }
}

impl LossRecovery for NewReno {
    fn on_ack(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) -> AckOutcome {
        if ack.ack.before(ack.prior_snd_una) || cx.segments.is_empty() {
            return AckOutcome::default();
        }
        let before = self.in_flight(cx.segments);
        let done = cx.drop_acknowledged(ack);
        let outcome = AckOutcome { acknowledged: done, reneged: false };
        if done.packets.is_zero() {
            // RFC 5681 §2: a duplicate carries no data, no window update, and acknowledges nothing.
            if !ack.has_data && !ack.window_update && ack.snd_una == ack.prior_snd_una {
                self.on_duplicate(ack, cx);
            }
            return outcome;
        }
        self.dup_acks = 0;
        let grow = AckSample { now: ack.now, acked: done.packets, in_flight_before: before };
        cx.cc.on_acked(done.packets, self.state);
        let covered = self.recover.is_none_or(|r| ack.snd_una.after_eq(r));
        match self.state {
            RecoveryState::Recovery if covered => {
                // RFC 6582 §3.2 step 3, full acknowledgment, option 1: no burst.
                let flight = cx.segments.packets_out().get();
                cx.window.set_cwnd(Packets::new(cx.window.ssthresh().get().min(flight.max(1) + 1)));
                self.state = RecoveryState::Open;
            }
            RecoveryState::Recovery => {
                // Partial acknowledgment: the next hole, and a window deflated by what has left.
                let cwnd = cx.window.cwnd() - done.packets + Packets::new(1);
                cx.window.set_cwnd(cwnd);
                Self::retransmit_head(cx.segments);
            }
            RecoveryState::Loss => {
                cx.window.bytes_acked = ack.snd_una.bytes_since(ack.prior_snd_una);
                cx.cc.on_ack(cx.window, &grow);
                if covered {
                    self.state = RecoveryState::Open;
                }
            }
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr => {
                self.state = RecoveryState::Open;
                cx.window.bytes_acked += ack.snd_una.bytes_since(ack.prior_snd_una);
                cx.cc.on_ack(cx.window, &grow);
            }
        }
        outcome
    }

    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant> {
        let index = view.segments.first_waiting()?;
        let cause = match self.state {
            _ if self.timed_out => Cause::TimeoutRetransmit,
            RecoveryState::Loss => Cause::LossRetransmit,
            _ if view.segments.row(index).is_some_and(|r| r.lost_again) => Cause::LostRetransmission,
            _ => Cause::FastRetransmit,
        };
        let room = self.state != RecoveryState::Loss || view.segments.in_flight() < view.cwnd;
        room.then_some(Grant { index, cause })
    }

    fn on_retransmit(&mut self, _: u32) {
        self.timed_out = false;
    }

    fn on_timeout(&mut self, _: Seq, snd_nxt: Seq, cx: &mut Context<'_>) {
        if self.state != RecoveryState::Loss {
            cx.cut(Cut::Timeout);
        }
        cx.segments.lose_all(true);
        cx.window.set_cwnd(Packets::new(1));
        cx.window.cwnd_cnt = 0;
        cx.window.bytes_acked = 0;
        cx.cc.on_event(Event::EnterLoss);
        self.state = RecoveryState::Loss;
        self.recover = Some(snd_nxt);
        self.dup_acks = 0;
        self.timed_out = true;
    }

    fn state(&self) -> RecoveryState {
        self.state
    }

    fn in_flight(&self, segments: &Segments) -> Packets {
        // The inflated window of RFC 5681 is compared with FlightSize, not with an estimate of the pipe.
        if self.state == RecoveryState::Loss { segments.in_flight() } else { segments.packets_out() }
    }
}

impl NewReno {
    fn on_duplicate(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) {
        self.dup_acks += 1;
        match self.state {
            RecoveryState::Recovery => cx.window.set_cwnd(cx.window.cwnd() + Packets::new(1)),
            RecoveryState::Loss => {}
            // RFC 6582 §3.2 step 1: only above what an earlier recovery covered.
            _ if self.dup_acks == DUP_THRESH && self.recover.is_none_or(|r| ack.snd_una.after(r)) => {
                let flight = cx.segments.packets_out();
                let was = cx.window.cwnd();
                // RFC 5681 eq. 4 speaks of FlightSize; a window that was not used must not count.
                cx.window.set_cwnd(was.min(flight));
                cx.cut(Cut::FastRetransmit);
                cx.window.cwnd_cnt = 0;
                cx.window.set_cwnd(cx.window.ssthresh() + Packets::new(DUP_THRESH));
                self.recover = Some(ack.snd_nxt);
                self.state = RecoveryState::Recovery;
                Self::retransmit_head(cx.segments);
            }
            _ => self.state = RecoveryState::Disorder,
        }
    }
}
