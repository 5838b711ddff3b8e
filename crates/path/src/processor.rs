//! The processor of a host: every frame that it sends or receives takes some of its time.

use crate::{Cx, DropReason, Element, Inspection, Port, QueueLimit, ends_at_port};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;
use std::collections::VecDeque;

/// What frames cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessorConfig {
    /// Time for a frame that is sent.
    pub send: Span,
    /// Time for a frame that is received.
    pub receive: Span,
    /// Time for a received TCP segment that carries only an acknowledgment.
    pub receive_ack: Span,
    /// Time for each byte of a frame, in addition: copies and checksums.
    pub per_byte: Span,
    /// Limit of the queue in each direction, the frame in work included.
    pub queue: QueueLimit,
}

/// A processor between the stack of a host (port 0) and its network (port 1). It works on one frame at a
/// time, in the order of arrival, whatever their direction. A frame goes on when its time is over.
///
/// Link-local frames, like gap frames and PAUSE, concern only the NIC: they pass at once.
#[derive(Clone, Debug)]
pub struct Processor {
    config: ProcessorConfig,
    /// When all frames inside are done.
    free: Instant,
    work: VecDeque<Work>,
    /// The frames inside, by the port at which they came in.
    waiting: [WaitingFrame; 2],
    busy: Span,
}

#[derive(Clone, Debug)]
struct Work {
    done: Instant,
    from: Port,
    packet: Packet,
}

#[derive(Clone, Copy, Debug, Default)]
struct WaitingFrame {
    packets: u64,
    bytes: ByteCount,
    peak: u64,
    served: u64,
    dropped: u64,
}

impl Processor {
    /// An idle processor.
    pub const fn new(config: ProcessorConfig) -> Self {
        let none = WaitingFrame { packets: 0, bytes: ByteCount::ZERO, peak: 0, served: 0, dropped: 0 };
        Processor { config, free: Instant::ZERO, work: VecDeque::new(), waiting: [none; 2], busy: Span::ZERO }
    }
    /// Time that all frames so far have taken.
    pub const fn busy(&self) -> Span {
        self.busy
    }

    fn cost(&self, from: Port, packet: &Packet) -> Span {
        let c = &self.config;
        let each = match from {
            Port(0) => c.send,
            _ if c.receive_ack != c.receive && packet.is_pure_ack() => c.receive_ack,
            _ => c.receive,
        };
        each + c.per_byte * packet.len().get()
    }
    fn release(&mut self, cx: &mut Cx<'_>) {
        while self.work.front().is_some_and(|work| work.done <= cx.now())
            && let Some(work) = self.work.pop_front()
        {
            let waiting = &mut self.waiting[side(work.from)];
            waiting.packets -= 1;
            waiting.bytes -= work.packet.len();
            waiting.served += 1;
            cx.emit(Port(1 - side(work.from) as u16), work.packet);
        }
    }
}

/// A runner connects only ports 0 and 1. Any other number counts as one of them.
const fn side(port: Port) -> usize {
    (port.0 & 1) as usize
}

impl Element for Processor {
    fn ports(&self) -> u16 {
        2
    }
    fn on_packet(&mut self, port: Port, packet: Packet, cx: &mut Cx<'_>) {
        if ends_at_port(&packet) {
            return cx.emit(Port(1 - side(port) as u16), packet);
        }
        let (max_bytes, max_packets) = self.config.queue.bounds();
        let cost = self.cost(port, &packet);
        let waiting = &mut self.waiting[side(port)];
        let bytes = waiting.bytes + packet.len();
        if waiting.packets >= max_packets || bytes.get() > max_bytes {
            waiting.dropped += 1;
            return cx.drop(packet, DropReason::QueueFull);
        }
        waiting.packets += 1;
        waiting.bytes = bytes;
        waiting.peak = waiting.peak.max(waiting.packets);
        self.busy += cost;
        self.free = self.free.max(cx.now()) + cost;
        self.work.push_back(Work { done: self.free, from: port, packet });
        // A frame without cost goes at once.
        self.release(cx);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.release(cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.work.front().map(|work| work.done)
    }
    fn held(&self) -> u64 {
        self.work.len() as u64
    }
    fn inspect(&self) -> Inspection {
        let [sent, received] = &self.waiting;
        let both = |of: fn(&WaitingFrame) -> u64| format!("out: {}, in: {}", of(sent), of(received));
        vec![
            ("frames", both(|w| w.served)),
            ("drops", both(|w| w.dropped)),
            ("peak queue", both(|w| w.peak)),
            ("busy", self.busy.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::{Harness, packet};
    use farpace_units::Packets;

    const CONFIG: ProcessorConfig = ProcessorConfig {
        send: Span::from_micros(10),
        receive: Span::from_micros(20),
        receive_ack: Span::from_micros(5),
        per_byte: Span::ZERO,
        queue: QueueLimit::Unlimited,
    };

    fn times(harness: &Harness<Processor>) -> Vec<(u64, u16)> {
        harness.emitted.iter().map(|(at, port, _)| (at.as_nanos() / 1_000, port.0)).collect()
    }

    /// Breaks: the processor works on two frames at a time, each direction has its own, or an ACK costs as
    /// much as data.
    #[test]
    fn one_frame_at_a_time_in_the_order_of_arrival() {
        let mut harness = Harness::new(Processor::new(CONFIG));
        for (n, (port, payload)) in [(0, 100), (1, 100), (1, 0), (0, 0)].into_iter().enumerate() {
            harness.packet(Instant::ZERO, Port(port), packet(n as u16, payload));
        }
        harness.run();
        // Sent 10, received 20, an ACK 5; an ACK that is sent costs as much as any frame.
        assert_eq!(times(&harness), [(10, 1), (30, 0), (35, 0), (45, 1)]);
        assert_eq!(harness.element.busy(), Span::from_micros(45));
        // After a pause it begins anew.
        harness.packet(Instant::ZERO + Span::from_millis(1), Port(0), packet(9, 0));
        harness.run();
        assert_eq!(times(&harness).last(), Some(&(1_010, 1)));
    }

    /// Breaks: long frames cost no more than short ones.
    #[test]
    fn bytes_cost_too() {
        let mut harness =
            Harness::new(Processor::new(ProcessorConfig { per_byte: Span::from_nanos(3), ..CONFIG }));
        harness.packet(Instant::ZERO, Port(0), packet(0, 1_000));
        harness.run();
        assert_eq!(harness.emitted[0].0.as_nanos(), 10_000 + 3 * 1_054);
    }

    /// Breaks: a full queue of one direction drops frames of the other, or one more than its limit waits.
    #[test]
    fn each_direction_has_a_limit() {
        let queue = QueueLimit::Packets(Packets::new(2));
        let mut harness = Harness::new(Processor::new(ProcessorConfig { queue, ..CONFIG }));
        for n in 0..3 {
            harness.packet(Instant::ZERO, Port(0), packet(n, 10));
        }
        harness.packet(Instant::ZERO, Port(1), packet(3, 10));
        assert_eq!(harness.dropped, [(Instant::ZERO, DropReason::QueueFull)]);
        // The first is done: the queue has room again.
        harness.packet(Instant::from_nanos(10_000), Port(0), packet(4, 10));
        harness.run();
        assert_eq!((harness.idents(Port(1)), harness.idents(Port(0))), (vec![0, 1, 4], vec![3]));
    }
}
