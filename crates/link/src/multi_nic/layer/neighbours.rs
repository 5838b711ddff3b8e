//! Neighbours with several NICs, and the paths to them.

use super::MultiNic;
use super::demand::RecentDemand;
use crate::multi_nic::arp::{AnnouncerAction, ConflictAction, Learned};
use crate::multi_nic::probe::{PathEstimate, PathTo, Prober};
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPath, NicPaths, OrderKind, PathDelay, Sends, pair};
use farpace_path::Cx;
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{MacAddr, MultipathInfo, NicFlags, NicKind, NicList, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of NICs of others of which received frames are remembered.
const MAX_OBSERVED: usize = 4_096;
/// When the table is full, entries that have been silent for this time are removed.
const SILENCE_TIMEOUT: Span = Span::from_secs(600);
/// Minimum interval between two removals.
const CLEANUP_INTERVAL: Span = Span::from_secs(10);
/// A frame may be late by this fraction of a round trip at a neighbour that puts frames in order, but not by
/// more than half of the time for which it holds frames.
const SLACK_DIVISOR: u64 = 64;
const MAX_SLACK: Span = Span::from_millis(5);

/// Neighbours with several NICs.
#[derive(Debug, Default)]
pub(super) struct MultiNicNeighbours {
    /// By the address to which the stack sends: that of the first NIC.
    by_first: BTreeMap<MacAddr, NeighbourId>,
    nics: BTreeMap<NeighbourId, NeighbourNics>,
    /// Identifiers of removed neighbours.
    free: Vec<NeighbourId>,
    /// Own NICs that have received frames of a foreign NIC, as a bit mask. The NICs may be on separate
    /// Ethernets.
    seen_by: BTreeMap<MacAddr, (u16, Instant)>,
    /// When silent entries were last removed.
    last_cleanup: Option<Instant>,
    /// The owner of each NIC in a list.
    owners: BTreeMap<MacAddr, NeighbourId>,
    /// By identifier: the neighbour has a list and does not put frames in order.
    unordered: Vec<bool>,
    /// What TCP sends to each, by its number.
    demands: Vec<RecentDemand>,
}

#[derive(Clone, Debug)]
struct NeighbourNics {
    nics: NicList,
    flags: NicFlags,
    /// How long it holds frames; zero: unknown.
    resequence_time: Span,
    /// What transports send to it, if it puts no frames in order.
    recent: RecentFrames,
    /// What the transport is told of the paths to it; none: there is one path.
    info: Option<MultipathInfo>,
    /// How often frames have moved to another path that carries most.
    moves: PathMoves,
}

/// For how long a neighbour holds frames that does not tell.
const DEFAULT_RESEQUENCE_TIME: Span = Span::from_millis(10);
/// How long frames count, at least; some count for twice that.
const COUNTING_TIME: Span = Span::from_secs(1);
/// Data counts if one in so many frames has data, and transports that take losses for congestion if one in so
/// many frames with data is theirs.
const MIN_PART: u64 = 8;
/// Fewer frames may be those of a handshake.
const MIN_ACKS: u64 = 16;

/// How many frames of TCP were sent of late: by whether they have data, and of whom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct TransportFrames {
    acks: u64,
    sensitive: u64,
    tolerant: u64,
}

/// What transports have sent to a neighbour of late.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct RecentFrames {
    /// Since `begun`, and in the time before.
    counts: [TransportFrames; 2],
    begun: Instant,
}

