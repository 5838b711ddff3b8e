//! How many more segments ACKs tell of at once than the bandwidth explains (draft-ietf-ccwg-bbr §5.5.9; in
//! Linux's BBRv1 since 5.1). The window has room for them, so that the line does not idle until the next ACK.

use super::windowed_max::WindowedMax;
use farpace_units::Instant;

/// The greatest excess of late, in segments.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtraAcked {
    interval_start: Instant,
    delivered: f64,
    filter: WindowedMax,
}

/// An ACK.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckedBatch {
    /// Its arrival.
    pub now: Instant,
    /// The round trip that it belongs to.
    pub round: u64,
    /// Segments that it newly shows to have arrived.
    pub acked: f64,
    /// The bandwidth, segments per second.
    pub rate: f64,
    /// The window, segments: no more is believed.
    pub cwnd: f64,
}

impl ExtraAcked {
    pub fn get(&self) -> f64 {
        self.filter.get()
    }

    /// A new interval, also when sending begins again after a pause.
    pub fn restart(&mut self, now: Instant) {
        self.interval_start = now;
    }

    /// Takes an ACK in; values of `rounds` round trips ago and older are forgotten.
    pub fn on_ack(&mut self, ack: &AckedBatch, rounds: u64) {
        let mut expected = ack.rate * ack.now.since(self.interval_start).as_secs_f64();
        if self.delivered <= expected {
            (self.delivered, self.interval_start, expected) = (0.0, ack.now, 0.0);
        }
        self.delivered += ack.acked;
        self.filter.note(ack.round, (self.delivered - expected).min(ack.cwnd), rounds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Span;

    /// A segment a millisecond, an ACK `every` milliseconds, in round trips of 40 ms. The bandwidth is a
    /// little more.
    fn acks(extra: &mut ExtraAcked, times: std::ops::RangeInclusive<u64>, every: u64) {
        for at in times.step_by(every as usize) {
            let now = Instant::ZERO + Span::from_millis(at);
            let ack = AckedBatch { now, round: at / 40, acked: every as f64, rate: 1_050.0, cwnd: 500.0 };
            extra.on_ack(&ack, 10);
        }
    }

    /// Breaks: a line idles where ACKs come rarely, or the window keeps room when they are even again, or for
    /// more than a window.
    #[test]
    fn the_room_is_what_rare_acks_need() {
        let mut extra = ExtraAcked::default();
        acks(&mut extra, 1..=400, 1);
        assert!(extra.get() <= 2.0, "{}", extra.get());
        acks(&mut extra, 420..=800, 20);
        assert!((20.0..=41.0).contains(&extra.get()), "{}", extra.get());
        acks(&mut extra, 801..=1_600, 1);
        assert!(extra.get() <= 2.0, "{}", extra.get());
        let ack = AckedBatch { now: Instant::ZERO, round: 40, acked: 2_000.0, rate: 1.0, cwnd: 500.0 };
        extra.on_ack(&ack, 10);
        assert_eq!(extra.get(), 500.0);
    }
}
