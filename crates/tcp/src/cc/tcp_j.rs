//! TCP-J (Sato, Kunishi, Teraoka 2002; Saito, Teraoka 2004), as the STAR paper configures it for satellites:
//! Reno, but a loss sets the threshold to the measured bandwidth-delay product ([`Abe`]) instead of half the
//! window, and a timeout begins again at the first window. Only abstracts of TCP-J's own papers could be
//! read; what a loss does to the window is taken from STAR, which has it from TCP-J.

use super::abe::Abe;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, Reno, SlowStart};
use crate::config::AbeConfig as Settings;
use crate::window::Window;
use farpace_units::{Instant, Packets, Rate};

/// TCP-J.
#[derive(Clone, Debug)]
pub struct TcpJ {
    reno: Reno,
    abe: Abe,
    initial: Packets,
    /// What the last loss leaves of the window.
    target: Packets,
    before: Packets,
}

impl TcpJ {
    /// TCP-J that grows like this below its threshold.
    pub fn new(slow_start: SlowStart, settings: Settings) -> Self {
        TcpJ {
            reno: Reno::new(slow_start),
            abe: Abe::new(settings, false),
            initial: Packets::new(1),
            target: Packets::ZERO,
            before: Packets::ZERO,
        }
    }
}

impl CongestionControl for TcpJ {
    fn on_acked(&mut self, ack: &AckSample) {
        self.abe.on_acked(ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.reno.on_ack(window, ack);
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        self.before = window.cwnd();
        let (ssthresh, target) = self.abe.set_windows(window);
        self.target = target;
        ssthresh
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.before)
    }

    fn on_event(&mut self, _: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::Established(rtt) => {
                self.initial = window.cwnd();
                self.abe.on_established(rtt);
            }
            CongestionEvent::EnterRecovery | CongestionEvent::ExitRecovery if !self.target.is_zero() => {
                window.set_cwnd(self.target);
            }
            CongestionEvent::EnterLoss { .. } => {
                self.target = Packets::ZERO;
                window.set_cwnd(self.initial); // footnote 1 (b) of the STAR paper
            }
            CongestionEvent::EnterRecovery
            | CongestionEvent::ExitRecovery
            | CongestionEvent::Undo
            | CongestionEvent::Restart(_) => {}
        }
    }

    fn wants_rates(&self) -> bool {
        self.abe.wants_rates()
    }

    fn bandwidth(&self) -> Option<Rate> {
        self.abe.bandwidth()
    }

    fn name(&self) -> &'static str {
        "tcp-j"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;
    use crate::config::AbeFilter;
    use farpace_units::Span;

    /// Breaks: TCP-J's cure: a loss leaves the window at what was measured, and Reno goes on from there.
    #[test]
    fn a_loss_leaves_what_was_measured() {
        let settings = Settings {
            filter: AbeFilter::None,
            first_interval: Span::from_millis(1),
            cap: None,
            reset: false,
        };
        let mut j = TcpJ::new(SlowStart::new(None, None), settings);
        let mut w = window(10, 2);
        j.on_event(Instant::ZERO, &mut w, CongestionEvent::Established(Span::from_millis(500)));
        w.set_cwnd(Packets::new(400));
        for ms in [0, 4] {
            let ack = AckSample::of(Instant::ZERO + Span::from_millis(1_000 + ms), Packets::new(2));
            j.on_acked(&ack);
            j.on_ack(&mut w, &ack);
        }
        assert_eq!(w.cwnd().get(), 400, "Reno");
        // 2896 bytes in 4 ms and 500 ms: 250 segments.
        w.set_ssthresh(j.ssthresh(Instant::ZERO, &w, w.cwnd(), Cut::FastRetransmit));
        j.on_event(Instant::ZERO, &mut w, CongestionEvent::EnterRecovery);
        assert_eq!((w.ssthresh().get(), w.cwnd().get()), (250, 250));
        assert_eq!(j.undo_cwnd(&w).get(), 400);
        j.on_event(Instant::ZERO, &mut w, CongestionEvent::EnterLoss { total_lost: 0 });
        assert_eq!(w.cwnd().get(), 10);
    }
}
