//! The packets that a network drops, while somebody looks on.

use farpace_path::world::ElementId;
use farpace_path::{DropReason, Meter};
use farpace_units::{ByteCount, Instant, Seq, Span};
use farpace_wire::Packet;

/// A segment with data that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedSegment {
    /// When.
    pub time: Instant,
    /// Where.
    pub element: ElementId,
    /// Why.
    pub reason: DropReason,
    /// Source and destination port.
    pub ports: (u16, u16),
    /// Its first sequence number.
    pub seq: Seq,
    /// Its payload.
    pub len: ByteCount,
}

/// What one element dropped for one reason.
#[derive(Clone, Debug)]
pub struct DropMeter {
    /// Where.
    pub element: ElementId,
    /// Why.
    pub reason: DropReason,
    /// The first drop.
    pub first: Instant,
    /// Packets over time.
    pub meter: Meter,
}

/// Counts drops over time, and holds dropped segments until they are fetched.
#[derive(Clone, Debug)]
pub(crate) struct DropLog {
    bin: Span,
    meters: Vec<DropMeter>,
    segments: Vec<DroppedSegment>,
}

impl DropLog {
    /// Segments that wait to be fetched; more are counted only.
    pub const MAX_SEGMENTS: usize = 1 << 16;
    /// Pairs of place and reason that are counted over time.
    pub const MAX_METERS: usize = 64;

    /// An empty one with bins of this width.
    pub fn new(bin: Span) -> Self {
        DropLog { bin, meters: Vec::new(), segments: Vec::new() }
    }

    /// A packet is dropped.
    pub fn dropped(&mut self, time: Instant, element: ElementId, packet: &Packet, reason: DropReason) {
        let known = self.meters.iter().position(|m| m.element == element && m.reason == reason);
        let at = known.or_else(|| {
            let room = self.meters.len() < Self::MAX_METERS;
            room.then(|| {
                self.meters.push(DropMeter { element, reason, first: time, meter: Meter::new(self.bin) });
                self.meters.len() - 1
            })
        });
        if let Some(meter) = at.and_then(|at| self.meters.get_mut(at)) {
            meter.meter.record(time, packet.len());
        }
        if packet.payload().is_empty() || self.segments.len() >= Self::MAX_SEGMENTS {
            return;
        }
        if let Ok(segment) = packet.tcp() {
            let header = segment.header();
            let (ports, seq) = ((header.src_port, header.dst_port), header.seq);
            let len = ByteCount::of_len(packet.payload().len());
            self.segments.push(DroppedSegment { time, element, reason, ports, seq, len });
        }
    }

    /// The counts so far, in the order in which they began.
    pub fn meters(&self) -> &[DropMeter] {
        &self.meters
    }

    /// The segments since the last call.
    pub fn take_segments(&mut self) -> Vec<DroppedSegment> {
        std::mem::take(&mut self.segments)
    }
}
