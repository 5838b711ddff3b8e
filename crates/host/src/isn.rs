//! Initial sequence numbers (RFC 6528 §3, RFC 9293 §3.4.1): a clock plus a secret for each pair of ends.

use crate::secret::{Purpose, Secret, Tuple};
use farpace_units::{Instant, Seq};

/// The clock ticks once per so many nanoseconds, so it goes round in 4.8 hours.
const TICK: u64 = 4_000;

/// The initial sequence number for a connection between these ends that begins now.
pub(crate) fn isn(secret: &Secret, tuple: &Tuple, now: Instant) -> Seq {
    let clock = (now.as_nanos() / TICK) as u32;
    Seq::new(clock) + secret.hash(Purpose::Isn, tuple, 0) as u32
}

/// The same for a connection that replaces one in TIME-WAIT: at `floor` or later, so that nothing of the old
/// connection can be taken for the new one's (RFC 6191 §2, RFC 9293 §3.6.1).
pub(crate) fn isn_above(secret: &Secret, tuple: &Tuple, now: Instant, floor: Option<Seq>) -> Seq {
    let fresh = isn(secret, tuple, now);
    floor.map_or(fresh, |floor| fresh.later(floor))
}

/// Where the clock of timestamps begins for connections between these addresses, whatever their ports are: a
/// peer that keeps a connection in TIME-WAIT sees that a later one is later (RFC 6191).
pub(crate) fn timestamp_offset(secret: &Secret, tuple: &Tuple) -> u32 {
    let addresses = Tuple { local_port: 0, remote_port: 0, ..*tuple };
    secret.hash(Purpose::Timestamps, &addresses, 0) as u32
}

#[cfg(test)]
mod tests {
    use super::{isn, isn_above};
    use crate::secret::{Secret, Tuple};
    use farpace_units::{Instant, RandomStream, Seq, Span};
    use proptest::prelude::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn tuple(remote: u32, remote_port: u16) -> Tuple {
        Tuple {
            local: IpAddr::from([10, 0, 0, 1]),
            local_port: 4242,
            remote: Ipv4Addr::from_bits(remote).into(),
            remote_port,
        }
    }

    proptest! {
        /// Breaks: the protection of a new connection against segments of an older one between the same ends.
        #[test]
        fn the_same_ends_get_later_numbers_as_time_goes_by(
            key: [u8; 16], remote: u32, port: u16, start in 0..1u64 << 60, gap in 4_000..8_000_000_000_000u64,
        ) {
            let (secret, tuple, start) = (Secret::new(key), tuple(remote, port), Instant::from_nanos(start));
            let (first, second) =
                (isn(&secret, &tuple, start), isn(&secret, &tuple, start + Span::from_nanos(gap)));
            prop_assert!(second.after(first));
            prop_assert!(u64::from(second.bytes_since(first)).abs_diff(gap / 4_000) <= 1);
        }

        /// Breaks: the same against an older connection that sent faster than the clock ticks.
        #[test]
        fn a_replacement_begins_above_the_old_connection(key: [u8; 16], now: u64, floor: u32) {
            let (secret, tuple, now) = (Secret::new(key), tuple(7, 7), Instant::from_nanos(now));
            let new = isn_above(&secret, &tuple, now, Some(Seq::new(floor)));
            prop_assert!(new.after_eq(Seq::new(floor)));
            prop_assert!(new == Seq::new(floor) || new == isn(&secret, &tuple, now));
        }

        /// Breaks: repeatable runs of the lab.
        #[test]
        fn the_same_seed_gives_the_same_numbers(seed: u64, now: u64, remote: u32) {
            let make = || Secret::from_stream(&mut RandomStream::new(seed, "a"));
            let now = Instant::from_nanos(now);
            prop_assert_eq!(isn(&make(), &tuple(remote, 1), now), isn(&make(), &tuple(remote, 1), now));
        }
    }

    /// Breaks: blind injection becomes easy: whoever sees the numbers of his own connection (or knows another
    /// host's secret) could tell those of others. Of 65,536 neighbouring ends each bit differs for half of
    /// them, and the distances to the next spread over the whole circle.
    #[test]
    fn different_ends_get_unrelated_numbers() {
        let secret = Secret::new([7; 16]);
        let now = Instant::from_nanos(1 << 40);
        let reference = isn(&secret, &tuple(1, 0), now).get();
        let mut flips = [0u32; 32];
        let mut far = 0;
        let mut last = reference;
        for port in 1..=u16::MAX {
            let this = isn(&secret, &tuple(1, port), now).get();
            for (bit, count) in flips.iter_mut().enumerate() {
                *count += (reference ^ this) >> bit & 1;
            }
            far += u32::from((1 << 30..3 << 30).contains(&this.wrapping_sub(last)));
            last = this;
        }
        // Half of 65,535, with six standard deviations (128 each).
        for count in flips {
            assert!((32_000..33_536).contains(&count), "{flips:?}");
        }
        assert!((32_000..33_536).contains(&far), "{far}");
        assert_ne!(isn(&Secret::new([8; 16]), &tuple(1, 0), now).get(), reference, "the key matters");
    }
}
