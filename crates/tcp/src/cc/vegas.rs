//! Vegas (Brakmo and Peterson 1995, with the arithmetic of Linux): keeps two to four segments in the queue.
//!
//! Once a round trip, with RTT its least sample and BaseRTT the least of the path: diff = cwnd·(RTT −
//! BaseRTT)/BaseRTT, the segments that wait in queues. Slow start ends at diff > γ; then the window falls by
//! one above β, and grows by one below α. Losses cut it as in Reno. BaseRTT is that of the last five minutes,
//! so that a path that has become longer is not a queue for ever.

use super::rounds::SeqRounds;
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, Reno};
use crate::rto::MinRtt;
use crate::window::Window;
use farpace_units::{Instant, Packets, Span};
use std::cmp::Ordering;

/// Queued segments below which the window grows.
const ALPHA: u128 = 2;
/// Queued segments above which it falls.
const BETA: u128 = 4;
/// Queued segments that end slow start.
const GAMMA: u128 = 1;
/// Samples that a round trip needs: with one or two, a delayed ACK looks like a queue.
const MIN_SAMPLES: u32 = 3;
/// The smallest window that the delay leads to, segments.
const MIN_CWND: u32 = 2;

/// State of Vegas.
#[derive(Clone, Debug)]
pub struct Vegas {
    /// Slow start, cuts, and growth in round trips that measured too little.
    reno: Reno,
    base: MinRtt,
    round: SeqRounds,
    least: Option<Span>,
    samples: u32,
}

impl Vegas {
    /// Vegas that grows like this below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Vegas {
            reno: Reno::new(slow_start),
            base: MinRtt::default(),
            round: SeqRounds::default(),
            least: None,
            samples: 0,
        }
    }

    /// RTT and BaseRTT at the end of a round trip, if it measured enough.
    fn take_round(&mut self) -> Option<(Span, Span)> {
        let enough = std::mem::take(&mut self.samples) >= MIN_SAMPLES;
        let rtt = self.least.take().filter(|_| enough)?;
        Some((rtt, self.base.get()?.min(rtt)))
    }

    fn follow_delay(window: &mut Window, rtt: Span, base: Span) {
        let (cwnd, ssthresh) = (window.cwnd(), window.ssthresh());
        let one = Packets::new(1);
        if cwnd < ssthresh {
            // cwnd·BaseRTT/RTT is what the path holds without a queue.
            let fits = u128::from(cwnd.get()) * u128::from(base.as_nanos()) / u128::from(rtt.as_nanos());
            window.set_cwnd(cwnd.min(Packets::new(fits as u32) + one).max(Packets::new(MIN_CWND)));
            window.set_ssthresh(ssthresh.min(window.cwnd() - one));
        } else if compare(cwnd, rtt, base, BETA).is_gt() {
            window.set_cwnd((cwnd - one).max(Packets::new(MIN_CWND)));
            // Below the threshold slow start would undo the step.
            window.set_ssthresh(ssthresh.min(window.cwnd() - one));
        } else if compare(cwnd, rtt, base, ALPHA).is_lt() {
            window.set_cwnd(cwnd + one);
        }
    }
}

/// How diff compares to `n` segments; multiplied by BaseRTT, so that nothing is rounded.
fn compare(cwnd: Packets, rtt: Span, base: Span, n: u128) -> Ordering {
    let diff = u128::from(cwnd.get()) * u128::from((rtt - base).as_nanos());
    diff.cmp(&(n * u128::from(base.as_nanos())))
}

impl CongestionControl for Vegas {
    fn on_acked(&mut self, ack: &AckSample) {
        let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        self.base.sample(ack.now, rtt);
        self.base.raise(ack.base_of_paths);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.samples = self.samples.saturating_add(1);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        let opening = window.cwnd() < window.ssthresh();
        if !self.round.on_ack(ack) {
            if opening {
                self.reno.on_ack(window, ack);
            }
            return;
        }
        match self.take_round() {
            _ if !ack.cwnd_limited => {}
            Some((rtt, base)) if !opening || compare(window.cwnd(), rtt, base, GAMMA).is_gt() => {
                Self::follow_delay(window, rtt, base);
            }
            _ => self.reno.on_ack(window, ack),
        }
    }

    fn ssthresh(&mut self, now: Instant, window: &Window, flight: Packets, cut: Cut) -> Packets {
        self.reno.ssthresh(now, window, flight, cut)
    }

    fn min_cwnd(&self, window: &Window) -> Packets {
        self.reno.min_cwnd(window)
    }

