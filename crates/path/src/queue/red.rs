//! RED (Floyd and Jacobson 1993): drops or marks at random, with a probability that grows with the mean
//! queue.

use super::fifo::Fifo;
use super::{Backlog, QueueDiscipline, QueueError, checked};
use crate::{Cx, DropReason, Inspection, QueueLimit};
use farpace_units::{Instant, Packets, Span};
use farpace_wire::Packet;

/// The parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Below this mean queue no packet is dropped; above 0.
    pub min: Packets,
    /// Up to this mean queue the probability grows to `max_p`; above `min`.
    pub max: Packets,
    /// Probability at a mean queue of `max`, above 0 and at most 1.
    pub max_p: f64,
    /// Weight in the mean of the queue that a new packet finds; above 0 and at most 1.
    pub weight: f64,
    /// Beyond `max`, the probability grows from `max_p` to 1 at twice `max`, instead of being 1 at once.
    pub gentle: bool,
    /// Packets of senders with ECN are marked instead of dropped; not where the probability is 1 (RFC 3168
    /// §7).
    pub ecn: bool,
    /// Transmission time of a usual packet: while the link is idle, the mean falls as if such packets had
    /// found the queue empty.
    pub idle_packet: Span,
}

impl Default for RedConfig {
    /// 5 and 15 packets, 0.1, 0.002, gentle (Floyd's recommendations of 1997 and 2000), without ECN; a packet
    /// of 1000 B at 10 Mbit/s.
    fn default() -> Self {
        RedConfig {
            min: Packets::new(5),
            max: Packets::new(15),
            max_p: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: false,
            idle_packet: Span::from_micros(800),
        }
    }
}

/// One queue under RED's control, in packets. The frame that is being sent does not count in the mean.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    limit: QueueLimit,
    fifo: Fifo,
    /// The mean queue (`avg`), in packets.
    mean: f64,
    /// The queue is empty since then.
    idle_since: Option<Instant>,
    /// Packets since the last one that was dropped or marked; none while the mean is below `min`.
    count: Option<u32>,
    marked: u64,
}

/// What happens to a packet that arrives.
enum RedVerdict {
    Pass,
    /// Dropped, or marked if that is possible.
    Notify,
    Drop,
}

impl Red {
    /// An empty queue.
    ///
    /// # Errors
    /// A limit of 0, thresholds that are not a range, or a weight or probability that is not above 0 and at
    /// most 1.
    pub fn new(limit: QueueLimit, config: RedConfig) -> Result<Self, QueueError> {
        if config.min.is_zero() || config.max <= config.min {
            return Err(QueueError::Thresholds);
        }
        let is_probability = |x: f64| x > 0.0 && x <= 1.0;
        if !is_probability(config.max_p) || !is_probability(config.weight) {
            return Err(QueueError::NotAProbability);
        }
        Ok(Red {
            config,
            limit: checked(limit)?,
            fifo: Fifo::default(),
            mean: 0.0,
            idle_since: Some(Instant::ZERO),
            count: None,
            marked: 0,
        })
    }
    /// The mean queue, in packets.
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    fn update_mean(&mut self, now: Instant) {
        let queue = self.fifo.backlog().packets as f64;
        match self.idle_since {
            Some(since) if self.fifo.is_empty() => {
                let m = now.since(since).as_nanos() as f64 / self.config.idle_packet.as_nanos().max(1) as f64;
                self.mean *= libm::pow(1.0 - self.config.weight, m);
            }
            _ => self.mean += self.config.weight * (queue - self.mean),
        }
    }

    /// The probability (`p_b`) for the present mean; none below `min`, 1 where everything is dropped.
    fn probability(&self) -> Option<f64> {
        let RedConfig { min, max, max_p, gentle, .. } = self.config;
        let (min, max) = (f64::from(min.get()), f64::from(max.get()));
        if self.mean < min {
            None
        } else if self.mean < max {
            Some(max_p * (self.mean - min) / (max - min))
        } else if gentle && self.mean < 2.0 * max {
            Some(max_p + (1.0 - max_p) * (self.mean - max) / max)
        } else {
            Some(1.0)
        }
    }

    fn verdict(&mut self, cx: &mut Cx<'_>) -> RedVerdict {
        let Some(p) = self.probability() else {
            self.count = None;
            return RedVerdict::Pass;
        };
        if p >= 1.0 {
            self.count = Some(0);
            return RedVerdict::Drop;
        }
        // Counting spreads drops evenly: the distance between two is uniform, 1 to 1/p - 1 as in the paper's
        // figure 2 (its section 7 says 1 to 1/p).
        let count = self.count.map_or(0, |n| n.saturating_add(1));
        let room = 1.0 - f64::from(count) * p;
        if room <= 0.0 || cx.rng().chance(p / room) {
            self.count = Some(0);
            return RedVerdict::Notify;
        }
        self.count = Some(count);
        RedVerdict::Pass
    }
}

