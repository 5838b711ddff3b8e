//! Results of reproducing a paper: its values and claims. `--json` has the same form for every paper.
//!
//! Start reading at [`Reproduction`].

use crate::{AssumedWorld, Table, TableCell, TableColumn, WorldComparison};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A paper: its values with measured ones, and its claims with verdicts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction {
    /// The paper.
    pub paper: String,
    /// Its values.
    pub rows: Vec<ReproductionRow>,
    /// Its claims.
    pub claims: Vec<ReproductionClaim>,
    /// The assumptions under which rows and claims are, if they are not literal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assumed: Option<AssumedWorld>,
    /// The same beside what comes out in a world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<WorldComparison>,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReproductionRow {
    /// A stable identifier for programs, `table2/linux-2.6.17/goodput`.
    pub id: String,
    /// Description.
    pub quantity: String,
    /// Its unit; empty for plain numbers.
    pub unit: String,
    /// The published value, if there is one.
    pub paper: Option<f64>,
    /// The measured value, if there is one.
    pub measured: Option<f64>,
    /// Assumptions, where the paper does not specify a detail.
    pub assumptions: Vec<String>,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReproductionClaim {
    /// A stable identifier for programs.
    pub id: String,
    /// What the paper states, or what follows from it.
    pub text: String,
    /// True if the measurement confirms it.
    pub holds: bool,
    /// The values that confirm or refute it.
    pub evidence: String,
}

impl ReproductionClaim {
    /// `holds` or `fails`.
    pub fn verdict(&self) -> &'static str {
        if self.holds { "holds" } else { "fails" }
    }
}

impl Reproduction {
    /// True if every claim holds.
    pub fn holds(&self) -> bool {
        self.claims.iter().all(|c| c.holds)
    }

    /// The assumptions of all rows without duplicates, in order of their first use.
    pub fn assumptions(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for a in self.rows.iter().flat_map(|r| &r.assumptions) {
            if !all.contains(&a.as_str()) {
                all.push(a);
            }
        }
        all
    }

    /// The table of published values, measured values and ratios. The last column contains indices into
    /// [`assumptions`](Reproduction::assumptions), from 1.
    pub fn table(&self) -> Table {
        let notes = self.assumptions();
        let columns = vec![
            TableColumn::text("quantity"),
            TableColumn::text("unit"),
            TableColumn::number("paper", ""),
            TableColumn::number("measured", ""),
            TableColumn::number("measured/paper", ""),
            TableColumn::text("assumes"),
        ];
        let mut table = Table::new("Paper and measurement", columns);
        for row in &self.rows {
            let ratio = match (row.paper, row.measured) {
                (Some(p), Some(m)) if p != 0.0 => TableCell::from(format!("{:.2}×", m / p)),
                _ => TableCell::Missing,
            };
            let marks = notes.iter().enumerate().filter(|(_, n)| row.assumptions.iter().any(|a| a == *n));
            let marks: Vec<String> = marks.map(|(i, _)| format!("[{}]", i + 1)).collect();
            table.row(vec![
                row.quantity.as_str().into(),
                row.unit.as_str().into(),
                row.paper.into(),
                row.measured.into(),
                ratio,
                marks.join(" ").into(),
            ]);
        }
        table
    }

    /// Table, assumptions and claims as text for a terminal.
    pub fn to_text(&self) -> String {
        let mut out = self.table().to_text();
        let notes = self.assumptions();
        if !notes.is_empty() {
            out.push_str("\nAssumptions where the paper does not specify a detail\n");
        }
        for (i, note) in notes.iter().enumerate() {
            let _ = writeln!(out, "  [{}] {}", i + 1, plain(note));
        }
        if !self.claims.is_empty() {
            out.push_str("\nClaims\n");
        }
        for claim in &self.claims {
            let _ = writeln!(out, "  {}  {}", claim.verdict(), plain(&claim.text));
            let _ = writeln!(out, "         {}", plain(&claim.evidence));
        }
        out
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Reproduction {
        let row = |id: &str, paper, measured, assumptions: &[&str]| ReproductionRow {
            id: id.to_owned(),
            quantity: "goodput".to_owned(),
            unit: "Mbit/s".to_owned(),
            paper,
            measured,
            assumptions: assumptions.iter().map(|a| (*a).to_owned()).collect(),
        };
        let claim = ReproductionClaim {
            id: "order".into(),
            text: "a < b".into(),
            holds: true,
            evidence: "1 < 2".into(),
        };
        Reproduction {
            paper: "stops".into(),
            rows: vec![
                row("a", Some(187.0), Some(200.0), &["x"]),
                row("b", None, Some(f64::NAN), &["y", "x"]),
            ],
            claims: vec![claim],
            assumed: None,
            comparison: None,
        }
    }

    /// Breaks: the format of `farpace papers ... --json`.
    #[test]
    fn the_json_has_exactly_this_shape() {
        let expected = concat!(
            r#"{"paper":"stops","rows":["#,
            r#"{"id":"a","quantity":"goodput","unit":"Mbit/s","paper":187.0,"measured":200.0,"assumptions":["x"]},"#,
            r#"{"id":"b","quantity":"goodput","unit":"Mbit/s","paper":null,"measured":null,"assumptions":["y","x"]}],"#,
            r#""claims":[{"id":"order","text":"a < b","holds":true,"evidence":"1 < 2"}]}"#,
        );
        assert_eq!(serde_json::to_string(&sample()).unwrap(), expected);
        let back: Reproduction = serde_json::from_str(expected).unwrap();
        assert_eq!((back.rows[0].paper, back.rows[1].measured), (Some(187.0), None));
    }

    /// Breaks: the text contains the assumptions of each value and the verdict of each claim.
    #[test]
    fn the_text_has_notes_and_verdicts() {
        let text = sample().to_text();
        assert!(text.contains("1.07×"), "{text}");
        assert!(text.contains("[1] [2]") && text.contains("[2] y"), "{text}");
        assert!(text.contains("holds  a < b"), "{text}");
    }
}
