//! What ACKs that are not delayed give to the estimators of round trip, timeout and bandwidth, and to BBR's
//! ProbeRTT.
//!
//! The path is known, so the truth is too: `truth` computes when each segment would have been acknowledged
//! without delays.

mod page;
mod truth;

use super::choices::{
    AUTO, BSD, EVERYTHING, LINUX, LINUX26, NO_DELAY, NamedSettings, OFF, PROBE_RTT, RFC5681, RTT, STRETCH,
    TARR, THINNED, overrides, requests,
};
use crate::experiment::{CaseRun, Experiment, MeasureError, Measured, StopRequest};
use crate::observe::{PaperObserver, observe, scenario, set, verified};
use crate::report::ExperimentReport;
use crate::statistics::percentile;
use farpace_events::{Record, RecordDirection};
use farpace_lab::scenario::Scenario;
use farpace_lab::{Inputs, Run, RunProgress};
use farpace_tcp::rto::Rfc6298;
use farpace_units::{ByteCount, Instant, Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use truth::{OneLinePath, TrueRoundTrips};

/// The scenario that all runs are made from, without its flows.
const SCENARIO: &str = r#"title = "Estimators on a path that is known"
# Nothing is drawn but BBR's waits.
seed = 1
duration = "6 s"

[hosts.a]
[hosts.b]

[[links]]
name = "line"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "25 ms"
# Nothing is lost, and frames are as long as in memory: the truth can be worked out.
queue = "100000 packets"
overhead = "0 B"

[trace]
bin = "10 ms"
"#;

/// Connections of the traffic of requests, payload of each in kB, and ms until the next one begins.
const REQUESTS: [u64; 3] = [24, 20, 230];
/// Bytes of a full frame, and of its payload.
const FRAME: [u64; 2] = [1514, 1448];
/// The floor of the timeout, as the scenarios have it.
const MIN_RTO: Span = Span::from_millis(5);
/// Clock granularity G of RFC 6298, as farpace has it by default.
const GRANULARITY: Span = Span::from_millis(1);
/// Errors count from here on in runs that last.
const WARM: Instant = Instant::from_nanos(1_000_000_000);
/// BBR's estimate of the empty path counts from here on: the short segments of the handshake are out of its
/// filter of 10 s.
const SETTLED: Instant = Instant::from_nanos(11_000_000_000);

/// What flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KnownTraffic {
    /// One flow whose window is half of what the path holds.
    Half,
    /// One whose window is one and a half times that: half of it waits in the queue.
    Full,
    /// Connections of 20 kB, one after the other.
    Requests,
    /// One flow that nothing but its congestion control limits.
    Open,
}

impl KnownTraffic {
    /// Those of the tables of round trips.
    const LIMITED: [KnownTraffic; 3] = [KnownTraffic::Half, KnownTraffic::Full, KnownTraffic::Requests];

    const fn name(self) -> &'static str {
        match self {
            KnownTraffic::Half => "half the path",
            KnownTraffic::Full => "full path",
            KnownTraffic::Requests => "requests",
            KnownTraffic::Open => "bulk",
        }
    }
    /// The receive window in full segments on a path that holds `full`.
    fn window(self, full: u64) -> u64 {
        match self {
            KnownTraffic::Half => full / 2,
            KnownTraffic::Full => full * 3 / 2,
            KnownTraffic::Requests | KnownTraffic::Open => 20_000,
        }
    }
    /// How long a run takes, in seconds.
    fn seconds(self) -> u64 {
        if self == KnownTraffic::Open { 20 } else { 6 }
    }
}

/// A line and its round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KnownLine {
    /// Mbit/s.
    rate: u64,
    /// ms.
    rtt: u64,
}

/// Where round trips and timeouts are measured.
const LINES: [KnownLine; 2] = [KnownLine { rate: 10, rtt: 50 }, KnownLine { rate: 100, rtt: 5 }];
/// Where ProbeRTT is measured; half of the first path is two segments.
const PROBED: [KnownLine; 3] =
    [KnownLine { rate: 10, rtt: 5 }, KnownLine { rate: 10, rtt: 50 }, KnownLine { rate: 100, rtt: 2 }];

impl KnownLine {
    fn path(self) -> OneLinePath {
        OneLinePath { rate: Rate::from_mbit(self.rate), delay: Span::from_micros(self.rtt * 500) }
    }
    /// The most payload that it carries, in Mbit/s.
    fn payload(self) -> f64 {
        self.rate as f64 * FRAME[1] as f64 / FRAME[0] as f64
    }
}

