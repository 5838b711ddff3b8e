//! Several cards as one element.

use crate::multi_nic::order::{self, Item, SendOrder};
use crate::multi_nic::{
    Delay, Lane, Lanes, MOST_NICS, MultiNicConfig, NeighbourId, NicId, NicSpec, flow_of, pair,
};
use crate::pacing::on_the_line;
use farpace_path::{Cx, DropReason, Element, Inspection, Port};
use farpace_units::Instant;
use farpace_wire::{MacAddr, NicKind, Packet};
use std::collections::BTreeMap;

/// What has happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MultiNicStats {
    /// Frames that each card has sent, in the order of cards.
    pub sent: Vec<u64>,
    /// Frames that each card has received, those for others not counted.
    pub received: Vec<u64>,
    /// Frames for other stations.
    pub passed_over: u64,
    /// Our own frames that came back, and copies of frames to groups that another card has taken.
    pub copies: u64,
}

/// Several network cards under one IP stack.
///
/// Port 0 leads to the stack, port 1 to the first card's line, and so on. The stack sees one card that has the first one's
/// address.
pub struct MultiNic {
    config: MultiNicConfig,
    lanes: Lanes,
    order: Box<dyn SendOrder<Packet>>,
    /// Neighbours with several cards, by the address that the stack sends to: their first card's.
    neighbours: BTreeMap<MacAddr, NeighbourId>,
    stats: MultiNicStats,
    /// Frames that there is no room for; empty between calls.
    refused: Vec<Item<Packet>>,
    /// When cards were last given frames.
    worked: Instant,
}

