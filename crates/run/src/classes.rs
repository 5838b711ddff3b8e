//! Flows of one class, summed up: completion times by size, goodput, fairness.

use farpace_papers::statistics::{jain, percentile};
use farpace_report::{Table, TableCell};
use farpace_units::{ByteCount, Span};
use serde::Serialize;

/// Upper ends of the ranges of size, in bytes; the last has none.
const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// Flows of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowClassSummary {
    /// Its name.
    pub name: String,
    /// Flows of the class.
    pub flows: usize,
    /// Of these, those whose last byte arrived.
    pub completed: usize,
    /// Payload that reached the receiving programs.
    pub delivered_bytes: u64,
    /// Goodput of the flows that completed: mean.
    pub goodput_mean_bit_s: Option<f64>,
    /// Jain's index of the goodputs of all its flows.
    pub jain: f64,
    /// Retransmissions of all segments sent.
    pub retransmitted_share: f64,
    /// Completion times of all sizes.
    pub completion: CompletionTimes,
    /// Completion times by size; sizes without flows are left out.
    pub by_size: Vec<CompletionTimes>,
}

/// Quantiles of completion times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CompletionTimes {
    /// Flows of at most this size, and above the one before; null: of any size.
    pub up_to_bytes: Option<u64>,
    /// How many.
    pub flows: usize,
    /// Of these, those that completed: the quantiles are theirs.
    pub completed: usize,
    /// Mean.
    pub mean_s: Option<f64>,
    /// Half of them took no longer.
    pub p50_s: Option<f64>,
    /// 95 % of them took no longer.
    pub p95_s: Option<f64>,
    /// 99 % of them took no longer.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// What is summed up of a flow.
#[derive(Clone, Copy, Debug)]
pub struct ClassedFlow<'a> {
    /// Its class; none: it is not summed up.
    pub class: Option<&'a str>,
    /// Payload to be sent.
    pub size: ByteCount,
    /// Payload that reached the receiving program.
    pub delivered: ByteCount,
    /// From connecting to the last byte; none: it did not arrive.
    pub completion: Option<Span>,
    /// Delivered payload per elapsed time, in bit/s.
    pub goodput: u64,
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Those of them that had been sent before.
    pub retransmissions: u64,
}

impl CompletionTimes {
    fn of(up_to_bytes: Option<u64>, flows: &[&ClassedFlow<'_>]) -> Self {
        let mut times: Vec<f64> =
            flows.iter().filter_map(|f| f.completion).map(|t| t.as_secs_f64()).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        CompletionTimes {
            up_to_bytes,
            flows: flows.len(),
            completed: times.len(),
            mean_s: mean.is_finite().then_some(mean),
            p50_s: percentile(&mut times, 50.0),
            p95_s: percentile(&mut times, 95.0),
            p99_s: percentile(&mut times, 99.0),
            max_s: percentile(&mut times, 100.0),
        }
    }
}

/// The classes, in the order of their first flows. Flows without a class are not in them.
pub fn classes(flows: &[ClassedFlow<'_>]) -> Vec<FlowClassSummary> {
    let mut classes: Vec<(&str, Vec<&ClassedFlow<'_>>)> = Vec::new();
    for flow in flows {
        let Some(class) = flow.class else { continue };
        match classes.iter_mut().find(|(name, _)| *name == class) {
            Some((_, flows)) => flows.push(flow),
            None => classes.push((class, vec![flow])),
        }
    }
    let summary = |(name, flows): (&str, Vec<&ClassedFlow<'_>>)| {
        let goodputs: Vec<f64> = flows.iter().map(|f| f.goodput as f64).collect();
        let finished: Vec<f64> =
            flows.iter().filter(|f| f.completion.is_some()).map(|f| f.goodput as f64).collect();
        let mean = finished.iter().sum::<f64>() / finished.len() as f64;
        let sent: u64 = flows.iter().map(|f| f.sent).sum();
        let again: u64 = flows.iter().map(|f| f.retransmissions).sum();
        let mut above = ByteCount::ZERO;
        let mut by_size = Vec::new();
        for end in SIZES.iter().map(|n| Some(*n)).chain([None]) {
            let upto = end.map_or(ByteCount::MAX, ByteCount::new);
            let here: Vec<&ClassedFlow<'_>> =
                flows.iter().copied().filter(|f| f.size > above && f.size <= upto).collect();
            if !here.is_empty() {
                by_size.push(CompletionTimes::of(end, &here));
            }
            above = upto;
        }
        FlowClassSummary {
            name: name.to_owned(),
            flows: flows.len(),
            completed: finished.len(),
            delivered_bytes: flows.iter().map(|f| f.delivered.get()).sum(),
            goodput_mean_bit_s: mean.is_finite().then_some(mean),
            jain: jain(&goodputs),
            retransmitted_share: again as f64 / sent.max(1) as f64,
            completion: CompletionTimes::of(None, &flows),
            by_size,
        }
    };
    classes.into_iter().map(summary).collect()
}

/// One row per class.
pub fn table(classes: &[FlowClassSummary]) -> Table {
    let heads = "class | flows [] | complete [] | delivered [MB] | goodput, mean [Mbit/s] | \
                 fairness [Jain] | sent again [%]";
    let mut table = Table::with("Classes of flows", heads);
    for c in classes {
        table.row([
            c.name.as_str().into(),
            (c.flows as f64).into(),
            (c.completed as f64).into(),
            TableCell::Number(c.delivered_bytes as f64 / 1e6, Some(1)),
            c.goodput_mean_bit_s.map_or(TableCell::Missing, |g| TableCell::Number(g / 1e6, Some(2))),
            TableCell::Number(c.jain, Some(3)),
            TableCell::Number(c.retransmitted_share * 100.0, Some(2)),
        ]);
    }
    table
}

/// Completion times of each class: of all flows, and by size.
pub fn times(classes: &[FlowClassSummary]) -> Table {
    let heads =
        "class | size | flows [] | complete [] | mean [s] | median [s] | 95 % [s] | 99 % [s] | longest [s]";
    let mut table = Table::with("Completion times by class and size", heads);
    let cell = |time: Option<f64>| time.map_or(TableCell::Missing, |t| TableCell::Number(t, Some(4)));
    for c in classes {
        for (n, times) in std::iter::once(&c.completion).chain(&c.by_size).enumerate() {
            let size = match times.up_to_bytes {
                _ if n == 0 => "all".to_owned(),
                Some(bytes) => format!("to {}", ByteCount::new(bytes)),
                None => "above".to_owned(),
            };
            table.row([
                c.name.as_str().into(),
                size.as_str().into(),
                (times.flows as f64).into(),
                (times.completed as f64).into(),
                cell(times.mean_s),
                cell(times.p50_s),
                cell(times.p95_s),
                cell(times.p99_s),
                cell(times.max_s),
            ]);
        }
    }
    table
}
