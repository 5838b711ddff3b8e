//! What a scenario means, in words and numbers: what the path can carry, what the window allows, and where
//! packets will be lost.

mod flow;
mod hosts;
mod link;
mod losses;
mod pacing;
mod page;
mod traffic;
mod window;

use super::spec::Scenario;
use page::ExplainPage;

/// The scenario in words, at most 100 columns wide.
pub fn explain(scenario: &Scenario) -> String {
    let mut page = ExplainPage::default();
    page.item(0, &scenario.title);
    if !scenario.description.trim().is_empty() {
        page.gap();
        for paragraph in scenario.description.trim().split("\n\n") {
            page.item(0, paragraph);
        }
    }
    page.gap();
    page.item(
        0,
        &format!(
            "The run ends when all flows are complete, after {} of virtual time at the latest; seed {}.",
            scenario.duration, scenario.seed
        ),
    );
    page.gap();
    page.item(0, "Links");
    for link in &scenario.links {
        link::write(&mut page, scenario, link);
    }
    hosts::write(&mut page, scenario);
    traffic::write(&mut page, scenario);
    let bins = scenario.duration.as_nanos() / scenario.trace.bin.as_nanos().max(1);
    page.gap();
    page.item(0, "Recorded");
    page.item(
        1,
        &format!("Bandwidth and connection variables in bins of {} (at most {bins}).", scenario.trace.bin),
    );
    let taps: Vec<String> = scenario.taps().into_iter().map(|t| t.name).collect();
    match taps.len() {
        0 => page.item(1, "No captures."),
        _ => page
            .item(1, &format!("Captures at {}, {} of each frame.", taps.join(", "), scenario.trace.snaplen)),
    }
    page.text
}
