//! What all runs gave, by cell, and numbers over cells.

use super::plan::{Plan, blackout};
use crate::grid::satellite::{SEGMENT, WINDOW};
use crate::grid::{Ber, FlowMeasurement, Measurement, Queue, Reading, Satellite};
use crate::statistics::{Summary, jain};
use farpace_units::{ByteCount, Instant, Span};
use std::collections::BTreeMap;

/// All runs.
pub struct Results {
    /// Runs of each cell that the dice can change.
    pub seeds: u64,
    /// Virtual time of each run.
    pub time: Span,
    cells: BTreeMap<Satellite, Vec<Measurement>>,
    runs: usize,
}

/// The runs of one cell, by seed.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a>(pub &'a [Measurement]);

impl<'a> Cell<'a> {
    /// A number over all runs.
    pub fn over(&self, of: impl Fn(&Measurement) -> f64) -> Summary {
        Summary::of(self.0.iter().map(of))
    }
    /// Goodput of all flows together, Mbit/s.
    pub fn total(&self) -> Summary {
        self.over(Measurement::total)
    }
    /// Goodput of one flow, Mbit/s.
    pub fn goodput(&self, flow: usize) -> Summary {
        self.over(|m| m.goodput(flow))
    }
    /// Jain's index of the two flows.
    pub fn fairness(&self) -> Summary {
        self.over(|m| jain(&[m.goodput(0), m.goodput(1)]))
    }
    /// The first run's flow with this index.
    pub fn flow(&self, flow: usize) -> Option<&'a FlowMeasurement> {
        self.0.first()?.flows.get(flow)
    }
    /// The first run's readings of a flow.
    pub fn readings(&self, flow: usize) -> &'a [Reading] {
        self.flow(flow).map_or(&[], |f| &f.readings)
    }
}

impl Results {
    /// `measured` in the order of the plan's jobs.
    pub fn new(plan: &Plan, measured: Vec<Measurement>) -> Results {
        let runs = measured.len();
        let mut cells: BTreeMap<Satellite, Vec<Measurement>> = BTreeMap::new();
        for (job, measurement) in plan.jobs.iter().zip(measured) {
            cells.entry(job.cell.clone()).or_default().push(measurement);
        }
        Results { seeds: plan.seeds, time: plan.time, cells, runs }
    }
    /// The runs of a cell; none if the plan had none.
    pub fn cell(&self, cell: &Satellite) -> Cell<'_> {
        Cell(self.cells.get(cell).map_or(&[], Vec::as_slice))
    }
    /// Two flows of the paper's algorithms.
    pub fn pair(&self, first: &str, second: &str, ber: Ber, queue: Queue) -> Cell<'_> {
        self.cell(&super::plan::pair(first, second, ber, queue))
    }
    /// A single flow of one of the paper's algorithms.
    pub fn single(&self, name: &str, ber: Ber) -> Cell<'_> {
        self.cell(&super::plan::single(name, ber))
    }
    /// How many runs there were.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// How much faster STAR is than another at 1e-8, in percent (the paper's §4.2.1).
    pub fn gain(&self, other: &str) -> f64 {
        let mean = |name| self.single(name, Ber::E8).goodput(0).mean;
        (mean("star") / mean(other) - 1.0) * 100.0
    }

    /// Half the 95 % confidence interval of [`gain`](Results::gain), in percentage points: relative errors of the two
    /// means added as independent ones.
    pub fn gain_ci95(&self, other: &str) -> f64 {
        let [star, other] = ["star", other].map(|name| self.single(name, Ber::E8).goodput(0));
        let error = |s: Summary| s.ci95 / s.mean;
        let both = error(star) * error(star) + error(other) * error(other);
        star.mean / other.mean * both.sqrt() * 100.0
    }

    /// When the window of a single error-free flow first held the bandwidth-delay product, in seconds (Fig. 7).
    pub fn fills_at(&self, name: &str) -> Option<f64> {
        let full = |r: &&Reading| in_bytes(r) >= WINDOW.get() - SEGMENT.get();
        self.single(name, Ber::Zero).readings(0).iter().find(full).map(|r| r.at.as_secs_f64())
    }

    /// How long after the ACKs came back the throughput did, in seconds (Fig. 8): until a second begins in which at
    /// least 90 % of what had been delivered in a second before arrives.
    pub fn recovers_after(&self, name: &str) -> Option<f64> {
        let readings = self.cell(&blackout(name)).readings(0);
        let (lost, second) = (Satellite::blackout_at(self.time), Span::from_secs(1));
        let at = |span| Instant::ZERO + span;
        let before = delivered(readings, at(lost - second * 3), at(lost)) as f64 / 3.0;
        let back = at(lost + second);
        let starts = readings.iter().map(|r| r.at).filter(|at| *at >= back);
        let mut whole = starts.filter(|at| *at + second <= Instant::ZERO + self.time);
        let recovered = |at: &Instant| delivered(readings, *at, *at + second) as f64 >= 0.9 * before;
        whole.find(recovered).map(|at| at.since(back).as_secs_f64())
    }
}

