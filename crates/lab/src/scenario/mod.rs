//! The language of scenarios: hosts, routers, switches, links and flows, read from TOML.
//!
//! Values have units (`rate = "500 Mbit/s"`). Reading is strict: an unknown key, a wrong unit, a flow without
//! a path are errors, which show the place in the file and what would be right. A [`Scenario`] that
//! [`Scenario::parse`] has returned can be run.
//!
//! Start reading at [`Scenario`]. `check` has the rules, `impairment` a file for each impairment, `topology`
//! the routes, `figures` the arithmetic that [`explain`] puts into words.

mod aqm;
mod check;
mod datagrams;
mod document;
mod error;
mod explain;
mod external;
mod fault;
mod figures;
mod generate;
mod hint;
mod impairment;
mod nearest;
mod nics;
mod number;
mod periods;
mod place;
mod processor;
mod read;
mod schedule;
mod set;
mod spec;
mod taps;
mod topology;
mod workload;

pub use aqm::{Aqm, CoDelSpec, FqCoDelSpec, RedSpec};
pub use check::MAX_BINS;
pub use datagrams::{DatagramFlow, DatagramSpacing};
pub use error::{ErrorPlace, MAX_PROBLEMS, ScenarioError, ScenarioProblem};
pub use explain::explain;
pub use farpace_path::QueueLimit;
pub use figures::{PathBottleneck, SegmentSizes};
pub use generate::{MAX_GENERATED, Topology, TopologyFigures, generate};
pub use impairment::{
    AckThinningSpec, BitErrorsSpec, BurstLossSpec, ClockJumpSpec, ClockJumpsSpec, CorruptSpec, DuplicateSpec,
    InterruptsSpec, JitterSpec, LossSpec, MiddleboxSpec, MtuChangeSpec, MtuSpec, OutagesSpec, PolicerCounts,
    PolicerSpec, ReorderSpec, StripOnSpec, StripOptions,
};
pub(crate) use impairment::{ElementRefusal, ImpairmentPosition};
pub use periods::PeriodSpec;
pub(crate) use periods::periods;
pub use processor::ProcessorSpec;
pub use schedule::{MAX_STEPS, MAX_TRACE, ScheduleSpec, ScheduleStep};
pub use spec::{
    CaptureClock, Direction, DirectionSpec, ExchangeSpec, FlowSpec, HostSpec, LinkSpec, PortionsSpec,
    ResolvedDirection, RouterSpec, Scenario, SwitchKind, SwitchSpec, Trace,
};
pub use taps::{Tap, TapPlace};
pub use topology::Hop;
pub use workload::{
    CdfPoint, LogNormalSpec, MAX_DRAWN_FLOWS, MAX_WORKLOAD_POINTS, MixSpec, ParetoSpec, SizeTable, SizesSpec,
    StartsSpec,
};

use farpace_tcp::config::ExternalControl;
use farpace_units::ByteCount;

/// Longest scenario text that is read.
pub const MAX_TEXT: ByteCount = ByteCount::new(1 << 20);
/// Most `--set` overrides that are taken.
pub const MAX_OVERRIDES: usize = 1_000;
/// Most hosts, routers and switches together.
pub const MAX_NODES: usize = 1_000;
/// Most links.
pub const MAX_LINKS: usize = 1_000;
/// Most flows.
pub const MAX_FLOWS: usize = 1_000;
/// Most entries in `trace.taps`.
pub const MAX_TAPS: usize = 64;
/// Most outages of one direction of a link, and most stalls of a host.
pub const MAX_OUTAGES: usize = 10_000;
/// Longest name of a host, router, switch, link or flow, in characters: names become parts of file names.
pub const MAX_NAME: usize = 32;
/// Longest virtual time limit: 30 days.
pub const MAX_DURATION: farpace_units::Span = farpace_units::Span::from_secs(30 * 24 * 3600);

/// Reads a file beside a scenario: its text by its name, or why there is none.
pub type ReadBeside<'a> = &'a dyn Fn(&str) -> Result<String, String>;

impl Scenario {
    /// Reads and checks a scenario. `name` is the name of the text in errors: the file name.
    ///
    /// # Errors
    /// What is wrong, where, and what would be right; see [`ScenarioError`].
    pub fn parse(text: &str, name: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(text, name, &[])
    }

