//! Chapter 6, which has no results: finer clocks, with and without CDL.

use super::cases::{Case, MSS, Policy, Route};
use super::results::Results;
use farpace_report::{Curve, Figure, Table, TableCell, TableColumn, curves};
use farpace_units::Span;

/// Ticks, as scenarios write them. The first is BSD's.
pub const CLOCKS: [&str; 5] = ["500 ms", "200 ms", "10 ms", "1 ms", "1 us"];
/// The shortest timeout that estimators may give: none, so that the table shows what they would like.
const MIN_RTO: &str = "1 ms";
/// Segments of the short transfer whose last one is lost.
const SEGMENTS: u64 = 40;

/// Who asks, and which samples the timeout takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// Nobody: RFC 6298.
    No,
    /// The timed segment: confirmed samples, as the thesis proposes.
    Timed,
    /// That one and all of slow start, which here is the whole transfer.
    SlowStart,
}

impl Asks {
    /// All of them.
    pub const ALL: [Asks; 3] = [Asks::No, Asks::Timed, Asks::SlowStart];

    /// For tables.
    pub const fn label(self) -> &'static str {
        match self {
            Asks::No => "none",
            Asks::Timed => "RTT",
            Asks::SlowStart => "RTT + slow start",
        }
    }

    /// For programs.
    pub const fn id(self) -> &'static str {
        match self {
            Asks::No => "none",
            Asks::Timed => "rtt",
            Asks::SlowStart => "slow-start",
        }
    }
}

/// A clock, and who asks.
pub fn case(clock: &str, asks: Asks) -> Case {
    let (policy, rto) = match asks {
        Asks::No => (Policy::None, "rfc6298"),
        Asks::Timed => (Policy::Rtt, "cdl"),
        Asks::SlowStart => (Policy::SlowStart, "cdl"),
    };
    Case::new(Route::Even, policy, false)
        .sender("rto", rto)
        .sender("min_rto", MIN_RTO)
        .sender("clock", clock)
        .called(&format!("clock {clock}, {}", asks.label()))
}

/// What BSD did: its estimator, its clock, its least timeout.
pub fn bsd() -> Case {
    Case::new(Route::Even, Policy::None, false).sender("rto", "net2").called("BSD's estimator")
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let clocks = CLOCKS.into_iter().flat_map(|clock| Asks::ALL.map(|asks| case(clock, asks)));
    std::iter::once(bsd()).chain(clocks).collect()
}

/// The same with few segments.
pub fn short(case: Case) -> Case {
    case.with("flows.bulk.size", &format!("{} B", SEGMENTS * MSS))
        .called_more("40 segments, the last one lost")
}

/// The setting that loses what arrives at the receiver around `whole`, and nothing else: segments come 23 ms apart, and
/// a retransmission takes longer.
pub fn last_lost(whole: Span) -> (&'static str, String) {
    let at = whole - MARGIN;
    ("links.lan-b.forward.outages", format!("[{{ at = \"{at}\", lasts = \"{}\" }}]", MARGIN * 2))
}

const MARGIN: Span = Span::from_millis(10);

/// The table of chapter 6.
pub fn table(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("clock"),
        TableColumn::text("asks for"),
        TableColumn::number("SRTT less path", "ms"),
        TableColumn::number("error of SRTT", "ms"),
        TableColumn::number("RTO", "ms"),
        TableColumn::number("longest round trip", "ms"),
        TableColumn::number("timeouts without loss", "in 10 s"),
        TableColumn::number("tail repaired after", "s"),
    ];
    let mut table =
        Table::new("Clocks (chapter 6, where the thesis has no numbers): means over all phases", columns);
    let mut row = |clock: &str, cdl: &str, case: &Case| {
        let trips = |of: fn(&super::round_trips::Summary) -> f64| {
            let range = results.over(case, |m| m.round_trips.as_ref().map_or(f64::NAN, of));
            number(range.mean, 1)
        };
        table.row(vec![
            clock.into(),
            cdl.into(),
            trips(|s| s.bias),
            trips(|s| s.error),
            trips(|s| s.rto),
            trips(|s| s.longest),
            number(results.over(case, |m| m.timeouts).mean, 1),
            number(repaired(results, case).mean, 2),
        ]);
    };
    row("500 ms", "none (BSD's estimator)", &bsd());
    for clock in CLOCKS {
        for asks in Asks::ALL {
            row(clock, asks.label(), &case(clock, asks));
        }
    }
    table
}

fn number(value: f64, decimals: u8) -> TableCell {
    if value.is_finite() { TableCell::Number(value, Some(decimals)) } else { TableCell::Missing }
}

/// How long the repair of a lost tail took, in seconds.
pub fn repaired(results: &Results, of: &Case) -> super::results::Range {
    results.over(&short(of.clone()), |m| m.repaired.unwrap_or(f64::NAN))
}

/// The same as a picture.
pub fn figure(results: &Results) -> Figure {
    let curve = |asks: Asks| Curve {
        label: asks.label(),
        points: CLOCKS.map(|clock| Some(repaired(results, &case(clock, asks)).estimate())).into(),
    };
    curves(
        "How long a lost tail takes",
        "tick of the clocks",
        "time to repair (s)",
        &CLOCKS,
        &Asks::ALL.map(curve),
    )
    .figure(
        "figures/clocks.svg",
        "The last of 40 segments is lost; nothing but the timeout can repair it. Means over the phases of the ticks, with \
         the shortest and the longest (chapter 6: proposed there, not measured).",
    )
}