impl fmt::Display for KnownLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s, {} ms", self.rate, self.rtt)
    }
}

/// Who asks whom over which path, with which estimator of the timeout and which congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EstimatorCase {
    line: KnownLine,
    traffic: KnownTraffic,
    receiver: NamedSettings,
    asked: NamedSettings,
    rto: &'static str,
    congestion: &'static str,
}

impl EstimatorCase {
    fn scenario(&self) -> Result<Scenario, MeasureError> {
        let KnownLine { rate, rtt } = self.line;
        let seconds = self.traffic.seconds();
        let [connections, size, apart] = match self.traffic {
            KnownTraffic::Requests => REQUESTS,
            _ => [1, rate * seconds * 250, 0],
        };
        let mut text = SCENARIO.to_owned();
        for n in 0..connections {
            text.push_str(&format!(
                "\n[[flows]]\nname = \"flow-{n}\"\nfrom = \"a\"\nto = \"b\"\nsize = \"{size} kB\"\nstart \
                 = \"{} ms\"\n",
                n * apart
            ));
        }
        let window = self.traffic.window(rate * rtt * 125 / FRAME[0]);
        let mut all = vec![
            set("duration", format!("{seconds} s")),
            set("links.line.rate", format!("{rate} Mbit/s")),
            set("links.line.delay", format!("{} us", rtt * 500)),
            set("flows.*.sender.rto", self.rto),
            set("flows.*.sender.min_rto", MIN_RTO.to_string()),
            set("flows.*.sender.congestion", self.congestion),
            set("flows.*.receiver.window", format!("{window} packets")),
        ];
        if self.receiver == THINNED {
            all.push(set("links.line.backward.ack_thinning", "{ every = 8 }"));
        }
        all.extend(overrides("*", "receiver", self.receiver).chain(requests("*", self.asked)));
        scenario(&text, "papers/ack/estimators", &all)
    }
}

impl fmt::Display for EstimatorCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EstimatorCase { line, traffic, receiver, asked, rto, congestion } = self;
        write!(f, "{line}, {}, {}, {}, {rto}, {congestion}", traffic.name(), receiver.name, asked.name)
    }
}

/// Requests and estimators of the timeout: the rows of the tables of round trips.
const ESTIMATED: [(NamedSettings, &str); 5] =
    [(OFF, "rfc6298"), (EVERYTHING, "rfc6298"), (RTT, "cdl"), (AUTO, "cdl"), (EVERYTHING, "cdl")];
/// The congestion controls that estimate bandwidth, and how they ask.
const BANDWIDTH: [&str; 3] = ["tcp-j", "star", "bbr3"];
const ASKED: [NamedSettings; 4] = [OFF, RTT, AUTO, EVERYTHING];
/// How ProbeRTT asks.
const PROBES: [NamedSettings; 3] = [OFF, TARR, PROBE_RTT];
/// Receivers of the full measurement and of the quick one.
const RECEIVERS: [NamedSettings; 7] = [NO_DELAY, RFC5681, LINUX, LINUX26, BSD, STRETCH, THINNED];
const FEW_RECEIVERS: [NamedSettings; 3] = [NO_DELAY, BSD, STRETCH];

/// The tables of cases: a run for each of their rows.
fn round_trips(line: KnownLine, traffic: KnownTraffic, receiver: NamedSettings) -> [EstimatorCase; 5] {
    ESTIMATED.map(|(asked, rto)| EstimatorCase { line, traffic, receiver, asked, rto, congestion: "cubic" })
}
fn bandwidths(receiver: NamedSettings, asked: NamedSettings) -> [EstimatorCase; 3] {
    let (line, traffic, rto) = (LINES[0], KnownTraffic::Full, "rfc6298");
    BANDWIDTH.map(|congestion| EstimatorCase { line, traffic, receiver, asked, rto, congestion })
}
fn probes(line: KnownLine, receiver: NamedSettings) -> [EstimatorCase; 3] {
    let (traffic, rto, congestion) = (KnownTraffic::Open, "rfc6298", "bbr3");
    PROBES.map(|asked| EstimatorCase { line, traffic, receiver, asked, rto, congestion })
}

