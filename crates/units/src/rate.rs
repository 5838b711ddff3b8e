//! Bit rates, and serialisation times without drift.

use crate::{ByteCount, Instant, Span};
use std::fmt;

const NS_PER_S: u128 = 1_000_000_000;

/// A rate in bit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// A rate of `n` bit/s.
    pub const fn from_bits_per_sec(n: u64) -> Self {
        Rate(n)
    }
    /// A rate of `n` Mbit/s.
    pub const fn from_mbit(n: u64) -> Self {
        Rate(n.saturating_mul(1_000_000))
    }
    /// The rate in bit/s.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }
    /// A rate of `bytes` per second, limited to the range of this type.
    pub fn from_bytes_per_sec_f64(bytes: f64) -> Self {
        Rate((bytes * 8.0) as u64)
    }
    /// The rate in byte/s, for estimates with fractions.
    pub fn as_bytes_per_sec_f64(self) -> f64 {
        self.0 as f64 / 8.0
    }
    /// The rate in Mbit/s, for figures.
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Serialisation time of `bytes`, rounded up to a nanosecond; [`Span::MAX`] for a rate of zero. For a
    /// series of packets use [`Serialiser`], which carries the remainder.
    pub fn time_for(self, bytes: ByteCount) -> Span {
        if self.0 == 0 {
            return Span::MAX;
        }
        let ns = (u128::from(bytes.bits()) * NS_PER_S).div_ceil(u128::from(self.0));
        Span::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
    /// Number of whole bytes in `span`.
    pub fn bytes_in(self, span: Span) -> ByteCount {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos()) / (8 * NS_PER_S);
        ByteCount::new(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
    /// The mean rate of `bytes` over `span`; zero for an empty span.
    pub fn of(bytes: ByteCount, span: Span) -> Rate {
        if span.is_zero() {
            return Rate(0);
        }
        let bits = u128::from(bytes.bits()) * NS_PER_S / u128::from(span.as_nanos());
        Rate(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Rate {
    /// The largest unit that keeps the value exact: `500 Mbit/s`, `8 kbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0;
        match () {
            () if n == 0 => write!(f, "0 bit/s"),
            () if n.is_multiple_of(1_000_000_000) => write!(f, "{} Gbit/s", n / 1_000_000_000),
            () if n.is_multiple_of(1_000_000) => write!(f, "{} Mbit/s", n / 1_000_000),
            () if n.is_multiple_of(1_000) => write!(f, "{} kbit/s", n / 1_000),
            () => write!(f, "{n} bit/s"),
        }
    }
}

/// A serial link: it computes when the last bit of each packet leaves. The remainder of a nanosecond is
/// carried to the next packet, so that the rate does not drift.
///
/// The rate must not be zero, which the scenario parser ensures. With a rate of zero no packet ever leaves.
#[derive(Clone, Debug)]
pub struct Serialiser {
    rate: Rate,
    busy_until: Instant,
    /// Fraction of a nanosecond beyond `busy_until`, in units of 1/rate nanoseconds; below `rate`.
    remainder: u64,
}

impl Serialiser {
    /// An idle link.
    pub const fn new(rate: Rate) -> Self {
        Serialiser { rate, busy_until: Instant::ZERO, remainder: 0 }
    }
    /// The rate of the link.
    pub const fn rate(&self) -> Rate {
        self.rate
    }
    /// Changes the rate. A transmission in progress ends at its old time.
    pub fn set_rate(&mut self, rate: Rate) {
        if rate != self.rate {
            // The fraction of a nanosecond stays the same, rounded down.
            let fraction = u128::from(self.remainder) * u128::from(rate.0) / u128::from(self.rate.0.max(1));
            self.remainder = u64::try_from(fraction).unwrap_or(0);
            self.rate = rate;
        }
    }
    /// The link is busy until then, whatever it has sent.
    pub const fn stay_busy_until(&mut self, at: Instant) {
        (self.busy_until, self.remainder) = (at, 0);
    }
    /// When the link becomes free.
    pub const fn busy_until(&self) -> Instant {
        self.busy_until
    }
    /// Starts `bytes` when the link is free, at `now` at the earliest. Returns when the last bit has left,
    /// rounded down to a nanosecond; the remainder is carried.
    pub fn send(&mut self, now: Instant, bytes: ByteCount) -> Instant {
        if self.rate.bits_per_sec() == 0 {
            self.busy_until = Instant::FAR_FUTURE;
            return self.busy_until;
        }
        if now > self.busy_until {
            self.busy_until = now;
            self.remainder = 0;
        }
        let rate = self.rate.bits_per_sec();
        // Packets are far below 2^34 bits, so 64-bit arithmetic suffices except for absurd lengths.
        let (whole, rest) =
            match bytes.bits().checked_mul(1_000_000_000).and_then(|n| n.checked_add(self.remainder)) {
                Some(n) => (n / rate, n % rate),
                None => {
                    let n = u128::from(bytes.bits()) * NS_PER_S + u128::from(self.remainder);
                    (u64::try_from(n / u128::from(rate)).unwrap_or(u64::MAX), (n % u128::from(rate)) as u64)
                }
            };
        self.remainder = rest;
        self.busy_until += Span::from_nanos(whole);
        self.busy_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: pacing and link rates do not drift over long runs.
    #[test]
    fn a_third_of_a_nanosecond_is_not_lost() {
        // 3 Gbit/s: 1 byte takes 2 2/3 ns.
        let mut link = Serialiser::new(Rate::from_mbit(3_000));
        for _ in 0..3_000 {
            link.send(Instant::ZERO, ByteCount::new(1));
        }
        assert_eq!(link.busy_until(), Instant::from_nanos(8_000));
    }

    proptest! {
        /// Breaks: a back-to-back stream takes exactly its number of bits divided by its rate.
        #[test]
        fn a_stream_takes_its_total(rate in 1u64..100_000_000_000, sizes in prop::collection::vec(1u64..70_000, 1..60)) {
            let mut link = Serialiser::new(Rate::from_bits_per_sec(rate));
            let mut end = Instant::ZERO;
            for s in &sizes {
                end = link.send(Instant::ZERO, ByteCount::new(*s));
            }
            let total: u64 = sizes.iter().sum();
            let exact = u128::from(total) * 8 * NS_PER_S / u128::from(rate);
            prop_assert_eq!(u128::from(end.as_nanos()), exact);
        }
    }
}
