//! What is compared: paths, policies of asking, and other settings of the scenario.

use crate::assumptions::{RunPart, WorldAssumptions};
use crate::experiment::MeasureError;
use crate::observe::{Setting, scenario, set};
use farpace_lab::scenario::Scenario;
use farpace_units::Span;
use std::fmt;

/// `farpace run` takes the file as well.
pub const SCENARIO: &str = include_str!("../../../../scenarios/papers/ack.toml");
/// From connecting to the end of the measurement.
pub const TIME: Span = Span::from_secs(10);
/// Payload of a full segment without timestamps, in bytes.
pub const MSS: u64 = 1460;
/// What 10 s of the line carry: 427 packets of 1500 B with 1460 B of payload each, in kB.
pub const CEILING_KB: f64 = 427.0 * MSS as f64 / 1e3;
/// Connections begin so much later from phase to phase, against the ticks of both hosts.
const STEP: Span = Span::from_millis(50);
/// The receive window as scenarios write it.
const WINDOW: &str = "flows.bulk.receiver.receive_buffer";

/// How the 50 ms of propagation are divided: 25 ms each way, or 45 ms for data and 5 ms for ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DelaySplit {
    Even,
    Uneven,
}

impl DelaySplit {
    pub const BOTH: [DelaySplit; 2] = [DelaySplit::Even, DelaySplit::Uneven];

    /// In ms.
    const fn delays(self) -> [u32; 2] {
        match self {
            DelaySplit::Even => [25, 25],
            DelaySplit::Uneven => [45, 5],
        }
    }
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            DelaySplit::Even => "25+25 ms",
            DelaySplit::Uneven => "45+5 ms",
        }
    }
}

/// Which segments ask for an ACK at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AskPolicy {
    None,
    /// The one that is timed. The following ones ask with it, too.
    Rtt,
    Every2,
    Every3,
    Every4,
    /// The segment that fills the window.
    WindowEnd,
    SlowStart,
}

/// For programs and for people; `ack_requests` of a scenario, and `ack_request_every`.
type PolicyRow = (&'static str, &'static str, &'static str, Option<&'static str>);

