//! One run, and what is noted of it.

use super::clocks;
use super::plan::{Job, Kind, Plan};
use super::round_trips::{RoundTrips, Summary};
use crate::interrupt;
use anyhow::{Result, bail};
use farpace_events::{Cause, RecordSink};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, VerifyError};
use farpace_units::Instant;

/// What came of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Payload that the receiving program got, in kB.
    pub delivered: f64,
    /// Payload sent, in kB.
    pub sent_kb: f64,
    /// Segments with data sent.
    pub sent: f64,
    /// ACKs that the sender received, the answer to its SYN left out.
    pub acks: f64,
    /// Segments that asked for an ACK at once (the thesis' CDL).
    pub asked: f64,
    /// ACKs that confirmed it (CDLACK).
    pub confirmed: f64,
    /// Retransmission timeouts.
    pub timeouts: f64,
    /// Packets that found a queue full.
    pub dropped: f64,
    /// Payload delivered up to a time after connecting, in seconds and kB, of the first phase.
    pub curve: Vec<(f64, f64)>,
    /// Round trips, if asked for.
    pub round_trips: Option<Summary>,
    /// From the time at which the lost segment would have arrived until it did, in seconds.
    pub repaired: Option<f64>,
}

/// Makes one run; none if interrupted.
///
/// # Errors
/// A scenario that cannot run, a defect of the lab, or bytes that arrive other than they were sent.
pub fn measure(plan: &Plan, job: &Job) -> Result<Option<Measurement>> {
    let scenario = plan.scenario(job)?;
    match job.kind {
        Kind::Transfer => run(&scenario, job.phase == 0, None).map(|r| r.map(|(m, _)| m)),
        Kind::RoundTrips => {
            let Some(mut trips) = RoundTrips::new(&scenario) else { bail!("the scenario has no flow") };
            let Some((mut m, _)) = run(&scenario, false, Some(&mut trips))? else { return Ok(None) };
            m.round_trips = Some(trips.summary());
            Ok(Some(m))
        }
        Kind::TailLoss => tail_loss(plan, job, &scenario),
    }
}

/// A transfer without loss says when the last segment arrives; in the second one it is lost.
fn tail_loss(plan: &Plan, job: &Job, scenario: &Scenario) -> Result<Option<Measurement>> {
    let Some((_, Some(whole))) = run(scenario, false, None)? else { return Ok(None) };
    let (name, outage) = clocks::last_lost(whole.since(Instant::ZERO));
    let Some((mut m, repaired)) = run(&plan.scenario_with(job, name, &outage)?, false, None)? else {
        return Ok(None);
    };
    m.repaired = repaired.map(|at| at.since(whole).as_secs_f64());
    Ok(Some(m))
}

/// The numbers, and when the last byte came.
fn run(
    scenario: &Scenario,
    curve: bool,
    mut trips: Option<&mut RoundTrips>,
) -> Result<Option<(Measurement, Option<Instant>)>> {
    let mut run = Run::new(scenario, Inputs { records: trips.is_some(), ..Inputs::default() })?;
    let start = Instant::ZERO + scenario.flows.first().map(|f| f.start).unwrap_or_default();
    let (mut points, mut delivered) = (Vec::new(), 0);
    loop {
        let sink = trips.as_deref_mut().map(|t| t as &mut dyn RecordSink);
        let progress = run.advance(sink)?;
        if interrupt::asked() {
            return Ok(None);
        }
        for sample in run.samples().iter().filter(|s| curve && s.flow == 0 && s.time >= start) {
            delivered += sample.delivered.get();
            points.push((sample.time.since(start).as_secs_f64(), delivered as f64 / 1e3));
        }
        if progress.finished {
            break;
        }
    }
    let outcome = run.finish()?;
    let Some(flow) = outcome.flows.first() else { bail!("the scenario has no flow") };
    match &flow.verified {
        // The run ends by its time.
        Ok(_) | Err(VerifyError::Short { .. }) => {}
        Err(error) => bail!("flow `{}`: {error}", flow.name),
    }
    let data = |cause: Cause| {
        cause == Cause::NewData || (cause.is_retransmission() && cause != Cause::SynRetransmit)
    };
    let sent: u64 = flow.sent().filter(|(cause, _)| data(*cause)).map(|(_, n)| n).sum();
    let measurement = Measurement {
        delivered: flow.delivered.get() as f64 / 1e3,
        sent_kb: flow.counters.bytes_sent.get() as f64 / 1e3,
        sent: sent as f64,
        acks: flow.counters.segments_received.saturating_sub(1) as f64,
        asked: flow.counters.asked as f64,
        confirmed: flow.counters.confirmed as f64,
        timeouts: flow.timeouts as f64,
        dropped: outcome.drops.iter().map(|d| d.packets).sum::<u64>() as f64,
        curve: points,
        ..Measurement::default()
    };
    Ok(Some((measurement, flow.completed)))
}
