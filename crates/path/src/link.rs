//! A link: in each direction a queue, a rate, and a propagation delay.

use crate::{
    Cx, DropReason, Duplex, ElementDirection, Inspection, Port, QueueLimit, QueuePeak, QueueReading,
    TransmitQueue,
};
use farpace_units::{ByteCount, Instant, Rate, Serialiser, Span};
use farpace_wire::Packet;
use std::collections::VecDeque;
use thiserror::Error;

/// A link between two ports. Both directions work at the same time (full duplex).
pub type Link = Duplex<LinkDirection>;

impl Link {
    /// A link with the same properties in both directions.
    ///
    /// # Errors
    /// See [`LinkDirection::new`].
    pub fn symmetric(config: LinkConfig) -> Result<Self, LinkError> {
        Ok(Duplex::new(LinkDirection::new(config)?, LinkDirection::new(config)?))
    }
}

/// What a frame takes on the link beyond its bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Added to each frame.
    pub overhead: ByteCount,
    /// Shorter frames are padded to this, before the overhead is added.
    pub minimum: ByteCount,
}

impl Framing {
    /// Ethernet: 24 B for checksum (4), preamble with start delimiter (8) and gap (12); at least 60 B before
    /// the checksum (IEEE 802.3 §3.1.1, §4.4.2).
    pub const ETHERNET: Framing = Framing { overhead: ByteCount::new(24), minimum: ByteCount::new(60) };
    /// Only the bytes in memory.
    pub const NONE: Framing = Framing { overhead: ByteCount::ZERO, minimum: ByteCount::ZERO };

    /// What a frame of `len` bytes takes on the link.
    pub fn wire_len(self, len: ByteCount) -> ByteCount {
        len.max(self.minimum) + self.overhead
    }
    /// What a packet takes; for a super-segment, the sum of the frames that it is cut into.
    #[inline]
    pub fn wire_len_of(self, packet: &Packet) -> ByteCount {
        let more = packet.segments() as u64 - 1;
        let repeated = ByteCount::of_len(packet.headers().len()) + self.overhead;
        self.wire_len(packet.len()) + ByteCount::new(repeated.get() * more)
    }
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Rate; `None` is infinitely fast, so that nothing ever queues.
    pub rate: Option<Rate>,
    /// From the last bit sent to the last bit received.
    pub delay: Span,
    /// Limit of the queue.
    pub queue: QueueLimit,
    /// What a frame takes on the link.
    pub framing: Framing,
}

/// Why a link is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// No packet would ever arrive.
    #[error("the rate of a link must be above 0 bit/s")]
    ZeroRate,
    /// No packet would ever enter.
    #[error("the queue of a link must hold at least one packet: it counts the frame that is being sent")]
    ZeroQueue,
}

/// What has happened in one direction of a link so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets accepted.
    pub packets: u64,
    /// Their bytes, without framing.
    pub bytes: ByteCount,
    /// Their bytes on the link, with framing.
    pub wire_bytes: ByteCount,
    /// Packets dropped because the queue was full.
    pub drops: u64,
    /// Most packets in the queue at one time.
    pub peak_packets: u64,
    /// Most bytes in the queue at one time.
    pub peak_bytes: ByteCount,
}

/// One direction of a [`Link`]: first in, first out, so that the arrival of a packet at the far end is known
/// when it comes in. The queue is computed on demand, by moving an index past all packets that have left.
#[derive(Clone, Debug)]
pub struct LinkDirection {
    config: LinkConfig,
    max_bytes: u64,
    max_packets: u64,
    serialiser: Option<Serialiser>,
    /// Queued and in propagation, in order.
    inside: VecDeque<Inside>,
    /// The arrival of the first of `inside`, or [`Instant::FAR_FUTURE`].
    next_arrival: Instant,
    /// So many from the front of `inside` have left the near end completely.
    departed: usize,
    /// Bytes of those that have not.
    queued_bytes: u64,
    /// The host at the near end asks it for room.
    asked: Option<TransmitQueue>,
    stats: LinkStats,
    peak: QueuePeak,
}

