//! The other end: counts the frames of each path, and replies to probes.

use super::message::{PathProbe, Places, ProbeTraffic, Reply};
use crate::multi_nic::{Late, NicId, ReorderObserver};
use crate::pacing::on_the_line;
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::BTreeMap;

/// Maximum number of paths that are counted. A new one replaces the one that was silent for the longest time.
pub const MAX_PATHS: usize = 1_024;
/// Maximum rate and burst of replies on one path.
const REPLIES_PER_SECOND: u64 = 400;
const REPLIES_AT_ONCE: u64 = 40;
/// Places of the memory of lanes that were seen last.
const SEEN: usize = 64;

/// An inbound path. Numbers are reused after a path was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboundPathId(pub u16);

/// Counts the frames of each probed path (own NIC and address of the foreign one), and replies to probes.
#[derive(Clone, Debug)]
pub struct Responder {
    rows: Vec<ResponderRow>,
    by_address: BTreeMap<(NicId, MacAddr), InboundPathId>,
    seen: [Option<InboundPathId>; SEEN],
    observer: ReorderObserver,
    unanswered: u64,
}

#[derive(Clone, Copy, Debug)]
struct ResponderRow {
    nic: NicId,
    from: MacAddr,
    received: ProbeTraffic,
    places: Places,
    rtt: Span,
    /// When the last probe arrived.
    probed_at: Instant,
    /// A token bucket for replies, as the time at which it will be full.
    answered_until: Instant,
}

