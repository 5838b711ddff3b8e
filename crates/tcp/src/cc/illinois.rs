//! Illinois (Liu, Başar and Srikant 2006; the constants of Linux): the delay sets how fast the window grows
//! and falls.
//!
//! Congestion avoidance: cwnd += α/cwnd for each segment acknowledged; a loss: cwnd −= β·cwnd. Once a round
//! trip, with da the mean queueing delay, dm the greatest one, and d1 = dm/100:
//! * α = 10 at da ≤ d1, else (dm−d1)·10 / ((dm−d1) + (da−d1)·(10−0.3)/0.3), which falls to 0.3 at da = dm;
//! * β = 1/8 at da ≤ dm/10, 1/2 at da ≥ 8·dm/10, and on the line between them.
//!
//! Windows below 15 segments use Reno's 1 and 1/2.

use super::rounds::SeqRounds;
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::rto::MinRtt;
use crate::window::Window;
use farpace_units::{Instant, Packets, Span};

/// Segments a round trip: without a queue, and with the longest one.
const ALPHA_MAX: f64 = 10.0;
const ALPHA_MIN: f64 = 0.3;
/// Part of the window that a loss costs: without a queue, and with a long one.
const BETA_MIN: f64 = 0.125;
const BETA_MAX: f64 = 0.5;
/// Below this window, segments, the delay is not looked at.
const WIN_THRESH: u32 = 15;
/// θ: round trips without a queue before α is the greatest again.
const THETA: u32 = 5;

/// What the delay says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Gains {
    alpha: f64,
    beta: f64,
    /// There was a queue since the last timeout.
    queued: bool,
    /// Round trips without one since.
    calm: u32,
}

/// Reno's: at the begin, after a timeout, and for small windows.
const RENO: Gains = Gains { alpha: 1.0, beta: BETA_MAX, queued: false, calm: 0 };

impl Gains {
    /// The next round trip; delays in seconds.
    fn update(&mut self, da: f64, dm: f64) {
        let d1 = dm / 100.0;
        if da > d1 {
            self.queued = true;
            self.calm = 0;
            let (da, dm) = (da - d1, dm - d1);
            self.alpha = dm * ALPHA_MAX / (dm + da * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
        } else {
            // One round trip without a queue may be the gap after a burst.
            self.calm = (self.calm + 1).min(THETA);
            if !self.queued || self.calm >= THETA {
                self.queued = false;
                self.alpha = ALPHA_MAX;
            }
        }
        let (d2, d3) = (dm * 0.1, dm * 0.8);
        self.beta = if da <= d2 {
            BETA_MIN
        } else if da >= d3 {
            BETA_MAX
        } else {
            BETA_MIN + (BETA_MAX - BETA_MIN) * (da - d2) / (d3 - d2)
        };
    }
}

/// State of Illinois.
#[derive(Clone, Debug)]
pub struct Illinois {
    slow_start: SlowStart,
    gains: Gains,
    round: SeqRounds,
    base: MinRtt,
    /// The greatest round trip so far.
    longest: Span,
    /// Round trips of this round, seconds: their sum, and how many.
    sum: f64,
    samples: u32,
    /// Growth earned and not given: α for each segment, `cwnd` of it make one segment.
    credit: f64,
    /// The window and the gains before the last reduction.
    prior: Option<(Packets, Gains)>,
}

impl Illinois {
    /// Illinois that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Illinois {
            slow_start,
            gains: RENO,
            round: SeqRounds::default(),
            base: MinRtt::default(),
            longest: Span::ZERO,
            sum: 0.0,
            samples: 0,
            credit: 0.0,
            prior: None,
        }
    }

    /// The end of a round trip.
    fn update(&mut self, cwnd: Packets) {
        let samples = std::mem::take(&mut self.samples);
        let sum = std::mem::take(&mut self.sum);
        if cwnd.get() < WIN_THRESH {
            self.gains = Gains { alpha: RENO.alpha, beta: RENO.beta, ..self.gains };
        } else if let (1.., Some(base)) = (samples, self.base.get()) {
            let base = base.as_secs_f64();
            let dm = self.longest.as_secs_f64() - base;
            // Rounding must not make the mean greater than the greatest.
            let da = (sum / f64::from(samples) - base).clamp(0.0, dm.max(0.0));
            self.gains.update(da, dm);
        }
    }
}

impl CongestionControl for Illinois {
    fn on_acked(&mut self, ack: &AckSample) {
        let Some(rtt) = ack.rtt else { return };
        self.base.sample(ack.now, rtt);
        self.base.raise(ack.base_of_paths);
        self.longest = self.longest.max(rtt);
        self.sum += rtt.as_secs_f64();
        self.samples = self.samples.saturating_add(1);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if self.round.on_ack(ack) {
            self.update(window.cwnd());
        }
        let acked = self.slow_start.on_ack(window, ack);
        if acked.is_zero() || !ack.cwnd_limited {
            return;
        }
        let cwnd = f64::from(window.cwnd().get());
        self.credit += self.gains.alpha * f64::from(acked.get()).min(cwnd);
        let step = (self.credit / cwnd).floor();
        self.credit -= step * cwnd;
        window.set_cwnd(window.cwnd() + Packets::new(step as u32));
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, flight: Packets, _: Cut) -> Packets {
        self.prior = Some((window.cwnd(), self.gains));
        self.credit = 0.0;
        let used = f64::from(window.cwnd().min(flight).get());
        Packets::new(((used * (1.0 - self.gains.beta)) as u32).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior.map_or(Packets::ZERO, |p| p.0))
    }

