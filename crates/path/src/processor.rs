//! The processor of a host: every frame that it sends or receives takes some of its time.

use crate::{Cx, DropReason, Element, Inspection, Port, QueueLimit, ends_at_port};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    /// Time for each entry of a retransmission queue that the host visits for an ACK ([`ProcessorWork`]).
    pub per_entry: Span,
    /// Limit of the queue in each direction, the frame in work included.
    pub queue: QueueLimit,
}

/// Work that the stack above a [`Processor`] has done and the processor has yet to be charged for. Clones
/// are the same work.
#[derive(Clone, Debug, Default)]
pub struct ProcessorWork(Arc<Mutex<PendingWork>>);

#[derive(Debug, Default)]
struct PendingWork {
    /// When the last of it was done.
    at: Instant,
    entries: u64,
}

impl ProcessorWork {
    fn pending(&self) -> MutexGuard<'_, PendingWork> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// At `now` so many entries of a retransmission queue were visited.
    pub fn visited(&self, now: Instant, entries: u64) {
        if entries > 0 {
            let mut pending = self.pending();
            pending.at = now;
            pending.entries = pending.entries.saturating_add(entries);
        }
    }
    fn take(&self) -> (Instant, u64) {
        let mut pending = self.pending();
        (pending.at, std::mem::take(&mut pending.entries))
    }
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
    /// What the stack has done.
    stack: Option<ProcessorWork>,
    /// By how much work for the stack has put off what was inside, in all.
    put_off: Span,
}

#[derive(Clone, Debug)]
struct Work {
    /// When it was to be done when it came.
    done: Instant,
    /// What had put off others by then.
    put_off: Span,
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
        Processor {
            config,
            free: Instant::ZERO,
            work: VecDeque::new(),
            waiting: [none; 2],
            busy: Span::ZERO,
            stack: None,
            put_off: Span::ZERO,
        }
    }
    /// It is also charged for what the stack above does besides taking and sending frames.
    #[must_use]
    pub fn charged_for(mut self, stack: ProcessorWork) -> Self {
        self.stack = Some(stack);
        self
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
    /// What the stack has done puts off everything inside: each of it comes later than that.
    fn charge(&mut self) {
        let Some((at, entries)) = self.stack.as_ref().map(ProcessorWork::take).filter(|(_, n)| *n > 0) else {
            return;
        };
        let cost = self.config.per_entry * entries;
        self.put_off += cost;
        self.busy += cost;
        self.free = self.free.max(at) + cost;
    }
    fn done(&self, work: &Work) -> Instant {
        work.done + (self.put_off - work.put_off)
    }
    fn release(&mut self, cx: &mut Cx<'_>) {
        while self.work.front().is_some_and(|work| self.done(work) <= cx.now())
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
        self.charge();
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
        self.work.push_back(Work { done: self.free, put_off: self.put_off, from: port, packet });
        // A frame without cost goes at once.
        self.release(cx);
    }
    fn on_wake(&mut self, cx: &mut Cx<'_>) {
        self.charge();
        self.release(cx);
    }
    fn deadline(&self) -> Option<Instant> {
        self.work.front().map(|work| self.done(work))
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
        per_entry: Span::ZERO,
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

    /// Breaks: what the stack does for an ACK takes no time, or puts off only what comes after all that waits
    /// already.
    #[test]
    fn work_of_the_stack_puts_off_what_waits() {
        let (config, work) =
            (ProcessorConfig { per_entry: Span::from_nanos(10), ..CONFIG }, ProcessorWork::default());
        let mut harness = Harness::new(Processor::new(config).charged_for(work.clone()));
        for n in 0..3 {
            harness.packet(Instant::ZERO, Port(1), packet(n, 0));
        }
        // The first ACK is through at 5 us; the stack visits 700 entries for it.
        harness.run_until(Instant::from_nanos(5_000));
        work.visited(Instant::from_nanos(5_000), 700);
        harness.run();
        assert_eq!(times(&harness), [(5, 0), (17, 0), (22, 0)]);
        assert_eq!(harness.element.busy(), Span::from_micros(22));
        // Nothing waits: what is sent in answer comes after it.
        work.visited(Instant::from_nanos(30_000), 100);
        harness.packet(Instant::from_nanos(30_000), Port(0), packet(9, 0));
        harness.run();
        assert_eq!(times(&harness).last(), Some(&(41, 1)));
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
