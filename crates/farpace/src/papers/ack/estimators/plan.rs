//! Which runs are made.

use super::super::today::words::{
    AUTO, Choice, EVERYTHING, OFF, OTHER_RECEIVERS, PROBE_RTT, RECEIVERS, RTT, TARR, THINNED, asking,
    overrides,
};
use super::truth::Path;
use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_units::{Rate, Span};
use std::fmt;

/// The scenario that all runs are made from, without its flows.
pub const SCENARIO: &str = r#"title = "Estimators on a path that is known"
# Nothing is drawn but BBR's waits.
seed = 1
duration = "6 s"

[hosts.a]
[hosts.b]

[[links]]
name = "line"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "25 ms"
# Nothing is lost, and frames are as long as in memory: the truth can be worked out.
queue = "100000 packets"
overhead = "0 B"

[trace]
bin = "10 ms"
"#;

/// Connections of the traffic of requests; payload of each in kB, and when the next one begins.
pub const REQUESTS: (u64, u64, u64) = (24, 20, 230);
/// Bytes of a full frame, and of its payload.
pub const FRAME: (u64, u64) = (1514, 1448);

/// What flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Traffic {
    /// One flow whose window is half of what the path holds.
    Half,
    /// One whose window is one and a half times that: half of it waits in the queue.
    Full,
    /// Connections of 20 kB, one after the other.
    Requests,
    /// One flow that nothing but its congestion control limits.
    Open,
}

impl Traffic {
    /// Those of the tables of round trips.
    pub const TABLES: [Traffic; 3] = [Traffic::Half, Traffic::Full, Traffic::Requests];

    /// What tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Traffic::Half => "half the path",
            Traffic::Full => "full path",
            Traffic::Requests => "requests",
            Traffic::Open => "bulk",
        }
    }

    /// The receiver's window in full segments.
    fn window(self, full: u64) -> u64 {
        match self {
            Traffic::Half => full / 2,
            Traffic::Full => full * 3 / 2,
            Traffic::Requests | Traffic::Open => 20_000,
        }
    }
}

/// A line and its delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Mbit/s.
    pub rate: u64,
    /// Both ways, milliseconds.
    pub rtt: u64,
}

/// Where round trips and timeouts are looked at.
pub const LINES: [Line; 2] = [Line { rate: 10, rtt: 50 }, Line { rate: 100, rtt: 5 }];
/// Where ProbeRTT is looked at; in the first one half of the path is two segments.
pub const PROBED: [Line; 3] =
    [Line { rate: 10, rtt: 5 }, Line { rate: 10, rtt: 50 }, Line { rate: 100, rtt: 2 }];

impl Line {
    /// For the truth.
    pub const fn path(self) -> Path {
        Path { rate: Rate::from_mbit(self.rate), delay: Span::from_micros(self.rtt * 500) }
    }
    /// The most payload that it carries, in Mbit/s.
    pub fn payload(self) -> f64 {
        self.rate as f64 * FRAME.1 as f64 / FRAME.0 as f64
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s, {} ms", self.rate, self.rtt)
    }
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// The path.
    pub line: Line,
    /// What flows.
    pub traffic: Traffic,
    /// When the receiver acknowledges.
    pub receiver: Choice,
    /// Which segments ask.
    pub asked: Choice,
    /// The sender's estimator of the timeout.
    pub rto: &'static str,
    /// Its congestion control.
    pub congestion: &'static str,
}

impl Cell {
    /// How long it takes, in seconds.
    fn seconds(&self) -> u64 {
        if self.traffic == Traffic::Open { 20 } else { 6 }
    }

