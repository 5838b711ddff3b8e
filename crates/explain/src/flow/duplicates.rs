//! Packets that were captured twice: by two capture points, or on two interfaces.

use super::Side;
use crate::frame::CapturedSegment;
use farpace_units::{Instant, Span};

/// Packets of one direction that are remembered: at first, once there are many, and once copies were found.
/// Most connections are short, and most captures have no copies.
const SLOTS: [usize; 3] = [8, 64, 1_024];
/// From so many packets on.
const MANY: u64 = 48;
/// Slots in which a packet may be.
const WAYS: usize = 4;
/// Packets with the same IP identification that are further apart than this are not the same.
const SAME_ID_WITHIN: Span = Span::from_millis(200);
/// Without an identification, copies come sooner than any sender could send again.
const SAME_WITHIN: Span = Span::from_micros(500);
/// A queue may lie between two points.
const ELSEWHERE_WITHIN: Span = Span::from_secs(1);
/// Without payload, this many packets get no memory but for the first.
const AFTER: u64 = 4;
/// Copies after which a capture has two points.
const MIN_COPIES: u32 = 2;
/// So many packets of the other point, and none of the one that is followed for [`ELSEWHERE_WITHIN`]: the
/// route has changed.
const MAX_ALONE: u32 = 64;

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

impl CopyIdentity {
    fn of(segment: &CapturedSegment) -> Self {
        CopyIdentity {
            seq: segment.seq,
            ack: segment.ack,
            len: segment.len,
            tsval: segment.options.tsval().unwrap_or_default(),
            window: segment.window,
            ip_id: segment.ip_id,
            flags: segment.flags.0,
        }
    }

    /// The first of its slots, of so many.
    fn slot(&self, slots: usize) -> usize {
        let mixed = (self.seq ^ self.ack.rotate_left(13) ^ u32::from(self.ip_id)).wrapping_mul(0x9e37_79b1);
        (mixed >> 16) as usize % slots / WAYS * WAYS
    }
}

/// What tells one capture point from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CapturePlace {
    ttl: u8,
    interface: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    identity: CopyIdentity,
    time: Instant,
    place: CapturePlace,
}

/// The points at which one direction was captured.
#[derive(Clone, Copy, Debug)]
struct CapturePlaces {
    followed: CapturePlace,
    left_out: CapturePlace,
}

/// Packets of one direction.
#[derive(Debug, Default)]
struct DirectionCopies {
    first: Slot,
    slots: Vec<Slot>,
    seen: u64,
    bytes: u64,
    /// The first copy with another place: where the packet was before, and where then.
    pair: Option<[CapturePlace; 2]>,
    /// The largest time to live.
    most: CapturePlace,
    places: Option<CapturePlaces>,
    /// The last packet of the point that is followed, and packets of the other since.
    last: Instant,
    alone: u32,
}

impl DirectionCopies {
    /// Where this packet has been captured before. Remembers it if it has not.
    fn find(
        &mut self,
        segment: &CapturedSegment,
        place: CapturePlace,
        tolerance: Span,
        many: bool,
    ) -> Option<CapturePlace> {
        let identity = CopyIdentity::of(segment);
        let new = Slot { identity, time: segment.time, place };
        let same = |slot: &Slot| {
            let gap = segment.time.since(slot.time);
            let limit = match segment.ip_id {
                _ if slot.place != place => ELSEWHERE_WITHIN,
                // Pure ACKs without an identification may be honest duplicates.
                0 if segment.len == 0 => Span::ZERO,
                0 => SAME_WITHIN.min(tolerance),
                _ => SAME_ID_WITHIN,
            };
            slot.identity == identity && gap < limit && slot.time > Instant::ZERO
        };
        self.seen += 1;
        if self.seen == 1 {
            self.first = new;
            return None;
        }
        if same(&self.first) {
            return Some(self.first.place);
        }
        if self.seen <= AFTER && segment.len == 0 && !many {
            return None;
        }
        let [few, some, most] = SLOTS;
        let wanted = if many { most } else { [few, some][usize::from(self.seen > MANY)] };
        if self.slots.len() < wanted {
            let old = std::mem::replace(&mut self.slots, vec![Slot::default(); wanted]);
            old.into_iter().filter(|slot| slot.time > Instant::ZERO).for_each(|slot| self.put(slot));
        }
        let at = identity.slot(self.slots.len());
        if let Some(found) = self.slots.iter().skip(at).take(WAYS).find(|slot| same(slot)) {
            return Some(found.place);
        }
        self.put(new);
        None
    }

