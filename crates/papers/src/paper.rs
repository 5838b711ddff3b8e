//! A published measurement: what [`Experiment`] has, and rows and claims.

use crate::experiment::{Experiment, Measured};
use crate::info::PaperInfo;
use crate::reasons;
use crate::report::{ExperimentReport, PaperSummary, ReportJson};
use farpace_report::{Page, Reproduction, ReproductionClaim, ReproductionRow, Table};
use std::collections::BTreeMap;

/// A published measurement that is made again.
///
/// `document` and `single_run` of [`PaperInfo`] aside, everything a reader sees comes from these functions;
/// the module `report` puts it together. None of them reads a file, writes or prints.
pub trait Paper: Experiment {
    /// What is known without a measurement.
    const ABOUT: &'static PaperInfo;

    /// What was run, for the first line on a terminal.
    fn scope(measured: &Measured<'_, Self>) -> String;
    /// Numbers beside those of the paper, each with what had to be assumed.
    fn rows(measured: &Measured<'_, Self>, rows: &mut RowList);
    /// What the paper claims and what follows from it. Nothing is tuned to hold.
    fn claims(measured: &Measured<'_, Self>, claims: &mut ClaimList);
    /// The most important numbers in a sentence or two.
    fn verdict(measured: &Measured<'_, Self>) -> String;
    /// The page between the verdict and the assumptions, for a reader who does not know the paper.
    fn body(measured: &Measured<'_, Self>, claims: &[ReproductionClaim], page: &mut Page);
    /// The table for the page on all papers.
    fn key_table(measured: &Measured<'_, Self>) -> Table;
    /// Titles and texts of the scenarios that runs are made from.
    fn scenarios(measured: &Measured<'_, Self>) -> Vec<(String, String)>;
}

/// Puts the report of a paper together.
pub fn report<P: Paper>(measured: &Measured<'_, P>, command: &str) -> ExperimentReport {
    let about = P::ABOUT;
    let (mut rows, mut claims) = (RowList::default(), ClaimList::new(about.document));
    P::rows(measured, &mut rows);
    P::claims(measured, &mut claims);
    let reproduction = Reproduction { paper: about.citation.to_owned(), rows: rows.all, claims: claims.all };
    let all = &reproduction.claims;
    let held = all.iter().filter(|claim| claim.holds).count();
    let is_key = |id: &str| about.key_claims.is_empty() || about.key_claims.contains(&id);
    let confirmed = all.iter().filter(|claim| is_key(&claim.id)).all(|claim| claim.holds);
    let verdict = format!(
        "Of {} claims {held} hold{}. {}",
        all.len(),
        if held == all.len() { "" } else { "; the evidence says why the others do not" },
        P::verdict(measured)
    );
    let mut page = Page::new(about.title);
    page.verdict(&verdict, confirmed);
    P::body(measured, all, &mut page);
    page.heading("Assumptions");
    for assumption in reproduction.assumptions() {
        page.paragraph(assumption);
    }
    page.heading("How to repeat this").command(command).paragraph(
        "The result does not depend on the machine or on the number of threads. A single run, with captures \
         and a \
         table of every ACK:",
    );
    page.command(about.single_run);
    for (title, text) in P::scenarios(measured) {
        page.details(&title, &text);
    }
    page.paragraph(&format!("Source: {}.", about.citation));
    let headline = format!("{}: {}, every byte compared", about.title, P::scope(measured));
    let summary = Some(PaperSummary { about, verdict, table: P::key_table(measured) });
    ExperimentReport { page, headline, json: ReportJson::Paper(reproduction), summary }
}

/// Rows of a paper under construction.
#[derive(Debug, Default)]
pub struct RowList {
    all: Vec<ReproductionRow>,
    assumptions: Vec<String>,
}

impl RowList {
    /// What holds for all rows that follow, in place of what was assumed before.
    pub fn assume(&mut self, assumptions: impl IntoIterator<Item = impl Into<String>>) {
        self.assumptions = assumptions.into_iter().map(Into::into).collect();
    }
    /// Adds a number with the paper's number, if it has one, and what is assumed for this row alone. What is
    /// not finite counts as not measured.
    pub fn add(
        &mut self,
        id: impl Into<String>,
        quantity: impl Into<String>,
        unit: &str,
        paper: impl Into<Option<f64>>,
        measured: f64,
        assumptions: &[&str],
    ) {
        let more = assumptions.iter().map(|text| (*text).to_owned());
        self.all.push(ReproductionRow {
            id: id.into(),
            quantity: quantity.into(),
            unit: unit.to_owned(),
            paper: paper.into(),
            measured: Some(measured).filter(|value| value.is_finite()),
            assumptions: self.assumptions.iter().cloned().chain(more).collect(),
        });
    }
}

/// Claims of a paper under construction, each with its evidence. A claim that fails gets the reason that the
/// document of the paper has for it.
#[derive(Debug)]
pub struct ClaimList {
    all: Vec<ReproductionClaim>,
    reasons: BTreeMap<String, String>,
}

impl ClaimList {
    fn new(document: &str) -> Self {
        ClaimList { all: Vec::new(), reasons: reasons::parse(document) }
    }
    /// Adds a claim.
    pub fn add(
        &mut self,
        id: impl Into<String>,
        text: impl Into<String>,
        holds: bool,
        evidence: impl AsRef<[String]>,
    ) {
        self.add_explained(id, text, holds, evidence, true);
    }
    /// The same with a reason that explains the failure only if `explained`.
    pub fn add_explained(
        &mut self,
        id: impl Into<String>,
        text: impl Into<String>,
        holds: bool,
        evidence: impl AsRef<[String]>,
        explained: bool,
    ) {
        let (id, mut evidence) = (id.into(), evidence.as_ref().join("; "));
        if let Some(reason) = self.reasons.get(&id).filter(|_| !holds && explained) {
            evidence = format!("{evidence}. Why: {reason}");
        }
        self.all.push(ReproductionClaim { id, text: text.into(), holds, evidence });
    }
}
