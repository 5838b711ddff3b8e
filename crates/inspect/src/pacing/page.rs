//! The report: one HTML file with everything, and its figures.

use super::{ExaminedCapture, figures, tables, words};
use farpace_link::proof::ProofVerdict;
use farpace_report::{Figure, Page};

/// Flows of a capture with figures of their own.
const MAX_SECTIONS: usize = 12;

/// The page as HTML, and the figures on it. `command` is the command line that repeats it.
pub fn page(command: &str, all: &[ExaminedCapture]) -> (String, Vec<Figure>) {
    let mut page = Page::new("Proof of pacing");
    let mut drawn = Vec::new();
    let (verdict, good) = words::verdict(all);
    page.verdict(&verdict, good);
    page.paragraph(
        "Burstiness is the queue that a flow makes before a line of exactly its rate. A flow is paced \
         precisely if that queue never holds more than two full frames. Rates count Ethernet frames with \
         their check sequences.",
    );
    for (c, examined) in all.iter().enumerate() {
        page.heading(&examined.name()).paragraph(&words::capture(examined));
        for note in words::notes(examined) {
            page.paragraph(&note);
        }
        if let Some(figure) = figures::together(examined, &format!("figures/{c}-queues.svg")) {
            page.figure(&figure);
            drawn.push(figure);
        }
        for table in [tables::flows(examined), tables::rates(examined), tables::trains(examined)] {
            if !table.is_empty() {
                page.table(&table);
            }
        }
        if let Some(rest) = tables::rest(examined) {
            page.paragraph(&rest);
        }
        for (f, flow) in examined.flows.iter().take(MAX_SECTIONS).enumerate() {
            page.heading(&words::flow(examined, flow));
            let verdict = match flow.verdict {
                ProofVerdict::Precise => "Paced precisely".to_owned(),
                ProofVerdict::NotPrecise => "Not paced precisely".to_owned(),
                ProofVerdict::CannotTell(why) => {
                    format!("Whether it is paced precisely cannot be told: {why}")
                }
            };
            page.paragraph(&format!("{verdict}. {}", words::peak(examined, flow)));
            for figure in figures::of_flow(examined, flow, &format!("figures/{c}-{f}")) {
                page.figure(&figure);
                drawn.push(figure);
            }
        }
        if examined.flows.len() > MAX_SECTIONS {
            page.paragraph(&format!(
                "There are figures of the {MAX_SECTIONS} flows with the most bytes; report.json has the \
                 numbers of all."
            ));
        }
    }
    page.heading("How it was measured").paragraph(
        "A time is that of a frame's start. The mean rate is that of all packets but the last over the time \
         from the first to the last. The rate per n packets is the size of packets i to i + n - 1 over the \
         time from packet i to packet i + n. A time may be late by one tick of the clock; `known to` is what \
         follows from that.",
    );
    page.command(command);
    (page.render(), drawn)
}
