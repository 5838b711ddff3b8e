//! The tables, for the terminal and for the report.

use super::lines::Class;
use super::pace::Pace;
use super::plan::{EXACT, PAIRS, TABLE_5};
use super::printed::{Bandwidth, FIFOS, FLOWS, TABLE_2, TABLE_3, TABLE_4};
use super::results::Results;
use super::rows::{sensitivity_measured, table_5};
use super::sensitivity::{self, cell};
use super::sets::{PRECISE, Set};
use super::transfers::Case;
use crate::papers::claims_text;
use farpace_report::{Reproduction, Table, TableCell, TableColumn, number};

fn bandwidth(title: &str, first: &[&str]) -> Table {
    let mut columns: Vec<TableColumn> = first.iter().map(|name| TableColumn::text(name)).collect();
    columns.extend([
        TableColumn::number("paper: least, greatest, mean", "bit/s"),
        TableColumn::number("Q", "MTU"),
    ]);
    for pace in EXACT {
        columns.extend([
            TableColumn::number(&format!("{pace}: least, greatest, mean"), "bit/s"),
            TableColumn::number("Q by that clock", "MTU"),
            TableColumn::number("Q", "MTU"),
            TableColumn::number("error", "ppm"),
        ]);
    }
    Table::new(title, columns)
}

fn three(numbers: [f64; 3], sign: &str) -> String {
    numbers.map(|n| format!("{}{sign}", digits(n))).join(", ")
}

/// Three digits, as the paper prints; more where the paper has more.
fn digits(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn bandwidth_row(table: &mut Table, head: Vec<TableCell>, row: &Bandwidth, classes: [Option<&Class>; 2]) {
    let sign = if row.unit < 1e6 { "K" } else { "M" };
    let mut cells = head;
    cells.push(three(row.numbers, sign).into());
    cells.push(TableCell::Number(row.burstiness, Some(0)));
    for class in classes {
        let Some(class) = class else {
            cells.extend([TableCell::Missing, TableCell::Missing, TableCell::Missing, TableCell::Missing]);
            continue;
        };
        let s = class.bandwidth[row.n - 1];
        let numbers = [s.least, s.most, s.mean].map(|n| n / row.unit);
        cells.push(three(numbers, sign).into());
        cells.push(TableCell::Number(class.counted, Some(0)));
        cells.push(TableCell::Number(class.burstiness, Some(3)));
        cells.push(TableCell::Text(format!("{:+.1}", class.error_ppm)));
    }
    table.row(cells);
}

/// Table 2.
pub fn single(results: &Results) -> Table {
    let mut table = bandwidth("Table 2: one flow, bandwidth per packet and burstiness Q", &["target"]);
    for row in &TABLE_2 {
        let classes = EXACT.map(|pace| results.single(pace, row.rate));
        bandwidth_row(&mut table, vec![row.target.into()], row, classes);
    }
    table
}

/// Table 3.
pub fn many(results: &Results) -> Table {
    let mut table = bandwidth(&format!("Table 3: {FLOWS} flows of 10 Mbit/s"), &["target"]);
    let classes = EXACT.map(|pace| results.many(pace));
    bandwidth_row(
        &mut table,
        vec![TABLE_3.target.into()],
        &TABLE_3,
        [classes[0].as_ref(), classes[1].as_ref()],
    );
    table
}

/// Table 4.
pub fn five(results: &Results) -> Table {
    let mut table = bandwidth("Table 4: five flows at once, bandwidth per n packets", &["n", "target"]);
    for row in &TABLE_4 {
        let classes = EXACT.map(|pace| results.five(pace, row));
        bandwidth_row(&mut table, vec![(row.n as u64).into(), row.target.into()], row, classes);
    }
    table
}

/// What else may pace 500 Mbit/s.
pub fn others(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("one flow of 500 Mbit/s"),
        TableColumn::number("Q", "MTU"),
        TableColumn::number("error", "ppm"),
    ];
    let mut table = Table::new("Burstiness of what paces by timers", columns);
    for pace in [Pace::Psp, Pace::Edf, Pace::Fq, Pace::TokenBucket] {
        let class = results.single(pace, 500_000_000);
        let q = class.map_or(TableCell::Missing, |c| TableCell::Number(c.burstiness, Some(2)));
        let error = class.map_or(TableCell::Missing, |c| format!("{:+.0}", c.error_ppm).into());
        table.row(vec![pace.label().into(), q, error]);
    }
    table
}

