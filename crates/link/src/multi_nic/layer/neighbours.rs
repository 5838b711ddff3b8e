//! Neighbours with several NICs, and the paths to them.

use super::MultiNic;
use crate::multi_nic::arp::{AnnouncerAction, ConflictAction, Learned};
use crate::multi_nic::probe::{PathEstimate, PathTo, Prober};
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPath, NicPaths, OrderKind, PathDelay, pair};
use farpace_path::Cx;
use farpace_units::{Instant, Span};
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
    /// What the transport is told of the paths to the owner of a foreign NIC.
    info: BTreeMap<MacAddr, MultipathInfo>,
}

#[derive(Clone, Debug)]
struct NeighbourNics {
    nics: NicList,
    flags: NicFlags,
    /// How long it holds frames; zero: unknown.
    hold: Span,
    /// When a transport that takes losses for congestion last sent data to it.
    loss_sensitive_at: Option<Instant>,
}

/// For how long a neighbour holds frames that does not tell.
const DEFAULT_HOLD: Span = Span::from_millis(10);
/// A transport that takes losses for congestion is considered for so long after its last frame.
const SENSITIVE_TIME: Span = Span::from_secs(2);

impl NeighbourNics {
    /// For how long the neighbour holds frames to put them in order; none: it does not.
    fn hold(&self) -> Option<Span> {
        let hold = if self.hold.is_zero() { DEFAULT_HOLD } else { self.hold };
        self.flags.contains(NicFlags::RESEQUENCES).then_some(hold)
    }
}

impl MultiNicNeighbours {
    /// Data for a neighbour is to be sent by a transport that takes losses for congestion.
    pub fn on_loss_sensitive(&mut self, now: Instant, neighbour: NeighbourId) {
        if let Some(known) = self.nics.get_mut(&neighbour) {
            known.loss_sensitive_at = Some(now);
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
        let has = |their_nics: &NeighbourNics| their_nics.nics.iter().any(|(mac, _)| *mac == from);
        self.nics.iter().find(|(_, their_nics)| has(their_nics)).map(|(id, _)| *id)
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
        let has = |known: &NeighbourNics| known.nics.iter().any(|(own_nic, _)| *own_nic == mac);
        let owner = self.nics.iter().find(|(_, known)| has(known))?;
        owner.1.flags.contains(flags).then_some((*owner.0, &owner.1.nics))
    }
    /// What the transport is told of the paths to the owner of this NIC; none: there is one path.
    #[inline]
    pub fn info(&self, mac: MacAddr) -> Option<MultipathInfo> {
        self.info.get(&mac).copied()
    }
    /// True if there are no neighbours with lists.
    pub fn is_empty(&self) -> bool {
        self.by_first.is_empty()
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
                let (hold, loss_sensitive_at) = (Span::ZERO, None);
                known.nics.insert(id, NeighbourNics { nics: their_nics, flags, hold, loss_sensitive_at });
                self.pair(now, id);
            }
            Learned::Ordinary { first } => {
                let Some(id) = self.neighbours.by_first.remove(&first) else { return };
                for (mac, _) in self.neighbours.nics.remove(&id).iter().flat_map(|known| known.nics.iter()) {
                    self.neighbours.info.remove(mac);
                }
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
            let PathEstimate { up, delay, guard, spread, rate, rtt, base_rtt, longest_rtt, loss, hold } = estimate;
            let known = self.neighbours.nics.get_mut(neighbour);
            let hold = known.and_then(|known| {
                known.hold = *hold;
                known.hold()
            });
            let Some(path) = self.paths.path_mut(*neighbour, *nic) else { continue };
            if path.up && !up {
                self.stats.path_failures += 1;
                failed.push((*nic, *neighbour));
            }
            // Late frames wait at the receiver and do no harm.
            let guard = hold.map_or(*guard, |hold| (*guard).min((hold / 2).min(MAX_SLACK)));
            (path.guard, path.rtt, path.base_rtt, path.longest_rtt) = (guard, *rtt, *base_rtt, *longest_rtt);
            (path.spread, path.loss) = (*spread, *loss);
            path.slack =
                hold.map_or(Span::ZERO, |hold| (*rtt / SLACK_DIVISOR).min((hold / 2).min(MAX_SLACK)));
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
        for (nic, neighbour) in failed {
            self.rescue(nic, neighbour, cx);
        }
    }

    /// Updates what the transport is told of the paths to a neighbour.
    fn update_info(&mut self, neighbour: NeighbourId) {
        let Some(known) = self.neighbours.nics.get_mut(&neighbour) else { return };
        let in_order = known.flags.contains(NicFlags::RESEQUENCES);
        let reordering = self.paths.working(neighbour).map(|(_, path)| path.guard).max();
        let reordering = reordering.filter(|_| !in_order).unwrap_or_default();
        let spreads = self.config.order != OrderKind::FlowHash;
        let info = self
            .paths
            .base_rtt(neighbour)
            .filter(|_| spreads)
            .map(|base| MultipathInfo::new(base, reordering));
        for (mac, _) in known.nics.iter() {
            match info {
                Some(info) => self.neighbours.info.insert(*mac, info),
                None => self.neighbours.info.remove(mac),
            };
        }
    }

    /// With orders that consider delays, decides how paths are used: see [`NicPaths::select`]. True if paths
    /// are used that were not, or the other way round.
    ///
    /// [`NicPaths::select`]: crate::multi_nic::NicPaths::select
    fn select_paths(&mut self, now: Instant, neighbour: NeighbourId) -> bool {
        use OrderKind::{Blest, Earliest, Ecf, MinRtt};
        let Some(known) = self.neighbours.nics.get(&neighbour) else { return false };
        if !matches!(self.config.order, Earliest | MinRtt | Blest | Ecf) {
            return false;
        }
        let sensitive = known.loss_sensitive_at.is_some_and(|at| now.since(at) < SENSITIVE_TIME);
        let used = |paths: &NicPaths| paths.working(neighbour).map(|(nic, _)| nic).collect::<Vec<_>>();
        let before = used(&self.paths);
        self.paths.select(neighbour, known.hold(), !sensitive);
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
