//! Loss in bursts: the Gilbert-Elliott model of a link that is in a good or in a bad state.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_wire::Packet;

/// Bursts of loss in each direction.
pub type BurstLoss = Duplex<BurstLossDirection>;

/// Probabilities of a [`BurstLossDirection`], each from 0 to 1 and per packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurstLossConfig {
    /// The good state becomes bad: bursts begin every 1/`begin` packets.
    pub begin: f64,
    /// The bad state becomes good: the mean length of a burst is 1/`end` packets.
    pub end: f64,
    /// Loss in the good state (Gilbert's model: 0).
    pub good: f64,
    /// Loss in the bad state (Gilbert's simplest model: 1).
    pub bad: f64,
}

/// One direction of a [`BurstLoss`].
#[derive(Clone, Debug)]
pub struct BurstLossDirection {
    config: BurstLossConfig,
    is_bad: bool,
    lost: u64,
}

impl BurstLossDirection {
    /// Begins in the good state.
    pub const fn new(config: BurstLossConfig) -> Self {
        BurstLossDirection { config, is_bad: false, lost: 0 }
    }
    /// Packets dropped so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl ElementDirection for BurstLossDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        let BurstLossConfig { begin, end, good, bad } = self.config;
        let changes = cx.rng().chance(if self.is_bad { end } else { begin });
        self.is_bad ^= changes;
        if cx.rng().chance(if self.is_bad { bad } else { good }) {
            self.lost += 1;
            cx.drop(packet, DropReason::BurstLoss);
        } else {
            cx.emit(out, packet);
        }
    }
    fn inspect(&self) -> Inspection {
        let state = if self.is_bad { "bad" } else { "good" };
        vec![("state", state.to_owned()), ("lost", self.lost.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};
    use farpace_units::Instant;

    /// Breaks: bursts begin too often or have the wrong length. Bounds are four standard deviations wide.
    #[test]
    fn bursts_have_their_length_and_number() {
        const NEVER: BurstLossConfig = BurstLossConfig { begin: 0.0, end: 1.0, good: 0.0, bad: 1.0 };
        let often = BurstLossConfig { begin: 0.02, end: 0.2, good: 0.0, bad: 1.0 };
        let mut harness =
            Harness::new(BurstLoss::new(BurstLossDirection::new(often), BurstLossDirection::new(NEVER)));
        for n in 0..20_000 {
            harness.packet(Instant::ZERO, Port(0), packet(n, 0));
            harness.packet(Instant::ZERO, Port(1), packet(n, 0));
        }
        assert_eq!(harness.idents(Port(0)).len(), 20_000);
        let arrived = harness.idents(Port(1));
        let bursts = arrived.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        // The mean distance from burst to burst is 1/0.02 + 1/0.2 = 55 packets.
        assert!((290..=440).contains(&bursts), "{bursts} bursts, 364 expected");
        let mean = (20_000 - arrived.len()) as f64 / bursts as f64;
        assert!((4.0..=6.0).contains(&mean), "bursts of {mean} packets, 5 expected");
    }
}
