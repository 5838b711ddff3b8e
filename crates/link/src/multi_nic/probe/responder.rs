//! The other end: counts what comes by each lane, and answers.

use super::message::{Places, Probe, Reply, Traffic};
use crate::multi_nic::NicId;
use crate::pacing::on_the_line;
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::BTreeMap;

/// Lanes that are counted; the one that was silent for the longest makes room for another.
pub const MOST_LANES: usize = 1_024;
/// Probes of one lane that are answered: so many a second, and so many at once.
const REPLIES_PER_SECOND: u64 = 400;
const REPLIES_AT_ONCE: u64 = 40;
/// Places of the memory of lanes that were seen last.
const SEEN: usize = 64;

/// A lane by which frames come in, as it is counted here. The number of one that was forgotten is given to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneIn(pub u16);

/// Counts frames for each lane that has been probed, which is a card of ours and the address of another's, and answers probes.
#[derive(Clone, Debug)]
pub struct Responder {
    rows: Vec<Row>,
    by_address: BTreeMap<(NicId, MacAddr), LaneIn>,
    seen: [Option<LaneIn>; SEEN],
    unanswered: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    nic: NicId,
    from: MacAddr,
    received: Traffic,
    places: Places,
    rtt: Span,
    /// When the last probe came.
    probed_at: Instant,
    /// Probes that may be answered are due by then: a bucket of tokens, as a time.
    answered_until: Instant,
}

impl Responder {
    /// Nothing has come yet.
    pub fn new() -> Responder {
        Responder { rows: Vec::new(), by_address: BTreeMap::new(), seen: [None; SEEN], unanswered: 0 }
    }
    /// A frame of data for us came in by `nic`; it takes `bytes` of the line. Returns its lane if it is one that is probed.
    ///
    /// Frames for groups do not belong here, nor do probes and replies: both ends count the same.
    #[inline]
    pub fn on_frame(&mut self, nic: NicId, from: MacAddr, bytes: ByteCount) -> Option<LaneIn> {
        let lane = self.lane(nic, from)?;
        self.rows.get_mut(usize::from(lane.0))?.received.add(bytes);
        Some(lane)
    }
    /// A probe came in `packet`. Returns the reply, which leaves by the same card, before any data.
    pub fn on_probe(&mut self, now: Instant, nic: NicId, packet: &Packet, probe: Probe) -> Option<Packet> {
        let (from, to) = packet.macs();
        if from.is_multicast() || to.is_multicast() {
            return None;
        }
        let lane = self.lane(nic, from).unwrap_or_else(|| self.make(now, nic, from));
        let row = self.rows.get_mut(usize::from(lane.0))?;
        row.received.add(on_the_line(packet.len()));
        row.probed_at = now;
        row.rtt = probe.rtt;
        let each = Span::from_nanos(1_000_000_000 / REPLIES_PER_SECOND);
        let until = row.answered_until.max(now) + each;
        if until.since(now) > each * REPLIES_AT_ONCE {
            self.unanswered += 1;
            return None;
        }
        row.answered_until = until;
        let reply = Reply { probe, arrived_at: now, received: row.received, places: row.places };
        Some(reply.frame(to, from))
    }
    /// Round trip of a lane as its sender has measured it; none: it does not know.
    #[inline]
    pub fn rtt(&self, lane: LaneIn) -> Option<Span> {
        self.rows.get(usize::from(lane.0)).map(|row| row.rtt).filter(|rtt| !rtt.is_zero())
    }
    /// A frame of `late` came after one of `before` that was sent later, and after so many that it does harm.
    pub fn out_of_place(&mut self, late: LaneIn, before: LaneIn, harmful: bool) {
        if let Some(row) = self.rows.get_mut(usize::from(late.0)) {
            row.places.late = row.places.late.wrapping_add(1);
            row.places.harmful = row.places.harmful.wrapping_add(harmful.into());
        }
        if let Some(row) = self.rows.get_mut(usize::from(before.0)) {
            row.places.overtook = row.places.overtook.wrapping_add(1);
        }
    }
    /// All lanes that are counted: our card, the sender's address, what came, and what came out of place.
    pub fn lanes(&self) -> impl Iterator<Item = (NicId, MacAddr, Traffic, Places)> {
        self.rows.iter().map(|row| (row.nic, row.from, row.received, row.places))
    }
    /// Probes that were too many.
    pub const fn unanswered(&self) -> u64 {
        self.unanswered
    }

    #[inline]
    fn lane(&mut self, nic: NicId, from: MacAddr) -> Option<LaneIn> {
        let MacAddr([.., a, b]) = from;
        let place = usize::from(a ^ b.rotate_left(3) ^ nic.0.rotate_left(5)) % SEEN;
        let is_it = |lane: &LaneIn| {
            self.rows.get(usize::from(lane.0)).is_some_and(|row| row.nic == nic && row.from == from)
        };
        if let Some(lane) = self.seen[place].filter(is_it) {
            return Some(lane);
        }
        let lane = *self.by_address.get(&(nic, from))?;
        self.seen[place] = Some(lane);
        Some(lane)
    }
    fn make(&mut self, now: Instant, nic: NicId, from: MacAddr) -> LaneIn {
        let row = Row {
            nic,
            from,
            received: Traffic::default(),
            places: Places::default(),
            rtt: Span::ZERO,
            probed_at: now,
            answered_until: Instant::ZERO,
        };
        let oldest = self.rows.iter().enumerate().min_by_key(|(_, row)| row.probed_at);
        let lane = match oldest {
            Some((at, old)) if self.rows.len() >= MOST_LANES => {
                self.by_address.remove(&(old.nic, old.from));
                if let Some(place) = self.rows.get_mut(at) {
                    *place = row;
                }
                LaneIn(at as u16)
            }
            _ => {
                self.rows.push(row);
                LaneIn((self.rows.len() - 1) as u16)
            }
        };
        self.by_address.insert((nic, from), lane);
        lane
    }
}

impl Default for Responder {
    fn default() -> Self {
        Responder::new()
    }
}
