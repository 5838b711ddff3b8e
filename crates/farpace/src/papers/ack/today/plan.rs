//! Which runs are made.

use super::words::{
    AUTO, Choice, EVERYTHING, FLIGHT_END, GROWTHS, NEVER_HELD, OFF, RECEIVERS, RTT, SLOW_START, asking,
    overrides,
};
use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use std::fmt;

/// The scenario that all runs are made from.
pub const SCENARIO: &str = r#"title = "A flow of one size over a path of today"
# Nothing here is drawn: the seed makes the payload alone.
seed = 1
duration = "7200 s"

[hosts.a]
[hosts.b]

[[links]]
name = "line"
between = ["a", "b"]
rate = "100 Mbit/s"
delay = "25 ms"

[[flows]]
name = "flow"
from = "a"
to = "b"
size = "1 MB"

[flows.sender]
send_buffer = "64 MB"

[flows.receiver]
# Windows never limit.
receive_buffer = "64 MB"

[trace]
bin = "10 ms"
"#;

/// Smallest queue: the ten segments of the first window fit.
const MIN_QUEUE: u64 = 15_200;

/// One run: who asks whom over which path for a flow of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// How the window grows.
    pub growth: Choice,
    /// When the receiver acknowledges.
    pub receiver: Choice,
    /// Mbit/s.
    pub rate: u64,
    /// Milliseconds, the empty path.
    pub rtt: u64,
    /// kB.
    pub size: u64,
    /// Which segments ask.
    pub asked: Choice,
}

impl Cell {
    /// The same flow without asking.
    pub fn unasked(self) -> Cell {
        Cell { asked: OFF, ..self }
    }

    /// Limit of the queue, in bytes: what the path holds.
    pub fn queue(&self) -> u64 {
        (self.rate * self.rtt * 125).max(MIN_QUEUE)
    }

    /// The scenario of the run.
    ///
    /// # Errors
    /// A defect of this plan.
    pub fn scenario(&self) -> Result<Scenario> {
        let key = |key: &str, value: String| (key.to_owned(), value);
        let mut all = vec![
            key("links.line.rate", format!("{} Mbit/s", self.rate)),
            key("links.line.delay", format!("{} us", self.rtt * 500)),
            key("links.line.queue", format!("{} B", self.queue())),
            key("flows.flow.size", format!("{} kB", self.size)),
        ];
        all.extend(overrides("flow", "sender", self.growth));
        if self.asked != NEVER_HELD {
            all.extend(overrides("flow", "receiver", self.receiver));
        }
        all.extend(asking("flow", self.asked));
        Scenario::parse_with(SCENARIO, "papers/ack/today", &all).map_err(|e| anyhow!("{e}"))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { growth, receiver, rate, rtt, size, asked } = self;
        let (growth, receiver, asked) = (growth.name, receiver.name, asked.name);
        write!(f, "{rate} Mbit/s, {rtt} ms, {size} kB, {receiver}, {growth}, {asked}")
    }
}

/// All runs, and what they are made of.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Mbit/s.
    pub rates: &'static [u64],
    /// Milliseconds.
    pub rtts: &'static [u64],
    /// kB.
    pub sizes: &'static [u64],
    /// Receivers.
    pub receivers: Vec<Choice>,
    /// Ways of growing.
    pub growths: Vec<Choice>,
    /// Ways of asking, without `off`.
    pub asked: Vec<Choice>,
    /// Every combination, and the same without asking.
    pub cells: Vec<Cell>,
}

impl Plan {
    /// All runs, or a sixth of them in each direction that matters.
    pub fn new(quick: bool) -> Plan {
        let [linux, rfc5681, stretch, bsd] = RECEIVERS;
        let [bytes, per_ack, reno] = GROWTHS;
        let mut plan = if quick {
            Plan {
                rates: &[10, 1_000],
                rtts: &[10, 50, 200],
                sizes: &[100, 1_000],
                receivers: vec![linux, bsd],
                growths: vec![bytes, per_ack],
                asked: vec![SLOW_START, AUTO, EVERYTHING, NEVER_HELD],
                cells: Vec::new(),
            }
        } else {
            Plan {
                rates: &[10, 100, 1_000, 10_000],
                rtts: &[1, 10, 50, 200, 600],
                sizes: &[100, 1_000, 10_000],
                receivers: vec![linux, rfc5681, stretch, bsd],
                growths: vec![bytes, per_ack, reno],
                asked: vec![RTT, SLOW_START, FLIGHT_END, AUTO, EVERYTHING, NEVER_HELD],
                cells: Vec::new(),
            }
        };
        let mut cells = Vec::new();
        for &growth in &plan.growths {
            for &receiver in &plan.receivers {
                for (rate, rtt, size) in plan.flows() {
                    for &asked in [OFF].iter().chain(&plan.asked) {
                        cells.push(Cell { growth, receiver, rate, rtt, size, asked });
                    }
                }
            }
        }
        plan.cells = cells;
        plan
    }

    /// Rate, round trip and size of every flow.
    pub fn flows(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let (rates, rtts, sizes) = (self.rates, self.rtts, self.sizes);
        let paths = rates.iter().flat_map(move |rate| rtts.iter().map(move |rtt| (*rate, *rtt)));
        paths.flat_map(move |(rate, rtt)| sizes.iter().map(move |size| (rate, rtt, *size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a cell is refused in the middle of a long measurement, or has no run to be compared with.
    #[test]
    fn every_cell_can_be_run_and_compared() {
        let plan = Plan::new(false);
        for cell in &plan.cells {
            let scenario = cell.scenario().unwrap_or_else(|e| panic!("{cell}: {e}"));
            assert!(
                scenario.flows.iter().all(|f| f.sender.resolve().is_ok() && f.receiver.resolve().is_ok())
            );
            assert!(plan.cells.contains(&cell.unasked()), "{cell}");
        }
    }
}
