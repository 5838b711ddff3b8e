//! The clock that timestamps, round trips and the retransmission timer are read from.

use farpace_units::{Instant, Span};
use std::num::NonZeroU64;

/// Tick of timestamps where no clock was chosen (RFC 7323 §5.4 wants 1 ms to 1 s).
const TIMESTAMP: Span = Span::from_millis(1);

/// A clock that ticks at the whole multiples of its tick, counted from the machine's boot
/// ([`Instant::ZERO`]).
///
/// Where no tick was chosen round trips and timers are exact, and timestamps count milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpClock {
    /// In nanoseconds; none: exact.
    tick: Option<NonZeroU64>,
}

impl TcpClock {
    /// A clock of this tick (not zero); none: exact.
    pub const fn new(tick: Option<Span>) -> Self {
        match tick {
            Some(tick) => TcpClock { tick: NonZeroU64::new(tick.as_nanos()) },
            None => TcpClock { tick: None },
        }
    }

    /// Round trips and timers are exact.
    const fn is_exact(self) -> bool {
        self.tick.is_none()
    }

    /// Time between two ticks: the unit of timestamps, and the granularity G of RFC 6298.
    pub fn tick(self) -> Span {
        self.tick.map_or(TIMESTAMP, |tick| Span::from_nanos(tick.get()))
    }

    /// Ticks since the boot.
    pub fn ticks(self, at: Instant) -> u64 {
        at.as_nanos() / self.tick().as_nanos()
    }

    /// The same on 32 bits, as timestamps count.
    pub fn timestamp(self, now: Instant) -> u32 {
        // Every segment asks, and hardly any has another clock: a division by a constant.
        let ticks = match self.tick {
            None => now.as_nanos() / TIMESTAMP.as_nanos(),
            Some(_) => self.ticks(now),
        };
        ticks as u32
    }

    /// What this clock shows of a time that ends `now`: the ticks in it.
    pub fn measure(self, now: Instant, span: Span) -> Span {
        if self.is_exact() {
            return span;
        }
        let from = Instant::from_nanos(now.as_nanos().saturating_sub(span.as_nanos()));
        self.tick() * (self.ticks(now) - self.ticks(from))
    }

    /// The first tick that is not before `at`; `at` itself if the clock is exact.
    pub fn tick_from(self, at: Instant) -> Instant {
        if self.is_exact() {
            return at;
        }
        let tick = self.tick().as_nanos();
        Instant::from_nanos(at.as_nanos().div_ceil(tick).saturating_mul(tick))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// Breaks: what a coarse clock sees of a round trip: only the ticks in it, so 2 ms may be one and 499 ms
    /// none.
    #[test]
    fn ticks_count() {
        let clock = TcpClock::new(Some(Span::from_millis(500)));
        for (sent, now, ticks) in [(0, 499, 0), (499, 501, 1), (500, 1000, 1), (100, 1600, 3), (7, 7, 0)] {
            let seen = clock.measure(at(now), Span::from_millis(now - sent));
            assert_eq!(seen, Span::from_millis(500 * ticks), "{sent} to {now} ms");
        }
        assert_eq!(TcpClock::default().measure(at(499), Span::from_nanos(7)), Span::from_nanos(7));
    }

    /// Breaks: the retransmission timer of a coarse clock fires at its ticks, and never too early.
    #[test]
    fn timers_wait_for_a_tick() {
        let clock = TcpClock::new(Some(Span::from_millis(500)));
        assert_eq!([0, 1, 500, 501].map(|ms| clock.tick_from(at(ms))), [0, 500, 500, 1000].map(at));
        assert_eq!(clock.tick_from(Instant::FAR_FUTURE), Instant::FAR_FUTURE);
        assert_eq!(TcpClock::default().tick_from(at(1)), at(1));
    }

    /// Breaks: TSval: milliseconds unless a clock was chosen, and round the circle of 32 bits.
    #[test]
    fn timestamps() {
        let micros = TcpClock::new(Some(Span::from_micros(1)));
        assert_eq!(micros.timestamp(at(3)), 3_000);
        assert_eq!(micros.timestamp(at(4_294_968)), 704, "2^32 us are 4294.967296 s");
        assert_eq!(TcpClock::default().timestamp(at(7)), 7);
    }
}
