//! Random reordering: some packets are delayed, so that later ones overtake them.

use crate::delay_queue::DelayQueue;
use crate::{Cx, Duplex, ElementDirection, Inspection, Port};
use farpace_units::{Instant, Span};
use farpace_wire::Packet;

/// Random reordering in each direction.
pub type Reorder = Duplex<ReorderDirection>;

/// One direction of a [`Reorder`].
#[derive(Clone, Debug)]
pub struct ReorderDirection {
    probability: f64,
    extra: Span,
    delayed: u64,
    hold: DelayQueue,
}

impl ReorderDirection {
    /// Delays each packet by `extra` with `probability` (0 to 1).
    pub fn new(probability: f64, extra: Span) -> Self {
        ReorderDirection { probability, extra, delayed: 0, hold: DelayQueue::default() }
    }
    /// Packets delayed so far.
    pub const fn delayed(&self) -> u64 {
        self.delayed
    }
}

impl ElementDirection for ReorderDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        if self.probability > 0.0 && cx.rng().chance(self.probability) {
            self.delayed += 1;
            self.hold.push(cx.now() + self.extra, packet);
            self.hold.release(out, cx);
        } else {
            cx.emit(out, packet);
        }
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        self.hold.release(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.hold.due()
    }
    fn held(&self) -> u64 {
        self.hold.len()
    }
    fn inspect(&self) -> Inspection {
        vec![
            ("probability", self.probability.to_string()),
            ("extra delay", self.extra.to_string()),
            ("delayed", self.delayed.to_string()),
        ]
    }
}
