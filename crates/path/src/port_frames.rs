//! Frames that end at the port they arrive at, in every station and every bridge.

use crate::{Cx, Inspection};
use farpace_wire::{EtherType, Packet, PauseFrame};

/// True if no station forwards `packet`, nor hands it to what lies above Ethernet:
/// * it goes to a group address that belongs to the line alone, PAUSE and all other MAC control among them
///   (01-80-C2-00-00-00 to 0F, IEEE 802.1Q §8.6.3), or
/// * it is of the experimental EtherType and its sender has addressed it to itself, so that a bridge finds its receiver where
///   it came from (§8.6.1) and nobody else is meant.
#[inline]
pub fn ends_at_port(packet: &Packet) -> bool {
    let (src, dst) = packet.macs();
    dst.is_link_local_group() || (src == dst && is_experimental(packet))
}

fn is_experimental(packet: &Packet) -> bool {
    packet.ethernet().is_ok_and(|header| header.ether_type == EtherType::EXPERIMENTAL)
}

/// What the ports of an element have kept back, by kind.
///
/// Nothing else happens to PAUSE: with a time of 0, as gap frames have it, it asks for nothing; with another time it would
/// stop the line that leads back, which no element of ours does. It is counted, so that a run shows that it came.
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
    /// Takes `packet` in if it ends at the port; gives it back if it does not.
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
            ("other frames of the line", self.others.to_string()),
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
