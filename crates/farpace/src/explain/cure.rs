//! What a cure would bring: the path of a capture in the lab, as it was and with the cure.

use super::Transfer;
use anyhow::{Context, Result};
use farpace_explain::AttributedView;
use farpace_explain::flow::Flow;
use farpace_explain::reproduce::{ReproducedFlow, reproduce};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_units::{ByteCount, Span};
use std::path::PathBuf;

/// Steps of the lab after which a transfer that does not end is given up.
const MAX_STEPS: u64 = 400_000;

/// Both runs.
#[derive(Clone, Debug)]
pub(crate) struct Cured {
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

/// Runs both. None if the lab has nothing against the cause.
///
/// # Errors
/// A scenario that the lab refuses: a defect.
pub(crate) fn run(flow: &Flow, transfer: &Transfer, number: usize) -> Result<Option<Cured>> {
    let d = &transfer.diagnosis;
    let attributed = AttributedView::new(flow, d.side);
    let Some(scenarios) = reproduce(&attributed, d.dominant) else { return Ok(None) };
    let whole = d.bytes.get().max(1);
    let share = scenarios.bytes as f64 / whole as f64;
    let captured = Span::from_nanos((d.duration().as_nanos() as f64 * share) as u64);
    let as_measured = time(&scenarios.as_measured).context("the path as captured")?;
    let cured = time(&scenarios.cured).context("the path with the cure")?;
    let files = ["as-captured", "cured"].map(|what| PathBuf::from(format!("scenarios/{number}-{what}.toml")));
    Ok(Some(Cured { scenarios, captured, as_measured, cured, files }))
}

fn time(toml: &str) -> Result<Option<Span>> {
    let scenario = Scenario::parse(toml, "explain.toml").map_err(|e| anyhow::anyhow!("{e}"))?;
    let mut run = Run::new(&scenario, Inputs::default())?;
    for _ in 0..MAX_STEPS {
        if run.advance(None)?.finished || farpace_process::interrupt::asked() {
            break;
        }
    }
    let outcome = run.finish()?;
    let flow = outcome.flows.first();
    Ok(flow.filter(|f| f.completed.is_some() && f.delivered > ByteCount::ZERO).map(|f| f.elapsed))
}
