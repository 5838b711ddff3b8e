//! SYN cookies (RFC 4987 §3.6): a listener that is out of room for half-open connections answers a SYN
//! without keeping anything. What it would have kept is in the numbers of its SYN-ACK, and comes back with
//! the ACK.
//!
//! The sequence number carries the maximum segment size, the minute, and a proof that only we can make. The
//! low bits of the timestamp carry window scale and SACK: a peer that offers no timestamps goes without both.

use crate::secret::{Purpose, Secret, Tuple};
use farpace_tcp::ResumedConnection;
use farpace_units::{Instant, Seq, Span};
use farpace_wire::TcpHeader;

/// The counter in a cookie steps once per this time. The current and the last value are taken.
pub const COOKIE_PERIOD: Span = Span::from_secs(60);
/// No cookie is taken that is older.
pub const COOKIE_LIFETIME: Span = Span::from_secs(120);

/// Segment sizes that fit into three bits: the limits of the engine, the defaults of RFC 9293 §3.7.1, and
/// those of IPv4 and IPv6 over Ethernet, tunnels and jumbo frames. The largest one that the peer can take is
/// chosen.
const SIZES: [u16; 8] = [88, 536, 1_220, 1_360, 1_400, 1_440, 1_460, 8_940];
/// Assumed of a peer that does not tell (RFC 9293 §3.7.1).
const DEFAULT_SIZE: u16 = 536;

/// Bits of the proof: a forger who tries one number hits with 2^-28.
const PROOF: u32 = (1 << 28) - 1;
/// Low bits of the timestamp that carry options.
const STAMP_BITS: u32 = 5;
/// In place of the window scale: none was offered.
const NO_SCALE: u32 = 15;

/// The sequence number for a SYN-ACK between these ends, in answer to `syn`.
pub(crate) fn cookie(secret: &Secret, tuple: &Tuple, syn: &TcpHeader, now: Instant) -> Seq {
    let wanted = syn.options.mss.unwrap_or(DEFAULT_SIZE);
    let size = SIZES.iter().rposition(|size| *size <= wanted).unwrap_or(0) as u32;
    let minute = minute(now);
    let proof = proof(secret, tuple, syn.seq, minute, size);
    let fields = (minute as u32 & 1) << 31 | size << 28 | proof;
    // Masked, so that it looks like any other number; with the peer's number in it, it moves on as that does.
    syn.seq + fields + secret.hash(Purpose::CookieMask, tuple, 0) as u32
}

/// The timestamp for the same SYN-ACK: not later than `clock`, and at most 63 ticks earlier.
pub(crate) fn stamp(clock: u32, window_scale: Option<u8>, sack: bool) -> u32 {
    let bits = window_scale.map_or(NO_SCALE, |shift| u32::from(shift.min(14))) << 1 | u32::from(sack);
    let stamped = clock >> STAMP_BITS << STAMP_BITS | bits;
    if stamped.wrapping_sub(clock) as i32 > 0 { stamped.wrapping_sub(1 << STAMP_BITS) } else { stamped }
}

/// Reads a cookie from the ACK that ends a handshake. None: it is not one of ours, or too old.
pub(crate) fn check(
    secret: &Secret,
    tuple: &Tuple,
    ack: &TcpHeader,
    now: Instant,
) -> Option<ResumedConnection> {
    let (iss, irs) = (ack.ack - 1, ack.seq - 1);
    let mask = secret.hash(Purpose::CookieMask, tuple, 0) as u32;
    let fields = (iss - mask).get().wrapping_sub(irs.get());
    let (parity, size) = (fields >> 31, fields >> 28 & 7);
    let current = minute(now);
    let minute = if current as u32 & 1 == parity { current } else { current.checked_sub(1)? };
    if proof(secret, tuple, irs, minute, size) != fields & PROOF {
        return None;
    }
    let bits = ack.options.timestamps.map(|t| t.echo & ((1 << STAMP_BITS) - 1));
    let shift = bits.map_or(NO_SCALE, |bits| bits >> 1);
    Some(ResumedConnection {
        iss,
        irs,
        mss: SIZES[size as usize],
        window_scale: (shift != NO_SCALE).then_some(shift as u8),
        sack: bits.is_some_and(|bits| bits & 1 == 1),
        timestamps: ack.options.timestamps.map(|t| t.value),
    })
}

fn minute(now: Instant) -> u64 {
    now.as_nanos() / COOKIE_PERIOD.as_nanos()
}

fn proof(secret: &Secret, tuple: &Tuple, irs: Seq, minute: u64, size: u32) -> u32 {
    // 29 bits of minutes are a thousand years.
    let said = u64::from(irs.get()) << 32 | (minute << 3 | u64::from(size)) & u64::from(u32::MAX);
    secret.hash(Purpose::CookieProof, tuple, said) as u32 & PROOF
}

