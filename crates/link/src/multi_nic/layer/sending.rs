//! From the stack to the links.

use super::{MAX_OWN, MultiNic};
use crate::multi_nic::arp::ASK_TIME;
use crate::multi_nic::order::QueuedFrame;
use crate::multi_nic::{NeighbourId, NicId, flow_of};
use crate::pacing::on_the_line;
use farpace_path::{Cx, DropReason, Port};
use farpace_wire::{EtherType, Icmp, Packet};
use std::net::IpAddr;

impl MultiNic {
    /// Handles a frame from the stack.
    pub(super) fn on_stack(&mut self, mut packet: Packet, cx: &mut Cx<'_>) {
        if !self.claims.is_empty() && !self.may_leave(&packet) {
            self.stats.unclaimed += 1;
            return cx.drop(packet, DropReason::HostLimit);
        }
        if is_resolution(&packet) {
            packet = self.resolve(packet, cx);
            if let Some(first) = self.lanes.first_up() {
                // It keeps its place among what this layer says itself: an announcement must not overtake it.
                return self.queue_own(first, packet, cx);
            }
        }
        let (_, to) = packet.macs();
        let mut neighbour = self.neighbours.find(to);
        // Before the first reply to a probe, and when all paths have failed, frames follow the path of the
        // request.
        if self.lanes.working(neighbour).next().is_none() {
            neighbour = NeighbourId::ORDINARY;
        }
        let bytes = on_the_line(packet.len());
        let flow = flow_of(&packet);
        let copy = self.keep(flow, &packet, neighbour);
        let item = QueuedFrame { flow, frame: packet, bytes, neighbour, copy };
        self.order.enqueue(cx.now(), item, &self.lanes, &mut self.refused);
    }

    /// Serves all idle NICs.
    pub(super) fn work(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.worked = now;
        let mut sent = true;
        while std::mem::take(&mut sent) && (self.order.held() > 0 || self.has_own() || self.repairs_wait()) {
            for nic in self.lanes.ids() {
                if !self.lanes.is_idle(nic, now) {
                    continue;
                }
                if let Some(packet) = self.next_own(nic, cx) {
                    self.lanes.send_own(now, nic, on_the_line(packet.len()));
                    self.stats.own += 1;
                    cx.emit(Port(u16::from(nic.0) + 1), packet);
                    sent = true;
                } else if let Some(item) = self.next_repair(now, nic) {
                    self.send(nic, item, cx);
                    sent = true;
                } else if let Some(item) = self.order.dequeue(now, nic, &self.lanes) {
                    self.send(nic, item, cx);
                    sent = true;
                }
            }
        }
        // Frames for a NIC without a carrier are dropped.
        for nic in self.lanes.ids().filter(|nic| self.lanes.nic(*nic).is_some_and(|nic| !nic.up)) {
            for packet in self.own.get_mut(nic.index()).map(std::mem::take).unwrap_or_default() {
                cx.drop(packet, DropReason::Outage);
            }
        }
        self.drop_stranded_repairs(cx);
        for item in std::mem::take(&mut self.refused) {
            self.note_dropped(&item);
            let works = self.lanes.working(item.neighbour).next().is_some();
            cx.drop(item.frame, if works { DropReason::QueueFull } else { DropReason::Outage });
        }
    }

    /// Queues a frame of this layer, if the NIC works.
    pub(super) fn send_own(&mut self, nic: NicId, packet: Packet, cx: &mut Cx<'_>) {
        if self.lanes.nic(nic).is_some_and(|nic| nic.up) {
            cx.made();
            self.queue_own(nic, packet, cx);
        }
    }

    fn queue_own(&mut self, nic: NicId, mut packet: Packet, cx: &mut Cx<'_>) {
        let (Some(card), Some(own)) = (self.lanes.nic(nic), self.own.get_mut(nic.index())) else {
            return cx.drop(packet, DropReason::Outage);
        };
        let (_, to) = packet.macs();
        packet.set_macs(card.mac, to);
        if own.len() < MAX_OWN {
            own.push_back(packet);
        } else {
            cx.drop(packet, DropReason::QueueFull);
        }
    }