/// Estimators of round trip, timeout and bandwidth, compared with the truth.
pub struct EstimatorsOfAcks {
    quick: bool,
}

impl EstimatorsOfAcks {
    /// The full or the quick measurement.
    pub fn new(quick: bool) -> Self {
        EstimatorsOfAcks { quick }
    }
    fn receivers(&self) -> &'static [NamedSettings] {
        if self.quick { &FEW_RECEIVERS } else { &RECEIVERS }
    }
    fn lines<'a>(&self, all: &'a [KnownLine]) -> &'a [KnownLine] {
        if self.quick { all.get(..1).unwrap_or_default() } else { all }
    }
}

/// The errors of an estimator over all ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimateErrors {
    /// The mean of the errors without their sign.
    mean: f64,
    /// What 95 % of them do not exceed.
    most: f64,
    /// The mean with the sign: above zero, the estimate is too high.
    bias: f64,
}

impl EstimateErrors {
    fn of(errors: &[f64]) -> Option<Self> {
        let n = errors.len() as f64;
        let mut sizes: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        let most = percentile(&mut sizes, 95.0)?;
        let (mean, bias) = (sizes.iter().sum::<f64>() / n, errors.iter().sum::<f64>() / n);
        Some(EstimateErrors { mean, most, bias })
    }
}

/// What one run gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EstimatorRun {
    /// Smoothed round trip against what the same filter makes of the true ones, in ms.
    srtt: Option<EstimateErrors>,
    /// Retransmission timeout against what RFC 6298 makes of the true round trips, in ms.
    rto: Option<EstimateErrors>,
    /// Bandwidth against what the line carries, in percent.
    bandwidth: Option<EstimateErrors>,
    /// BBR's round trip of the empty path against the true one, in ms.
    min_rtt: Option<EstimateErrors>,
    /// Payload over time, all connections, in Mbit/s.
    goodput: f64,
    /// Segments that came back for each that went out.
    acks: f64,
    /// Retransmission timeouts. Nothing is lost, so all are spurious.
    timeouts: u64,
    /// Segments that asked, and confirmations that came.
    requests: [u64; 2],
}

/// Compares estimates with the truth while a run goes on.
struct EstimateObserver {
    line: KnownLine,
    truth: TrueRoundTrips,
    lasts: bool,
    /// Records of the bin. A host hands out the records of one connection after the other.
    records: Vec<Record>,
    /// What the standard estimator makes of the true round trips, by connection.
    ideal: BTreeMap<u32, Rfc6298>,
    srtt: Vec<f64>,
    rto: Vec<f64>,
    bandwidth: Vec<f64>,
    min_rtt: Vec<f64>,
}

impl EstimateObserver {
    fn on_record(&mut self, r: &Record) {
        let truths = self.truth.on_record(r);
        if r.direction != RecordDirection::Received || truths.is_empty() {
            return;
        }
        let ideal = self.ideal.entry(r.connection).or_insert_with(|| Rfc6298::new(MIN_RTO, GRANULARITY));
        truths.into_iter().for_each(|rtt| ideal.sample(rtt));
        if self.lasts && r.time < WARM {
            return;
        }
        self.srtt.push(error(r.srtt, ideal.srtt()));
        self.rto.push(error(r.rto, ideal.rto()));
        if r.bandwidth.bits_per_sec() > 0 {
            self.bandwidth.push((r.bandwidth.as_mbit_f64() / self.line.payload() - 1.0) * 100.0);
        }
    }
}

impl PaperObserver for EstimateObserver {
    fn record(&mut self, record: &Record) {
        self.records.push(record.clone());
    }
    fn bin(&mut self, run: &mut Run, _: RunProgress) {
        let mut records = std::mem::take(&mut self.records);
        records.sort_by_key(|r| r.time);
        records.iter().for_each(|r| self.on_record(r));
        let seen = run.samples().iter().filter(|s| s.time >= SETTLED).filter_map(|s| s.sender.min_rtt);
        self.min_rtt.extend(seen.map(|min| error(min, self.line.path().empty())));
    }
}

/// An estimate less the truth, in ms.
fn error(estimate: Span, truth: Span) -> f64 {
    (estimate.as_secs_f64() - truth.as_secs_f64()) * 1e3
}

impl Experiment for EstimatorsOfAcks {
    type Case = EstimatorCase;
    type Measurement = EstimatorRun;

