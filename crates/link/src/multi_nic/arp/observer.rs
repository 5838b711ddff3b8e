//! What somebody who only listens learns of the machines of a LAN and their cards.

use super::message::{ArpMessage, list};
use super::{ArpRefusal, MAX_NEIGHBOURS};
use crate::multi_nic::probe::ProbeMessage as Probing;
use farpace_units::{Instant, Span};
use farpace_wire::{Extension, MacAddr, Packet};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Lanes whose probes are counted at most; those of further ones are left out.
pub const MAX_LANES: usize = 4096;

/// A machine that has said where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedHost {
    /// The address that it named last.
    pub mac: MacAddr,
    /// Its last good list; none after an ordinary message from it.
    pub list: Option<Extension>,
    /// When that list was first heard, with this number.
    pub since: Option<Instant>,
    /// When it was first heard of.
    pub first: Instant,
    /// When it was last heard of.
    pub last: Instant,
    /// Messages of address resolution from it.
    pub messages: u64,
    /// Those of them with a good list.
    pub lists: u64,
    /// Lists that broke a rule, by rule.
    pub refused: BTreeMap<ArpRefusal, u64>,
}

/// Probes from one card to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Probes.
    pub probes: u64,
    /// Answers to them.
    pub replies: u64,
    /// The shortest time from probe to answer where the onlooker stands.
    pub least_rtt: Option<Span>,
    /// The last probe that is not answered.
    open: Option<(u32, Instant)>,
}

/// Listens to all frames. It believes whatever breaks no rule of its own: unlike a [`Cache`](super::Cache) it knows of no
/// questions.
#[derive(Clone, Debug, Default)]
pub struct ArpObserver {
    machines: BTreeMap<IpAddr, ObservedHost>,
    lanes: BTreeMap<(MacAddr, MacAddr), Probed>,
    left_out: u64,
}

impl ArpObserver {
    /// A frame was seen. Times must not go back; if they do, round trips are not taken.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if let Some(Ok(message)) = Probing::of(packet) {
            return self.on_probing(now, packet.macs(), message);
        }
        let Some((address, mac)) = ArpMessage::read(packet).and_then(|message| message.from) else { return };
        if self.machines.len() >= MAX_NEIGHBOURS && !self.machines.contains_key(&address) {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let heard = self.machines.entry(address).or_insert_with(|| ObservedHost {
            mac,
            list: None,
            since: None,
            first: now,
            last: now,
            messages: 0,
            lists: 0,
            refused: BTreeMap::new(),
        });
        (heard.mac, heard.last) = (mac, now);
        heard.messages += 1;
        match list(packet) {
            Ok(Some(list)) => {
                heard.lists += 1;
                // Each card names itself as the first: a list is the same if its number is.
                if heard.list.as_ref().is_none_or(|known| known.generation != list.generation) {
                    heard.since = Some(now);
                }
                heard.list = Some(list);
            }
            Ok(None) => (heard.list, heard.since) = (None, None),
            Err(why) => *heard.refused.entry(why.into()).or_default() += 1,
        }
    }

    /// All machines that were heard, by address.
    pub const fn machines(&self) -> &BTreeMap<IpAddr, ObservedHost> {
        &self.machines
    }
    /// All lanes that are probed: from which card to which.
    pub const fn lanes(&self) -> &BTreeMap<(MacAddr, MacAddr), Probed> {
        &self.lanes
    }
    /// Messages and probes of machines and lanes that were too many to be remembered.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn on_probing(&mut self, now: Instant, (from, to): (MacAddr, MacAddr), message: Probing) {
        let lane = match message {
            Probing::Probe(_) => (from, to),
            Probing::Reply(_) => (to, from),
        };
        if self.lanes.len() >= MAX_LANES && !self.lanes.contains_key(&lane) {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let lane = self.lanes.entry(lane).or_default();
        match message {
            Probing::Probe(probe) => {
                lane.probes += 1;
                lane.open = Some((probe.seq, now));
            }
            Probing::Reply(reply) => {
                lane.replies += 1;
                if let Some((seq, at)) = lane.open
                    && seq == reply.probe.seq
                    && at <= now
                {
                    let rtt = now.since(at);
                    lane.least_rtt = Some(lane.least_rtt.map_or(rtt, |least| least.min(rtt)));
                    lane.open = None;
                }
            }
        }
    }
}
