//! The tables, for the terminal, for the report, and for programs.

use super::plan::{
    ASKED, Cell as Run, LINES, Line, MEASURING, PROBED, PROBES, SCENARIO, Traffic, WAYS, receivers,
};
use super::results::{Errors, Measured, Results};
use farpace_report::{Table, TableCell, TableColumn};
use serde_json::{Value, json};

/// Round trip and timeout under one kind of traffic.
pub fn round_trips(results: &Results, traffic: Traffic) -> Table {
    let mut columns = vec![TableColumn::text("receiver"), TableColumn::text("asked, estimator")];
    let lines: Vec<Line> =
        LINES.into_iter().filter(|line| results.all().any(|(c, _)| in_tables(c, *line))).collect();
    for line in &lines {
        columns.push(TableColumn::number(&format!("srtt, {line}"), "ms"));
        columns.push(TableColumn::number("", "95 %"));
        columns.push(TableColumn::number("RTO", "ms"));
        columns.push(TableColumn::number("", "95 %"));
        columns.push(TableColumn::number("false timeouts", ""));
        columns.push(TableColumn::number("ACKs", "per segment"));
    }
    let title =
        format!("Error of round trip and timeout, {} (without sign: mean, 95th percentile)", traffic.name());
    let mut table = Table::new(&title, columns);
    for receiver in receivers(false) {
        for (asked, rto) in WAYS {
            let mut row: Vec<TableCell> = vec![receiver.name.into(), format!("{}, {rto}", asked.name).into()];
            let before = row.len();
            for &line in &lines {
                let cell = Run { line, traffic, receiver, asked, rto, congestion: "cubic" };
                let Some(m) = results.get(&cell) else { continue };
                row.extend(errors(m.srtt, 2));
                row.extend(errors(m.rto, 2));
                row.extend([m.timeouts.into(), TableCell::Number(m.acks, Some(2))]);
            }
            if row.len() > before {
                table.row(row);
            }
        }
    }
    table
}

fn in_tables(cell: &Run, line: Line) -> bool {
    cell.line == line && cell.congestion == "cubic"
}

fn errors(e: Option<Errors>, decimals: u8) -> [TableCell; 2] {
    let cell =
        |value: Option<f64>| value.map_or(TableCell::Missing, |v| TableCell::Number(v, Some(decimals)));
    [cell(e.map(|e| e.mean)), cell(e.map(|e| e.most))]
}

/// Bandwidth, against what the line carries.
pub fn bandwidths(results: &Results) -> Table {
    let [line, ..] = LINES;
    let mut columns = vec![TableColumn::text("receiver"), TableColumn::text("asked")];
    for congestion in MEASURING {
        columns.push(TableColumn::number(congestion, "%"));
        columns.push(TableColumn::number("", "95 %"));
        columns.push(TableColumn::number("bias", "%"));
    }
    let title =
        format!("Error of the bandwidth estimate, full path, {line} (without sign: mean, 95th percentile)");
    let mut table = Table::new(&title, columns);
    for receiver in receivers(false) {
        for asked in ASKED {
            let of = |congestion| {
                let traffic = Traffic::Full;
                results.get(&Run { line, traffic, receiver, asked, rto: "rfc6298", congestion })
            };
            if MEASURING.iter().all(|c| of(c).is_none()) {
                continue;
            }
            let mut row: Vec<TableCell> = vec![receiver.name.into(), asked.name.into()];
            for congestion in MEASURING {
                let e = of(congestion).and_then(|m| m.bandwidth);
                row.extend(errors(e, 1));
                row.push(e.map_or(TableCell::Missing, |e| format!("{:+.1}", e.bias).into()));
            }
            table.row(row);
        }
    }
    table
}

/// BBR's ProbeRTT, asked and not.
pub fn probe_rtt(results: &Results) -> Table {
    let columns = vec![
        TableColumn::text("path"),
        TableColumn::text("receiver"),
        TableColumn::text("asked"),
        TableColumn::number("min_rtt too high", "ms, mean"),
        TableColumn::number("", "95 %"),
        TableColumn::number("goodput", "Mbit/s"),
        TableColumn::number("timeouts", ""),
        TableColumn::number("ACKs", "per segment"),
        TableColumn::number("requests", ""),
    ];
    let mut table =
        Table::new("BBRv3: the round trip of the empty path that it goes by, and goodput", columns);
    for line in PROBED {
        for receiver in receivers(false) {
            for asked in PROBES {
                let traffic = Traffic::Open;
                let cell = Run { line, traffic, receiver, asked, rto: "rfc6298", congestion: "bbr3" };
                let Some(m) = results.get(&cell) else { continue };
                let mut row: Vec<TableCell> =
                    vec![line.to_string().into(), receiver.name.into(), asked.name.into()];
                row.push(m.min_rtt.map_or(TableCell::Missing, |e| TableCell::Number(e.bias, Some(2))));
                row.push(m.min_rtt.map_or(TableCell::Missing, |e| TableCell::Number(e.most, Some(2))));
                row.push(TableCell::Number(m.goodput, Some(2)));
                row.extend([m.timeouts.into(), TableCell::Number(m.acks, Some(2)), m.asked.0.into()]);
                table.row(row);
            }
        }
    }
    table
}

/// All tables, in order.
pub fn all(results: &Results) -> Vec<Table> {
    let mut tables: Vec<Table> = Traffic::TABLES.into_iter().map(|t| round_trips(results, t)).collect();
    tables.extend([bandwidths(results), probe_rtt(results)]);
    tables
}

/// Everything for a terminal.
pub fn text(results: &Results) -> String {
    let mut out =
        format!("Estimators and the truth: {} runs, seed 1, every byte compared\n", results.all().count());
    for table in all(results) {
        out.push('\n');
        out.push_str(&table.to_text());
    }
    out
}

/// For programs; docs/acks.md describes it.
pub fn json(results: &Results) -> Value {
    let run = |(c, m): (&Run, &Measured)| {
        json!({
            "rate_mbit_s": c.line.rate,
            "rtt_ms": c.line.rtt,
            "traffic": c.traffic.name(),
            "receiver": c.receiver.name,
            "asked": c.asked.name,
            "rto": c.rto,
            "congestion": c.congestion,
            "srtt_error_ms": m.srtt,
            "rto_error_ms": m.rto,
            "bandwidth_error_percent": m.bandwidth,
            "min_rtt_error_ms": m.min_rtt,
            "goodput_mbit_s": m.goodput,
            "acks_per_segment": m.acks,
            "timeouts": m.timeouts,
            "requests": m.asked.0,
            "confirmed": m.asked.1,
        })
    };
    json!({
        "format": "farpace-acks-estimators/1",
        "seed": 1,
        "scenario": SCENARIO,
        "runs": results.all().map(run).collect::<Vec<Value>>(),
    })
}
