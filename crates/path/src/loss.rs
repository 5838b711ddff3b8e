//! Random loss, independent for each packet.

use crate::{Cx, DropReason, Duplex, ElementDirection, Inspection, Port};
use farpace_wire::Packet;

/// Random loss in each direction.
pub type Loss = Duplex<LossDirection>;

/// One direction of a [`Loss`].
#[derive(Clone, Debug)]
pub struct LossDirection {
    probability: f64,
    lost: u64,
}

impl LossDirection {
    /// Drops each packet with `probability` (0 to 1).
    pub const fn new(probability: f64) -> Self {
        LossDirection { probability, lost: 0 }
    }
    /// Packets dropped so far.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl ElementDirection for LossDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if self.probability > 0.0 && cx.rng().chance(self.probability) {
            self.lost += 1;
            cx.drop(packet, DropReason::Loss);
        } else {
            cx.emit(out, packet);
        }
    }
    fn inspect(&self) -> Inspection {
        vec![("probability", self.probability.to_string()), ("lost", self.lost.to_string())]
    }
}

#[cfg(test)]
mod tests {
    use crate::harness::{Harness, packet};
    use crate::{
        Corrupt, CorruptDirection, Duplicate, DuplicateDirection, Loss, LossDirection, Port, Reorder,
        ReorderDirection,
    };
    use farpace_units::{Instant, Span};

    /// Breaks: the probability of loss, duplication, reordering or corruption is wrong. Of 2000 draws, 30 %
    /// must be hits within four standard deviations; probabilities of 0 and 1 must be exact.
    #[test]
    fn probabilities_are_kept() {
        for (p, range) in [(0.0, 0..=0), (0.3, 518..=682), (1.0, 2_000..=2_000)] {
            let mut loss = Harness::new(Loss::new(LossDirection::new(p), LossDirection::new(0.0)));
            let mut duplicate =
                Harness::new(Duplicate::new(DuplicateDirection::new(p), DuplicateDirection::new(0.0)));
            let extra = Span::from_millis(1);
            let mut reorder = Harness::new(Reorder::new(
                ReorderDirection::new(p, extra),
                ReorderDirection::new(0.0, extra),
            ));
            let mut corrupt =
                Harness::new(Corrupt::new(CorruptDirection::new(p), CorruptDirection::new(0.0)));
            for n in 0..2_000 {
                for port in [Port(0), Port(1)] {
                    loss.packet(Instant::ZERO, port, packet(n, 0));
                    duplicate.packet(Instant::ZERO, port, packet(n, 0));
                    reorder.packet(Instant::ZERO, port, packet(n, 0));
                    corrupt.packet(Instant::ZERO, port, packet(n, 100));
                }
            }
            reorder.run();
            let corrupted = corrupt.emitted.iter().filter(|(_, _, p)| p.verify_checksums().is_err());
            // No checksum covers the MAC addresses and the type: 14 of 154 B.
            let seen = corrupted.count() as u64;
            let flipped = corrupt.element.direction(Port(0)).corrupted();
            assert!(seen <= flipped && seen >= flipped * 8 / 10, "{seen} of {flipped}");
            for hits in [
                loss.dropped.len(),
                duplicate.emitted.len() - 4_000,
                reorder.emitted.iter().filter(|(at, ..)| *at == Instant::ZERO + extra).count(),
                flipped as usize,
            ] {
                assert!(range.contains(&hits), "{hits} hits at {p}");
            }
            for harness in [&reorder.idents(Port(0)), &duplicate.idents(Port(0)), &loss.idents(Port(0))] {
                assert_eq!(harness.len(), 2_000, "the other direction is untouched");
            }
        }
    }
}