const POLICIES: [PolicyRow; 7] = [
    ("none", "none", "[]", None),
    ("rtt", "RTT", r#"["rtt"]"#, None),
    ("every-2", "RTT + every 2nd", r#"["rtt"]"#, Some("2 packets")),
    ("every-3", "RTT + every 3rd", r#"["rtt"]"#, Some("3 packets")),
    ("every-4", "RTT + every 4th", r#"["rtt"]"#, Some("4 packets")),
    ("window-end", "RTT + window end", r#"["rtt", "window-end"]"#, None),
    ("slow-start", "RTT + slow start", r#"["rtt", "slow-start"]"#, None),
];

use AskPolicy as P;

impl AskPolicy {
    /// All of them, in the order of the thesis.
    pub const ALL: [P; 7] = [P::None, P::Rtt, P::Every2, P::Every3, P::Every4, P::WindowEnd, P::SlowStart];

    /// Those that ask.
    pub fn asking() -> impl Iterator<Item = P> {
        P::ALL.into_iter().skip(1)
    }
    /// For programs.
    pub const fn id(self) -> &'static str {
        POLICIES[self as usize].0
    }
    /// For people.
    pub const fn label(self) -> &'static str {
        POLICIES[self as usize].1
    }
}

/// What is measured in the runs of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AckRunKind {
    /// Counters, and the curve of the first phase.
    Transfer,
    /// Round trips and timeouts as well.
    RoundTrips,
    /// How long it takes until the last segment, which is lost, has been repaired.
    TailLoss,
}

/// Settings on top of the scenario. Runs differ in the phase of the ticks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AckCase {
    label: String,
    settings: Vec<Setting>,
    pub kind: AckRunKind,
}

impl AckCase {
    /// A row of the thesis' tables.
    pub fn new(split: DelaySplit, policy: AskPolicy, timestamps: bool) -> Self {
        let [forward, backward] = split.delays();
        let (_, _, when, every) = POLICIES[policy as usize];
        let mut case = AckCase {
            label: format!("{}, {}", policy.label(), split.name()),
            settings: vec![
                set("links.line.forward.delay", format!("{forward} ms")),
                set("links.line.backward.delay", format!("{backward} ms")),
                set("flows.bulk.sender.ack_requests", when),
            ],
            kind: AckRunKind::Transfer,
        };
        case.settings.extend(every.map(|every| set("flows.bulk.sender.ack_request_every", every)));
        if timestamps {
            case.label.push_str(", timestamps");
            case = case.sender("timestamps", "true").with("flows.bulk.receiver.timestamps", "true");
        }
        case
    }
    /// The same with four segments in flight. The thesis' sender timed 104 segments in 10 s, one at a time:
    /// 96 ms each. A round trip takes 140 ms with six segments in flight, and 94 ms with four.
    pub fn with_four_in_flight(self) -> Self {
        self.with(WINDOW, "5840 B").called_more("four segments in flight")
    }
    /// The same by another name.
    pub fn called(mut self, label: &str) -> Self {
        label.clone_into(&mut self.label);
        self
    }
    /// The same with more in its name.
    pub fn called_more(mut self, label: &str) -> Self {
        self.label = format!("{}, {label}", self.label);
        self
    }
    /// The same, measured otherwise.
    pub fn of_kind(mut self, kind: AckRunKind) -> Self {
        self.kind = kind;
        self
    }
    /// The same with a setting.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.settings.push(set(name, value));
        self
    }
    /// The same with a TCP setting of the sender.
    pub fn sender(self, name: &str, value: &str) -> Self {
        self.with(&format!("flows.bulk.sender.{name}"), value)
    }

    /// The scenario of a phase, with `more` on top.
    ///
    /// # Errors
    /// What the settings make impossible.
    pub(crate) fn scenario(&self, phase: u64, more: &WorldAssumptions) -> Result<Scenario, MeasureError> {
        let start = STEP * phase;
        let mut all =
            vec![set("duration", (start + TIME).to_string()), set("flows.bulk.start", start.to_string())];
        all.extend(self.settings.iter().cloned());
        let mut parts = vec![
            ("sender-host", "hosts.a"),
            ("receiver-host", "hosts.b"),
            ("sender", "flows.bulk.sender"),
            ("line", "links.line"),
        ];
        // A case that has a receive window of its own is about that.
        if !self.settings.iter().any(|(key, _)| key == WINDOW) {
            parts.push(("receiver", "flows.bulk.receiver"));
        }
        let parts: Vec<RunPart<'_>> =
            parts.into_iter().map(|(name, table)| (name, table.to_owned())).collect();
        more.apply(&mut all, &parts);
        scenario(SCENARIO, "scenarios/papers/ack.toml", &all)
    }
}

impl fmt::Display for AckCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// What the thesis leaves open: name, key of the scenario, and values to try.
const OPEN: [(&str, &str, &[&str]); 6] = [
    ("emulator's queue", "links.line.queue", &["4 packets", "5 packets", "6 packets", "1000 packets"]),
    (
        "first slow-start threshold",
        "flows.bulk.sender.initial_ssthresh",
        &["4 packets", "45 packets", "1000000 packets"],
    ),
    ("receiver's tick", "flows.bulk.receiver.ack_delay", &["50 ms", "100 ms", "500 ms"]),
    ("initial window", "flows.bulk.sender.initial_window", &["1 packet", "2 packets", "4 packets"]),
    ("send buffer", "flows.bulk.sender.send_buffer", &["4096 B", "8192 B", "8760 B", "16 kB"]),
    ("receive window", WINDOW, &["4380 B", "5840 B", "17520 B"]),
];
/// Policies of the sweep.
pub const SWEPT: [AskPolicy; 4] = [P::None, P::Rtt, P::Every4, P::SlowStart];

/// The rows of the sweep over what the thesis leaves open: name, value, and a case for each of [`SWEPT`].
pub fn sweep() -> Vec<(&'static str, &'static str, [AckCase; 4])> {
    let case = |policy| AckCase::new(DelaySplit::Even, policy, false);
    let mut rows = vec![("as assumed", "", SWEPT.map(case))];
    for (name, key, values) in OPEN {
        rows.extend(values.iter().map(|value| {
            let more = format!("{key} = {value}");
            (name, *value, SWEPT.map(|policy| case(policy).with(key, value).called_more(&more)))
        }));
    }
    rows
}