    /// Reads a scenario with some values replaced. Each override is a dotted path and a value, as in
    /// `links.wan.delay` = `20 ms`. Links and flows are addressed by name or by index from 0; `*` stands for
    /// all of them. A value that is not TOML by itself is taken as a string.
    ///
    /// # Errors
    /// As for [`parse`](Scenario::parse), and for a path that does not exist.
    pub fn parse_with(
        text: &str,
        name: &str,
        overrides: &[(String, String)],
    ) -> Result<Scenario, ScenarioError> {
        Scenario::parse_beside(text, name, overrides, &|_| Err("no files can be read here".to_owned()))
    }

    /// Reads a scenario that may name files in its directory, like the steps of a link's `schedule`. `beside`
    /// returns the text of a file by its name, or why there is none. The contents become part of the
    /// scenario.
    ///
    /// # Errors
    /// As for [`parse_with`](Scenario::parse_with), and for files that are missing or wrong.
    pub fn parse_beside(
        text: &str,
        name: &str,
        overrides: &[(String, String)],
        beside: ReadBeside<'_>,
    ) -> Result<Scenario, ScenarioError> {
        Scenario::parse_controlled(text, name, overrides, beside, &[])
    }

    /// Reads a scenario in which `congestion` of a flow may name one of `controls`, besides our own.
    ///
    /// # Errors
    /// As for [`parse_beside`](Scenario::parse_beside).
    pub fn parse_controlled(
        text: &str,
        name: &str,
        overrides: &[(String, String)],
        beside: ReadBeside<'_>,
        controls: &[ExternalControl],
    ) -> Result<Scenario, ScenarioError> {
        let source = error::ScenarioText { name, text, overrides };
        let fail = |faults: Vec<fault::ScenarioFault>| source.explain(faults);
        if text.len() > MAX_TEXT.as_len() {
            return Err(fail(vec![fault::ScenarioFault::of_file(format!(
                "the scenario is {} long; the limit is 1 MiB",
                ByteCount::of_len(text.len())
            ))]));
        }
        if overrides.len() > MAX_OVERRIDES {
            return Err(fail(vec![fault::ScenarioFault::of_file(format!(
                "{} overrides; the limit is {MAX_OVERRIDES}",
                overrides.len()
            ))]));
        }
        let mut root = document::parse(text).map_err(|f| fail(vec![f]))?;
        for (i, (path, value)) in overrides.iter().enumerate() {
            set::apply(&mut root, i, path, value).map_err(|f| fail(vec![f]))?;
        }
        let controlled = external::take(&mut root, controls).map_err(|f| fail(vec![f]))?;
        let mut scenario: Scenario = read::read(&root).map_err(|f| fail(vec![f]))?;
        external::put(&mut scenario, controlled);
        let mut findings = check::read_files(&mut scenario, beside);
        if findings.is_empty() {
            findings = check::check(&scenario);
        }
        if findings.is_empty() {
            return Ok(scenario);
        }
        Err(fail(findings.into_iter().map(|f| f.locate(&root)).collect()))
    }

    /// The first two of these paths of overrides of which the second replaces a value that the first has set:
    /// a name and a number, or `*` and a name, may stand for the same element. None as well for a text that
    /// is no TOML.
    pub fn same_place(text: &str, paths: &[&str]) -> Option<(usize, usize)> {
        let root = document::parse(text).ok()?;
        let mut seen: Vec<(Vec<String>, usize)> = Vec::new();
        for (n, path) in paths.iter().enumerate() {
            let places = set::places(&root, path);
            let replaced = |place: &Vec<String>| seen.iter().find(|(other, _)| other.starts_with(place));
            if let Some((_, first)) = places.iter().find_map(replaced) {
                return Some((*first, n));
            }
            seen.extend(places.into_iter().map(|place| (place, n)));
        }
        None
    }

    /// The scenario as TOML text, which [`parse`](Scenario::parse) reads back to the same scenario, and
    /// [`parse_controlled`](Scenario::parse_controlled) where flows have controls of the program's own.
    ///
    /// # Errors
    /// A seed of 2^63 or more: TOML has no such number.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        if !external::any(self) {
            return toml::to_string(self);
        }
        let mut root = toml::Table::try_from(self)?;
        external::write(self, &mut root);
        toml::to_string(&root)
    }
}

/// The JSON schema of a scenario file, with the descriptions of its keys.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Scenario).to_value()
}
