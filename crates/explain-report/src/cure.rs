//! What a cure would bring: the path of a capture in the lab, as it was and with the cure.

use farpace_explain::flow::Flow;
use farpace_explain::reproduce::{ReproducedFlow, reproduce};
use farpace_explain::{AttributedView, Diagnosis};
use farpace_lab::scenario::{Scenario, ScenarioError};
use farpace_lab::{Inputs, Run, RunError};
use farpace_units::{ByteCount, Span};
use std::path::PathBuf;

/// Steps of the lab after which a transfer that does not end is given up.
const MAX_STEPS: u64 = 400_000;

/// Both runs.
#[derive(Clone, Debug)]
pub struct Cured {
    /// The scenarios.
    pub scenarios: ReproducedFlow,
    /// The capture's time, for as much data as the lab sent.
    pub captured: Span,
    /// The lab's time as it was; none if it did not end.
    pub as_measured: Option<Span>,
    /// The lab's time with the cure.
    pub cured: Option<Span>,
    /// Where the two scenarios were written: names relative to the directory.
    pub files: [PathBuf; 2],
}

impl Cured {
    /// The lab's path takes about as long as the captured one did, so that what it says of the cure can be
    /// believed.
    pub fn reproduces(&self) -> bool {
        let Some(measured) = self.as_measured else { return false };
        let (a, b) = (measured.as_secs_f64(), self.captured.as_secs_f64());
        a < 1.6 * b && b < 1.6 * a
    }
}

/// The lab refuses a scenario that was made of a capture: a defect.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct CureError {
    what: &'static str,
    source: LabCause,
}

/// What the lab refuses.
#[derive(Debug, thiserror::Error)]
enum LabCause {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs both. None if the lab has nothing against the cause. `number` is that of the transfer, for the names
/// of files. A run ends early when `stop` says so.
///
/// # Errors
/// A scenario that the lab refuses: a defect.
pub(crate) fn run(
    flow: &Flow,
    d: &Diagnosis,
    number: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Cured>, CureError> {
    let attributed = AttributedView::new(flow, d.side);
    let Some(scenarios) = reproduce(&attributed, d.dominant) else { return Ok(None) };
    let whole = d.bytes.get().max(1);
    let share = scenarios.bytes as f64 / whole as f64;
    let captured = Span::from_nanos((d.duration().as_nanos() as f64 * share) as u64);
    let as_measured = time(&scenarios.as_measured, "the path as captured", stop)?;
    let cured = time(&scenarios.cured, "the path with the cure", stop)?;
    let files = ["as-captured", "cured"].map(|what| PathBuf::from(format!("scenarios/{number}-{what}.toml")));
    Ok(Some(Cured { scenarios, captured, as_measured, cured, files }))
}

fn time(toml: &str, what: &'static str, stop: &dyn Fn() -> bool) -> Result<Option<Span>, CureError> {
    lab_time(toml, stop).map_err(|source| CureError { what, source })
}

fn lab_time(toml: &str, stop: &dyn Fn() -> bool) -> Result<Option<Span>, LabCause> {
    let scenario = Scenario::parse(toml, "explain.toml")?;
    let mut run = Run::new(&scenario, Inputs::default())?;
    for _ in 0..MAX_STEPS {
        if run.advance(None)?.finished || stop() {
            break;
        }
    }
    let outcome = run.finish()?;
    let flow = outcome.flows.first();
    Ok(flow.filter(|f| f.completed.is_some() && f.delivered > ByteCount::ZERO).map(|f| f.elapsed))
}
