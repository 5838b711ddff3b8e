//! CUBIC in integers, with HyStart by ACK trains and by delay.

use super::{additive_increase, slow_start};
use crate::cc::{AckSample, CongestionControl, CongestionEvent, Cut};
use crate::window::Window;
use farpace_units::{Instant, Packets, Seq, Span};

/// Multiplicative decrease: 717/1024.
const BETA: u64 = 717;
const SCALE: u64 = 1024;
/// C = 41/1024, in segments per cube of (1024 of a second), times ten.
const C: u64 = 410;
/// Increase of Reno with the same decrease: 8 parts of a segment.
const RENO_SCALE: u64 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);
/// The curve is worked out anew at most so often while the window stays as it is.
const RECOMPUTE: Span = Span::from_micros(31_250);
/// And at most once in a tick.
const TICK: Span = Span::from_millis(1);
/// HyStart below this window does nothing.
const LOW_WINDOW: u32 = 16;
/// ACKs that are so close make a train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// Round trips that a round needs before its least one is believed.
const SAMPLES: u32 = 8;
/// Bounds of the growth of the round trip that ends slow start.
const MIN_GROWTH: Span = Span::from_millis(4);
const MAX_GROWTH: Span = Span::from_millis(16);
/// After a reduction the round trip says nothing for so long.
const SETTLING: Span = Span::from_secs(1);
/// A burst of the device: what leaves at once at most.
const BURST: u64 = 65_215;