    /// In place of the oldest of its slots.
    fn put(&mut self, slot: Slot) {
        let at = slot.identity.slot(self.slots.len());
        if let Some(oldest) = self.slots.iter_mut().skip(at).take(WAYS).min_by_key(|slot| slot.time) {
            *oldest = slot;
        }
    }

    /// The packet is of the other point.
    fn is_left_out(&mut self, place: CapturePlace, now: Instant) -> bool {
        match self.places {
            Some(CapturePlaces { left_out, .. }) if place == left_out => {
                self.alone += 1;
                if self.alone > MAX_ALONE && now.since(self.last) > ELSEWHERE_WITHIN {
                    (self.places, self.pair) = (None, None);
                }
                self.places.is_some()
            }
            _ => {
                (self.last, self.alone) = (now, 0);
                false
            }
        }
    }
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// It was not captured before.
    No,
    /// It was.
    Yes,
    /// It was, at a point that is followed no longer: from this one on the other is.
    Instead,
}

/// What tells copies from retransmissions. If a capture has two points, the one nearest to the client is
/// followed (without the handshake: to the end that has sent more): the first for what that end sends, the
/// last for what the other does. Segmentation offload makes one packet of many at one of them, so that
/// packets cannot be compared one by one.
#[derive(Debug, Default)]
pub(super) struct Copies {
    directions: [DirectionCopies; 2],
    pairs: u32,
    /// The end nearest to the point that is followed.
    nearest: Option<Side>,
    /// Copies with another time to live or on another interface: captured at two places.
    pub elsewhere: u64,
    /// Copies at the same place.
    pub here: u64,
}

impl Copies {
    /// Memory on the heap, in bytes.
    pub fn memory(&self) -> usize {
        self.directions.iter().map(|d| d.slots.capacity() * size_of::<Slot>()).sum()
    }

    /// The end nearest to the point that is followed, if the capture has two points.
    pub fn nearest(&self) -> Option<Side> {
        self.nearest
    }

    /// Whether this packet of `side` has been captured before.
    pub fn see(
        &mut self,
        segment: &CapturedSegment,
        side: Side,
        tolerance: Span,
        has_handshake: bool,
    ) -> Copied {
        let place = CapturePlace { ttl: segment.ttl, interface: segment.interface };
        let many = self.elsewhere + self.here > 0;
        let direction = &mut self.directions[super::index(side)];
        direction.bytes += u64::from(segment.len);
        if direction.seen == 0 || place.ttl > direction.most.ttl {
            direction.most = place;
            if self.nearest.is_some() {
                self.follow();
            }
        }
        let direction = &mut self.directions[super::index(side)];
        if direction.is_left_out(place, segment.time) {
            self.elsewhere += 1;
            return Copied::Yes;
        }
        let Some(before) = direction.find(segment, place, tolerance, many) else { return Copied::No };
        if before == place {
            self.here += 1;
            return Copied::Yes;
        }
        self.elsewhere += 1;
        if direction.pair.is_some() && direction.places.is_some() {
            return Copied::Yes;
        }
        direction.pair.get_or_insert([before, place]);
        self.pairs += 1;
        if self.pairs < MIN_COPIES {
            return Copied::Yes;
        }
        let [client, server] = &self.directions;
        let most = if server.bytes > client.bytes { Side::Server } else { Side::Client };
        self.nearest.get_or_insert(if has_handshake { Side::Client } else { most });
        self.follow();
        let places = self.directions[super::index(side)].places;
        if places.is_some_and(|p| p.followed == place) { Copied::Instead } else { Copied::Yes }
    }

    fn follow(&mut self) {
        let nearest = self.nearest.map(super::index);
        let pairs = [self.directions[0].pair, self.directions[1].pair];
        for (at, direction) in self.directions.iter_mut().enumerate() {
            let Some([before, after]) = pairs[at].or_else(|| {
                // The two points are as far apart in the other direction.
                let [a, b] = pairs[1 - at]?;
                let most = direction.most;
                let less = CapturePlace { ttl: most.ttl.checked_sub(a.ttl.abs_diff(b.ttl))?, ..most };
                let [from, to] = [a.interface, b.interface];
                Some(if from == to {
                    [most, less]
                } else {
                    [CapturePlace { interface: to, ..most }, CapturePlace { interface: from, ..less }]
                })
            }) else {
                continue;
            };
            let [followed, left_out] = if nearest == Some(at) { [before, after] } else { [after, before] };
            direction.places = Some(CapturePlaces { followed, left_out });
        }
    }
}
