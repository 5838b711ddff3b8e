//! The tables, for the terminal and for the report.

use super::plan::{ALGORITHMS, NEIGHBOURS, label};
use super::results::{Cell as Runs, Results};
use super::rows::GAINS;
use super::sensitivity;
use crate::grid::{Ber, Queue};
use crate::papers::claims_text;
use farpace_report::{Reproduction, Table, TableCell, TableColumn};

/// One column per bit error rate.
fn over_ber(title: &str, first: &str, unit: &str) -> Table {
    let mut columns = vec![TableColumn::text(first)];
    columns.extend(Ber::ALL.map(|ber| TableColumn::number(&format!("BER {}", ber.name()), unit)));
    Table::new(title, columns)
}

fn row(table: &mut Table, head: &str, cell: impl Fn(Ber) -> TableCell) {
    let mut row: Vec<TableCell> = vec![head.into()];
    row.extend(Ber::ALL.map(cell));
    table.row(row);
}

/// The gains at 1e-8.
pub fn gains(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("STAR over"),
        TableColumn::number("paper", "%"),
        TableColumn::number("measured", "%"),
        TableColumn::number("95 % confidence", "± points"),
    ];
    let mut table = Table::new("How much faster STAR is alone at BER 1e-8", columns);
    for (other, paper) in GAINS {
        let gain = results.gain(other);
        let measured =
            if gain.is_finite() { TableCell::from(format!("{gain:+.1}")) } else { TableCell::Missing };
        let ci95 = results.gain_ci95(other);
        let interval = if ci95.is_finite() { TableCell::Number(ci95, Some(1)) } else { TableCell::Missing };
        table.row(vec![label(other).into(), format!("{paper:+.1}").into(), measured, interval]);
    }
    table
}

/// Fig. 5.
pub fn single(results: &Results) -> Table {
    let mut table = over_ber("A single flow (Fig. 5): goodput", "algorithm", "Mbit/s");
    for (name, label) in ALGORITHMS {
        row(&mut table, label, |ber| results.single(name, ber).goodput(0).text(2).into());
    }
    table
}

/// Figs. 7 and 8.
pub fn times(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("algorithm"),
        TableColumn::number("window fills the path", "s"),
        TableColumn::number("back after lost ACKs", "s"),
        TableColumn::number("timeouts then", ""),
    ];
    let mut table = Table::new("A single flow without errors (Figs. 7, 8)", columns);
    let number = |value: Option<f64>| value.map_or(TableCell::Missing, |v| TableCell::Number(v, Some(2)));
    for (name, label) in ALGORITHMS {
        let timeouts = results.cell(&super::plan::blackout(name)).flow(0).map(|f| f.timeouts);
        let (filled, after) = (number(results.fills_at(name)), number(results.recovers_after(name)));
        table.row(vec![label.into(), filled, after, timeouts.into()]);
    }
    table
}

/// Figs. 10 and 11.
pub fn totals(results: &Results, queue: Queue) -> Table {
    let figure = if queue == Queue::Large { 10 } else { 11 };
    let title = format!("Two flows of a kind, queue {} (Fig. {figure}): goodput together", queue.name());
    let mut table = over_ber(&title, "algorithm", "Mbit/s");
    for (name, label) in ALGORITHMS {
        row(&mut table, label, |ber| results.pair(name, name, ber, queue).total().text(2).into());
    }
    table
}

/// Figs. 12, 16, 19 and 20: the shares of two flows.
pub fn shares(results: &Results, queue: Queue) -> Table {
    let figures = if queue == Queue::Large { "12, 19" } else { "16, 20" };
    let title = format!("Each of two flows, queue {} (Figs. {figures}): goodput, Jain's index", queue.name());
    let mut table = over_ber(&title, "flows", "Mbit/s");
    let text = |cell: Runs<'_>, fairness: bool| -> TableCell {
        if cell.0.is_empty() {
            return TableCell::Missing;
        }
        let shares = format!("{:.2} / {:.2}", cell.goodput(0).mean, cell.goodput(1).mean);
        if fairness { format!("{shares} ({:.3})", cell.fairness().mean).into() } else { shares.into() }
    };
    for (name, label) in ALGORITHMS {
        row(&mut table, &format!("{label} / {label}"), |ber| {
            text(results.pair(name, name, ber, queue), true)
        });
    }
    for name in NEIGHBOURS {
        let head = format!("STAR / {}", label(name));
        row(&mut table, &head, |ber| text(results.pair("star", name, ber, queue), false));
    }
    table
}

/// All tables, in order.
pub fn all(results: &Results) -> Vec<Table> {
    let mut tables = vec![gains(results), single(results), times(results)];
    for queue in Queue::ROUTER {
        tables.extend([totals(results, queue), shares(results, queue)]);
    }
    if sensitivity::measured(results) {
        tables.extend([
            sensitivity::filters(results),
            sensitivity::table(results),
            sensitivity::bursts(results),
        ]);
    }
    tables
}

/// Everything for a terminal.
pub fn text(results: &Results, reproduction: &Reproduction) -> String {
    let mut out = format!(
        "TCP-STAR over a satellite link: {} runs of {} each, every byte compared\n\n",
        results.runs(),
        results.time
    );
    for table in all(results) {
        out.push_str(&table.to_text());
        out.push('\n');
    }
    out.push_str(&claims_text(&reproduction.claims));
    out
}