/// Table 5.
pub fn fifos(results: &Results) -> Table {
    let mut columns = vec![TableColumn::text("FIFO")];
    for pace in TABLE_5 {
        if table_5(pace).is_some() {
            columns.push(TableColumn::number(&format!("{pace}: paper"), "Mbit/s / lost"));
        }
        columns.push(TableColumn::number(pace.label(), "Mbit/s / lost"));
    }
    let title =
        format!("Table 5: TCP through a FIFO, goodput and packets lost, transfers of {}", results.plan.time);
    let mut table = Table::new(&title, columns);
    for (i, fifo) in FIFOS.into_iter().enumerate() {
        let mut row: Vec<TableCell> = vec![format!("{fifo} kB").into()];
        for pace in TABLE_5 {
            if let Some((goodput, lost)) = table_5(pace).and_then(|t| t.get(i)) {
                row.push(format!("{} / {lost}", number(*goodput)).into());
            }
            row.push(cell(results, &Case::one(pace, fifo)));
        }
        table.row(row);
    }
    table
}

/// Fig. 9.
pub fn pairs(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("flow A + flow B"),
        TableColumn::number("A", "Mbit/s"),
        TableColumn::number("B", "Mbit/s"),
        TableColumn::number("lost", "packets"),
        TableColumn::number("timeouts", ""),
    ];
    let mut table = Table::new("Fig. 9: two flows held to 200 Mbit/s each, FIFO of 32 kB, goodput", columns);
    for (first, second) in PAIRS {
        let case = Case::two(first, second);
        let transfer = results.transfer(&case);
        let of = |flow: usize| {
            transfer
                .and_then(|t| t.goodput.get(flow))
                .map_or(TableCell::Missing, |g| TableCell::Number(*g, Some(1)))
        };
        table.row(vec![
            format!("{first} + {second}").into(),
            of(0),
            of(1),
            transfer.map_or(TableCell::Missing, |t| t.lost.into()),
            transfer.map_or(TableCell::Missing, |t| t.timeouts.into()),
        ]);
    }
    table
}

/// Sets that [`sets`] lists at most.
const LISTED: usize = 20;

/// The sets on which the paper's order is not precise, the worst first.
pub fn sets(results: &Results) -> Table {
    let mut bad: Vec<&Set> = results.sets.iter().filter(|s| s.psp > PRECISE).collect();
    bad.sort_by(|a, b| b.psp.total_cmp(&a.psp));
    let title = format!(
        "{} of {} random sets of classes are not precise with the paper's order{}",
        bad.len(),
        results.sets.len(),
        if bad.len() > LISTED { format!("; the worst {LISTED}") } else { String::new() }
    );
    let columns = vec![
        TableColumn::text("set"),
        TableColumn::number("line", "% used"),
        TableColumn::number("PSPacer", "MTU"),
        TableColumn::number("edf", "MTU"),
        TableColumn::number("classes", ""),
        TableColumn::text("Mbit/s (x B, if not full frames)"),
    ];
    let mut table = Table::new(&title, columns);
    for set in bad.into_iter().take(LISTED) {
        let class = |(rate, len): &(u64, u32)| {
            let rate = digits(*rate as f64 / 1e6);
            if *len == 1_514 { rate } else { format!("{rate} x {len}") }
        };
        let classes: Vec<String> = set.classes.iter().map(class).collect();
        table.row(vec![
            format!("{}", set.number).into(),
            TableCell::Number(set.load * 100.0, Some(1)),
            TableCell::Number(set.psp, Some(2)),
            TableCell::Number(set.edf, Some(2)),
            (set.classes.len() as u64).into(),
            classes.join(", ").into(),
        ]);
    }
    table
}

/// All tables but that of the sets, in order.
pub fn all(results: &Results) -> Vec<Table> {
    let mut tables =
        vec![single(results), many(results), five(results), others(results), fifos(results), pairs(results)];
    if sensitivity_measured(results) {
        tables.extend([
            sensitivity::buckets(results),
            sensitivity::table(results),
            sensitivity::today(results),
        ]);
    }
    tables
}

/// Everything for a terminal.
pub fn text(results: &Results, reproduction: &Reproduction) -> String {
    let mut out = format!("Precise pacing by gap packets: {} runs\n\n", results.runs());
    for table in all(results) {
        out.push_str(&table.to_text());
        out.push('\n');
    }
    out.push_str(&claims_text(&reproduction.claims));
    out
}
