//! How many segments the ACKs tell of at once: in one ACK, or in ACKs that come as one bunch because a NIC or
//! a link hands over together what it has gathered.

use farpace_units::{Instant, Span};

/// ACKs are one bunch where the time between them is so many times shorter than the path needs for what the
/// later one tells.
const BUNCH: f64 = 8.0;
/// Where the rate is not known, ACKs that come within this time are one bunch: a host reads them together.
const TOGETHER: Span = Span::from_micros(10);
/// What is left after a round trip of what was told at once.
const MEMORY: f64 = 7.0 / 8.0;

/// The aggregation of a connection's ACKs.
#[derive(Clone, Copy, Debug, Default)]
pub struct AckAggregation {
    last: Instant,
    /// Segments of the bunch under way.
    bunch: f64,
    /// Segments of the bunches that were over in this round trip, and the sum of their squares.
    told: f64,
    squares: f64,
    /// Segments that were told at once in the last round trips; the mean over segments, not over bunches.
    together: f64,
}

impl AckAggregation {
    /// An ACK that tells of `delivered` segments, on a path that has carried `rate` segments a second; zero:
    /// that is not known.
    pub fn on_ack(&mut self, now: Instant, delivered: f64, rate: f64) {
        if delivered <= 0.0 {
            return;
        }
        let gap = now.since(self.last);
        let is_next = match rate > 0.0 {
            true => gap.as_secs_f64() * BUNCH * rate >= delivered,
            false => gap >= TOGETHER,
        };
        if is_next {
            self.told += self.bunch;
            self.squares += self.bunch * self.bunch;
            self.bunch = 0.0;
        }
        self.bunch += delivered;
        self.last = now;
    }

    /// A round trip is over.
    pub fn end_round(&mut self) {
        if self.told > 0.0 {
            // After a loss each segment has an ACK of its own (RFC 5681 §4.2), whatever the receiver does
            // otherwise.
            self.together = (self.together * MEMORY).max(self.squares / self.told);
        }
        (self.told, self.squares) = (0.0, 0.0);
    }

    /// Segments that are told at once.
    pub fn together(&self) -> f64 {
        self.together
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told at once where ACKs for two segments come in bunches of `acks`, 100 a round trip, on a
    /// path that carries 1,000 segments a second.
    fn together(acks: u64, rate: f64) -> f64 {
        let mut aggregation = AckAggregation::default();
        for ack in 0..200 {
            let bunch = ack / acks * acks;
            let now =
                Instant::ZERO + Span::from_millis(2 * (bunch + acks)) + Span::from_micros(5 * (ack - bunch));
            aggregation.on_ack(now, 2.0, rate);
            if ack % 100 == 99 {
                aggregation.end_round();
            }
        }
        aggregation.together()
    }

    /// Breaks: a NIC that gathers frames makes a queue that this connection takes for its own, and the window
    /// stays below what the path holds.
    #[test]
    fn acks_of_a_bunch_tell_at_once() {
        assert!((together(1, 1e3) - 2.0).abs() < 1e-9, "{}", together(1, 1e3));
        assert!((together(10, 1e3) - 20.0).abs() < 1e-9, "{}", together(10, 1e3));
        assert!((together(1, 0.0) - 2.0).abs() < 1e-9, "without a rate {}", together(1, 0.0));
        assert!((together(10, 0.0) - 20.0).abs() < 1e-9, "without a rate {}", together(10, 0.0));
    }

    /// Breaks: the window after a loss. Each segment has an ACK of its own then, and a window cut to what the
    /// path holds would have nothing in flight while the receiver waits for the next ACK's segments.
    #[test]
    fn a_round_trip_with_a_loss_does_not_hide_it() {
        let mut aggregation = AckAggregation::default();
        let acks = |aggregation: &mut AckAggregation, begin: u64, count: u64, delivered: f64| {
            for ack in 0..count {
                let gap = 100 / count;
                aggregation.on_ack(Instant::ZERO + Span::from_millis(begin + ack * gap), delivered, 1e3);
            }
            aggregation.end_round();
        };
        for round in 0..5 {
            acks(&mut aggregation, round * 100, 10, 10.0);
        }
        acks(&mut aggregation, 500, 100, 1.0);
        assert!(aggregation.together() > 8.0, "{}", aggregation.together());
        for round in 6..30 {
            acks(&mut aggregation, round * 100, 100, 1.0);
        }
        assert!(aggregation.together() < 1.1, "a path that has changed: {}", aggregation.together());
    }
}
