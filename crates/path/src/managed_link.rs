//! A link whose queue is managed or whose rate and delay change with time: then the arrival of a packet is
//! not known in advance, as [`LinkDirection`](crate::LinkDirection) needs it.

use crate::delay_queue::DelayQueue;
use crate::{
    Backlog, Cx, DropTail, Duplex, ElementDirection, Framing, Inspection, LinkConfig, LinkError, LinkStats,
    Opportunities, Port, QueueDiscipline, QueuePeak, QueueReading, Schedule,
};
use farpace_units::{ByteCount, Instant, Serialiser, Span};
use farpace_wire::Packet;

/// Bytes of a frame that no delivery opportunity carries.
const ETHERNET_HEADER: u64 = 14;

/// A link between two ports of which at least one direction has a managed queue or changes with time.
pub type ManagedLink = Duplex<ManagedLinkDirection>;

/// One direction of a [`ManagedLink`]: a [`QueueDiscipline`], a rate and a delay that follow a [`Schedule`],
/// and the packets in propagation. With [`DropTail`] and constant values it does exactly what
/// [`LinkDirection`](crate::LinkDirection) does, which needs half of the events.
///
/// * A frame is sent at the rate that holds when its first bit leaves: the frame that is being sent at a step
///   ends when it would have ended, and the next one has the new rate.
/// * It takes the delay that holds when its last bit leaves.
/// * After a step to a shorter delay, packets wait for those before them and arrive with them, unless
///   [`reordering`](ManagedLinkDirection::reordering) lets them overtake.
pub struct ManagedLinkDirection {
    queue: Box<dyn QueueDiscipline>,
    schedule: Schedule,
    /// In place of the rate.
    opportunities: Option<Opportunities>,
    framing: Framing,
    keeps_order: bool,
    serialiser: Option<Serialiser>,
    /// The frame that is being sent, and when it will have left.
    in_transmission: Option<(Instant, Packet)>,
    /// Latest arrival so far.
    latest: Instant,
    in_propagation: DelayQueue,
    busy: Span,
    /// Packets that arrived.
    arrived: u64,
    stats: LinkStats,
    peak: QueuePeak,
}

impl ManagedLinkDirection {
    /// An idle direction.
    pub fn new(queue: Box<dyn QueueDiscipline>, schedule: Schedule, framing: Framing) -> Self {
        ManagedLinkDirection {
            queue,
            schedule,
            opportunities: None,
            framing,
            keeps_order: true,
            serialiser: None,
            in_transmission: None,
            latest: Instant::ZERO,
            in_propagation: DelayQueue::default(),
            busy: Span::ZERO,
            arrived: 0,
            stats: LinkStats::default(),
            peak: QueuePeak::default(),
        }
    }
    /// One with a plain queue, a constant rate and a constant delay.
    ///
    /// # Errors
    /// A rate of zero, or a queue that holds nothing.
    pub fn plain(config: LinkConfig) -> Result<Self, LinkError> {
        let queue = DropTail::new(config.queue).map_err(|_| LinkError::ZeroQueue)?;
        let schedule = Schedule::constant(config.rate, config.delay).map_err(|_| LinkError::ZeroRate)?;
        Ok(ManagedLinkDirection::new(Box::new(queue), schedule, config.framing))
    }
    /// The same direction, in which packets overtake each other when the delay becomes shorter.
    #[must_use]
    pub fn reordering(self) -> Self {
        ManagedLinkDirection { keeps_order: false, ..self }
    }
    /// The same direction, in which packets leave at delivery opportunities, whatever the rate. Framing
    /// takes nothing of them.
    #[must_use]
    pub fn at_opportunities(self, opportunities: Opportunities) -> Self {
        ManagedLinkDirection { opportunities: Some(opportunities), ..self }
    }
    /// What has happened so far. Packets and bytes are those whose transmission has begun.
    pub const fn stats(&self) -> &LinkStats {
        &self.stats
    }
    /// How long the queue takes to drain: at the rate of `now`, or by the delivery opportunities that follow.
    /// The frame that is being sent counts in full.
    pub fn drains_in(&mut self, now: Instant) -> Span {
        if let Some(opportunities) = &self.opportunities {
            // The frame that is being sent has its opportunities already.
            let free = self.in_transmission.as_ref().map_or(now, |(left, _)| now.max(*left));
            let queued = self.queue.backlog();
            let headers = ByteCount::new(ETHERNET_HEADER * queued.packets);
            return opportunities.end_of(free, queued.bytes - headers).since(now);
        }
        let bytes = (self.queue.backlog() + self.transmission_load()).bytes;
        self.schedule.at(now).rate.map_or(Span::ZERO, |rate| rate.time_for(bytes))
    }
    /// The most in the queue since the last call, and the longest wait of a packet whose transmission has
    /// begun since then.
    pub fn take_peak(&mut self) -> QueueReading {
        let load = self.queue.backlog() + self.transmission_load();
        self.peak.take(load.packets, load.bytes)
    }
    /// Packets marked CE instead of being dropped.
    pub fn marked(&self) -> u64 {
        self.queue.marked()
    }

