//! From the links to the stack.

use super::MultiNic;
use super::repairing::repair_request_path;
use super::sending::is_resolution;
use crate::multi_nic::NicId;
use crate::multi_nic::probe::ProbeMessage;
use crate::multi_nic::repair::RepairMessage;
use farpace_path::{Cx, Port};
use farpace_wire::{MacAddr, Packet};

impl MultiNic {
    /// Handles a frame that a NIC has received.
    pub(super) fn on_link(&mut self, nic: NicId, packet: Packet, cx: &mut Cx<'_>) {
        let (from, to) = packet.macs();
        let is_ours = self.paths.nics().iter().any(|nic| nic.mac == from);
        let resolution = is_resolution(&packet);
        // All NICs receive a multicast frame, and one accepts it. Requests may have arrived on another NIC
        // only.
        if is_ours || (to.is_multicast() && !resolution && self.paths.first_up() != Some(nic)) {
            self.stats.duplicates += 1;
            return cx.consume(packet);
        }
        // A switch that has not learned an address floods its frames to all NICs.
        if !to.is_multicast() && self.paths.nic(nic).is_none_or(|own_nic| own_nic.mac != to) {
            self.stats.for_other_hosts += 1;
            return cx.consume(packet);
        }
        if let Some(missing) = RepairMessage::of(&packet) {
            match missing {
                Ok(missing) => self.on_repair_message(from, &missing, cx),
                Err(_) => self.stats.bad_repair_messages += 1,
            }
            return cx.consume(packet);
        }
        if let Some(message) = ProbeMessage::of(&packet) {
            match message {
                Ok(ProbeMessage::Probe(probe)) if self.prober.is_some() => {
                    self.see(cx.now(), nic, from);
                    if let Some(reply) = self.responder.on_probe(cx.now(), nic, &packet, probe) {
                        self.send_own(nic, reply, cx);
                    }
                }
                Ok(ProbeMessage::Reply(reply)) => {
                    if let Some(prober) = &mut self.prober {
                        // A neighbour that answers is alive: its list stays valid.
                        if prober.on_reply(cx.now(), nic, from, &reply)
                            && let Some(announcer) = &mut self.announcer
                        {
                            announcer.confirm(cx.now(), from);
                        }
                    }
                }
                Ok(ProbeMessage::Probe(_)) => {}
                Err(_) => self.stats.bad_probes += 1,
            }
            return cx.consume(packet);
        }
        if let Some(received) = self.stats.received.get_mut(nic.index()) {
            *received += 1;
        }
        if to.is_multicast() && resolution {
            self.see(cx.now(), nic, from);
        }
        // Count all other frames at both ends, whatever they carry. An uncounted frame would be mistaken for
        // lost.
        if to.is_multicast() || resolution {
            let packet = if resolution { self.on_resolution(packet, cx) } else { packet };
            return self.pass_up(packet, cx);
        }
        self.responder.on_packet(cx.now(), nic, &packet);
        self.on_acked_frame(&packet);
        match &mut self.resequencer {
            Some(resequencer) => {
                let mut ready = std::mem::take(&mut self.ready);
                let (neighbours, responder) = (&self.neighbours, &self.responder);
                let repairs = self.repair.is_some();
                let repair_path =
                    |from| if repairs { repair_request_path(neighbours, responder, from) } else { None };
                resequencer.push(cx.now(), nic, packet, repair_path, &mut ready);
                self.pass_up_all(ready, cx);
                self.send_repair_requests(cx);
            }
            None => self.pass_up(packet, cx),
        }
    }

    /// Passes on frames that have waited long enough for earlier ones.
    pub(super) fn pass_up_due(&mut self, cx: &mut Cx<'_>) {
        if let Some(resequencer) = &mut self.resequencer {
            let mut ready = std::mem::take(&mut self.ready);
            resequencer.on_deadline(cx.now(), &mut ready);
            self.pass_up_all(ready, cx);
            self.send_repair_requests(cx);
        }
    }
    pub(super) fn pass_up_all(&mut self, mut ready: Vec<Packet>, cx: &mut Cx<'_>) {
        for packet in ready.drain(..) {
            self.pass_up(packet, cx);
        }
        self.ready = ready;
    }
    /// Passes a frame to the stack, which knows only one own address.
    fn pass_up(&mut self, mut packet: Packet, cx: &mut Cx<'_>) {
        let (from, to) = packet.macs();
        if !to.is_multicast() {
            packet.set_macs(from, self.mac);
            packet.set_multipath(self.neighbours.info(from));
        }
        cx.emit(Port(0), packet);
    }

    /// Handles an address resolution message.
    fn on_resolution(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Packet {
        if let Ok(arp) = packet.arp() {
            let paths = &self.paths;
            let is_ours = |mac: MacAddr| paths.nics().iter().any(|nic| nic.mac == mac);
            self.conflict_detections
                .iter_mut()
                .for_each(|detection| detection.on_arp(cx.now(), &arp, is_ours));
        }
        match &mut self.announcer {
            Some(announcer) => announcer.incoming(cx.now(), packet),
            None => packet,
        }
    }
}
