//! Measurement errors due to the resolution of a clock. With the clock of the paper, 2^-24 s or 59.6 ns, the
//! rate per packet at 930 Mbit/s has an error of 0.5 % (§4.4).

use super::RATE_WINDOWS;
use farpace_units::{ByteCount, Rate, Span};

/// Bounds on the errors due to the resolution of a clock. A time may be late by up to a tick, so the
/// difference of two times has an error of less than a tick in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockError {
    /// Resolution of the clock; if times decreased, at least by how much.
    pub tick: Span,
    /// Error of the mean rate; none: unbounded.
    pub mean: Option<Rate>,
    /// Error of the rate per n packets, for a flow at its mean rate; none: unbounded.
    pub per_packets: [Option<Rate>; RATE_WINDOWS.len()],
    /// Error of the queue: the bytes per tick at the mean rate, twice if that rate is itself measured.
    pub queue: ByteCount,
}

impl ClockError {
    /// For a flow of `packets` over `duration` at `mean`. `given`: the rate of the bottleneck, if it is not
    /// the mean rate.
    pub(super) fn new(tick: Span, packets: u64, duration: Span, mean: Rate, given: Option<Rate>) -> Self {
        let nanos = |n: u64| match packets.saturating_sub(1) {
            0 => 0,
            intervals => u128::from(duration.as_nanos()) * u128::from(n) / u128::from(intervals),
        };
        let in_a_tick = |rate: Rate| {
            let bits = u128::from(rate.bits_per_sec()) * u128::from(tick.as_nanos());
            ByteCount::new(u64::try_from(bits.div_ceil(8_000_000_000)).unwrap_or(u64::MAX))
        };
        ClockError {
            tick,
            mean: error(mean, tick, u128::from(duration.as_nanos())),
            per_packets: RATE_WINDOWS.map(|n| error(mean, tick, nanos(n))),
            queue: given.map_or_else(|| in_a_tick(mean) + in_a_tick(mean), in_a_tick),
        }
    }
    /// True if more than a frame of `longest` bytes passes per tick, so that no conclusion is possible.
    pub(super) fn is_too_coarse(&self, rate: Rate, longest: ByteCount) -> bool {
        rate.bytes_in(self.tick) > longest
    }
}

/// How much higher than `rate` the real rate may be, if the measured time was too long by a tick.
fn error(rate: Rate, tick: Span, nanos: u128) -> Option<Rate> {
    let tick = u128::from(tick.as_nanos());
    let shortest = nanos.checked_sub(tick).filter(|left| *left > 0)?;
    let error = (u128::from(rate.bits_per_sec()) * tick).div_ceil(shortest);
    Some(Rate::from_bits_per_sec(u64::try_from(error).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the bound for the example of the paper: 930 Mbit/s, 59.6 ns, one packet. The paper states
    /// about 2 Mbit/s, which is half a tick; the bound is a whole one.
    #[test]
    fn the_papers_clock() {
        let frame = ByteCount::new(1_518);
        let rate = Rate::from_mbit(930);
        let duration = rate.time_for(ByteCount::new(1_518 * 250_000));
        let clock = ClockError::new(Span::from_nanos(60), 250_001, duration, rate, None);
        let one = clock.per_packets[0].unwrap().as_mbit_f64();
        assert!((4.2..4.4).contains(&one), "{one}");
        let ten = clock.per_packets[2].unwrap().as_mbit_f64();
        assert!((0.42..0.44).contains(&ten), "{ten}");
        assert_eq!(clock.queue, ByteCount::new(14), "7 B per tick, twice");
        assert!(clock.mean.unwrap() < Rate::from_bits_per_sec(100));
        assert!(!clock.is_too_coarse(rate, frame));
        let coarse = ClockError::new(Span::from_micros(14), 250_001, duration, rate, Some(rate));
        assert!(coarse.is_too_coarse(rate, frame));
        assert_eq!(coarse.per_packets[0], None, "a tick exceeds the interval");
    }

    /// Breaks: captures of one packet or without duration cause no panic and have no bound.
    #[test]
    fn without_duration_there_is_no_bound() {
        for packets in [0, 1, 5] {
            let clock = ClockError::new(Span::from_nanos(1), packets, Span::ZERO, Rate::default(), None);
            assert_eq!((clock.mean, clock.per_packets), (None, [None; 3]));
        }
        let max = ClockError::new(Span::MAX, u64::MAX, Span::MAX, Rate::from_bits_per_sec(u64::MAX), None);
        assert_eq!(max.queue, ByteCount::MAX);
    }
}
