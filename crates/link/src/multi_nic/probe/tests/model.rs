//! Two hosts and the paths between them in virtual time: a NIC, a bottleneck with a queue, a delay with
//! jitter.

use super::super::*;
use crate::multi_nic::{NeighbourId, NicId};
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Serialiser, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::VecDeque;

pub const PEER: NeighbourId = NeighbourId(1);
const START: Instant = Instant::from_nanos(10_000_000_000);
const FRAME: ByteCount = ByteCount::new(1_538);

/// A path.
pub struct ModelPath {
    pub(super) nic: Serialiser,
    pub(super) bottleneck: Serialiser,
    pub buffer: ByteCount,
    pub delay: Span,
    pub jitter: Span,
    pub loss: f64,
    pub alive: bool,
    /// Maximum sending rate of the application; none: unlimited.
    pub load: Option<Rate>,
    pub(super) free: Instant,
    pub(super) last: Instant,
    pub(super) arrivals: VecDeque<(Instant, Option<Packet>)>,
    pub(super) replies: VecDeque<(Instant, Packet)>,
    /// Queueing delay of each frame.
    pub queued: Vec<Span>,
    pub delivered: u64,
}

impl ModelPath {
    pub fn new(nic: Rate, bottleneck: Rate, delay: Span) -> ModelPath {
        ModelPath {
            nic: Serialiser::new(nic),
            bottleneck: Serialiser::new(bottleneck),
            buffer: ByteCount::new(2_000_000),
            delay,
            jitter: Span::ZERO,
            loss: 0.0,
            alive: true,
            load: None,
            free: Instant::ZERO,
            last: Instant::ZERO,
            arrivals: VecDeque::new(),
            replies: VecDeque::new(),
            queued: Vec::new(),
            delivered: 0,
        }
    }
    pub fn set_rate(&mut self, rate: Rate) {
        self.bottleneck.set_rate(rate);
    }
    fn send(&mut self, now: Instant, bytes: ByteCount, probe: Option<Packet>, rng: &mut RandomStream) {
        let out = self.nic.send(now, bytes);
        let wait = self.bottleneck.busy_until().since(out);
        self.queued.push(wait);
        let lost = rng.chance(self.loss);
        if !self.alive || lost || self.bottleneck.rate().bytes_in(wait) > self.buffer {
            return;
        }
        let jitter = Span::from_nanos(rng.below(self.jitter.as_nanos() + 1));
        self.last = self.last.max(self.bottleneck.send(out, bytes) + self.delay + jitter);
        self.arrivals.push_back((self.last, probe));
    }
}

/// Both hosts.
pub struct Model {
    pub now: Instant,
    pub prober: Prober,
    responder: Responder,
    pub paths: Vec<ModelPath>,
    pub estimates: Vec<Option<PathEstimate>>,
    /// Time, NIC, estimate.
    pub history: Vec<(Instant, usize, PathEstimate)>,
    rng: RandomStream,
    /// Offset of the other host's clock, in ns.
    behind: u64,
}

pub fn ours(at: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 1, at as u8])
}
pub fn theirs(at: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 2, at as u8])
}

