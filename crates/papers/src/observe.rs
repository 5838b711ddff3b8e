//! Runs a scenario bin by bin, with an observer.

use crate::experiment::{MeasureError, StopRequest};
use farpace_events::{Cause, Record, RecordSink};
use farpace_lab::scenario::Scenario;
use farpace_lab::{FlowOutcome, Inputs, Run, RunOutcome, RunProgress, VerifyError};

/// Sees a run while it goes on.
pub(crate) trait PaperObserver {
    /// A record of a sender, if the run makes records.
    fn record(&mut self, _record: &Record) {}
    /// The end of a bin.
    fn bin(&mut self, _run: &mut Run, _progress: RunProgress) {}
}

/// Sees nothing.
impl PaperObserver for () {}

struct RecordReader<'a, O>(&'a mut O);

impl<O: PaperObserver> RecordSink for RecordReader<'_, O> {
    fn record(&mut self, record: &Record) {
        self.0.record(record);
    }
}

/// Runs a scenario until all flows are done or its time is over. [`verified`] then gives what came of it.
///
/// # Errors
/// A scenario that cannot be run, a defect of the lab, or a request to stop.
pub(crate) fn observe(
    scenario: &Scenario,
    inputs: Inputs,
    observer: &mut impl PaperObserver,
    stop: &StopRequest<'_>,
) -> Result<Run, MeasureError> {
    let records = inputs.records;
    let mut run = Run::new(scenario, inputs)?;
    loop {
        let mut sink = RecordReader(observer);
        let progress = run.advance(records.then_some(&mut sink as &mut dyn RecordSink))?;
        if stop() {
            return Err(MeasureError::Interrupted);
        }
        observer.bin(&mut run, progress);
        if progress.finished {
            return Ok(run);
        }
    }
}

/// The outcome of a run in which every byte that arrived was right. A flow may be short: the run ends by its
/// time.
///
/// # Errors
/// Bytes that arrived other than they were sent.
pub(crate) fn verified(run: Run) -> Result<RunOutcome, MeasureError> {
    let mut outcome = run.finish()?;
    for flow in &mut outcome.flows {
        match std::mem::replace(&mut flow.verified, Ok(flow.delivered)) {
            Ok(_) | Err(VerifyError::Short { .. }) => {}
            Err(error) => return Err(MeasureError::Corrupted { flow: flow.name.clone(), error }),
        }
    }
    Ok(outcome)
}

/// A scenario from text with values replaced.
///
/// # Errors
/// What the values make impossible.
pub(crate) fn scenario(text: &str, name: &str, set: &[Setting]) -> Result<Scenario, MeasureError> {
    Scenario::parse_with(text, name, set).map_err(|error| MeasureError::Invalid(error.to_string()))
}

/// A key of a scenario and its value.
pub type Setting = (String, String);

/// A setting.
pub(crate) fn set(key: impl Into<String>, value: impl Into<String>) -> Setting {
    (key.into(), value.into())
}

/// Segments with data that a flow sent, retransmissions included.
pub(crate) fn data_segments(flow: &FlowOutcome) -> u64 {
    let is_data = |cause: Cause| {
        cause == Cause::NewData || (cause.is_retransmission() && cause != Cause::SynRetransmit)
    };
    flow.sent().filter(|(cause, _)| is_data(*cause)).map(|(_, n)| n).sum()
}

/// Means over `of` points each, at the time of the first one.
pub(crate) fn means(points: &[(f64, f64)], of: usize) -> Vec<(f64, f64)> {
    let mean = |chunk: &[(f64, f64)]| {
        let sum: f64 = chunk.iter().map(|point| point.1).sum();
        (chunk.first().map_or(0.0, |point| point.0), sum / chunk.len().max(1) as f64)
    };
    points.chunks(of).map(mean).collect()
}
