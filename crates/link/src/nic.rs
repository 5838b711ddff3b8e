//! A NIC that paces: one direction of a link whose transmissions a scheduler controls.

use crate::pacing::{
    ConfigError, EnqueueRefusal, GapFrames, NamedStats, Next, Pacer, PacingConfig, on_the_line,
};
use farpace_path::{Backlog, Cx, DropReason, ElementDirection, Inspection, Port};
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
    line: Serialiser,
    /// When the next frame can be fetched.
    device: Serialiser,
    delay: Span,
    gaps: GapFrames,
    /// The NIC's own address: the source address of the first packet.
    mac: Option<MacAddr>,
    /// What is to be done next.
    turn: NextFetch,
    /// On the line and behind it, with arrivals at the far end, in order.
    on_the_way: VecDeque<(Instant, Packet)>,
    stats: NicStats,
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
            line: Serialiser::new(rate),
            device: Serialiser::new(config.line_rate(rate)),
            delay,
            gaps: GapFrames::new(config.gap_frame, config.mtu),
            mac: None,
            turn: NextFetch::Idle,
            on_the_way: VecDeque::new(),
            stats: NicStats::default(),
        })
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
        self.line.rate().time_for(self.pacer.backlog().bytes) + self.line.busy_until().since(now)
    }

    /// Fetches and transmits frames until the transmitter is busy or the pacer has nothing to send now.
    fn work(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        while !matches!(self.turn, NextFetch::Busy(free) if free > now) {
            self.turn = match self.pacer.dequeue(now) {
                Next::Packet { mut packet, .. } => {
                    // The hint is for this NIC only.
                    packet.set_wanted_rate(None);
                    packet.depart();
                    let bytes = on_the_line(packet.len());
                    self.stats.packets += 1;
                    self.stats.line_bytes += bytes;
                    self.send(packet, bytes, now)
                }
                Next::Gap(bytes) => {
                    // The pacer returns gaps only while packets are queued, so the address is known.
                    let frame = self.gaps.frame(self.mac.unwrap_or_default(), bytes);
                    debug_assert_eq!(on_the_line(frame.len()), bytes, "a gap that no frame fills");
                    let bytes = on_the_line(frame.len());
                    self.stats.gap_frames += 1;
                    self.stats.gap_bytes += bytes;
                    cx.made();
                    self.send(frame, bytes, now)
                }
                Next::Wait(until) => {
                    // A deadline in the past would not advance: wait for at least a nanosecond.
                    self.turn = NextFetch::Wait(until.max(now + Span::from_nanos(1)));
                    return;
                }
                Next::Empty => {
                    self.turn = NextFetch::Idle;
                    return;
                }
            };
        }
    }
    /// Starts the transmission of a frame. The transmitter must be idle.
    fn send(&mut self, frame: Packet, bytes: ByteCount, now: Instant) -> NextFetch {
        let left = self.line.send(now, bytes);
        self.on_the_way.push_back((left + self.delay, frame));
        NextFetch::Busy(self.device.send(now, bytes))
    }
    /// Emits what has arrived at the far end.
    fn arrive(&mut self, out: Port, cx: &mut Cx<'_>) {
        while let Some((at, _)) = self.on_the_way.front()
            && *at <= cx.now()
            && let Some((_, packet)) = self.on_the_way.pop_front()
        {
            cx.emit(out, packet);
        }
    }
}

impl ElementDirection for PacingNic {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, packet: Packet, out: Port, cx: &mut Cx<'_>) {
        self.mac.get_or_insert(packet.macs().0);
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
        self.arrive(out, cx);
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        match self.turn {
            NextFetch::Wait(at) | NextFetch::Busy(at) if at <= cx.now() => self.work(cx),
            _ => {}
        }
        self.arrive(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        let arrival = self.on_the_way.front().map(|(at, _)| *at);
        match (self.turn, arrival) {
            (NextFetch::Wait(at) | NextFetch::Busy(at), Some(arrival)) => Some(at.min(arrival)),
            (NextFetch::Wait(at) | NextFetch::Busy(at), None) => Some(at),
            (NextFetch::Idle, arrival) => arrival,
        }
    }
    fn held(&self) -> u64 {
        self.pacer.backlog().packets + self.on_the_way.len() as u64
    }
    fn inspect(&self) -> Inspection {
        let s = &self.stats;
        vec![
            ("packets", s.packets.to_string()),
            ("line bytes", s.line_bytes.to_string()),
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
