//! Several NICs as one element.

mod demand;
mod neighbours;
mod priority;
mod receiving;
mod repairing;
mod sending;
mod sparse;
mod stats;
#[cfg(test)]
mod tests;

pub use priority::MAX_PRIORITY_FRAMES;
pub use stats::MultiNicStats;

use crate::multi_nic::arp::{ArpAnnouncer, ConflictDetection};
use crate::multi_nic::order::{self, QueuedFrame, SendOrder};
use crate::multi_nic::probe::{Prober, Probing, Responder};
use crate::multi_nic::{MultiNicConfig, NeighbourId, NicId, NicPaths, NicSpec, Resequencer};
use farpace_path::{Cx, Element, Inspection, Port};
use farpace_units::{Instant, RandomStream, Span};
use farpace_wire::{MacAddr, NicFlags, NicKind, Packet};
use neighbours::MultiNicNeighbours;
use priority::PriorityQueue;
use repairing::Repair;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Maximum number of queued frames of the layer itself per NIC: replies to probes, and announcements.
const MAX_OWN: usize = 64;

/// Several NICs under one IP stack.
///
/// Port 0 leads to the stack, port 1 to the link of the first NIC, and so on. The stack sees one NIC with the
/// address of the first, whichever NICs work.
pub struct MultiNic {
    config: MultiNicConfig,
    /// The MAC address of the stack.
    mac: MacAddr,
    paths: NicPaths,
    order: Box<dyn SendOrder<Packet>>,
    /// Frames that precede those of the order; none: no frame does.
    priority: Option<PriorityQueue>,
    /// Handles address resolution; none: the NICs are not announced.
    announcer: Option<ArpAnnouncer>,
    /// Conflict detection of own IPv4 addresses, if configured.
    conflict_detections: Vec<ConflictDetection>,
    neighbours: MultiNicNeighbours,
    prober: Option<Prober>,
    responder: Responder,
    resequencer: Option<Resequencer>,
    /// Frames that the resequencer has released; empty between calls.
    ready: Vec<Packet>,
    /// The retransmit cache, if configured.
    repair: Option<Repair>,
    /// Frames of the layer itself, by NIC; they are sent first.
    own: Vec<VecDeque<Packet>>,
    /// The latest broadcast request of the stack.
    last_request: Option<(Instant, Packet)>,
    stats: MultiNicStats,
    /// Frames that a full queue refused; empty between calls.
    refused: Vec<QueuedFrame<Packet>>,
    /// When NICs were last served.
    last_served: Instant,
}

impl MultiNic {
    /// A layer without known neighbours, for a stack with these addresses and the MAC address of the first
    /// NIC. `rng` supplies the random times of RFC 5227 and the generation of the first list; it must differ
    /// after each start.
    pub fn new(
        now: Instant,
        config: &MultiNicConfig,
        nics: &[NicSpec],
        addresses: &[IpAddr],
        mut rng: RandomStream,
    ) -> Self {
        let paths = NicPaths::new(nics);
        let mac = paths.nics().first().map(|nic| nic.mac).unwrap_or_default();
        let nics: Vec<(MacAddr, NicKind)> = paths.nics().iter().map(|nic| (nic.mac, nic.kind)).collect();
        let flags = [
            (config.probe, NicFlags::ANSWERS_PROBES),
            (config.resequence.is_some(), NicFlags::RESEQUENCES),
            (config.repairs(), NicFlags::REPAIRS),
        ];
        let flags =
            flags.into_iter().filter(|(has, _)| *has).fold(NicFlags::default(), |all, (_, f)| all.with(f));
        let generation = rng.next_u64() as u16;
        let detection = |address: &IpAddr| match address {
            IpAddr::V4(v4) => {
                Some(ConflictDetection::new(now, *v4, mac, RandomStream::new(rng.next_u64(), "claim")))
            }
            IpAddr::V6(_) => None,
        };
        let conflict_detections =
            addresses.iter().filter(|_| config.conflict_detection).filter_map(detection).collect();
        let probing = Probing { interval: config.probe_interval, starts_up: false, hops: config.hops };
        let resequence = config.resequence.map(|limits| (limits.initial_time(config.probe), limits.bytes));
        let mut responder = Responder::new();
        responder.set_resequence_time(resequence.map(|(time, _)| time).unwrap_or_default());
        MultiNic {
            mac,
            order: order::make(config, &paths),
            priority: None,
            announcer: config.extended_arp.then(|| ArpAnnouncer::new(mac, &nics, flags, generation)),
            conflict_detections,
            neighbours: MultiNicNeighbours::default(),
            prober: config.probe.then(|| Prober::new(probing)),
            responder,
            resequencer: resequence.map(|(time, bytes)| Resequencer::new(time, bytes)),
            ready: Vec::new(),
            repair: config.repairs().then(|| Repair::new(config.repair, nics.len())),
            own: nics.iter().map(|_| VecDeque::new()).collect(),
            last_request: None,
            stats: MultiNicStats::new(nics.len()),
            refused: Vec::new(),
            last_served: now,
            config: config.clone(),
            paths,
        }
    }
    /// The configuration.
    pub const fn config(&self) -> &MultiNicConfig {
        &self.config
    }
    /// The counters.
    pub const fn stats(&self) -> &MultiNicStats {
        &self.stats
    }
    /// The NICs and paths.
    pub const fn paths(&self) -> &NicPaths {
        &self.paths
    }
    /// The neighbour that the stack knows by this address: [ordinary](NeighbourId::ORDINARY) if it has sent
    /// no list of NICs.
    pub fn neighbour(&self, first: MacAddr) -> NeighbourId {
        self.neighbours.find(first)
    }
    /// The recent loss rate of a path, 0 to 1; none: it is not probed, or was not measured yet.
    pub fn path_loss(&self, neighbour: NeighbourId, nic: NicId) -> Option<f64> {
        self.prober.as_ref()?.loss(neighbour, nic)
    }
    /// Limits the queue to what the paths carry in `time`, besides what they need to be kept busy
    /// ([`SendOrder::limit_time`]): what TCP sends again waits in it, too. For orders whose limit adapts to
    /// the paths.
    pub fn limit_queue_time(&mut self, time: Span) {
        self.order.limit_time(time);
    }
    /// Extended ARP; none if it is disabled.
    pub const fn announcer(&self) -> Option<&ArpAnnouncer> {
        self.announcer.as_ref()
    }
    /// A NIC has lost or regained its carrier. Its queue moves to other NICs immediately, and neighbours are
    /// notified.
    pub fn set_carrier(&mut self, nic: NicId, up: bool, cx: &mut Cx<'_>) {
        if self.paths.nic(nic).is_none_or(|own_nic| own_nic.up == up) {
            return;
        }
        let was_down = self.paths.first_up().is_none();
        self.paths.set_carrier(nic, up);
        let working = self.paths.nics().iter().filter(|nic| nic.up).map(|nic| (nic.mac, nic.kind));
        let working: Vec<_> = working.collect();
        if was_down {
            // RFC 5227 §2.1: another host may use the address by now. Announce it only after new probes.
            for detection in &mut self.conflict_detections {
                detection.restart(cx.now());
                if let Some(announcer) = &mut self.announcer {
                    announcer.withdraw(detection.address().into());
                }
            }
        }
        if let Some(announcer) = &mut self.announcer {
            announcer.set_nics(cx.now(), &working);
        }
        self.pair_all(cx.now());
        self.on_change(cx.now());
        if !up {
            let neighbours: Vec<NeighbourId> = self.neighbours.ids().collect();
            neighbours.into_iter().for_each(|id| self.rescue(nic, id, cx));
        }
        self.finish(cx);
    }

