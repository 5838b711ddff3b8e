//! The solutions of all five papers on one path.
//!
//! Each was found on a path with one impairment. Here paths have all five, and solutions are taken out one by
//! one and put in one by one, as the papers publish them and with what is known now. `solutions` says what
//! each changes in a scenario.

mod page;
mod solutions;

pub use solutions::{Era, Solution, SolutionSender, SolutionSet};

use crate::bulk::{self, BulkRun};
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::observe::{Setting, scenario};
use crate::report::ExperimentReport;
use farpace_lab::scenario::{MAX_DURATION, Scenario};
use farpace_units::{Instant, Span};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// A path with all impairments: its name, the file of its scenario, and its text, which has all modern
/// solutions.
type SharedPath = (&'static str, &'static str, &'static str);

const PATHS: [SharedPath; 2] = [
    ("ship", "scenarios/gallery/together.toml", include_str!("../../../../scenarios/gallery/together.toml")),
    (
        "office",
        "scenarios/gallery/together-office.toml",
        include_str!("../../../../scenarios/gallery/together-office.toml"),
    ),
];

/// A path of the experiment.
struct ChosenPath {
    /// Its place in [`PATHS`].
    place: usize,
    /// Its scenario, with all modern solutions.
    base: Scenario,
    /// Virtual time of each run.
    time: Span,
}

impl ChosenPath {
    fn name(&self) -> &'static str {
        PATHS[self.place].0
    }
    fn file(&self) -> &'static str {
        PATHS[self.place].1
    }
    /// What the path carries, in Mbit/s of payload, without what a window needs to open and errors cost.
    fn ceiling(&self) -> f64 {
        let bottleneck = self.base.flows.first().and_then(|flow| self.base.bottleneck(flow));
        bottleneck.map_or(f64::NAN, |b| b.goodput.as_mbit_f64())
    }
}

/// The same transfer on devices of this machine, in real time.
#[derive(Clone, Debug)]
pub struct DeviceRun {
    /// Mbit/s.
    pub goodput: f64,
    /// 99 % of packets were late by less, in ms; NaN if it was not measured.
    pub late_ms: f64,
    /// For programs.
    pub json: Value,
}

/// All solutions on one path.
pub struct Together {
    paths: Vec<ChosenPath>,
    seeds: u64,
    set: Vec<Setting>,
    devices: Vec<(TogetherCase, DeviceRun)>,
}

impl Together {
    /// Both paths, or the one that is named, with so many seeds. `time` replaces the scenarios' own.
    ///
    /// # Errors
    /// A name that no path has, or values that the scenarios do not take.
    pub fn new(
        name: Option<&str>,
        seeds: u64,
        time: Option<Span>,
        set: &[Setting],
    ) -> Result<Self, MeasureError> {
        let mut paths = Vec::new();
        for (place, (own, file, text)) in PATHS.into_iter().enumerate() {
            if name.is_some_and(|name| name != own) {
                continue;
            }
            let base = scenario(text, file, set)?;
            let time = time.unwrap_or(base.duration);
            if time < Span::from_secs(1) || time > MAX_DURATION {
                return Err(MeasureError::Invalid("--time must be from 1 s to 30 days".into()));
            }
            paths.push(ChosenPath { place, base, time });
        }
        match name.filter(|_| paths.is_empty()) {
            Some(name) => {
                let names = PATHS.map(|path| path.0).join(", ");
                Err(MeasureError::Invalid(format!("there is no path `{name}`: {names}")))
            }
            None => Ok(Together { paths, seeds, set: set.to_vec(), devices: Vec::new() }),
        }
    }

    /// Runs for [`add_device_run`](Together::add_device_run): modern solutions and outsiders with the first
    /// seed, each with its scenario and the scenario's file.
    ///
    /// # Errors
    /// Values that the scenarios do not take.
    pub fn device_runs(&self) -> Result<Vec<(TogetherCase, Scenario, &'static str)>, MeasureError> {
        let published =
            |case: &TogetherCase| matches!(case.sender, SolutionSender::Solved(Era::Published, _));
        let cases = self.cases().filter(|case| !published(case));
        cases.map(|case| Ok((case, self.scenario(case, 1)?, PATHS[case.path].1))).collect()
    }
    /// Adds what came of a run on devices.
    pub fn add_device_run(&mut self, case: TogetherCase, run: DeviceRun) {
        self.devices.push((case, run));
    }

