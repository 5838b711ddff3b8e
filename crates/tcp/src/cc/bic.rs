//! BIC with the constants of Linux 2.6.17: a binary search for the window at which the last loss was.

use super::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Span};

/// Largest step towards the middle, segments per round trip.
const MAX_INCREMENT: u32 = 16;
/// Up to this window BIC is Reno.
const LOW_WINDOW: u32 = 14;
/// Reduction factor times 1024: about 0.8.
const BETA: u32 = 819;
/// Round trips spent around the old maximum.
const SMOOTH_PART: u32 = 20;
/// Part of the distance to the maximum that one step covers is 1/B.
const B: u32 = 4;
/// The delayed-ACK ratio is kept times 16.
const ACK_RATIO_SHIFT: u32 = 4;
/// The step is not computed anew for the same window within this time (HZ/32).
const UPDATE_INTERVAL: Span = Span::from_micros(31_250);

/// State of BIC.
#[derive(Clone, Debug)]
pub struct Bic {
    /// One segment per this many ACKs.
    cnt: u32,
    /// The window before the last reduction (lower with fast convergence).
    last_max: u32,
    /// The window at the last reduction; zero before the first.
    loss_cwnd: u32,
    last_cwnd: u32,
    last_time: Instant,
    /// Segments per ACK, times 16.
    ack_ratio: u32,
}

impl Default for Bic {
    fn default() -> Self {
        Bic {
            cnt: 0,
            last_max: 0,
            loss_cwnd: 0,
            last_cwnd: 0,
            last_time: Instant::ZERO,
            ack_ratio: 2 << ACK_RATIO_SHIFT,
        }
    }
}

impl Bic {
    fn update(&mut self, cwnd: u32, now: Instant) {
        if self.last_cwnd == cwnd && now.since(self.last_time) <= UPDATE_INTERVAL {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        if cwnd <= LOW_WINDOW {
            self.cnt = cwnd;
            return;
        }
        let slow = cwnd.saturating_mul(SMOOTH_PART) / B;
        let cnt = if cwnd < self.last_max {
            let dist = (self.last_max - cwnd) / B;
            match dist {
                d if d > MAX_INCREMENT => cwnd / MAX_INCREMENT,
                0 | 1 => slow,
                d => cwnd / d,
            }
        } else {
            let beyond = cwnd - self.last_max;
            match beyond {
                b if b < B => slow,
                b if b < MAX_INCREMENT * (B - 1) => cwnd.saturating_mul(B - 1) / b,
                _ => cwnd / MAX_INCREMENT,
            }
        };
        // Before the first loss: at least 5 % per round trip.
        let cnt = if self.loss_cwnd == 0 { cnt.min(20) } else { cnt };
        self.cnt = (cnt.saturating_mul(1 << ACK_RATIO_SHIFT) / self.ack_ratio.max(1)).max(1);
    }
}

impl CongestionControl for Bic {
    fn on_acked(&mut self, ack: &AckSample) {
        if ack.state == RecoveryState::Open {
            // ratio += acked - ratio/16
            self.ack_ratio = self
                .ack_ratio
                .saturating_add(ack.acked.get())
                .saturating_sub(self.ack_ratio >> ACK_RATIO_SHIFT);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if ack.in_flight_before < window.cwnd() {
            return;
        }
        if window.in_slow_start() {
            window.slow_start();
        } else {
            self.update(window.cwnd().get(), ack.now);
            window.count_towards(self.cnt);
        }
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        let cwnd = window.cwnd().get();
        // Fast convergence: a maximum that keeps falling is a sign of a newcomer.
        let scaled = |factor: u32, by: u32| (u64::from(cwnd) * u64::from(factor) / u64::from(by)) as u32;
        self.last_max = if cwnd < self.last_max { scaled(1024 + BETA, 2048) } else { cwnd };
        self.loss_cwnd = cwnd;
        Packets::new(if cwnd <= LOW_WINDOW { (cwnd / 2).max(2) } else { scaled(BETA, 1024).max(2) })
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        Packets::new(window.cwnd().get().max(self.last_max))
    }

    fn on_event(&mut self, _: Instant, _: &mut Window, event: CongestionEvent) {
        if matches!(event, CongestionEvent::EnterLoss { .. }) {
            *self = Bic::default();
        }
    }

    fn name(&self) -> &'static str {
        "bic"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Abc;

    fn window(cwnd: u32, ssthresh: u32) -> Window {
        Window::new(Packets::new(cwnd), Some(Packets::new(ssthresh)), Packets::MAX, Abc::Off, 1448)
    }

    /// Breaks: how deep BIC cuts, and where it searches afterwards.
    #[test]
    fn reduction_and_fast_convergence() {
        let mut bic = Bic::default();
        assert_eq!(
            bic.ssthresh(Instant::ZERO, &window(1000, 2), Packets::new(1000), Cut::FastRetransmit).get(),
            799
        );
        assert_eq!(bic.last_max, 1000);
        assert_eq!(
            bic.ssthresh(Instant::ZERO, &window(800, 2), Packets::new(800), Cut::FastRetransmit).get(),
            639
        );
        assert_eq!(bic.last_max, 800 * 1843 / 2048);
        assert_eq!(bic.ssthresh(Instant::ZERO, &window(10, 2), Packets::new(10), Cut::Timeout).get(), 5);
        assert_eq!(bic.ssthresh(Instant::ZERO, &window(3, 2), Packets::new(3), Cut::Timeout).get(), 2);
    }

    /// Breaks: the step sizes of the binary search: `(window, last_max, after a loss, cnt)`.
    #[test]
    fn steps() {
        let table = [
            (10, 0, false, 10),
            (1000, 0, false, 10), // 20 per ACK-ratio 2
            (100, 1000, true, 3), // far below: 16 a round: 100/16 = 6, halved by the ratio
            (996, 1000, true, 2490),
            (900, 1000, true, 900 / 16 / 2),
            (960, 1000, true, 48),
            (1002, 1000, true, 2505),
            (1020, 1000, true, 76),
            (1100, 1000, true, 34),
        ];
        for (cwnd, last_max, lost, cnt) in table {
            let mut bic = Bic { last_max, loss_cwnd: u32::from(lost), ..Bic::default() };
            bic.update(cwnd, Instant::from_nanos(1));
            assert_eq!(bic.cnt, cnt, "cwnd {cwnd}, last maximum {last_max}");
        }
    }

    /// Breaks: a timeout must make BIC forget (it resets on entering Loss).
    #[test]
    fn loss_resets() {
        let mut bic = Bic::default();
        bic.ssthresh(Instant::ZERO, &window(1000, 2), Packets::new(1000), Cut::Timeout);
        bic.on_event(Instant::ZERO, &mut window(1, 2), CongestionEvent::EnterLoss { total_lost: 0 });
        assert_eq!((bic.last_max, bic.loss_cwnd), (0, 0));
    }

    /// Breaks: growth while the window is not used.
    #[test]
    fn idle_window_does_not_grow() {
        let mut bic = Bic::default();
        let mut w = window(100, 1000);
        let ack =
            AckSample { in_flight_before: Packets::new(99), ..AckSample::of(Instant::ZERO, Packets::new(2)) };
        bic.on_ack(&mut w, &ack);
        assert_eq!(w.cwnd().get(), 100);
        bic.on_ack(&mut w, &AckSample { in_flight_before: Packets::new(100), ..ack });
        assert_eq!(w.cwnd().get(), 101);
    }
}
