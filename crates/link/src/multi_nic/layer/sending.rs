//! From the stack to the links.

use super::{MAX_OWN, MultiNic};
use crate::multi_nic::arp::ANSWER_TIMEOUT;
use crate::multi_nic::order::QueuedFrame;
use crate::multi_nic::{NeighbourId, NicId, flow_of};
use crate::pacing::wire_len;
use farpace_path::{Cx, DropReason, Port};
use farpace_wire::ip::PROTOCOL_TCP;
use farpace_wire::{EtherType, Icmp, Packet};
use std::net::IpAddr;

impl MultiNic {
    /// Handles a frame from the stack.
    pub(super) fn on_stack(&mut self, mut packet: Packet, cx: &mut Cx<'_>) {
        if !self.conflict_detections.is_empty() && !self.may_leave(&packet) {
            self.stats.from_unusable_addresses += 1;
            return cx.drop(packet, DropReason::HostLimit);
        }
        if is_resolution(&packet) {
            packet = self.resolve(packet, cx);
            if let Some(first) = self.paths.first_up() {
                // It stays in order with frames of this layer: an announcement must not overtake it.
                return self.queue_own(first, packet, cx);
            }
        }
        let (_, to) = packet.macs();
        let mut neighbour = self.neighbours.find(to);
        // Before the first reply to a probe, and when all paths have failed, frames follow the path of the
        // request.
        if self.paths.working(neighbour).next().is_none() {
            neighbour = NeighbourId::ORDINARY;
        }
        let bytes = wire_len(packet.len());
        let flow = flow_of(&packet);
        let is_tcp = packet.ip().is_some_and(|ip| ip.protocol() == PROTOCOL_TCP);
        if is_tcp && self.config.order.considers_delays() {
            if self.neighbours.is_unordered(neighbour) {
                self.neighbours.on_tcp(cx.now(), neighbour, takes_losses_for_congestion(&packet));
            }
            if self.neighbours.on_demand(cx.now(), neighbour, bytes) {
                if self.select_paths(cx.now(), neighbour) {
                    self.on_change(cx.now());
                }
                self.update_info(neighbour);
            }
        }
        let precedes = self.priority.as_mut().is_some_and(|queue| {
            let in_order = neighbour != NeighbourId::ORDINARY && !self.neighbours.is_unordered(neighbour);
            let longest = || self.paths.working(neighbour).map(|(_, path)| path.rtt).max();
            let rtt = (is_tcp && in_order).then(longest).map(Option::unwrap_or_default);
            queue.takes(cx.now(), &packet, flow, rtt)
        });
        let cached = if is_tcp || !precedes { self.keep(flow, &packet, neighbour) } else { None };
        let item = QueuedFrame { flow, frame: packet, bytes, neighbour, cached };
        match self.priority.as_mut().filter(|_| precedes) {
            Some(queue) => queue.enqueue(item, cx),
            None => self.order.enqueue(cx.now(), item, &self.paths, &mut self.refused),
        }
    }

    /// Serves all idle NICs.
    pub(super) fn work(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.last_served = now;
        let mut sent = true;
        while std::mem::take(&mut sent)
            && (self.order.held() > 0 || self.has_own() || self.repairs_wait() || self.priority_waits())
        {
            for nic in self.paths.ids() {
                if !self.paths.is_idle(nic, now) {
                    continue;
                }
                if let Some(packet) = self.next_own(nic, cx) {
                    self.paths.send_own(now, nic, wire_len(packet.len()));
                    self.stats.own += 1;
                    cx.emit(Port(u16::from(nic.0) + 1), packet);
                    sent = true;
                } else if let Some(item) = self.next_priority(cx, nic, false) {
                    self.send(nic, item, cx);
                    sent = true;
                } else if let Some(item) =
                    self.next_repair(now, nic).or_else(|| self.order.dequeue(now, nic, &self.paths))
                {
                    if let Some(priority) = &mut self.priority {
                        priority.on_other_sent();
                    }
                    self.send(nic, item, cx);
                    sent = true;
                } else if let Some(item) = self.next_priority(cx, nic, true) {
                    self.send(nic, item, cx);
                    sent = true;
                }
            }
        }
        // Frames for a NIC without a carrier are dropped.
        for nic in self.paths.ids().filter(|nic| self.paths.nic(*nic).is_some_and(|nic| !nic.up)) {
            for packet in self.own.get_mut(nic.index()).map(std::mem::take).unwrap_or_default() {
                cx.drop(packet, DropReason::Outage);
            }
        }
        self.drop_stranded_repairs(cx);
        self.drop_stranded_priority(cx);
        for item in std::mem::take(&mut self.refused) {
            self.on_frame_dropped(&item);
            let working = self.paths.working(item.neighbour).next().is_some();
            cx.drop(item.frame, if working { DropReason::QueueFull } else { DropReason::Outage });
        }
    }