    fn cases(&self) -> impl Iterator<Item = TogetherCase> {
        let of = |path: &ChosenPath| {
            let path = path.place;
            SolutionSender::all().into_iter().map(move |sender| TogetherCase { path, sender })
        };
        self.paths.iter().flat_map(of)
    }
    fn scenario(&self, case: TogetherCase, seed: u64) -> Result<Scenario, MeasureError> {
        let (_, file, text) = PATHS[case.path];
        let all: Vec<Setting> = self.set.iter().cloned().chain(case.sender.settings()).collect();
        let duration = self.paths.iter().find(|path| path.place == case.path).map(|path| path.time);
        let scenario = scenario(text, file, &all)?;
        Ok(Scenario { seed, duration: duration.unwrap_or(scenario.duration), ..scenario })
    }
}

/// Who sends over which path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TogetherCase {
    path: usize,
    sender: SolutionSender,
}

impl fmt::Display for TogetherCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let era = match self.sender {
            SolutionSender::Solved(era, _) => era.name(),
            SolutionSender::Outsider { .. } => "outsider",
        };
        write!(f, "{}: {}, {era}", PATHS[self.path].0, self.sender)
    }
}

/// What came of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SolvedTransfer {
    /// Payload that arrived, over the time from connecting to the end of the run, in Mbit/s.
    goodput: f64,
    /// The longest time without a byte after the first byte, in seconds: as fine as a bin.
    silence: f64,
    /// Packets dropped by policers and full queues, of 1,000 segments sent.
    congestion_lost: f64,
    /// Packets dropped for other reasons, which are bit errors here, of 1,000 segments sent.
    errors_lost: f64,
    /// Retransmissions beyond all that was dropped anywhere, of 1,000 segments sent: spurious ones.
    spurious: f64,
    /// ACKs that the receiver sent, for 100 segments.
    acks: f64,
    /// End of each bin in seconds, and bytes that arrived in it.
    bins: Vec<(f64, u64)>,
}

impl SolvedTransfer {
    fn of(run: &BulkRun) -> Option<Self> {
        let flow = run.flows.first()?;
        let bins: Vec<(Instant, u64)> = flow.readings.iter().map(|r| (r.at(), r.delivered)).collect();
        // Percent there.
        let of_1000 = |percent: f64| percent * 10.0;
        Some(SolvedTransfer {
            goodput: flow.goodput,
            silence: longest_silence(&bins).as_secs_f64(),
            congestion_lost: of_1000(run.congestion_lost),
            errors_lost: of_1000(run.lost - run.congestion_lost),
            spurious: of_1000((flow.retransmitted - run.lost).max(0.0)),
            acks: flow.acks,
            bins: bins.into_iter().map(|(at, bytes)| (at.as_secs_f64(), bytes)).collect(),
        })
    }
}

/// The longest stretch of bins without a byte, from the first byte to the end.
fn longest_silence(bins: &[(Instant, u64)]) -> Span {
    let [(first, _), (second, _), ..] = bins else { return Span::ZERO };
    let silences = bins.split(|(_, delivered)| *delivered > 0);
    // What is before the first byte is no silence.
    let longest = silences.skip(1).map(<[_]>::len).max().unwrap_or(0);
    second.since(*first) * longest as u64
}

impl Experiment for Together {
    type Case = TogetherCase;
    type Measurement = SolvedTransfer;

    fn plan(&self) -> Vec<CaseRun<TogetherCase>> {
        self.cases().flat_map(|case| (1..=self.seeds).map(move |number| CaseRun { case, number })).collect()
    }
    fn inputs(&self) -> String {
        let times: Vec<Span> = self.paths.iter().map(|path| path.time).collect();
        format!("{times:?} {:?}", self.set)
    }
    fn check(&self, case: &TogetherCase) -> Result<(), MeasureError> {
        self.scenario(*case, 1).map(drop)
    }
    fn measure(
        &self,
        run: &CaseRun<TogetherCase>,
        stop: &StopRequest<'_>,
    ) -> Result<SolvedTransfer, MeasureError> {
        let measured = bulk::measure(&self.scenario(run.case, run.number)?, true, stop)?;
        SolvedTransfer::of(&measured).ok_or_else(|| MeasureError::Invalid("the scenario has no flow".into()))
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        page::report(measured, command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a stop is not seen, is longer than it was, or the time before the first byte counts.
    #[test]
    fn silence_is_what_lies_between_bytes_and_behind_the_last() {
        let of = |bins: &[u64]| {
            let at =
                |(n, bytes): (usize, &u64)| (Instant::ZERO + Span::from_millis(100) * (n as u64 + 1), *bytes);
            longest_silence(&bins.iter().enumerate().map(at).collect::<Vec<_>>()).as_millis()
        };
        assert_eq!(of(&[0, 0, 0, 5, 5, 5]), 0);
        assert_eq!(of(&[0, 5, 0, 0, 5, 0, 5]), 200);
        assert_eq!(of(&[5, 0, 5, 0, 0, 0]), 300);
        assert_eq!(of(&[]), 0);
        assert_eq!(of(&[0, 0]), 0);
    }
}
