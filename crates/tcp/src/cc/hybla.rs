//! Hybla (Caini and Firrincieli, Int. J. Satellite Communications and Networking 22(5), 2004): a long path
//! grows as fast as a short one would.
//!
//! ```text
//! rho = max(RTT / RTT0, 1),  RTT0 = 25 ms           anew whenever SRTT reaches a new minimum
//! slow start:            w += 2^rho - 1             each segment acknowledged; rho at most 16
//! congestion avoidance:  w += rho^2 / w             each segment acknowledged
//! first window:          w  = rho                   here: at least
//! ```
//! A loss costs half, and in any state but Open it is Reno.
//!
//! At 400 ms and more one ACK of slow start opens the window by 65 535 segments for each that it covers:
//! until the first loss nothing but the initial threshold, the buffers and the receiver's window bound what
//! leaves, and without pacing it leaves in one burst. Its authors had the threshold estimated and the sender
//! paced: set `initial_ssthresh` to the path's bandwidth-delay product, and `pacing`. `slow_start_limit`
//! bounds an ACK's growth whatever rho is.

use super::fraction::Fraction;
use super::slow_start::SlowStart;
use super::{AckSample, CongestionControl, CongestionEvent, Cut, Reno};
use crate::window::Window;
use farpace_events::RecoveryState;
use farpace_units::{Instant, Packets, Span};

/// The round trip of the connection to be as fast as.
const RTT0: Span = Span::from_millis(25);
/// Largest rho in slow start.
const MAX_RHO: f64 = 16.0;

/// State of Hybla.
#[derive(Clone, Debug)]
pub struct Hybla {
    reno: Reno,
    slow_start: SlowStart,
    fraction: Fraction,
    /// What slow start left below a whole segment.
    carry: f64,
    /// At least one.
    rho: f64,
    /// The least SRTT, from which `rho` is.
    least: Option<Span>,
}

impl Hybla {
    /// Hybla that grows like this, times 2^rho - 1, below its threshold.
    pub fn new(slow_start: SlowStart) -> Self {
        Hybla {
            reno: Reno::new(slow_start.clone()),
            slow_start,
            fraction: Fraction::default(),
            carry: 0.0,
            rho: 1.0,
            least: None,
        }
    }

    fn measure(&mut self, rtt: Span) {
        if !rtt.is_zero() && self.least.is_none_or(|least| rtt < least) {
            self.least = Some(rtt);
            self.rho = (rtt.as_nanos() as f64 / RTT0.as_nanos() as f64).max(1.0);
        }
    }

    /// Slow start; returns the acknowledged segments left for congestion avoidance.
    fn slow_start(&mut self, window: &mut Window, ack: &AckSample) -> Packets {
        // 2^rho - 1 for each segment.
        let each = libm::exp2(self.rho.min(MAX_RHO)) - 1.0;
        let grown = f64::from(ack.acked.get()) * each + self.carry;
        self.carry = grown - libm::floor(grown);
        // A cast from floating point saturates.
        let left = self.slow_start.on_ack(window, &AckSample { acked: Packets::new(grown as u32), ..*ack });
        Packets::new((f64::from(left.get()) / each) as u32)
    }
}

