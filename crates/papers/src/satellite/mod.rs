//! The paper on TCP-STAR.
//!
//! Its authors put TCP-STAR into NetBSD and compared it with TCP-J, HighSpeed TCP, Scalable TCP and NewReno
//! over an emulated satellite link: bit errors, lost ACKs, one and two flows, a large and a small router
//! queue. `docs/papers/satellite.md` describes paper and results. [`Frontier`] puts every congestion control
//! on the same grid.

mod cases;
mod claims;
mod frontier;
mod page;
mod rows;
mod sensitivity;
mod worlds;

pub use frontier::Frontier;

use crate::assumptions::WorldAssumptions;
use crate::bulk::{BulkRun, FlowReading};
use crate::contender::Contender;
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::info::PaperInfo;
use crate::observe::Setting;
use crate::paper::{ClaimList, Paper, RowList, report};
use crate::report::ExperimentReport;
use cases::{Ber, ONE, RouterQueue, SEGMENT, SatelliteCase, SatelliteRuns, TWO, WINDOW};
use farpace_report::{Page, ReproductionClaim, Table};
use farpace_units::{ByteCount, Instant, Rate, Span};

/// Seeds of the full and the quick measurement.
const SEEDS: [u64; 2] = [10, 5];

/// The algorithms of the paper: names of scenarios, and of the paper. STAR comes first.
const ALGORITHMS: [(&str, &str); 5] = [
    ("star", "STAR"),
    ("tcp-j", "TCP-J"),
    ("highspeed", "HSTCP"),
    ("scalable", "Scalable"),
    ("reno", "NewReno"),
];

/// Those that share the router with STAR (Figs. 19, 20), and with themselves (Figs. 12, 16).
const NEIGHBOURS: [&str; 2] = ["tcp-j", "highspeed"];

/// The paper's name of an algorithm.
fn label(name: &str) -> &str {
    ALGORITHMS.iter().find(|(n, _)| *n == name).map_or(name, |(_, label)| label)
}

/// A single flow of an algorithm of the paper.
fn single(name: &str, ber: Ber) -> SatelliteCase {
    SatelliteCase::single(Contender::published(name), ber)
}

/// The same without errors, with ACKs that are lost for a second.
fn blackout(name: &str) -> SatelliteCase {
    SatelliteCase { blackout: true, ..single(name, Ber::Zero) }
}

/// Two flows of algorithms of the paper.
fn pair(first: &str, second: &str, ber: Ber, queue: RouterQueue) -> SatelliteCase {
    SatelliteCase::pair(Contender::published(first), Contender::published(second), ber, queue)
}

/// TCP-STAR and others over a satellite link.
pub struct SatellitePaper {
    /// Runs for sensitivity tables are left out.
    quick: bool,
    runs: SatelliteRuns,
}

impl SatellitePaper {
    /// The full or the quick measurement, with so many seeds if not the usual number. `set` changes the
    /// scenarios of all runs.
    ///
    /// # Errors
    /// A time that is too short or too long.
    pub fn new(quick: bool, seeds: Option<u64>, time: Span, set: &[Setting]) -> Result<Self, MeasureError> {
        let seeds = seeds.unwrap_or(SEEDS[usize::from(quick)]);
        Ok(SatellitePaper { quick, runs: SatelliteRuns::new(seeds, time, set, true)? })
    }
}

impl Experiment for SatellitePaper {
    type Case = SatelliteCase;
    type Measurement = BulkRun;