    fn on_event(&mut self, _: Instant, _: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::EnterLoss { .. } => self.gains = RENO,
            CongestionEvent::Undo => {
                if let Some((_, gains)) = self.prior.take() {
                    self.gains = gains;
                }
            }
            _ => {}
        }
    }

    fn name(&self) -> &'static str {
        "illinois"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{TestLink, window};

    fn after(da: f64, dm: f64) -> (f64, f64) {
        let mut gains = RENO;
        gains.update(da, dm);
        (gains.alpha, gains.beta)
    }

    /// Breaks: the two curves, at their ends, their corners and in between: with dm = 101 ms, d1 = 1.01 ms.
    #[test]
    fn alpha_and_beta_by_delay() {
        // da in ms -> α, β. In the middle: 99.99·10/(99.99 + 49.49·97/3) = 999.9/1700.1667 = 0.588118;
        // β = 1/8 + 3/8·(50.5 − 10.1)/(80.8 − 10.1) = 0.339286.
        for (da, alpha, beta) in
            [(0.0, 10.0, 0.125), (1.01, 10.0, 0.125), (50.5, 0.588_118, 0.339_286), (101.0, 0.3, 0.5)]
        {
            let (a, b) = after(da, 101.0);
            assert!((a - alpha).abs() < 1e-6 && (b - beta).abs() < 1e-6, "{da}: {a}, {b}");
        }
        assert_eq!(after(10.0, 100.0).1, 0.125);
        assert_eq!(after(80.0, 100.0).1, 0.5);
        assert_eq!(after(0.0, 0.0), (10.0, 0.125), "a path that never had a queue");
    }

    /// Breaks: θ: after a queue, α becomes the greatest only in the fifth round trip without one.
    #[test]
    fn five_calm_round_trips() {
        let mut gains = RENO;
        gains.update(100.0, 100.0);
        let alphas: Vec<_> = (0..6)
            .map(|_| {
                gains.update(0.0, 100.0);
                gains.alpha
            })
            .collect();
        assert!(alphas[..4].iter().all(|&a| (a - 0.3).abs() < 1e-9), "{alphas:?}");
        assert_eq!(alphas[4..], [10.0, 10.0]);
    }

    /// Breaks: growth by α segments a round trip, and Reno's for small windows.
    #[test]
    fn grows_by_alpha() {
        for (alpha, expected) in [(10.0, 38..=40), (0.5, 1..=2)] {
            let mut cc = Illinois::new(SlowStart::new(None, None));
            cc.gains.alpha = alpha;
            let mut w = window(1000, 2);
            TestLink::new(2).rounds(&mut cc, &mut w, 4);
            let grown = w.cwnd().get() - 1000;
            assert!(expected.contains(&grown), "{grown} with {alpha}");
            cc.update(Packets::new(14));
            assert_eq!((cc.gains.alpha, cc.gains.beta), (1.0, 0.5));
        }
    }

    /// Breaks: the delay of a longer path, beside the one that was measured before, is a queue.
    #[test]
    fn a_longer_path_is_no_queue() {
        let ms = Span::from_millis;
        let mut cc = Illinois::new(SlowStart::new(None, None));
        for (rtt, base, alpha) in [(50, 0, 10.0), (100, 100, 10.0), (200, 100, 0.3)] {
            let ack = AckSample {
                rtt: Some(ms(rtt)),
                base_of_paths: ms(base),
                ..AckSample::of(Instant::ZERO, Packets::new(1))
            };
            for _ in 0..6 {
                cc.on_acked(&ack);
                cc.update(Packets::new(100));
            }
            assert!((cc.gains.alpha - alpha).abs() < 1e-9, "{rtt} ms: {}", cc.gains.alpha);
        }
    }

    /// Breaks: the cut by β, what a timeout forgets, and the way back from both.
    #[test]
    fn cuts_and_undo() {
        let mut cc = Illinois::new(SlowStart::new(None, None));
        cc.gains = Gains { alpha: 7.0, beta: 0.25, queued: true, calm: 2 };
        let gains = cc.gains;
        let mut w = window(100, 2);
        assert_eq!(cc.ssthresh(Instant::ZERO, &w, Packets::new(80), Cut::FastRetransmit).get(), 60);
        assert_eq!(cc.ssthresh(Instant::ZERO, &w, Packets::new(200), Cut::Timeout).get(), 75);
        cc.on_event(Instant::ZERO, &mut w, CongestionEvent::EnterLoss { total_lost: 0 });
        assert_eq!(cc.gains, RENO);
        assert_eq!(cc.undo_cwnd(&window(1, 75)).get(), 100);
        cc.on_event(Instant::ZERO, &mut w, CongestionEvent::Undo);
        assert_eq!(cc.gains, gains);
    }
}
