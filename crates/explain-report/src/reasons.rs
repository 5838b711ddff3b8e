//! Verdicts for the other commands: the same engine of reasons, on records or readings instead of a capture.

use crate::{json, words};
use farpace_explain::input::RecordFollower;
use farpace_explain::{Diagnosis, diagnose};
use farpace_report::Page;
use serde_json::Value;
use std::fmt::Write;

/// A connection and why it took its time.
#[derive(Clone, Debug)]
pub struct FlowReason {
    /// Its name in the scenario, or what else tells it apart.
    pub name: String,
    /// The verdict.
    pub diagnosis: Diagnosis,
}

/// Verdicts on connections whose records were followed, in the order of their numbers. A connection without
/// data has none.
pub fn of_records(follower: RecordFollower, names: &[String]) -> Vec<FlowReason> {
    let capture = follower.finish();
    let mut found: Vec<(u32, Diagnosis)> = Vec::new();
    for flow in &capture.flows {
        if let Some(number) = RecordFollower::connection(flow) {
            found.push((number, diagnose(flow, flow.sender())));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    let name = |number: u32| names.get(number as usize).cloned().unwrap_or_else(|| number.to_string());
    found.into_iter().map(|(number, diagnosis)| FlowReason { name: name(number), diagnosis }).collect()
}

/// For a terminal with `width` columns; none: no table is wrapped.
pub fn text(reasons: &[FlowReason], width: Option<usize>) -> String {
    let mut text = String::new();
    for FlowReason { name, diagnosis } in reasons {
        let _ = write!(
            text,
            "\nWhy {name} took its time\n{}\n\n",
            words::fill(&words::paragraph(diagnosis), width)
        );
        text.push_str(&words::times(diagnosis).to_text_for(width));
        for (n, finding) in words::told(diagnosis).enumerate() {
            // Records have no numbers in a capture.
            let mut finding = finding.clone();
            finding.frames.clear();
            finding.filter.clear();
            let _ = write!(text, "\n{}", words::event(n + 1, &finding, diagnosis, width));
        }
    }
    text
}

/// As JSON: the fields of `farpace explain` that do not depend on a capture.
pub fn to_json(reasons: &[FlowReason]) -> Value {
    let one = |reason: &FlowReason| {
        let mut value = json::verdict(&reason.diagnosis);
        if let Some(fields) = value.as_object_mut() {
            fields.insert("flow".to_owned(), reason.name.clone().into());
        }
        value
    };
    reasons.iter().map(one).collect()
}

/// On a page. `figure` is the file of a figure over the same time in which findings are shown.
pub fn section(page: &mut Page, reason: &FlowReason, figure: &str) {
    let d = &reason.diagnosis;
    page.verdict(&words::paragraph(d), d.healthy);
    page.table(&words::times(d));
    for finding in words::told(d) {
        let info = finding.cause.info();
        page.paragraph(&format!(
            "{} ({:.0} % sure): {}. Cure: {}",
            info.title,
            finding.confidence * 100.0,
            finding.evidence,
            finding.cure
        ));
        if let Some(first) = finding.first {
            let at = first.since(farpace_units::Instant::ZERO).as_secs_f64();
            page.place(&format!("Show where this begins: {}, {at:.6} s", info.title), figure, at, at, 0.0);
        }
    }
}
