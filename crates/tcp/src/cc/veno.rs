//! Veno (Fu and Liew, JSAC 21(2), 2003): Reno that takes a loss without a queue for damage on a radio link.
//!
//! ```text
//! N = w - w RTTmin / SRTT              segments of the connection that wait in queues
//! N < 3:   w += 1 each round trip      loss: w = 4/5 w
//! N >= 3:  w += 1 each second one      loss: w = 1/2 w
//! ```
//! A congestion mark and a timeout are no damage: they always cost half.

use super::fraction::{Fraction, part_of};
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets, Span};

/// β: with fewer segments in queues the path is not congested.
const BETA: f64 = 3.0;

/// State of Veno.
#[derive(Clone, Debug)]
pub struct Veno {
    slow_start: SlowStart,
    fraction: Fraction,
    /// RTTmin / SRTT by the latest ACK, in 0..=1; one while nothing is known.
    empty: f64,
    /// The window before the last reduction.
    prior: Packets,
}

impl Veno {
    /// Veno that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Veno { slow_start, fraction: Fraction::default(), empty: 1.0, prior: Packets::ZERO }
    }

    /// N >= β, with N = w - w RTTmin / SRTT.
    fn queued(&self, window: &Window) -> bool {
        let cwnd = self.fraction.cwnd(window);
        cwnd - cwnd * self.empty >= BETA
    }
}

impl CongestionControl for Veno {
    fn on_acked(&mut self, ack: &AckSample) {
        if let Some(least) = ack.min_rtt
            && ack.srtt > Span::ZERO
        {
            self.empty = (least.as_secs_f64() / ack.srtt.as_secs_f64()).min(1.0);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let acked = self.slow_start.on_ack(window, ack);
        if ack.cwnd_limited && !acked.is_zero() {
            let increment = if self.queued(window) { 0.5 } else { 1.0 };
            self.fraction.grow(window, acked, increment);
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        self.prior = window.cwnd();
        let damage = cut == Cut::FastRetransmit && !self.queued(window);
        part_of(window, flight, if damage { 0.8 } else { 0.5 })
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior)
    }

    fn name(&self) -> &'static str {
        "veno"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{TestLink, window};

    /// A Veno that has seen these round trips in milliseconds.
    fn veno(least: u64, smoothed: u64) -> Veno {
        let mut veno = Veno::new(SlowStart::new(None, None));
        let ack = AckSample::of(Instant::ZERO, Packets::new(1));
        let (min_rtt, srtt) = (Some(Span::from_millis(least)), Span::from_millis(smoothed));
        veno.on_acked(&AckSample { min_rtt, srtt, ..ack });
        veno
    }

    /// Breaks: what a loss costs: a fifth below three segments in queues, else half; a mark, a timeout always
    /// half.
    #[test]
    fn cut_by_queue() {
        use Cut::*;
        // (window, RTTmin, SRTT) -> N; threshold after (a loss, a mark, a timeout)
        let table = [
            ((100, 100, 103), [80, 50, 50]), // 2.91
            ((100, 100, 104), [50, 50, 50]), // 3.85
            ((29, 90, 100), [23, 14, 14]),   // 2.9
            ((30, 90, 100), [15, 15, 15]),   // 3.0
            ((30, 90, 80), [24, 15, 15]),    // none: SRTT may lie below a later minimum
        ];
        for ((cwnd, least, smoothed), expected) in table {
            let w = window(cwnd, 2);
            let got = [FastRetransmit, Ecn, Timeout]
                .map(|cut| veno(least, smoothed).ssthresh(Instant::ZERO, &w, Packets::new(cwnd), cut).get());
            assert_eq!(got, expected, "{cwnd} {least} {smoothed}");
        }
        let mut new = Veno::new(SlowStart::new(None, None));
        assert_eq!(new.ssthresh(Instant::ZERO, &window(10, 2), Packets::new(10), FastRetransmit).get(), 8);
        assert_eq!(new.undo_cwnd(&window(8, 8)).get(), 10);
    }

    /// Breaks: growth by a segment a round trip without a queue, and by half of one with it.
    #[test]
    fn growth_by_queue() {
        for (smoothed, grown) in [(100, 20), (110, 10)] {
            let (mut cc, mut w) = (veno(100, smoothed), window(100, 2));
            TestLink::new(2).rounds(&mut cc, &mut w, 20);
            assert!(w.cwnd().get().abs_diff(100 + grown) <= 1, "SRTT {smoothed} ms: {}", w.cwnd());
        }
    }
}
