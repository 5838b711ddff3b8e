//! Learns the hosts of a LAN and their NICs from observed traffic.

use super::message::{ArpMessage, list};
use super::{ArpRefusal, MAX_NEIGHBOURS};
use crate::multi_nic::probe::ProbeMessage as Probing;
use farpace_units::{Instant, Span};
use farpace_wire::{Extension, MacAddr, Packet};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of paths whose probes are counted. Further paths are ignored.
pub const MAX_OBSERVED_PATHS: usize = 4096;

/// A host that has sent address resolution messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedHost {
    /// The MAC address in its latest message.
    pub mac: MacAddr,
    /// Its latest valid list; none after a message without a list.
    pub list: Option<Extension>,
    /// When the list was first seen with this generation.
    pub since: Option<Instant>,
    /// When the host was first seen.
    pub first: Instant,
    /// When the host was last seen.
    pub last: Instant,
    /// Number of its address resolution messages.
    pub messages: u64,
    /// Number of these messages with a valid list.
    pub lists: u64,
    /// Number of invalid lists, by reason.
    pub refused: BTreeMap<ArpRefusal, u64>,
}

/// Probes from one NIC to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probed {
    /// Number of probes.
    pub probes: u64,
    /// Number of replies.
    pub replies: u64,
    /// Minimum time from probe to reply at the observer.
    pub min_rtt: Option<Span>,
    /// The latest probe without a reply.
    open: Option<(u32, Instant)>,
}

/// Observes all frames. It accepts every list that is valid in itself. Unlike a [`Cache`](super::Cache) it
/// does not track requests.
#[derive(Clone, Debug, Default)]
pub struct ArpObserver {
    hosts: BTreeMap<IpAddr, ObservedHost>,
    paths: BTreeMap<(MacAddr, MacAddr), Probed>,
    left_out: u64,
}

impl ArpObserver {
    /// Handles an observed frame. If times decrease, the round trip is not measured.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        if let Some(Ok(message)) = Probing::of(packet) {
            return self.on_probing(now, packet.macs(), message);
        }
        let Some((address, mac)) = ArpMessage::read(packet).and_then(|message| message.from) else { return };
        if self.hosts.len() >= MAX_NEIGHBOURS && !self.hosts.contains_key(&address) {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let host = self.hosts.entry(address).or_insert_with(|| ObservedHost {
            mac,
            list: None,
            since: None,
            first: now,
            last: now,
            messages: 0,
            lists: 0,
            refused: BTreeMap::new(),
        });
        (host.mac, host.last) = (mac, now);
        host.messages += 1;
        match list(packet) {
            Ok(Some(list)) => {
                host.lists += 1;
                // Each NIC lists itself first, so lists of the same generation are the same.
                if host.list.as_ref().is_none_or(|known| known.generation != list.generation) {
                    host.since = Some(now);
                }
                host.list = Some(list);
            }
            Ok(None) => (host.list, host.since) = (None, None),
            Err(why) => *host.refused.entry(why.into()).or_default() += 1,
        }
    }

    /// All observed hosts, by address.
    pub const fn hosts(&self) -> &BTreeMap<IpAddr, ObservedHost> {
        &self.hosts
    }
    /// All probed paths, by source and destination NIC.
    pub const fn paths(&self) -> &BTreeMap<(MacAddr, MacAddr), Probed> {
        &self.paths
    }
    /// Number of messages and probes that were ignored because the tables are full.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    fn on_probing(&mut self, now: Instant, (from, to): (MacAddr, MacAddr), message: Probing) {
        let path = match message {
            Probing::Probe(_) => (from, to),
            Probing::Reply(_) => (to, from),
        };
        if self.paths.len() >= MAX_OBSERVED_PATHS && !self.paths.contains_key(&path) {
            self.left_out = self.left_out.saturating_add(1);
            return;
        }
        let path = self.paths.entry(path).or_default();
        match message {
            Probing::Probe(probe) => {
                path.probes += 1;
                path.open = Some((probe.seq, now));
            }
            Probing::Reply(reply) => {
                path.replies += 1;
                if let Some((seq, at)) = path.open
                    && seq == reply.probe.seq
                    && at <= now
                {
                    let rtt = now.since(at);
                    path.min_rtt = Some(path.min_rtt.map_or(rtt, |shortest| shortest.min(rtt)));
                    path.open = None;
                }
            }
        }
    }
}
