//! A clock that counts bytes on the wire.

use farpace_units::{ByteCount, Instant, Rate};

const NS_PER_S: u128 = 1_000_000_000;

/// The global clock of the paper: how many bytes the link would have carried since the start of time, had it
/// never been idle. While frames are back to back, their bytes alone advance the clock, without rounding.
/// After an idle time, the clock catches up with real time.
#[derive(Clone, Debug)]
pub struct LinkClock {
    link_rate: Rate,
    bytes: u64,
}

impl LinkClock {
    /// The maximum rate of a link: 1 Tbit/s. Its clock runs for 4 years.
    pub const MAX_RATE: Rate = Rate::from_bits_per_sec(1_000_000_000_000);

    /// The clock of a link that has been idle since the start of time. `link_rate` is its rate, 1 bit/s to
    /// [`MAX_RATE`](Self::MAX_RATE); a caller that reads the rate from a file must check the range.
    pub const fn new(link_rate: Rate) -> Self {
        LinkClock { link_rate, bytes: 0 }
    }
    /// The rate of the link.
    pub const fn link_rate(&self) -> Rate {
        self.link_rate
    }
    /// Bytes so far.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Advances by the wire length of a frame.
    #[inline]
    pub fn advance(&mut self, bytes: ByteCount) {
        self.bytes = self.bytes.saturating_add(bytes.get());
    }
    /// Catches up with `now` after an idle time.
    pub fn catch_up(&mut self, now: Instant) {
        self.bytes = self.bytes.max(self.bytes_at(now));
    }
    /// Bytes that a link that was never idle has carried completely at `now`.
    pub fn bytes_at(&self, now: Instant) -> u64 {
        let bits = u128::from(now.as_nanos()) * u128::from(self.link_rate.bits_per_sec());
        u64::try_from(bits / (8 * NS_PER_S)).unwrap_or(u64::MAX)
    }
    /// The first nanosecond at which the clock reaches `bytes`.
    pub fn instant_of(&self, bytes: u64) -> Instant {
        let ns =
            (u128::from(bytes) * 8 * NS_PER_S).div_ceil(u128::from(self.link_rate.bits_per_sec().max(1)));
        Instant::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Breaks: a timer for a byte expires exactly when it has been carried: earlier, a device would spin.
        #[test]
        fn the_instant_of_a_byte_is_when_it_has_been_carried(link_rate in 1_000u64..=1_000_000_000_000, bytes in 0u64..1 << 50) {
            let clock = LinkClock::new(Rate::from_bits_per_sec(link_rate));
            let at = clock.instant_of(bytes);
            prop_assert!(clock.bytes_at(at) >= bytes);
            if at > Instant::ZERO {
                prop_assert!(clock.bytes_at(Instant::from_nanos(at.as_nanos() - 1)) < bytes);
            }
        }
    }

    /// Breaks: an idle link catches up, and rounding never sets the clock of a busy link back.
    #[test]
    fn it_only_goes_forward() {
        let mut clock = LinkClock::new(Rate::from_mbit(1_000));
        clock.catch_up(Instant::from_nanos(8_000));
        assert_eq!(clock.bytes(), 1_000);
        clock.advance(ByteCount::new(1_538));
        clock.catch_up(Instant::from_nanos(8_001));
        assert_eq!(clock.bytes(), 2_538);
    }
}
