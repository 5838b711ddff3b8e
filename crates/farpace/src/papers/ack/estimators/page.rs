//! The report.

use super::super::Args;
use super::plan::{Cell, LINES, Line, SCENARIO, Traffic, WAYS, receivers};
use super::results::Results;
use super::tables;
use crate::outdir::OutDir;
use anyhow::Result;
use farpace_report::{Figure, HeatRow, Page, heat_map};

/// Writes `report.html` and `figures/*.svg`.
///
/// # Errors
/// A file that cannot be written.
pub fn write(out: OutDir, args: &Args, results: &Results) -> Result<()> {
    let [line, ..] = LINES;
    let figure = figure(results, line, args.quick);
    out.write("report.html", page(args, results, &figure).as_bytes())?;
    out.write(&figure.file_name, figure.svg.as_bytes())?;
    out.commit().map(drop)
}

fn figure(results: &Results, line: Line, quick: bool) -> Figure {
    let receivers = receivers(quick);
    let labels = WAYS.map(|(asked, rto)| format!("{}, {rto}", asked.name));
    let heads: Vec<&str> = labels.iter().map(String::as_str).collect();
    let error = |receiver, (asked, rto)| {
        let cell = Cell { line, traffic: Traffic::Half, receiver, asked, rto, congestion: "cubic" };
        Some(results.get(&cell)?.srtt?.mean)
    };
    let rows: Vec<HeatRow<'_>> = receivers
        .iter()
        .map(|r| HeatRow { label: r.name, values: WAYS.iter().map(|way| error(*r, *way)).collect() })
        .collect();
    let title = format!("Error of the smoothed round trip in ms: half the path filled, {line}");
    heat_map(&title, ["mean error, ms", "–"], &heads, &rows).figure(
        "figures/round-trip.svg",
        "How far the sender's smoothed round trip is from what the same filter makes of the true round trips: rows are \
         receivers, columns say what is asked and which estimator the timeout has. With `cdl` it takes samples only of \
         segments that had asked, as soon as there are enough of them.",
    )
}

fn page(args: &Args, results: &Results, figure: &Figure) -> String {
    let mut page = Page::new("What ACKs that are not held back give to estimators");
    page.paragraph(
        "Time for which a receiver holds an ACK back looks to the sender like time on the path. A sender that asks for ACKs \
         at once (CDL) knows which of its samples are free of that. How much better are its estimates?",
    );
    page.paragraph(
        "The truth: the line is first in, first out, nothing is lost, ACKs meet no queue. So the round trip that each segment \
         would have had if its ACK had not been held back follows from what was sent before it; queueing is in it. The standard filter \
         (RFC 6298) fed with these, one by one, is what srtt and RTO are compared with at each ACK, from the first second on (requests: from the first ACK on). The least \
         RTO is 5 ms, so that it shows. Bandwidth is compared with the payload that the line carries, which is also its load. The \
         8 bytes of an option on an ACK or on a segment that is not full are left out of the truth: 6 us at 10 Mbit/s.",
    );
    page.figure(figure);
    for table in tables::all(results) {
        page.table(&table);
    }
    page.paragraph(
        "False timeouts: nothing is lost here, so every timeout is a mistake. BBR's min_rtt is compared with the round trip of a \
         full segment over the empty path, every 10 ms of the last nine of 20 s; ProbeRTT comes every 5 s.",
    );
    page.heading("How to repeat this");
    page.command(&format!("farpace papers ack --estimators{}", if args.quick { " --quick" } else { "" }));
    page.details("The scenario of all runs, without its flows", SCENARIO);
    page.render()
}