    fn undo_cwnd(&self, window: &Window) -> Packets {
        self.reno.undo_cwnd(window)
    }

    fn on_event(&mut self, _: Instant, _: &mut Window, event: CongestionEvent) {
        // What was measured in a recovery says nothing of the window that follows. A cut changes nothing else
        // here, so that an undo has nothing more to put back. Restart is no reason: with a window of two each
        // ACK empties it.
        if matches!(
            event,
            CongestionEvent::ExitRecovery | CongestionEvent::EnterLoss { .. } | CongestionEvent::Undo
        ) {
            (self.round, self.least, self.samples) = (SeqRounds::default(), None, 0);
        }
    }

    fn name(&self) -> &'static str {
        "vegas"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::window;
    use farpace_units::Seq;

    /// One round trip of `samples` samples of `rtt_us`, and the window after it.
    fn round(vegas: &mut Vegas, w: &mut Window, samples: u32, rtt_us: u64) -> u32 {
        round_of_paths(vegas, w, samples, rtt_us, 0)
    }
    /// The same, with this round trip of several paths.
    fn round_of_paths(vegas: &mut Vegas, w: &mut Window, samples: u32, rtt_us: u64, base_us: u64) -> u32 {
        for i in 1..=samples {
            let ack = AckSample {
                snd_una: Seq::new(if i == samples { 2000 } else { 1500 }),
                snd_nxt: Seq::new(2000),
                rtt: Some(Span::from_micros(rtt_us)),
                base_of_paths: Span::from_micros(base_us),
                ..AckSample::of(Instant::ZERO, Packets::ZERO)
            };
            vegas.on_acked(&ack);
            vegas.on_ack(w, &ack);
        }
        w.cwnd().get()
    }

    fn vegas(base_us: u64) -> Vegas {
        let mut v = Vegas::new(SlowStart::new(None, None));
        v.base.sample(Instant::ZERO, Span::from_micros(base_us));
        v.round.on_ack(&AckSample { snd_nxt: Seq::new(2000), ..AckSample::of(Instant::ZERO, Packets::ZERO) });
        v
    }

    /// Breaks: the equilibrium of Vegas, at the edges of α and β: 20 segments and 100 ms, 5 ms of queue are 1
    /// segment.
    #[test]
    fn two_to_four_segments_wait() {
        // (RTT in µs, diff) -> window
        for (rtt, expected) in [
            (100_000, 21),
            (109_999, 21),
            (110_000, 20), // diff = 2
            (120_000, 20), // diff = 4
            (120_001, 19),
            (300_000, 19),
        ] {
            let (mut v, mut w) = (vegas(100_000), window(20, 2));
            assert_eq!(round(&mut v, &mut w, 3, rtt), expected, "{rtt}");
            assert!(w.ssthresh() <= w.cwnd());
        }
        let (mut v, mut w) = (vegas(1), window(2, 2));
        assert_eq!(round(&mut v, &mut w, 3, 300_000), 2, "never less than two");
    }

    /// Breaks: the delay of a longer path, beside the one that was measured before, is a queue.
    #[test]
    fn a_longer_path_is_no_queue() {
        let (mut v, mut w) = (vegas(50_000), window(20, 2));
        assert_eq!(round_of_paths(&mut v, &mut w, 3, 100_000, 100_000), 21);
        assert_eq!(round_of_paths(&mut v, &mut w, 3, 200_000, 100_000), 20, "this is one");
    }

    /// Breaks: the end of slow start by delay: 40 segments at RTT 125 of 100 ms are 10 in the queue; 32 fit,
    /// and one.
    #[test]
    fn slow_start_ends_by_delay() {
        let (mut v, mut w) = (vegas(100_000), window(40, u32::MAX));
        assert_eq!(round(&mut v, &mut w, 3, 125_000), 33);
        assert_eq!(w.ssthresh().get(), 32);
        let (mut v, mut w) = (vegas(100_000), window(40, u32::MAX));
        round(&mut v, &mut w, 3, 102_500); // diff = 1 = γ
        assert_eq!((w.cwnd().get(), w.ssthresh()), (40, Packets::MAX));
    }

    /// Breaks: the guard against delayed ACKs: two samples are no measurement, and the round trip is Reno's.
    #[test]
    fn two_samples_are_not_enough() {
        let (mut v, mut w) = (vegas(100_000), window(20, 2));
        assert_eq!(round(&mut v, &mut w, 2, 300_000), 20);
        assert_eq!(round(&mut v, &mut w, 3, 300_000), 19);
    }
}
