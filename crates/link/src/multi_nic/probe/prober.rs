//! Schedules the probes of all paths.

use super::estimator::PathEstimate;
use super::message::{ProbeMessage, Reply};
use super::probed_path::{ProbePace, ProbedPath};
use crate::multi_nic::{MAX_NICS, NeighbourId, NicId};
use farpace_units::{ByteCount, Instant, Rate, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thiserror::Error;

/// Maximum number of neighbours whose paths are probed.
pub const MAX_PROBED: usize = 4_096;
/// A neighbour to which nothing was sent for this time is idle; its paths are probed at this interval.
pub const IDLE_INTERVAL: Span = Span::from_secs(1);
/// A path by which nothing is sent, to a neighbour to which other paths carry data, is probed at this
/// interval at least: it may be needed at any time.
const STANDBY_INTERVAL: Span = Span::from_millis(250);
/// So many bytes in the time of an interval make probes cheap, and a neighbour busy: then all of its paths
/// are probed at the interval, so that what is known of them is exact.
const BUSY: ByteCount = ByteCount::new(3_000);
/// Minimum interval between probes, whatever is configured.
const MIN_INTERVAL: Span = Span::from_millis(1);

/// Parameters of probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probing {
    /// Interval between probes of a path in use; at least a millisecond.
    pub interval: Span,
    /// A new path is up. Otherwise it is down until the first reply.
    pub starts_up: bool,
    /// Assumed number of store-and-forward links, until probes of two lengths have measured the delay.
    pub hops: u8,
}

/// A path from an own NIC to one of a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTo {
    /// The neighbour.
    pub neighbour: NeighbourId,
    /// The own NIC.
    pub nic: NicId,
    /// Its address.
    pub from: MacAddr,
    /// The address of the neighbour's NIC.
    pub to: MacAddr,
    /// The rate of the slower of the two NICs.
    pub nominal: Rate,
}

/// The path cannot be probed: there are [`MAX_PROBED`] neighbours, or the NIC does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the path to {0:?} on {1:?} exceeds the limits of probing")]
pub struct NotProbed(pub NeighbourId, pub NicId);

/// Probes every path, and publishes estimates.
///
/// The contract:
/// * [`on_sent`](Prober::on_sent) is called for every data frame sent on a path, not for probes.
/// * After each call of another method, while a NIC [`wants`](Prober::wants) to send a probe and is idle,
///   [`poll`](Prober::poll) returns the probe. It must be sent immediately, before any data, because it
///   carries the time.
/// * After [`on_deadline`](Prober::on_deadline) at `now`, the deadline is later than `now`, or none.
/// * [`take_changes`](Prober::take_changes) returns changed estimates.
#[derive(Clone, Debug)]
pub struct Prober {
    probing: Probing,
    neighbours: Vec<Option<Box<ProbedNeighbour>>>,
    /// The neighbour at the other end of a path.
    by_address: BTreeMap<(NicId, MacAddr), NeighbourId>,
    agenda: BTreeSet<(Instant, NeighbourId, NicId)>,
    /// By NIC: neighbours that it is to probe now.
    waiting: [VecDeque<NeighbourId>; MAX_NICS],
    changed: BTreeSet<NeighbourId>,
    refused: u64,
}

#[derive(Clone, Debug)]
struct ProbedNeighbour {
    paths: [Option<Box<ProbedPath>>; MAX_NICS],
    used_at: Option<Instant>,
    /// A data frame was sent within [`IDLE_INTERVAL`].
    used: bool,
    /// Data sent so far, and by the time that the latest interval has begun.
    data: ByteCount,
    counted: (Instant, ByteCount),
    /// Until when it is [`BUSY`].
    busy_until: Instant,
}

impl ProbedNeighbour {
    /// Counts data. True if it is [`BUSY`] from now on, and was not.
    fn count(&mut self, now: Instant, bytes: ByteCount, interval: Span) -> bool {
        self.data += bytes;
        let (began, before) = self.counted;
        if now.since(began) >= interval {
            self.counted = (now, self.data);
        } else if self.data - before >= BUSY {
            return now >= std::mem::replace(&mut self.busy_until, now + interval * 2);
        }
        false
    }
    fn pace(&self, now: Instant, interval: Span) -> ProbePace {
        let most = if self.used { STANDBY_INTERVAL } else { IDLE_INTERVAL }.max(interval);
        ProbePace { interval, most, neighbour_used_at: self.used_at, busy: now < self.busy_until }
    }
}

