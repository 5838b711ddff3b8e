//! The cases that are compared: paths, policies, and what differs from the scenario.

use anyhow::{Result, anyhow};
use farpace_lab::scenario::Scenario;
use farpace_units::Span;
use std::fmt;

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
