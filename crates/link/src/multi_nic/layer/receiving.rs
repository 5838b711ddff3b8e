//! From the links to the stack.

use super::MultiNic;
use super::repairing::way_to_ask;
use super::sending::is_resolution;
use crate::multi_nic::NicId;
use crate::multi_nic::probe::ProbeMessage;
use crate::multi_nic::repair::Missing;
use farpace_path::{Cx, Port};
use farpace_wire::{MacAddr, Packet};

impl MultiNic {
    /// Handles a frame that a NIC has received.
    pub(super) fn on_line(&mut self, nic: NicId, packet: Packet, cx: &mut Cx<'_>) {
        let (from, to) = packet.macs();
        let is_ours = self.lanes.nics().iter().any(|nic| nic.mac == from);
        let resolution = is_resolution(&packet);
        // All NICs receive a multicast frame, and one accepts it. Requests may have arrived on another NIC
        // only.
        if is_ours || (to.is_multicast() && !resolution && self.lanes.first_up() != Some(nic)) {
            self.stats.copies += 1;
            return cx.consume(packet);
        }
        // A switch that has not learned an address floods its frames to all NICs.
        if !to.is_multicast() && self.lanes.nic(nic).is_none_or(|card| card.mac != to) {
            self.stats.passed_over += 1;
            return cx.consume(packet);
        }
        if let Some(missing) = Missing::of(&packet) {
            match missing {
                Ok(missing) => self.on_missing(from, &missing, cx),
                Err(_) => self.stats.bad_questions += 1,
            }
            return cx.consume(packet);
        }
        if let Some(message) = ProbeMessage::of(&packet) {
            match message {
                Ok(ProbeMessage::Probe(probe)) if self.prober.is_some() => {
                    self.hear(cx.now(), nic, from);
                    if let Some(reply) = self.responder.on_probe(cx.now(), nic, &packet, probe) {
                        self.send_own(nic, reply, cx);
                    }
                }
                Ok(ProbeMessage::Reply(reply)) => {
                    if let Some(prober) = &mut self.prober {
                        // A neighbour that answers is alive: its list stays valid.
                        if prober.on_reply(cx.now(), nic, from, &reply)
                            && let Some(speaker) = &mut self.speaker
                        {
                            speaker.confirm(cx.now(), from);
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
            self.hear(cx.now(), nic, from);
        }
        // Count all other frames at both ends, whatever they carry. An uncounted frame would be mistaken for
        // lost.
        if to.is_multicast() || resolution {
            let packet = if resolution { self.heard(packet, cx) } else { packet };
            return self.pass_up(packet, cx);
        }
        self.responder.on_packet(cx.now(), nic, &packet);
        self.note_acked(&packet);
        match &mut self.resequencer {
            Some(resequencer) => {
                let mut ready = std::mem::take(&mut self.ready);
                let (neighbours, responder) = (&self.neighbours, &self.responder);
                let repairs = self.repair.is_some();
                let ask = |from| if repairs { way_to_ask(neighbours, responder, from) } else { None };
                resequencer.push(cx.now(), nic, packet, ask, &mut ready);
                self.pass_up_all(ready, cx);
                self.ask(cx);
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
            self.ask(cx);
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
        }
        cx.emit(Port(0), packet);
    }

    /// Handles an address resolution message.
    fn heard(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Packet {
        if let Ok(arp) = packet.arp() {
            let lanes = &self.lanes;
            let is_ours = |mac: MacAddr| lanes.nics().iter().any(|nic| nic.mac == mac);
            self.claims.iter_mut().for_each(|claim| claim.on_arp(cx.now(), &arp, is_ours));
        }
        match &mut self.speaker {
            Some(speaker) => speaker.incoming(cx.now(), packet),
            None => packet,
        }
    }
}
