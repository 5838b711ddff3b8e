//! Link-local frames: they end at the port at which they arrive, in every station and every bridge.

use crate::{Cx, Inspection};
use farpace_wire::{EtherType, Packet, PauseFrame};

/// True if no station forwards `packet` or hands it to a higher layer:
/// * its destination is a group address of the link alone, such as PAUSE and all other MAC control frames
///   (01-80-C2-00-00-00 to 0F, IEEE 802.1Q §8.6.3), or
/// * it has the experimental EtherType and its sender as destination, so that a bridge finds the receiver
///   where the frame came from (§8.6.1).
#[inline]
pub fn ends_at_port(packet: &Packet) -> bool {
    let (src, dst) = packet.macs();
    dst.is_link_local_group() || (src == dst && is_experimental(packet))
}

fn is_experimental(packet: &Packet) -> bool {
    packet.ethernet().is_ok_and(|header| header.ether_type == EtherType::EXPERIMENTAL)
}

/// The frames that ended at the ports of an element, by kind.
///
/// PAUSE has no effect: with a time of 0, as in gap frames, it asks for nothing. With another time it would
/// stop the reverse direction, which no element here implements. It is counted, so that a run shows that it
/// came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortFrames {
    /// PAUSE with a time of 0.
    pub pauses: u64,
    /// PAUSE with a time: not obeyed.
    pub pauses_with_time: u64,
    /// Anything else.
    pub others: u64,
}

impl PortFrames {
    /// Consumes `packet` if it ends at the port; returns it otherwise.
    #[inline]
    pub fn take(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        if !ends_at_port(&packet) {
            return Some(packet);
        }
        self.count(&packet);
        cx.consume(packet);
        None
    }
    /// All together.
    pub const fn total(&self) -> u64 {
        self.pauses + self.pauses_with_time + self.others
    }
    /// As readings of an element.
    pub fn inspect(&self) -> Inspection {
        vec![
            ("pauses of 0", self.pauses.to_string()),
            ("pauses not obeyed", self.pauses_with_time.to_string()),
            ("other link-local frames", self.others.to_string()),
        ]
    }

    fn count(&mut self, packet: &Packet) {
        match PauseFrame::read(packet) {
            Ok(PauseFrame { opcode: PauseFrame::PAUSE, time: 0 }) => self.pauses += 1,
            Ok(PauseFrame { opcode: PauseFrame::PAUSE, .. }) => self.pauses_with_time += 1,
            _ => self.others += 1,
        }
    }
}
