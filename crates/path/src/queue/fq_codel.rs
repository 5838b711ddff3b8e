//! FQ-CoDel (RFC 8290): a queue for each flow, served round robin, each under CoDel's control.

use super::codel::{CoDelConfig, CoDelControl};
use super::fifo::Fifo;
use super::flow::flow_hash;
use super::{Backlog, QueueDiscipline, QueueError, checked};
use crate::{Cx, DropReason, Inspection, QueueLimit};
use farpace_units::ByteCount;
use farpace_wire::Packet;
use std::collections::VecDeque;

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// CoDel in each queue.
    pub codel: CoDelConfig,
    /// Bytes of frames that a queue may send in each round (RFC 8290 §5.2.4).
    pub quantum: ByteCount,
    /// Queues into which flows are hashed, 1 to [`FqCoDelConfig::MAX_FLOWS`] (RFC 8290 §5.2.5).
    pub flows: u32,
}

impl FqCoDelConfig {
    /// Most queues.
    pub const MAX_FLOWS: u32 = 65_536;
}

impl Default for FqCoDelConfig {
    /// 1024 queues, one full Ethernet frame in each round, and CoDel with ECN (RFC 8290 §5.2).
    fn default() -> Self {
        let codel = CoDelConfig { ecn: true, ..CoDelConfig::default() };
        FqCoDelConfig { codel, quantum: ByteCount::new(1_514), flows: 1_024 }
    }
}

/// Most packets that a full queue drops at once (RFC 8290 §4.1): finding the longest queue takes time.
const BATCH: u64 = 64;

/// Queues by flow, served by deficit round robin. A flow that has just begun comes first.
#[derive(Clone, Debug)]
pub struct FqCoDel {
    config: FqCoDelConfig,
    limit: QueueLimit,
    flows: Vec<FlowQueue>,
    /// Flows that have begun and not used their first quantum.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    backlog: Backlog,
    /// Drawn when the first packet arrives.
    salt: Option<u64>,
}

#[derive(Clone, Debug)]
struct FlowQueue {
    fifo: Fifo,
    control: CoDelControl,
    /// Bytes that it may still send in this round; below zero if its last packet was longer.
    credits: i64,
    /// It is in `new` or `old`.
    listed: bool,
}

