//! A bottleneck between two connections: a line of one rate with a drop-tail queue, a delay, losses by
//! chance.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use crate::common::{drain, expire};
use bytes::Bytes;
use farpace_tcp::config::Settings;
use farpace_tcp::{Connection, Ecn, Ports, Segment};
use farpace_units::{ByteCount, Instant, RandomStream, Rate, Seq, Serialiser, Span};
use std::collections::BTreeMap;

/// Bytes of headers on the line: IPv4, TCP with timestamps, Ethernet without preamble.
pub const HEADERS: u64 = 66;
/// Payload of a full segment.
pub const MSS: u64 = 1448;

/// What can be chosen of the path.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub rate: Rate,
    /// Round trip without queue.
    pub rtt: Span,
    /// Queue in bytes.
    pub buffer: u64,
    /// Part of the segments that are lost by chance.
    pub loss: f64,
    /// A queue of more bytes than this marks what comes.
    pub mark_above: u64,
    /// Each so many-th segment is marked; zero: none.
    pub mark_every: u64,
}

impl Path {
    pub fn new(mbit: u64, rtt_ms: u64) -> Self {
        let (rate, rtt) = (Rate::from_mbit(mbit), Span::from_millis(rtt_ms));
        Path { rate, rtt, buffer: rate.bytes_in(rtt).get(), loss: 0.0, mark_above: u64::MAX, mark_every: 0 }
    }

    /// Bandwidth-delay product in bytes on the line.
    pub fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt).get()
    }

    /// The payload rate when the line is full, bit/s.
    pub fn goodput(&self) -> f64 {
        self.rate.bits_per_sec() as f64 * MSS as f64 / (MSS + HEADERS) as f64
    }
}

/// One look at the sender and the queue.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub at: Instant,
    pub delivered: ByteCount,
    /// Queue in bytes, the segment on the line included.
    pub queue: u64,
}

enum Event {
    ToReceiver(Segment),
    ToSender(Segment),
}

/// Two connections and the path between them.
pub struct World {
    pub path: Path,
    pub now: Instant,
    pub sender: Connection,
    receiver: Connection,
    line: Serialiser,
    /// Ends of what stands in the queue.
    departures: std::collections::VecDeque<(Instant, u64)>,
    queue: u64,
    pub drops: u64,
    sent: u64,
    /// Most segments that left at one instant.
    pub largest_burst: usize,
    rng: RandomStream,
    events: BTreeMap<(Instant, u64), Event>,
    number: u64,
    delivered: ByteCount,
    /// The application has something to send.
    pub greedy: bool,
    pub looks: Vec<Look>,
    next_look: Instant,
}

impl World {
    pub fn new(path: Path, settings: &Settings) -> Self {
        let config = settings.resolve().unwrap();
        let now = Instant::from_nanos(1_000_000);
        let mut sender = Connection::connect(now, &config, Ports { local: 1, remote: 2 }, Seq::new(77));
        let syn = drain(&mut sender, now, 1).remove(0).segment;
        let peer = Settings {
            ecn: Some(config.ecn),
            receive_buffer: Some(ByteCount::new(1 << 29)),
            ..Settings::default()
        };
        let config = peer.resolve().unwrap();
        let receiver = Connection::accept(now, &config, Ports { local: 2, remote: 1 }, Seq::new(99), &syn);
        let mut world = World {
            path,
            now: now + path.rtt / 2,
            sender,
            receiver,
            line: Serialiser::new(path.rate),
            departures: Default::default(),
            queue: 0,
            drops: 0,
            sent: 0,
            largest_burst: 0,
            rng: RandomStream::new(7, "losses"),
            events: BTreeMap::new(),
            number: 0,
            delivered: ByteCount::ZERO,
            greedy: true,
            looks: Vec::new(),
            next_look: Instant::ZERO,
        };
        world.receive(None);
        world
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.number += 1;
        self.events.insert((at, self.number), event);
    }

