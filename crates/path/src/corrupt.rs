//! Bit errors that reach the receiver: one bit of a packet, anywhere in it, is flipped.

use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_wire::Packet;

/// Bit errors in each direction.
pub type Corrupt = Duplex<CorruptDirection>;

/// One direction of a [`Corrupt`].
#[derive(Clone, Debug)]
pub struct CorruptDirection {
    probability: f64,
    corrupted: u64,
}

impl CorruptDirection {
    /// Flips one bit of each packet with `probability` (0 to 1).
    pub const fn new(probability: f64) -> Self {
        CorruptDirection { probability, corrupted: 0 }
    }
    /// Packets corrupted so far.
    pub const fn corrupted(&self) -> u64 {
        self.corrupted
    }
}

impl ElementDirection for CorruptDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, mut packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if self.probability > 0.0 && cx.rng().chance(self.probability) {
            self.corrupted += 1;
            let bits = packet.len().bits();
            packet.flip_bit(cx.rng().below(bits));
        }
        cx.emit(out, packet);
    }
    fn inspect(&self) -> Inspection {
        vec![("probability", self.probability.to_string()), ("corrupted", self.corrupted.to_string())]
    }
}