    /// Does all that is possible or due. Every call from outside ends with it.
    fn finish(&mut self, cx: &mut Cx<'_>) {
        loop {
            self.run_actions(cx);
            self.work(cx);
            // A path that is used again is probed immediately.
            match &mut self.prober {
                Some(prober) if prober.deadline().is_some_and(|at| at <= cx.now()) => {
                    prober.on_deadline(cx.now())
                }
                _ => break,
            }
        }
    }
}

impl Element for MultiNic {
    fn ports(&self) -> u16 {
        self.paths.nics().len() as u16 + 1
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        match port {
            Port(0) => self.on_stack(packet, cx),
            Port(n) => self.on_link(NicId((n - 1) as u8), packet, cx),
        }
        self.finish(cx);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.order.on_deadline(now, &self.paths, &mut self.refused);
        if let Some(announcer) = &mut self.announcer {
            announcer.on_deadline(now);
        }
        if let Some(prober) = &mut self.prober {
            prober.on_deadline(now);
        }
        self.conflict_detections.iter_mut().for_each(|detection| detection.on_deadline(now));
        self.pass_up_due(cx);
        self.finish(cx);
    }
    fn deadline(&self) -> Option<Instant> {
        // A NIC that has been idle since the last call had nothing to send.
        let waits = self.order.held() > 0 || self.has_own() || self.repairs_wait() || self.priority_waits();
        let free = self.paths.next_free(self.last_served).filter(|_| waits);
        let announcer = self.announcer.as_ref().and_then(ArpAnnouncer::deadline);
        let prober = self.prober.as_ref().and_then(Prober::deadline);
        let conflict_detections =
            self.conflict_detections.iter().filter_map(ConflictDetection::deadline).min();
        let resequencer = self.resequencer.as_ref().and_then(Resequencer::deadline);
        [free, self.order.deadline(), announcer, prober, conflict_detections, resequencer]
            .into_iter()
            .flatten()
            .min()
    }
    fn held(&self) -> u64 {
        let own: usize = self.own.iter().map(VecDeque::len).sum();
        let out_of_order = self.resequencer.as_ref().map_or(0, Resequencer::held);
        let again = self.repair.as_ref().map_or(0, Repair::held);
        let first = self.priority.as_ref().map_or(0, PriorityQueue::held);
        self.order.held() + self.refused.len() as u64 + own as u64 + out_of_order + again + first
    }
    fn inspect(&self) -> Inspection {
        let mut readings = self.stats.inspect();
        readings.push((
            "late frames",
            self.responder.paths().map(|(.., reordered)| u64::from(reordered.late)).sum::<u64>().to_string(),
        ));
        if let Some(resequencer) = &self.resequencer {
            readings.push(("bytes waiting for order", resequencer.held_bytes().to_string()));
            readings.push(("resequencing timeouts", resequencer.timeouts().to_string()));
        }
        if let Some(announcer) = &self.announcer {
            readings.extend(announcer.stats().inspect());
        }
        readings
    }
}