#[cfg(test)]
mod tests {
    use super::{COOKIE_LIFETIME, COOKIE_PERIOD, SIZES, check, cookie, stamp};
    use crate::secret::{Secret, Tuple};
    use farpace_units::{Instant, Seq, Span};
    use farpace_wire::{TcpHeader, TcpOptions, Timestamps};
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn tuple(remote_port: u16) -> Tuple {
        Tuple {
            local: IpAddr::from([10, 0, 0, 1]),
            local_port: 80,
            remote: IpAddr::from([10, 0, 0, 9]),
            remote_port,
        }
    }

    fn syn(seq: u32, mss: Option<u16>) -> TcpHeader {
        TcpHeader {
            seq: Seq::new(seq),
            options: TcpOptions { mss, ..TcpOptions::default() },
            ..TcpHeader::default()
        }
    }

    fn ack(iss: Seq, syn: &TcpHeader, echo: Option<u32>) -> TcpHeader {
        let timestamps = echo.map(|echo| Timestamps { value: 1, echo });
        let options = TcpOptions { timestamps, ..TcpOptions::default() };
        TcpHeader { seq: syn.seq + 1, ack: iss + 1, options, ..TcpHeader::default() }
    }

    proptest! {
        /// Breaks: legitimate clients during a flood: their cookie is not taken, or their options are lost.
        #[test]
        fn what_the_syn_said_comes_back(
            key: [u8; 16], seq: u32, port: u16, mss in prop::option::of(0..=u16::MAX), start in 0..1u64 << 60,
            later in 0..60_000_000_000u64, clock: u32, scale in prop::option::of(0..=14u8), sack: bool,
        ) {
            let (secret, tuple, syn) = (Secret::new(key), tuple(port), syn(seq, mss));
            let start = Instant::from_nanos(start);
            let iss = cookie(&secret, &tuple, &syn, start);
            let stamp = stamp(clock, scale, sack);
            let got = check(&secret, &tuple, &ack(iss, &syn, Some(stamp)), start + Span::from_nanos(later));
            let got = got.expect("ours, and not older than a period");
            prop_assert_eq!((got.iss, got.irs), (iss, syn.seq));
            prop_assert_eq!((got.window_scale, got.sack), (scale, sack));
            let wanted = mss.unwrap_or(536);
            prop_assert!(got.mss <= wanted.max(SIZES[0]));
            prop_assert!(SIZES.iter().all(|size| *size <= got.mss || *size > wanted));
            let plain = check(&secret, &tuple, &ack(iss, &syn, None), start).expect("ours");
            prop_assert_eq!((plain.window_scale, plain.sack), (None, false));
        }

        /// Breaks: the peer's PAWS and round-trip times: a stamp that runs ahead of the clock, or far behind.
        #[test]
        fn a_stamp_is_the_clock_but_for_its_low_bits(clock: u32, scale in prop::option::of(0..=14u8), sack: bool) {
            prop_assert!(clock.wrapping_sub(stamp(clock, scale, sack)) < 64);
        }

        /// Breaks: protection against replay: an old cookie opens a connection without a SYN.
        #[test]
        fn a_cookie_dies_with_its_time(key: [u8; 16], seq: u32, start in 0..1u64 << 60, later in 0..1u64 << 60) {
            let (secret, tuple, syn) = (Secret::new(key), tuple(1), syn(seq, Some(1460)));
            let iss = cookie(&secret, &tuple, &syn, Instant::from_nanos(start));
            let now = Instant::from_nanos(start) + COOKIE_LIFETIME + Span::from_nanos(later);
            prop_assert_eq!(check(&secret, &tuple, &ack(iss, &syn, None), now), None);
        }
    }

    /// Breaks: the point of cookies: an ACK that nobody was given a cookie for opens a connection. A million
    /// tries, at one number and at one end after the other.
    #[test]
    fn forged_cookies_are_not_taken() {
        let secret = Secret::new([3; 16]);
        let now = Instant::ZERO + COOKIE_PERIOD;
        let (mut real, target) = (0, syn(1_000, None));
        let iss = cookie(&secret, &tuple(1), &target, now);
        for n in 1..500_000u32 {
            // Numbers near the true one, and at random.
            for forged in [iss + n, Seq::new(n.wrapping_mul(0x9e37_79b9))] {
                let hit = check(&secret, &tuple(1), &ack(forged, &target, None), now).is_some();
                real += u32::from(hit && forged != iss);
            }
        }
        assert_eq!(real, 0);
        for port in 2..=u16::MAX {
            let stolen = check(&secret, &tuple(port), &ack(iss, &target, None), now);
            assert_eq!(stolen, None, "a cookie holds for one pair of ends");
        }
        let other = Secret::new([4; 16]);
        assert_eq!(check(&other, &tuple(1), &ack(iss, &target, None), now), None);
    }
}
