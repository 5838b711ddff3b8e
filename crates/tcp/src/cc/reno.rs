//! Reno (RFC 5681 §3.1) counting what is acknowledged (RFC 3465): one segment per round trip, half on loss.

use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets};

/// Reno of the modern profiles.
#[derive(Clone, Debug)]
pub struct Reno {
    slow_start: SlowStart,
    /// The window before the last reduction.
    prior: Packets,
}

impl Reno {
    /// Reno that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Reno { slow_start, prior: Packets::ZERO }
    }
}

impl CongestionControl for Reno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let acked = self.slow_start.on_ack(window, ack).get();
        if acked == 0 || !ack.cwnd_limited {
            return;
        }
        // RFC 5681 eq. 3 by what is acknowledged: one segment for each window, never two for one ACK.
        let cwnd = window.cwnd().get();
        window.cwnd_cnt = window.cwnd_cnt.saturating_add(acked.min(cwnd));
        if window.cwnd_cnt >= cwnd {
            window.cwnd_cnt -= cwnd;
            window.set_cwnd(window.cwnd() + Packets::new(1));
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, _: Cut) -> Packets {
        self.prior = window.cwnd();
        // RFC 5681 eq. 4 speaks of FlightSize: a window that was not used must not count.
        Packets::new((window.cwnd().min(flight).get() / 2).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.ssthresh().get() / 2)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior)
    }

    fn name(&self) -> &'static str {
        "reno"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{TestLink, window};

    /// Breaks: congestion avoidance: a segment per round trip, whatever the receiver's ACK ratio, and no more
    /// than one for a stretch ACK.
    #[test]
    fn one_segment_a_round_trip() {
        for ratio in [1, 2, 8] {
            let mut reno = Reno::new(SlowStart::new(None, None));
            let mut w = window(100, 2);
            TestLink::new(ratio).rounds(&mut reno, &mut w, 50);
            assert!((149..=150).contains(&w.cwnd().get()), "ratio {ratio}: {}", w.cwnd());
        }
        let mut w = window(10, 2);
        Reno::new(SlowStart::new(None, None))
            .on_ack(&mut w, &AckSample::of(Instant::ZERO, Packets::new(1_000)));
        assert_eq!(w.cwnd().get(), 11);
    }

    /// Breaks: the cut of RFC 5681 eq. 4 and the way back from it.
    #[test]
    fn halves_what_was_in_flight() {
        let mut reno = Reno::new(SlowStart::new(None, None));
        let w = window(100, 2);
        let mut cut =
            |flight| reno.ssthresh(Instant::ZERO, &w, Packets::new(flight), Cut::FastRetransmit).get();
        assert_eq!([cut(100), cut(40), cut(110), cut(1)], [50, 20, 50, 2]);
        assert_eq!(reno.undo_cwnd(&window(50, 50)).get(), 100);
    }
}
