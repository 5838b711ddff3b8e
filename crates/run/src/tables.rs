//! The summary as tables, for the terminal and for the report.

use crate::summary::{FlowSummary, RunSummary, Status};
use crate::{classes, datagrams, nics, pacing, words};
use farpace_report::{Table, TableCell, TableColumn, fill, number};
use farpace_units::{Span, grouped};
use std::path::Path;

/// Most columns of running text on a terminal.
const MAX_WIDTH: usize = 96;

/// Everything for a terminal with `width` columns, if there is one.
pub fn text(summary: &RunSummary, width: Option<usize>) -> String {
    let mut out = format!("{}\n", printable(&summary.scenario.title));
    let status = match summary.status {
        Status::Complete => "complete",
        Status::Failed => "NOT COMPLETE",
        Status::Interrupted => "INTERRUPTED, partial results",
    };
    out.push_str(&format!(
        "{status} · {} · seed {} · {:.3} s of virtual time",
        printable(&Path::new(&summary.scenario.file).file_name().unwrap_or_default().to_string_lossy()),
        summary.scenario.seed,
        summary.ended.as_secs_f64()
    ));
    if let Some(wall) = &summary.wall {
        out.push_str(&format!(
            " in {} s, {} data packets/s",
            number((wall.seconds * 100.0).round() / 100.0),
            grouped(wall.data_packets_per_s as u64)
        ));
    }
    out.push_str("\n\n");
    out.push_str(&fill(&printable(&summary.verdict), width.map_or(MAX_WIDTH, |width| width.min(MAX_WIDTH))));
    out.push('\n');
    let tables = [
        flows(summary),
        classes::table(&summary.classes),
        classes::times(&summary.classes),
        again(summary),
        datagrams::table(&summary.datagrams),
        pacing::table(&summary.pacing),
        nics::table(&summary.nics),
        drops(summary),
    ];
    for table in tables.into_iter().filter(|t| !t.is_empty()) {
        out.push('\n');
        out.push_str(&table.to_text_for(width));
    }
    out
}

/// One row per flow that is not part of a class.
pub fn flows(summary: &RunSummary) -> Table {
    let columns = vec![
        TableColumn::text("flow"),
        TableColumn::number("completion", "s"),
        TableColumn::number("goodput", "Mbit/s"),
        TableColumn::number("efficiency", "%"),
        TableColumn::number("sent again", "segments"),
        TableColumn::number("timeouts", ""),
        TableColumn::number("longest silence", "s"),
        TableColumn::number("at", "s"),
        TableColumn::text("state"),
        TableColumn::number("verified", "MB"),
        TableColumn::text("result"),
    ];
    let mut table = Table::new("Flows", columns);
    for f in summary.flows.iter().filter(|f| f.class.is_none()) {
        let longest = f.silence.longest;
        table.row(vec![
            f.name.as_str().into(),
            f.completion.map(seconds).into(),
            TableCell::Number(f.goodput as f64 / 1e6, Some(1)),
            f.efficiency.map(|e| TableCell::Number(e * 100.0, Some(1))).unwrap_or(TableCell::Missing),
            f.retransmissions.into(),
            f.timeouts.into(),
            longest.map_or(TableCell::Number(0.0, Some(2)), |l| seconds(l.duration)),
            longest.map(|l| TableCell::Number(l.start.as_secs_f64(), Some(2))).unwrap_or(TableCell::Missing),
            longest.map(|l| words::capital(l.state)).into(),
            TableCell::Number(f.verified.get() as f64 / 1e6, Some(3)),
            result(f).into(),
        ]);
    }
    table
}

fn result(f: &FlowSummary) -> &'static str {
    match (f.intact, f.completion) {
        (true, _) => "intact",
        (false, None) => "not complete",
        (false, Some(_)) => "bytes differ",
    }
}

/// Retransmissions by cause.
pub fn again(summary: &RunSummary) -> Table {
    let columns = vec![
        TableColumn::text("flow"),
        TableColumn::text("cause"),
        TableColumn::number("sent again", "segments"),
    ];
    let mut table = Table::new("Sent again, by cause", columns);
    for f in summary.flows.iter().filter(|f| f.class.is_none()) {
        for (cause, n) in f.sent_again() {
            table.row(vec![f.name.as_str().into(), words::cause(cause.name()).into(), n.into()]);
        }
    }
    table
}

/// Drops by place and cause.
pub fn drops(summary: &RunSummary) -> Table {
    let columns = vec![
        TableColumn::text("place"),
        TableColumn::text("cause"),
        TableColumn::number("dropped", "packets"),
    ];
    let mut table = Table::new("Drops", columns);
    for d in &summary.drops {
        table.row(vec![d.place.as_str().into(), words::cause(d.cause).into(), d.packets.into()]);
    }
    table
}

/// Where the time of a flow went.
pub fn spent(f: &FlowSummary) -> Table {
    let columns = vec![
        TableColumn::text("the sender was"),
        TableColumn::number("time", "s"),
        TableColumn::number("share", "%"),
    ];
    let mut table = Table::new("Where the time went", columns);
    let total = f.spent.total().as_secs_f64();
    for (span, what) in [
        (f.spent.connecting, "connecting: the handshake was not over"),
        (f.spent.silent, "standing still: at most one packet arrived per round trip"),
        (f.spent.crawling, "crawling: for ten round trips or more, below 1 % of what the path can carry"),
        (f.spent.recovering, "recovering from losses (Recovery, Loss or CWR state)"),
        (f.spent.receiver_window, "limited by the receiver's window"),
        (f.spent.congestion_window, "limited by the congestion window"),
        (f.spent.pacing, "limited by pacing, or by its own NIC: the windows allowed more"),
        (f.spent.other, "limited by none of these: nothing more to send, or its buffer was full"),
    ] {
        // What rounds to 0.0 % is of no interest.
        if span * 2_000 >= f.spent.total() && !span.is_zero() {
            let share = 100.0 * span.as_secs_f64() / total;
            table.row(vec![what.into(), seconds(span), TableCell::Number(share, Some(1))]);
        }
    }
    table
}

fn seconds(span: Span) -> TableCell {
    let s = span.as_secs_f64();
    TableCell::Number(s, Some(if s < 1.0 { 3 } else { 2 }))
}

/// Without control characters, which could steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
