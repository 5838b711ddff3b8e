//! A point of a grid: a path, its bottleneck, and the congestion control that uses it.

use anyhow::Result;
use farpace_lab::scenario::Scenario;
use farpace_papers::congestion_name;
use farpace_tcp::config::Congestion;
use farpace_units::{ByteCount, Rate, Span, number};

/// Round trips that a run lasts at least: slow start and some periods of the congestion control.
const MIN_ROUND_TRIPS: u64 = 50;
/// Above this many bytes in flight and queued, both receivers get a fixed window: what is compared is not how
/// fast they tune it.
const MAX_AUTOTUNED: u64 = 3 << 20;
/// Random delays on the access line are at most this, and at most a hundredth of the round trip.
const MAX_JITTER: Span = Span::from_millis(1);
/// The largest segment with its headers, as it occupies the bottleneck.
const FULL_PACKET: ByteCount = ByteCount::new(1_500);
/// Limits of at least this many bytes are judged strictly.
const STRICT_FROM: ByteCount = ByteCount::new(32_000);

/// What limits the rate at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GridQueue {
    /// A FIFO of so many bytes in front of a line of the point's rate.
    Fifo(ByteCount),
    /// A token bucket of so many bytes on a line of 1 Gbit/s. It never queues.
    Policer(ByteCount),
}

impl GridQueue {
    /// Bytes of the FIFO or of the bucket.
    pub const fn size(self) -> ByteCount {
        match self {
            GridQueue::Fifo(size) | GridQueue::Policer(size) => size,
        }
    }
}

/// A point of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridPoint {
    /// The rate of the line, or of the policer.
    pub rate: Rate,
    /// The round trip without a queue.
    pub rtt: Span,
    /// What limits the rate.
    pub queue: GridQueue,
    /// The probability that a data packet is lost at random, 0 to 1.
    pub loss: f64,
    /// The congestion control of lab, farpace and kernel.
    pub congestion: Congestion,
}

