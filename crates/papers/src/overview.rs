//! The page on all papers: what each solves, the figures that show it, and its claims.

use crate::report::{ExperimentReport, PaperSummary, ReportJson};
use farpace_report::{Page, Reproduction, ReproductionClaim, Table, TableCell, cells};
use serde_json::{Value, json};

/// Reports of papers and of their solutions together.
#[derive(Debug)]
pub struct Overview {
    /// In the order of the page.
    pub papers: Vec<ExperimentReport>,
    /// All solutions on one path, if it was made.
    pub together: Option<ExperimentReport>,
    /// The papers were made in full.
    pub full: bool,
}

impl Overview {
    fn parts(&self) -> impl Iterator<Item = (&ExperimentReport, &PaperSummary, &Reproduction)> {
        let papers = self.papers.iter();
        papers.filter_map(|report| Some((report, report.summary.as_ref()?, report.reproduction()?)))
    }

    /// Claims that hold and fail, by paper.
    pub fn summary(&self) -> Table {
        let heads = "paper | what it solves | claims that hold [] | that fail [] | more";
        let mut table = Table::with("Five papers", heads);
        for (_, PaperSummary { about, .. }, reproduction) in self.parts() {
            let holds = reproduction.claims.iter().filter(|claim| claim.holds).count();
            let fails = reproduction.claims.len() - holds;
            let command = format!("farpace papers {}", about.name);
            let report = format!("{}/report.html", about.name);
            let more = TableCell::Link(command, format!("report on {}", about.name), report);
            table.row(cells![about.name, about.topic, holds as u64, fails as u64, more]);
        }
        table
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let papers: Vec<&Reproduction> = self.parts().map(|(.., reproduction)| reproduction).collect();
        let together = match self.together.as_ref().map(|report| &report.json) {
            Some(ReportJson::Other(json)) => json.clone(),
            _ => json!({ "format": "farpace-together/1", "paths": [] }),
        };
        json!({ "format": "farpace-papers/1", "papers": papers, "together": together })
    }

    /// The page. Reports of papers are beside it, at `NAME/report.html`.
    pub fn page(&self) -> Page {
        let mut page = Page::new("Five reasons why TCP fails on far networks, and five solutions");
        let claims = || self.parts().flat_map(|(.., reproduction)| &reproduction.claims);
        let (all, held) = (claims().count(), claims().filter(|claim| claim.holds).count());
        page.verdict(
            &format!(
                "Of {all} claims of five papers {held} hold here; why the others do not is said with each."
            ),
            held > all - held,
        );
        page.paragraph(
            "Each paper was written inside the kernel of its time. Here all of them run in one TCP, in \
             virtual time: the same runs with the same numbers come out on any machine. Every byte that \
             arrived was compared with the byte sent.",
        );
        page.table(&self.summary());
        for (report, PaperSummary { about, verdict, table }, reproduction) in self.parts() {
            page.heading(about.topic).paragraph(about.story).paragraph(verdict);
            for figure in report.page.figures().filter(|f| about.key_figures.contains(&f.file_name.as_str()))
            {
                let mut figure = figure.clone();
                figure.file_name = format!("{}/{}", about.name, figure.file_name);
                page.figure(&figure);
            }
            page.table(table);
            for holds in [true, false] {
                let these = reproduction.claims.iter().filter(|claim| claim.holds == holds).cloned();
                let these: Vec<ReproductionClaim> = these.collect();
                if !these.is_empty() {
                    let (word, count) = (if holds { "hold" } else { "fail" }, these.len());
                    let plural = if count == 1 { "" } else { "s" };
                    page.folded(&format!("{count} claim{plural} {word}"), |page| {
                        page.claims(&these);
                    });
                }
            }
            page.paragraph(&format!("The paper: {}.", about.citation));
            page.link(
                "All of it, with every table, figure and assumption",
                &format!("{}/report.html", about.name),
            );
            let quick = if self.full { "" } else { "    # without --quick: everything" };
            page.command(&format!("farpace papers {}{quick}", about.name));
        }
        if let Some(together) = &self.together {
            page.append(&together.page);
        }
        page
    }
}
