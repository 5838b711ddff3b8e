//! Whether the congestion window was earned: one that is not used says nothing of the path (RFC 5681 §4.1,
//! RFC 7661).
//!
//! A window of which at least half is under way is validated. One that is not neither grows (congestion
//! control is told, `AckSample::cwnd_limited`) nor lasts: after five minutes half of it goes (RFC 7661 §4.2
//! and §4.4.2), and after a pause longer than the timeout all above the initial window. What this leaves out
//! of RFC 7661: pipeACK, i.e. the window before a loss is taken as it is; recovery cuts it by what was in
//! flight where the algorithm says so.

use super::Connection;
use farpace_units::{Instant, Packets, Span};

/// How long a window may stay without being used (RFC 7661 §4.2: five minutes).
const NON_VALIDATED_PERIOD: Span = Span::from_secs(300);

impl Connection {
    /// Nothing is outstanding, and something is about to be sent.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        // A model of the path is not forgotten in a pause, and does not send a burst after one.
        let forgets = !self.flight.cc.owns_window();
        if forgets && now.since(self.snd.last_sent) > self.flight.rto.rto().max(Span::from_millis(1)) {
            let initial = self.config.first_window(self.snd.mss);
            self.flight.window.set_cwnd(self.flight.window.cwnd().min(initial));
            self.flight.validated_at = now;
        }
    }

    /// A new segment was just sent.
    #[inline]
    pub(super) fn validate_window(&mut self, now: Instant) {
        let used = self.flight.recovery.in_flight(&self.flight.segments).get();
        if used >= self.flight.window.cwnd().get() {
            // Used in full, whether more waits or not (RFC 7661 §4.2).
            self.snd.limited_at = Some(self.snd.nxt);
        }
        if used >= self.flight.window.cwnd().get().div_ceil(2) {
            self.flight.validated_at = now;
        } else if now.since(self.flight.validated_at) >= NON_VALIDATED_PERIOD {
            self.decay(now);
        }
    }

    #[cold]
    fn decay(&mut self, now: Instant) {
        self.flight.validated_at = now;
        if self.flight.cc.owns_window() || self.config.quirks.keeps_window_when_idle {
            return;
        }
        let cwnd = self.flight.window.cwnd().get();
        self.flight.window.set_ssthresh(self.flight.window.ssthresh().max(Packets::new(cwnd / 4 * 3)));
        self.flight.window.set_cwnd(Packets::new(cwnd / 2).max(self.config.first_window(self.snd.mss)));
    }
}
