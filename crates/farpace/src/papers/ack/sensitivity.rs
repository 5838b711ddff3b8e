//! What the thesis leaves open, turned one by one.

use super::cases::{Case, Policy, Route};
use super::results::Results;
use super::thesis::TABLE_2;
use farpace_report::{Table, TableCell, TableColumn};

/// Settings of both ends or of the network, with the values to try. The base is the scenario's.
const TURNED: [(&str, &str, &[&str]); 6] = [
    ("emulator's queue", "links.line.queue", &["4 packets", "5 packets", "6 packets", "1000 packets"]),
    (
        "first slow-start threshold",
        "flows.bulk.sender.initial_ssthresh",
        &["4 packets", "45 packets", "1000000 packets"],
    ),
    ("receiver's tick", "flows.bulk.receiver.ack_delay", &["50 ms", "100 ms", "500 ms"]),
    ("initial window", "flows.bulk.sender.initial_window", &["1 packet", "2 packets", "4 packets"]),
    ("send buffer", "flows.bulk.sender.send_buffer", &["4096 B", "8192 B", "8760 B", "16 kB"]),
    ("receive window", WINDOW, &["4380 B", "5840 B", "17520 B"]),
];

/// Four segments. The thesis' sender timed 104 segments in 10 s, one at a time: 96 ms each. With six segments in flight a
/// round trip takes 140 ms, with four 94.
pub const FOUR: &str = "5840 B";
const WINDOW: &str = "flows.bulk.receiver.receive_buffer";

/// A row of the thesis' tables with four segments in flight.
pub fn four(route: Route, policy: Policy, timestamps: bool) -> Case {
    Case::new(route, policy, timestamps).with(WINDOW, FOUR).called_more("four segments in flight")
}

/// Rows of Table 5.2 with four segments in flight, on both paths.
pub fn four_cases() -> Vec<Case> {
    let on = |route| TABLE_2.iter().map(move |row| four(route, row.policy, row.timestamps));
    Route::ALL.into_iter().flat_map(on).collect()
}

/// Policies that are shown.
const POLICIES: [Policy; 4] = [Policy::None, Policy::Rtt, Policy::Every(4), Policy::SlowStart];

fn case(policy: Policy, key: &str, value: &str) -> Case {
    let more = format!("{key} = {value}");
    Case::new(Route::Even, policy, false).with(key, value).called_more(&more)
}

/// Cells of [`table`].
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (_, key, values) in TURNED {
        for value in values {
            cases.extend(POLICIES.map(|policy| case(policy, key, value)));
        }
    }
    cases
}

/// What each policy delivers on the even path, for each value.
pub fn table(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("what"), TableColumn::text("value")];
    columns.extend(POLICIES.map(|policy| TableColumn::number(policy.label(), "kB")));
    columns.push(TableColumn::number("CDL, RTT", "(thesis: 104)"));
    columns.push(TableColumn::number("drops, RTT + slow start", "packets"));
    let mut table = Table::new("What the thesis leaves open: delivered, 25+25 ms", columns);
    let mut row = |what: &str, value: &str, cases: [Case; POLICIES.len()]| {
        let mut row: Vec<TableCell> = vec![what.into(), value.into()];
        row.extend(cases.iter().map(|c| TableCell::from(results.over(c, |m| m.delivered).text())));
        row.extend(cases.get(1).map(|c| TableCell::from(results.over(c, |m| m.asked).text())));
        row.extend(cases.last().map(|c| TableCell::from(results.over(c, |m| m.dropped).text())));
        table.row(row);
    };
    row("as assumed", "", POLICIES.map(|policy| Case::new(Route::Even, policy, false)));
    for (what, key, values) in TURNED {
        for value in values {
            row(what, value, POLICIES.map(|policy| case(policy, key, value)));
        }
    }
    table
}

/// True if these runs were made.
pub fn measured(results: &Results) -> bool {
    cases().iter().any(|c| !results.case(c).is_empty())
}
