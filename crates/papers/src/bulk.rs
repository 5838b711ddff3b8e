//! Bulk transfers that last as long as the run: goodput, queueing delay, losses, retransmissions.

use crate::experiment::{MeasureError, StopRequest};
use crate::observe::{PaperObserver, observe, verified};
use farpace_events::Cause;
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunOutcome, RunProgress};
use farpace_path::{DropReason, WaitMeter};
use farpace_units::{ByteCount, Instant, Rate, Span};
use serde::{Deserialize, Serialize};

/// A flow at the end of a bin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReading {
    /// End of the bin, in ns.
    pub at_ns: u64,
    /// Congestion window of the sender, in packets.
    pub cwnd: u32,
    /// Payload that reached the receiving program in the bin, in bytes.
    pub delivered: u64,
    /// Bandwidth as the congestion control has measured it, in bit/s.
    pub bandwidth: Option<u64>,
}

impl FlowReading {
    /// End of the bin.
    pub fn at(&self) -> Instant {
        Instant::from_nanos(self.at_ns)
    }
    /// The measured bandwidth in Mbit/s.
    pub fn bandwidth_mbit(&self) -> Option<f64> {
        self.bandwidth.map(|bits| Rate::from_bits_per_sec(bits).as_mbit_f64())
    }
}

/// What came of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkFlow {
    /// Payload that arrived, over the time from connecting to the end of the run, in Mbit/s.
    pub goodput: f64,
    /// Retransmissions, in percent of all segments sent.
    pub retransmitted: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// ACKs that the receiver sent, for 100 segments of data.
    pub acks: f64,
    /// One per bin, if asked for.
    pub readings: Vec<FlowReading>,
}

/// What came of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BulkRun {
    /// The flows, in the order of the scenario.
    pub flows: Vec<BulkFlow>,
    /// The time that the first flow's data spent in queues of links: mean over the packets that arrived, in
    /// ms.
    pub delay_mean: f64,
    /// What 95 % of those packets did not exceed, in ms.
    pub delay_95: f64,
    /// What 99 % of those packets did not exceed, in ms.
    pub delay_99: f64,
    /// Packets dropped in the network for any reason, in percent of all segments sent.
    pub lost: f64,
    /// Of these, those dropped by a full queue or a policer.
    pub congestion_lost: f64,
}

impl BulkRun {
    /// Goodput of all flows together, in Mbit/s.
    pub fn total(&self) -> f64 {
        self.flows.iter().map(|f| f.goodput).sum()
    }
    /// Goodput of the flow with this index, in Mbit/s; NaN if there is none.
    pub fn goodput(&self, flow: usize) -> f64 {
        self.flows.get(flow).map_or(f64::NAN, |f| f.goodput)
    }
}

struct Readings {
    flows: Option<Vec<Vec<FlowReading>>>,
}

impl PaperObserver for Readings {
    fn bin(&mut self, run: &mut Run, _: RunProgress) {
        let Some(flows) = &mut self.flows else { return };
        for sample in run.samples() {
            if let Some(flow) = flows.get_mut(sample.flow) {
                flow.push(FlowReading {
                    at_ns: sample.time.as_nanos(),
                    cwnd: sample.sender.cwnd.get(),
                    delivered: sample.delivered.get(),
                    bandwidth: sample.sender.bandwidth.map(Rate::bits_per_sec),
                });
            }
        }
    }
}

/// Makes one run to the end of its time. With `readings`, every bin of every flow is kept.
///
/// # Errors
/// See [`MeasureError`].
pub fn measure(scenario: &Scenario, readings: bool, stop: &StopRequest<'_>) -> Result<BulkRun, MeasureError> {
    let mut seen = Readings { flows: readings.then(|| vec![Vec::new(); scenario.flows.len()]) };
    let outcome = verified(observe(scenario, Inputs::default(), &mut seen, stop)?)?;
    let (lost, congestion_lost) = losses(&outcome);
    let mut kept = seen.flows.into_iter().flatten();
    let flows = outcome.flows.iter().map(|flow| {
        let sent: u64 = flow.sent().map(|(_, n)| n).sum();
        let of_receiver = Cause::ALL.iter().zip(&flow.receiver.sent);
        let acks: u64 = of_receiver.filter(|(cause, _)| cause.is_acknowledgment()).map(|(_, n)| n).sum();
        BulkFlow {
            goodput: flow.goodput().as_mbit_f64(),
            retransmitted: percent(flow.retransmissions(), sent),
            timeouts: flow.timeouts,
            acks: percent(acks, sent),
            readings: kept.next().unwrap_or_default(),
        }
    });
    let flows = flows.collect();
    let waits = outcome.flows.first().map(|flow| &flow.queued);
    let ms = |of: &dyn Fn(&WaitMeter) -> Span| waits.map_or(0.0, |waits| of(waits).as_secs_f64() * 1e3);
    let [delay_95, delay_99] = [95.0, 99.0].map(|percent| ms(&|waits| waits.percentile(percent)));
    Ok(BulkRun { flows, delay_mean: ms(&WaitMeter::mean), delay_95, delay_99, lost, congestion_lost })
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

/// More payload than a path of `rate` carries in `time`, so that a flow does not end.
pub fn endless(rate: Option<Rate>, time: Span) -> ByteCount {
    let rate = rate.unwrap_or(Rate::from_mbit(100_000));
    ByteCount::new(rate.bytes_in(time).get().saturating_mul(2).max(1_000_000))
}