    /// True if this layer itself has a frame to send.
    pub(super) fn has_own(&self) -> bool {
        let wants = |nic| self.prober.as_ref().is_some_and(|prober| prober.wants(nic));
        self.own.iter().any(|own| !own.is_empty()) || self.lanes.ids().any(wants)
    }

    /// The next frame of this layer. Replies precede probes. Both carry time stamps.
    fn next_own(&mut self, nic: NicId, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.own.get_mut(nic.index())?.pop_front() {
            return Some(packet);
        }
        let behind = self.lanes.nic(nic)?.just_sent(cx.now());
        let probe = self.prober.as_mut()?.poll(cx.now(), nic, behind)?;
        cx.made();
        Some(probe)
    }

    fn send(&mut self, nic: NicId, item: QueuedFrame<Packet>, cx: &mut Cx<'_>) {
        self.note_sent(cx.now(), nic, &item);
        let QueuedFrame { frame: mut packet, bytes, neighbour, .. } = item;
        let (_, written) = packet.macs();
        let lane = self.lanes.path(neighbour, nic);
        let to = lane.and_then(|lane| lane.to).unwrap_or(written);
        if let Some(card) = self.lanes.nic(nic) {
            packet.set_macs(card.mac, to);
        }
        self.lanes.send(cx.now(), nic, neighbour, bytes);
        if let Some(prober) = &mut self.prober {
            // A frame to a neighbour without a list may still use a path that is probed.
            let probed = match neighbour {
                NeighbourId::ORDINARY if !self.neighbours.is_empty() => {
                    let id = self.neighbours.find(written);
                    self.lanes.any_lane(id, nic).is_some_and(|lane| lane.to == Some(to)).then_some(id)
                }
                _ => Some(neighbour),
            };
            if let Some(neighbour) = probed {
                prober.on_sent(cx.now(), neighbour, nic, bytes);
            }
        }
        if let Some(sent) = self.stats.sent.get_mut(nic.index()) {
            *sent += 1;
        }
        cx.emit(Port(u16::from(nic.0) + 1), packet);
    }

    /// Adds the list to an address resolution message of the stack. A request that is repeated without an
    /// answer is sent on all NICs, because the first may lead nowhere.
    fn resolve(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Packet {
        let now = cx.now();
        let Some(speaker) = &mut self.speaker else { return packet };
        if !packet.macs().1.is_multicast() {
            return speaker.outgoing(now, packet);
        }
        let same = |old: &Packet| old.headers() == packet.headers() && old.payload() == packet.payload();
        let again = self.asked.as_ref().is_some_and(|(at, old)| now.since(*at) <= ASK_TIME && same(old));
        self.asked = Some((now, packet.clone()));
        let packet = speaker.outgoing(now, packet);
        if again {
            let first = self.lanes.first_up();
            for nic in self.lanes.ids().filter(|nic| Some(*nic) != first) {
                self.send_own(nic, packet.clone(), cx);
            }
        }
        packet
    }

    /// False if the stack may not use the source address (RFC 5227 §2.1).
    fn may_leave(&self, packet: &Packet) -> bool {
        let from = match packet.arp() {
            Ok(arp) => Some(IpAddr::from(arp.sender)),
            Err(_) => packet.ip().map(|ip| ip.src()),
        };
        let claim = self.claims.iter().find(|claim| from == Some(IpAddr::from(claim.address())));
        claim.is_none_or(|claim| claim.is_usable())
    }
}

/// True if `packet` is address resolution: ARP or neighbour discovery.
#[inline]
pub(super) fn is_resolution(packet: &Packet) -> bool {
    // Fast path: IPv4 never is.
    let is_ipv4 = packet.headers().get(12..14) == Some(&EtherType::IPV4.0.to_be_bytes()[..]);
    !is_ipv4 && (packet.arp().is_ok() || matches!(packet.icmp(), Ok(Icmp::Neighbour(_))))
}
