//! Where a world ends: at a device.

use crate::{Cx, Element, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::Packet;
use std::collections::VecDeque;

/// Stands in a world for what is outside of it. Packets that arrive leave the world and wait to be fetched; packets from
/// outside enter.
#[derive(Debug, Default)]
pub struct BoundaryPort {
    left: VecDeque<Packet>,
    /// When each of them was to leave; none: nobody asks.
    dues: Option<VecDeque<Instant>>,
}

impl BoundaryPort {
    /// A door that notes when packets are to leave, for whoever finds out how late they do.
    pub fn timed() -> Self {
        BoundaryPort { left: VecDeque::new(), dues: Some(VecDeque::new()) }
    }
    /// A packet comes from outside. For [`World::call`](crate::world::World::call).
    pub fn enter(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        cx.made();
        cx.emit(Port(0), packet);
    }
    /// What has left, for whoever takes it further. They are no longer of the world.
    pub fn left(&mut self) -> &mut VecDeque<Packet> {
        &mut self.left
    }
    /// When each packet was to leave, in their order. Whoever takes packets takes as many of these; none: not noted.
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