/// CUBIC of profile `linux`.
#[derive(Clone, Debug, Default)]
pub struct LinuxCubic {
    hystart: bool,
    prior: Packets,
    curve: LinuxCubicCurve,
    start: Start,
    /// Since when nothing was sent, for the time in which the curve stands still.
    rounds_begun: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct LinuxCubicCurve {
    /// Acknowledged segments for each segment more.
    per: u32,
    last_max: u32,
    last_cwnd: u32,
    last_at: Option<Instant>,
    origin: u32,
    /// Time from the beginning of the epoch to its origin, in 1/1024 s.
    k: u64,
    delay_min: Option<Span>,
    epoch: Option<Instant>,
    acked: u64,
    reno_cwnd: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Start {
    found: bool,
    round_at: Instant,
    last_ack: Instant,
    end: Seq,
    least: Option<Span>,
    samples: u32,
}

/// The integer cube root.
fn cube_root(n: u64) -> u64 {
    let cube = |root: u64| u128::from(root) * u128::from(root) * u128::from(root);
    let mut root = libm::cbrt(n as f64) as u64;
    while cube(root) > u128::from(n) {
        root -= 1;
    }
    while cube(root + 1) <= u128::from(n) {
        root += 1;
    }
    root
}

impl LinuxCubic {
    /// CUBIC, with HyStart or without.
    pub fn new(hystart: bool) -> Self {
        LinuxCubic { hystart, ..LinuxCubic::default() }
    }

    fn begin_round(&mut self, now: Instant, snd_nxt: Seq) {
        let found = self.start.found;
        self.start = Start { found, round_at: now, last_ack: now, end: snd_nxt, least: None, samples: 0 };
    }

    fn update(&mut self, window: &Window, ack: &AckSample, acked: u32) {
        let (cwnd, now) = (window.cwnd().get(), ack.now);
        let c = &mut self.curve;
        c.acked += u64::from(acked);
        let since = c.last_at.map(|at| now.since(at));
        if c.last_cwnd == cwnd && since.is_some_and(|s| s <= RECOMPUTE) {
            return;
        }
        if c.epoch.is_none() || since.is_none_or(|s| s >= TICK) {
            c.last_cwnd = cwnd;
            c.last_at = Some(now);
            let epoch = match c.epoch {
                Some(epoch) => epoch,
                None => {
                    c.acked = u64::from(acked);
                    c.reno_cwnd = cwnd;
                    c.k = 0;
                    c.origin = cwnd;
                    if c.last_max > cwnd {
                        let above = u64::from(c.last_max - cwnd);
                        c.k = cube_root((1 << 40) / C * above);
                        c.origin = c.last_max;
                    }
                    c.epoch = Some(now);
                    now
                }
            };
            let time = now.since(epoch) + c.delay_min.unwrap_or_default();
            let t = (u128::from(time.as_nanos()) * 1024 / 1_000_000_000) as u64;
            let off = u128::from(t.abs_diff(c.k));
            let delta = u32::try_from((u128::from(C) * off * off * off) >> 40).unwrap_or(u32::MAX);
            let target =
                if t < c.k { c.origin.saturating_sub(delta) } else { c.origin.saturating_add(delta) };
            c.per = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            // Nothing is known of the path yet: not slower than 5 % a round trip.
            if c.last_max == 0 {
                c.per = c.per.min(20);
            }
        }
        // Not slower than Reno with the same decrease.
        let step = (u64::from(cwnd) * RENO_SCALE) >> 3;
        if step > 0 && c.acked > step {
            let n = (c.acked - 1) / step;
            c.acked -= n * step;
            c.reno_cwnd = c.reno_cwnd.saturating_add(u32::try_from(n).unwrap_or(u32::MAX));
        }
        if c.reno_cwnd > cwnd {
            c.per = c.per.min(cwnd / (c.reno_cwnd - cwnd));
        }
        // Not faster than by half a window a round trip.
        c.per = c.per.max(2);
    }

    /// What leaves at once takes so long, at the rate of slow start.
    fn train_delay(window: &Window, ack: &AckSample) -> Span {
        let cwnd = u64::from(window.cwnd().get());
        let rate = 2 * cwnd * u64::from(ack.mss) * 1_000_000_000 / ack.srtt.as_nanos().max(1);
        let nanos = (BURST * 4).saturating_mul(1_000_000_000).checked_div(rate);
        nanos.map_or(Span::ZERO, Span::from_nanos).min(Span::from_millis(1))
    }

    fn look_for_the_end(&mut self, window: &Window, ack: &AckSample, delay: Span) {
        if !self.rounds_begun || ack.snd_una.after(self.start.end) {
            self.rounds_begun = true;
            self.begin_round(ack.now, ack.snd_nxt);
        }
        if window.cwnd().get() < LOW_WINDOW {
            return;
        }
        let least = self.curve.delay_min.unwrap_or(delay);
        let s = &mut self.start;
        if ack.now.since(s.last_ack) <= TRAIN_GAP {
            s.last_ack = ack.now;
            let threshold = (least + Self::train_delay(window, ack)) / 2;
            s.found |= ack.now.since(s.round_at) > threshold;
        }
        s.least = Some(s.least.map_or(delay, |l| l.min(delay)));
        if s.samples < SAMPLES {
            s.samples += 1;
        } else {
            let growth = (least / 8).max(MIN_GROWTH).min(MAX_GROWTH);
            s.found |= s.least.is_some_and(|l| l > least + growth);
        }
    }
}

impl CongestionControl for LinuxCubic {
    fn on_acked(&mut self, ack: &AckSample) {
        let Some(delay) = ack.rtt else { return };
        if self.curve.epoch.is_some_and(|at| ack.now.since(at) < SETTLING) {
            return;
        }
        let delay = delay.max(Span::from_micros(1));
        self.curve.delay_min = Some(self.curve.delay_min.map_or(delay, |d| d.min(delay)));
    }

    fn on_measured(&mut self, window: &mut Window, ack: &AckSample) {
        self.on_acked(ack);
        let Some(delay) = ack.rtt else { return };
        if self.curve.epoch.is_some_and(|at| ack.now.since(at) < SETTLING) {
            return;
        }
        if self.hystart && !self.start.found && window.cwnd() < window.ssthresh() {
            self.look_for_the_end(window, ack, delay.max(Span::from_micros(1)));
            if self.start.found {
                window.set_ssthresh(window.cwnd());
            }
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let mut acked = ack.acked.get();
        if window.cwnd() < window.ssthresh() {
            acked = slow_start(window, acked);
            if acked == 0 {
                return;
            }
        }
        self.update(window, ack, acked);
        additive_increase(window, self.curve.per, acked);
    }

    fn ssthresh(&mut self, _: Instant, window: &Window, _: Packets, _: Cut) -> Packets {
        self.prior = window.cwnd();
        let cwnd = u64::from(window.cwnd().get());
        self.curve.epoch = None;
        // A maximum that keeps falling is a sign of a newcomer.
        let last_max =
            if cwnd < u64::from(self.curve.last_max) { cwnd * (SCALE + BETA) / (2 * SCALE) } else { cwnd };
        self.curve.last_max = u32::try_from(last_max).unwrap_or(u32::MAX);
        Packets::new(u32::try_from(cwnd * BETA / SCALE).unwrap_or(u32::MAX).max(2))
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        window.cwnd().max(self.prior)
    }

    fn on_event(&mut self, now: Instant, _: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::EnterLoss { .. } => {
                self.curve = LinuxCubicCurve::default();
                self.start = Start::default();
                self.rounds_begun = false;
            }
            CongestionEvent::Restart(idle) => {
                // Time in which nothing was sent does not count.
                if let Some(epoch) = self.curve.epoch.as_mut() {
                    *epoch = (*epoch + idle).min(now);
                }
            }
            CongestionEvent::EnterRecovery
            | CongestionEvent::ExitRecovery
            | CongestionEvent::Undo
            | CongestionEvent::Established(_) => {}
        }
    }

    fn name(&self) -> &'static str {
        "cubic"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{TestLink, window};

    /// Breaks: the curve: K is the time to the old maximum, and is exact in integers.
    #[test]
    fn roots() {
        for n in [0, 1, 7, 8, 26, 27, 63, 64, 1 << 40, (1 << 40) - 1, u64::MAX] {
            let root = cube_root(n);
            assert!(u128::from(root).pow(3) <= u128::from(n), "{n}");
            assert!(u128::from(root + 1).pow(3) > u128::from(n), "{n}");
        }
    }

    /// Breaks: the way back to the old maximum after a loss, slow around it and fast beyond.
    #[test]
    fn it_comes_back_to_its_maximum_and_goes_beyond() {
        let mut cubic = LinuxCubic::new(false);
        let mut w = window(1000, 500);
        let ssthresh = cubic.ssthresh(Instant::ZERO, &w, Packets::new(1000), Cut::FastRetransmit);
        assert_eq!(ssthresh.get(), 700);
        w.set_ssthresh(ssthresh);
        w.set_cwnd(ssthresh);
        let mut link = TestLink::new(2);
        link.rounds(&mut cubic, &mut w, 85);
        assert!((900..=1001).contains(&w.cwnd().get()), "{}", w.cwnd());
        link.rounds(&mut cubic, &mut w, 100);
        assert!(w.cwnd().get() > 1_100, "{}", w.cwnd());
    }
}
