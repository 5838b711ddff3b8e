//! A NIC that paces: one direction of a link whose transmissions a scheduler controls.

use crate::pacing::{
    ConfigError, EnqueueRefusal, GapFrames, NamedStats, Next, Pacer, PacingConfig, wire_len,
};
use farpace_path::{
    Backlog, Cx, DropReason, ElementDirection, Inspection, Port, QueuePeak, QueueReading, TransmitQueue,
};
use farpace_units::{ByteCount, Instant, Rate, Serialiser, Span};
use farpace_wire::{MacAddr, Packet};
use std::collections::VecDeque;

/// Counters of a [`PacingNic`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NicStats {
    /// Packets sent, excluding gap frames.
    pub packets: u64,
    /// Bytes that these packets took on the wire.
    pub line_bytes: ByteCount,
    /// Gap frames sent.
    pub gap_frames: u64,
    /// Bytes that gap frames took on the wire.
    pub gap_bytes: ByteCount,
    /// Packets refused.
    pub drops: u64,
    /// Maximum number of queued packets.
    pub peak_packets: u64,
    /// Maximum number of queued bytes.
    pub peak_bytes: ByteCount,
}

/// One direction of a link behind a pacing NIC: a [`Pacer`], an Ethernet transmitter and the propagation
/// delay.
///
/// When the transmitter is idle, the NIC asks the pacer for the next frame. A gap becomes a real frame that
/// travels like a packet and ends at the far port. The frame in transmission does not count against queue
/// limits. The NIC fetches the next frame only after the previous one has been sent, so that the pacer can
/// still choose a packet that arrives meanwhile.
///
/// If the configuration sets a lower [`device_rate`](PacingConfig::device_rate), the NIC fetches frames at
/// that rate, like a device behind a slow bus. Each frame is still transmitted at the rate of the link.
pub struct PacingNic {
    pacer: Pacer,
    link: Serialiser,
    /// Models the device: when the next frame can be fetched.
    device: Serialiser,
    delay: Span,
    gaps: GapFrames,
    /// The NIC's own address: the source address of the first packet.
    mac: Option<MacAddr>,
    next_fetch: NextFetch,
    /// Frames in transmission or propagation, with their arrival times at the far end, in order.
    in_flight: VecDeque<(Instant, Packet)>,
    /// The host asks it for room.
    asked: Option<TransmitQueue>,
    stats: NicStats,
    peak: QueuePeak,
}

/// When to ask the pacer for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextFetch {
    /// When a packet arrives.
    Idle,
    /// At this time, or when a packet arrives.
    Wait(Instant),
    /// At this time and not earlier: a frame is in transmission.
    Busy(Instant),
}

impl PacingNic {
    /// An idle NIC on a link of `rate` with propagation delay `delay`.
    ///
    /// # Errors
    /// The first error in the configuration.
    pub fn new(config: &PacingConfig, rate: Rate, delay: Span) -> Result<Self, ConfigError> {
        Ok(PacingNic {
            pacer: Pacer::new(config, rate)?,
            link: Serialiser::new(rate),
            device: Serialiser::new(config.effective_rate(rate)),
            delay,
            gaps: GapFrames::new(config.gap_frame, config.mtu),
            mac: None,
            next_fetch: NextFetch::Idle,
            in_flight: VecDeque::new(),
            asked: None,
            stats: NicStats::default(),
            peak: QueuePeak::default(),
        })
    }
    /// The queue of the only class is the transmit queue of the host, which asks it for room.
    #[must_use]
    pub fn asked_by(mut self, host: Option<TransmitQueue>) -> Self {
        self.asked = host;
        self
    }
    /// The counters.
    pub const fn stats(&self) -> &NicStats {
        &self.stats
    }
    /// The counters of all classes, in the order of the configuration.
    pub fn classes(&self) -> Vec<NamedStats> {
        self.pacer.stats()
    }
    /// The queued packets.
    pub fn backlog(&self) -> Backlog {
        self.pacer.backlog()
    }
    /// Time to transmit the backlog at the rate of the link without gaps, including the rest of the frame
    /// that is in transmission.
    pub fn drains_in(&self, now: Instant) -> Span {
        self.link.rate().time_for(self.pacer.backlog().bytes) + self.link.busy_until().since(now)
    }
    /// The most that waited since the last call, and the longest time to [drain](Self::drains_in) it.
    pub fn take_peak(&mut self) -> QueueReading {
        let waiting = self.pacer.backlog();
        self.peak.take(waiting.packets, waiting.bytes)
    }