impl RecentFrames {
    /// A frame of TCP is to be sent; see [`MultiNicNeighbours::on_tcp`].
    fn add(&mut self, now: Instant, loss_sensitive: Option<bool>) {
        let passed = now.since(self.begun);
        if passed >= COUNTING_TIME {
            let before = if passed < COUNTING_TIME * 2 { self.counts[0] } else { Default::default() };
            (self.counts, self.begun) = ([Default::default(), before], now);
        }
        let counts = &mut self.counts[0];
        *match loss_sensitive {
            None => &mut counts.acks,
            Some(true) => &mut counts.sensitive,
            Some(false) => &mut counts.tolerant,
        } += 1;
    }
    /// What they are.
    fn sends(&self, now: Instant) -> Sends {
        if now.since(self.begun) >= COUNTING_TIME * 2 {
            return Sends::LossTolerant;
        }
        let sum = |of: fn(&TransportFrames) -> u64| self.counts.iter().map(of).sum::<u64>();
        let (acks, sensitive) = (sum(|counts| counts.acks), sum(|counts| counts.sensitive));
        let data = sensitive + sum(|counts| counts.tolerant);
        if acks >= MIN_ACKS && data * MIN_PART < acks + data {
            Sends::Acks
        } else if sensitive > 0 && sensitive * MIN_PART >= data {
            Sends::LossSensitive
        } else {
            Sends::LossTolerant
        }
    }
}

/// Moves that a transport is told in [`MOVES_TIME`]. At each it may begin its congestion control again, and a
/// neighbour that lies about its paths could keep it in slow start.
const MAX_MOVES: u8 = 4;
const MOVES_TIME: Span = Span::from_secs(10);

/// Moves of frames to another path that carries most.
#[derive(Clone, Copy, Debug, Default)]
struct PathMoves {
    /// Those that the transport is told, modulo 256.
    told: u8,
    /// Of these, since `begun`.
    recent: u8,
    begun: Instant,
}

impl PathMoves {
    /// Frames have moved.
    fn add(&mut self, now: Instant) {
        if now.since(self.begun) >= MOVES_TIME {
            (self.recent, self.begun) = (0, now);
        }
        if self.recent < MAX_MOVES {
            self.recent += 1;
            self.told = self.told.wrapping_add(1);
        }
    }
}

impl NeighbourNics {
    /// For how long the neighbour holds frames to put them in order; none: it does not.
    fn resequence_time(&self) -> Option<Span> {
        let time = Some(self.resequence_time).filter(|time| !time.is_zero());
        self.flags.contains(NicFlags::RESEQUENCES).then_some(time.unwrap_or(DEFAULT_RESEQUENCE_TIME))
    }
}

