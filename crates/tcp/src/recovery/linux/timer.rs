//! One timer: the retransmission timeout, the loss probe that comes before it, or the end of the reordering
//! window.

use super::*;

/// Least time that the reordering timer adds, and the probe where more than one segment is out.
pub(super) const MIN: Span = Span::from_millis(2);
/// Before there is a round trip.
const INITIAL: Span = Span::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinuxTimer {
    Retransmission,
    LossProbe,
    Reordering,
}

/// The timer; none: it does not run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timer(Option<(LinuxTimer, Instant)>);

pub(super) fn bounded(wait: Span, rto: Span) -> Span {
    wait.min(rto)
}

impl Timer {
    pub fn start(&mut self, kind: LinuxTimer, at: Instant) {
        self.0 = Some((kind, at));
    }
    pub fn stop(&mut self) {
        self.0 = None;
    }
    pub fn kind(&self) -> Option<LinuxTimer> {
        self.0.map(|(kind, _)| kind)
    }
    pub fn deadline(&self) -> Option<(Instant, RecoveryTimer)> {
        let (kind, at) = self.0?;
        let what = match kind {
            LinuxTimer::Retransmission => RecoveryTimer::Retransmission,
            LinuxTimer::LossProbe => RecoveryTimer::TailLossProbe,
            LinuxTimer::Reordering => RecoveryTimer::Reordering,
        };
        Some((at, what))
    }

    /// The timeout begins anew; where another timer ran in its place, from when the head was sent.
    pub fn rearm(&mut self, now: Instant, rto: Span, segments: &Segments) {
        let Some(head) = segments.row(0) else {
            self.stop();
            return;
        };
        let at = match self.kind() {
            Some(LinuxTimer::LossProbe | LinuxTimer::Reordering) => {
                (head.sent_at + rto).max(now + Span::from_nanos(1_000))
            }
            Some(LinuxTimer::Retransmission) | None => now + rto,
        };
        self.start(LinuxTimer::Retransmission, at);
    }
}

impl LinuxRecovery {
    /// RFC 8985 §7.2: the loss probe in place of the timeout. `advances`: that would begin anew now. False:
    /// there is none.
    pub(super) fn schedule_probe(&mut self, now: Instant, advances: bool, cx: &mut Context<'_>) -> bool {
        let calm = matches!(self.state, RecoveryState::Open | RecoveryState::Cwr);
        let Some(head) = cx.segments.row(0).filter(|_| self.switches.tail_loss_probe && self.sack && calm)
        else {
            return false;
        };
        let (srtt, rto) = (cx.rto.srtt(), cx.rto.rto());
        let alone = cx.segments.len() == 1;
        let wait = match (srtt.is_zero(), alone) {
            (true, _) => INITIAL,
            (false, true) => srtt * 2 + cx.rto.least(),
            (false, false) => srtt * 2 + MIN,
        };
        let left = if advances { rto } else { (head.sent_at + rto).since(now) };
        let wait = if left.is_zero() { wait } else { wait.min(left) };
        self.timer.start(LinuxTimer::LossProbe, now + wait);
        true
    }

    /// RFC 8985 §7.3.
    pub(super) fn on_probe_timer(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        if self.probe.is_none() {
            if expiry.unsent_in_window {
                self.probe_new = true; // `after_push` sees whether it left
                return;
            }
            if !cx.segments.is_empty() {
                self.resend = Resend::Probe;
            }
        }
        self.timer.rearm(expiry.now, cx.rto.rto(), cx.segments);
    }

    pub(super) fn on_reordering_timer(&mut self, expiry: &Expiry, cx: &mut Context<'_>) {
        let before = cx.segments.in_flight();
        let lost = self.lost;
        self.detect(expiry.now, cx);
        if cx.segments.in_flight() != before {
            if self.state != RecoveryState::Recovery {
                self.enter_recovery(expiry.now, expiry.snd_una, expiry.snd_nxt, false, cx);
                if !cx.cc.owns_window() {
                    self.reduce(1, (self.lost - lost) as u32, false, cx);
                }
            }
            self.resend = Resend::Lost;
        }
        if self.timer.kind() != Some(LinuxTimer::Retransmission) {
            self.timer.rearm(expiry.now, cx.rto.rto(), cx.segments);
        }
    }

    /// What could leave has left.
    pub(super) fn after_push(&mut self, pushed: &Pushed, cx: &mut Context<'_>) {
        let probed = std::mem::take(&mut self.probe_new);
        if probed {
            if pushed.sent > 0 {
                self.probe = Some((pushed.snd_nxt, false));
                self.timer.start(LinuxTimer::Retransmission, pushed.now + cx.rto.rto());
            } else {
                self.timer.rearm(pushed.now, cx.rto.rto(), cx.segments);
            }
        }
        if self.in_reduction() {
            self.prr.out += pushed.sent;
        }
        if pushed.sent > 0 && !probed {
            self.schedule_probe(pushed.now, false, cx);
        }
        let limited = pushed.limited || cx.segments.in_flight() >= cx.window.cwnd();
        if pushed.tried && (pushed.sent > 0 || limited) {
            self.usage.validate(pushed, limited, self.switches.restart_after_idle, self.state, cx);
        }
    }
}