#[derive(Clone, Debug)]
struct Inside {
    /// At the far end; it left the near end `delay` earlier.
    arrival: Instant,
    len: u64,
    packet: Packet,
}

impl LinkDirection {
    /// An idle direction.
    ///
    /// # Errors
    /// A rate of zero, or a queue that holds nothing.
    pub fn new(config: LinkConfig) -> Result<Self, LinkError> {
        if config.rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
            return Err(LinkError::ZeroRate);
        }
        let (max_bytes, max_packets) = config.queue.bounds();
        if max_bytes == 0 || max_packets == 0 {
            return Err(LinkError::ZeroQueue);
        }
        Ok(LinkDirection {
            config,
            max_bytes,
            max_packets,
            serialiser: config.rate.map(Serialiser::new),
            inside: VecDeque::new(),
            next_arrival: Instant::FAR_FUTURE,
            departed: 0,
            queued_bytes: 0,
            asked: None,
            stats: LinkStats::default(),
            peak: QueuePeak::default(),
        })
    }
    /// The queue is the transmit queue of the host at the near end, which asks it for room. Its limit is that
    /// of this link.
    #[must_use]
    pub fn asked_by(mut self, host: Option<TransmitQueue>) -> Self {
        self.asked = host;
        self
    }
    /// The configuration.
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }
    /// What has happened so far.
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }
    /// How long the link has been sending, or will be sending what it has accepted.
    pub fn busy(&self) -> Span {
        self.config.rate.map_or(Span::ZERO, |rate| rate.time_for(self.stats.wire_bytes))
    }
    /// What is in the queue at `now` (see [`QueueLimit`]), as packets and bytes.
    pub fn queue(&mut self, now: Instant) -> (u64, ByteCount) {
        self.find_departed(now);
        (self.queued_packets(), ByteCount::new(self.queued_bytes))
    }
    /// How long the queue at `now` takes to drain; the frame that is being sent counts in full.
    pub fn drains_in(&mut self, now: Instant) -> Span {
        let (_, bytes) = self.queue(now);
        self.config.rate.map_or(Span::ZERO, |rate| rate.time_for(bytes))
    }

    /// The most in the queue since the last call, and the longest wait of a packet that came since then.
    pub fn take_peak(&mut self, now: Instant) -> QueueReading {
        let (packets, bytes) = if self.serialiser.is_some() { self.queue(now) } else { Default::default() };
        self.peak.take(packets, bytes)
    }

    /// Emits what has arrived at the far end.
    fn arrive(&mut self, out: Port, cx: &mut Cx<'_>) {
        let now = cx.now();
        while let Some(inside) = self.inside.front() {
            self.next_arrival = inside.arrival;
            if inside.arrival > now {
                return;
            }
            if let Some(inside) = self.inside.pop_front() {
                // It has departed, though no call has updated the index since.
                match self.departed.checked_sub(1) {
                    Some(rest) => self.departed = rest,
                    None => self.queued_bytes -= inside.len,
                }
                cx.emit(out, inside.packet);
            }
        }
        self.next_arrival = Instant::FAR_FUTURE;
    }
    fn queued_packets(&self) -> u64 {
        (self.inside.len() - self.departed) as u64
    }
    fn find_departed(&mut self, now: Instant) {
        let horizon = now + self.config.delay;
        while let Some(inside) = self.inside.get(self.departed)
            && inside.arrival <= horizon
        {
            self.queued_bytes -= inside.len;
            self.departed += 1;
        }
    }
}