impl MultiNicNeighbours {
    /// True if the neighbour has a list and does not put frames in order: then it matters what transports
    /// send to it.
    #[inline]
    pub fn is_unordered(&self, neighbour: NeighbourId) -> bool {
        self.unordered.get(neighbour.0 as usize).is_some_and(|unordered| *unordered)
    }
    /// A frame of TCP for a neighbour is to be sent. True if this is so much that paths are to be selected
    /// again.
    #[inline]
    pub fn on_demand(&mut self, now: Instant, neighbour: NeighbourId, bytes: ByteCount) -> bool {
        self.demands.get_mut(neighbour.0 as usize).is_some_and(|demand| demand.add(now, bytes))
    }
    /// A frame of TCP for a neighbour is to be sent. `loss_sensitive`: it has data of a transport that takes
    /// losses for congestion, or does not; none: it has no data.
    pub fn on_tcp(&mut self, now: Instant, neighbour: NeighbourId, loss_sensitive: Option<bool>) {
        if let Some(known) = self.nics.get_mut(&neighbour) {
            known.recent.add(now, loss_sensitive);
        }
    }
    /// The neighbour to which the stack sends at this address.
    #[inline]
    pub fn find(&self, first: MacAddr) -> NeighbourId {
        self.by_first.get(&first).copied().unwrap_or(NeighbourId::ORDINARY)
    }
    /// An own NIC has received a frame from `from`. Returns the neighbour if this is new for a neighbour with
    /// several NICs.
    fn see(&mut self, now: Instant, nic: NicId, from: MacAddr) -> Option<NeighbourId> {
        if self.seen_by.len() >= MAX_OBSERVED && !self.seen_by.contains_key(&from) {
            if self.last_cleanup.is_none_or(|at| now.since(at) >= CLEANUP_INTERVAL) {
                self.last_cleanup = Some(now);
                self.seen_by.retain(|_, (_, at)| now.since(*at) < SILENCE_TIMEOUT);
            }
            if self.seen_by.len() >= MAX_OBSERVED {
                return None;
            }
        }
        let (bits, at) = self.seen_by.entry(from).or_insert((0, now));
        *at = now;
        let with = *bits | 1_u16.checked_shl(nic.0.into()).unwrap_or(0);
        if std::mem::replace(bits, with) == with {
            return None;
        }
        self.owners.get(&from).copied()
    }
    /// Bit mask of those `their_nics` whose frames an own NIC has received.
    fn seen_mask(&self, nic: NicId, their_nics: &NicList) -> u16 {
        let has = |mac: &MacAddr| self.seen_by.get(mac).is_some_and(|(bits, _)| bits >> nic.0 & 1 == 1);
        their_nics.iter().enumerate().fold(0, |all, (at, (mac, _))| all | u16::from(has(mac)) << at)
    }
    /// All neighbours with lists of NICs.
    pub fn ids(&self) -> impl Iterator<Item = NeighbourId> {
        self.nics.keys().copied()
    }
    /// The neighbour that owns this address, and its NICs, if it has all capabilities in `flags`.
    pub fn nics_of_owner(&self, mac: MacAddr, flags: NicFlags) -> Option<(NeighbourId, &NicList)> {
        let owner = *self.owners.get(&mac)?;
        let known = self.nics.get(&owner)?;
        known.flags.contains(flags).then_some((owner, &known.nics))
    }
    /// What the transport is told of the paths to the owner of this NIC; none: there is one path.
    #[inline]
    pub fn info(&self, mac: MacAddr) -> Option<MultipathInfo> {
        self.nics.get(self.owners.get(&mac)?)?.info
    }
    /// True if there are no neighbours with lists.
    pub fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }
    /// Sets the list of a neighbour. What else is known of it stays.
    fn set_list(&mut self, id: NeighbourId, nics: NicList, flags: NicFlags) {
        let old = self.remove_list(id);
        self.owners.extend(nics.iter().map(|(mac, _)| (*mac, id)));
        let at = id.0 as usize;
        if self.unordered.len() <= at {
            self.unordered.resize(at + 1, false);
            self.demands.resize(at + 1, RecentDemand::default());
        }
        if let Some(unordered) = self.unordered.get_mut(at) {
            *unordered = !flags.contains(NicFlags::RESEQUENCES);
        }
        let new = NeighbourNics {
            nics,
            flags,
            resequence_time: Span::ZERO,
            recent: RecentFrames::default(),
            info: None,
            moves: PathMoves::default(),
        };
        let new = match old {
            Some(old) => NeighbourNics { nics: new.nics, flags, ..old },
            None => new,
        };
        self.nics.insert(id, new);
    }
    /// Removes the list of a neighbour, and returns what was known of it.
    fn remove_list(&mut self, id: NeighbourId) -> Option<NeighbourNics> {
        let old = self.nics.remove(&id)?;
        for (mac, _) in old.nics.iter() {
            if self.owners.get(mac) == Some(&id) {
                self.owners.remove(mac);
            }
        }
        if let Some(demand) = self.demands.get_mut(id.0 as usize) {
            *demand = RecentDemand::default();
        }
        if let Some(unordered) = self.unordered.get_mut(id.0 as usize) {
            *unordered = false;
        }
        Some(old)
    }
}

impl MultiNic {
    /// Executes the actions of the parts of this layer.
    pub(super) fn run_actions(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        for at in 0..self.conflict_detections.len() {
            while let Some(action) =
                self.conflict_detections.get_mut(at).and_then(|detection| detection.poll())
            {
                match action {
                    ConflictAction::Send(packet) => {
                        let packet = match &mut self.announcer {
                            Some(announcer) => announcer.outgoing(now, packet),
                            None => packet,
                        };
                        self.broadcast(&packet, cx);
                    }
                    // There is no way to inform the stack.
                    ConflictAction::Conflict { .. } => self.stats.conflicts += 1,
                    ConflictAction::Usable(_) | ConflictAction::Abandoned(_) => {}
                }
            }
        }
        while let Some(action) = self.announcer.as_mut().and_then(|announcer| announcer.poll()) {
            match action {
                AnnouncerAction::Send(packet) => self.broadcast(&packet, cx),
                AnnouncerAction::Learned(learned) => self.learn(now, learned),
            }
        }
        self.apply_probe_results(cx);
    }

