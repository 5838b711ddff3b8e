//! The other end: counts the frames of each path, and replies to probes.

use super::message::{PathProbe, ProbeTraffic, ReorderCounts, Reply};
use crate::multi_nic::{Late, NicId, ReorderObserver};
use crate::pacing::wire_len;
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::BTreeMap;

/// Maximum number of paths that are counted. A new one replaces the one that was silent for the longest time.
pub const MAX_PATHS: usize = 1_024;
/// Maximum rate and burst of replies on one path.
const REPLIES_PER_SECOND: u64 = 400;
const REPLY_BURST: u64 = 40;
/// Number of slots in the cache of recent paths.
const CACHE_SLOTS: usize = 64;

/// An inbound path. Numbers are reused after a path was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InboundPathId(pub u16);

/// Counts the frames of each probed path (own NIC and address of the foreign one), and replies to probes.
#[derive(Clone, Debug)]
pub struct Responder {
    inbound: Vec<InboundPath>,
    by_address: BTreeMap<(NicId, MacAddr), InboundPathId>,
    cache: [Option<InboundPathId>; CACHE_SLOTS],
    observer: ReorderObserver,
    unanswered: u64,
    /// How long this host holds frames, for replies.
    resequence_time: Span,
}

#[derive(Clone, Copy, Debug)]
struct InboundPath {
    nic: NicId,
    from: MacAddr,
    received: ProbeTraffic,
    reordered: ReorderCounts,
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
            inbound: Vec::new(),
            by_address: BTreeMap::new(),
            cache: [None; CACHE_SLOTS],
            observer: ReorderObserver::default(),
            unanswered: 0,
            resequence_time: Span::ZERO,
        }
    }
    /// Tells in replies from now on that this host holds frames until earlier ones have come, for `time` at
    /// most; zero: it tells nothing. At first it is zero.
    pub fn set_resequence_time(&mut self, time: Span) {
        self.resequence_time = time;
    }
    /// Counts a data frame to this host that `nic` has received, if its path is probed, and returns whether
    /// it was late. The frame must have the addresses that it had on the wire.
    ///
    /// Multicast frames, probes and replies must not be counted, because the sender does not count them
    /// either.
    #[inline]
    pub fn on_packet(&mut self, now: Instant, nic: NicId, packet: &Packet) -> Option<Late> {
        let path = self.on_frame(nic, packet.macs().0, wire_len(packet.len()))?;
        let inbound = &self.inbound;
        let rtt = |path: InboundPathId| {
            inbound.get(usize::from(path.0)).map(|entry| entry.rtt).filter(|rtt| !rtt.is_zero())
        };
        let late = self.observer.on_packet(now, path, packet, rtt)?;
        self.count_late(&late);
        Some(late)
    }
    /// Like [`on_packet`](Self::on_packet), without inspecting the frame: its source address and wire length.
    /// Returns its path.
    #[inline]
    pub fn on_frame(&mut self, nic: NicId, from: MacAddr, bytes: ByteCount) -> Option<InboundPathId> {
        let path = self.path(nic, from)?;
        self.inbound.get_mut(usize::from(path.0))?.received.add(bytes);
        Some(path)
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
        let path = self.path(nic, from).unwrap_or_else(|| self.add_path(now, nic, from));
        let entry = self.inbound.get_mut(usize::from(path.0))?;
        entry.received.add(wire_len(packet.len()));
        entry.probed_at = now;
        entry.rtt = probe.rtt;
        let each = Span::from_nanos(1_000_000_000 / REPLIES_PER_SECOND);
        let until = entry.answered_until.max(now) + each;
        if until.since(now) > each * REPLY_BURST {
            self.unanswered += 1;
            return None;
        }
        entry.answered_until = until;
        let InboundPath { received, reordered, .. } = *entry;
        let reply =
            Reply { probe, arrived_at: now, received, reordered, resequence_time: self.resequence_time };
        Some(reply.frame(to, from))
    }
    /// All counted paths: own NIC, source address, received traffic and reordered frames.
    pub fn paths(&self) -> impl Iterator<Item = (NicId, MacAddr, ProbeTraffic, ReorderCounts)> {
        self.inbound.iter().map(|entry| (entry.nic, entry.from, entry.received, entry.reordered))
    }
    /// The round trip times of these paths, as the probing hosts know them; zero: unknown.
    pub fn round_trips(&self) -> impl Iterator<Item = (NicId, MacAddr, Span)> {
        self.inbound.iter().map(|entry| (entry.nic, entry.from, entry.rtt))
    }
    /// Number of probes without a reply because of the rate limit.
    pub const fn unanswered(&self) -> u64 {
        self.unanswered
    }

    #[cold]
    fn count_late(&mut self, late: &Late) {
        if let Some(entry) = self.inbound.get_mut(usize::from(late.path.0)) {
            entry.reordered.late = entry.reordered.late.wrapping_add(1);
            entry.reordered.harmful = entry.reordered.harmful.wrapping_add(late.is_harmful().into());
        }
        if let Some(entry) = self.inbound.get_mut(usize::from(late.before.0)) {
            entry.reordered.overtook = entry.reordered.overtook.wrapping_add(1);
        }
    }
    #[inline]
    fn path(&mut self, nic: NicId, from: MacAddr) -> Option<InboundPathId> {
        let MacAddr([.., a, b]) = from;
        let slot = usize::from(a ^ b.rotate_left(3) ^ nic.0.rotate_left(5)) % CACHE_SLOTS;
        let is_it = |path: &InboundPathId| {
            self.inbound.get(usize::from(path.0)).is_some_and(|entry| entry.nic == nic && entry.from == from)
        };
        if let Some(path) = self.cache[slot].filter(is_it) {
            return Some(path);
        }
        let path = *self.by_address.get(&(nic, from))?;
        self.cache[slot] = Some(path);
        Some(path)
    }
    fn add_path(&mut self, now: Instant, nic: NicId, from: MacAddr) -> InboundPathId {
        let entry = InboundPath {
            nic,
            from,
            received: ProbeTraffic::default(),
            reordered: ReorderCounts::default(),
            rtt: Span::ZERO,
            probed_at: now,
            answered_until: Instant::ZERO,
        };
        let oldest = self.inbound.iter().enumerate().min_by_key(|(_, entry)| entry.probed_at);
        let path = match oldest {
            Some((at, old)) if self.inbound.len() >= MAX_PATHS => {
                self.by_address.remove(&(old.nic, old.from));
                if let Some(slot) = self.inbound.get_mut(at) {
                    *slot = entry;
                }
                InboundPathId(at as u16)
            }
            _ => {
                self.inbound.push(entry);
                InboundPathId((self.inbound.len() - 1) as u16)
            }
        };
        self.by_address.insert((nic, from), path);
        path
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

    fn probe(path: u8, rtt: Span) -> (Packet, PathProbe) {
        let probe = PathProbe {
            nic: NicId(path),
            seq: 1,
            sent_at: Instant::ZERO,
            sent: ProbeTraffic::default(),
            rtt,
        };
        (probe.frame(from(path), TO), probe)
    }
    fn reply(packet: Option<Packet>) -> Option<Reply> {
        match ProbeMessage::of(&packet?)? {
            Ok(ProbeMessage::Reply(reply)) => Some(reply),
            other => panic!("{other:?}"),
        }
    }

    /// Breaks: replies contain the exact counters of received and late frames.
    #[test]
    fn replies_contain_received_and_late_frames() {
        let mut responder = Responder::new();
        let now = Instant::from_nanos(1_000_000);
        let rtt = Span::from_millis(5);
        let data = |path, seq| segment(path, 1, seq, 1_000, TcpFlags::ACK, None);
        assert_eq!(responder.on_packet(now, NicId(0), &data(0, 0)), None, "the path is not probed");
        for path in [0, 1] {
            let (packet, probe) = probe(path, rtt);
            let first = reply(responder.on_probe(now, NicId(path), &packet, probe)).expect("a reply");
            assert_eq!(first.received, ProbeTraffic { frames: 1, bytes: ByteCount::new(84) });
            assert_eq!((first.probe, first.arrived_at), (probe, now));
        }
        for seq in [1_000, 3_000, 4_000, 5_000] {
            assert_eq!(responder.on_packet(now, NicId(0), &data(0, seq)), None);
        }
        let late = responder.on_packet(now, NicId(1), &data(1, 2_000)).expect("it is late");
        assert!(late.is_harmful());
        let (packet, request) = probe(1, rtt);
        let answer = reply(responder.on_probe(now, NicId(1), &packet, request)).expect("a reply");
        assert_eq!(answer.reordered, ReorderCounts { late: 1, harmful: 1, overtook: 0 });
        assert_eq!(answer.received, ProbeTraffic { frames: 3, bytes: ByteCount::new(84 * 2 + 1_078) });
        let (packet, request) = probe(0, rtt);
        let answer = reply(responder.on_probe(now, NicId(0), &packet, request)).expect("a reply");
        assert_eq!(answer.reordered, ReorderCounts { late: 0, harmful: 0, overtook: 1 });
        // The same address on another NIC is another path.
        let (packet, request) = probe(0, rtt);
        let answer = reply(responder.on_probe(now, NicId(7), &packet, request)).expect("a reply");
        assert_eq!(answer.received.frames, 1);
    }

    /// Breaks: a flood of probes gets a limited number of replies, uses bounded memory, and does not displace
    /// a neighbour.
    #[test]
    fn replies_and_paths_are_bounded() {
        let mut responder = Responder::new();
        let mut now = Instant::ZERO;
        let mut answered = 0;
        for _ in 0..1_000 {
            let (packet, request) = probe(0, Span::ZERO);
            answered += u64::from(responder.on_probe(now, NicId(0), &packet, request).is_some());
        }
        assert_eq!((answered, responder.unanswered()), (REPLY_BURST, 1_000 - REPLY_BURST));
        for n in 0..5_000_u32 {
            now += Span::from_millis(1);
            let [a, b, c, d] = n.to_be_bytes();
            let stranger = MacAddr([2, 9, a, b, c, d]);
            let (_, request) = probe(1, Span::ZERO);
            responder.on_probe(now, NicId(1), &request.frame(stranger, TO), request);
            if n % 25 == 24 {
                let (packet, request) = probe(0, Span::ZERO);
                assert!(responder.on_probe(now, NicId(0), &packet, request).is_some());
            }
        }
        assert_eq!(responder.paths().count(), MAX_PATHS);
        let neighbour = responder.paths().find(|(nic, mac, ..)| (*nic, *mac) == (NicId(0), from(0)));
        assert_eq!(neighbour.map(|(_, _, received, _)| received.frames), Some(1_200), "it is still counted");
        let (_, request) = probe(1, Span::ZERO);
        let group = request.frame(MacAddr::BROADCAST, TO);
        assert!(responder.on_probe(now, NicId(1), &group, request).is_none());
    }
}