impl Model {
    pub fn new(seed: u64, paths: Vec<ModelPath>) -> Model {
        let probing = Probing { interval: Span::from_millis(25), starts_up: false, hops: 2 };
        let mut prober = Prober::new(probing);
        for (at, path) in paths.iter().enumerate() {
            let nic = NicId(at as u8);
            let (from, to, nominal) = (ours(at), theirs(at), path.nic.rate());
            let path_to = PathTo { neighbour: PEER, nic, from, to, nominal };
            prober.add(START, path_to).expect("within the limit");
        }
        Model {
            now: START,
            prober,
            responder: Responder::new(),
            estimates: vec![None; paths.len()],
            history: Vec::new(),
            paths,
            rng: RandomStream::new(seed, "model"),
            behind: 3_000_000_000,
        }
    }
    pub fn run(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(at) = self.next().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }
    /// The current rate of the path in Mbit/s.
    pub fn rate(&self, at: usize) -> f64 {
        self.estimates[at].map_or(0.0, |estimate| estimate.rate.as_mbit_f64())
    }
    pub fn up(&self, at: usize) -> bool {
        self.estimates[at].is_some_and(|estimate| estimate.up)
    }
    /// Clears the statistics.
    pub fn clear(&mut self) {
        self.history.clear();
        for path in &mut self.paths {
            path.queued.clear();
            path.delivered = 0;
        }
    }
    /// A percentile of the queueing delay.
    pub fn queued(&mut self, at: usize, percent: usize) -> Span {
        let queued = &mut self.paths[at].queued;
        queued.sort_unstable();
        queued
            .get((queued.len() * percent / 100).min(queued.len().saturating_sub(1)))
            .copied()
            .unwrap_or_default()
    }

    fn sends_at(&self, at: usize) -> Option<Instant> {
        let path = &self.paths[at];
        let idle = path.nic.busy_until();
        match self.prober.wants(NicId(at as u8)) {
            true => Some(idle),
            false => (self.up(at) && path.load != Some(Rate::default())).then(|| path.free.max(idle)),
        }
    }
    fn next(&self) -> Option<Instant> {
        let of = |at: usize| {
            let path = &self.paths[at];
            let arrival = path.arrivals.front().map(|front| front.0);
            [arrival, path.replies.front().map(|front| front.0), self.sends_at(at)].into_iter().flatten()
        };
        (0..self.paths.len()).flat_map(of).chain(self.prober.deadline()).min()
    }
    fn step(&mut self) {
        let now = self.now;
        for (at, path) in self.paths.iter_mut().enumerate() {
            let nic = NicId(at as u8);
            while path.arrivals.front().is_some_and(|front| front.0 <= now)
                && let Some((_, probe)) = path.arrivals.pop_front()
            {
                path.delivered += 1;
                let Some(packet) = probe else {
                    self.responder.on_frame(nic, ours(at), FRAME);
                    continue;
                };
                let Some(Ok(ProbeMessage::Probe(probe))) = ProbeMessage::of(&packet) else {
                    panic!("not a probe")
                };
                let clock = Instant::from_nanos(now.as_nanos().wrapping_sub(self.behind));
                if let Some(reply) = self.responder.on_probe(clock, nic, &packet, probe)
                    && path.alive
                    && !self.rng.chance(path.loss)
                {
                    path.replies.push_back((now + path.delay, reply));
                }
            }
            while path.replies.front().is_some_and(|front| front.0 <= now)
                && let Some((_, reply)) = path.replies.pop_front()
            {
                assert_eq!(self.prober.on_packet(now, nic, &reply), Some(true));
            }
        }
        if self.prober.deadline().is_some_and(|at| at <= now) {
            self.prober.on_deadline(now);
            assert!(self.prober.deadline().is_none_or(|at| at > now), "a deadline in the past");
        }
        for (_, nic, estimate) in self.prober.take_changes() {
            self.estimates[nic.index()] = Some(estimate);
            self.history.push((now, nic.index(), estimate));
        }
        for at in 0..self.paths.len() {
            if self.sends_at(at).is_none_or(|at| at > now) {
                continue;
            }
            let nic = NicId(at as u8);
            let path = &mut self.paths[at];
            if let Some(packet) = self.prober.poll(now, nic, ByteCount::ZERO) {
                let bytes = crate::pacing::wire_len(packet.len());
                path.send(now, bytes, Some(packet), &mut self.rng);
                continue;
            }
            let allowed = self.estimates[at].map_or(Rate::default(), |estimate| estimate.rate);
            let pace = path.load.map_or(allowed, |load| load.min(allowed));
            path.free = path.free.max(now) + pace.time_for(FRAME);
            self.prober.on_sent(now, PEER, nic, FRAME);
            path.send(now, FRAME, None, &mut self.rng);
        }
    }
}