    fn plan(&self) -> Vec<CaseRun<SatelliteCase>> {
        let mut cases = Vec::new();
        for (name, _) in ALGORITHMS {
            cases.extend(Ber::ALL.map(|ber| single(name, ber)));
            cases.push(blackout(name));
        }
        for queue in RouterQueue::BOTH {
            for ber in Ber::ALL {
                cases.extend(ALGORITHMS.map(|(name, _)| pair(name, name, ber, queue)));
                cases.extend(NEIGHBOURS.map(|name| pair("star", name, ber, queue)));
            }
        }
        let mut plan = Vec::new();
        if !self.quick {
            cases.extend(sensitivity::filters().cases().chain(sensitivity::bursts().cases()));
            plan.extend(sensitivity::estimators().cases().map(|case| CaseRun { case, number: 1 }));
        }
        plan.extend(self.runs.plan(cases));
        plan
    }
    fn inputs(&self) -> String {
        self.runs.inputs()
    }
    fn check(&self, case: &SatelliteCase) -> Result<(), MeasureError> {
        self.runs.scenario(case, 1).map(drop)
    }
    fn measure(&self, run: &CaseRun<SatelliteCase>, stop: &StopRequest<'_>) -> Result<BulkRun, MeasureError> {
        self.runs.measure(run, stop)
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        report(measured, command, None)
    }
}

impl Paper for SatellitePaper {
    const ABOUT: &'static PaperInfo = &PaperInfo {
        name: "satellite",
        citation: "Implementation and Evaluation of TCP-STAR: TCP Congestion Control Method for Satellite \
                   Internet (Obata, Taira, Ishida; Hiroshima City University, 2006)",
        title: "TCP-STAR over a satellite link",
        topic: "Bit errors half a second away",
        story: "Over a satellite TCP takes each bit error for congestion, and needs minutes to open its \
                window again. TCP-STAR measures the bandwidth and sets the window by that.",
        key_figures: &["figures/fig06.svg"],
        key_claims: &[],
        single_run: "farpace run scenarios/papers/satellite.toml --set \
                     links.satellite.forward.bit_errors=1e-7 --out star",
        document: include_str!("../../../../docs/papers/satellite.md"),
        worlds: worlds::WORLDS,
        plausible: worlds::PLAUSIBLE,
    };

    fn assumed(&self) -> &WorldAssumptions {
        &self.runs.assumed
    }
    fn assuming(&self, assumed: WorldAssumptions, brief: bool) -> Result<Self, MeasureError> {
        let runs = SatelliteRuns { assumed, ..self.runs.clone() };
        Ok(SatellitePaper { quick: self.quick || brief, runs })
    }

    fn scope(measured: &Measured<'_, Self>) -> String {
        format!("{} runs of {} each", measured.count(), measured.of.runs.time)
    }
    fn rows(measured: &Measured<'_, Self>, rows: &mut RowList) {
        rows::rows(measured, rows);
    }
    fn claims(measured: &Measured<'_, Self>, claims: &mut ClaimList) {
        claims::claims(measured, claims);
    }
    fn verdict(measured: &Measured<'_, Self>) -> String {
        let [reno, highspeed, scalable, j] =
            ["reno", "highspeed", "scalable", "tcp-j"].map(|name| measured.gain(name));
        format!(
            "At a bit error rate of 1e-8 STAR is {reno:+.0} % faster than NewReno, {highspeed:+.0} % than \
             HSTCP, {scalable:+.0} % than Scalable, {j:+.0} % than TCP-J (paper: +152, +96, +42, +14 %)."
        )
    }
    fn body(measured: &Measured<'_, Self>, claims: &[ReproductionClaim], page: &mut Page) {
        page::body(measured, claims, page);
    }
    fn key_table(measured: &Measured<'_, Self>) -> Table {
        page::gains(measured)
    }
    fn scenarios(_: &Measured<'_, Self>) -> Vec<(String, String)> {
        [("The scenario of single flows", ONE), ("The scenario of two flows", TWO)]
            .map(|(title, text)| (title.to_owned(), text.to_owned()))
            .into()
    }
}