    fn send(&mut self) {
        if self.greedy && self.sender.write_room().get() > 1 << 20 {
            self.sender.write(&mut Bytes::from_static(&[0; 1 << 20]));
        }
        let segments = drain(&mut self.sender, self.now, 64);
        self.largest_burst = self.largest_burst.max(segments.len());
        for mut out in segments {
            while self.departures.front().is_some_and(|(end, _)| *end <= self.now) {
                self.queue -= self.departures.pop_front().unwrap().1;
            }
            let size = out.segment.payload.len() as u64 + HEADERS;
            let lost = self.rng.chance(self.path.loss);
            if lost || self.queue + size > self.path.buffer + MSS + HEADERS {
                self.drops += 1;
                continue;
            }
            self.sent += 1;
            let by_count = self.path.mark_every > 0 && self.sent.is_multiple_of(self.path.mark_every);
            if out.segment.ecn == Ecn::Ect0 && (by_count || self.queue > self.path.mark_above) {
                out.segment.ecn = Ecn::Ce;
            }
            let end = self.line.send(self.now, ByteCount::new(size));
            self.queue += size;
            self.departures.push_back((end, size));
            self.at(end + self.path.rtt / 2, Event::ToReceiver(out.segment));
        }
    }

    fn receive(&mut self, segment: Option<Segment>) {
        if let Some(segment) = segment {
            self.receiver.on_segment(self.now, segment);
        }
        self.receiver.read(|_| {});
        self.delivered = self.receiver.counters().bytes_received;
        for out in drain(&mut self.receiver, self.now, 64) {
            let arrival = self.now + self.path.rtt / 2;
            self.at(arrival, Event::ToSender(out.segment));
        }
    }

    /// Runs until `end`, with a look at everything each 10 ms.
    pub fn run_until(&mut self, end: Instant) {
        loop {
            let event = self.events.keys().next().map(|k| k.0);
            let ours = self.sender.deadline().map(|d| d.0);
            let theirs = self.receiver.deadline().map(|d| d.0);
            let next = [event, ours, theirs].into_iter().flatten().min().unwrap_or(end).min(end);
            self.now = self.now.max(next);
            if self.now >= end {
                return;
            }
            if theirs == Some(next) {
                let acks = expire(&mut self.receiver, self.now, 64);
                let arrival = self.now + self.path.rtt / 2;
                acks.into_iter().for_each(|a| self.at(arrival, Event::ToSender(a.segment)));
            } else if event == Some(next) {
                match self.events.pop_first().unwrap().1 {
                    Event::ToReceiver(segment) => self.receive(Some(segment)),
                    Event::ToSender(segment) => {
                        self.sender.on_segment(self.now, segment);
                        self.send();
                    }
                }
            } else {
                self.sender.on_deadline(self.now);
                self.send();
                let law = self.sender.deadline().is_none_or(|(at, _)| at > self.now);
                assert!(law, "deadline law: {:?} at {}", self.sender.deadline(), self.now);
            }
            self.look();
        }
    }

    pub fn run(&mut self, time: Span) {
        self.run_until(self.now + time);
    }

    /// The application has something to send from now on, or nothing more.
    pub fn set_greedy(&mut self, greedy: bool) {
        self.greedy = greedy;
        self.send();
    }

    /// Writes so much and no more.
    pub fn write(&mut self, len: usize) {
        self.sender.write(&mut Bytes::from(vec![0; len]));
        self.send();
    }

    fn look(&mut self) {
        if self.now < self.next_look {
            return;
        }
        self.next_look = self.now + Span::from_millis(10);
        while self.departures.front().is_some_and(|(end, _)| *end <= self.now) {
            self.queue -= self.departures.pop_front().unwrap().1;
        }
        self.looks.push(Look { at: self.now, delivered: self.delivered, queue: self.queue });
    }

    /// The looks from `from` on.
    pub fn since(&self, from: Span) -> impl Iterator<Item = &Look> {
        self.looks.iter().filter(move |l| l.at >= Instant::ZERO + from)
    }

    /// Part of the line that was used from `from` on.
    pub fn utilisation(&self, from: Span) -> f64 {
        let mut looks = self.since(from);
        let first = looks.next().unwrap();
        let last = looks.last().unwrap();
        let bits = (last.delivered - first.delivered).bits() as f64;
        bits / last.at.since(first.at).as_secs_f64() / self.path.goodput()
    }
}
