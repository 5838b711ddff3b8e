//! Random duplication: a copy follows the packet at once.

use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_wire::Packet;

/// Random duplication in each direction.
pub type Duplicate = Duplex<DuplicateDirection>;

/// One direction of a [`Duplicate`].
#[derive(Clone, Debug)]
pub struct DuplicateDirection {
    probability: f64,
    duplicated: u64,
}

impl DuplicateDirection {
    /// Duplicates each packet with `probability` (0 to 1).
    pub const fn new(probability: f64) -> Self {
        DuplicateDirection { probability, duplicated: 0 }
    }
    /// Packets duplicated so far.
    pub const fn duplicated(&self) -> u64 {
        self.duplicated
    }
}

impl ElementDirection for DuplicateDirection {
    const PASSIVE: bool = true;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if self.probability > 0.0 && cx.rng().chance(self.probability) {
            self.duplicated += 1;
            cx.made();
            cx.emit(out, packet.clone());
        }
        cx.emit(out, packet);
    }
    fn inspect(&self) -> Inspection {
        vec![("probability", self.probability.to_string()), ("duplicated", self.duplicated.to_string())]
    }
}
