//! 4.3BSD-Reno, Net/2 and 4.4BSD: Jacobson's estimator in scaled integers of clock ticks.

use farpace_units::Span;

/// Least timeout in ticks. Less than two might be no time at all: the first tick comes at once, or later.
const MIN_TICKS: u64 = 2;
/// Longest timeout.
const MAX: Span = Span::from_secs(64);
/// The first timeout, of a SYN.
const INITIAL: Span = Span::from_secs(6);
/// What the variation starts with stands for this timeout: it counts from the second SYN on, so that they
/// leave after 6 s and 24 s more.
const INITIAL_VARIATION: Span = Span::from_secs(12);
/// The greatest factor of the back-off is 2 to the power of this.
const MAX_SHIFT: u32 = 6;
/// From the timeout after these on the round trip is forgotten.
const FORGET_AFTER: u32 = 3;

/// `t_srtt` (ticks, times 8) and `t_rttvar` (ticks, times 4; as it stands it is four mean deviations).
#[derive(Clone, Debug)]
pub struct Net2 {
    /// Zero: nothing was measured.
    srtt8: i64,
    rttvar4: i64,
    tick: Span,
}

impl Net2 {
    /// No sample yet, with a clock of this tick.
    pub fn new(tick: Span) -> Self {
        let tick = tick.max(Span::from_nanos(1));
        Net2 { srtt8: 0, rttvar4: ticks(INITIAL_VARIATION, tick), tick }
    }

    /// Takes in a round trip of whole ticks.
    pub fn sample(&mut self, rtt: Span) {
        // The kernel counts from one when a segment leaves (zero: nothing is timed), and takes the one off
        // again but for the first sample.
        let rtt = (rtt.as_nanos() / self.tick.as_nanos()) as i64 + 1;
        if self.srtt8 == 0 {
            self.srtt8 = rtt << 3;
            self.rttvar4 = rtt << 1;
            return;
        }
        let delta = rtt - 1 - (self.srtt8 >> 3);
        self.srtt8 = (self.srtt8 + delta).max(1);
        self.rttvar4 = (self.rttvar4 + delta.abs() - (self.rttvar4 >> 2)).max(1);
    }

    /// The timeout after `shift` timeouts in a row.
    pub fn rto(&self, shift: u32) -> Span {
        if self.srtt8 == 0 && shift == 0 {
            return INITIAL;
        }
        let ticks = (self.srtt8 >> 3) + self.rttvar4;
        let backed_off = self.tick * (ticks as u64) * (1u64 << shift.min(MAX_SHIFT));
        backed_off.max(self.tick * MIN_TICKS).min(MAX)
    }

    /// The timer has fired `shift` times in a row. After the fourth time the path may be another one: the
    /// timeout stays, but the next sample is taken as the first one is.
    pub fn on_timeout(&mut self, shift: u32) {
        if shift > FORGET_AFTER {
            self.rttvar4 += self.srtt8 >> 3;
            self.srtt8 = 0;
        }
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Span {
        self.tick * (self.srtt8 as u64) / 8
    }

    /// Mean deviation.
    pub fn rttvar(&self) -> Span {
        self.tick * (self.rttvar4 as u64) / 4
    }
}

fn ticks(span: Span, tick: Span) -> i64 {
    span.as_nanos().div_ceil(tick.as_nanos()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Span = Span::from_millis(500);

    fn after(samples: &[u64]) -> Net2 {
        let mut e = Net2::new(TICK);
        samples.iter().for_each(|ticks| e.sample(TICK * *ticks));
        e
    }

    /// Breaks: BSD's integer arithmetic. `(samples in ticks, t_srtt, t_rttvar, timeout in ticks)`, worked out
    /// by hand.
    #[test]
    fn vectors() {
        let table: [(&[u64], i64, i64, u64); 9] = [
            (&[], 0, 24, 12),
            (&[0], 8, 2, 3),       // counted as 1: 1 << 3, 1 << 1
            (&[0, 0], 7, 3, 3),    // delta 1-1-1 = -1; 1 - (2>>2)
            (&[0, 0, 0], 7, 3, 3), // delta 1-1-0 = 0; 0 - (3>>2)
            (&[1], 16, 4, 6),
            (&[1, 1], 15, 4, 5),    // delta 2-1-2 = -1; 1 - (4>>2)
            (&[1, 6], 20, 7, 9),    // delta 7-1-2 = 4; 4 - 1
            (&[3, 3, 3], 31, 6, 9), // 32, 8; delta -1: 31, 7; delta 0: 31, 6
            (&[1, 0, 0, 0, 0], 11, 5, 6),
        ];
        for (samples, srtt8, rttvar4, rto) in table {
            let e = after(samples);
            assert_eq!((e.srtt8, e.rttvar4, e.rto(0)), (srtt8, rttvar4, TICK * rto), "{samples:?}");
        }
    }

    /// Breaks: the bounds: two ticks however short the path, 64 s however long or often.
    #[test]
    fn bounds() {
        let mut e = after(&[0; 200]);
        assert_eq!((e.srtt8, e.rttvar4), (7, 3), "it stays there: the integers cannot go lower");
        (e.srtt8, e.rttvar4) = (1, 1);
        assert_eq!(e.rto(0), TICK * 2);
        assert_eq!([1, 2, 6, 7, 40].map(|shift| e.rto(shift)), [2, 4, 64, 64, 64].map(|n| TICK * n));
        assert_eq!(after(&[1000]).rto(0), Span::from_secs(64));
        assert_eq!([0, 1, 2, 3].map(|shift| after(&[]).rto(shift)), [6, 24, 48, 64].map(Span::from_secs));
    }

    /// Breaks: a path that has changed is measured anew after four timeouts, but the timer is not quicker for
    /// it.
    #[test]
    fn forgets_after_four_timeouts() {
        let mut e = after(&[3]);
        let before = e.rto(4);
        (1..=3).for_each(|shift| e.on_timeout(shift));
        assert_eq!(e.srtt8, 32);
        e.on_timeout(4);
        assert_eq!((e.srtt8, e.rto(4)), (0, before));
        e.sample(TICK);
        assert_eq!((e.srtt8, e.rttvar4), (16, 4));
    }
}
