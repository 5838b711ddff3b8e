//! One run, and what is noted of it.

use crate::interrupt;
use crate::statistics::percentile;
use anyhow::{Result, bail};
use farpace_events::Cause;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome, VerifyError};
use farpace_path::DropReason;
use farpace_units::{ByteCount, Instant, Packets, Rate, Span};

/// A flow at the end of a bin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// End of the bin.
    pub at: Instant,
    /// The sender's congestion window.
    pub cwnd: Packets,
    /// What reached the receiving program in the bin.
    pub delivered: ByteCount,
    /// The bandwidth that its congestion control has measured.
    pub bandwidth: Option<Rate>,
}

/// What came of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowMeasurement {
    /// Payload that reached the receiving program, over the time from connecting to the end of the run, in Mbit/s.
    pub goodput: f64,
    /// Retransmissions, in percent of all segments sent.
    pub retransmitted: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// ACKs that its receiver sent, for 100 segments of data.
    pub acks: f64,
    /// One per bin, if asked for.
    pub readings: Vec<Reading>,
}

/// What came of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowMeasurement>,
    /// Time that the first flow's data waits in queues: the mean over the run, in milliseconds, from a reading at the
    /// end of every bin.
    pub delay_mean: f64,
    /// What 95 % of those readings do not exceed, in milliseconds.
    pub delay_95: f64,
    /// Packets that were dropped in the network, for whatever reason, in percent of all data segments sent.
    pub lost: f64,
    /// Of these, those that found a queue full or exceeded a policer.
    pub congestion_lost: f64,
}

impl Measurement {
    /// Goodput of all flows together, in Mbit/s.
    pub fn total(&self) -> f64 {
        self.flows.iter().map(|f| f.goodput).sum()
    }
    /// Goodput of the flow with this index, in Mbit/s; NaN if there is none.
    pub fn goodput(&self, flow: usize) -> f64 {
        self.flows.get(flow).map_or(f64::NAN, |f| f.goodput)
    }
}

/// Makes one run to the end of its time; none if interrupted. With `readings`, every bin of every flow is kept.
///
/// # Errors
/// A defect of the lab, or bytes that arrive other than they were sent.
pub fn measure(scenario: &Scenario, readings: bool) -> Result<Option<Measurement>> {
    let mut run = Run::new(scenario, Inputs::default())?;
    let mut kept: Vec<Vec<Reading>> = vec![Vec::new(); scenario.flows.len()];
    let mut delays = Vec::new();
    loop {
        let progress = run.advance(None)?;
        if interrupt::asked() {
            return Ok(None);
        }
        delays.push(run.queueing_delay(0).as_secs_f64() * 1e3);
        for sample in run.samples().iter().filter(|_| readings) {
            let (cwnd, bandwidth) = (sample.sender.cwnd, sample.sender.bandwidth);
            if let Some(flow) = kept.get_mut(sample.flow) {
                flow.push(Reading { at: sample.time, cwnd, delivered: sample.delivered, bandwidth });
            }
        }
        if progress.finished {
            break;
        }
    }
    let outcome = run.finish()?;
    let mut flows = Vec::new();
    for (flow, readings) in outcome.flows.iter().zip(kept) {
        match &flow.verified {
            // The run ends by its time.
            Ok(_) | Err(VerifyError::Short { .. }) => {}
            Err(error) => bail!("flow `{}`: {error}", flow.name),
        }
        let sent: u64 = flow.sent().map(|(_, n)| n).sum();
        let of_receiver = Cause::ALL.iter().zip(&flow.receiver.sent);
        let acks: u64 = of_receiver.filter(|(cause, _)| cause.is_acknowledgment()).map(|(_, n)| n).sum();
        flows.push(FlowMeasurement {
            goodput: flow.goodput().as_mbit_f64(),
            retransmitted: percent(flow.retransmissions(), sent),
            timeouts: flow.timeouts,
            acks: percent(acks, sent),
            readings,
        });
    }
    let (lost, congestion_lost) = losses(&outcome);
    let delay_mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let delay_95 = percentile(&mut delays, 95.0).unwrap_or(0.0);
    Ok(Some(Measurement { flows, delay_mean, delay_95, lost, congestion_lost }))
}

/// All drops, and those by congestion, in percent of the segments sent.
fn losses(outcome: &RunOutcome) -> (f64, f64) {
    let sent: u64 = outcome.flows.iter().flat_map(|f| f.sent()).map(|(_, n)| n).sum();
    let congestion = |r: DropReason| matches!(r, DropReason::QueueFull | DropReason::Policed);
    let all: u64 = outcome.drops.iter().map(|d| d.packets).sum();
    let these: u64 = outcome.drops.iter().filter(|d| congestion(d.reason)).map(|d| d.packets).sum();
    (percent(all, sent), percent(these, sent))
}

fn percent(part: u64, of: u64) -> f64 {
    part as f64 * 100.0 / of.max(1) as f64
}

/// A flow's payload sent over `time` at most: more than any line carries, so that the flow does not end.
pub fn endless(rate: Option<Rate>, time: Span) -> ByteCount {
    let rate = rate.unwrap_or(Rate::from_mbit(100_000));
    ByteCount::new(rate.bytes_in(time).get().saturating_mul(2).max(1_000_000))
}