    /// Handles a change of a neighbour's NICs.
    fn learn(&mut self, now: Instant, learned: Learned) {
        match learned {
            Learned::Extended { first, replaces, nics: their_nics, flags } => {
                let known = &mut self.neighbours;
                let old = replaces.and_then(|old| known.by_first.remove(&old));
                let id = old.or_else(|| known.by_first.get(&first).copied()).or_else(|| known.free.pop());
                let id = id.unwrap_or_else(|| self.paths.set_neighbour(None, [None; MAX_NICS]));
                known.by_first.insert(first, id);
                known.set_list(id, their_nics, flags);
                self.pair(now, id);
                self.update_info(id);
            }
            Learned::Ordinary { first } => {
                let Some(id) = self.neighbours.by_first.remove(&first) else { return };
                self.neighbours.remove_list(id);
                self.neighbours.free.push(id);
                self.paths.set_neighbour(Some(id), [None; MAX_NICS]);
                if let Some(prober) = &mut self.prober {
                    self.paths.ids().for_each(|nic| prober.remove(id, nic));
                }
            }
        }
        self.on_change(now);
    }

    /// A broadcast or a probe has arrived from a NIC: so there is a path between that NIC and the own one.
    pub(super) fn see(&mut self, now: Instant, nic: NicId, from: MacAddr) {
        if let Some(id) = self.neighbours.see(now, nic, from) {
            self.pair(now, id);
            self.on_change(now);
        }
    }

    /// Pairs NICs with those of all neighbours again, after a change of the working NICs.
    pub(super) fn pair_all(&mut self, now: Instant) {
        let ids: Vec<NeighbourId> = self.neighbours.ids().collect();
        ids.into_iter().for_each(|id| self.pair(now, id));
    }

    /// Assigns a neighbour a path for each working NIC. A path to the same NIC as before keeps its state. A
    /// new path is used after its first probe is answered, if probing is enabled.
    fn pair(&mut self, now: Instant, id: NeighbourId) {
        let Some(NeighbourNics { nics: their_nics, flags, .. }) = self.neighbours.nics.get(&id) else {
            return;
        };
        let working: Vec<NicId> =
            self.paths.ids().filter(|nic| self.paths.nic(*nic).is_some_and(|n| n.up)).collect();
        let kind = |nic: &NicId| self.paths.nic(*nic).map_or(NicKind::UNKNOWN, |nic| nic.kind);
        // NICs that receive frames of the same NICs are on the same Ethernet. One without received frames may
        // be on any.
        let mut ethernets: BTreeMap<u16, Vec<NicId>> = BTreeMap::new();
        for nic in working {
            ethernets.entry(self.neighbours.seen_mask(nic, their_nics)).or_default().push(nic);
        }
        let mut pairs = Vec::new();
        for (seen_by, nics) in ethernets {
            let reachable = |at: &usize| seen_by == 0 || seen_by >> at & 1 == 1;
            let reachable: Vec<usize> = (0..their_nics.len()).filter(reachable).collect();
            let ours: Vec<NicKind> = nics.iter().map(kind).collect();
            let theirs: Vec<NicKind> =
                reachable.iter().filter_map(|at| Some(their_nics.get(*at)?.1)).collect();
            let to = pair(&ours, &theirs).into_iter().map(|to| to.and_then(|at| reachable.get(at).copied()));
            pairs.extend(nics.into_iter().zip(to));
        }
        let probes = flags.contains(NicFlags::ANSWERS_PROBES);
        let mut paths = [None; MAX_NICS];
        for (nic, to) in pairs {
            let (Some(&(to, kind)), Some(own_nic)) =
                (to.and_then(|j| their_nics.get(j)), self.paths.nic(nic))
            else {
                continue;
            };
            let ours = own_nic.link.rate();
            let nominal = kind.rate().map_or(ours, |theirs| theirs.min(ours));
            let path = PathTo { neighbour: id, nic, from: own_nic.mac, to, nominal };
            let prober = self.prober.as_mut().filter(|_| probes);
            let probed = prober.is_some_and(|prober| prober.add(now, path).is_ok());
            let old = self.paths.path_mut(id, nic).copied().filter(|old| old.to == Some(to));
            let delay = PathDelay::of_links(self.config.hops, nominal);
            let new = NicPath { up: !probed, ..NicPath::new(Some(to), nominal, delay) };
            if let Some(slot) = paths.get_mut(nic.index()) {
                *slot = Some(old.unwrap_or(new));
            }
        }
        if let Some(prober) = &mut self.prober {
            let gone = self.paths.ids().filter(|nic| paths.get(nic.index()).is_none_or(Option::is_none));
            gone.for_each(|nic| prober.remove(id, nic));
        }
        self.paths.set_neighbour(Some(id), paths);
        self.select_paths(now, id);
    }

