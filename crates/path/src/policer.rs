//! A token-bucket policer: drops what exceeds its rate, never queues.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port, ends_at_port};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::Packet;
use thiserror::Error;

/// A policer in one direction or both. A direction without one lets everything pass.
pub type Policer = Duplex<Option<PolicerDirection>>;

impl Policer {
    /// Polices the packets that enter at `entry` (port 0 or 1); the others pass unchanged.
    ///
    /// # Errors
    /// See [`PolicerDirection::new`].
    pub fn at_port(entry: Port, config: PolicerConfig) -> Result<Self, PolicerError> {
        let direction = Some(PolicerDirection::new(config)?);
        Ok(if entry == Port(0) { Duplex::new(direction, None) } else { Duplex::new(None, direction) })
    }
}

/// Which bytes of a packet cost tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicedBytes {
    /// The IP packet, as routers usually count.
    Ip,
    /// The Ethernet frame without its checksum.
    Ethernet,
}

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerConfig {
    /// Rate at which tokens come in.
    pub rate: Rate,
    /// Depth of the bucket, which is full at first.
    pub burst: ByteCount,
    /// Tokens come in once per this time; `None` is continuously.
    pub refill: Option<Span>,
    /// Tokens come in at this instant and whole numbers of `refill` before and after it.
    pub phase: Span,
    /// What costs tokens.
    pub counted: PolicedBytes,
}

/// Why a policer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PolicerError {
    /// No token would ever come in.
    #[error("the rate of a policer must be above 0 bit/s")]
    ZeroRate,
    /// No packet would ever pass.
    #[error("the burst of a policer must be above 0 B")]
    ZeroBurst,
    /// A refill interval of 0 s.
    #[error("the refill interval of a policer must be above 0 s; leave it out for continuous refill")]
    ZeroRefill,
}

/// What a policer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PolicerStats {
    /// Packets let through.
    pub passed: u64,
    /// Their bytes, as counted.
    pub passed_bytes: ByteCount,
    /// Packets dropped.
    pub dropped: u64,
    /// Their bytes, as counted.
    pub dropped_bytes: ByteCount,
    /// The first drop: until then the bucket hides the rate.
    pub first_drop: Option<Instant>,
}

/// Bit-nanoseconds per second that make one byte: in this unit tokens are exact.
const FRACTIONS_PER_BYTE: u64 = 8 * 1_000_000_000;

/// One direction of a [`Policer`]. Tokens are computed when a packet arrives. The fraction of a byte that is
/// left over is kept, so the rate is exact over any time.
#[derive(Clone, Debug)]
pub struct PolicerDirection {
    config: PolicerConfig,
    tokens: u64,
    /// Part of a token beyond `tokens`; below [`FRACTIONS_PER_BYTE`].
    fraction: u64,
    /// Tokens have come in up to here.
    filled: Instant,
    /// The next tokens come in here.
    next_fill: Instant,
    stats: PolicerStats,
}

impl PolicerDirection {
    /// A full bucket.
    ///
    /// # Errors
    /// A rate, burst or refill interval of zero.
    pub fn new(config: PolicerConfig) -> Result<Self, PolicerError> {
        if config.rate.bits_per_sec() == 0 {
            return Err(PolicerError::ZeroRate);
        }
        if config.burst.is_zero() {
            return Err(PolicerError::ZeroBurst);
        }
        if config.refill.is_some_and(Span::is_zero) {
            return Err(PolicerError::ZeroRefill);
        }
        // The bucket is full at the start, so the first fill that matters is the first one after it.
        let phase = config.refill.map_or(0, |every| config.phase.as_nanos() % every.as_nanos());
        let next_fill = Instant::from_nanos(phase);
        Ok(PolicerDirection {
            config,
            tokens: config.burst.get(),
            fraction: 0,
            filled: Instant::ZERO,
            next_fill,
            stats: PolicerStats::default(),
        })
    }
    /// The configuration.
    pub const fn config(&self) -> &PolicerConfig {
        &self.config
    }
    /// What has happened so far.
    pub const fn stats(&self) -> &PolicerStats {
        &self.stats
    }
    /// Tokens in the bucket at `now`.
    pub fn tokens(&mut self, now: Instant) -> ByteCount {
        self.fill(now);
        ByteCount::new(self.tokens)
    }

