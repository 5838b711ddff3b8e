//! Bit errors on a link: a packet with a wrong bit is lost, so long packets are lost more often than short
//! ones.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_units::ByteCount;
use farpace_wire::Packet;

/// Bit errors in each direction.
pub type BitErrors = Duplex<BitErrorsDirection>;

/// One direction of a [`BitErrors`]. The link layer's checksum finds each damaged frame and drops it, unlike
/// [`Corrupt`](crate::Corrupt), where the damage reaches the receiver.
///
/// With bit errors independent of each other at the rate `ber`, a packet of `n` bytes is lost with
/// probability 1 - (1 - ber)^(8 n). `n` is the length of the IP packet: link headers, checksum and coding
/// differ between links, and published loss rates leave them out.
#[derive(Clone, Debug)]
pub struct BitErrorsDirection {
    ber: f64,
    /// ln(1 - ber): the logarithm of the probability that one bit is right.
    ln_right: f64,
    lost: u64,
}

impl BitErrorsDirection {
    /// Each bit is wrong with probability `ber` (0 to 1).
    pub fn new(ber: f64) -> Self {
        BitErrorsDirection { ber, ln_right: libm::log1p(-ber.clamp(0.0, 1.0)), lost: 0 }
    }
    /// Packets dropped so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// The probability that an IP packet of `len` is lost, 0 to 1. Exact to the last digits even for tiny
    /// values.
    pub fn loss_of(&self, len: ByteCount) -> f64 {
        if len.is_zero() { 0.0 } else { -libm::expm1(len.bits() as f64 * self.ln_right) }
    }
}

impl ElementDirection for BitErrorsDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if cx.rng().chance(self.loss_of(packet.network_len())) {
            self.lost += 1;
            cx.drop(packet, DropReason::BitErrors);
        } else {
            cx.emit(out, packet);
        }
    }
    fn inspect(&self) -> Inspection {
        vec![("bit error rate", self.ber.to_string()), ("lost", self.lost.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};
    use farpace_units::Instant;

    /// Breaks: the probability is computed from the wrong length, or loses digits at low rates.
    #[test]
    fn the_probability_follows_from_the_length() {
        let loss = |ber, len| BitErrorsDirection::new(ber).loss_of(ByteCount::new(len));
        let near = |a: f64, b: f64| assert!((a - b).abs() <= b * 1e-6, "{a}, expected {b}");
        near(loss(1e-5, 1_500), 0.113_080_095);
        near(loss(1e-5, 40), 0.003_194_901_4);
        near(loss(1e-7, 1_500), 0.001_199_280_35);
        // 12000 times the rate, minus half of its square: `1 - x` would lose this difference.
        near(loss(1e-15, 1_500), 1.2e-11);
        assert_eq!((loss(0.0, 1_500), loss(1.0, 1), loss(1.0, 0)), (0.0, 1.0, 0.0));
    }

    /// Breaks: packets are lost more or less often than their length says (binomial, four standard
    /// deviations), or in the wrong direction.
    #[test]
    fn losses_are_binomial_at_every_length() {
        const N: u16 = 20_000;
        for (ber, ip_len) in [(1e-5, 1_500), (1e-5, 576), (1e-5, 40), (1e-4, 1_500), (1e-6, 1_500)] {
            let mut harness =
                Harness::new(BitErrors::new(BitErrorsDirection::new(ber), BitErrorsDirection::new(0.0)));
            for n in 0..N {
                harness.packet(Instant::ZERO, Port(0), packet(n, ip_len - 40));
                harness.packet(Instant::ZERO, Port(1), packet(n, ip_len - 40));
            }
            let p = 1.0 - (0..8 * ip_len).fold(1.0, |right, _| right * (1.0 - ber));
            let (mean, sigma) = (f64::from(N) * p, (f64::from(N) * p * (1.0 - p)).sqrt());
            let lost = harness.dropped.len() as f64;
            assert!((lost - mean).abs() <= 4.0 * sigma, "{lost} of {ip_len} B at {ber}: {mean} +- {sigma}");
            assert_eq!(harness.element.direction(Port(0)).lost(), harness.dropped.len() as u64);
            assert!(harness.dropped.iter().all(|(_, reason)| *reason == DropReason::BitErrors));
            assert_eq!(harness.idents(Port(0)).len(), usize::from(N));
        }
    }
}