/// What was delivered after `from` up to `to`, in bytes.
fn delivered(readings: &[Reading], from: Instant, to: Instant) -> u64 {
    let after = readings.partition_point(|r| r.at <= from);
    let these = readings.iter().skip(after).take_while(|r| r.at <= to);
    these.map(|r| r.delivered.get()).sum()
}

/// The congestion window in bytes.
pub fn in_bytes(r: &Reading) -> u64 {
    u64::from(r.cwnd.get()).saturating_mul(SEGMENT.get())
}

/// What the sender may have in flight: the congestion window, as far as the window limits let it, in kB.
pub fn usable_kb(r: &Reading) -> f64 {
    in_bytes(r).min(WINDOW.get()) as f64 / 1e3
}

/// Mean of the usable window over a run, in kB; none without readings.
pub fn mean_window(readings: &[Reading]) -> Option<f64> {
    mean(readings.iter().map(usable_kb))
}

/// Mean of the measured bandwidth over a run, in Mbit/s; none if it is not measured.
pub fn mean_bandwidth(readings: &[Reading]) -> Option<f64> {
    mean(readings.iter().filter_map(|r| r.bandwidth).map(|b| b.as_mbit_f64()))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Throughput in bins of `bin`, as (end of the bin in seconds, Mbit/s).
pub fn throughput(readings: &[Reading], bin: Span) -> Vec<(f64, f64)> {
    let end = readings.last().map_or(Instant::ZERO, |r| r.at);
    let count = end.as_nanos() / bin.as_nanos().max(1);
    let rate = |n: u64| {
        let from = Instant::ZERO + bin * n;
        let bytes = ByteCount::new(delivered(readings, from, from + bin));
        (from.as_secs_f64(), farpace_units::Rate::of(bytes, bin).as_mbit_f64())
    };
    (0..count).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::Packets;

    fn readings(delivered: &[u64]) -> Vec<Reading> {
        let reading = |(n, bytes): (u64, &u64)| Reading {
            at: Instant::ZERO + Span::from_millis(20) * (n + 1),
            cwnd: Packets::new(500),
            delivered: ByteCount::new(*bytes),
            bandwidth: None,
        };
        (0..).zip(delivered).map(reading).collect()
    }

    /// Breaks: throughput over time (Fig. 8) and the time of recovery that is read from it.
    #[test]
    fn bins_are_added_up() {
        let all = readings(&[1_000; 100]);
        assert_eq!(delivered(&all, Instant::ZERO, Instant::ZERO + Span::from_secs(1)), 50_000);
        let curve = throughput(&all, Span::from_millis(500));
        assert_eq!(curve.len(), 4);
        assert!(curve.iter().all(|(_, mbit)| (mbit - 0.4).abs() < 1e-9), "{curve:?}");
    }

    /// Breaks: windows larger than what the sockets allow are drawn and averaged.
    #[test]
    fn the_usable_window_is_limited() {
        let all = readings(&[0; 3]);
        assert_eq!(in_bytes(&all[0]), 724_000);
        assert_eq!(mean_window(&all), Some(625.0));
        assert_eq!((mean_window(&[]), mean_bandwidth(&all)), (None, None));
    }
}
