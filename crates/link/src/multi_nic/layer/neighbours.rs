//! Neighbours with several NICs, and the paths to them.

use super::MultiNic;
use crate::multi_nic::arp::{AnnouncerAction, ConflictAction, Learned};
use crate::multi_nic::probe::{PathEstimate, PathTo, Prober};
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId, NicPath, OrderKind, PathDelay, pair};
use farpace_path::Cx;
use farpace_units::{Instant, Span};
use farpace_wire::{MacAddr, NicFlags, NicKind, NicList, Packet};
use std::collections::BTreeMap;

/// Maximum number of NICs of others of which received frames are remembered.
const MAX_OBSERVED: usize = 4_096;
/// When the table is full, entries that have been silent for this time are removed.
const SILENT: Span = Span::from_secs(600);
const LOOK_EVERY: Span = Span::from_secs(10);
/// By this part of a round trip a frame may come late to a neighbour that puts frames in order. The list of cards does not say how long
/// that neighbour waits, so it is never more than half of what one of ours waits by default (10 ms).
const SLACK_PART: u64 = 64;
const MAX_SLACK: Span = Span::from_millis(5);

/// Neighbours with several NICs.
#[derive(Debug, Default)]
pub(super) struct MultiNicNeighbours {
    /// By the address to which the stack sends: that of the first NIC.
    by_first: BTreeMap<MacAddr, NeighbourId>,
    cards: BTreeMap<NeighbourId, NeighbourNics>,
    /// Numbers of those that were forgotten.
    free: Vec<NeighbourId>,
    /// Own NICs that have received frames of a foreign NIC, as a bit mask. The NICs may be on separate
    /// Ethernets.
    heard: BTreeMap<MacAddr, (u16, Instant)>,
    /// When silent ones were forgotten last.
    tidied: Option<Instant>,
}

#[derive(Clone, Debug)]
struct NeighbourNics {
    cards: NicList,
    flags: NicFlags,
}

impl MultiNicNeighbours {
    /// The neighbour to which the stack sends at this address.
    #[inline]
    pub fn find(&self, first: MacAddr) -> NeighbourId {
        self.by_first.get(&first).copied().unwrap_or(NeighbourId::ORDINARY)
    }
    /// An own NIC has received a frame from `from`. Returns the neighbour if this is new for a neighbour with
    /// several NICs.
    fn hear(&mut self, now: Instant, nic: NicId, from: MacAddr) -> Option<NeighbourId> {
        if self.heard.len() >= MAX_OBSERVED && !self.heard.contains_key(&from) {
            if self.tidied.is_none_or(|at| now.since(at) >= LOOK_EVERY) {
                self.tidied = Some(now);
                self.heard.retain(|_, (_, at)| now.since(*at) < SILENT);
            }
            if self.heard.len() >= MAX_OBSERVED {
                return None;
            }
        }
        let (bits, at) = self.heard.entry(from).or_insert((0, now));
        *at = now;
        let with = *bits | 1_u16.checked_shl(nic.0.into()).unwrap_or(0);
        if std::mem::replace(bits, with) == with {
            return None;
        }
        let has = |cards: &NeighbourNics| cards.cards.iter().any(|(mac, _)| *mac == from);
        self.cards.iter().find(|(_, cards)| has(cards)).map(|(id, _)| *id)
    }
    /// Bit mask of those `their_nics` whose frames an own NIC has received.
    fn heard_by(&self, nic: NicId, cards: &NicList) -> u16 {
        let has = |mac: &MacAddr| self.heard.get(mac).is_some_and(|(bits, _)| bits >> nic.0 & 1 == 1);
        cards.iter().enumerate().fold(0, |all, (at, (mac, _))| all | u16::from(has(mac)) << at)
    }
    /// All neighbours with lists of NICs.
    pub fn ids(&self) -> impl Iterator<Item = NeighbourId> {
        self.cards.keys().copied()
    }
    /// The neighbour that owns this address, and its NICs, if it has all capabilities in `flags`.
    pub fn cards_of_owner(&self, mac: MacAddr, flags: NicFlags) -> Option<(NeighbourId, &NicList)> {
        let has = |known: &NeighbourNics| known.cards.iter().any(|(card, _)| *card == mac);
        let owner = self.cards.iter().find(|(_, known)| has(known))?;
        owner.1.flags.contains(flags).then_some((*owner.0, &owner.1.cards))
    }
    /// True if there are no neighbours with lists.
    pub fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }
}