impl GridPoint {
    /// Bytes that a round trip without a queue holds.
    pub fn bdp(&self) -> ByteCount {
        self.rate.bytes_in(self.rtt)
    }
    /// How long the FIFO lasts at the point's rate; for a policer, how long its full bucket lasts at that
    /// rate.
    pub fn queue_lasts(&self) -> Span {
        self.rate.time_for(self.queue.size())
    }
    /// By how much the ratio of goodputs may differ from 1: 5 % with a FIFO or bucket of at least 32 kB, 10 %
    /// below.
    pub fn limit(&self) -> f64 {
        if self.queue.size() >= STRICT_FROM { 0.05 } else { 0.10 }
    }
    /// How long a run lasts if it is to last `seconds`: at least 50 round trips.
    pub fn lasts(&self, seconds: u64) -> Span {
        Span::from_secs(seconds).max(self.rtt * MIN_ROUND_TRIPS)
    }
    /// How long packets are delayed at random on the access line, at most: the time of a packet at the
    /// bottleneck. Exact repetition would make a small queue drop the same packets in every period (phase
    /// effects, Floyd and Jacobson 1992), and no real host sends so exactly.
    pub fn jitter(&self) -> Span {
        self.rate.time_for(FULL_PACKET).min(MAX_JITTER).min(self.rtt / 100)
    }
    /// The cells of a table: rate, round trip, queue, loss, congestion control.
    pub fn words(&self) -> [String; 5] {
        let queue = match self.queue {
            GridQueue::Fifo(size) => size.to_string(),
            GridQueue::Policer(burst) => format!("policer, {burst}"),
        };
        let loss = match self.loss {
            0.0 => "–".to_owned(),
            loss => format!("{} %", number(loss * 100.0)),
        };
        [self.rate.to_string(), self.rtt.to_string(), queue, loss, congestion_name(self.congestion)]
    }
    /// What identifies the point among runs that are kept.
    pub fn key(&self) -> String {
        let [rate, rtt, queue, _, congestion] = self.words();
        let loss = if self.loss == 0.0 { "no loss".to_owned() } else { format!("loss {}", self.loss) };
        format!("{rate}, {rtt}, {queue}, {loss}, {congestion}")
    }
    /// The path as a scenario: a host, a line of 1 Gbit/s with `jitter`, a router, the bottleneck, a host.
    ///
    /// # Errors
    /// Values that no scenario can have, such as a queue of no bytes.
    pub fn scenario(&self) -> Result<Scenario> {
        let size = self.queue.size();
        let (line, queue, policer) = match self.queue {
            GridQueue::Fifo(_) => (self.rate, size.to_string(), String::new()),
            GridQueue::Policer(_) => (
                Rate::from_mbit(1_000),
                "10000 packets".to_owned(),
                format!("policer = {{ rate = \"{}\", burst = \"{size}\" }}, ", self.rate),
            ),
        };
        let held = self.bdp().get() + size.get();
        let receiver = match held > MAX_AUTOTUNED {
            true => format!("receiver = {{ receive_buffer = \"{} B\" }}\n", held * 2),
            false => String::new(),
        };
        let text = format!(
            "title = \"{title}\"\n[hosts.a]\n[hosts.b]\n[routers.r]\n\
             [[links]]\nname = \"access\"\nbetween = [\"a\", \"r\"]\nrate = \"1 Gbit/s\"\n\
             queue = \"10000 packets\"\n\
             forward.jitter = \"{jitter} ns\"\nbackward.jitter = \"{jitter} ns\"\n\
             [[links]]\nname = \"wan\"\nbetween = [\"r\", \"b\"]\nrate = \"{line}\"\ndelay = \"{delay} ns\"\n\
             queue = \"{queue}\"\nforward = {{ {policer}loss = {loss} }}\n\
             [[flows]]\nname = \"bulk\"\nfrom = \"a\"\nto = \"b\"\nsize = \"1 GB\"\n{receiver}",
            title = self.key(),
            jitter = self.jitter().as_nanos(),
            delay = self.rtt.as_nanos() / 2,
            loss = self.loss,
        );
        Ok(Scenario::parse(&text, "a point of the grid")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a point is another path than its name says, or is judged by another limit than is promised.
    #[test]
    fn a_point_is_the_path_that_it_says() {
        let fifo = GridPoint {
            rate: Rate::from_mbit(50),
            rtt: Span::from_millis(40),
            queue: GridQueue::Fifo(ByteCount::new(31_000)),
            loss: 0.0001,
            congestion: Congestion::Cubic,
        };
        assert_eq!(fifo.key(), "50 Mbit/s, 40 ms, 31 kB, loss 0.0001, cubic");
        assert_eq!((fifo.bdp(), fifo.limit()), (ByteCount::new(250_000), 0.10));
        assert_eq!(fifo.queue_lasts(), Span::from_micros(4_960));
        assert_eq!((fifo.lasts(1), fifo.lasts(10)), (Span::from_secs(2), Span::from_secs(10)));
        assert_eq!(fifo.jitter(), Span::from_micros(240));
        assert_eq!(GridPoint { rate: Rate::from_mbit(1), ..fifo }.jitter(), Span::from_micros(400));
        assert_eq!(
            GridPoint { rate: Rate::from_mbit(1), rtt: Span::from_millis(300), ..fifo }.jitter(),
            MAX_JITTER
        );
        let scenario = fifo.scenario().unwrap();
        let flow = &scenario.flows[0];
        assert_eq!(scenario.bottleneck(flow).unwrap().rate, fifo.rate);
        assert!(!flow.receiver.resolve().unwrap().receive_buffer.is_fixed());
        // A policer is a bottleneck of its own, and a long fat path has a window that no side limits.
        let policer = GridPoint {
            rate: Rate::from_mbit(500),
            rtt: Span::from_millis(300),
            queue: GridQueue::Policer(ByteCount::new(125_000)),
            loss: 0.0,
            congestion: Congestion::Bbr1,
        };
        assert_eq!(policer.key(), "500 Mbit/s, 300 ms, policer, 125 kB, no loss, bbr1");
        assert_eq!(policer.limit(), 0.05);
        let scenario = policer.scenario().unwrap();
        assert_eq!(scenario.bottleneck(&scenario.flows[0]).unwrap().rate, policer.rate);
        let window = scenario.flows[0].receiver.resolve().unwrap().receive_buffer;
        assert!(window.is_fixed() && window.max.get() > 2 * policer.bdp().get());
    }
}