impl FqCoDel {
    /// Empty queues.
    ///
    /// # Errors
    /// A limit, quantum, time or number of queues of 0.
    pub fn new(limit: QueueLimit, config: FqCoDelConfig) -> Result<Self, QueueError> {
        if config.quantum.is_zero() || config.flows == 0 || config.flows > FqCoDelConfig::MAX_FLOWS {
            return Err(QueueError::Rounds);
        }
        let control = CoDelControl::new(config.codel.check()?);
        let flow = FlowQueue { fifo: Fifo::default(), control, credits: 0, listed: false };
        Ok(FqCoDel {
            config,
            limit: checked(limit)?,
            flows: vec![flow; config.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
            salt: None,
        })
    }
    fn quantum(&self) -> i64 {
        i64::try_from(self.config.quantum.get()).unwrap_or(i64::MAX)
    }
    fn put(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        let salt = *self.salt.get_or_insert_with(|| cx.rng().next_u64());
        let at = (flow_hash(&packet, salt) % u64::from(self.config.flows)) as usize;
        let quantum = self.quantum();
        let Some(flow) = self.flows.get_mut(at) else { return cx.drop(packet, DropReason::QueueFull) };
        flow.control.largest = flow.control.largest.max(packet.len());
        self.backlog = self.backlog + Backlog::of(&packet);
        flow.fifo.push(cx.now(), packet);
        if !flow.listed {
            (flow.listed, flow.credits) = (true, quantum);
            self.new.push_back(at);
        }
    }
    /// Drops from the head of the queue with the most bytes: half of it, at most [`BATCH`] packets, at least
    /// one. False if there is none.
    fn drop_from_longest(&mut self, cx: &mut Cx<'_>) -> bool {
        // The first of equals, so that the result does not depend on the order of the lists.
        let bytes = |(at, flow): &(usize, &FlowQueue)| (flow.fifo.backlog().bytes, std::cmp::Reverse(*at));
        let longest = self.flows.iter().enumerate().max_by_key(bytes).map(|(at, _)| at);
        let Some(flow) = longest.and_then(|at| self.flows.get_mut(at)) else { return false };
        let before = flow.fifo.backlog();
        for _ in 0..before.packets.div_ceil(2).min(BATCH) {
            if let Some((_, packet)) = flow.fifo.pop() {
                cx.drop(packet, DropReason::QueueFull);
            }
        }
        self.backlog = without(self.backlog, before, flow.fifo.backlog());
        before.packets > 0
    }
}

/// `all` after a part of it has changed.
fn without(all: Backlog, before: Backlog, after: Backlog) -> Backlog {
    Backlog {
        packets: (all.packets + after.packets).saturating_sub(before.packets),
        bytes: (all.bytes + after.bytes) - before.bytes,
    }
}

impl QueueDiscipline for FqCoDel {
    fn enqueue(&mut self, packet: Packet, sending: Backlog, cx: &mut Cx<'_>) {
        self.put(packet, cx);
        while !(self.backlog + sending).is_within(self.limit) && self.drop_from_longest(cx) {}
    }
    /// RFC 8290 §4.2.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let quantum = self.quantum();
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let at = *list.front()?;
            let flow = self.flows.get_mut(at)?;
            if flow.credits <= 0 {
                flow.credits = flow.credits.saturating_add(quantum);
                list.pop_front();
                self.old.push_back(at);
                continue;
            }
            let before = flow.fifo.backlog();
            let packet = flow.control.dequeue(&mut flow.fifo, cx);
            self.backlog = without(self.backlog, before, flow.fifo.backlog());
            if let Some(packet) = packet {
                flow.credits -= i64::try_from(packet.len().get()).unwrap_or(i64::MAX);
                return Some(packet);
            }
            // A new flow waits for one more round, so that it cannot begin anew with each packet.
            list.pop_front();
            if is_new {
                self.old.push_back(at);
            } else {
                flow.listed = false;
            }
        }
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
    fn marked(&self) -> u64 {
        self.flows.iter().map(|flow| flow.control.marked).sum()
    }
    fn inspect(&self) -> Inspection {
        vec![("active flows", (self.new.len() + self.old.len()).to_string())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::bench::{Bench, ect};
    use crate::queue::flow::tests::from_port;
    use farpace_units::Packets;

    fn queues(limit: QueueLimit) -> Bench<FqCoDel> {
        Bench::new(FqCoDel::new(limit, FqCoDelConfig::default()).unwrap())
    }
    fn port(packet: &Packet) -> u16 {
        packet.tcp().map_or(0, |tcp| tcp.src_port())
    }

    /// Breaks: flows get the same number of packets instead of bytes, or one waits behind the queue of
    /// another.
    #[test]
    fn flows_share_the_link_by_bytes() {
        let mut b = queues(QueueLimit::Unlimited);
        for _ in 0..300 {
            b.enqueue(0, from_port(1, 1_460)); // frames of 1514 B
            b.enqueue(0, from_port(2, 703)); // of half of that
        }
        let sent: Vec<_> = (0..150).filter_map(|_| b.dequeue(0)).map(|p| port(&p)).collect();
        let count = |which| sent.iter().filter(|p| **p == which).count();
        assert_eq!((count(1), count(2)), (50, 100));
        assert_eq!(sent[..6], [1, 2, 2, 1, 2, 2]);
    }

    /// Breaks: a sparse flow waits for the bulk, or gets more than its share by pausing and beginning again.
    #[test]
    fn a_new_flow_comes_first_and_once() {
        let mut b = queues(QueueLimit::Unlimited);
        for _ in 0..100 {
            b.enqueue(0, from_port(1, 1_460));
        }
        for _ in 0..10 {
            b.dequeue(0);
        }
        b.enqueue(0, from_port(2, 10));
        assert_eq!(b.dequeue(0).map(|p| port(&p)), Some(2));
        // Its queue is empty, but it is still in the round: its next packet waits for its turn.
        assert_eq!(b.dequeue(0).map(|p| port(&p)), Some(1));
        b.enqueue(0, from_port(2, 10));
        assert_eq!(b.dequeue(0).map(|p| port(&p)), Some(2), "after one packet of the other");
        b.enqueue(0, from_port(2, 10));
        let next: Vec<_> = (0..3).filter_map(|_| b.dequeue(0)).map(|p| port(&p)).collect();
        assert!(next.contains(&1) && next.contains(&2), "{next:?}");
    }

    /// Breaks: a full queue drops from a flow other than the longest, the newest packet instead of the
    /// oldest, or more than half of a queue.
    #[test]
    fn overflow_drops_from_the_head_of_the_longest() {
        let mut b = queues(QueueLimit::Packets(Packets::new(100)));
        b.enqueue(0, from_port(2, 1_000));
        for n in 0..100 {
            b.enqueue(0, from_port(1, n));
        }
        assert_eq!(b.dropped.len(), 50, "half of the 100");
        assert!(b.dropped.iter().all(|(_, reason)| *reason == DropReason::QueueFull));
        let rest: Vec<_> =
            std::iter::from_fn(|| b.dequeue(0)).map(|p| (port(&p), p.payload().len())).collect();
        assert!(
            rest.contains(&(2, 1_000)) && rest.contains(&(1, 99)) && !rest.contains(&(1, 49)),
            "{rest:?}"
        );
        assert_eq!(rest.len(), 51);

        let mut b = queues(QueueLimit::Packets(Packets::new(1_000)));
        for _ in 0..1_001 {
            b.enqueue(0, from_port(1, 0));
        }
        assert_eq!(b.dropped.len(), 64, "no more in one batch");
    }

    /// Breaks: CoDel's control of each queue, or its ECN, which is on by default.
    #[test]
    fn codel_controls_each_queue() {
        let mut b = queues(QueueLimit::Unlimited);
        b.load(0..600, 50, ect);
        assert_eq!((b.dropped.len(), b.marked.len(), b.queue.marked()), (0, 9, 9));
    }
}
