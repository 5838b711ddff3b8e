//! Neighbours with several cards, and the lanes to them.

use super::MultiNic;
use crate::multi_nic::arp::{Action, ClaimAction, Learned};
use crate::multi_nic::probe::{Estimate, Prober, WayTo};
use crate::multi_nic::{Delay, Lane, MOST_NICS, NeighbourId, NicId, pair};
use farpace_path::Cx;
use farpace_units::Instant;
use farpace_wire::{CardFlags, MacAddr, NicKind, NicList, Packet};
use std::collections::BTreeMap;

/// Neighbours with several cards.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    /// By the address that the stack sends to: their first card's.
    by_first: BTreeMap<MacAddr, NeighbourId>,
    cards: BTreeMap<NeighbourId, Cards>,
    /// Numbers of those that were forgotten.
    free: Vec<NeighbourId>,
}

#[derive(Clone, Debug)]
struct Cards {
    cards: NicList,
    flags: CardFlags,
}

impl Neighbours {
    /// Whom the stack sends to at this address.
    #[inline]
    pub fn find(&self, first: MacAddr) -> NeighbourId {
        self.by_first.get(&first).copied().unwrap_or(NeighbourId::ORDINARY)
    }
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }
}

impl MultiNic {
    /// Does what the parts of this layer want done.
    pub(super) fn follow_up(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        for at in 0..self.claims.len() {
            while let Some(action) = self.claims.get_mut(at).and_then(|claim| claim.poll()) {
                // Conflicts are counted in the claim; the stack has nothing to hear them with.
                if let ClaimAction::Send(packet) = action {
                    let packet = self.speaker.as_mut().map_or(packet.clone(), |s| s.outgoing(now, packet));
                    self.broadcast(&packet, cx);
                }
            }
        }
        while let Some(action) = self.speaker.as_mut().and_then(|speaker| speaker.poll()) {
            match action {
                Action::Send(packet) => self.broadcast(&packet, cx),
                Action::Learned(learned) => self.learn(now, learned),
            }
        }
        self.judge_lanes(now);
    }

    /// A neighbour has other cards.
    fn learn(&mut self, now: Instant, learned: Learned) {
        match learned {
            Learned::Extended { first, replaces, cards, flags } => {
                let known = &mut self.neighbours;
                let old = replaces.and_then(|old| known.by_first.remove(&old));
                let id = old.or_else(|| known.by_first.get(&first).copied()).or_else(|| known.free.pop());
                let id = id.unwrap_or_else(|| self.lanes.set_neighbour(None, [None; MOST_NICS]));
                known.by_first.insert(first, id);
                known.cards.insert(id, Cards { cards, flags });
                self.pair(now, id);
            }
            Learned::Ordinary { first } => {
                let Some(id) = self.neighbours.by_first.remove(&first) else { return };
                self.neighbours.cards.remove(&id);
                self.neighbours.free.push(id);
                self.lanes.set_neighbour(Some(id), [None; MOST_NICS]);
                if let Some(prober) = &mut self.prober {
                    self.lanes.ids().for_each(|nic| prober.remove(id, nic));
                }
            }
        }
        self.order.on_change(now, &self.lanes, &mut self.refused);
    }

    /// Pairs our cards with those of all neighbours anew: others of ours work now.
    pub(super) fn pair_all(&mut self, now: Instant) {
        let ids: Vec<NeighbourId> = self.neighbours.cards.keys().copied().collect();
        ids.into_iter().for_each(|id| self.pair(now, id));
    }

    /// Gives a neighbour lanes by the cards of ours that work. A lane that leads where it led keeps all that is known of it; one
    /// that is new waits for its first probe to be answered, if there are probes.
    fn pair(&mut self, now: Instant, id: NeighbourId) {
        let Some(Cards { cards, flags }) = self.neighbours.cards.get(&id) else { return };
        let works: Vec<NicId> =
            self.lanes.ids().filter(|nic| self.lanes.nic(*nic).is_some_and(|n| n.up)).collect();
        let kind = |nic: &NicId| self.lanes.nic(*nic).map_or(NicKind::UNKNOWN, |nic| nic.kind);
        let ours: Vec<NicKind> = works.iter().map(kind).collect();
        let theirs: Vec<NicKind> = cards.iter().map(|(_, kind)| *kind).collect();
        let probes = flags.contains(CardFlags::ANSWERS_PROBES);
        let mut lanes = [None; MOST_NICS];
        for (nic, to) in works.into_iter().zip(pair(&ours, &theirs)) {
            let (Some(&(to, kind)), Some(card)) = (to.and_then(|j| cards.get(j)), self.lanes.nic(nic)) else {
                continue;
            };
            let ours = card.line.rate();
            let nominal = kind.rate().map_or(ours, |theirs| theirs.min(ours));
            let way = WayTo { neighbour: id, nic, from: card.mac, to, nominal };
            let prober = self.prober.as_mut().filter(|_| probes);
            let probed = prober.is_some_and(|prober| prober.add(now, way).is_ok());
            let old = self.lanes.lane_mut(id, nic).copied().filter(|old| old.to == Some(to));
            let delay = Delay::of_lines(self.config.hops, nominal);
            let new = Lane { up: !probed, ..Lane::new(Some(to), nominal, delay) };
            if let Some(slot) = lanes.get_mut(nic.index()) {
                *slot = Some(old.unwrap_or(new));
            }
        }
        if let Some(prober) = &mut self.prober {
            let gone = self.lanes.ids().filter(|nic| lanes.get(nic.index()).is_none_or(Option::is_none));
            gone.for_each(|nic| prober.remove(id, nic));
        }
        self.lanes.set_neighbour(Some(id), lanes);
    }

    /// Takes over what probes tell of lanes.
    fn judge_lanes(&mut self, now: Instant) {
        let Some(changes) = self.prober.as_mut().map(Prober::take_changes) else { return };
        for (neighbour, nic, Estimate { up, delay, guard, rate, .. }) in &changes {
            let Some(lane) = self.lanes.lane_mut(*neighbour, *nic) else { continue };
            self.stats.lanes_lost += u64::from(lane.up && !up);
            (lane.up, lane.delay, lane.guard) = (*up, *delay, *guard);
            lane.set_rate(*rate);
        }
        if !changes.is_empty() {
            self.order.on_change(now, &self.lanes, &mut self.refused);
        }
    }

    /// Queues `packet` for all cards that work, each with its own address: so a switch learns where they are.
    fn broadcast(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        for nic in self.lanes.ids() {
            self.send_own(nic, packet.clone(), cx);
        }
    }
}
