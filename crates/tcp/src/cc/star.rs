//! TCP-STAR (Obata, Taira, Ishida; IEICE 2007): congestion control for satellite links.
//!
//! ```text
//! LWC  for each ACK (Fig. 1):  cwnd_reno < ssthresh: cwnd_reno += 1, else cwnd_reno += 1/cwnd_reno
//!                              cwnd = cwnd_reno + cwnd_abe
//! CWS  for each loss (Fig. 2): cwnd >= ssthresh: cwnd = cwnd_abe;  ssthresh = cwnd_abe
//! ```
//!
//! `cwnd_abe` is the measured bandwidth-delay product ([`Abe`]). The third part, AEN, belongs to recovery
//! (`timeout = "aen"`).
//!
//! As printed, CWS undoes itself: the first ACK after it sets the window to `cwnd_reno + cwnd_abe` again, and
//! nothing ever lowers `cwnd_reno`. It can be read otherwise: if `cwnd` is `cwnd_abe`, `cwnd_reno` must be
//! zero (`cws_reset`). The robust form repairs that: a loss halves `cwnd_reno`, the window is
//! never more than `cap` times what was measured (unless Reno alone would have more), acknowledged segments
//! count instead of ACKs, and the reduction goes through the recovery's own (PRR).

use super::abe::Abe;
use super::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::config::AbeConfig as Settings;
use crate::window::Window;
use farpace_units::{Instant, Packets, Rate};

/// TCP-STAR in either form.
#[derive(Clone, Debug)]
pub struct Star {
    robust: bool,
    /// A loss sets cwnd_reno to zero.
    resets: bool,
    cap: Option<f64>,
    abe: Abe,
    /// cwnd_reno, segments; zero before the first ACK.
    reno: f64,
    /// The first window: where a timeout begins again.
    initial: Packets,
    /// What CWS says the window is.
    target: Packets,
    /// Window and cwnd_reno before the last reduction.
    before: (Packets, f64),
}

impl Star {
    /// As the paper prints it.
    pub fn literal(settings: Settings) -> Self {
        Star::new(settings, false)
    }

    /// With its repairs.
    pub fn robust(settings: Settings) -> Self {
        Star::new(settings, true)
    }

    fn new(settings: Settings, robust: bool) -> Self {
        Star {
            robust,
            resets: settings.reset,
            cap: settings.cap,
            abe: Abe::new(settings, robust),
            reno: 0.0,
            initial: Packets::ZERO,
            target: Packets::ZERO,
            before: (Packets::ZERO, 0.0),
        }
    }

    fn begin(&mut self, window: &Window) {
        if self.initial.is_zero() {
            self.initial = window.cwnd();
            self.reno = f64::from(window.cwnd().get());
        }
    }
}