impl MultiNic {
    /// Cards that know nobody.
    pub fn new(config: &MultiNicConfig, nics: &[NicSpec]) -> Self {
        let lanes = Lanes::new(nics);
        let zeros = vec![0; lanes.nics().len()];
        MultiNic {
            order: order::make(config, &lanes),
            config: config.clone(),
            lanes,
            neighbours: BTreeMap::new(),
            stats: MultiNicStats { sent: zeros.clone(), received: zeros, ..MultiNicStats::default() },
            refused: Vec::new(),
            worked: Instant::ZERO,
        }
    }
    /// A neighbour has these cards; the first has the address that the stack sends to.
    pub fn learn(&mut self, now: Instant, cards: &[(MacAddr, NicKind)]) {
        let Some(&(first, _)) = cards.first() else { return };
        let ours: Vec<NicKind> = self.lanes.nics().iter().map(|nic| nic.kind).collect();
        let theirs: Vec<NicKind> = cards.iter().map(|(_, kind)| *kind).collect();
        let mut lanes = [None; MOST_NICS];
        for ((to, nic), slot) in pair(&ours, &theirs).into_iter().zip(self.lanes.nics()).zip(&mut lanes) {
            let Some(&(mac, kind)) = to.and_then(|j| cards.get(j)) else { continue };
            let ours = nic.line.rate();
            let rate = kind.rate().map_or(ours, |theirs| theirs.min(ours));
            *slot = Some(Lane::new(Some(mac), rate, Delay::of_lines(self.config.hops, rate)));
        }
        let id = self.neighbours.get(&first).copied();
        let id = self.lanes.set_neighbour(id, lanes);
        self.neighbours.insert(first, id);
        self.order.on_change(now, &self.lanes, &mut self.refused);
    }
    /// A card has lost its carrier, or has it again.
    pub fn set_carrier(&mut self, nic: NicId, up: bool, cx: &mut Cx<'_>) {
        self.lanes.set_carrier(nic, up);
        self.order.on_change(cx.now(), &self.lanes, &mut self.refused);
        self.work(cx);
    }
    /// What has happened so far.
    pub const fn stats(&self) -> &MultiNicStats {
        &self.stats
    }
    /// Cards and lanes.
    pub const fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// The stack sends a frame.
    fn on_stack(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        let (_, to) = packet.macs();
        let neighbour = self.neighbours.get(&to).copied().unwrap_or(NeighbourId::ORDINARY);
        let bytes = on_the_line(packet.len());
        let item = Item { flow: flow_of(&packet), frame: packet, bytes, neighbour };
        self.order.enqueue(cx.now(), item, &self.lanes, &mut self.refused);
        self.work(cx);
    }
    /// A frame comes in by a card.
    fn on_line(&mut self, nic: NicId, mut packet: Packet, cx: &mut Cx<'_>) {
        let (from, to) = packet.macs();
        let is_ours = |mac: MacAddr| self.lanes.nics().iter().any(|nic| nic.mac == mac);
        let Some(first) = self.lanes.nics().first().map(|nic| nic.mac) else {
            return cx.drop(packet, DropReason::HostLimit);
        };
        if is_ours(from) || (to.is_multicast() && self.lanes.first_up() != Some(nic)) {
            self.stats.copies += 1;
            return cx.consume(packet);
        }
        // A switch that does not know a card yet sends what is for it to all our cards.
        if !to.is_multicast() && self.lanes.nic(nic).is_none_or(|card| card.mac != to) {
            self.stats.passed_over += 1;
            return cx.consume(packet);
        }
        if let Some(received) = self.stats.received.get_mut(nic.index()) {
            *received += 1;
        }
        if !to.is_multicast() {
            packet.set_macs(from, first);
        }
        cx.emit(Port(0), packet);
    }
    /// Gives frames to all cards that are idle.
    fn work(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.worked = now;
        let mut sent = true;
        while std::mem::take(&mut sent) && self.order.held() > 0 {
            for nic in self.lanes.ids() {
                if self.lanes.is_idle(nic, now)
                    && let Some(item) = self.order.dequeue(now, nic, &self.lanes)
                {
                    self.send(nic, item, cx);
                    sent = true;
                }
            }
        }
        for item in self.refused.drain(..) {
            let works = self.lanes.working(item.neighbour).next().is_some();
            cx.drop(item.frame, if works { DropReason::QueueFull } else { DropReason::Outage });
        }
    }
    fn send(&mut self, nic: NicId, item: Item<Packet>, cx: &mut Cx<'_>) {
        let Item { frame: mut packet, bytes, neighbour, .. } = item;
        let to = self.lanes.lane(neighbour, nic).and_then(|lane| lane.to);
        let (_, written) = packet.macs();
        if let Some(card) = self.lanes.nic(nic) {
            packet.set_macs(card.mac, to.unwrap_or(written));
        }
        self.lanes.send(cx.now(), nic, neighbour, bytes);
        if let Some(sent) = self.stats.sent.get_mut(nic.index()) {
            *sent += 1;
        }
        cx.emit(Port(u16::from(nic.0) + 1), packet);
    }
}

impl Element for MultiNic {
    fn ports(&self) -> u16 {
        self.lanes.nics().len() as u16 + 1
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        match port {
            Port(0) => self.on_stack(packet, cx),
            Port(n) => self.on_line(NicId((n - 1) as u8), packet, cx),
        }
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.order.on_deadline(cx.now(), &self.lanes, &mut self.refused);
        self.work(cx);
    }
    fn deadline(&self) -> Option<Instant> {
        // A card that is idle had its chance when work was last done.
        let free = self.lanes.next_free(self.worked).filter(|_| self.order.held() > 0);
        free.into_iter().chain(self.order.deadline()).min()
    }
    fn held(&self) -> u64 {
        self.order.held() + self.refused.len() as u64
    }
    fn inspect(&self) -> Inspection {
        let list = |counts: &[u64]| counts.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        vec![
            ("sent by card", list(&self.stats.sent)),
            ("received by card", list(&self.stats.received)),
            ("passed over", self.stats.passed_over.to_string()),
            ("copies", self.stats.copies.to_string()),
        ]
    }
}
