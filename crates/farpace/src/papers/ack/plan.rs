//! Which runs are made.

use super::{Args, clocks, sensitivity};
use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_units::Span;
use std::collections::BTreeSet;
use std::fmt;

/// The thesis.
pub const PAPER: &str = "A mechanism by which the sender controls acknowledgments (Cancel Delayed ACK; master's thesis, Japan \
                         Advanced Institute of Science and Technology, Shinoda laboratory)";
/// `farpace run` takes the file as well.
pub const SCENARIO: &str = include_str!("../../../../../scenarios/papers/ack.toml");
/// From connecting to the end of the measurement.
pub const TIME: Span = Span::from_secs(10);
/// Payload of a full segment without timestamps.
pub const MSS: u64 = 1460;
/// What 10 s of the line carry: 427 packets of 1500 B with 1460 B of payload each, in kB.
pub const CEILING_KB: f64 = 427.0 * MSS as f64 / 1e3;
/// Connections begin so much later from run to run, against the ticks of both hosts.
const STEP: Span = Span::from_millis(50);
/// Phases of the full measurement and of the quick one.
const PHASES: (u64, u64) = (10, 2);

/// How the 50 ms of propagation are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    /// 25 ms each way.
    Even,
    /// 45 ms for data, 5 ms for ACKs.
    Uneven,
}

impl Route {
    /// Both.
    pub const ALL: [Route; 2] = [Route::Even, Route::Uneven];

    /// For tables.
    pub const fn name(self) -> &'static str {
        match self {
            Route::Even => "25+25 ms",
            Route::Uneven => "45+5 ms",
        }
    }

    fn delays(self) -> (u32, u32) {
        match self {
            Route::Even => (25, 25),
            Route::Uneven => (45, 5),
        }
    }
}

/// Which segments ask: a row of the thesis' tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// None.
    None,
    /// The one that is timed.
    Rtt,
    /// That one, and every so many.
    Every(u8),
    /// That one, and the one that fills the window.
    WindowEnd,
    /// That one, and all in slow start.
    SlowStart,
}

impl Policy {
    /// All of them, without timestamps, in the order of the thesis.
    pub const ALL: [Policy; 7] = [
        Policy::None,
        Policy::Rtt,
        Policy::Every(2),
        Policy::Every(3),
        Policy::Every(4),
        Policy::WindowEnd,
        Policy::SlowStart,
    ];

    /// For tables.
    pub const fn label(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Rtt => "RTT",
            Policy::Every(2) => "RTT + every 2nd",
            Policy::Every(3) => "RTT + every 3rd",
            Policy::Every(_) => "RTT + every 4th",
            Policy::WindowEnd => "RTT + window end",
            Policy::SlowStart => "RTT + slow start",
        }
    }

    /// For programs.
    pub const fn id(self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Rtt => "rtt",
            Policy::Every(2) => "every-2",
            Policy::Every(3) => "every-3",
            Policy::Every(_) => "every-4",
            Policy::WindowEnd => "window-end",
            Policy::SlowStart => "slow-start",
        }
    }

    fn settings(self) -> Vec<(String, String)> {
        let (when, every) = match self {
            Policy::None => ("[]", None),
            Policy::Rtt => (r#"["rtt"]"#, None),
            Policy::Every(n) => (r#"["rtt"]"#, Some(n)),
            Policy::WindowEnd => (r#"["rtt", "window-end"]"#, None),
            Policy::SlowStart => (r#"["rtt", "slow-start"]"#, None),
        };
        let key = |key: &str, value: String| (format!("flows.bulk.sender.{key}"), value);
        let mut all = vec![key("ask_for", when.to_owned())];
        all.extend(every.map(|n| key("ask_every", format!("{n} packets"))));
        all
    }
}

/// One point of the plan: settings on top of the scenario. Its runs differ in phase alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Case {
    label: String,
    settings: Vec<(String, String)>,
}

impl Case {
    /// A row of the thesis' tables.
    pub fn new(route: Route, policy: Policy, timestamps: bool) -> Case {
        let (forward, backward) = route.delays();
        let mut case = Case {
            label: format!("{}, {}", policy.label(), route.name()),
            settings: vec![
                ("links.line.forward.delay".to_owned(), format!("{forward} ms")),
                ("links.line.backward.delay".to_owned(), format!("{backward} ms")),
            ],
        };
        case.settings.extend(policy.settings());
        if timestamps {
            case.label.push_str(", timestamps");
            case = case.at_both("timestamps", "true");
        }
        case
    }

    /// The same by another name.
    pub fn called(mut self, label: &str) -> Case {
        label.clone_into(&mut self.label);
        self
    }

    /// The same with more in its name.
    pub fn called_more(mut self, label: &str) -> Case {
        self.label = format!("{}, {label}", self.label);
        self
    }

    /// The same with another value.
    pub fn with(mut self, name: &str, value: &str) -> Case {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same with another value of a TCP setting of the sender.
    pub fn sender(self, name: &str, value: &str) -> Case {
        self.with(&format!("flows.bulk.sender.{name}"), value)
    }

    /// The same with another value of a TCP setting at both ends.
    pub fn at_both(self, name: &str, value: &str) -> Case {
        self.sender(name, value).with(&format!("flows.bulk.receiver.{name}"), value)
    }

    /// The scenario with the connection beginning so late, with `set` on top.
    ///
    /// # Errors
    /// What `set` makes impossible.
    pub fn scenario(&self, phase: u64, set: &[(String, String)]) -> Result<Scenario> {
        let start = STEP * phase;
        let mut all = vec![
            ("duration".to_owned(), (start + TIME).to_string()),
            ("flows.bulk.start".to_owned(), start.to_string()),
        ];
        all.extend(self.settings.iter().cloned());
        all.extend(set.iter().cloned());
        Scenario::parse_with(SCENARIO, "scenarios/papers/ack.toml", &all).map_err(|e| anyhow!("{e}"))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

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