impl CongestionControl for Star {
    fn on_acked(&mut self, ack: &AckSample) {
        self.abe.on_acked(ack);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if ack.acked.is_zero() {
            return;
        }
        self.begin(window);
        let most = f64::from(ack.max_window / ack.mss.max(1));
        let step = if self.robust { f64::from(ack.acked.get()).min(self.reno) } else { 1.0 };
        if ack.cwnd_limited {
            let opening = self.reno < f64::from(window.ssthresh().get());
            self.reno += if opening { step } else { step / self.reno.max(1.0) };
            // A window that the peer does not have is not counted up for later.
            self.reno = self.reno.min(most.max(1.0));
        }
        let measured = self.abe.cwnd(window.mss());
        let mut cwnd = self.reno + measured;
        if let Some(cap) = self.cap {
            cwnd = cwnd.min((cap * measured).max(self.reno));
        }
        let cwnd = Packets::new(cwnd.min(most) as u32);
        window.set_cwnd(if ack.cwnd_limited { cwnd } else { cwnd.min(window.cwnd()) });
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, cut: Cut) -> Packets {
        self.begin(window);
        self.before = (window.cwnd(), self.reno);
        let (ssthresh, target) = self.abe.set_windows(window);
        self.target = target;
        if !self.robust {
            if self.resets {
                self.reno = 0.0;
            }
            return ssthresh;
        }
        self.reno = (self.reno / 2.0).max(1.0);
        // A mark says what a loss does not: that there is a queue.
        if cut == Cut::Ecn { ssthresh.min(Packets::new((window.cwnd().get() / 2).max(2))) } else { ssthresh }
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.before.0)
    }

    fn on_event(&mut self, _: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::Established(rtt) => {
                self.begin(window);
                self.abe.on_established(rtt);
            }
            CongestionEvent::EnterRecovery | CongestionEvent::ExitRecovery
                if !self.robust && !self.target.is_zero() =>
            {
                window.set_cwnd(self.target);
            }
            CongestionEvent::EnterLoss { .. } => {
                // The paper's footnote 1 (b): slow start from the first window.
                self.target = Packets::ZERO;
                self.reno = f64::from(self.initial.get().max(1));
                window.set_cwnd(self.initial);
            }
            CongestionEvent::Undo => self.reno = self.before.1.max(self.reno),
            CongestionEvent::EnterRecovery | CongestionEvent::ExitRecovery | CongestionEvent::Restart(_) => {}
        }
    }

    fn wants_rates(&self) -> bool {
        self.abe.wants_rates()
    }

    fn bandwidth(&self) -> Option<Rate> {
        self.abe.bandwidth()
    }

    fn name(&self) -> &'static str {
        if self.robust { "star-robust" } else { "star" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;
    use crate::config::AbeFilter;
    use farpace_units::Span;

    fn settings() -> Settings {
        Settings { filter: AbeFilter::None, first_interval: Span::from_millis(1), cap: None, reset: false }
    }

    fn ack(star: &mut Star, w: &mut Window, ms: u64, most: u32) -> u32 {
        let now = Instant::ZERO + Span::from_millis(1_000 + ms);
        let ack = AckSample { max_window: most, ..AckSample::of(now, Packets::new(1)) };
        star.on_acked(&ack);
        star.on_ack(w, &ack);
        w.cwnd().get()
    }

    fn established(mut star: Star, w: &mut Window) -> Star {
        star.on_event(Instant::ZERO, w, CongestionEvent::Established(Span::from_millis(500)));
        star
    }

    /// Breaks: Fig. 1: the first ACK lifts the window by what the paper's first interval says, 500 segments.
    #[test]
    fn lift_window_control() {
        let mut w = window(2, u32::MAX);
        let mut star = established(Star::literal(settings()), &mut w);
        assert_eq!(ack(&mut star, &mut w, 0, u32::MAX), 503);
        // 1448 bytes in 2 ms: 250 segments, and cwnd_reno is 4.
        assert_eq!(ack(&mut star, &mut w, 2, u32::MAX), 254);
        assert_eq!(ack(&mut star, &mut w, 3, 431 * 1448 + 100), 431, "the peer's window bounds it");
    }

    /// Breaks: Fig. 2, and that the literal form is its own undoing: the ACK after the recovery lifts the
    /// window over what CWS had set.
    #[test]
    fn congestion_window_setting() {
        let mut w = window(600, 100);
        let mut star = established(Star::literal(settings()), &mut w);
        ack(&mut star, &mut w, 0, u32::MAX);
        let ssthresh = star.ssthresh(Instant::ZERO, &w, w.cwnd(), Cut::FastRetransmit);
        w.set_ssthresh(ssthresh);
        star.on_event(Instant::ZERO, &mut w, CongestionEvent::EnterRecovery);
        assert_eq!((ssthresh.get(), w.cwnd().get()), (500, 500));
        star.on_event(Instant::ZERO, &mut w, CongestionEvent::ExitRecovery);
        assert!(ack(&mut star, &mut w, 1, u32::MAX) >= 1_100);
    }

    /// Breaks: `cws_reset`: what CWS sets does not stay, because cwnd_reno is added to it again.
    #[test]
    fn a_loss_resets_reno() {
        let mut w = window(600, 100);
        let mut star = established(Star::literal(Settings { reset: true, ..settings() }), &mut w);
        ack(&mut star, &mut w, 0, u32::MAX);
        w.set_ssthresh(star.ssthresh(Instant::ZERO, &w, w.cwnd(), Cut::FastRetransmit));
        star.on_event(Instant::ZERO, &mut w, CongestionEvent::ExitRecovery);
        assert_eq!(w.cwnd().get(), 500);
        assert!(ack(&mut star, &mut w, 1, u32::MAX) <= 501);
    }

    /// Breaks: the robust form: half of cwnd_reno goes, and the cap holds.
    #[test]
    fn robust() {
        let mut w = window(600, 100);
        let mut star = established(Star::robust(Settings { cap: Some(2.0), ..settings() }), &mut w);
        assert_eq!(ack(&mut star, &mut w, 0, u32::MAX), 1_000, "600 + 500, but at most 2 · 500");
        w.set_ssthresh(star.ssthresh(Instant::ZERO, &w, w.cwnd(), Cut::FastRetransmit));
        w.set_cwnd(w.ssthresh());
        star.on_event(Instant::ZERO, &mut w, CongestionEvent::ExitRecovery);
        assert_eq!(ack(&mut star, &mut w, 1, u32::MAX), 801, "600.5 / 2 + 1 + 500");
        assert_eq!(star.ssthresh(Instant::ZERO, &w, w.cwnd(), Cut::Ecn).get(), 400);
    }

    /// Breaks: a timeout begins at the first window again, and an undone one gives back everything.
    #[test]
    fn timeout() {
        let mut w = window(10, u32::MAX);
        let mut star = established(Star::literal(settings()), &mut w);
        let cwnd = ack(&mut star, &mut w, 0, u32::MAX);
        w.set_ssthresh(star.ssthresh(Instant::ZERO, &w, w.cwnd(), Cut::Timeout));
        w.set_cwnd(Packets::new(1));
        star.on_event(Instant::ZERO, &mut w, CongestionEvent::EnterLoss { total_lost: 0 });
        assert_eq!(w.cwnd().get(), 10);
        assert_eq!(star.undo_cwnd(&w).get(), cwnd);
        star.on_event(Instant::ZERO, &mut w, CongestionEvent::Undo);
        assert_eq!(star.reno, 11.0);
    }
}