impl Prober {
    /// A prober without paths.
    pub fn new(probing: Probing) -> Prober {
        let interval = probing.interval.max(MIN_INTERVAL);
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
    /// Adds a path. If it replaces one with another address or rate, the state of that is lost.
    ///
    /// # Errors
    /// There are too many paths.
    pub fn add(&mut self, now: Instant, path: PathTo) -> Result<(), NotProbed> {
        let PathTo { neighbour, nic, from, to, nominal } = path;
        let at = neighbour.0 as usize;
        if at >= MAX_PROBED || nic.index() >= MAX_NICS {
            return Err(NotProbed(neighbour, nic));
        }
        let same = |path: &ProbedPath| path.to == to && path.from == from && path.nominal == nominal;
        if self.path(neighbour, nic).is_some_and(same) {
            return Ok(());
        }
        self.remove(neighbour, nic);
        if self.neighbours.len() <= at {
            self.neighbours.resize(at + 1, None);
        }
        if let Some(slot) = self.neighbours.get_mut(at) {
            let new = || {
                Box::new(ProbedNeighbour {
                    paths: Default::default(),
                    used_at: None,
                    used: false,
                    data: ByteCount::ZERO,
                    counted: (now, ByteCount::ZERO),
                    busy_until: now,
                })
            };
            let paths = &mut slot.get_or_insert_with(new).paths;
            if let Some(slot) = paths.get_mut(nic.index()) {
                let mut path = ProbedPath::new(from, to, nominal, self.probing.hops, self.probing.starts_up);
                path.at = now;
                self.agenda.insert((now, neighbour, nic));
                *slot = Some(Box::new(path));
                self.by_address.insert((nic, to), neighbour);
            }
        }
        self.changed.insert(neighbour);
        Ok(())
    }
    /// Removes a path.
    pub fn remove(&mut self, neighbour: NeighbourId, nic: NicId) {
        let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let Some(path) = known.paths.get_mut(nic.index()).and_then(Option::take) else { return };
        self.agenda.remove(&(path.at, neighbour, nic));
        self.by_address.remove(&(nic, path.to));
        if let Some(waiting) = self.waiting.get_mut(nic.index()) {
            waiting.retain(|other| *other != neighbour);
        }
        self.changed.insert(neighbour);
    }
    /// A data frame with a wire length of `bytes` is sent.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, neighbour: NeighbourId, nic: NicId, bytes: ByteCount) {
        let interval = self.probing.interval;
        let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let was_quiet = |used_at: Option<Instant>| used_at.is_none_or(|at| now.since(at) >= interval);
        // Then the next probe is due earlier than it was.
        let mut resumes = was_quiet(known.used_at.replace(now));
        resumes |= known.count(now, bytes, interval);
        if let Some(Some(path)) = known.paths.get_mut(nic.index()) {
            path.sent.add(bytes);
            resumes |= was_quiet(path.used_at.replace(now));
        }
        if !known.used {
            known.used = true;
            for nic in (0..MAX_NICS as u8).map(NicId) {
                if self.path_mut(neighbour, nic).is_some_and(ProbedPath::begin_train) {
                    self.probe_now(neighbour, nic);
                }
            }
        }
        if resumes {
            self.schedule_all(now, neighbour);
        }
    }
    /// Handles a reply that `nic` has received from `from`. False if it matches no outstanding probe; then it
    /// is ignored.
    pub fn on_reply(&mut self, now: Instant, nic: NicId, from: MacAddr, reply: &Reply) -> bool {
        let interval = self.probing.interval;
        let neighbour = self.by_address.get(&(nic, from)).copied().filter(|_| reply.probe.nic == nic);
        let path = neighbour.and_then(|neighbour| Some((neighbour, self.path_mut(neighbour, nic)?)));
        let answered = path.filter(|(_, path)| path.to == from);
        let answered = answered.and_then(|(id, path)| path.on_reply(now, reply, interval).then_some(id));
        let Some(neighbour) = answered else {
            self.refused += 1;
            return false;
        };
        self.changed.insert(neighbour);
        let is_used = matches!(self.neighbours.get(neighbour.0 as usize), Some(Some(known)) if known.used);
        if is_used && self.path_mut(neighbour, nic).is_some_and(|path| path.begin_train() || path.retest(now))
        {
            self.probe_now(neighbour, nic);
        }
        self.schedule(now, neighbour, nic);
        true
    }
    /// Like [`on_reply`](Self::on_reply), for a frame. None: it is not a reply.
    pub fn on_packet(&mut self, now: Instant, nic: NicId, packet: &Packet) -> Option<bool> {
        match ProbeMessage::of(packet)? {
            Ok(ProbeMessage::Reply(reply)) => Some(self.on_reply(now, nic, packet.macs().0, &reply)),
            _ => None,
        }
    }
    /// True if `nic` is to send a probe as soon as it is idle.
    #[inline]
    pub fn wants(&self, nic: NicId) -> bool {
        self.waiting.get(nic.index()).is_some_and(|waiting| !waiting.is_empty())
    }
    /// The probe that `nic` sends now, `behind` a frame of this wire length that has just been sent; zero:
    /// the link was idle.
    pub fn poll(&mut self, now: Instant, nic: NicId, behind: ByteCount) -> Option<Packet> {
        let neighbour = self.waiting.get_mut(nic.index())?.pop_front()?;
        let data = self.neighbours.get(neighbour.0 as usize)?.as_ref()?.data;
        let path = self.path_mut(neighbour, nic)?;
        let packet = path.probe(now, nic, behind, data);
        if path.wants_more() {
            self.probe_now(neighbour, nic);
        }
        self.schedule(now, neighbour, nic);
        Some(packet)
    }
    /// Time of the next action other than probes that wait for a NIC. Pure.
    pub fn deadline(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, ..)| *at)
    }
    /// Handles the deadline.
    pub fn on_deadline(&mut self, now: Instant) {
        while let Some(&(at, neighbour, nic)) = self.agenda.first()
            && at <= now
        {
            self.agenda.pop_first();
            let interval = self.probing.interval;
            let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { continue };
            known.used = known.used_at.is_some_and(|at| now.since(at) < IDLE_INTERVAL);
            let pace = known.pace(now, interval);
            let Some(Some(path)) = known.paths.get_mut(nic.index()) else { continue };
            let was_up = path.up;
            path.check(now, interval);
            if was_up != path.up {
                self.changed.insert(neighbour);
            }
            if !path.waiting && path.probe_at(now, pace) <= now {
                self.probe_now(neighbour, nic);
            }
            self.schedule(now, neighbour, nic);
        }
    }
    /// The time up to which all frames sent on this path have arrived or are lost: a probe sent then has been
    /// answered.
    pub fn settled(&self, neighbour: NeighbourId, nic: NicId) -> Option<Instant> {
        self.path(neighbour, nic)?.answered
    }
    /// The recent loss rate of a path, 0 to 1; none: it was not measured yet.
    pub fn loss(&self, neighbour: NeighbourId, nic: NicId) -> Option<f64> {
        Some(self.path(neighbour, nic)?.published?.loss)
    }
    /// All paths whose estimate has changed since the last call.
    pub fn take_changes(&mut self) -> Vec<(NeighbourId, NicId, PathEstimate)> {
        let mut changes = Vec::new();
        while let Some(neighbour) = self.changed.pop_first() {
            let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { continue };
            let fits = known.paths.each_ref().map(|path| path.as_ref()?.estimator.fit());
            let of = |up: bool| {
                let paths = known.paths.iter().zip(&fits).filter_map(|(path, fit)| path.as_ref().zip(*fit));
                paths.filter(|(path, _)| path.up || !up).map(|(_, (shortest, _))| shortest).min()
            };
            let common = of(true).or_else(|| of(false));
            for (at, (path, fit)) in known.paths.iter_mut().zip(fits).enumerate() {
                let Some(path) = path else { continue };
                let estimate = path.estimator.estimate(path.up, fit, common);
                if path.published != Some(estimate) {
                    path.published = Some(estimate);
                    changes.push((neighbour, NicId(at as u8), estimate));
                }
            }
        }
        changes
    }
    /// Number of replies that matched no outstanding probe: late or forged ones.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    fn path(&self, neighbour: NeighbourId, nic: NicId) -> Option<&ProbedPath> {
        self.neighbours.get(neighbour.0 as usize)?.as_ref()?.paths.get(nic.index())?.as_deref()
    }
    fn path_mut(&mut self, neighbour: NeighbourId, nic: NicId) -> Option<&mut ProbedPath> {
        self.neighbours.get_mut(neighbour.0 as usize)?.as_mut()?.paths.get_mut(nic.index())?.as_deref_mut()
    }
    /// Requests a probe as soon as the NIC is idle.
    fn probe_now(&mut self, neighbour: NeighbourId, nic: NicId) {
        if let Some(path) = self.path_mut(neighbour, nic)
            && !std::mem::replace(&mut path.waiting, true)
            && let Some(waiting) = self.waiting.get_mut(nic.index())
        {
            waiting.push_back(neighbour);
        }
    }
    fn schedule_all(&mut self, now: Instant, neighbour: NeighbourId) {
        for nic in (0..MAX_NICS as u8).map(NicId) {
            self.schedule(now, neighbour, nic);
        }
    }
    /// Updates the entry of a path in the agenda.
    fn schedule(&mut self, now: Instant, neighbour: NeighbourId, nic: NicId) {
        let Probing { interval, .. } = self.probing;
        let Some(Some(known)) = self.neighbours.get_mut(neighbour.0 as usize) else { return };
        let pace = known.pace(now, interval);
        let Some(Some(path)) = known.paths.get_mut(nic.index()) else { return };
        self.agenda.remove(&(path.at, neighbour, nic));
        let probe = (!path.waiting).then(|| path.probe_at(now, pace));
        if let Some(at) = probe.into_iter().chain(path.fails_at(interval)).min() {
            path.at = at;
            self.agenda.insert((at, neighbour, nic));
        }
    }
}