impl MultiNic {
    /// Executes the actions of the parts of this layer.
    pub(super) fn follow_up(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        for at in 0..self.claims.len() {
            while let Some(action) = self.claims.get_mut(at).and_then(|claim| claim.poll()) {
                match action {
                    ConflictAction::Send(packet) => {
                        let packet = match &mut self.speaker {
                            Some(speaker) => speaker.outgoing(now, packet),
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
        while let Some(action) = self.speaker.as_mut().and_then(|speaker| speaker.poll()) {
            match action {
                AnnouncerAction::Send(packet) => self.broadcast(&packet, cx),
                AnnouncerAction::Learned(learned) => self.learn(now, learned),
            }
        }
        self.judge_lanes(cx);
    }

    /// Handles a change of a neighbour's NICs.
    fn learn(&mut self, now: Instant, learned: Learned) {
        match learned {
            Learned::Extended { first, replaces, cards, flags } => {
                let known = &mut self.neighbours;
                let old = replaces.and_then(|old| known.by_first.remove(&old));
                let id = old.or_else(|| known.by_first.get(&first).copied()).or_else(|| known.free.pop());
                let id = id.unwrap_or_else(|| self.lanes.set_neighbour(None, [None; MAX_NICS]));
                known.by_first.insert(first, id);
                known.cards.insert(id, NeighbourNics { cards, flags });
                self.pair(now, id);
            }
            Learned::Ordinary { first } => {
                let Some(id) = self.neighbours.by_first.remove(&first) else { return };
                self.neighbours.cards.remove(&id);
                self.neighbours.free.push(id);
                self.lanes.set_neighbour(Some(id), [None; MAX_NICS]);
                if let Some(prober) = &mut self.prober {
                    self.lanes.ids().for_each(|nic| prober.remove(id, nic));
                }
            }
        }
        self.on_change(now);
    }

    /// A broadcast or a probe has arrived from a NIC: so there is a path between that NIC and the own one.
    pub(super) fn hear(&mut self, now: Instant, nic: NicId, from: MacAddr) {
        if let Some(id) = self.neighbours.hear(now, nic, from) {
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
        let Some(NeighbourNics { cards, flags }) = self.neighbours.cards.get(&id) else { return };
        let works: Vec<NicId> =
            self.lanes.ids().filter(|nic| self.lanes.nic(*nic).is_some_and(|n| n.up)).collect();
        let kind = |nic: &NicId| self.lanes.nic(*nic).map_or(NicKind::UNKNOWN, |nic| nic.kind);
        // Cards that hear the same cards are on one Ethernet. One that has heard none may be on any.
        let mut ethernets: BTreeMap<u16, Vec<NicId>> = BTreeMap::new();
        for nic in works {
            ethernets.entry(self.neighbours.heard_by(nic, cards)).or_default().push(nic);
        }
        let mut pairs = Vec::new();
        for (heard, nics) in ethernets {
            let there = |at: &usize| heard == 0 || heard >> at & 1 == 1;
            let there: Vec<usize> = (0..cards.len()).filter(there).collect();
            let ours: Vec<NicKind> = nics.iter().map(kind).collect();
            let theirs: Vec<NicKind> = there.iter().filter_map(|at| Some(cards.get(*at)?.1)).collect();
            let to = pair(&ours, &theirs).into_iter().map(|to| to.and_then(|at| there.get(at).copied()));
            pairs.extend(nics.into_iter().zip(to));
        }
        let probes = flags.contains(NicFlags::ANSWERS_PROBES);
        let mut lanes = [None; MAX_NICS];
        for (nic, to) in pairs {
            let (Some(&(to, kind)), Some(card)) = (to.and_then(|j| cards.get(j)), self.lanes.nic(nic)) else {
                continue;
            };
            let ours = card.line.rate();
            let nominal = kind.rate().map_or(ours, |theirs| theirs.min(ours));
            let way = PathTo { neighbour: id, nic, from: card.mac, to, nominal };
            let prober = self.prober.as_mut().filter(|_| probes);
            let probed = prober.is_some_and(|prober| prober.add(now, way).is_ok());
            let old = self.lanes.path_mut(id, nic).copied().filter(|old| old.to == Some(to));
            let delay = PathDelay::of_lines(self.config.hops, nominal);
            let new = NicPath { up: !probed, ..NicPath::new(Some(to), nominal, delay) };
            if let Some(slot) = lanes.get_mut(nic.index()) {
                *slot = Some(old.unwrap_or(new));
            }
        }
        if let Some(prober) = &mut self.prober {
            let gone = self.lanes.ids().filter(|nic| lanes.get(nic.index()).is_none_or(Option::is_none));
            gone.for_each(|nic| prober.remove(id, nic));
        }
        self.lanes.set_neighbour(Some(id), lanes);
        self.leave_thin_ones(id);
    }

    /// Handles a change of paths. Frames for a neighbour without a working path go to the address that the
    /// stack has written: a new path works only after its first probe is answered.
    pub(super) fn on_change(&mut self, now: Instant) {
        self.order.on_change(now, &self.lanes, &mut self.refused);
        for mut item in std::mem::take(&mut self.refused) {
            let is_lost = self.lanes.working(item.neighbour).next().is_none();
            if is_lost && item.neighbour != NeighbourId::ORDINARY {
                item.neighbour = NeighbourId::ORDINARY;
                self.order.enqueue(now, item, &self.lanes, &mut self.refused);
            } else {
                self.refused.push(item);
            }
        }
    }

    /// Applies the results of probes to the paths.
    fn judge_lanes(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let mut failed = Vec::new();
        let Some(changes) = self.prober.as_mut().map(Prober::take_changes) else { return };
        let mut changed = false;
        for (neighbour, nic, PathEstimate { up, delay, guard, rate, rtt, .. }) in &changes {
            let known = self.neighbours.cards.get(neighbour);
            let in_order = known.is_some_and(|known| known.flags.contains(NicFlags::RESEQUENCES));
            let Some(lane) = self.lanes.path_mut(*neighbour, *nic) else { continue };
            if lane.up && !up {
                self.stats.lanes_lost += 1;
                failed.push((*nic, *neighbour));
            }
            // Late frames wait at the receiver and do no harm.
            let guard = if in_order { (*guard).min(MAX_SLACK) } else { *guard };
            (lane.guard, lane.rtt) = (guard, *rtt);
            lane.slack = if in_order { (*rtt / SLACK_PART).min(MAX_SLACK) } else { Span::ZERO };
            // A guard is news with nearly every reply, and nothing that waits moves for it.
            if (lane.up, lane.delay, lane.rate) != (*up, *delay, *rate) {
                (lane.up, lane.delay) = (*up, *delay);
                lane.set_rate(*rate);
                self.leave_thin_ones(*neighbour);
                changed = true;
            }
        }
        if changed {
            self.on_change(now);
        }
        for (nic, neighbour) in failed {
            self.rescue(nic, neighbour, cx);
        }
    }

    /// With orders that consider delays, disables the paths that
    /// [`NicPaths::disable_slow_short_paths`](crate::multi_nic::NicPaths::disable_slow_short_paths) selects.
    fn leave_thin_ones(&mut self, neighbour: NeighbourId) {
        use OrderKind::{Blest, Earliest, Ecf, MinRtt};
        if matches!(self.config.order, Earliest | MinRtt | Blest | Ecf) {
            self.lanes.leave_thin_ones(neighbour);
        }
    }

    /// Queues `packet` for all working NICs, each with its own source address, so that switches learn their
    /// ports.
    fn broadcast(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        for nic in self.lanes.ids() {
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
    fn cards_that_were_silent_for_long_make_room() {
        let mut known = MultiNicNeighbours::default();
        let mac = |n: usize| MacAddr([2, 0, 0, 0, (n >> 8) as u8, n as u8]);
        let at = |secs| Instant::ZERO + Span::from_secs(secs);
        (0..MAX_OBSERVED).for_each(|n| assert!(known.hear(at(0), NicId(0), mac(n)).is_none()));
        known.hear(at(599), NicId(0), mac(7));
        known.hear(at(599), NicId(1), mac(MAX_OBSERVED));
        assert!(!known.heard.contains_key(&mac(MAX_OBSERVED)), "all have been heard of late");
        known.hear(at(610), NicId(1), mac(MAX_OBSERVED));
        assert_eq!(known.heard.keys().copied().collect::<Vec<_>>(), [mac(7), mac(MAX_OBSERVED)]);
    }
}
