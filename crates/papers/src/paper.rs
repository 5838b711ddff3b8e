//! A published measurement: what [`Experiment`] has, and rows and claims.

use crate::assumptions::WorldAssumptions;
use crate::experiment::{Experiment, MeasureError, Measured};
use crate::info::PaperInfo;
use crate::reasons;
use crate::report::{ExperimentReport, PaperSummary, ReportJson};
use crate::world::PaperWorld;
use farpace_report::{
    Page, PrintAgreement, Reproduction, ReproductionClaim, ReproductionRow, Table, WorldComparison,
};
use std::collections::BTreeMap;

/// A published measurement that is made again.
///
/// `document` and `single_run` of [`PaperInfo`] aside, everything a reader sees comes from these functions;
/// the module `report` puts it together. None of them reads a file, writes or prints.
pub trait Paper: Experiment<Measurement: Clone> {
    /// What is known without a measurement.
    const ABOUT: &'static PaperInfo;

    /// What all runs assume.
    fn assumed(&self) -> &WorldAssumptions;
    /// The same measurement with other assumptions. If it is `brief`, it leaves out what no claim and no
    /// printed number needs.
    ///
    /// # Errors
    /// A scenario that the assumptions make impossible.
    fn assuming(&self, assumed: WorldAssumptions, brief: bool) -> Result<Self, MeasureError>;
    /// The world in which all runs are made; none: literally.
    fn world(&self) -> Option<&'static PaperWorld> {
        self.assumed().world
    }
    /// The same measurement in a world; as [`assuming`](Paper::assuming).
    ///
    /// # Errors
    /// A scenario that the world and the values from the user make impossible.
    fn in_world(&self, world: &'static PaperWorld, brief: bool) -> Result<Self, MeasureError> {
        self.assuming(self.assumed().within(world), brief)
    }
    /// False if the runs of a case are the same in each world.
    fn depends_on_world(_case: &Self::Case) -> bool {
        true
    }

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

/// Rows and claims of a paper, literally or in the world in which it was measured.
pub fn reproduction<P: Paper>(measured: &Measured<'_, P>) -> Reproduction {
    let (about, world) = (P::ABOUT, measured.of.world());
    let (mut rows, mut claims) = (RowList::default(), ClaimList::new(about.document, world));
    P::rows(measured, &mut rows);
    P::claims(measured, &mut claims);
    Reproduction {
        paper: about.citation.to_owned(),
        rows: rows.all,
        claims: claims.all,
        assumed: world.map(PaperWorld::described),
        comparison: None,
    }
}

/// A literal reproduction beside the same one in a world.
pub fn compared(literal: &Reproduction, world: &PaperWorld, assumed: &Reproduction) -> WorldComparison {
    WorldComparison::new(world.described(), literal, assumed, |row| world.is_fitted(row))
}

/// The part of the page that shows both side by side.
fn side_by_side(comparison: &WorldComparison, page: &mut Page) {
    let WorldComparison { world, literal, assumed, .. } = comparison;
    page.heading("Literal, and in the authors' world").paragraph(&format!(
        "What a paper leaves open is assumed: \"literal\" is what it prints and else the usual. The world \
         `{}` assumes something else, which no paper prints. {} Literally {}. In this world {}.",
        world.name,
        world.about,
        literal.text(),
        assumed.text()
    ));
    page.finding(&format!("{} {}", comparison.verdict(), world.result));
    page.table(&comparison.summary_table()).table(&comparison.claim_table()).table(&world.table());
    for claim in comparison.claims.iter().filter(|claim| claim.world == Some(false)) {
        if let Some(evidence) = &claim.evidence {
            page.paragraph(&format!("In the world fails `{}`: {evidence}", claim.id));
        }
    }
    page.folded("Printed numbers, literal and in the world", |page| {
        page.table(&comparison.number_table());
    });
}

/// Puts the report of a paper together; with a comparison if it was measured in a world as well.
pub fn report<P: Paper>(
    measured: &Measured<'_, P>,
    command: &str,
    comparison: Option<WorldComparison>,
) -> ExperimentReport {
    let about = P::ABOUT;
    let mut reproduction = reproduction(measured);
    reproduction.comparison = comparison;
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
    if let Some(world) = measured.of.world() {
        let agreement = PrintAgreement::of(&reproduction, |row| world.is_fitted(row));
        page.heading("The world that is assumed").paragraph(&format!(
            "All runs are in the world `{}`. {} In it {}. {}",
            world.name,
            world.about,
            agreement.text(),
            world.result
        ));
        page.table(&world.described().table());
    }
    if about.worlds.is_empty() {
        page.finding("No world of the authors is known that is better than the literal runs.");
    }
    if let Some(comparison) = &reproduction.comparison {
        side_by_side(comparison, &mut page);
    }
    P::body(measured, all, &mut page);
    page.heading("Assumptions");
    for assumption in reproduction.assumptions() {
        page.paragraph(assumption);
    }
    page.heading("How to repeat this").command(command).paragraph(
        "The result does not depend on the machine or on the number of threads. A single run, with captures \
         and a table of every ACK:",
    );
    page.command(about.single_run);
    for (title, text) in P::scenarios(measured) {
        page.details(&title, &text);
    }
    page.paragraph(&format!("Source: {}.", about.citation));
    let scope = P::scope(measured);
    let headline = match measured.of.world() {
        Some(world) => format!("{} in the world {}: {scope}, every byte compared", about.title, world.name),
        None => format!("{}: {scope}, every byte compared", about.title),
    };
    let summary = Some(PaperSummary { about, verdict, table: P::key_table(measured) });
    ExperimentReport { page, headline, json: ReportJson::Paper(Box::new(reproduction)), summary }
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
    fn new(document: &str, world: Option<&PaperWorld>) -> Self {
        ClaimList { all: Vec::new(), reasons: reasons::parse(document, world.map(|world| world.name)) }
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
