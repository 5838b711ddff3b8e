//! Bytes of the line as time.

use farpace_units::{ByteCount, Instant, Rate};

const NS_PER_S: u128 = 1_000_000_000;

/// The global clock of the paper: how many bytes the line has carried since the start of time, had it never been
/// idle. While frames follow each other it is driven by their bytes alone, without rounding; when the line has been
/// idle, it catches up with the time of day.
#[derive(Clone, Debug)]
pub struct LineClock {
    line: Rate,
    bytes: u64,
}

impl LineClock {
    /// The fastest line there is: 1 Tbit/s. Its clock runs for 4 years.
    pub const FASTEST: Rate = Rate::from_bits_per_sec(1_000_000_000_000);

    /// Of a line that is free since the start of time. Its rate is 1 bit/s to [`FASTEST`](Self::FASTEST): whoever reads
    /// one from a file checks that.
    pub const fn new(line: Rate) -> Self {
        LineClock { line, bytes: 0 }
    }
    /// The line's rate.
    pub const fn line(&self) -> Rate {
        self.line
    }
    /// Bytes so far.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The line carries so many bytes.
    #[inline]
    pub fn advance(&mut self, bytes: ByteCount) {
        self.bytes = self.bytes.saturating_add(bytes.get());
    }
    /// The line has been free: it is `now`.
    pub fn catch_up(&mut self, now: Instant) {
        self.bytes = self.bytes.max(self.bytes_at(now));
    }
    /// What a line that was never idle has carried completely at `now`.
    pub fn bytes_at(&self, now: Instant) -> u64 {
        let bits = u128::from(now.as_nanos()) * u128::from(self.line.bits_per_sec());
        u64::try_from(bits / (8 * NS_PER_S)).unwrap_or(u64::MAX)
    }
    /// The first nanosecond at which it has carried `bytes`.
    pub fn instant_of(&self, bytes: u64) -> Instant {
        let ns = (u128::from(bytes) * 8 * NS_PER_S).div_ceil(u128::from(self.line.bits_per_sec().max(1)));
        Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: a timer set for a byte fires before it, so that a device spins, or a byte late.
        #[test]
        fn the_instant_of_a_byte_is_when_it_has_been_carried(line in 1_000u64..=1_000_000_000_000, bytes in 0u64..1 << 50) {
            let clock = LineClock::new(Rate::from_bits_per_sec(line));
            let at = clock.instant_of(bytes);
            prop_assert!(clock.bytes_at(at) >= bytes);
            if at > Instant::ZERO {
                prop_assert!(clock.bytes_at(Instant::from_nanos(at.as_nanos() - 1)) < bytes);
            }
        }
    }

    /// Breaks: an idle line must catch up, a busy one must not be set back by the rounding of time.
    #[test]
    fn it_only_goes_forward() {
        let mut clock = LineClock::new(Rate::from_mbit(1_000));
        clock.catch_up(Instant::from_nanos(8_000));
        assert_eq!(clock.bytes(), 1_000);
        clock.advance(ByteCount::new(1_538));
        clock.catch_up(Instant::from_nanos(8_001));
        assert_eq!(clock.bytes(), 2_538);
    }
}