    /// Queues a frame of this layer, if the NIC works.
    pub(super) fn send_own(&mut self, nic: NicId, packet: Packet, cx: &mut Cx<'_>) {
        if self.paths.nic(nic).is_some_and(|nic| nic.up) {
            cx.made();
            self.queue_own(nic, packet, cx);
        }
    }

    fn queue_own(&mut self, nic: NicId, mut packet: Packet, cx: &mut Cx<'_>) {
        let (Some(own_nic), Some(own)) = (self.paths.nic(nic), self.own.get_mut(nic.index())) else {
            return cx.drop(packet, DropReason::Outage);
        };
        let (_, to) = packet.macs();
        packet.set_macs(own_nic.mac, to);
        if own.len() < MAX_OWN {
            own.push_back(packet);
        } else {
            cx.drop(packet, DropReason::QueueFull);
        }
    }

    /// True if this layer itself has a frame to send.
    pub(super) fn has_own(&self) -> bool {
        let wants = |nic| self.prober.as_ref().is_some_and(|prober| prober.wants(nic));
        self.own.iter().any(|own| !own.is_empty()) || self.paths.ids().any(wants)
    }

    /// The next frame of this layer. Replies precede probes. Both carry time stamps.
    fn next_own(&mut self, nic: NicId, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.own.get_mut(nic.index())?.pop_front() {
            return Some(packet);
        }
        let behind = self.paths.nic(nic)?.just_sent(cx.now());
        let probe = self.prober.as_mut()?.poll(cx.now(), nic, behind)?;
        cx.made();
        Some(probe)
    }

    fn send(&mut self, nic: NicId, item: QueuedFrame<Packet>, cx: &mut Cx<'_>) {
        self.on_frame_sent(cx.now(), nic, &item);
        let QueuedFrame { frame: mut packet, bytes, neighbour, .. } = item;
        let (_, written) = packet.macs();
        let path = self.paths.path(neighbour, nic);
        let to = path.and_then(|path| path.to).unwrap_or(written);
        if let Some(own_nic) = self.paths.nic(nic) {
            packet.set_macs(own_nic.mac, to);
        }
        self.paths.send(cx.now(), nic, neighbour, bytes);
        if let Some(prober) = &mut self.prober {
            // A frame to a neighbour without a list may still use a path that is probed.
            let probed = match neighbour {
                NeighbourId::ORDINARY if !self.neighbours.is_empty() => {
                    let id = self.neighbours.find(written);
                    self.paths.any_path(id, nic).is_some_and(|path| path.to == Some(to)).then_some(id)
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
        let Some(announcer) = &mut self.announcer else { return packet };
        if !packet.macs().1.is_multicast() {
            return announcer.outgoing(now, packet);
        }
        let same = |old: &Packet| old.headers() == packet.headers() && old.payload() == packet.payload();
        let again =
            self.last_request.as_ref().is_some_and(|(at, old)| now.since(*at) <= ANSWER_TIMEOUT && same(old));
        self.last_request = Some((now, packet.clone()));
        let packet = announcer.outgoing(now, packet);
        if again {
            let first = self.paths.first_up();
            for nic in self.paths.ids().filter(|nic| Some(*nic) != first) {
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
        let detection =
            self.conflict_detections.iter().find(|detection| from == Some(IpAddr::from(detection.address())));
        detection.is_none_or(|detection| detection.is_usable())
    }
}

/// True if `packet`, one of TCP, carries data of a connection that takes losses for congestion: unless its
/// congestion control [tolerates losses](Packet::loss_tolerant). None: it carries no data.
fn takes_losses_for_congestion(packet: &Packet) -> Option<bool> {
    (!packet.payload().is_empty()).then(|| !packet.loss_tolerant())
}

/// True if `packet` is address resolution: ARP or neighbour discovery.
#[inline]
pub(super) fn is_resolution(packet: &Packet) -> bool {
    // Fast path: IPv4 never is.
    let is_ipv4 = packet.headers().get(12..14) == Some(&EtherType::IPV4.0.to_be_bytes()[..]);
    !is_ipv4 && (packet.arp().is_ok() || matches!(packet.icmp(), Ok(Icmp::Neighbour(_))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_nic::segment::made::segment;
    use farpace_wire::TcpFlags;

    /// Breaks: one ACK makes a neighbour count as one to which data is sent that losses slow down, so that
    /// lossy paths are left alone.
    #[test]
    fn only_data_of_tcp_takes_losses_for_congestion() {
        let data = segment(0, 1, 0, 1_000, TcpFlags::ACK, None);
        assert_eq!(takes_losses_for_congestion(&data), Some(true));
        let mut tolerant = data.clone();
        tolerant.set_loss_tolerant(true);
        assert_eq!(takes_losses_for_congestion(&tolerant), Some(false));
        assert_eq!(takes_losses_for_congestion(&segment(0, 1, 0, 0, TcpFlags::ACK, None)), None);
    }
}