    /// Handles a change of paths. Frames for a neighbour without a working path go to the address that the
    /// stack has written: a new path works only after its first probe is answered.
    pub(super) fn on_change(&mut self, now: Instant) {
        self.order.on_change(now, &self.paths, &mut self.refused);
        for mut item in std::mem::take(&mut self.refused) {
            let is_lost = self.paths.working(item.neighbour).next().is_none();
            if is_lost && item.neighbour != NeighbourId::ORDINARY {
                item.neighbour = NeighbourId::ORDINARY;
                self.order.enqueue(now, item, &self.paths, &mut self.refused);
            } else {
                self.refused.push(item);
            }
        }
    }

    /// Applies the results of probes to the paths.
    fn apply_probe_results(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let mut failed = Vec::new();
        let Some(changes) = self.prober.as_mut().map(Prober::take_changes) else { return };
        let mut changed = false;
        for (neighbour, nic, estimate) in &changes {
            let PathEstimate { up, delay, rate, rtt, .. } = estimate;
            let known = self.neighbours.nics.get_mut(neighbour);
            let resequence_time = known.and_then(|known| {
                known.resequence_time = estimate.resequence_time;
                known.resequence_time()
            });
            let Some(path) = self.paths.path_mut(*neighbour, *nic) else { continue };
            if path.up && !up {
                self.stats.path_failures += 1;
                failed.push((*nic, *neighbour));
            }
            // Late frames wait at the receiver and do no harm.
            let max_late = resequence_time.map(|time| (time / 2).min(MAX_SLACK));
            path.guard = max_late.map_or(estimate.guard, |most| estimate.guard.min(most));
            path.slack = max_late.map_or(Span::ZERO, |most| (*rtt / SLACK_DIVISOR).min(most));
            (path.rtt, path.base_rtt, path.longest_rtt) = (*rtt, estimate.base_rtt, estimate.longest_rtt);
            (path.spread, path.loss) = (estimate.spread, estimate.loss);
            // The guard changes with nearly every reply, and does not affect queued frames.
            if (path.up, path.delay, path.rate) != (*up, *delay, *rate) {
                (path.up, path.delay) = (*up, *delay);
                path.set_rate(*rate);
                changed = true;
            }
        }
        let touched: BTreeSet<NeighbourId> = changes.iter().map(|(neighbour, ..)| *neighbour).collect();
        for neighbour in &touched {
            changed |= self.select_paths(now, *neighbour);
        }
        if changed {
            self.on_change(now);
        }
        touched.into_iter().for_each(|neighbour| self.update_info(neighbour));
        self.update_resequence_time();
        for (nic, neighbour) in failed {
            self.rescue(nic, neighbour, cx);
        }
    }

