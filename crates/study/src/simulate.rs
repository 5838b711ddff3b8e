//! One run of a study.

use crate::record::{FlowRecord, Measurement, RunRecord, RunStatus};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome, VerifyError};
use farpace_papers::congestion_name;
use farpace_tcp::config::Config;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunVerdict {
    /// It does.
    GoOn,
    /// The study is to end: the run counts as not made.
    Stop,
    /// It has taken too long.
    Overdue,
}

/// Why a run has no result.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEnd {
    /// The study is to end.
    Stopped,
    /// It took too long. The text says how far it was.
    Overdue(String),
    /// The lab reported an error.
    Failed(String),
}

/// Makes one run with a seed. It asks now and then whether to go on.
pub type Simulate<'a> =
    &'a (dyn Fn(&Scenario, u64, &dyn Fn() -> RunVerdict) -> Result<Measurement, RunEnd> + Sync);

/// Makes one run in the lab.
///
/// # Errors
/// See [`RunEnd`].
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    verdict: &dyn Fn() -> RunVerdict,
) -> Result<Measurement, RunEnd> {
    let failed = |error: farpace_lab::RunError| RunEnd::Failed(error.to_string());
    let mut run = Run::new(scenario, Inputs { seed: Some(seed), ..Inputs::default() }).map_err(failed)?;
    // Each flow that a workload stands for is one of its flows.
    let scenario = run.scenario().clone();
    let mut queues = vec![(0.0, 0u64); scenario.flows.len()];
    loop {
        let progress = run.advance(None).map_err(failed)?;
        let active: Vec<usize> =
            run.samples().iter().filter(|s| s.arrived > 0).map(|sample| sample.flow).collect();
        for flow in active {
            if let Some((sum, readings)) = queues.get_mut(flow) {
                *sum += run.queueing_delay(flow).as_secs_f64();
                *readings += 1;
            }
        }
        if progress.finished {
            break;
        }
        match verdict() {
            RunVerdict::GoOn => {}
            RunVerdict::Stop => return Err(RunEnd::Stopped),
            RunVerdict::Overdue => {
                let (now, end) = (progress.now, scenario.duration);
                return Err(RunEnd::Overdue(format!("it was at {now} of at most {end} of virtual time")));
            }
        }
    }
    let outcome = run.finish().map_err(failed)?;
    let delays = queues.into_iter().map(|(sum, n)| (n > 0).then(|| sum / n as f64));
    Ok(measurement(&scenario, &outcome, delays))
}

fn measurement(
    scenario: &Scenario,
    outcome: &RunOutcome,
    delays: impl Iterator<Item = Option<f64>>,
) -> Measurement {
    let flows = outcome.flows.iter().zip(&scenario.flows).zip(delays).map(|((flow, spec), queue_delay_s)| {
        let sent: u64 = flow.sent().map(|(_, n)| n).sum();
        let config = spec.sender.resolve().ok();
        FlowRecord {
            flow: flow.name.clone(),
            class: spec.class.clone().unwrap_or_else(|| flow.name.clone()),
            from: spec.from.clone(),
            to: spec.to.clone(),
            profile: spec.sender.profile.unwrap_or_default().name().to_owned(),
            congestion: config.map(|c| named_congestion(&c)).unwrap_or_default(),
            start_s: flow.start.as_secs_f64(),
            size_bytes: flow.size.get(),
            delivered_bytes: flow.delivered.get(),
            intact: flow.is_intact(),
            damaged: matches!(flow.verified, Err(VerifyError::Mismatch(_))),
            completion_s: flow.completed.is_some().then(|| flow.elapsed.as_secs_f64()),
            elapsed_s: flow.elapsed.as_secs_f64(),
            goodput_bit_s: flow.goodput().bits_per_sec(),
            efficiency: flow.efficiency(),
            segments_sent: sent,
            retransmissions: flow.retransmissions(),
            timeouts: flow.timeouts,
            queue_delay_s,
            silence_s: flow.silence.total().as_secs_f64(),
            base_rtt_s: scenario.base_rtt(spec).as_secs_f64(),
        }
    });
    Measurement { ended_s: outcome.ended.as_secs_f64(), events: outcome.events, flows: flows.collect() }
}

/// The name of a flow's control: that of the program's own, if it has one.
fn named_congestion(config: &Config) -> String {
    match &config.external {
        Some(own) => own.name().to_owned(),
        None => congestion_name(config.congestion),
    }
}

/// Makes one run and notes whatever comes of it; none if the study is to end.
pub(crate) fn record(
    simulate: Simulate<'_>,
    scenario: &Scenario,
    (run, seed): (&str, u64),
    verdict: &dyn Fn() -> RunVerdict,
) -> Option<RunRecord> {
    let made = catch_unwind(AssertUnwindSafe(|| simulate(scenario, seed, verdict)));
    let (status, reason, measured) = match made {
        Ok(Ok(measured)) => {
            let damaged = measured.flows.iter().find(|flow| flow.damaged);
            let reason =
                damaged.map(|flow| format!("flow `{}` received other bytes than were sent", flow.flow));
            let status = match () {
                () if reason.is_some() => RunStatus::Damaged,
                () if measured.flows.iter().all(|flow| flow.intact) => RunStatus::Complete,
                () => RunStatus::Incomplete,
            };
            (status, reason, measured)
        }
        Ok(Err(RunEnd::Stopped)) => return None,
        Ok(Err(RunEnd::Overdue(why))) => (RunStatus::Overdue, Some(why), Measurement::default()),
        Ok(Err(RunEnd::Failed(why))) => (RunStatus::Failed, Some(why), Measurement::default()),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let text = text.unwrap_or_else(|| "a panic without words".to_owned());
            (RunStatus::Crashed, Some(text), Measurement::default())
        }
    };
    Some(RunRecord { run: run.to_owned(), seed, values: Vec::new(), status, reason, measured })
}
