//! CoDel (RFC 8289): drops by how long packets have waited, not by how many there are.

use super::fifo::Fifo;
use super::{Backlog, QueueDiscipline, QueueError, checked};
use crate::{Cx, DropReason, Inspection, QueueLimit};
use farpace_units::{ByteCount, Instant, Span};
use farpace_wire::Packet;

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// A standing queue of this delay is accepted (RFC 8289 §4.3: 5 to 10 % of the round trip).
    pub target: Span,
    /// A good queue falls below the target once in this time; about the longest usual round trip.
    pub interval: Span,
    /// Packets of senders with ECN are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CoDelConfig {
    /// 5 ms and 100 ms (RFC 8289 §4.2, §4.3), without ECN.
    fn default() -> Self {
        CoDelConfig { target: Span::from_millis(5), interval: Span::from_millis(100), ecn: false }
    }
}

impl CoDelConfig {
    /// # Errors
    /// A target of 0 or not below the interval.
    pub(super) fn check(self) -> Result<Self, QueueError> {
        let bad = self.target.is_zero() || self.target >= self.interval;
        if bad { Err(QueueError::Times) } else { Ok(self) }
    }
}

/// One queue under CoDel's control.
#[derive(Clone, Debug)]
pub struct CoDel {
    limit: QueueLimit,
    fifo: Fifo,
    control: CoDelControl,
}

impl CoDel {
    /// An empty queue.
    ///
    /// # Errors
    /// A limit, a target or an interval of 0, or a target not below the interval.
    pub fn new(limit: QueueLimit, config: CoDelConfig) -> Result<Self, QueueError> {
        Ok(CoDel {
            limit: checked(limit)?,
            fifo: Fifo::default(),
            control: CoDelControl::new(config.check()?),
        })
    }
}

impl QueueDiscipline for CoDel {
    fn enqueue(&mut self, packet: Packet, sending: Backlog, cx: &mut Cx<'_>) {
        if (self.fifo.backlog() + sending + Backlog::of(&packet)).is_within(self.limit) {
            self.control.largest = self.control.largest.max(packet.len());
            self.fifo.push(cx.now(), packet);
        } else {
            cx.drop(packet, DropReason::QueueFull);
        }
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.control.dequeue(&mut self.fifo, cx)
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
    fn marked(&self) -> u64 {
        self.control.marked
    }
    fn inspect(&self) -> Inspection {
        vec![("dropping", self.control.dropping.to_string()), ("drop count", self.control.count.to_string())]
    }
}

/// CoDel's state for one queue (RFC 8289 §5.2).
#[derive(Clone, Debug)]
pub(super) struct CoDelControl {
    config: CoDelConfig,
    /// Largest frame so far: a backlog of this length is always accepted (`maxpacket_`).
    pub largest: ByteCount,
    /// The delay has been above the target, and may be until this time (`first_above_time_`).
    first_above: Option<Instant>,
    dropping: bool,
    /// When the next packet is dropped, while dropping; else when it would have been.
    drop_next: Instant,
    /// Drops since dropping began.
    count: u64,
    /// The value of `count` when dropping began last.
    last_count: u64,
    pub marked: u64,
}

/// A packet, and whether it has waited so long that it may be dropped.
type Candidate = Option<(Packet, bool)>;

impl CoDelControl {
    pub const fn new(config: CoDelConfig) -> Self {
        CoDelControl {
            config,
            largest: ByteCount::ZERO,
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            marked: 0,
        }
    }

