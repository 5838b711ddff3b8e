//! The report.

use super::super::Args;
use super::plan::SCENARIO;
use super::results::Results;
use super::tables;
use super::words::{AUTO, Choice, EVERYTHING, GROWTHS};
use crate::outdir::OutDir;
use anyhow::Result;
use farpace_report::{Figure, HeatRow, Page, heat_map};

/// Writes `report.html` and `figures/*.svg`.
///
/// # Errors
/// A file that cannot be written.
pub fn write(out: OutDir, args: &Args, results: &Results) -> Result<()> {
    let figures = [
        figure(results, GROWTHS[0], AUTO, "figures/saved.svg"),
        figure(results, GROWTHS[1], EVERYTHING, "figures/saved-per-ack.svg"),
    ];
    out.write("report.html", page(args, results, &figures).as_bytes())?;
    for figure in &figures {
        out.write(&figure.file_name, figure.svg.as_bytes())?;
    }
    out.commit().map(drop)
}

fn figure(results: &Results, growth: Choice, asked: Choice, file: &str) -> Figure {
    let heads = tables::places(results);
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let fields = tables::fields(results, growth, asked);
    let rows: Vec<HeatRow<'_>> =
        fields.iter().map(|(label, values)| HeatRow { label, values: values.clone() }).collect();
    let title = format!("Completion time saved by asking `{}`, window grows {}", asked.name, growth.name);
    heat_map(&title, ["saved, %", "lost, %"], &heads, &rows).figure(
        file,
        "Each field is one flow over an empty path: how much sooner it ends than the same flow that does not ask. Rows are \
         paths, columns are receivers and sizes of the flow.",
    )
}

fn page(args: &Args, results: &Results, figures: &[Figure; 2]) -> String {
    let mut page = Page::new("Asking for acknowledgments on paths of today");
    page.paragraph(
        "A receiver holds acknowledgments back to save some. A sender can ask for one at once (CDL). Does a flow end sooner \
         for it, where, and what do the ACKs cost? Each flow has the path for itself; its queue holds one bandwidth-delay \
         product, ten segments at least; the sender is today's (RACK, CUBIC, initial window of ten) and its window grows in one of three ways.",
    );
    let [bytes, per_ack] = figures;
    page.figure(bytes).table(&tables::effects(results));
    for verdict in tables::verdicts(results) {
        page.paragraph(&verdict);
    }
    page.heading("If each ACK raised the window by one segment").paragraph(
        "The thesis's senders grew by ACKs, so that an ACK more was a segment more. Today's grow by what is acknowledged \
         (RFC 3465 without a limit), and a held ACK is made up for by the next. With a limit of one segment per ACK both \
         effects come together; the difference between the figures is what growing by ACKs is worth.",
    );
    page.figure(per_ack);
    for growth in results.plan.growths.iter().take(2) {
        page.table(&tables::by_path(results, *growth, AUTO));
    }
    page.heading("What is measured").paragraph(
        "Saved: completion time from connecting to the last byte, against the same flow without asking. ACKs: IP packets on \
         the way back, handshake included. Data: bytes of IP packets on the way of data, retransmissions included. Confirmed: of the requests, \
         those whose answer said so. Growth literally by RFC 9438 in congestion avoidance is not separated: the engine's CUBIC \
         counts bytes there.",
    );
    page.heading("How to repeat this");
    page.command(&format!("farpace papers ack --today{}", if args.quick { " --quick" } else { "" }));
    page.details("The scenario all runs are made from", SCENARIO);
    page.render()
}
