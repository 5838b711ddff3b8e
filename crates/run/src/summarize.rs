//! How a run becomes its summary.

use crate::RunInput;
use crate::classes::{ClassedFlow, classes};
use crate::datagrams::DatagramSummary;
use crate::nics::NicsSummary;
use crate::pacing::PacingSummary;
use crate::summary::{
    AckSummary, BottleneckSummary, DropSummary, FORMAT, FlowSummary, RunSummary, ScenarioSummary,
    SilenceSummary, Status, StopEpisode,
};
use crate::watch::{RunTime, RunWatch};
use crate::words;
use farpace_events::Cause;
use farpace_lab::scenario::{FlowSpec, Scenario};
use farpace_lab::{FlowOutcome, RunOutcome, VerifyError};
use farpace_tcp::CloseReason;
use farpace_units::ByteCount;
use std::collections::BTreeMap;

/// Sums up a run. `interrupted`: it was stopped from outside.
pub fn summarize(input: &RunInput, outcome: &RunOutcome, watch: &RunWatch, interrupted: bool) -> RunSummary {
    let scenario = &input.scenario;
    let flows: Vec<FlowSummary> = outcome
        .flows
        .iter()
        .zip(&scenario.flows)
        .enumerate()
        .map(|(i, (outcome, flow))| {
            summarize_flow(scenario, flow, outcome, watch.spent(i).within(outcome.elapsed))
        })
        .collect();
    let status = match flows.iter().all(|f| f.intact) {
        true => Status::Complete,
        false if interrupted => Status::Interrupted,
        false => Status::Failed,
    };
    let drops = outcome.drops.iter().map(|d| DropSummary {
        place: d.place.clone(),
        cause: d.reason.name(),
        packets: d.packets,
    });
    let datagrams = scenario.datagrams.iter().zip(&outcome.datagrams);
    let datagrams = datagrams.map(|(flow, outcome)| DatagramSummary::new(flow, outcome));
    let left_out = outcome.captures.iter().filter(|c| !c.skipped.is_zero()).map(|c| {
        let name = c.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, c.skipped.get())
    });
    let mut summary = RunSummary {
        format: FORMAT,
        farpace: env!("CARGO_PKG_VERSION"),
        scenario: ScenarioSummary {
            title: scenario.title.clone(),
            file: input.file.display().to_string(),
            seed: scenario.seed,
            set: input.set.iter().map(|(key, value)| format!("{key}={value}")).collect(),
        },
        status,
        verdict: String::new(),
        ended: outcome.ended,
        classes: classes(&flows.iter().map(classed).collect::<Vec<_>>()),
        flows,
        datagrams: datagrams.collect(),
        pacing: outcome.pacing.iter().map(PacingSummary::new).collect(),
        nics: outcome.nics.iter().map(NicsSummary::new).collect(),
        drops: drops.collect(),
        explain: None,
        events: outcome.events,
        left_out_of_captures: left_out.collect(),
        files: Vec::new(),
        directory: None,
        wall: None,
    };
    summary.verdict = words::verdict(&summary);
    if let Some(unsent) = words::unsent(&scenario.datagrams, outcome.ended) {
        summary.verdict.push_str(&format!(" {unsent}"));
    }
    summary
}

fn summarize_flow(
    scenario: &Scenario,
    flow: &FlowSpec,
    outcome: &FlowOutcome,
    spent: RunTime,
) -> FlowSummary {
    let (verified, problem) = match &outcome.verified {
        Ok(verified) => (*verified, None),
        Err(VerifyError::Short { received, .. }) => (*received, None),
        Err(error @ VerifyError::Mismatch(m)) => (ByteCount::new(m.offset), Some(error.to_string())),
        Err(error @ VerifyError::Write { .. }) => (outcome.delivered, Some(error.to_string())),
    };
    let problem = problem.or_else(|| incomplete(outcome));
    let counted = |counts: &[u64]| -> BTreeMap<&'static str, u64> {
        let named = Cause::ALL.iter().zip(counts).filter(|(_, n)| **n > 0);
        named.map(|(cause, n)| (cause.name(), *n)).collect()
    };
    let silence = &outcome.silence;
    let bottleneck = scenario.bottleneck(flow).map(|b| BottleneckSummary {
        link: scenario.bottleneck_links(flow).join(" + "),
        kind: match b.is_policer {
            true => "policer",
            false if b.paths > 1 => "lines",
            false => "line",
        },
        rate: b.rate.bits_per_sec(),
        best: b.goodput.bits_per_sec(),
    });
    FlowSummary {
        name: outcome.name.clone(),
        class: flow.class.clone(),
        from: flow.from.clone(),
        to: flow.to.clone(),
        profile: flow.sender.profile.unwrap_or_default().name(),
        start: outcome.start,
        size: outcome.size,
        delivered: outcome.delivered,
        verified,
        intact: outcome.is_intact(),
        problem,
        completion: outcome.completed.is_some().then_some(outcome.elapsed),
        elapsed: outcome.elapsed,
        goodput: outcome.goodput().bits_per_sec(),
        bottleneck,
        efficiency: outcome.efficiency(),
        segment: scenario.segment(flow).payload,
        base_rtt: scenario.base_rtt(flow),
        sent: counted(&outcome.counters.sent),
        retransmissions: outcome.retransmissions(),
        timeouts: outcome.timeouts,
        transmit_queue_full: outcome.transmit_queue_full,
        window_changes: counted(&outcome.counters.window_changes.all()),
        acks: AckSummary {
            sent: Cause::ALL
                .iter()
                .zip(&outcome.receiver.sent)
                .filter(|(cause, _)| cause.is_acknowledgment())
                .map(|(_, n)| n)
                .sum(),
            asked: outcome.counters.asked,
            confirmed: outcome.counters.confirmed,
        },
        silence: SilenceSummary {
            at_least: silence.at_least(),
            count: silence.count(),
            total: silence.total(),
            longest: silence.longest().map(|s| StopEpisode {
                start: s.start,
                duration: s.span(),
                state: s.state.name(),
            }),
            all: silence.silences().to_vec(),
        },
        spent,
    }
}

fn classed(flow: &FlowSummary) -> ClassedFlow<'_> {
    ClassedFlow {
        class: flow.class.as_deref(),
        size: flow.size,
        delivered: flow.delivered,
        completion: flow.completion,
        goodput: flow.goodput,
        sent: flow.sent.values().sum(),
        retransmissions: flow.retransmissions,
    }
}

/// Why a flow is not complete, without a full stop; none if it is.
fn incomplete(outcome: &FlowOutcome) -> Option<String> {
    let why = match outcome.sender_ended {
        _ if outcome.completed.is_some() => return None,
        Some(CloseReason::Reset) => "the receiver reset the connection",
        Some(CloseReason::TimedOut) => "the sender gave up, nobody answered for too long",
        Some(CloseReason::Unreachable) => "the network said that the receiver cannot be reached",
        Some(CloseReason::Aborted) => "the sending program ended the connection",
        Some(CloseReason::Finished) => "the connection was closed before all had arrived",
        None => "the run ended before the transfer did",
    };
    Some(why.to_owned())
}