    /// Tells the host what waits.
    fn tell_host(&self) {
        if let Some(host) = &self.asked {
            let waiting = self.pacer.backlog();
            host.holds(waiting.packets, waiting.bytes);
        }
    }

    /// Fetches and transmits frames until the transmitter is busy or the pacer has nothing to send now.
    fn work(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        while !matches!(self.next_fetch, NextFetch::Busy(free) if free > now) {
            self.next_fetch = match self.pacer.dequeue(now) {
                Next::Packet { mut packet, .. } => {
                    // The hint is for this NIC only.
                    packet.set_pacing_rate(None);
                    packet.depart();
                    let bytes = wire_len(packet.len());
                    self.stats.packets += 1;
                    self.stats.line_bytes += bytes;
                    self.send(packet, bytes, now)
                }
                Next::Gap(bytes) => {
                    // The pacer returns gaps only while packets are queued, so the address is known.
                    let frame = self.gaps.frame(self.mac.unwrap_or_default(), bytes);
                    debug_assert_eq!(wire_len(frame.len()), bytes, "no frame has the length of this gap");
                    let bytes = wire_len(frame.len());
                    self.stats.gap_frames += 1;
                    self.stats.gap_bytes += bytes;
                    cx.made();
                    self.send(frame, bytes, now)
                }
                Next::Wait(until) => {
                    // A deadline in the past would not advance: wait for at least a nanosecond.
                    self.next_fetch = NextFetch::Wait(until.max(now + Span::from_nanos(1)));
                    return;
                }
                Next::Empty => {
                    self.next_fetch = NextFetch::Idle;
                    return;
                }
            };
        }
    }
    /// Starts the transmission of a frame. The transmitter must be idle.
    fn send(&mut self, frame: Packet, bytes: ByteCount, now: Instant) -> NextFetch {
        let left = self.link.send(now, bytes);
        self.in_flight.push_back((left + self.delay, frame));
        NextFetch::Busy(self.device.send(now, bytes))
    }
    /// Emits what has arrived at the far end.
    fn arrive(&mut self, out: Port, cx: &mut Cx<'_>) {
        while let Some((at, _)) = self.in_flight.front()
            && *at <= cx.now()
            && let Some((_, packet)) = self.in_flight.pop_front()
        {
            cx.emit(out, packet);
        }
    }
}

impl ElementDirection for PacingNic {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        self.mac.get_or_insert(packet.macs().0);
        if let Some(host) = &self.asked {
            host.came(packet.len());
        }
        if let Err(refused) = self.pacer.enqueue(cx.now(), packet) {
            self.stats.drops += 1;
            let why = match refused.why {
                // A class that does not exist has no queue.
                EnqueueRefusal::Full | EnqueueRefusal::UnknownClass => DropReason::QueueFull,
                EnqueueRefusal::TooLong => DropReason::TooBig,
            };
            cx.drop(refused.packet, why);
            return;
        }
        self.work(cx);
        let waiting = self.pacer.backlog();
        self.stats.peak_packets = self.stats.peak_packets.max(waiting.packets);
        self.stats.peak_bytes = self.stats.peak_bytes.max(waiting.bytes);
        self.peak.holds(waiting.packets, waiting.bytes);
        self.peak.waited(self.drains_in(cx.now()));
        self.tell_host();
        self.arrive(out, cx);
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        match self.next_fetch {
            NextFetch::Wait(at) | NextFetch::Busy(at) if at <= cx.now() => {
                self.work(cx);
                self.tell_host();
            }
            _ => {}
        }
        self.arrive(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        let arrival = self.in_flight.front().map(|(at, _)| *at);
        match (self.next_fetch, arrival) {
            (NextFetch::Wait(at) | NextFetch::Busy(at), Some(arrival)) => Some(at.min(arrival)),
            (NextFetch::Wait(at) | NextFetch::Busy(at), None) => Some(at),
            (NextFetch::Idle, arrival) => arrival,
        }
    }
    fn held(&self) -> u64 {
        self.pacer.backlog().packets + self.in_flight.len() as u64
    }
    fn inspect(&self) -> Inspection {
        let s = &self.stats;
        vec![
            ("packets", s.packets.to_string()),
            ("wire bytes", s.line_bytes.to_string()),
            ("gap frames", s.gap_frames.to_string()),
            ("gap bytes", s.gap_bytes.to_string()),
            ("drops", s.drops.to_string()),
            ("peak queue", format!("{} packets", s.peak_packets)),
            ("peak queue bytes", s.peak_bytes.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests;
