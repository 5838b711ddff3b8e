//! The tables, for the terminal and for the report.

use super::cases::{Case, Policy, Route};
use super::results::Results;
use super::thesis::{COLUMNS, Printed, TABLE_1, TABLE_2};
use super::{clocks, sensitivity};
use crate::papers::claims_text;
use farpace_report::{Reproduction, Table, TableCell, TableColumn};

/// What a row is called.
pub fn label(printed: &Printed) -> String {
    let with = if printed.timestamps { ", timestamps" } else { "" };
    format!("{}{with}", printed.policy.label())
}

/// The thesis' rows beside those of `case`. Its tables do not say which of the two paths they are of.
fn against(
    title: &str,
    rows: &[Printed],
    results: &Results,
    paper: bool,
    case: impl Fn(&Printed) -> Case,
) -> Table {
    let mut columns = vec![TableColumn::text("asks for"), TableColumn::text("")];
    columns.extend(COLUMNS.iter().map(|q| TableColumn::number(q.name, q.unit)));
    let mut table = Table::new(title, columns);
    for printed in rows {
        if paper && printed.numbers.iter().any(Option::is_some) {
            let mut row: Vec<TableCell> = vec![label(printed).into(), "thesis".into()];
            row.extend(
                printed.numbers.map(|n| n.map_or(TableCell::Missing, |n| TableCell::Number(n, Some(0)))),
            );
            table.row(row);
        }
        let mut row: Vec<TableCell> = vec![label(printed).into(), "measured".into()];
        row.extend(COLUMNS.iter().map(|q| {
            let range = results.over(&case(printed), q.of);
            TableCell::from(range.text())
        }));
        table.row(row);
    }
    table
}

fn on(route: Route) -> impl Fn(&Printed) -> Case {
    move |row| Case::new(route, row.policy, row.timestamps)
}

/// Table 5.1.
pub fn first(results: &Results, route: Route) -> Table {
    let title = format!("Table 5.1: CDL for the timed segment, {}", route.name());
    against(&title, &TABLE_1, results, route == Route::Even, on(route))
}

/// Table 5.2.
pub fn second(results: &Results, route: Route) -> Table {
    let title = format!("Table 5.2: policies, {}", route.name());
    against(&title, &TABLE_2, results, route == Route::Even, on(route))
}

/// Table 5.2 with less in flight; see [`sensitivity::FOUR`].
pub fn four(results: &Results) -> Table {
    let title = "Table 5.2 with four segments in flight instead of six, 25+25 ms";
    against(title, &TABLE_2, results, true, |row| sensitivity::four(Route::Even, row.policy, row.timestamps))
}

/// What each policy gains, and what it costs.
pub fn costs(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("asks for")];
    for route in Route::ALL {
        columns.push(TableColumn::number(&format!("delivered, {}", route.name()), "kB"));
        columns.push(TableColumn::number("more than none", "kB"));
    }
    columns.push(TableColumn::number("ACKs", "per MB"));
    columns.push(TableColumn::number("more ACKs than none", "%"));
    let mut table = Table::new("Gain and cost: mean (least-most) over the phases of the ticks", columns);
    for policy in Policy::ALL {
        let mut row: Vec<TableCell> = vec![policy.label().into()];
        for route in Route::ALL {
            let delivered = results.delivered(route, policy);
            row.push(delivered.text().into());
            row.push(signed(results.gain(route, policy), 1));
        }
        let per_mb = results.row(Route::Even, policy, false, |m| m.acks / m.delivered * 1e3);
        row.push(per_mb.text().into());
        row.push(signed(results.more_acks(Route::Even, policy), 0));
        table.row(row);
    }
    table
}

fn signed(value: f64, decimals: usize) -> TableCell {
    if value.is_finite() { format!("{value:+.decimals$}").into() } else { TableCell::Missing }
}

/// All tables, in order.
pub fn all(results: &Results) -> Vec<Table> {
    let mut tables = vec![costs(results)];
    for route in Route::ALL {
        tables.extend([first(results, route), second(results, route)]);
    }
    tables.extend([four(results), clocks::table(results)]);
    if sensitivity::measured(results) {
        tables.push(sensitivity::table(results));
    }
    tables
}

/// Everything for a terminal.
pub fn text(results: &Results, reproduction: &Reproduction) -> String {
    let mut out = format!(
        "Cancel Delayed ACK on a line of 512 kbit/s: {} runs, every byte compared\n\n",
        results.runs()
    );
    for table in all(results) {
        out.push_str(&table.to_text());
        out.push('\n');
    }
    out.push_str(&claims_text(&reproduction.claims));
    out
}