    fn transmission_load(&self) -> Backlog {
        self.in_transmission.as_ref().map_or(Backlog::default(), |(_, packet)| Backlog::of(packet))
    }

    /// Ends the transmission of frames that have left by now, and begins that of the next packets.
    fn work(&mut self, cx: &mut Cx<'_>) {
        loop {
            match self.in_transmission.take() {
                Some((left, packet)) if left > cx.now() => {
                    self.in_transmission = Some((left, packet));
                    return;
                }
                Some((left, packet)) => {
                    let mut arrival = left + self.schedule.at(left).delay;
                    if self.keeps_order {
                        self.latest = self.latest.max(arrival);
                        arrival = self.latest;
                    }
                    self.in_propagation.push(arrival, packet);
                }
                None => {
                    let Some(packet) = self.queue.dequeue(cx) else { return };
                    self.start(packet, cx.now());
                }
            }
        }
    }

    fn start(&mut self, mut packet: Packet, now: Instant) {
        let wire_bytes = self.framing.wire_len(packet.len());
        let left = match (&mut self.opportunities, self.schedule.at(now).rate) {
            (Some(opportunities), _) => opportunities.send(now, packet.network_len()),
            (None, Some(rate)) => {
                let serialiser = self.serialiser.get_or_insert(Serialiser::new(rate));
                serialiser.set_rate(rate);
                serialiser.send(now, wire_bytes)
            }
            (None, None) => now,
        };
        // An opportunity delivers at one moment: until then a packet waits.
        let begins = if self.opportunities.is_some() { left } else { now };
        self.peak.waited(packet.leave_queue(begins));
        self.busy += left.since(now);
        self.stats.packets += 1;
        self.stats.bytes += packet.len();
        self.stats.wire_bytes += wire_bytes;
        self.in_transmission = Some((left, packet));
    }
}

impl ElementDirection for ManagedLinkDirection {
    const PASSIVE: bool = false;
    fn on_packet(&mut self, mut packet: Packet, out: Port, cx: &mut Cx<'_>) {
        packet.depart();
        self.work(cx);
        self.arrived += 1;
        packet.enter_queue(cx.now());
        self.queue.enqueue(packet, self.transmission_load(), cx);
        let load = self.queue.backlog() + self.transmission_load();
        self.work(cx);
        // Without a rate nothing ever waits.
        if self.in_transmission.is_some() {
            self.stats.peak_packets = self.stats.peak_packets.max(load.packets);
            self.stats.peak_bytes = self.stats.peak_bytes.max(load.bytes);
            self.peak.holds(load.packets, load.bytes);
        }
        let inside = self.queue.backlog().packets;
        self.stats.drops = self.arrived.saturating_sub(self.stats.packets + inside);
        self.in_propagation.release(out, cx);
    }
    fn on_wake(&mut self, out: Port, cx: &mut Cx<'_>) {
        self.work(cx);
        self.stats.drops = self.arrived.saturating_sub(self.stats.packets + self.queue.backlog().packets);
        self.in_propagation.release(out, cx);
    }
    fn deadline(&self) -> Option<Instant> {
        let free = self.in_transmission.as_ref().map(|(left, _)| *left);
        match (free, self.in_propagation.due()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    fn held(&self) -> u64 {
        self.queue.backlog().packets + u64::from(self.in_transmission.is_some()) + self.in_propagation.len()
    }
    fn inspect(&self) -> Inspection {
        let s = &self.stats;
        let mut readings = vec![
            ("packets", s.packets.to_string()),
            ("bytes", s.bytes.to_string()),
            ("drops", s.drops.to_string()),
            ("marked", self.queue.marked().to_string()),
            ("peak queue", format!("{} packets", s.peak_packets)),
            ("peak queue bytes", s.peak_bytes.to_string()),
            ("busy", self.busy.to_string()),
        ];
        readings.extend(self.queue.inspect());
        readings
    }
}

#[cfg(test)]
mod tests;
