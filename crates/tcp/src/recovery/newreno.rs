//! Fast retransmit and fast recovery without SACK (RFC 5681 §3.2, RFC 6582), with limited transmit (RFC
//! 3042).

use super::{AckInput, AckOutcome, Context, Expiry, Grant, LossRecovery, Resegmented, SendView, SentKind};
use crate::cc::{AckSample, CongestionEvent, Cut};
use crate::segments::{Segments, Tags};
use farpace_events::{Cause, RecoveryState};
use farpace_units::{Instant, Packets, Seq};

/// Duplicate ACKs that prove a loss (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;
/// New segments that the first duplicate ACKs may send beyond the window (RFC 3042 §2).
const LIMITED_TRANSMIT: u32 = 2;

/// State of NewReno.
#[derive(Clone, Debug, Default)]
pub struct NewReno {
    state: RecoveryState,
    dup_acks: u32,
    /// SND.NXT when recovery or loss began (RFC 6582 "recover").
    recover: Option<Seq>,
    /// SND.NXT when the window was cut for a congestion mark: until then it is not cut again (RFC 3168
    /// §6.1.2).
    cwr_end: Seq,
    /// Duplicates that may still inflate the window in this recovery: as many as segments were outstanding.
    inflation: u32,
    /// Window and threshold before the latest fast recovery.
    before: (Packets, Packets),
    /// The next retransmission is the timeout's.
    timed_out: bool,
}

impl NewReno {
    /// RFC 5681 eq. 4 speaks of FlightSize; a window that was not used must not count.
    fn cut(now: Instant, cut: Cut, cx: &mut Context<'_>) {
        let flight = cx.segments.packets_out().max(Packets::new(1));
        cx.reduce_to(cx.window.cwnd().min(flight));
        cx.cut(now, cut);
    }

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
        // Once all before `recover` is acknowledged, RFC 6582 §3.2 asks nothing more of it; kept, it would
        // look newer than SND.UNA again 2 GiB later (RFC 9293 §3.4).
        if matches!(self.state, RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr) {
            self.recover = self.recover.filter(|recover| !ack.prior_snd_una.after(*recover));
        }
        let before = self.in_flight(cx.segments);
        let done = cx.drop_acknowledged(ack);
        let outcome = AckOutcome { acknowledged: done, reneged: false };
        self.on_mark(ack, cx);
        if done.packets.is_zero() {
            // RFC 5681 §2: a duplicate carries no data, no window update, and acknowledges nothing.
            if !ack.has_data && !ack.window_update && !ack.answers_probe && ack.snd_una == ack.prior_snd_una {
                self.on_duplicate(ack, cx);
            }
            return outcome;
        }
        self.dup_acks = 0;
        let grow = AckSample { state: self.state, ..cx.sample(ack, &done, before) };
        cx.measure(&grow);
        let covered = self.recover.is_none_or(|r| ack.snd_una.after_eq(r));
        match self.state {
            RecoveryState::Recovery if covered => {
                // RFC 6582 §3.2 step 3, full acknowledgment, option 1: no burst.
                let flight = cx.segments.packets_out().get();
                let cwnd = Packets::new(cx.window.ssthresh().get().min(flight.max(1) + 1));
                cx.reduce_to(cwnd);
                self.state = RecoveryState::Open;
                cx.cc.on_event(ack.now, cx.window, CongestionEvent::ExitRecovery);
            }
            RecoveryState::Recovery => {
                // Partial acknowledgment: the next hole, and a window deflated by what has left.
                cx.reduce_to(cx.window.cwnd() - done.packets + Packets::new(1));
                Self::retransmit_head(cx.segments);
            }
            RecoveryState::Loss => {
                cx.window.bytes_acked = ack.snd_una.bytes_since(ack.prior_snd_una);
                cx.grow(&grow);
                if covered {
                    self.state = RecoveryState::Open;
                }
            }
            RecoveryState::Cwr if ack.snd_una.before(self.cwr_end) => {}
            RecoveryState::Open | RecoveryState::Disorder | RecoveryState::Cwr => {
                self.state = RecoveryState::Open;
                cx.window.bytes_acked =
                    cx.window.bytes_acked.saturating_add(ack.snd_una.bytes_since(ack.prior_snd_una));
                cx.grow(&grow);
            }
        }
        if cx.cc.owns_window() {
            cx.cc.on_ack(cx.window, &AckSample { in_flight: cx.segments.in_flight(), ..grow });
        }
        outcome
    }

    fn next_segment(&self, view: &SendView<'_>) -> Option<Grant> {
        let index = view.segments.first_waiting()?;
        let cause = match self.state {
            _ if self.timed_out => Cause::TimeoutRetransmit,
            RecoveryState::Loss => Cause::LossRetransmit,
            _ if view.segments.row(index).is_some_and(|r| r.lost_again()) => Cause::LostRetransmission,
            _ => Cause::FastRetransmit,
        };
        let room = self.state != RecoveryState::Loss || view.segments.in_flight() < view.cwnd;
        room.then_some(Grant { index, cause })
    }

    fn on_sent(&mut self, sent: &SentKind, _: &Segments) {
        self.timed_out &= sent.fresh;
    }

    fn on_transmit_queue_full(&mut self, now: Instant, _: Seq, snd_nxt: Seq, cx: &mut Context<'_>) {
        let flight = cx.segments.packets_out().max(Packets::new(1));
        self.enter_cwr(snd_nxt, cx, |cx| {
            cx.reduce_to(cx.window.cwnd().min(flight));
            cx.cut_because(now, Cut::FastRetransmit, Cause::CutTransmitQueue);
        });
    }
    fn on_timeout(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        if self.state != RecoveryState::Loss {
            Self::cut(expiry.now, Cut::Timeout, cx);
        }
        cx.segments.lose_all(true);
        cx.reduce_to(Packets::new(1));
        cx.window.cwnd_cnt = 0;
        cx.window.bytes_acked = 0;
        cx.enter_loss(expiry.now);
        self.state = RecoveryState::Loss;
        self.recover = Some(expiry.snd_nxt);
        self.dup_acks = 0;
        self.timed_out = true;
    }

    fn on_resegmented(&mut self, why: Resegmented, at: &Expiry, cx: &mut Context<'_>) {
        match why {
            Resegmented::PathShrank => {
                // Everything that was too long goes again as the window allows, which stays as it is.
                cx.window.set_ssthresh(cx.window.ssthresh().min(cx.window.cwnd()));
                self.state = RecoveryState::Loss;
                self.recover = Some(at.snd_nxt);
            }
            Resegmented::ProbeLost { alone: true } if self.state == RecoveryState::Recovery => {
                cx.reduce_to(self.before.0);
                cx.window.set_ssthresh(self.before.1);
                cx.cc.on_event(at.now, cx.window, CongestionEvent::Undo);
                self.state = RecoveryState::Disorder;
            }
            Resegmented::ProbeLost { .. } => {}
        }
    }

    fn state(&self) -> RecoveryState {
        self.state
    }

    fn may_send_new(&self, segments: &Segments, cwnd: Packets) -> bool {
        let extra = match self.state {
            RecoveryState::Disorder => self.dup_acks.min(LIMITED_TRANSMIT),
            _ => 0,
        };
        self.in_flight(segments) < cwnd + Packets::new(extra)
    }

    fn in_flight(&self, segments: &Segments) -> Packets {
        // The inflated window of RFC 5681 is compared with FlightSize, not with an estimate of the pipe.
        if self.state == RecoveryState::Loss { segments.in_flight() } else { segments.packets_out() }
    }
}