    /// The scenario of the run.
    ///
    /// # Errors
    /// A defect of this plan.
    pub fn scenario(&self) -> Result<Scenario> {
        let Line { rate, rtt } = self.line;
        let (connections, size, apart) = match self.traffic {
            Traffic::Requests => REQUESTS,
            _ => (1, rate * self.seconds() * 250, 0),
        };
        let mut text = SCENARIO.to_owned();
        for n in 0..connections {
            text.push_str(&format!(
                "\n[[flows]]\nname = \"flow-{n}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"{size} kB\"\nstart = \"{} ms\"\n",
                n * apart
            ));
        }
        let key = |key: &str, value: String| (key.to_owned(), value);
        let window = self.traffic.window(rate * rtt * 125 / FRAME.0);
        let mut all = vec![
            key("duration", format!("{} s", self.seconds())),
            key("links.line.rate", format!("{rate} Mbit/s")),
            key("links.line.delay", format!("{} us", rtt * 500)),
            key("flows.*.sender.rto", self.rto.to_owned()),
            key("flows.*.sender.min_rto", "5 ms".to_owned()),
            key("flows.*.sender.congestion", self.congestion.to_owned()),
            key("flows.*.receiver.window", format!("{window} packets")),
        ];
        if self.receiver == THINNED {
            all.push(key("links.line.backward.ack_thinning", "{ every = 8 }".to_owned()));
        }
        all.extend(overrides("*", "receiver", self.receiver));
        all.extend(asking("*", self.asked));
        Scenario::parse_with(&text, "papers/ack/estimators", &all).map_err(|e| anyhow!("{e}"))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { line, traffic, receiver, asked, rto, congestion } = self;
        write!(f, "{line}, {}, {}, {}, {rto}, {congestion}", traffic.name(), receiver.name, asked.name)
    }
}

/// Who asks how, and which estimator makes what of it: the rows of the tables of round trips.
pub const WAYS: [(Choice, &str); 5] =
    [(OFF, "rfc6298"), (EVERYTHING, "rfc6298"), (RTT, "cdl"), (AUTO, "cdl"), (EVERYTHING, "cdl")];
/// The congestion controls that estimate bandwidth.
pub const MEASURING: [&str; 3] = ["tcp-j", "star", "bbr3"];
/// How those are asked.
pub const ASKED: [Choice; 4] = [OFF, RTT, AUTO, EVERYTHING];
/// How ProbeRTT is.
pub const PROBES: [Choice; 3] = [OFF, TARR, PROBE_RTT];

/// All receivers, those of the quick run first.
pub fn receivers(quick: bool) -> Vec<Choice> {
    let [linux, rfc5681, stretch, bsd] = RECEIVERS;
    let [none, linux26] = OTHER_RECEIVERS;
    if quick { vec![none, bsd, stretch] } else { vec![none, rfc5681, linux, linux26, bsd, stretch, THINNED] }
}

/// All runs.
pub fn cells(quick: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    let receivers = receivers(quick);
    for &receiver in &receivers {
        for &line in LINES.iter().take(if quick { 1 } else { LINES.len() }) {
            for traffic in Traffic::TABLES {
                for (asked, rto) in WAYS {
                    cells.push(Cell { line, traffic, receiver, asked, rto, congestion: "cubic" });
                }
            }
        }
        let [line, ..] = LINES;
        for congestion in MEASURING {
            for asked in ASKED {
                cells.push(Cell {
                    line,
                    traffic: Traffic::Full,
                    receiver,
                    asked,
                    rto: "rfc6298",
                    congestion,
                });
            }
        }
        for &line in PROBED.iter().take(if quick { 1 } else { PROBED.len() }) {
            for asked in PROBES {
                let traffic = Traffic::Open;
                cells.push(Cell { line, traffic, receiver, asked, rto: "rfc6298", congestion: "bbr3" });
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a cell is refused in the middle of a long measurement.
    #[test]
    fn every_cell_can_be_run() {
        for cell in cells(false) {
            let scenario = cell.scenario().unwrap_or_else(|e| panic!("{cell}: {e}"));
            for flow in &scenario.flows {
                assert!(flow.sender.resolve().is_ok() && flow.receiver.resolve().is_ok(), "{cell}");
            }
        }
    }
}
