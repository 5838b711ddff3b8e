//! Whether the congestion window is used: one that is not neither grows nor lasts (RFC 7661 in Linux's form).

use super::*;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    limited: bool,
    /// Most segments out in this window, and where it ends.
    most_out: u32,
    until: Option<Seq>,
    /// Most segments out since the window was last used in full, and when that was.
    used: u32,
    stamp: Option<Instant>,
}

impl Usage {
    /// The window is what held data back; or, in slow start, half of it was used.
    pub fn is_limited(&self, window: &crate::window::Window) -> bool {
        let opens = window.cwnd() < window.ssthresh();
        self.limited || (opens && window.cwnd().get() < self.most_out.saturating_mul(2))
    }

    /// The window was set.
    pub fn restart(&mut self, now: Instant) {
        self.stamp = Some(now);
        self.used = 0;
    }

    pub fn validate(
        &mut self,
        pushed: &Pushed,
        limited: bool,
        decays: bool,
        state: RecoveryState,
        cx: &mut Context<'_>,
    ) {
        let out = cx.segments.packets_out().get();
        let over = self.until.is_none_or(|until| !pushed.snd_una.before(until));
        if over || limited || (!self.limited && out > self.most_out) {
            (self.limited, self.most_out, self.until) = (limited, out, Some(pushed.snd_nxt));
        }
        if self.is_limited(cx.window) {
            (self.used, self.stamp) = (0, Some(pushed.now));
            return;
        }
        self.used = self.used.max(out);
        let stamp = *self.stamp.get_or_insert(pushed.now);
        if decays && pushed.now.since(stamp) >= cx.rto.rto() && !cx.cc.owns_window() {
            self.decay(pushed, state, cx);
        }
    }

    /// Half of what was not used goes.
    fn decay(&mut self, pushed: &Pushed, state: RecoveryState, cx: &mut Context<'_>) {
        if state == RecoveryState::Open {
            let cwnd = cx.window.cwnd().get();
            let used = self.used.max(pushed.initial_window.get());
            if used < cwnd {
                let ssthresh = cx.window.ssthresh().max(Packets::new(cwnd / 2 + cwnd / 4));
                cx.window.set_ssthresh(ssthresh);
                cx.window.set_cwnd(Packets::new((cwnd + used) / 2));
            }
        }
        (self.used, self.stamp) = (0, Some(pushed.now));
    }
}
