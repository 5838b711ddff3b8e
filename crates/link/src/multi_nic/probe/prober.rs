//! Asks all ways, in turn.

use super::estimator::PathEstimate;
use super::message::{ProbeMessage, Reply};
use super::probed_path::ProbedPath;
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thiserror::Error;

/// Neighbours whose ways are probed.
pub const MAX_PROBED: usize = 4_096;
/// Ways to a neighbour to which nothing was sent for so long are probed as seldom as this.
pub const IDLE: Span = Span::from_secs(1);
/// Probes are not sent closer together than this, whatever was asked for.
const SHORTEST_INTERVAL: Span = Span::from_millis(1);

/// How ways are probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// From one probe to the next on a way to a neighbour that is sent to; a millisecond at least.
    pub interval: Span,
    /// A way of which nothing is known works. Otherwise it is down until the first reply.
    pub starts_up: bool,
    /// Lines that a frame is taken to pass one after the other until probes of two lengths say more.
    pub hops: u8,
}

/// The way from a card of ours to one of a neighbour's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTo {
    /// Whose.
    pub neighbour: NeighbourId,
    /// Our card.
    pub nic: NicId,
    /// Its address.
    pub from: MacAddr,
    /// The address of the neighbour's.
    pub to: MacAddr,
    /// What the narrower of the two cards sends.
    pub nominal: Rate,
}

/// There are [`MAX_PROBED`] neighbours, or no machine has such a card: this way is not probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0:?} by {1:?} is beyond what is probed")]
pub struct NotProbed(pub NeighbourId, pub NicId);

/// Probes every way, and says what it is worth.
///
/// The contract:
/// * [`on_sent`](Prober::on_sent) is called for every frame of data that leaves by a lane, not for probes.
/// * After each call of another method, while a card [`wants`](Prober::wants) to send a probe and is idle,
///   [`poll`](Prober::poll) gives it, and it leaves at once, before any data: the time stands in it.
/// * After [`on_deadline`](Prober::on_deadline) at `now`, the deadline is later than `now`, or none.
/// * What changed is in [`take_changes`](Prober::take_changes).
#[derive(Clone, Debug)]
pub struct Prober {
    probing: Probing,
    neighbours: Vec<Option<Box<ProbedNeighbour>>>,
    /// Who is at the other end of a way.
    by_address: BTreeMap<(NicId, MacAddr), NeighbourId>,
    agenda: BTreeSet<(Instant, NeighbourId, NicId)>,
    /// For each card: neighbours that are to be probed by it now.
    waiting: [VecDeque<NeighbourId>; MAX_NICS],
    changed: BTreeSet<NeighbourId>,
    refused: u64,
}

#[derive(Clone, Debug)]
struct ProbedNeighbour {
    ways: [Option<Box<ProbedPath>>; MAX_NICS],
    used_at: Option<Instant>,
    /// Something was sent within [`IDLE`].
    used: bool,
}