    /// Received frames wait for earlier ones as the round trips of the paths require, unless a time is
    /// configured.
    fn update_resequence_time(&mut self) {
        let computed = self.config.resequence.filter(|limits| limits.time.is_none());
        if let Some((limits, resequencer)) = computed.zip(self.resequencer.as_mut())
            && let Some(rtt) = self.paths.longest_rtt()
        {
            let time = limits.time_at(rtt);
            resequencer.set_time(time);
            self.responder.set_resequence_time(time);
        }
    }

    /// Updates what the transport is told of the paths to a neighbour.
    pub(super) fn update_info(&mut self, neighbour: NeighbourId) {
        let Some(known) = self.neighbours.nics.get_mut(&neighbour) else { return };
        let in_order = known.flags.contains(NicFlags::RESEQUENCES);
        let reordering = self.paths.working(neighbour).map(|(_, path)| path.guard).max();
        let reordering = reordering.filter(|_| !in_order).unwrap_or_default();
        let spreads = self.config.order != OrderKind::FlowHash;
        let info = self.paths.base_rtt(neighbour).filter(|_| spreads).zip(self.paths.carried(neighbour)).map(
            |(base, (rate, paths, _))| {
                MultipathInfo::new(base, reordering).with_paths(paths, rate, known.moves.told)
            },
        );
        known.info = info;
    }

    /// With orders that consider delays, decides how paths are used: see [`NicPaths::select`]. True if paths
    /// are used that were not, or the other way round.
    ///
    /// [`NicPaths::select`]: crate::multi_nic::NicPaths::select
    pub(super) fn select_paths(&mut self, now: Instant, neighbour: NeighbourId) -> bool {
        let Some(known) = self.neighbours.nics.get(&neighbour) else { return false };
        if !self.config.order.considers_delays() {
            return false;
        }
        let sends = known.recent.sends(now);
        let used = |paths: &NicPaths| paths.working(neighbour).map(|(nic, _)| nic).collect::<Vec<_>>();
        let before = used(&self.paths);
        let widest = |paths: &NicPaths| paths.carried(neighbour).map(|(.., widest)| widest);
        let widest_before = widest(&self.paths);
        let first_before = self.paths.first(neighbour);
        let demands = &mut self.neighbours.demands;
        let rate = demands.get(neighbour.0 as usize).map_or(Rate::default(), |demand| demand.rate(now));
        let suffices = self.paths.select(neighbour, known.resequence_time(), sends, rate);
        if let Some(demand) = demands.get_mut(neighbour.0 as usize) {
            demand.suffice_up_to(suffices);
        }
        let moved = widest(&self.paths).filter(|now| widest_before.is_some_and(|before| before != *now));
        // There is more to send than the first path carries: it comes after others from now on.
        let left = first_before.is_some_and(|nic| {
            self.paths.any_path(neighbour, nic).is_some_and(|path| path.up && path.comes_after())
        });
        if (left || moved.is_some_and(|now| !before.contains(&now)))
            && let Some(known) = self.neighbours.nics.get_mut(&neighbour)
        {
            known.moves.add(now);
        }
        before != used(&self.paths)
    }