impl NewReno {
    /// A congestion mark cuts the window once per round trip, and nothing is sent again.
    fn on_mark(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) {
        if ack.ece {
            self.enter_cwr(ack.snd_nxt, cx, |cx| Self::cut(ack.now, Cut::Ecn, cx));
        }
    }

    /// The window comes down by `cut` and to its threshold, unless it is coming down already.
    fn enter_cwr(&mut self, snd_nxt: Seq, cx: &mut Context<'_>, cut: impl FnOnce(&mut Context<'_>)) {
        if matches!(self.state, RecoveryState::Open | RecoveryState::Disorder) {
            cut(cx);
            cx.reduce_to(cx.window.ssthresh());
            cx.window.cwnd_cnt = 0;
            self.cwr_end = snd_nxt;
            self.state = RecoveryState::Cwr;
        }
    }

    fn on_duplicate(&mut self, ack: &AckInput<'_>, cx: &mut Context<'_>) {
        self.dup_acks += 1;
        match self.state {
            // RFC 5681 §3.2 step 4: as long as there can have been a segment for each duplicate.
            RecoveryState::Recovery if self.inflation > 0 => {
                self.inflation -= 1;
                cx.reduce_to(cx.window.cwnd() + Packets::new(1));
            }
            RecoveryState::Recovery => {}
            RecoveryState::Loss => {}
            // RFC 6582 §3.2 step 1: only above what an earlier recovery covered.
            _ if self.dup_acks == DUP_THRESH && self.recover.is_none_or(|r| ack.snd_una.after(r)) => {
                let flight = cx.segments.packets_out();
                let was = cx.window.cwnd();
                self.before = (was, cx.window.ssthresh());
                // One segment is missing, and three are in the threshold.
                self.inflation = flight.get().saturating_sub(1 + DUP_THRESH);
                if self.state != RecoveryState::Cwr {
                    Self::cut(ack.now, Cut::FastRetransmit, cx);
                }
                cx.window.cwnd_cnt = 0;
                cx.reduce_to(cx.window.ssthresh() + Packets::new(DUP_THRESH));
                cx.cc.on_event(ack.now, cx.window, CongestionEvent::EnterRecovery);
                self.recover = Some(ack.snd_nxt);
                self.state = RecoveryState::Recovery;
                Self::retransmit_head(cx.segments);
            }
            RecoveryState::Cwr => {}
            _ => self.state = RecoveryState::Disorder,
        }
    }
}