impl Prober {
    /// Without any ways.
    pub fn new(probing: Probing) -> Prober {
        let interval = probing.interval.max(SHORTEST_INTERVAL);
        Prober {
            probing: Probing { interval, ..probing },
            neighbours: Vec::new(),
            by_address: BTreeMap::new(),
            agenda: BTreeSet::new(),
            waiting: Default::default(),
            changed: BTreeSet::new(),
            refused: 0,
        }
    }
    /// Probes a way from now on. If that card sent to another address or another rate before, that is forgotten.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&mut self, now: Instant, way: PathTo) -> Result<(), NotProbed> {
        let PathTo { neighbour, nic, from, to, nominal } = way;
        let at = neighbour.0 as usize;
        if at >= MAX_PROBED || nic.index() >= MAX_NICS {
            return Err(NotProbed(neighbour, nic));
        }
        let same = |way: &ProbedPath| way.to == to && way.from == from && way.nominal == nominal;
        if self.way(neighbour, nic).is_some_and(same) {
            return Ok(());
        }
        self.remove(neighbour, nic);
        if self.neighbours.len() <= at {
            self.neighbours.resize(at + 1, None);
        }
        if let Some(place) = self.neighbours.get_mut(at) {
            let new = || Box::new(ProbedNeighbour { ways: Default::default(), used_at: None, used: false });
            let ways = &mut place.get_or_insert_with(new).ways;
            if let Some(place) = ways.get_mut(nic.index()) {
                let mut way = ProbedPath::new(from, to, nominal, self.probing.hops, self.probing.starts_up);
                way.at = now;
                self.agenda.insert((now, neighbour, nic));
                *place = Some(Box::new(way));
                self.by_address.insert((nic, to), neighbour);
            }
        }
        self.changed.insert(neighbour);
        Ok(())
    }
    /// Probes it no longer.
    pub fn remove(&mut self, neighbour: NeighbourId, nic: NicId) {
        let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let Some(way) = known.ways.get_mut(nic.index()).and_then(Option::take) else { return };
        self.agenda.remove(&(way.at, neighbour, nic));
        self.by_address.remove(&(nic, way.to));
        if let Some(waiting) = self.waiting.get_mut(nic.index()) {
            waiting.retain(|other| *other != neighbour);
        }
        self.changed.insert(neighbour);
    }
    /// A frame of data that takes `bytes` of the line leaves.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, neighbour: NeighbourId, nic: NicId, bytes: ByteCount) {
        let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        if let Some(Some(way)) = known.ways.get_mut(nic.index()) {
            way.sent.add(bytes);
        }
        known.used_at = Some(now);
        if !known.used {
            known.used = true;
            for nic in (0..MAX_NICS as u8).map(NicId) {
                if self.way_mut(neighbour, nic).is_some_and(ProbedPath::begin_train) {
                    self.probe_now(neighbour, nic);
                }
            }
            self.plan_all(now, neighbour);
        }
    }
    /// A reply came in by `nic`, from the address `from`. False: it answers nothing that was asked, and nothing is believed of it.
    pub fn on_reply(&mut self, now: Instant, nic: NicId, from: MacAddr, reply: &Reply) -> bool {
        let interval = self.probing.interval;
        let neighbour = self.by_address.get(&(nic, from)).copied().filter(|_| reply.probe.lane == nic);
        let way = neighbour.and_then(|neighbour| Some((neighbour, self.way_mut(neighbour, nic)?)));
        let answered = way.filter(|(_, way)| way.to == from);
        let answered = answered.and_then(|(id, way)| way.on_reply(now, reply, interval).then_some(id));
        let Some(neighbour) = answered else {
            self.refused += 1;
            return false;
        };
        self.changed.insert(neighbour);
        self.plan(now, neighbour, nic);
        true
    }
    /// The same, from a frame. None: it is no reply.
    pub fn on_packet(&mut self, now: Instant, nic: NicId, packet: &Packet) -> Option<bool> {
        match ProbeMessage::of(packet)? {
            Ok(ProbeMessage::Reply(reply)) => Some(self.on_reply(now, nic, packet.macs().0, &reply)),
            _ => None,
        }
    }
    /// True if `nic` is to send a probe as soon as it can.
    #[inline]
    pub fn wants(&self, nic: NicId) -> bool {
        self.waiting.get(nic.index()).is_some_and(|waiting| !waiting.is_empty())
    }
    /// The probe that leaves by `nic` now, `behind` a frame that takes so many bytes of the line and has just been sent; zero: the
    /// line was idle.
    pub fn poll(&mut self, now: Instant, nic: NicId, behind: ByteCount) -> Option<Packet> {
        let neighbour = self.waiting.get_mut(nic.index())?.pop_front()?;
        let way = self.way_mut(neighbour, nic)?;
        let packet = way.probe(now, nic, behind);
        if way.wants_more() {
            self.probe_now(neighbour, nic);
        }
        self.plan(now, neighbour, nic);
        Some(packet)
    }
    /// When something is to be done next, not counting probes that wait for a card. Pure.
    pub fn deadline(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, ..)| *at)
    }
    /// The deadline has come.
    pub fn on_deadline(&mut self, now: Instant) {
        while let Some(&(at, neighbour, nic)) = self.agenda.first()
            && at <= now
        {
            self.agenda.pop_first();
            let probing = self.probing;
            let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { continue };
            known.used = known.used_at.is_some_and(|at| now.since(at) < IDLE);
            let used = known.used;
            let Some(Some(way)) = known.ways.get_mut(nic.index()) else { continue };
            let was_up = way.up;
            way.check(now, probing.interval);
            if was_up != way.up {
                self.changed.insert(neighbour);
            }
            if !way.waiting && way.probe_at(now, probing.interval, IDLE, used) <= now {
                self.probe_now(neighbour, nic);
            }
            self.plan(now, neighbour, nic);
        }
    }
    /// What was sent by this way until then has come, or does not come: a probe that was sent then has been answered.
    pub fn settled(&self, neighbour: NeighbourId, nic: NicId) -> Option<Instant> {
        self.way(neighbour, nic)?.answered
    }
    /// All ways whose worth is another than was told before.
    pub fn take_changes(&mut self) -> Vec<(NeighbourId, NicId, PathEstimate)> {
        let mut changes = Vec::new();
        while let Some(neighbour) = self.changed.pop_first() {
            let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { continue };
            let of = |up: bool| {
                let ways = known.ways.iter().flatten().filter(|way| way.up || !up);
                ways.filter_map(|way| way.estimator.shortest()).min()
            };
            let common = of(true).or_else(|| of(false));
            for (at, way) in known.ways.iter_mut().enumerate() {
                let Some(way) = way else { continue };
                let estimate = way.estimator.estimate(way.up, common);
                if way.told != Some(estimate) {
                    way.told = Some(estimate);
                    changes.push((neighbour, NicId(at as u8), estimate));
                }
            }
        }
        changes
    }
    /// Replies to nothing that was asked: late ones, and made up ones.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn way(&self, neighbour: NeighbourId, nic: NicId) -> Option<&ProbedPath> {
        self.neighbours.get(neighbour.0 as usize)?.as_ref()?.ways.get(nic.index())?.as_deref()
    }
    fn way_mut(&mut self, neighbour: NeighbourId, nic: NicId) -> Option<&mut ProbedPath> {
        self.neighbours.get_mut(neighbour.0 as usize)?.as_mut()?.ways.get_mut(nic.index())?.as_deref_mut()
    }
    /// A probe is to be sent as soon as the card is free.
    fn probe_now(&mut self, neighbour: NeighbourId, nic: NicId) {
        if let Some(way) = self.way_mut(neighbour, nic)
            && !std::mem::replace(&mut way.waiting, true)
            && let Some(waiting) = self.waiting.get_mut(nic.index())
        {
            waiting.push_back(neighbour);
        }
    }
    fn plan_all(&mut self, now: Instant, neighbour: NeighbourId) {
        for nic in (0..MAX_NICS as u8).map(NicId) {
            self.plan(now, neighbour, nic);
        }
    }
    /// Puts the next thing that happens to a way into the agenda.
    fn plan(&mut self, now: Instant, neighbour: NeighbourId, nic: NicId) {
        let Probing { interval, .. } = self.probing;
        let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let used = known.used;
        let Some(Some(way)) = known.ways.get_mut(nic.index()) else { return };
        self.agenda.remove(&(way.at, neighbour, nic));
        let probe = (!way.waiting).then(|| way.probe_at(now, interval, IDLE, used));
        if let Some(at) = probe.into_iter().chain(way.lost_at(interval)).min() {
            way.at = at;
            self.agenda.insert((at, neighbour, nic));
        }
    }
}