    /// Queues `packet` for all working NICs, each with its own source address, so that switches learn their
    /// ports.
    fn broadcast(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        for nic in self.paths.ids() {
            self.send_own(nic, packet.clone(), cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: lists that change all the time fill the memory, or a change makes forgotten what is known of
    /// the neighbour.
    #[test]
    fn changing_lists_leave_the_memory_bounded() {
        let mut known = MultiNicNeighbours::default();
        let (id, other) = (NeighbourId(1), NeighbourId(2));
        let list = |n: u32, nics: u32| -> NicList {
            let mac = |nic| MacAddr([2, 0, (n >> 8) as u8, n as u8, 0, nic as u8]);
            (0..nics).map(|nic| (mac(nic), NicKind::UNKNOWN)).collect()
        };
        known.set_list(other, list(60_000, 3), NicFlags::RESEQUENCES);
        let info = MultipathInfo::new(Span::from_millis(7), Span::ZERO);
        for n in 0..1_000 {
            known.set_list(id, list(n, 1 + n % 16), NicFlags::default());
            if n == 0 {
                known.on_tcp(Instant::from_nanos(5), id, Some(true));
                let entry = known.nics.get_mut(&id).expect("it has a list");
                (entry.resequence_time, entry.info) = (Span::from_millis(60), Some(info));
            }
            assert_eq!(known.owners.len() as u32, 3 + 1 + n % 16, "after {n} changes");
            assert_eq!((known.nics.len(), known.unordered.len()), (2, 3));
        }
        let entry = &known.nics[&id];
        assert_eq!(entry.resequence_time, Span::from_millis(60));
        assert_eq!(entry.recent.sends(Instant::from_nanos(5)), Sends::LossSensitive);
        let last = |nic| MacAddr([2, 0, 3, 0xe7, 0, nic]);
        assert_eq!(known.info(last(0)), Some(info), "also for frames of the new NICs");
        assert_eq!(known.info(MacAddr([2, 0, 3, 0xe6, 0, 0])), None, "a NIC of an earlier list");
        assert!(known.is_unordered(id) && !known.is_unordered(other));
        assert!(!known.is_unordered(NeighbourId::ORDINARY) && !known.is_unordered(NeighbourId(77)));
        known.remove_list(id);
        assert_eq!((known.owners.len(), known.nics.len()), (3, 1));
        assert!(!known.is_unordered(id));
    }

    /// Breaks: a few small transfers of a transport that takes losses for congestion decide by which paths a
    /// large one goes that tolerates them; or acknowledgments are taken for data, and the other way round.
    #[test]
    fn what_transports_send_is_told_by_most_of_their_frames() {
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let mut recent = RecentFrames::default();
        let mut send = |millis, of: Option<bool>, times: u64| {
            (0..times).for_each(|_| recent.add(at(millis), of));
            recent.sends(at(millis))
        };
        assert_eq!(send(1, None, 15), Sends::LossTolerant, "a handshake");
        assert_eq!(send(1, None, 1), Sends::Acks);
        assert_eq!(send(2, Some(true), 3), Sends::LossSensitive, "3 of 19 frames");
        assert_eq!(send(3, Some(false), 21), Sends::LossSensitive, "3 of 24 frames with data");
        assert_eq!(send(3, Some(false), 1), Sends::LossTolerant);
        assert_eq!(send(1_500, None, 300), Sends::Acks, "the second before counts as well");
        assert_eq!(send(4_000, Some(true), 1), Sends::LossSensitive, "what is older does not");
        assert_eq!(recent.sends(at(6_000)), Sends::LossTolerant, "nothing");
    }

    /// Breaks: a neighbour whose answers make frames move all the time keeps transports in slow start.
    #[test]
    fn few_moves_are_told() {
        let mut moves = PathMoves::default();
        (0..4_000).for_each(|n| moves.add(Instant::ZERO + Span::from_millis(n * 25)));
        assert_eq!(moves.told, 40, "four in each of ten times ten seconds");
    }

    /// Breaks: silent entries are removed from a full table, so that a flood of addresses does not block new
    /// NICs indefinitely.
    #[test]
    fn silent_entries_are_removed_from_a_full_table() {
        let mut known = MultiNicNeighbours::default();
        let mac = |n: usize| MacAddr([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        (0..MAX_OBSERVED).for_each(|n| assert!(known.see(at(0), NicId(0), mac(n)).is_none()));
        known.see(at(599), NicId(0), mac(7));
        known.see(at(599), NicId(1), mac(MAX_OBSERVED));
        assert!(!known.seen_by.contains_key(&mac(MAX_OBSERVED)), "no entry is silent yet");
        known.see(at(610), NicId(1), mac(MAX_OBSERVED));
        assert_eq!(known.seen_by.keys().copied().collect::<Vec<_>>(), [mac(7), mac(MAX_OBSERVED)]);
    }
}
