//! Westwood (Mascolo et al., MobiCom 2001): Reno that comes down to what the path has carried, not to half.
//!
//! ```text
//! s[k] = segments that ACK k shows to have arrived / time since ACK k-1
//! b[k] = 0.9 b[k-1] + 0.1 (s[k] + s[k-1]) / 2       Tustin's filter, as in ns-3; b[1] = s[1]
//! three duplicate ACKs:  ssthresh = b RTTmin,  w = min(w, ssthresh)
//! timeout:               ssthresh = b RTTmin,  w = 1
//! ```
//! Each ACK is a sample, however close it comes to the one before: compressed ACKs make b too large.

use super::filters::Tustin;
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, Reno};
use crate::window::Window;
use farpace_units::{Instant, Packets, Span};

/// Tustin's filter over the rates of single ACKs, segments/s.
#[derive(Clone, Debug, Default)]
struct WestwoodFilter {
    /// Arrival of the latest ACK; none before the first one.
    last: Option<Instant>,
    /// Segments of ACKs that came at the same time as `last`; no rate can be made of them alone.
    pending: f64,
    b: Tustin,
}

impl WestwoodFilter {
    fn on_acked(&mut self, ack: &AckSample) {
        let Some(last) = self.last else {
            self.last = Some(ack.now);
            return;
        };
        self.pending += f64::from(ack.delivered.get());
        let interval = ack.now.since(last);
        if interval.is_zero() {
            return;
        }
        self.b.take(self.pending / interval.as_secs_f64());
        self.last = Some(ack.now);
        self.pending = 0.0;
    }
}

/// The window that carries `rate` segments/s without a queue, at least two segments.
pub(super) fn window_for(rate: f64, rtt_min: Span) -> Packets {
    // A cast from floating point saturates.
    Packets::new(((rate * rtt_min.as_secs_f64()) as u32).max(2))
}

/// State of Westwood.
#[derive(Clone, Debug)]
pub struct Westwood {
    reno: Reno,
    filter: WestwoodFilter,
    rtt_min: Option<Span>,
    /// The threshold by the measured bandwidth at the cut whose recovery is under way.
    measured: Option<Packets>,
}

impl Westwood {
    /// Westwood that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Westwood {
            reno: Reno::new(slow_start),
            filter: WestwoodFilter::default(),
            rtt_min: None,
            measured: None,
        }
    }

    /// b RTTmin; none before something is measured.
    fn threshold(&self) -> Option<Packets> {
        Some(window_for(self.filter.b.get()?, self.rtt_min?))
    }
}

impl CongestionControl for Westwood {
    fn on_acked(&mut self, ack: &AckSample) {
        self.filter.on_acked(ack);
        self.rtt_min = ack.min_rtt.or(self.rtt_min);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        self.reno.on_ack(window, ack);
    }

    /// In recovery the window must not be above the one at the loss, so the threshold is given up to it; what
    /// is more comes at the end.
    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        let half = self.reno.ssthresh(now, window, flight, cut);
        let measured = self.threshold();
        self.measured = measured.filter(|_| cut != Cut::Timeout);
        match measured {
            Some(threshold) if cut == Cut::Timeout => threshold,
            Some(threshold) => threshold.min(window.cwnd()).max(Packets::new(2)),
            None => half,
        }
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        window.ssthresh()
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        self.reno.undo_cwnd(window)
    }

    fn on_event(&mut self, _: Instant, window: &mut Window, event: CongestionEvent) {
        match event {
            CongestionEvent::ExitRecovery => {
                if let Some(threshold) = self.measured.take() {
                    window.set_ssthresh(threshold);
                }
            }
            CongestionEvent::EnterLoss { .. } | CongestionEvent::Undo => self.measured = None,
            CongestionEvent::EnterRecovery
            | CongestionEvent::Restart(_)
            | CongestionEvent::Established(_) => {}
        }
    }

    fn name(&self) -> &'static str {
        "westwood"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;

    /// A Westwood that got `(milliseconds, segments)` after one another, at a least round trip of 100 ms.
    fn fed(acks: &[(u64, u32)]) -> Westwood {
        let mut cc = Westwood::new(SlowStart::new(None, None));
        for &(ms, delivered) in acks {
            let now = Instant::ZERO + Span::from_millis(ms);
            let min_rtt = Some(Span::from_millis(100));
            cc.on_acked(&AckSample { min_rtt, ..AckSample::of(now, Packets::new(delivered)) });
        }
        cc
    }

    fn estimate(acks: &[(u64, u32)]) -> f64 {
        fed(acks).filter.b.get().unwrap_or_default()
    }

    /// Breaks: Tustin's filter, and ACKs that arrive at the same time.
    #[test]
    fn filter() {
        // s = 200, 100, 400: b = 200; 0.9*200 + 0.1*150 = 195; 0.9*195 + 0.1*250 = 200.5.
        let acks = [(0, 9), (10, 2), (20, 1), (30, 4)];
        let expected = [0.0, 200.0, 195.0, 200.5];
        for (n, expected) in expected.into_iter().enumerate() {
            assert!((estimate(&acks[..=n]) - expected).abs() < 1e-9, "{n}: {}", estimate(&acks[..=n]));
        }
        assert_eq!(estimate(&[(0, 9), (10, 2), (10, 3), (20, 1)]), estimate(&[(0, 9), (10, 2), (20, 4)]));
    }

    /// Breaks: the threshold b RTTmin: not above the window in recovery, in full at its end and after a
    /// timeout; half of the window before anything is measured.
    #[test]
    fn threshold() {
        // 500 segments/s and 100 ms: 50 segments.
        let steady: Vec<_> = (0..100).map(|i| (i * 2, 1)).collect();
        let cut = |cwnd: u32, cut| {
            let (mut cc, mut w) = (fed(&steady), window(cwnd, 1000));
            let ssthresh = cc.ssthresh(Instant::ZERO, &w, Packets::new(cwnd), cut);
            w.set_ssthresh(ssthresh);
            w.set_cwnd(ssthresh.min(w.cwnd()));
            assert!(cc.undo_cwnd(&w).get() == cwnd);
            cc.on_event(Instant::ZERO, &mut w, CongestionEvent::ExitRecovery);
            [ssthresh, w.cwnd(), w.ssthresh()].map(Packets::get)
        };
        assert_eq!(cut(80, Cut::FastRetransmit), [50, 50, 50]);
        assert_eq!(cut(30, Cut::FastRetransmit), [30, 30, 50]);
        assert_eq!(cut(30, Cut::Timeout), [50, 30, 50]);
        let mut new = fed(&[(0, 9)]);
        let half = new.ssthresh(Instant::ZERO, &window(30, 1000), Packets::new(30), Cut::FastRetransmit);
        assert_eq!(half.get(), 15);
    }

    /// Breaks: a threshold of a recovery that a timeout or an undo has ended, which would come back later.
    #[test]
    fn forgets_a_broken_recovery() {
        for event in [CongestionEvent::EnterLoss { total_lost: 0 }, CongestionEvent::Undo] {
            let (mut cc, mut w) = (fed(&[(0, 1), (2, 1), (4, 1)]), window(80, 70));
            cc.ssthresh(Instant::ZERO, &w, Packets::new(80), Cut::FastRetransmit);
            cc.on_event(Instant::ZERO, &mut w, event);
            cc.on_event(Instant::ZERO, &mut w, CongestionEvent::ExitRecovery);
            assert_eq!(w.ssthresh().get(), 70, "{event:?}");
        }
    }
}
