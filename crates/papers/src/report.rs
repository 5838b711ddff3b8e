//! The report of an experiment: one page, and the same for a terminal and for programs.

use crate::info::PaperInfo;
use farpace_report::{Page, Reproduction, Table};
use serde::Serialize;
use serde_json::Value;

/// What an experiment gives to readers.
#[derive(Debug)]
pub struct ExperimentReport {
    /// The page, with its figures.
    pub page: Page,
    /// The first line for a terminal.
    pub headline: String,
    /// For programs.
    pub json: ReportJson,
    /// For the page on all papers, if this is one.
    pub summary: Option<PaperSummary>,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ReportJson {
    /// Rows and claims of a paper.
    Paper(Box<Reproduction>),
    /// An object of another form.
    Other(Value),
}

/// The part of a paper's report that the page on all papers shows.
#[derive(Debug)]
pub struct PaperSummary {
    /// The paper.
    pub about: &'static PaperInfo,
    /// What came out, in a sentence or two.
    pub verdict: String,
    /// The most important numbers.
    pub table: Table,
}

impl ExperimentReport {
    /// The report of an experiment that is no paper.
    pub fn new(page: Page, headline: impl Into<String>, json: Value) -> Self {
        ExperimentReport { page, headline: headline.into(), json: ReportJson::Other(json), summary: None }
    }
    /// Everything for a terminal with `width` columns; none: no table is wrapped.
    pub fn text(&self, width: Option<usize>) -> String {
        let page = width.map_or_else(|| self.page.to_text(), |width| self.page.to_text_within(width));
        format!("{}\n\n{page}", self.headline)
    }
    /// Rows and claims, if this is a paper.
    pub fn reproduction(&self) -> Option<&Reproduction> {
        match &self.json {
            ReportJson::Paper(reproduction) => Some(reproduction),
            ReportJson::Other(_) => None,
        }
    }
}