    fn fill(&mut self, now: Instant) {
        if now < self.next_fill {
            return;
        }
        match self.config.refill {
            None => {
                self.add(now.since(self.filled));
                self.filled = now;
                self.next_fill = now + Span::from_nanos(1);
            }
            Some(every) => {
                // The number of fills: the one that was due, and whole intervals since.
                let fills = now.since(self.next_fill).as_nanos() / every.as_nanos() + 1;
                self.add(every * fills);
                self.next_fill += every * fills;
            }
        }
    }
    fn add(&mut self, time: Span) {
        let rate = self.config.rate.bits_per_sec();
        let (bytes, fraction) =
            match rate.checked_mul(time.as_nanos()).and_then(|n| n.checked_add(self.fraction)) {
                Some(n) => (n / FRACTIONS_PER_BYTE, n % FRACTIONS_PER_BYTE),
                None => after_silence(rate, time, self.fraction),
            };
        self.tokens = self.tokens.saturating_add(bytes);
        self.fraction = fraction;
        if self.tokens >= self.config.burst.get() {
            self.tokens = self.config.burst.get();
            self.fraction = 0;
        }
    }
}

/// The same sum where it exceeds 64 bits. This is rare, so its cost does not matter.
#[cold]
fn after_silence(rate: u64, time: Span, fraction: u64) -> (u64, u64) {
    let n = u128::from(rate) * u128::from(time.as_nanos()) + u128::from(fraction);
    let per_byte = u128::from(FRACTIONS_PER_BYTE);
    (u64::try_from(n / per_byte).unwrap_or(u64::MAX), (n % per_byte) as u64)
}

