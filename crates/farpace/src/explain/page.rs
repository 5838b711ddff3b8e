//! The report: one page with everything.

use super::input::Examined;
use super::words;
use farpace_explain::pair::Pair;
use farpace_report::Page;
use std::net::SocketAddr;

/// The page as HTML.
pub(crate) fn page(all: &[Examined], pair: Option<&(SocketAddr, SocketAddr, Pair)>) -> String {
    let mut page = Page::new("Why transfers took their time");
    for examined in all {
        page.paragraph(&words::capture(examined));
        for transfer in &examined.transfers {
            let d = &transfer.diagnosis;
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
                page.command(&finding.filter);
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
    }
    if let Some((client, server, pair)) = pair {
        page.heading("Both captures").paragraph(&words::both(*client, *server, pair));
    }
    page.render()
}