impl Measured<'_, SatellitePaper> {
    /// How much faster STAR is than another at 1e-8, in percent (the paper's §4.2.1).
    fn gain(&self, other: &str) -> f64 {
        let mean = |name| self.flow_goodput(&single(name, Ber::E8), 0).mean;
        (mean("star") / mean(other) - 1.0) * 100.0
    }

    /// Half the 95 % confidence interval of [`gain`](Self::gain), in percentage points. Relative errors of
    /// the two means are added as independent ones.
    fn gain_ci95(&self, other: &str) -> f64 {
        let [star, other] = ["star", other].map(|name| self.flow_goodput(&single(name, Ber::E8), 0));
        let [a, b] = [star, other].map(|s| s.ci95 / s.mean);
        star.mean / other.mean * (a * a + b * b).sqrt() * 100.0
    }

    /// When the window of a single flow without errors first held the bandwidth-delay product, in seconds
    /// (Fig. 7).
    fn fills_at(&self, name: &str) -> Option<f64> {
        let full = |r: &&FlowReading| in_bytes(r) >= WINDOW.get() - SEGMENT.get();
        self.readings(&single(name, Ber::Zero), 0).iter().find(full).map(|r| r.at().as_secs_f64())
    }

    /// How long after the ACKs the throughput came back, in seconds (Fig. 8): until a second begins in which
    /// at least 90 % of what had been delivered in a second before arrives.
    fn recovers_after(&self, name: &str) -> Option<f64> {
        let case = blackout(name);
        let readings = self.readings(&case, 0);
        let (time, lost, second) = (self.of.runs.time, self.of.runs.blackout_at(), Span::from_secs(1));
        let at = |span| Instant::ZERO + span;
        let before = delivered(readings, at(lost - second * 3), at(lost)) as f64 / 3.0;
        let back = at(lost + second);
        let starts = readings.iter().map(FlowReading::at).filter(|at| *at >= back);
        let mut whole = starts.filter(|at| *at + second <= Instant::ZERO + time);
        let recovered = |at: &Instant| delivered(readings, *at, *at + second) as f64 >= 0.9 * before;
        whole.find(recovered).map(|at| at.since(back).as_secs_f64())
    }

    /// Mean of the usable window of a flow in the first run, in kB; NaN without readings.
    fn mean_window(&self, case: &SatelliteCase, flow: usize) -> f64 {
        mean(self.readings(case, flow).iter().map(usable_kb))
    }

    /// Mean of the measured bandwidth of a flow in the first run, in Mbit/s; NaN if it is not measured.
    fn mean_bandwidth(&self, case: &SatelliteCase, flow: usize) -> f64 {
        mean(self.readings(case, flow).iter().filter_map(FlowReading::bandwidth_mbit))
    }
}

/// What was delivered after `from` up to `to`, in bytes.
fn delivered(readings: &[FlowReading], from: Instant, to: Instant) -> u64 {
    let after = readings.partition_point(|r| r.at() <= from);
    readings.iter().skip(after).take_while(|r| r.at() <= to).map(|r| r.delivered).sum()
}

/// The congestion window in bytes.
fn in_bytes(r: &FlowReading) -> u64 {
    u64::from(r.cwnd).saturating_mul(SEGMENT.get())
}

/// What the sender may have in flight: the congestion window, as far as the window limits allow it, in kB.
fn usable_kb(r: &FlowReading) -> f64 {
    in_bytes(r).min(WINDOW.get()) as f64 / 1e3
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Throughput in bins of `bin`, as (begin of the bin in seconds, Mbit/s).
fn throughput(readings: &[FlowReading], bin: Span) -> Vec<(f64, f64)> {
    let end = readings.last().map_or(Instant::ZERO, FlowReading::at);
    let rate = |n: u64| {
        let from = Instant::ZERO + bin * n;
        let bytes = ByteCount::new(delivered(readings, from, from + bin));
        (from.as_secs_f64(), Rate::of(bytes, bin).as_mbit_f64())
    };
    (0..end.as_nanos() / bin.as_nanos().max(1)).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(delivered: &[u64]) -> Vec<FlowReading> {
        let reading = |(n, bytes): (u64, &u64)| FlowReading {
            at_ns: 20_000_000 * (n + 1),
            cwnd: 500,
            delivered: *bytes,
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
        assert_eq!((in_bytes(&all[0]), mean(all.iter().map(usable_kb))), (724_000, 625.0));
        assert!(mean(std::iter::empty()).is_nan());
    }
}
