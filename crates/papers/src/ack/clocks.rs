//! Chapter 6, which has no results: finer clocks, with and without CDL.

use super::AckPaper;
use super::cases::{AckCase, AckRunKind, AskPolicy, DelaySplit, MSS};
use super::transfer::RoundTripSummary;
use crate::experiment::Measured;
use crate::statistics::Summary;
use farpace_report::{Curve, Figure, Table, cells, curves};

/// Ticks, as scenarios write them. The first is BSD's.
pub const CLOCKS: [&str; 5] = ["500 ms", "200 ms", "10 ms", "1 ms", "1 us"];
/// The shortest timeout that estimators may give: none, so that the table shows what they would like.
const MIN_RTO: &str = "1 ms";
/// Segments of the short transfer whose last one is lost.
const SEGMENTS: u64 = 40;

/// Who asks, and the estimator of the timeout: nobody and RFC 6298; the timed segment and confirmed samples,
/// as the thesis proposes; that one and all of slow start, which here is the whole transfer.
pub const ASKING: [(AskPolicy, &str, &str); 3] = [
    (AskPolicy::None, "rfc6298", "none"),
    (AskPolicy::Rtt, "cdl", "RTT"),
    (AskPolicy::SlowStart, "cdl", "RTT + slow start"),
];

/// A clock, and the place in [`ASKING`] of who asks.
pub fn case(clock: &str, asking: usize) -> AckCase {
    let (policy, rto, label) = ASKING[asking];
    AckCase::new(DelaySplit::Even, policy, false)
        .sender("rto", rto)
        .sender("min_rto", MIN_RTO)
        .sender("clock", clock)
        .called(&format!("clock {clock}, {label}"))
        .of_kind(AckRunKind::RoundTrips)
}

/// What BSD did: its estimator, its clock, its least timeout.
pub fn bsd() -> AckCase {
    let case = AckCase::new(DelaySplit::Even, AskPolicy::None, false).sender("rto", "net2");
    case.called("BSD's estimator").of_kind(AckRunKind::RoundTrips)
}

/// All of them: clock, who asks, for programs, and the case.
pub fn all() -> Vec<(&'static str, &'static str, String, AckCase)> {
    let mut all = vec![(CLOCKS[0], "none (BSD's estimator)", "bsd".to_owned(), bsd())];
    for clock in CLOCKS {
        for (place, (policy, _, label)) in ASKING.iter().enumerate() {
            let id = format!("{}/{}", clock.replace(' ', ""), policy.id());
            all.push((clock, label, id, case(clock, place)));
        }
    }
    all
}

/// The same with few segments, the last of which is lost.
pub fn short(case: AckCase) -> AckCase {
    case.with("flows.bulk.size", &format!("{} B", SEGMENTS * MSS))
        .called_more("40 segments, the last one lost")
        .of_kind(AckRunKind::TailLoss)
}

impl Measured<'_, AckPaper> {
    /// A number of round trips over the phases of a case.
    pub fn trips(&self, case: &AckCase, of: fn(&RoundTripSummary) -> f64) -> f64 {
        self.over(case, |m| m.round_trips.as_ref().map_or(f64::NAN, of)).mean
    }
    /// How long the repair of a lost tail took, in seconds.
    pub fn repaired(&self, of: AckCase) -> Summary {
        self.over(&short(of), |m| m.repaired.unwrap_or(f64::NAN))
    }
}

/// The table of chapter 6.
pub fn table(m: &Measured<'_, AckPaper>) -> Table {
    let mut table = Table::with(
        "Clocks (chapter 6, where the thesis has no numbers): means over all phases",
        "clock | asks for | SRTT less path [ms] | error of SRTT [ms] | RTO [ms] | longest round trip [ms] | \
         timeouts without loss [in 10 s] | tail repaired after [s]",
    );
    for (clock, asks, _, case) in all() {
        let trips = |of| (m.trips(&case, of), 1);
        let timeouts = (m.over(&case, |m| m.timeouts).mean, 1);
        let [bias, error] = [trips(|s| s.bias), trips(|s| s.error)];
        let [rto, longest] = [trips(|s| s.rto), trips(|s| s.longest)];
        let repaired = (m.repaired(case.clone()).mean, 2);
        table.row(cells![clock, asks, bias, error, rto, longest, timeouts, repaired]);
    }
    table
}

/// How long the repair of a lost tail takes.
pub fn figure(m: &Measured<'_, AckPaper>) -> Figure {
    let curve = |place: usize| {
        let points = CLOCKS.map(|clock| Some(m.repaired(case(clock, place)).with_range()));
        Curve { label: ASKING[place].2, points: points.into() }
    };
    let all = [0, 1, 2].map(curve);
    curves("How long a lost tail takes", "tick of the clocks", "time to repair (s)", &CLOCKS, &all).figure(
        "figures/clocks.svg",
        "The last of 40 segments is lost; nothing but the timeout can repair it. Means over the phases of \
         the ticks, with the shortest and the longest (chapter 6: proposed there, not measured).",
    )
}