    fn plan(&self) -> Vec<CaseRun<EstimatorCase>> {
        let mut cases = Vec::new();
        for &receiver in self.receivers() {
            for &line in self.lines(&LINES) {
                cases.extend(KnownTraffic::LIMITED.into_iter().flat_map(|t| round_trips(line, t, receiver)));
            }
            cases.extend(ASKED.into_iter().flat_map(|asked| bandwidths(receiver, asked)));
            cases.extend(self.lines(&PROBED).iter().flat_map(|line| probes(*line, receiver)));
        }
        cases.into_iter().map(|case| CaseRun { case, number: 1 }).collect()
    }
    fn measure(
        &self,
        run: &CaseRun<EstimatorCase>,
        stop: &StopRequest<'_>,
    ) -> Result<EstimatorRun, MeasureError> {
        let case = run.case;
        // Records of a long run of BBR are many, and nothing is read from them.
        let inputs = Inputs { records: case.traffic != KnownTraffic::Open, ..Inputs::default() };
        let mut seen = EstimateObserver {
            line: case.line,
            truth: TrueRoundTrips::new(case.line.path()),
            lasts: case.traffic != KnownTraffic::Requests,
            records: Vec::new(),
            ideal: BTreeMap::new(),
            srtt: Vec::new(),
            rto: Vec::new(),
            bandwidth: Vec::new(),
            min_rtt: Vec::new(),
        };
        let outcome = verified(observe(&case.scenario()?, inputs, &mut seen, stop)?)?;
        let flows = || outcome.flows.iter();
        let delivered: ByteCount = flows().map(|f| f.delivered).sum();
        let sent: u64 = flows().flat_map(|f| f.sent()).map(|(_, n)| n).sum();
        let received: u64 = flows().map(|f| f.counters.segments_received).sum();
        let [asked, confirmed] =
            [flows().map(|f| f.counters.asked).sum(), flows().map(|f| f.counters.confirmed).sum()];
        Ok(EstimatorRun {
            srtt: EstimateErrors::of(&seen.srtt),
            rto: EstimateErrors::of(&seen.rto),
            bandwidth: EstimateErrors::of(&seen.bandwidth),
            min_rtt: EstimateErrors::of(&seen.min_rtt),
            goodput: delivered.get() as f64 * 8e-6 / outcome.ended.as_secs_f64(),
            acks: received as f64 / sent.max(1) as f64,
            timeouts: flows().map(|f| f.timeouts).sum(),
            requests: [asked, confirmed],
        })
    }
    fn report(&self, measured: &Measured<'_, Self>, command: &str) -> ExperimentReport {
        page::report(measured, command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a case is refused in the middle of a long measurement.
    #[test]
    fn every_case_can_be_run() {
        for CaseRun { case, .. } in EstimatorsOfAcks::new(false).plan() {
            let scenario = case.scenario().unwrap_or_else(|e| panic!("{case}: {e}"));
            for flow in &scenario.flows {
                assert!(flow.sender.resolve().is_ok() && flow.receiver.resolve().is_ok(), "{case}");
            }
        }
    }

    fn srtt_and_rto(receiver: NamedSettings, traffic: KnownTraffic) -> [EstimateErrors; 2] {
        let case = round_trips(LINES[0], traffic, receiver)[0];
        let run = CaseRun { case, number: 1 };
        let m = EstimatorsOfAcks::new(true).measure(&run, &|| false).unwrap();
        [m.srtt.unwrap(), m.rto.unwrap()]
    }

    /// Breaks: the truth of all tables. A receiver that does not delay agrees with it, with and without a
    /// queue.
    #[test]
    fn without_delay_there_is_no_error() {
        for traffic in [KnownTraffic::Half, KnownTraffic::Full] {
            let [srtt, rto] = srtt_and_rto(NO_DELAY, traffic);
            assert!(srtt.most < 1e-3 && rto.most < 1e-2, "{traffic:?}: {srtt:?} {rto:?}");
        }
        assert_eq!(FRAME[0] - FRAME[1], 66);
    }

    /// Breaks: delayed ACKs no longer show as errors.
    #[test]
    fn delayed_acks_are_errors() {
        let [srtt, _] = srtt_and_rto(BSD, KnownTraffic::Requests);
        assert!(srtt.mean > 0.5 && srtt.most > srtt.mean, "{srtt:?}");
    }
}
