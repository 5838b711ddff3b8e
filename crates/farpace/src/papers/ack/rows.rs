//! The numbers of `--json`, each with what had to be assumed.

use super::cases::{Case, Policy, Route};
use super::clocks::{self, Asks};
use super::results::Results;
use super::tables::label;
use super::thesis::{COLUMNS, FIRST_ROUND_TRIP, Printed, TABLE_1, TABLE_2};
use farpace_report::ReproductionRow;

/// What the thesis leaves open and holds for every row.
pub fn assumptions(results: &Results) -> Vec<String> {
    vec![
        format!(
            "Means over {} runs in which the connection begins 50 ms later each time, against the ticks of 200 ms and 500 ms \
             of both hosts; the thesis made one run each",
            results.phases
        ),
        "10 s from the first SYN; the thesis' begin is not stated".to_owned(),
        "The emulator's 512 kbit/s count IP packets, as its ceiling of 640 kB does; its queue is not stated: 50 packets, \
         as BSD's interfaces have. With windows of six segments it never fills"
            .to_owned(),
        "Both PCs reach the emulator by Ethernet of 10 Mbit/s with 50 us each; hosts take no time".to_owned(),
        "The profile net2 at both ends: 4.3BSD's Reno, ACKs for every second segment and at the ticks of 200 ms, an initial \
         window of one segment, a first slow-start threshold of 64 kB"
            .to_owned(),
        "The receive window of 8760 B (Fig. 5.1) limits what is in flight; the send buffer does not".to_owned(),
        "The row without CDL has a receiver that would answer, and a sender that does not ask".to_owned(),
        "\"Bytes\" are payload sent: the thesis' are its segments times 1460 in all rows without timestamps but one"
            .to_owned(),
    ]
}

const NO_ROUTE: &str = "The tables do not say which path they are of: 25+25 ms";

/// All rows.
pub fn rows(results: &Results) -> Vec<ReproductionRow> {
    let mut rows = Rows { all: Vec::new(), assumptions: assumptions(results) };
    for (table, printed) in [("table5.1", &TABLE_1[..]), ("table5.2", &TABLE_2)] {
        for row in printed {
            rows.table(results, table, row);
        }
    }
    for route in Route::ALL {
        let place = if route == Route::Even { "25+25" } else { "45+5" };
        for policy in Policy::ALL {
            let at = format!("{}, {}", policy.label(), route.name());
            let id = |what: &str| format!("{place}/{}/{what}", policy.id());
            let delivered = results.delivered(route, policy);
            rows.add(&id("delivered"), format!("payload delivered, {at}"), "kB", None, delivered.mean, &[]);
            let per_mb = results.row(route, policy, false, |m| m.acks / m.delivered * 1e3).mean;
            rows.add(&id("acks-per-mb"), format!("ACKs per MB delivered, {at}"), "1/MB", None, per_mb, &[]);
        }
        for policy in [Policy::None, Policy::Rtt] {
            let delivered = results.row(route, policy, true, |m| m.delivered).mean;
            let id = format!("{place}/{}-timestamps/delivered", policy.id());
            let text = format!("payload delivered, {}, timestamps, {}", policy.label(), route.name());
            rows.add(&id, text, "kB", None, delivered, &[]);
        }
    }
    let trips = |case: &Case, of: fn(&super::round_trips::Summary) -> f64| {
        results.over(case, |m| m.round_trips.as_ref().map_or(f64::NAN, of)).mean
    };
    let first = trips(&clocks::case("1 us", Asks::Timed), |s| s.first);
    let text = "round trip of the first data segment, which asks (Fig. 5.1)";
    rows.add("fig5.1/round-trip", text.into(), "ms", Some(FIRST_ROUND_TRIP), first, &[]);
    let named = clocks::CLOCKS.iter().flat_map(|clock| {
        Asks::ALL.map(|asks| {
            let id = format!("clock/{}/{}", clock.replace(' ', ""), asks.id());
            (id, clocks::case(clock, asks))
        })
    });
    for (id, case) in std::iter::once(("clock/bsd".to_owned(), clocks::bsd())).chain(named) {
        let mut add = |what: &str, text: &str, unit: &str, value: f64| {
            rows.add(&format!("{id}/{what}"), format!("{text}, {case}"), unit, None, value, &[MIN]);
        };
        add("srtt-error", "mean error of SRTT", "ms", trips(&case, |s| s.error));
        add("rto", "timeout in force", "ms", trips(&case, |s| s.rto));
        add("longest", "longest round trip", "ms", trips(&case, |s| s.longest));
        add("timeouts", "timeouts without loss", "", results.over(&case, |m| m.timeouts).mean);
        add("repaired", "time to repair a lost tail", "s", clocks::repaired(results, &case).mean);
    }
    rows.all
}

const MIN: &str = "No least timeout (1 ms), but for BSD's estimator: two ticks of 500 ms";

struct Rows {
    all: Vec<ReproductionRow>,
    assumptions: Vec<String>,
}

impl Rows {
    fn table(&mut self, results: &Results, table: &str, row: &Printed) {
        let with = if row.timestamps { "-timestamps" } else { "" };
        for (quantity, paper) in COLUMNS.iter().zip(row.numbers) {
            let id = format!("{table}/{}{with}/{}", row.policy.id(), quantity.id);
            let text = format!("{}, {}", quantity.name, label(row));
            let measured = results.row(Route::Even, row.policy, row.timestamps, quantity.of).mean;
            self.add(&id, text, quantity.unit, paper, measured, &[NO_ROUTE]);
        }
    }

    fn add(&mut self, id: &str, text: String, unit: &str, paper: Option<f64>, measured: f64, more: &[&str]) {
        let mut assumptions = self.assumptions.clone();
        assumptions.extend(more.iter().map(|a| (*a).to_owned()));
        self.all.push(ReproductionRow {
            id: id.to_owned(),
            quantity: text,
            unit: unit.to_owned(),
            paper,
            measured: Some(measured).filter(|m| m.is_finite()),
            assumptions,
        });
    }
}