impl QueueDiscipline for Red {
    fn enqueue(&mut self, mut packet: Packet, sending: Backlog, cx: &mut Cx<'_>) {
        self.update_mean(cx.now());
        if !(self.fifo.backlog() + sending + Backlog::of(&packet)).is_within(self.limit) {
            return cx.drop(packet, DropReason::QueueFull);
        }
        match self.verdict(cx) {
            RedVerdict::Notify if self.config.ecn && packet.mark_ce() => self.marked += 1,
            RedVerdict::Notify | RedVerdict::Drop => return cx.drop(packet, DropReason::Red),
            RedVerdict::Pass => {}
        }
        self.fifo.push(cx.now(), packet);
        self.idle_since = None;
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let next = self.fifo.pop().map(|(_, packet)| packet);
        if next.is_some() && self.fifo.is_empty() {
            self.idle_since = Some(cx.now());
        }
        next
    }
    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
    fn marked(&self) -> u64 {
        self.marked
    }
    fn inspect(&self) -> Inspection {
        vec![("mean queue", format!("{:.3} packets", self.mean))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::bench::{Bench, ect, packet};

    fn red(config: RedConfig) -> Bench<Red> {
        Bench::new(Red::new(QueueLimit::Unlimited, config).unwrap())
    }
    /// The mean is the queue itself.
    const AT_ONCE: RedConfig = RedConfig {
        min: Packets::new(5),
        max: Packets::new(15),
        max_p: 0.1,
        weight: 1.0,
        gentle: true,
        ecn: false,
        idle_packet: Span::from_millis(1),
    };

    /// Packets that arrive at a queue of `standing`; each is taken out again.
    fn come_to(standing: u16, config: RedConfig, n: u16, packet: fn(u16) -> Packet) -> Bench<Red> {
        let mut b = red(config);
        b.queue.config.min = Packets::new(1_000); // fill it undisturbed
        b.queue.config.max = Packets::new(2_000);
        for i in 0..standing {
            b.enqueue(0, packet(i));
        }
        b.queue.config = config;
        for i in 0..n {
            let drops = b.dropped.len();
            b.enqueue(0, packet(i));
            if b.dropped.len() == drops {
                b.dequeue(0);
            }
        }
        b
    }

    /// Breaks: the mean, or its decay while the queue is empty. Computed by hand: each packet has a weight of
    /// 1/4.
    #[test]
    fn the_mean_is_exponentially_weighted() {
        let mut b = red(RedConfig { weight: 0.25, ..AT_ONCE });
        // Queues found: idle, then 1, 2, 3.
        let means = [0.0, 0.25, 0.687_5, 1.265_625];
        for (n, mean) in means.into_iter().enumerate() {
            b.enqueue(0, packet(n as u16));
            assert_eq!(b.queue.mean(), mean);
        }
        b.drain(0);
        b.enqueue(2, packet(4));
        // Idle for two packet times: 0.75 squared.
        assert!((b.queue.mean() - 1.265_625 * 0.562_5).abs() < 1e-12);
    }

    /// Breaks: the drop rate at a mean queue. After a drop, the next is 1 to 1/p - 1 packets away, each
    /// equally likely: one in 1/(2 p) is dropped (within four standard deviations).
    #[test]
    fn the_drop_rate_follows_the_mean_queue() {
        // 10 packets are halfway from 5 to 15: p = 0.05, one in 10; 14: p = 0.09, one in 5.6.
        for (standing, p) in [(10, 0.05f64), (14, 0.09), (6, 0.01)] {
            const N: u16 = 20_000;
            let b = come_to(standing, AT_ONCE, N, packet);
            let max = 1.0 / p - 1.0;
            let expected = f64::from(N) * 2.0 * p;
            let spread = (max * max - 1.0) / 12.0; // variance of the distance
            let sigma = (expected * spread).sqrt() * 2.0 * p;
            let drops = b.dropped.len() as f64;
            assert!((drops - expected).abs() < 4.0 * sigma, "{drops} at {standing}, {expected}");
            assert!(b.dropped.iter().all(|(_, reason)| *reason == DropReason::Red));
        }
        assert_eq!(come_to(4, AT_ONCE, 1_000, packet).dropped.len(), 0);
    }

    /// Breaks: what happens above the upper threshold, with and without the gentle slope.
    #[test]
    fn above_the_upper_threshold_all_packets_are_dropped_unless_gentle() {
        let steep = RedConfig { gentle: false, ecn: true, ..AT_ONCE };
        let dropped = |standing, config, packet| come_to(standing, config, 1_000, packet).dropped.len();
        assert_eq!(dropped(15, steep, ect), 1_000, "there ECN does not help");
        assert_eq!(dropped(14, steep, ect), 0);
        // p = 0.1 + 0.9 * 5/15 = 0.4: the next is 1 away with 0.4/0.6, else 2: one in 4/3.
        let gentle = dropped(20, AT_ONCE, packet);
        assert!((705..=795).contains(&gentle), "{gentle}, 750 expected");
        assert_eq!(dropped(30, AT_ONCE, ect), 1_000);
    }

    /// Breaks: packets with ECN are dropped, or marks are not counted.
    #[test]
    fn with_ecn_packets_are_marked_instead() {
        let b = come_to(10, RedConfig { ecn: true, ..AT_ONCE }, 1_000, ect);
        assert_eq!(b.dropped.len(), 0);
        let marked = b.queue.marked();
        assert!((75..=125).contains(&marked), "{marked}, 100 expected");
        assert!(!b.marked.is_empty());
    }
}
