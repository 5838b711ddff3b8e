//! The report: one page with everything.

use crate::error::ExamineError;
use crate::examine::{CapturePair, ExaminedFile, FlowSelection, collect_packets, examine};
use crate::packets::MAX_VIEWED;
use crate::{figures, words};
use farpace_explain::Finding;
use farpace_report::{Figure, Page};
use farpace_units::Instant;
use std::path::Path;
use std::sync::Arc;

/// Figures with more points get finer data from a server, if there is one.
const MAX_EMBEDDED: usize = 20_000;

/// A page and its figures.
#[derive(Clone, Debug)]
pub struct ExplainedPage {
    /// The page.
    pub html: String,
    /// Its figures, with all their data.
    pub figures: Vec<Figure>,
}

/// The page of one file with every packet. A figure with many points says that finer ones are at `address`,
/// a slash, and its index.
///
/// # Errors
/// A file that cannot be read.
pub fn whole_page(
    file: &Path,
    selection: &FlowSelection,
    address: &str,
) -> Result<ExplainedPage, ExamineError> {
    let mut examined = examine(file, selection)?;
    collect_packets(&mut examined, MAX_VIEWED)?;
    Ok(page(&[examined], None, Some(address)))
}

/// The page of files. `address` is that of a server for finer data.
pub fn page(all: &[ExaminedFile], pair: Option<&CapturePair>, address: Option<&str>) -> ExplainedPage {
    let mut page = Page::new("Why transfers took their time");
    page.one_clock();
    let mut drawn = Vec::new();
    let mut number = 0;
    for examined in all {
        page.paragraph(&words::capture(examined));
        let zero = examined.capture().and_then(|c| c.time).map_or(Instant::ZERO, |time| time.0);
        for (index, transfer) in examined.transfers.iter().enumerate() {
            number += 1;
            let d = &transfer.diagnosis;
            let flow = examined.flow(transfer).filter(|_| index < figures::MAX_SHOWN);
            page.heading(&words::title(transfer));
            page.verdict(&words::paragraph(d), d.healthy);
            page.table(&words::times(d));
            for finding in words::told(d) {
                page.paragraph(&format!(
                    "{} ({:.0} % sure): {}. Cure: {}",
                    finding.cause.info().title,
                    finding.confidence * 100.0,
                    finding.evidence,
                    finding.cure
                ));
                if let (Some(first), true) = (finding.first, flow.is_some()) {
                    let what = if transfer.packets.is_some() { "packets" } else { "rate" };
                    place(&mut page, finding, first, zero, &figures::name(number, what));
                }
                page.command(&finding.filter);
            }
            let figures = flow.map_or(Vec::new(), |flow| figures::of(flow, transfer, number, zero));
            for mut figure in figures {
                if let (Some(address), Some(exploration)) = (address, &mut figure.explore)
                    && exploration.points() > MAX_EMBEDDED
                {
                    Arc::make_mut(exploration).remote = Some(format!("{address}/{}?", drawn.len()));
                }
                page.figure(&figure);
                drawn.push(figure);
            }
            if let Some(cured) = &transfer.cured {
                page.paragraph(&words::cure(cured));
                for file in &cured.files {
                    page.link("Scenario", &file.to_string_lossy());
                }
            }
            page.paragraph(&words::control(d));
            for line in &d.unknowable {
                page.paragraph(&format!("Not known: {line}"));
            }
        }
        if examined.transfers.len() > figures::MAX_SHOWN {
            page.paragraph(&format!(
                "There are figures of the {} transfers with most data; --flow chooses others.",
                figures::MAX_SHOWN
            ));
        }
    }
    if let Some(pair) = pair {
        page.heading("Both captures").paragraph(&words::both(pair));
    }
    ExplainedPage { html: page.render(), figures: drawn }
}

/// The way from a finding to where it began, in the figure of the packets.
fn place(page: &mut Page, finding: &Finding, first: Instant, zero: Instant, figure: &str) {
    let at = first.since(zero).as_secs_f64();
    let packet = finding.frames.first().map_or(String::new(), |frame| format!(", packet {frame}"));
    let what = finding.cause.info().title;
    page.place(
        &format!("Show where this begins: {what}, {at:.6} s in the capture{packet}"),
        figure,
        at,
        at,
        0.0,
    );
}
