//! Packets in the order of arrival, each with its time.

use super::Backlog;
use farpace_units::{ByteCount, Instant};
use farpace_wire::Packet;
use std::collections::VecDeque;

/// First in, first out.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<(Instant, Packet)>,
    bytes: ByteCount,
}

impl Fifo {
    /// A packet arrives at `now`.
    pub fn push(&mut self, now: Instant, packet: Packet) {
        self.bytes += packet.len();
        self.packets.push_back((now, packet));
    }
    /// The first packet, and when it arrived.
    pub fn pop(&mut self) -> Option<(Instant, Packet)> {
        let (arrived, packet) = self.packets.pop_front()?;
        self.bytes -= packet.len();
        Some((arrived, packet))
    }
    /// The packets inside.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }
    /// True if nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}
