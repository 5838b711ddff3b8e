//! The boundary between a world and a device.

use crate::{Cx, Element, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::collections::VecDeque;

/// Stands in a world for what is outside of it. A packet that arrives leaves the world and waits to be
/// fetched; a packet from outside enters.
#[derive(Debug, Default)]
pub struct BoundaryPort {
    left: VecDeque<Packet>,
    /// When each of them was to leave; none if times are not recorded.
    dues: Option<VecDeque<Instant>>,
}

impl BoundaryPort {
    /// A boundary port that records when packets are to leave, so that their lateness can be measured.
    pub fn timed() -> Self {
        BoundaryPort { left: VecDeque::new(), dues: Some(VecDeque::new()) }
    }
    /// A packet comes from outside. For [`World::call`](crate::world::World::call).
    pub fn enter(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        cx.made();
        cx.emit(Port(0), packet);
    }
    /// The packets that have left and wait to be fetched. They no longer belong to the world.
    pub fn left(&mut self) -> &mut VecDeque<Packet> {
        &mut self.left
    }
    /// When each packet was to leave, in their order. A caller that fetches packets fetches as many of these.
    /// None if times are not recorded.
    pub fn dues(&mut self) -> Option<&mut VecDeque<Instant>> {
        self.dues.as_mut()
    }
}

impl Element for BoundaryPort {
    fn is_passive(&self) -> bool {
        true
    }
    fn on_packet(&mut self, _: Port, packet: Packet, cx: &mut Cx<'_>) {
        if let Some(dues) = &mut self.dues {
            dues.push_back(cx.now());
        }
        self.left.push_back(cx.hand_over(packet));
    }
    fn on_wake(&mut self, _: &mut Cx<'_>) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn held(&self) -> u64 {
        0
    }
    fn inspect(&self) -> Inspection {
        vec![("left", self.left.len().to_string())]
    }
}
