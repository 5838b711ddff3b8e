//! RFC 6298: the standard estimator.

use farpace_units::Span;

/// Before the first sample (RFC 6298 §2.1).
const INITIAL: Span = Span::from_secs(1);
/// The same after a SYN that had to be repeated (RFC 6298 §5.7).
const INITIAL_AFTER_SYN_TIMEOUT: Span = Span::from_secs(3);

/// SRTT and RTTVAR of RFC 6298 §2.
#[derive(Clone, Debug)]
pub struct Rfc6298 {
    srtt: Option<Span>,
    rttvar: Span,
    min: Span,
    /// Clock granularity G.
    granularity: Span,
    initial: Span,
}

impl Rfc6298 {
    /// No sample yet; `min` is the least timeout (the RFC says 1 s, today's stacks 200 ms), `granularity` the
    /// clock's tick.
    pub fn new(min: Span, granularity: Span) -> Self {
        Rfc6298 { srtt: None, rttvar: Span::ZERO, min, granularity, initial: INITIAL }
    }

    /// The SYN had to be repeated.
    pub fn restart_after_syn_timeout(&mut self) {
        self.initial = INITIAL_AFTER_SYN_TIMEOUT;
    }

    /// §2.2 and §2.3; the order matters: RTTVAR first, with the old SRTT.
    pub fn sample(&mut self, r: Span) {
        match self.srtt {
            None => {
                self.srtt = Some(r);
                self.rttvar = r / 2;
            }
            Some(srtt) => {
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(r)) / 4;
                self.srtt = Some((srtt * 7 + r) / 8);
            }
        }
    }

    /// RTO = SRTT + margin, at least the minimum.
    pub fn rto(&self) -> Span {
        match self.srtt {
            None => self.initial,
            Some(srtt) => (srtt + self.margin()).max(self.min),
        }
    }

    /// max(G, 4 RTTVAR), and not less than what keeps a steady path from timeouts.
    ///
    /// On a path whose round trips hardly vary RTTVAR goes to nothing, and an ACK that is a millisecond late
    /// would be a timeout. The minimum of 1 s that RFC 6298 §2.4 wants prevents that where the path is short.
    /// So a minimum that is lower also counts above SRTT, there as a half of SRTT at most. And the margin is
    /// at least 3/8 of SRTT, so that RACK, which may wait for a quarter (RFC 8985 §6.2 step 4), finds a lost
    /// retransmission first.
    pub fn margin(&self) -> Span {
        let srtt = self.srtt();
        let steady = self.min.max(srtt * 3 / 8).min(srtt / 2);
        (self.rttvar * 4).max(self.granularity).max(steady)
    }

    /// Least timeout.
    pub fn min(&self) -> Span {
        self.min
    }

    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Span {
        self.srtt.unwrap_or(Span::ZERO)
    }

    /// Round-trip time variation.
    pub fn rttvar(&self) -> Span {
        self.rttvar
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the timeout of every modern connection. `(samples in ms, rto in us)`.
    #[test]
    fn the_formulas() {
        let table: [(&[u64], u64); 4] =
            [(&[], 1_000_000), (&[100], 300_000), (&[100, 100], 250_000), (&[10], 200_000)];
        for (samples, rto) in table {
            let mut e = Rfc6298::new(Span::from_millis(200), Span::from_millis(1));
            for s in samples {
                e.sample(Span::from_millis(*s));
            }
            assert_eq!(e.rto(), Span::from_micros(rto), "{samples:?}");
        }
        // A satellite's round trip that does not vary any more.
        for (rtt, rto) in [(500, 700), (600, 825), (1_600, 2_200), (10, 200)] {
            let mut e = Rfc6298::new(Span::from_millis(200), Span::from_millis(1));
            (0..60).for_each(|_| e.sample(Span::from_millis(rtt)));
            assert_eq!(e.rto().as_nanos() / 1_000_000, rto);
        }
        let mut e = Rfc6298::new(Span::from_millis(1), Span::from_millis(1));
        e.sample(Span::from_millis(100));
        e.sample(Span::from_millis(200));
        // RTTVAR = 3/4 50 + 1/4 100 = 62.5; SRTT = 112.5
        assert_eq!(e.rto(), Span::from_micros(112_500 + 250_000));
    }

    /// Breaks: a coarse clock, which sees no variation, gets a timeout that its next tick does not end (RFC
    /// 6298 §2).
    #[test]
    fn granularity() {
        let mut e = Rfc6298::new(Span::from_millis(1), Span::from_millis(100));
        (0..60).for_each(|_| e.sample(Span::from_millis(100)));
        assert_eq!(e.rto(), Span::from_millis(200));
    }
}