impl ElementDirection for PolicerDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        // A policer is behind a port, where these end. They cost no tokens.
        if ends_at_port(&packet) {
            cx.emit(out, packet);
            return;
        }
        self.fill(cx.now());
        let len = match self.config.counted {
            PolicedBytes::Ip => packet.network_len(),
            PolicedBytes::Ethernet => packet.len(),
        };
        if let Some(rest) = self.tokens.checked_sub(len.get()) {
            self.tokens = rest;
            self.stats.passed += 1;
            self.stats.passed_bytes += len;
            cx.emit(out, packet);
        } else {
            self.stats.dropped += 1;
            self.stats.dropped_bytes += len;
            self.stats.first_drop.get_or_insert(cx.now());
            cx.drop(packet, DropReason::Policed);
        }
    }
    fn inspect(&self) -> Inspection {
        let s = &self.stats;
        vec![
            ("passed", s.passed.to_string()),
            ("passed bytes", s.passed_bytes.to_string()),
            ("dropped", s.dropped.to_string()),
            ("dropped bytes", s.dropped_bytes.to_string()),
            ("first drop", s.first_drop.map_or("never".to_owned(), |at| at.to_string())),
            ("tokens", ByteCount::new(self.tokens).to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};
    use proptest::prelude::*;

    const MBIT_500: PolicerConfig = PolicerConfig {
        rate: Rate::from_mbit(500),
        burst: ByteCount::new(16_000_000),
        refill: Some(Span::from_micros(490)),
        phase: Span::ZERO,
        counted: PolicedBytes::Ip,
    };

    /// Breaks: tokens come in at the wrong instants; 490 us of 500 Mbit/s are 30625 B at once.
    #[test]
    fn tokens_come_at_the_phase_and_every_interval() {
        let phase = Span::from_micros(100);
        let config = PolicerConfig { burst: ByteCount::new(100_000), phase, ..MBIT_500 };
        let mut direction = PolicerDirection::new(config).unwrap();
        direction.tokens = 0;
        for (us, tokens) in
            [(99, 0), (100, 30_625), (589, 30_625), (590, 61_250), (1_080, 91_875), (1_570, 100_000)]
        {
            let now = Instant::ZERO + Span::from_micros(us);
            assert_eq!(direction.tokens(now), ByteCount::new(tokens), "at {us} us");
        }
    }

    /// Breaks: the reverse direction is policed, or the wrong bytes are counted (1500 B of IP, 1514 B of
    /// frame).
    #[test]
    fn one_direction_is_policed_by_the_configured_bytes() {
        for (counted, len) in [(PolicedBytes::Ip, 1_500), (PolicedBytes::Ethernet, 1_514)] {
            let config = PolicerConfig { counted, burst: ByteCount::new(len), ..MBIT_500 };
            let mut harness = Harness::new(Policer::at_port(Port(1), config).unwrap());
            for (n, port) in [(1, 1), (2, 1), (3, 0), (4, 0)] {
                harness.packet(Instant::ZERO, Port(port), packet(n, 1_460));
            }
            assert_eq!(harness.idents(Port(0)), [1], "the burst is one packet of {len} B");
            assert_eq!(harness.idents(Port(1)), [3, 4]);
            assert_eq!(harness.dropped, [(Instant::ZERO, DropReason::Policed)]);
        }
    }

    /// Breaks: after hours without packets, whose tokens exceed 64 bits in the exact unit, the bucket has a
    /// wrong level.
    #[test]
    fn a_long_silence_fills_the_bucket_and_no_more() {
        for refill in [None, MBIT_500.refill] {
            let mut direction =
                PolicerDirection::new(PolicerConfig { refill, rate: Rate::from_mbit(400_000), ..MBIT_500 })
                    .unwrap();
            direction.tokens = 0;
            assert_eq!(direction.tokens(Instant::ZERO + Span::from_secs(1_000_000)), MBIT_500.burst);
            assert_eq!(direction.fraction, 0);
        }
    }

    /// Breaks: policers that never let anything pass are built.
    #[test]
    fn impossible_policers_are_refused() {
        let of = |config| PolicerDirection::new(config).map(drop);
        assert_eq!(of(PolicerConfig { rate: Rate::default(), ..MBIT_500 }), Err(PolicerError::ZeroRate));
        assert_eq!(of(PolicerConfig { burst: ByteCount::ZERO, ..MBIT_500 }), Err(PolicerError::ZeroBurst));
        assert_eq!(of(PolicerConfig { refill: Some(Span::ZERO), ..MBIT_500 }), Err(PolicerError::ZeroRefill));
    }

    proptest! {
        /// Breaks: the rate of a policer. Under constant overload it passes exactly what the rate gives, and
        /// at no time more than rate times time and one refill.
        #[test]
        fn the_rate_is_exact_over_any_time(
            rate in 1_000_000u64..2_000_000_000,
            quantum in 0u64..2_000_000,
            phase in 0u64..3_000_000,
            gap in 1u64..700,
        ) {
            let rate = Rate::from_bits_per_sec(rate);
            // The bucket holds every refill, so no token is lost while the overload lasts.
            let refill = Span::from_nanos(quantum);
            let burst = rate.bytes_in(refill) + ByteCount::new(3_001);
            let refill = (quantum > 0).then_some(refill);
            let phase = Span::from_nanos(phase);
            let config = PolicerConfig { rate, burst, refill, phase, counted: PolicedBytes::Ip };
            let mut direction = PolicerDirection::new(config).unwrap();
            direction.tokens = 0; // A full bucket would spill the first refills.
            let mut effects = crate::Effects::default();
            let mut rng = farpace_units::RandomStream::new(1, "policer");
            // Overload: 1500 B each time, more than the rate in any case.
            let step = Span::from_nanos(gap.min(12_000_000_000_000 / rate.bits_per_sec() / 2).max(1));
            let sample = packet(0, 1_460);
            let mut now = Instant::ZERO;
            for _ in 0..3_000 {
                direction.on_packet(sample.clone(), Port(1), &mut Cx::new(now, &mut effects, &mut rng));
                let max = u128::from(rate.bits_per_sec()) * u128::from(now.as_nanos()) / 8_000_000_000
                    + u128::from(rate.bytes_in(refill.unwrap_or_default()).get()) + 1;
                prop_assert!(u128::from(direction.stats().passed_bytes.get()) <= max);
                now += step;
            }
            let last = now.as_nanos() - step.as_nanos();
            let filled = match refill {
                None => last,
                Some(every) => {
                    let every = every.as_nanos();
                    let first = phase.as_nanos() % every;
                    if last < first { 0 } else { ((last - first) / every + 1) * every }
                }
            };
            let given = u128::from(rate.bits_per_sec()) * u128::from(filled) / 8_000_000_000;
            let passed = u128::from(direction.stats().passed_bytes.get());
            // Exact: what came in has passed or is still in the bucket; with continuous refill, less than a
            // packet is left.
            prop_assert_eq!(passed + u128::from(direction.tokens), given);
            prop_assert!(refill.is_some() || direction.tokens < 1_500);
        }
    }
}
