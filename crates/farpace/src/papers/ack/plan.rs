//! Which runs are made.

use super::cases::{Case, Policy, Route};
use super::{Args, clocks, sensitivity};
use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use std::collections::BTreeSet;
use std::fmt;

/// The thesis.
pub const PAPER: &str = "A mechanism by which the sender controls acknowledgments (Cancel Delayed ACK; master's thesis, Japan \
                         Advanced Institute of Science and Technology, Shinoda laboratory)";
/// Phases of the full measurement and of the quick one.
const PHASES: (u64, u64) = (10, 2);

/// What is noted of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counters, and the curve of the first phase.
    Transfer,
    /// Round trips and timeouts as well.
    RoundTrips,
    /// How long it takes until the last segment, which is lost, has been repaired.
    TailLoss,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    /// With which settings.
    pub case: Case,
    /// From 0.
    pub phase: u64,
    /// What is noted.
    pub kind: Kind,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, phase {}", self.case, self.phase)
    }
}

/// All runs.
pub struct Plan {
    /// In order.
    pub jobs: Vec<Job>,
    /// Runs of each case.
    pub phases: u64,
    set: Vec<(String, String)>,
}

impl Plan {
    /// All runs of the thesis.
    pub fn new(args: &Args) -> Plan {
        let phases = if args.quick { PHASES.1 } else { PHASES.0 };
        let mut plan = Plan { jobs: Vec::new(), phases, set: args.set.clone() };
        let mut transfers = BTreeSet::new();
        for route in Route::ALL {
            transfers.extend(Policy::ALL.map(|policy| Case::new(route, policy, false)));
            transfers.extend([Policy::None, Policy::Rtt].map(|policy| Case::new(route, policy, true)));
        }
        transfers.extend(sensitivity::four_cases());
        if !args.quick {
            transfers.extend(sensitivity::cases());
        }
        for case in transfers {
            plan.add(case, Kind::Transfer);
        }
        for case in clocks::cases() {
            plan.add(case.clone(), Kind::RoundTrips);
            plan.add(clocks::short(case), Kind::TailLoss);
        }
        plan
    }

    fn add(&mut self, case: Case, kind: Kind) {
        self.jobs.extend((0..self.phases).map(|phase| Job { case: case.clone(), phase, kind }));
    }

    /// The scenario of one run.
    ///
    /// # Errors
    /// What `--set` has made impossible.
    pub fn scenario(&self, job: &Job) -> Result<Scenario> {
        job.case.scenario(job.phase, &self.set)
    }

    /// The scenario of one run with a setting more.
    ///
    /// # Errors
    /// As [`scenario`](Plan::scenario).
    pub fn scenario_with(&self, job: &Job, name: &str, value: &str) -> Result<Scenario> {
        job.case.clone().with(name, value).scenario(job.phase, &self.set)
    }

    /// Finds out whether every case can be run, before the first one is.
    ///
    /// # Errors
    /// As [`scenario`](Plan::scenario).
    pub fn check(&self) -> Result<()> {
        let first = self.jobs.iter().filter(|job| job.phase == 0);
        for job in first {
            let scenario = self.scenario(job)?;
            for flow in &scenario.flows {
                flow.sender.resolve().and(flow.receiver.resolve()).map_err(|e| anyhow!("{job}: {e}"))?;
            }
        }
        Ok(())
    }
}
