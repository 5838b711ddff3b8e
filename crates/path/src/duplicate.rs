//! Random duplication: a second copy follows the first at once.

use crate::{Cx, Inspection, Port, TwoWay, Way};
use farpace_wire::Packet;

/// Random duplication in each direction.
pub type Duplicate = TwoWay<DuplicateWay>;

/// One direction of a [`Duplicate`].
#[derive(Clone, Debug)]
pub struct DuplicateWay {
    probability: f64,
    duplicated: u64,
}

impl DuplicateWay {
    /// Doubles each packet with `probability` (0 to 1).
    pub const fn new(probability: f64) -> Self {
        DuplicateWay { probability, duplicated: 0 }
    }
    /// Packets doubled so far.
    pub const fn duplicated(&self) -> u64 {
        self.duplicated
    }
}

impl Way for DuplicateWay {
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
