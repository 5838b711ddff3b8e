//! The numbers of a study: metrics of a run, and their means over the seeds of each point.

use crate::folder::{StoredStudy, point_of};
use crate::record::{FlowRecord, RunRecord};
use farpace_papers::statistics::{Summary, jain};

/// A number of each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Payload of all flows over the time from the first one's start to the last one's end, in Mbit/s.
    Goodput,
    /// From connecting to the last byte, mean of the flows, in s. A run in which a flow did not complete has
    /// none, nor has a point with such a run: the mean of the others would be that of the fast ones.
    Completion,
    /// Retransmissions of all segments sent, in percent.
    Retransmitted,
    /// Time in queues, mean of the flows, in ms.
    Delay,
    /// Jain's index of the flows' goodputs.
    Fairness,
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Metric; 5] =
        [Metric::Goodput, Metric::Completion, Metric::Retransmitted, Metric::Delay, Metric::Fairness];

    /// The key in JSON and CSV.
    pub const fn key(self) -> &'static str {
        match self {
            Metric::Goodput => "goodput_mbit_s",
            Metric::Completion => "completion_s",
            Metric::Retransmitted => "retransmitted_percent",
            Metric::Delay => "queue_delay_ms",
            Metric::Fairness => "jain",
        }
    }
    /// The word of `--metric`.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::Goodput => "goodput",
            Metric::Completion => "completion",
            Metric::Retransmitted => "retransmitted",
            Metric::Delay => "delay",
            Metric::Fairness => "fairness",
        }
    }
    /// The head of a column, with its unit, and decimals.
    pub const fn head(self) -> (&'static str, usize) {
        match self {
            Metric::Goodput => ("goodput [Mbit/s]", 2),
            Metric::Completion => ("completion [s]", 3),
            Metric::Retransmitted => ("retransmitted [%]", 3),
            Metric::Delay => ("queue delay [ms]", 2),
            Metric::Fairness => ("fairness [Jain]", 3),
        }
    }
    /// The metric of a run, over its flows or those called `flow`. NaN if it has none.
    pub fn of(self, run: &RunRecord, flow: Option<&str>) -> f64 {
        let flows: Vec<&FlowRecord> = chosen(run, flow).collect();
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        if flows.is_empty() {
            return f64::NAN;
        }
        match self {
            Metric::Goodput => together(&flows) / 1e6,
            Metric::Completion => mean(flows.iter().map(|f| f.completion_s.unwrap_or(f64::NAN)).collect()),
            Metric::Retransmitted => {
                let sent: u64 = flows.iter().map(|f| f.segments_sent).sum();
                let again: u64 = flows.iter().map(|f| f.retransmissions).sum();
                again as f64 * 100.0 / sent.max(1) as f64
            }
            Metric::Delay => mean(flows.iter().filter_map(|f| f.queue_delay_s).map(|s| s * 1e3).collect()),
            Metric::Fairness => jain(&flows.iter().map(|f| f.goodput_bit_s as f64).collect::<Vec<_>>()),
        }
    }
}

/// The flows of a run, or those called `flow`.
fn chosen<'a>(run: &'a RunRecord, flow: Option<&'a str>) -> impl Iterator<Item = &'a FlowRecord> {
    run.measured.flows.iter().filter(move |f| flow.is_none_or(|name| f.flow == name || f.class == name))
}

/// Payload of flows per time from when the first of them connects to when the last one ends, in bit/s. The
/// sum of their own rates would count times in which others were silent.
fn together(flows: &[&FlowRecord]) -> f64 {
    if let [flow] = flows {
        return flow.goodput_bit_s as f64;
    }
    let begun = || flows.iter().filter(|flow| flow.elapsed_s > 0.0);
    let start = begun().map(|flow| flow.start_s).fold(f64::INFINITY, f64::min);
    let end = begun().map(|flow| flow.start_s + flow.elapsed_s).fold(0.0, f64::max);
    let bits: f64 = begun().map(|flow| flow.delivered_bytes as f64 * 8.0).sum();
    if end > start { bits / (end - start) } else { 0.0 }
}

/// Goodput of all flows together: the metric of early stopping.
pub(crate) fn goodput(run: &RunRecord) -> f64 {
    Metric::Goodput.of(run, None)
}

/// A point and what its runs have measured.
#[derive(Clone, Debug)]
pub struct PointSummary {
    /// The values of the varied paths.
    pub values: Vec<String>,
    /// Runs that measured something.
    pub runs: usize,
    /// Of these, runs in which every flow delivered its last byte.
    pub complete: usize,
    /// Runs that measured nothing.
    pub unmeasured: usize,
    /// Runs that nobody could expect.
    pub bad: usize,
    /// A number for each of [`Metric::ALL`].
    pub metrics: Vec<Summary>,
}

impl PointSummary {
    /// A run had a flow that did not deliver its last byte: there is no mean of completion times.
    pub fn is_cut(&self) -> bool {
        self.complete < self.runs
    }
    /// The mean of a metric, with its interval.
    pub fn metric(&self, metric: Metric) -> Option<&Summary> {
        let place = Metric::ALL.iter().position(|m| *m == metric)?;
        self.metrics.get(place)
    }
}

/// The points of the plan that have runs, in the order of the plan; over all flows, or those called `flow`.
pub fn summarize(study: &StoredStudy, flow: Option<&str>) -> Vec<PointSummary> {
    let vary = &study.provenance.plan.vary;
    let paths: Vec<&str> =
        vary.iter().filter_map(|text| text.split_once('=')).map(|(p, _)| p.trim()).collect();
    let mut groups: Vec<(Vec<String>, Vec<&RunRecord>)> = Vec::new();
    for record in study.records.iter().take(study.planned) {
        let Some(values) = point_of(record, &paths) else { continue };
        match groups.last_mut() {
            Some((last, runs)) if *last == values => runs.push(record),
            _ => groups.push((values, vec![record])),
        }
    }
    let summary = |(values, runs): (Vec<String>, Vec<&RunRecord>)| {
        let measured: Vec<&RunRecord> = runs.iter().copied().filter(|r| r.status.is_measured()).collect();
        let is_complete = |run: &&&RunRecord| chosen(run, flow).all(|f| f.completion_s.is_some());
        let complete = measured.iter().filter(is_complete).count();
        let numbers = |metric: Metric| match metric {
            Metric::Completion if complete < measured.len() => Summary::of([]),
            _ => Summary::of(measured.iter().map(|run| metric.of(run, flow))),
        };
        let metrics = Metric::ALL.map(numbers);
        let bad = runs.iter().filter(|r| r.status.is_bad()).count();
        let unmeasured = runs.len() - measured.len();
        PointSummary { values, runs: measured.len(), complete, unmeasured, bad, metrics: metrics.to_vec() }
    };
    groups.into_iter().map(summary).collect()
}
