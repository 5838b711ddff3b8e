//! Packets that were captured twice: by two capture points, or on two interfaces.

use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};

/// Packets of one direction that are remembered, at first and once there are many: most connections are
/// short.
const FEW_SLOTS: usize = 8;
const SLOTS: usize = 64;
/// From so many packets on.
const MANY: u64 = 48;
/// Packets with the same IP identification that are further apart than this are not the same.
const SAME_ID_WITHIN: Span = Span::from_millis(200);
/// Without an identification, copies come sooner than any sender could send again.
const SAME_WITHIN: Span = Span::from_micros(500);
/// Flows with fewer packets get no memory.
const AFTER: u64 = 4;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CopyIdentity {
    seq: u32,
    ack: u32,
    len: u32,
    tsval: u32,
    window: u32,
    ip_id: u16,
    flags: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    identity: CopyIdentity,
    time: Instant,
    ttl: u8,
    interface: u32,
}

/// What tells copies from retransmissions.
#[derive(Debug, Default)]
pub(super) struct Duplicates {
    slots: Vec<Slot>,
    seen: u64,
    /// Copies with another time to live or on another interface: captured at two places.
    pub elsewhere: u64,
    /// Copies at the same place.
    pub here: u64,
    /// Frames of the first copy.
    pub first: Option<(u64, u64)>,
}

impl Duplicates {
    /// Memory on the heap, in bytes.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// True if this packet has been captured before.
    pub fn is_copy(&mut self, segment: &CapturedSegment, tolerance: Span) -> bool {
        self.seen += 1;
        if self.seen <= AFTER && segment.len == 0 {
            return false;
        }
        let wanted = if self.seen > MANY { SLOTS } else { FEW_SLOTS };
        if self.slots.len() < wanted {
            self.slots = vec![Slot::default(); wanted];
        }
        let identity = CopyIdentity {
            seq: segment.seq,
            ack: segment.ack,
            len: segment.len,
            tsval: segment.options.timestamps.map_or(0, |(value, _)| value),
            window: segment.window,
            ip_id: segment.ip_id,
            flags: segment.flags.0,
        };
        let mixed =
            (segment.seq ^ segment.ack.rotate_left(13) ^ u32::from(segment.ip_id)).wrapping_mul(0x9e37_79b1);
        let Some(slot) = self.slots.get_mut((mixed >> 26) as usize % wanted) else { return false };
        let gap = segment.time.since(slot.time);
        // Pure ACKs without an identification may be honest duplicates.
        let limit = match segment.ip_id {
            0 if segment.len == 0 => Span::ZERO,
            0 => SAME_WITHIN.min(tolerance),
            _ => SAME_ID_WITHIN,
        };
        if slot.identity == identity && gap < limit && slot.time > Instant::ZERO {
            let elsewhere = slot.ttl != segment.ttl || slot.interface != segment.interface;
            if elsewhere {
                self.elsewhere += 1;
            } else {
                self.here += 1;
            }
            self.first.get_or_insert((segment.frame, segment.frame));
            return true;
        }
        *slot = Slot { identity, time: segment.time, ttl: segment.ttl, interface: segment.interface };
        false
    }
}
