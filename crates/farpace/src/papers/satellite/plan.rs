//! Which runs are made.

use super::{Args, sensitivity};
use crate::grid::{Ber, Contender, Queue, Satellite};
use anyhow::Result;
use farpace_lab::scenario::Scenario;
use farpace_units::Span;
use std::collections::BTreeMap;
use std::fmt;

/// The paper.
pub const PAPER: &str = "Implementation and Evaluation of TCP-STAR: TCP Congestion Control Method for Satellite \
                         Internet (Obata, Taira, Ishida; Hiroshima City University, 2006)";

/// Seeds of the full measurement, of the quick one, and of the frontier.
pub const SEEDS: (u64, u64, u64) = (10, 5, 3);

/// The algorithms of the paper, as scenarios write them, with the paper's names. STAR comes first.
pub const ALGORITHMS: [(&str, &str); 5] = [
    ("star", "STAR"),
    ("tcp-j", "TCP-J"),
    ("highspeed", "HSTCP"),
    ("scalable", "Scalable"),
    ("reno", "NewReno"),
];

/// Those that share the router with STAR (Figs. 19, 20), and with themselves (Figs. 12, 16).
pub const NEIGHBOURS: [&str; 2] = ["tcp-j", "highspeed"];

/// The paper's name of an algorithm; the scenario's, if the paper has none.
pub fn label(name: &str) -> &str {
    ALGORITHMS.iter().find(|(n, _)| *n == name).map_or(name, |(_, label)| label)
}

/// A single flow of an algorithm of the paper.
pub fn single(name: &str, ber: Ber) -> Satellite {
    Satellite::single(Contender::paper(name), ber)
}

/// The same, error free, whose ACKs are lost for a second.
pub fn blackout(name: &str) -> Satellite {
    Satellite { blackout: true, ..single(name, Ber::Zero) }
}

/// Two flows of algorithms of the paper.
pub fn pair(first: &str, second: &str, ber: Ber, queue: Queue) -> Satellite {
    Satellite::pair(Contender::paper(first), Contender::paper(second), ber, queue)
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Who sends over which link.
    pub cell: Satellite,
    /// From 1.
    pub seed: u64,
    /// Every bin is kept, for figures.
    pub readings: bool,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, seed {}", self.cell, self.seed)
    }
}

/// All runs.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In order.
    pub jobs: Vec<Job>,
    /// Runs of each cell that the dice can change.
    pub seeds: u64,
    /// Virtual time of each run.
    pub time: Span,
    set: Vec<(String, String)>,
}

impl Plan {
    /// A plan without runs.
    pub fn new(args: &Args, seeds: u64) -> Plan {
        let seeds = args.seeds.unwrap_or(seeds);
        Plan { jobs: Vec::new(), seeds, time: args.time, set: args.set.clone() }
    }

    /// All runs of the paper.
    pub fn paper(args: &Args) -> Plan {
        let mut plan = Plan::new(args, if args.quick { SEEDS.1 } else { SEEDS.0 });
        for (name, _) in ALGORITHMS {
            for ber in Ber::ALL {
                plan.add(single(name, ber), true);
            }
            plan.add(blackout(name), true);
        }
        for queue in Queue::ROUTER {
            for ber in Ber::ALL {
                for (name, _) in ALGORITHMS {
                    plan.add(pair(name, name, ber, queue), true);
                }
                for name in NEIGHBOURS {
                    plan.add(pair("star", name, ber, queue), true);
                }
            }
        }
        if !args.quick {
            for cell in sensitivity::cells() {
                plan.add_seeds(cell, 1, false);
            }
            for cell in sensitivity::filter_cells() {
                plan.add(cell, false);
            }
            for cell in sensitivity::burst_cells() {
                // Some of them are there already.
                if !plan.jobs.iter().any(|j| j.cell == cell) {
                    plan.add(cell, false);
                }
            }
        }
        plan
    }

    /// The runs of a cell; with `readings`, every bin of the first one is kept.
    pub fn add(&mut self, cell: Satellite, readings: bool) {
        let seeds = if cell.is_certain() { 1 } else { self.seeds };
        self.add_seeds(cell, seeds, readings);
    }

    fn add_seeds(&mut self, cell: Satellite, seeds: u64, readings: bool) {
        let job = |seed| Job { cell: cell.clone(), seed, readings: readings && seed == 1 };
        self.jobs.extend((1..=seeds).map(job));
    }

    /// The scenario of one run.
    ///
    /// # Errors
    /// What `--set` has made impossible.
    pub fn scenario(&self, job: &Job) -> Result<Scenario> {
        job.cell.scenario(job.seed, self.time, &self.set)
    }

    /// Finds out whether every cell can be run, before the first one is.
    ///
    /// # Errors
    /// As [`scenario`](Plan::scenario).
    pub fn check(&self) -> Result<()> {
        let first: BTreeMap<usize, &Job> = self.jobs.iter().map(|j| (j.cell.senders.len(), j)).collect();
        first.values().try_for_each(|job| self.scenario(job).map(drop))
    }
}
