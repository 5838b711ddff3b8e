//! Scalable TCP (Kelly, CCR 33(2), 2003), in the form of Linux: a loss costs an eighth, and the way back
//! takes as many round trips whatever the window.
//!
//! ```text
//! each segment acknowledged:  w += max(a, 1/w),  a = 0.01
//! loss:                       w -= b w,          b = 0.125
//! ```
//! Linux counts 50 ACKs for a segment because a delayed ACK covers two; here segments are counted. Kelly's
//! legacy window, 16 segments up to which it should cut like Reno, is not in Linux nor here.

use super::fraction::{Fraction, part_of};
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets};

/// Growth for each segment acknowledged, in segments (Kelly 2003).
const A: f64 = 0.01;
/// The part of the window given up after a loss (Kelly 2003).
const B: f64 = 0.125;

/// State of Scalable TCP.
#[derive(Clone, Debug)]
pub struct Scalable {
    slow_start: SlowStart,
    fraction: Fraction,
    /// The window before the last reduction.
    prior: Packets,
}

impl Scalable {
    /// Scalable TCP that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Scalable { slow_start, fraction: Fraction::default(), prior: Packets::ZERO }
    }
}

impl CongestionControl for Scalable {
    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let acked = self.slow_start.on_ack(window, ack);
        if ack.cwnd_limited && !acked.is_zero() {
            // w += max(a, 1/w) a segment is max(a w, 1) a window.
            let increment = (A * self.fraction.cwnd(window)).max(1.0);
            self.fraction.grow(window, acked, increment);
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, _: Cut) -> Packets {
        self.prior = window.cwnd();
        part_of(window, flight, 1.0 - B)
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior)
    }

    fn name(&self) -> &'static str {
        "scalable"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{TestLink, window};

    /// Breaks: growth by a hundredth a round trip, whatever the ACK ratio, and never less than Reno's
    /// segment.
    #[test]
    fn grows_by_a_hundredth() {
        for ratio in [1, 2, 8] {
            let grown = |cwnd, rounds| {
                let (mut cc, mut w) = (Scalable::new(SlowStart::new(None, None)), window(cwnd, 2));
                TestLink::new(ratio).rounds(&mut cc, &mut w, rounds);
                w.cwnd().get()
            };
            // 1000 * 1.01^20 = 1220.2 counted a window at a time, a little more by single ACKs: 1000 e^0.2 =
            // 1221.4.
            assert!((1219..=1222).contains(&grown(1000, 20)), "ratio {ratio}: {}", grown(1000, 20));
            assert!((39..=40).contains(&grown(20, 20)), "ratio {ratio}: {}", grown(20, 20));
        }
    }

    /// Breaks: the cut by an eighth of what was in flight, and the way back from it.
    #[test]
    fn gives_up_an_eighth() {
        let mut cc = Scalable::new(SlowStart::new(None, None));
        let w = window(1000, 2);
        let mut cut = |n| cc.ssthresh(Instant::ZERO, &w, Packets::new(n), Cut::FastRetransmit).get();
        assert_eq!([cut(1000), cut(401), cut(2000), cut(5), cut(1)], [875, 350, 875, 4, 2]);
        assert_eq!(cc.undo_cwnd(&window(875, 875)).get(), 1000);
    }
}
