//! The tables, for the terminal and for the report.

use super::case::Case;
use super::claims::udp;
use super::host::IDLE;
use super::plan::{FIG_10, RATIOS, at_90, at_99, fig_10};
use super::printed::{ALONE, BEST, CONVENTIONAL, UDP, UNOBSERVED, WINDOW};
use super::results::Results;
use super::sets::Receiver;
use super::{beyond, turns};
use crate::papers::claims_text;
use farpace_report::{Reproduction, Table, TableCell, TableColumn};

/// What the paper prints, and the same here.
pub fn printed(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("what"),
        TableColumn::number("paper", "Mbit/s"),
        TableColumn::number("here", "Mbit/s"),
        TableColumn::number("paper", "% again"),
        TableColumn::number("here", "% again"),
    ];
    let mut table = Table::new("What the paper prints", columns);
    for (row, of) in [(&CONVENTIONAL, at_90 as fn(u16) -> Case), (&BEST, at_90), (&UNOBSERVED, at_99)] {
        let case = of(row.skip);
        table.row(vec![
            format!("TCP, {}, S = {}", row.ratio, row.skip).into(),
            TableCell::Number(row.mbit, Some(0)),
            TableCell::Number(results.goodput(&case), Some(0)),
            row.resent.map_or(TableCell::Missing, |r| TableCell::Number(r, Some(2))),
            TableCell::Number(results.of(&case, |m| m.resent_percent()), Some(2)),
        ]);
    }
    let alone = results.goodput(&Case::alone(IDLE));
    let others = [("TCP, the wide card alone", ALONE, alone), ("UDP, 90/10", UDP, udp(results, RATIOS[0]))];
    for (what, paper, here) in others {
        let (paper, here) = (TableCell::Number(paper, Some(0)), TableCell::Number(here, Some(0)));
        table.row(vec![what.into(), paper, here, TableCell::Missing, TableCell::Missing]);
    }
    table
}

/// Fig. 9 as numbers.
pub fn skips(results: &Results) -> Table {
    let columns = vec![
        TableColumn::number("S", ""),
        TableColumn::number("90/10, observed", "Mbit/s"),
        TableColumn::number("sent again", "%"),
        TableColumn::number("mean window", "segments"),
        TableColumn::number("99.6/0.4", "Mbit/s"),
        TableColumn::number("sent again", "%"),
    ];
    let mut table = Table::new("Skip numbers (Fig. 9)", columns);
    for skip in &results.plan.skips {
        let [first, second] = [at_90(*skip), at_99(*skip)];
        let again = |case: &Case| TableCell::Number(results.of(case, |m| m.resent_percent()), Some(2));
        table.row(vec![
            u64::from(*skip).into(),
            TableCell::Number(results.goodput(&first), Some(1)),
            again(&first),
            TableCell::Number(results.of(&first, |m| m.window), Some(1)),
            TableCell::Number(results.goodput(&second), Some(1)),
            again(&second),
        ]);
    }
    table
}

/// How much larger the window is, in words.
pub fn window(results: &Results) -> String {
    let [none, some] = FIG_10.map(|skip| results.of(&fig_10(skip), |m| m.window));
    format!(
        "{none:.1} segments at S = 0, {some:.1} at S = 8: {:.1} times as large (paper: {WINDOW})",
        some / none
    )
}

/// Tables of what goes beyond the paper.
pub fn beyond(results: &Results) -> Vec<Table> {
    let mut tables = Receiver::BOTH.map(|receiver| beyond::orders(results, receiver)).to_vec();
    tables.push(beyond::earliest(results));
    let more = [beyond::tcps(results), beyond::others(results)];
    tables.extend(more.into_iter().filter(|table| !table.is_empty()));
    tables
}

/// All tables, in order.
fn all(results: &Results) -> Vec<Table> {
    let mut tables = vec![printed(results), skips(results)];
    if turns::measured(results) {
        tables.push(turns::table(results));
    }
    tables.extend(beyond(results));
    tables
}

/// Everything for a terminal.
pub fn text(results: &Results, reproduction: &Reproduction) -> String {
    let mut out = format!(
        "One TCP connection over several unequal network cards: {} runs, every byte compared\n\n",
        results.runs()
    );
    for table in all(results) {
        out.push_str(&table.to_text());
        out.push('\n');
    }
    out.push_str(&claims_text(&reproduction.claims));
    out
}
