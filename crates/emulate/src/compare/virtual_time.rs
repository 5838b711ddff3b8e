//! In the lab.

use super::backend_run::{BackendRun, CompareSample};
use super::plan::{Backend, Plan};
use crate::Drops;
use anyhow::Result;
use farpace_events::Cause;
use farpace_explain::input::RecordFollower;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run};
use farpace_process::interrupt;
use farpace_tcp::ConnectionInspection;
use farpace_units::{Instant, Packets};

/// Runs the scenario. `follower` gets the records of its connections.
///
/// # Errors
/// A defect of the lab.
pub fn run(plan: &Plan, scenario: &Scenario, follower: &mut RecordFollower) -> Result<BackendRun> {
    let mut run = Run::new(scenario, Inputs { records: true, ..Inputs::default() })?;
    let (mut samples, mut delivered) = (Vec::new(), 0);
    loop {
        let progress = run.advance(Some(follower))?;
        for sample in run.samples() {
            delivered += sample.delivered.get();
            let at = sample.time.since(Instant::ZERO).as_secs_f64();
            samples.push(reading(at, &sample.sender, delivered, sample.retransmitted));
        }
        if progress.finished || interrupt::asked() {
            break;
        }
    }
    let outcome = run.finish()?;
    let sent = outcome.flows.iter().flat_map(|flow| flow.sent());
    let sent = sent.filter(|(cause, _)| is_data(*cause)).map(|(_, n)| n).sum();
    let mut trial = BackendRun::of(Backend::Lab, samples, sent);
    trial.drops = outcome
        .drops
        .iter()
        .map(|drop| Drops { place: drop.place.clone(), cause: drop.reason.name(), packets: drop.packets })
        .collect();
    debug_assert!(trial.seconds <= plan.lasts.as_secs_f64());
    Ok(trial)
}

/// A sample of one of our connections.
pub fn reading(at: f64, of: &ConnectionInspection, delivered: u64, again: u64) -> CompareSample {
    CompareSample {
        at,
        cwnd: of.cwnd.get(),
        ssthresh: (of.ssthresh < Packets::MAX).then(|| of.ssthresh.get()),
        srtt: of.srtt.as_secs_f64() * 1e3,
        delivered,
        again,
    }
}

/// True for segments with payload.
pub fn is_data(cause: Cause) -> bool {
    cause.is_retransmission() || cause == Cause::NewData
}
