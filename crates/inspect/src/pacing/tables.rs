//! What came out as tables, for the terminal and for the page.

use super::ExaminedCapture;
use super::words;
use farpace_link::proof::{FlowProof, PerPackets};
use farpace_report::{Table, TableCell, TableColumn};
use farpace_units::Rate;
use farpace_units::grouped;

/// Flows in a table; JSON has all.
pub const MAX_ROWS: usize = 40;

/// Everything for a terminal with `width` columns, if there is one.
pub fn text(all: &[ExaminedCapture], width: Option<usize>) -> String {
    let mut out = format!("{}\n", words::verdict(all).0);
    for examined in all {
        out.push_str(&format!("\n{}: {}\n", printable(&examined.name()), words::capture(examined)));
        for note in words::notes(examined) {
            out.push_str(&format!("  {}\n", printable(&note)));
        }
        for table in [flows(examined), rates(examined), trains(examined)].iter().filter(|t| !t.is_empty()) {
            out.push_str(&format!("\n{}", table.to_text_for(width)));
        }
        if let Some(rest) = rest(examined) {
            out.push_str(&format!("\n{rest}\n"));
        }
    }
    out
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// How many flows are in no table.
pub fn rest(examined: &ExaminedCapture) -> Option<String> {
    let left = examined.flows.len().checked_sub(MAX_ROWS).filter(|n| *n > 0)?;
    Some(format!("{} flows with fewer bytes are left out here; --json has all.", grouped(left as u64)))
}

fn shown(examined: &ExaminedCapture) -> impl Iterator<Item = &FlowProof> {
    examined.flows.iter().take(MAX_ROWS)
}

/// One row per flow: how much, how bursty.
pub fn flows(examined: &ExaminedCapture) -> Table {
    let given = examined.flows.iter().any(|flow| flow.at_rate.is_some());
    let mut columns = vec![
        TableColumn::text("flow"),
        TableColumn::number("packets", ""),
        TableColumn::number("mean rate", "Mbit/s"),
        TableColumn::number("IP alone", "Mbit/s"),
    ];
    if given {
        columns.push(TableColumn::number("held against", "Mbit/s"));
    }
    columns.extend([
        TableColumn::number("queue, most", "B"),
        TableColumn::number("known to", "B"),
        TableColumn::number("queue, most", "frames"),
        TableColumn::number("at", "s"),
        TableColumn::number("packet", ""),
        TableColumn::text("precise?"),
    ]);
    let mut table = Table::new("Flows: the queue before a line of their rate", columns);
    for flow in shown(examined) {
        let peak = flow.peak();
        let mut row: Vec<TableCell> = vec![
            words::flow(examined, flow).into(),
            flow.totals.total.packets.into(),
            mbit(flow.mean),
            mbit(flow.goodput),
        ];
        if given {
            row.push(mbit(peak.map(|p| p.rate)));
        }
        row.extend([
            peak.map(|p| p.queue.get()).into(),
            peak.map(|_| flow.clock.queue.get()).into(),
            flow.peak_frames().map_or(TableCell::Missing, |frames| TableCell::Number(frames, Some(2))),
            peak.map_or(TableCell::Missing, |p| TableCell::Number(examined.seconds(p.time), Some(6))),
            peak.map(|p| p.number).into(),
            flow.verdict.to_string().into(),
        ]);
        table.row(row);
    }
    table
}

/// The rate per n packets.
pub fn rates(examined: &ExaminedCapture) -> Table {
    let columns = vec![
        TableColumn::text("flow"),
        TableColumn::number("n", "packets"),
        TableColumn::number("least", "Mbit/s"),
        TableColumn::number("mean", "Mbit/s"),
        TableColumn::number("most", "Mbit/s"),
        TableColumn::number("known to", "Mbit/s"),
        TableColumn::number("no time at all", "times"),
    ];
    let mut table = Table::new("Rate per n packets", columns);
    for flow in shown(examined) {
        for (per, error) in flow.per_packets.iter().zip(flow.clock.per_packets) {
            let PerPackets { n, count, min: least, max: most, at_once, .. } = *per;
            if count == 0 {
                continue;
            }
            let name = if n == 1 { words::flow(examined, flow) } else { String::new() };
            table.row(vec![
                name.into(),
                n.into(),
                mbit(least),
                mbit(per.mean()),
                mbit(most),
                mbit(error),
                at_once.into(),
            ]);
        }
    }
    table
}

/// Intervals and trains.
pub fn trains(examined: &ExaminedCapture) -> Table {
    let columns = vec![
        TableColumn::text("flow"),
        TableColumn::number("interval, least", "us"),
        TableColumn::number("median", "us"),
        TableColumn::number("most", "us"),
        TableColumn::number("different values", ""),
        TableColumn::number("longest train", "frames"),
        TableColumn::number("of", "B"),
        TableColumn::number("at", "s"),
        TableColumn::number("packet", ""),
        TableColumn::text("line"),
    ];
    let mut table = Table::new("Times from frame to frame, and frames back to back on the line", columns);
    for flow in shown(examined) {
        let Some((least, most)) = flow.intervals.range() else { continue };
        let micros = |span: farpace_units::Span| TableCell::Number(span.as_nanos() as f64 / 1e3, None);
        let train = flow.train;
        table.row(vec![
            words::flow(examined, flow).into(),
            micros(least),
            flow.intervals.median().map_or(TableCell::Missing, micros),
            micros(most),
            flow.intervals.distinct().map_or("more than 16".into(), |d| TableCell::from(d.len() as u64)),
            train.packets.into(),
            train.bytes.get().into(),
            TableCell::Number(examined.seconds(train.time), Some(6)),
            train.number.into(),
            words::line(flow.link).into(),
        ]);
    }
    table
}

/// Five digits: rates that differ by a check sequence must not look the same.
fn mbit(rate: Option<Rate>) -> TableCell {
    rate.map_or(TableCell::Missing, |rate| {
        let value = rate.as_mbit_f64();
        let decimals =
            [10_000.0, 1_000.0, 100.0, 10.0, 1.0].iter().take_while(|bound| value < **bound).count();
        TableCell::Number(value, Some(decimals as u8))
    })
}