impl Responder {
    /// No paths.
    pub fn new() -> Responder {
        Responder {
            rows: Vec::new(),
            by_address: BTreeMap::new(),
            seen: [None; SEEN],
            observer: ReorderObserver::default(),
            unanswered: 0,
        }
    }
    /// Counts a data frame to this host that `nic` has received, if its path is probed, and returns whether
    /// it was late. The frame must have the addresses that it had on the wire.
    ///
    /// Multicast frames, probes and replies must not be counted, because the sender does not count them
    /// either.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, nic: NicId, packet: &Packet) -> Option<Late> {
        let lane = self.on_frame(nic, packet.macs().0, on_the_line(packet.len()))?;
        let rows = &self.rows;
        let rtt = |lane: InboundPathId| {
            rows.get(usize::from(lane.0)).map(|row| row.rtt).filter(|rtt| !rtt.is_zero())
        };
        let late = self.observer.on_packet(now, lane, packet, rtt)?;
        self.out_of_place(&late);
        Some(late)
    }
    /// Like [`on_packet`](Self::on_packet), without inspecting the frame: its source address and wire length.
    /// Returns its path.
    #[inline]
    pub fn on_frame(&mut self, nic: NicId, from: MacAddr, bytes: ByteCount) -> Option<InboundPathId> {
        let lane = self.lane(nic, from)?;
        self.rows.get_mut(usize::from(lane.0))?.received.add(bytes);
        Some(lane)
    }
    /// Handles a probe in `packet`. Returns the reply, which the same NIC must send before any data.
    pub fn on_probe(
        &mut self,
        now: Instant,
        nic: NicId,
        packet: &Packet,
        probe: PathProbe,
    ) -> Option<Packet> {
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
    /// All counted paths: own NIC, source address, received traffic and reordered frames.
    pub fn lanes(&self) -> impl Iterator<Item = (NicId, MacAddr, ProbeTraffic, Places)> {
        self.rows.iter().map(|row| (row.nic, row.from, row.received, row.places))
    }
    /// The round trip times of these paths, as the probing hosts know them; zero: unknown.
    pub fn ways(&self) -> impl Iterator<Item = (NicId, MacAddr, Span)> {
        self.rows.iter().map(|row| (row.nic, row.from, row.rtt))
    }
    /// Number of probes without a reply because of the rate limit.
    pub const fn unanswered(&self) -> u64 {
        self.unanswered
    }

    #[cold]
    fn out_of_place(&mut self, late: &Late) {
        if let Some(row) = self.rows.get_mut(usize::from(late.lane.0)) {
            row.places.late = row.places.late.wrapping_add(1);
            row.places.harmful = row.places.harmful.wrapping_add(late.is_harmful().into());
        }
        if let Some(row) = self.rows.get_mut(usize::from(late.before.0)) {
            row.places.overtook = row.places.overtook.wrapping_add(1);
        }
    }
    #[inline]
    fn lane(&mut self, nic: NicId, from: MacAddr) -> Option<InboundPathId> {
        let MacAddr([.., a, b]) = from;
        let place = usize::from(a ^ b.rotate_left(3) ^ nic.0.rotate_left(5)) % SEEN;
        let is_it = |lane: &InboundPathId| {
            self.rows.get(usize::from(lane.0)).is_some_and(|row| row.nic == nic && row.from == from)
        };
        if let Some(lane) = self.seen[place].filter(is_it) {
            return Some(lane);
        }
        let lane = *self.by_address.get(&(nic, from))?;
        self.seen[place] = Some(lane);
        Some(lane)
    }
    fn make(&mut self, now: Instant, nic: NicId, from: MacAddr) -> InboundPathId {
        let row = ResponderRow {
            nic,
            from,
            received: ProbeTraffic::default(),
            places: Places::default(),
            rtt: Span::ZERO,
            probed_at: now,
            answered_until: Instant::ZERO,
        };
        let oldest = self.rows.iter().enumerate().min_by_key(|(_, row)| row.probed_at);
        let lane = match oldest {
            Some((at, old)) if self.rows.len() >= MAX_PATHS => {
                self.by_address.remove(&(old.nic, old.from));
                if let Some(place) = self.rows.get_mut(at) {
                    *place = row;
                }
                InboundPathId(at as u16)
            }
            _ => {
                self.rows.push(row);
                InboundPathId((self.rows.len() - 1) as u16)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_nic::probe::ProbeMessage;
    use crate::multi_nic::segment::made::{TO, from, segment};
    use farpace_wire::TcpFlags;

    fn probe(lane: u8, rtt: Span) -> (Packet, PathProbe) {
        let probe = PathProbe {
            lane: NicId(lane),
            seq: 1,
            sent_at: Instant::ZERO,
            sent: ProbeTraffic::default(),
            rtt,
        };
        (probe.frame(from(lane), TO), probe)
    }
    fn reply(packet: Option<Packet>) -> Option<Reply> {
        match ProbeMessage::of(&packet?)? {
            Ok(ProbeMessage::Reply(reply)) => Some(reply),
            other => panic!("{other:?}"),
        }
    }

    /// Breaks: replies contain the exact counters of received and late frames.
    #[test]
    fn replies_say_what_came_and_what_came_late() {
        let mut responder = Responder::new();
        let now = Instant::from_nanos(1_000_000);
        let rtt = Span::from_millis(5);
        let data = |lane, seq| segment(lane, 1, seq, 1_000, TcpFlags::ACK, None);
        assert_eq!(responder.on_packet(now, NicId(0), &data(0, 0)), None, "nobody has asked");
        for lane in [0, 1] {
            let (packet, probe) = probe(lane, rtt);
            let first = reply(responder.on_probe(now, NicId(lane), &packet, probe)).expect("an answer");
            assert_eq!(first.received, ProbeTraffic { frames: 1, bytes: ByteCount::new(84) });
            assert_eq!((first.probe, first.arrived_at), (probe, now));
        }
        for seq in [1_000, 3_000, 4_000, 5_000] {
            assert_eq!(responder.on_packet(now, NicId(0), &data(0, seq)), None);
        }
        let late = responder.on_packet(now, NicId(1), &data(1, 2_000)).expect("it is late");
        assert!(late.is_harmful());
        let (packet, asked) = probe(1, rtt);
        let told = reply(responder.on_probe(now, NicId(1), &packet, asked)).expect("an answer");
        assert_eq!(told.places, Places { late: 1, harmful: 1, overtook: 0 });
        assert_eq!(told.received, ProbeTraffic { frames: 3, bytes: ByteCount::new(84 * 2 + 1_078) });
        let (packet, asked) = probe(0, rtt);
        let told = reply(responder.on_probe(now, NicId(0), &packet, asked)).expect("an answer");
        assert_eq!(told.places, Places { late: 0, harmful: 0, overtook: 1 });
        // The same address by another card is another lane.
        let (packet, asked) = probe(0, rtt);
        let told = reply(responder.on_probe(now, NicId(7), &packet, asked)).expect("an answer");
        assert_eq!(told.received.frames, 1);
    }

    /// Breaks: a flood of probes gets a limited number of replies, uses bounded memory, and does not displace
    /// a neighbour.
    #[test]
    fn replies_and_lanes_are_bounded() {
        let mut responder = Responder::new();
        let mut now = Instant::ZERO;
        let mut answered = 0;
        for _ in 0..1_000 {
            let (packet, asked) = probe(0, Span::ZERO);
            answered += u64::from(responder.on_probe(now, NicId(0), &packet, asked).is_some());
        }
        assert_eq!((answered, responder.unanswered()), (REPLIES_AT_ONCE, 1_000 - REPLIES_AT_ONCE));
        for n in 0..5_000_u32 {
            now += Span::from_millis(1);
            let [a, b, c, d] = n.to_be_bytes();
            let stranger = MacAddr([2, 9, a, b, c, d]);
            let (_, asked) = probe(1, Span::ZERO);
            responder.on_probe(now, NicId(1), &asked.frame(stranger, TO), asked);
            if n % 25 == 24 {
                let (packet, asked) = probe(0, Span::ZERO);
                assert!(responder.on_probe(now, NicId(0), &packet, asked).is_some());
            }
        }
        assert_eq!(responder.lanes().count(), MAX_PATHS);
        let neighbour = responder.lanes().find(|(nic, mac, ..)| (*nic, *mac) == (NicId(0), from(0)));
        assert_eq!(neighbour.map(|(_, _, came, _)| came.frames), Some(1_200), "it is not forgotten");
        let (_, asked) = probe(1, Span::ZERO);
        let group = asked.frame(MacAddr::BROADCAST, TO);
        assert!(responder.on_probe(now, NicId(1), &group, asked).is_none());
    }
}