impl CongestionControl for Hybla {
    fn on_acked(&mut self, ack: &AckSample) {
        self.measure(ack.srtt);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckSample) {
        if ack.state != RecoveryState::Open {
            return self.reno.on_ack(window, ack);
        }
        let acked = if window.cwnd() < window.ssthresh() { self.slow_start(window, ack) } else { ack.acked };
        if ack.cwnd_limited && !acked.is_zero() {
            // rho^2 / w a segment is rho^2 a window.
            self.fraction.grow(window, acked, self.rho * self.rho);
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

    fn on_event(&mut self, _: Instant, window: &mut Window, event: CongestionEvent) {
        if let CongestionEvent::Established(rtt) = event {
            self.measure(rtt);
            window.set_cwnd(window.cwnd().max(Packets::new(self.rho as u32)));
        }
    }

    fn name(&self) -> &'static str {
        "hybla"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::testing::{TestLink, window};

    /// A Hybla on a path with this round trip, in milliseconds.
    fn hybla(rtt: u64) -> Hybla {
        let mut cc = Hybla::new(SlowStart::new(None, None));
        cc.on_event(Instant::ZERO, &mut window(10, 2), CongestionEvent::Established(Span::from_millis(rtt)));
        cc
    }

    fn ack(acked: u32) -> AckSample {
        AckSample::of(Instant::ZERO, Packets::new(acked))
    }

    /// Breaks: rho: from the handshake, then from the least SRTT, never below one; the first window.
    #[test]
    fn rho() {
        let mut cc = hybla(500);
        let mut rho_at = |ms| {
            cc.on_acked(&AckSample { srtt: Span::from_millis(ms), ..ack(1) });
            cc.rho
        };
        assert_eq!(
            [rho_at(600), rho_at(0), rho_at(250), rho_at(400), rho_at(10)],
            [20.0, 20.0, 10.0, 10.0, 1.0]
        );
        for (rtt, cwnd) in [(600, 24), (240, 10), (0, 10)] {
            let mut w = window(10, 1000);
            let rtt = Span::from_millis(rtt);
            Hybla::new(SlowStart::new(None, None)).on_event(
                Instant::ZERO,
                &mut w,
                CongestionEvent::Established(rtt),
            );
            assert_eq!(w.cwnd().get(), cwnd, "{rtt:?}");
        }
    }

    /// Breaks: slow start by 2^rho - 1 with its fraction, its bounds, and what is left at the threshold.
    #[test]
    fn slow_start() {
        let grown = |rtt, acks: &[AckSample], ssthresh, limit: Option<u32>| {
            let mut cc = hybla(rtt);
            cc.slow_start = SlowStart::new(limit.map(Packets::new), None);
            let mut w = window(10, ssthresh);
            acks.iter().for_each(|ack| cc.on_ack(&mut w, ack));
            (w.cwnd().get(), (cc.fraction.cwnd(&w) - f64::from(w.cwnd().get())))
        };
        assert_eq!(grown(25, &[ack(2)], 1000, None).0, 12);
        assert_eq!(grown(100, &[ack(2)], 1000, None).0, 40); // 2 * (2^4 - 1)
        // 2^1.6 - 1 = 2.0314: 32 of them are 65.006, with 31 carries of less than a segment.
        assert_eq!(grown(40, &[ack(1); 32], 1000, None).0, 75);
        assert_eq!(grown(600, &[ack(1)], 1 << 20, None).0, 10 + 65_535);
        assert_eq!(grown(600, &[ack(1)], 400, None), (400, 0.0));
        assert_eq!(grown(600, &[ack(4)], 1 << 20, Some(8)).0, 18);
        // One of four segments reaches the threshold; the other three: 4^2 * 3 / 25 = 1.92.
        let (cwnd, part) = grown(100, &[ack(4)], 25, None);
        assert!(cwnd == 26 && (part - 0.92).abs() < 1e-6, "{cwnd} + {part}");
    }

    /// Breaks: congestion avoidance by rho^2 a round trip, whatever the ACK ratio, and Reno when all is not
    /// well.
    #[test]
    fn congestion_avoidance() {
        for ratio in [1, 2, 8] {
            let (mut cc, mut w) = (hybla(100), window(100, 2));
            TestLink::new(ratio).rounds(&mut cc, &mut w, 10);
            assert!((258..=260).contains(&w.cwnd().get()), "ratio {ratio}: {}", w.cwnd());
        }
        for state in [RecoveryState::Disorder, RecoveryState::Loss] {
            let (mut cc, mut w) = (hybla(100), window(10, 12));
            for expected in [11, 12, 12] {
                cc.on_ack(&mut w, &AckSample { state, ..ack(1) });
                assert_eq!(w.cwnd().get(), expected, "{state:?}");
            }
        }
        let (mut cc, w) = (hybla(100), window(100, 2));
        assert_eq!(cc.ssthresh(Instant::ZERO, &w, Packets::new(90), Cut::FastRetransmit).get(), 45);
        assert_eq!(cc.undo_cwnd(&window(45, 45)).get(), 100);
    }
}