impl ElementDirection for LinkDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, mut packet: Packet, _out: Port, cx: &mut Cx<'_>) {
        packet.depart();
        let now = cx.now();
        let len = packet.len().get();
        self.find_departed(now);
        let bytes = self.queued_bytes + len;
        let packets = self.queued_packets() + 1;
        if bytes > self.max_bytes || packets > self.max_packets {
            self.stats.drops += 1;
            if let Some(host) = &self.asked {
                host.came(packet.len());
            }
            cx.drop(packet, DropReason::QueueFull);
            return;
        }
        let wire_bytes = self.config.framing.wire_len_of(&packet);
        let departure = match (&mut self.serialiser, self.config.rate) {
            (Some(serialiser), Some(rate)) => {
                let departure = serialiser.send(now, wire_bytes);
                packet.enter_queue(now);
                let wait = departure.since(now) - rate.time_for(wire_bytes);
                self.peak.waited(packet.leave_queue(now + wait));
                departure
            }
            _ => now,
        };
        if let Some(host) = &self.asked {
            host.took(now, packet.len(), departure);
        }
        let arrival = departure + self.config.delay;
        if self.inside.is_empty() {
            self.next_arrival = arrival;
        }
        self.inside.push_back(Inside { arrival, len, packet });
        self.queued_bytes = bytes;
        let stats = &mut self.stats;
        stats.packets += 1;
        stats.bytes += ByteCount::new(len);
        stats.wire_bytes += wire_bytes;
        // Without a rate nothing ever waits, though packets of one instant are here together.
        if self.serialiser.is_some() {
            stats.peak_packets = stats.peak_packets.max(packets);
            stats.peak_bytes = stats.peak_bytes.max(ByteCount::new(bytes));
            self.peak.holds(packets, ByteCount::new(bytes));
        }
    }
    #[inline]
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        if self.next_arrival <= cx.now() {
            self.arrive(out, cx);
        }
    }
    fn deadline(&self) -> Option<Instant> {
        (self.next_arrival != Instant::FAR_FUTURE).then_some(self.next_arrival)
    }
    fn held(&self) -> u64 {
        self.inside.len() as u64
    }
    fn inspect(&self) -> Inspection {
        let s = &self.stats;
        vec![
            ("packets", s.packets.to_string()),
            ("bytes", s.bytes.to_string()),
            ("drops", s.drops.to_string()),
            ("peak queue", format!("{} packets", s.peak_packets)),
            ("peak queue bytes", s.peak_bytes.to_string()),
            ("busy", self.busy().to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Element;
    use crate::harness::{Harness, packet};
    use farpace_units::Packets;
    use proptest::prelude::*;

    const CONFIG: LinkConfig = LinkConfig {
        rate: Some(Rate::from_mbit(1_000)),
        delay: Span::from_millis(5),
        queue: QueueLimit::Unlimited,
        framing: Framing::ETHERNET,
    };

    fn link(config: LinkConfig) -> Harness<Link> {
        Harness::new(Link::symmetric(config).unwrap())
    }

    /// Breaks: the transmission time of a full frame (1514 B + 24 B at 1 Gbit/s) and of a padded short one
    /// (54 B, 60 + 24 on the link).
    #[test]
    fn a_frame_takes_its_transmission_time_and_the_delay() {
        for (payload, wire_ns) in [(1_460, 1_538 * 8), (0, 84 * 8)] {
            let mut harness = link(CONFIG);
            harness.packet(Instant::from_nanos(100), Port(0), packet(1, payload));
            harness.run();
            assert_eq!(harness.emitted[0].0, Instant::from_nanos(100 + wire_ns + 5_000_000));
            assert_eq!(harness.emitted[0].1, Port(1));
        }
    }

    /// Breaks: propagation counts as queueing, or the frame that is being sent does not.
    #[test]
    fn the_queue_holds_packets_that_have_not_left() {
        let mut harness = link(CONFIG);
        for n in 0..3 {
            harness.packet(Instant::ZERO, Port(0), packet(n, 1_460));
        }
        for (at, packets) in [(0, 3), (12_303, 3), (12_304, 2), (24_608, 1), (36_911, 1), (36_912, 0)] {
            let (queued, bytes) = harness.element.direction_mut(Port(0)).queue(Instant::from_nanos(at));
            assert_eq!((queued, bytes.get()), (packets, packets * 1_514), "at {at} ns");
        }
        assert_eq!(harness.element.held(), 3, "all are in propagation");
        assert_eq!(
            harness.element.direction_mut(Port(1)).queue(Instant::ZERO).0,
            0,
            "the other direction is its own"
        );
        harness.run();
        let direction = harness.element.direction(Port(0));
        assert_eq!(
            (direction.stats().peak_packets, direction.stats().peak_bytes),
            (3, ByteCount::new(4_542))
        );
        assert_eq!(direction.busy(), Span::from_nanos(36_912));
    }

    /// Breaks: impossible links are built, and a run hangs on them.
    #[test]
    fn impossible_links_are_refused() {
        let of = |config| Link::symmetric(config).map(drop);
        let zero_rate = LinkConfig { rate: Some(Rate::from_bits_per_sec(0)), ..CONFIG };
        assert_eq!(of(zero_rate), Err(LinkError::ZeroRate));
        for queue in [QueueLimit::Packets(Packets::ZERO), QueueLimit::Bytes(ByteCount::ZERO)] {
            assert_eq!(of(LinkConfig { queue, ..CONFIG }), Err(LinkError::ZeroQueue));
        }
    }

    proptest! {
        /// Breaks: the law that n back-to-back frames take exactly their total at any rate.
        #[test]
        fn back_to_back_frames_take_their_total(
            rate in 1_000u64..100_000_000_000,
            payloads in prop::collection::vec(0usize..1_460, 1..80),
        ) {
            let rate = Rate::from_bits_per_sec(rate);
            let mut harness = link(LinkConfig { rate: Some(rate), ..CONFIG });
            for payload in &payloads {
                harness.packet(Instant::ZERO, Port(1), packet(0, *payload));
            }
            harness.run();
            let serialiser: u64 = payloads.iter().map(|p| (p + 54).max(60) as u64 + 24).sum();
            let exact = u128::from(serialiser) * 8 * 1_000_000_000 / u128::from(rate.bits_per_sec());
            let last = harness.emitted.last().unwrap().0;
            prop_assert_eq!(u128::from(last.as_nanos()), exact + 5_000_000);
        }

        /// Breaks: a queue exceeds its limit, or drops what would fit. The queue is recounted here from the
        /// times at which the packets that got through have left.
        #[test]
        fn the_limit_is_exact(
            arrivals in prop::collection::vec((0u64..30_000, 0usize..1_460), 1..120),
            limit in 1u64..12,
            in_bytes: bool,
        ) {
            let queue = if in_bytes {
                QueueLimit::Bytes(ByteCount::new(limit * 700))
            } else {
                QueueLimit::Packets(Packets::new(limit as u32))
            };
            let mut serialiser = Serialiser::new(Rate::from_mbit(1_000));
            let mut inside: Vec<(Instant, u64)> = vec![];
            let mut harness = link(LinkConfig { queue, ..CONFIG });
            let mut now = Instant::ZERO;
            for (gap, payload) in arrivals {
                now += Span::from_nanos(gap);
                let len = payload as u64 + 54;
                inside.retain(|(left, _)| *left > now);
                let fits = if in_bytes {
                    inside.iter().map(|(_, len)| len).sum::<u64>() + len <= limit * 700
                } else {
                    (inside.len() as u64) < limit
                };
                let drops = harness.dropped.len();
                harness.packet(now, Port(0), packet(0, payload));
                prop_assert_eq!(harness.dropped.len() == drops, fits);
                if fits {
                    inside.push((serialiser.send(now, ByteCount::new(len.max(60) + 24)), len));
                }
            }
            prop_assert!(harness.dropped.iter().all(|(_, reason)| *reason == DropReason::QueueFull));
        }
    }
}