    /// RFC 8289 §5.5. The packet to be sent, after dropping those before it. With ECN the packet itself is
    /// marked instead, and goes (RFC 8290 §5.2.6).
    pub fn dequeue(&mut self, fifo: &mut Fifo, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.now();
        let mut next = self.candidate(fifo, now);
        if self.dropping {
            self.dropping = may_drop(&next);
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.mark(&mut next) {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                next = self.drop_for_next(next, fifo, cx);
                self.dropping = may_drop(&next);
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if may_drop(&next) {
            if !self.mark(&mut next) {
                next = self.drop_for_next(next, fifo, cx);
            }
            self.dropping = true;
            // If dropping ended only recently, its last drop rate is a good start.
            let recent = now.since(self.drop_next) < self.config.interval * 16;
            let delta = self.count - self.last_count;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.control_law(now);
        }
        next.map(|(packet, _)| packet)
    }

    /// RFC 8289 §5.6 (`dodequeue`): the first packet, judged by its sojourn time.
    fn candidate(&mut self, fifo: &mut Fifo, now: Instant) -> Candidate {
        let Some((arrived, packet)) = fifo.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(arrived) < self.config.target || fifo.backlog().bytes <= self.largest {
            self.first_above = None;
            return Some((packet, false));
        }
        let above = *self.first_above.get_or_insert(now + self.config.interval);
        Some((packet, now >= above))
    }

    fn drop_for_next(&mut self, next: Candidate, fifo: &mut Fifo, cx: &mut Cx<'_>) -> Candidate {
        if let Some((packet, _)) = next {
            cx.drop(packet, DropReason::CoDel);
        }
        self.candidate(fifo, cx.now())
    }

    fn mark(&mut self, next: &mut Candidate) -> bool {
        let marked = self.config.ecn && next.as_mut().is_some_and(|(packet, _)| packet.mark_ce());
        self.marked += u64::from(marked);
        marked
    }

    /// RFC 8289 §5.6 (`control_law`): the next drop is interval / sqrt(count) later, rounded down to a
    /// nanosecond.
    fn control_law(&self, from: Instant) -> Instant {
        let interval = u128::from(self.config.interval.as_nanos());
        let step = (interval * interval / u128::from(self.count.max(1))).isqrt();
        from + Span::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
    }
}

fn may_drop(next: &Candidate) -> bool {
    next.as_ref().is_some_and(|(_, old)| *old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::bench::{Bench, ect, packet};

    fn codel(ecn: bool) -> Bench<CoDel> {
        let config = CoDelConfig { ecn, ..CoDelConfig::default() };
        Bench::new(CoDel::new(QueueLimit::Unlimited, config).unwrap())
    }

    /// Breaks: the control law. One packet arrives and one leaves each millisecond, 50 ms later: the delay
    /// exceeds the target with the first packet that leaves, at 50 ms. The first drop is an interval later,
    /// the others after 100/sqrt(1), 100/sqrt(2), ... ms, each with the first packet that leaves then.
    #[test]
    fn drops_come_at_the_times_of_the_control_law() {
        let mut b = codel(false);
        b.load(0..600, 50, packet);
        // 150, then 250, 320.71, 378.45, 428.45, 473.17, 513.99, 551.79, 587.14 ms, in whole milliseconds.
        let at: Vec<_> = b.dropped.iter().map(|(at, reason)| (at.as_nanos() / 1_000_000, *reason)).collect();
        let law = [150, 250, 321, 379, 429, 474, 514, 552, 588].map(|ms| (ms, DropReason::CoDel));
        assert_eq!(at, law);
    }

    /// Breaks: packets with ECN are dropped, or are marked at other times than others are dropped.
    #[test]
    fn with_ecn_packets_are_marked_instead() {
        let mut b = codel(true);
        b.load(0..600, 50, ect);
        assert_eq!(b.dropped, []);
        let at: Vec<_> = b.marked.iter().map(|at| at.as_nanos() / 1_000_000).collect();
        assert_eq!(at, [150, 250, 321, 379, 429, 474, 514, 552, 588]);
        assert_eq!(b.queue.marked(), 9);
        let mut b = codel(true);
        b.load(0..600, 50, packet);
        assert_eq!(b.dropped.len(), 9, "who does not take part is dropped");
    }

    /// Breaks: packets are dropped from a queue that falls below the target once in an interval, or one
    /// packet that waits long on a slow link is.
    #[test]
    fn a_good_queue_is_left_alone() {
        let mut b = codel(false);
        for burst in 0..20 {
            // 60 packets at once, which have left after 60 ms, and a pause.
            let start = burst * 150;
            for n in 0..60 {
                b.enqueue(start, packet(n));
            }
            for n in 0..60 {
                b.dequeue(start + n);
            }
        }
        assert_eq!(b.dropped, []);
        let mut b = codel(false);
        for n in 0..20 {
            b.enqueue(n * 200, packet(0));
            b.dequeue(n * 200 + 190);
        }
        assert_eq!(b.dropped, []);
    }

    /// Breaks: dropping that begins again soon starts from zero, or after a long pause does not.
    #[test]
    fn the_rate_of_drops_is_remembered_for_16_intervals() {
        for (rest, second_gap) in [(500, 34), (3_000, 100)] {
            let mut b = codel(false);
            b.load(0..600, 50, packet);
            b.drain(650); // the 10th drop: count is 10, and was 1 when dropping began
            let before = b.dropped.len();
            let start = 650 + rest;
            b.load(start..start + 400, 50, packet);
            let at: Vec<_> = b.dropped[before..].iter().map(|(at, _)| at.as_nanos() / 1_000_000).collect();
            assert_eq!(at[0], start + 150);
            // The difference is 9: 100/sqrt(9) ms, in whole milliseconds; after a long pause 100/sqrt(1) ms.
            assert_eq!(at[1] - at[0], second_gap, "after {rest} ms of rest");
        }
    }
}
