//! A reproduction beside the same one under assumptions about what the paper leaves open.

use crate::{Reproduction, ReproductionRow, Table, TableCell, TableColumn};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A number agrees with the printed one up to this part of it.
pub const AGREES: f64 = 0.1;
/// A printed zero agrees with what rounds to it.
const ZERO: f64 = 0.5;

/// A named set of assumptions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssumedWorld {
    /// Its name.
    pub name: String,
    /// What it assumes, in a sentence or two.
    pub about: String,
    /// It was chosen by the claims that hold, so that they do not judge it.
    pub fitted_to_claims: bool,
    /// What came out in it when it was found, beside the literal runs.
    pub result: String,
    /// The assumptions.
    pub settings: Vec<AssumedSetting>,
}

/// An assumption.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssumedSetting {
    /// The part of a run that has the key.
    pub part: String,
    /// The key within the part.
    pub key: String,
    /// Its value; empty: it is not given.
    pub value: String,
    /// What the paper prints about it.
    pub printed: String,
    /// The printed number to which it is fitted, if it is.
    pub fitted: Option<String>,
    /// Why it is plausible.
    pub plausible: String,
}

impl AssumedWorld {
    /// The assumptions as a table.
    pub fn table(&self) -> Table {
        let heads = ["assumed", "the paper prints", "fitted to", "plausible, because"];
        let columns = heads.into_iter().map(TableColumn::text).collect();
        let mut table = Table::new(&format!("What the world `{}` assumes", self.name), columns);
        for s in &self.settings {
            let value = if s.value.is_empty() { "not given" } else { &s.value };
            let fitted = s.fitted.as_deref().unwrap_or("nothing");
            table.row(vec![
                format!("{} {} = {value}", s.part, s.key).into(),
                s.printed.as_str().into(),
                fitted.into(),
                s.plausible.as_str().into(),
            ]);
        }
        table
    }
}

/// How far a reproduction agrees with its paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrintAgreement {
    /// Claims that hold.
    pub claims_held: usize,
    /// All claims.
    pub claims: usize,
    /// Numbers within 10 % of the printed ones.
    pub numbers_within_10_percent: usize,
    /// All numbers that the paper prints.
    pub numbers: usize,
    /// The same without those that were used for a fit.
    pub judging_within_10_percent: usize,
    /// All numbers that the paper prints and that were not used for a fit.
    pub judging: usize,
}

impl PrintAgreement {
    /// Counts; `is_fitted` says by its id whether a row was used for a fit.
    pub fn of(reproduction: &Reproduction, is_fitted: impl Fn(&str) -> bool) -> Self {
        let mut all = PrintAgreement {
            claims_held: reproduction.claims.iter().filter(|claim| claim.holds).count(),
            claims: reproduction.claims.len(),
            ..PrintAgreement::default()
        };
        for row in &reproduction.rows {
            let Some(paper) = row.paper else { continue };
            let agrees = usize::from(agrees(paper, row.measured));
            all.numbers += 1;
            all.numbers_within_10_percent += agrees;
            if !is_fitted(&row.id) {
                all.judging += 1;
                all.judging_within_10_percent += agrees;
            }
        }
        all
    }
    /// In a sentence.
    pub fn text(&self) -> String {
        let percent = |part: usize, of: usize| part as f64 * 100.0 / of.max(1) as f64;
        let mut text = format!(
            "{} of {} claims hold, {} of {} printed numbers come out within 10 % ({:.0} %)",
            self.claims_held,
            self.claims,
            self.numbers_within_10_percent,
            self.numbers,
            percent(self.numbers_within_10_percent, self.numbers)
        );
        if self.judging < self.numbers {
            text += &format!(
                "; of the {} that were not used for the fit {} do ({:.0} %)",
                self.judging,
                self.judging_within_10_percent,
                percent(self.judging_within_10_percent, self.judging)
            );
        }
        text
    }
}

/// True if a measured number is within 10 % of the printed one.
pub fn agrees(paper: f64, measured: Option<f64>) -> bool {
    measured.is_some_and(|measured| match paper {
        0.0 => measured.abs() < ZERO,
        _ => (measured / paper - 1.0).abs() <= AGREES,
    })
}

/// A claim in both columns; none: that column does not have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedClaim {
    /// As in the claims of the literal reproduction, or of the world.
    pub id: String,
    /// What the paper states.
    pub text: String,
    /// True if it holds literally.
    pub literal: Option<bool>,
    /// True if it holds in the world.
    pub world: Option<bool>,
    /// The values in the world, and the reason if it fails there.
    pub evidence: Option<String>,
}

/// A printed number in both columns; none: that column does not have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedNumber {
    /// As in the rows of the literal reproduction, or of the world.
    pub id: String,
    /// Description.
    pub quantity: String,
    /// Its unit; empty for plain numbers.
    pub unit: String,
    /// The printed value.
    pub paper: f64,
    /// The value measured literally.
    pub literal: Option<f64>,
    /// Its error in percent of the printed value; none if that is zero.
    pub literal_error_percent: Option<f64>,
    /// The value measured in the world.
    pub world: Option<f64>,
    /// Its error in percent of the printed value; none if that is zero.
    pub world_error_percent: Option<f64>,
    /// The printed value was used for the fit of the world.
    pub fitted: bool,
}

/// A literal reproduction and the same one in a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorldComparison {
    /// The assumptions.
    pub world: AssumedWorld,
    /// How far the literal one agrees.
    pub literal: PrintAgreement,
    /// How far the one in the world agrees.
    pub assumed: PrintAgreement,
    /// More claims hold in the world than literally.
    pub better: bool,
    /// All claims of either.
    pub claims: Vec<ComparedClaim>,
    /// All printed numbers of either.
    pub numbers: Vec<ComparedNumber>,
}

impl WorldComparison {
    /// Puts both side by side, by ids. `is_fitted` says whether a row of the world was used for its fit.
    pub fn new(
        world: AssumedWorld,
        literal: &Reproduction,
        assumed: &Reproduction,
        is_fitted: impl Fn(&str) -> bool,
    ) -> Self {
        let mut claims = Vec::new();
        for claim in &literal.claims {
            let other = assumed.claims.iter().find(|c| c.id == claim.id);
            claims.push(ComparedClaim {
                id: claim.id.clone(),
                text: claim.text.clone(),
                literal: Some(claim.holds),
                world: other.map(|c| c.holds),
                evidence: other.map(|c| c.evidence.clone()),
            });
        }
        for claim in &assumed.claims {
            if !literal.claims.iter().any(|c| c.id == claim.id) {
                claims.push(ComparedClaim {
                    id: claim.id.clone(),
                    text: claim.text.clone(),
                    literal: None,
                    world: Some(claim.holds),
                    evidence: Some(claim.evidence.clone()),
                });
            }
        }
        let printed = |all: &'_ Reproduction| -> Vec<ReproductionRow> {
            all.rows.iter().filter(|row| row.paper.is_some()).cloned().collect()
        };
        let (ours, theirs) = (printed(literal), printed(assumed));
        let number = |row: &ReproductionRow, values: [Option<f64>; 2], fitted: bool| {
            let paper = row.paper.unwrap_or(f64::NAN);
            let [literal, world] = values;
            let error =
                |value: Option<f64>| value.filter(|_| paper != 0.0).map(|v| (v / paper - 1.0) * 100.0);
            ComparedNumber {
                id: row.id.clone(),
                quantity: row.quantity.clone(),
                unit: row.unit.clone(),
                paper,
                literal,
                literal_error_percent: error(literal),
                world,
                world_error_percent: error(world),
                fitted,
            }
        };
        let mut numbers = Vec::new();
        for row in &ours {
            let other = theirs.iter().find(|r| r.id == row.id);
            let fitted = other.is_some_and(|r| is_fitted(&r.id));
            numbers.push(number(row, [row.measured, other.and_then(|r| r.measured)], fitted));
        }
        for row in theirs.iter().filter(|row| !ours.iter().any(|r| r.id == row.id)) {
            numbers.push(number(row, [None, row.measured], is_fitted(&row.id)));
        }
        let [literal, assumed] = [literal, assumed].map(|all| PrintAgreement::of(all, &is_fitted));
        let better = assumed.claims_held > literal.claims_held;
        WorldComparison { world, literal, assumed, better, claims, numbers }
    }

    /// Whether the world is better than the literal runs, in a sentence or two.
    pub fn verdict(&self) -> &'static str {
        match self.assumed.claims_held.cmp(&self.literal.claims_held) {
            Ordering::Greater if self.world.fitted_to_claims => {
                "More claims hold in this world than literally. It was chosen by them, so that they do not \
                 judge it."
            }
            Ordering::Greater => "More claims hold in this world than literally.",
            Ordering::Equal => {
                "No world is better than the literal runs: in this one as many claims hold, and in no other \
                 more."
            }
            Ordering::Less => "No world is better than the literal runs: in this one fewer claims hold.",
        }
    }

    /// How far each of both agrees with the paper.
    pub fn summary_table(&self) -> Table {
        let columns = ["", "literal", "in the world"].map(TableColumn::text).into();
        let mut table = Table::new(&format!("Literal, and in the world `{}`", self.world.name), columns);
        let part = |part: usize, of: usize| -> TableCell {
            format!("{part} of {of} ({:.0} %)", part as f64 * 100.0 / of.max(1) as f64).into()
        };
        let (a, b) = (self.literal, self.assumed);
        for (name, literal, world) in [
            ("claims that hold", (a.claims_held, a.claims), (b.claims_held, b.claims)),
            (
                "printed numbers within 10 %",
                (a.numbers_within_10_percent, a.numbers),
                (b.numbers_within_10_percent, b.numbers),
            ),
            (
                "those that were not used for the fit",
                (a.judging_within_10_percent, a.judging),
                (b.judging_within_10_percent, b.judging),
            ),
        ] {
            table.row(vec![name.into(), part(literal.0, literal.1), part(world.0, world.1)]);
        }
        table
    }

    /// All claims with their verdicts.
    pub fn claim_table(&self) -> Table {
        let columns = ["claim", "literal", "in the world"].map(TableColumn::text).into();
        let mut table = Table::new("Claims, literal and in the world", columns);
        let verdict = |holds: Option<bool>| match holds {
            Some(true) => TableCell::from("holds"),
            Some(false) => "fails".into(),
            None => TableCell::Missing,
        };
        for claim in &self.claims {
            table.row(vec![claim.text.as_str().into(), verdict(claim.literal), verdict(claim.world)]);
        }
        table
    }

    /// All printed numbers with the errors of both.
    pub fn number_table(&self) -> Table {
        let columns = vec![
            TableColumn::text("quantity"),
            TableColumn::text("unit"),
            TableColumn::number("paper", ""),
            TableColumn::number("literal", ""),
            TableColumn::number("error", "%"),
            TableColumn::number("in the world", ""),
            TableColumn::number("error", "%"),
            TableColumn::text("used for the fit"),
        ];
        let mut table = Table::new("Printed numbers, literal and in the world", columns);
        let error = |e: Option<f64>| e.map_or(TableCell::Missing, |e| TableCell::signed(e, 0));
        for n in &self.numbers {
            table.row(vec![
                n.quantity.as_str().into(),
                n.unit.as_str().into(),
                n.paper.into(),
                n.literal.into(),
                error(n.literal_error_percent),
                n.world.into(),
                error(n.world_error_percent),
                if n.fitted { "yes" } else { "" }.into(),
            ]);
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReproductionClaim;

    fn reproduction(window: u32, measured: [f64; 2], holds: bool) -> Reproduction {
        let row = |id: String, paper, measured| ReproductionRow {
            id,
            quantity: "time".into(),
            unit: "s".into(),
            paper,
            measured: Some(measured),
            assumptions: Vec::new(),
        };
        let claim =
            |id: String| ReproductionClaim { id, text: "a < b".into(), holds, evidence: "1 < 2".into() };
        Reproduction {
            paper: "stops".into(),
            rows: vec![
                row(format!("w{window}/time"), Some(10.0), measured[0]),
                row("timeouts".into(), Some(0.0), measured[1]),
                row("unprinted".into(), None, 1.0),
            ],
            claims: vec![claim(format!("w{window}/order"))],
            assumed: None,
            comparison: None,
        }
    }

    /// Breaks: claims and numbers of both columns are not found beside each other, or numbers that were used
    /// for the fit judge it, or a world counts as better in which not more claims hold.
    #[test]
    fn both_stand_side_by_side() {
        let world = AssumedWorld {
            name: "w".into(),
            about: String::new(),
            fitted_to_claims: false,
            result: String::new(),
            settings: Vec::new(),
        };
        let (literal, assumed) = (reproduction(1, [20.0, 0.4], false), reproduction(1, [10.9, 3.0], true));
        let both = WorldComparison::new(world, &literal, &assumed, |id| id == "w1/time");
        assert_eq!(both.claims.len(), 1);
        assert_eq!((both.claims[0].literal, both.claims[0].world), (Some(false), Some(true)));
        assert_eq!(both.numbers.len(), 2);
        assert_eq!(both.numbers[0].literal_error_percent, Some(100.0));
        assert!(both.numbers[0].fitted && both.numbers[1].world_error_percent.is_none());
        let counts = |a: PrintAgreement| {
            [a.numbers_within_10_percent, a.numbers, a.judging_within_10_percent, a.judging]
        };
        assert_eq!(counts(both.literal), [1, 2, 1, 1]);
        assert_eq!(counts(both.assumed), [1, 2, 0, 1]);
        assert!(both.summary_table().to_text().contains("0 of 1 (0 %)"));
        assert!(both.claim_table().to_text().contains("fails"));
        assert!(both.number_table().to_text().contains("+9"));
        assert!(both.better && both.verdict().starts_with("More claims hold"));
        let fitted = AssumedWorld { fitted_to_claims: true, ..both.world.clone() };
        let fitted = WorldComparison::new(fitted, &literal, &assumed, |_| false);
        assert!(fitted.verdict().contains("do not judge"));
        for (ours, says) in [(&literal, "as many"), (&assumed, "fewer")] {
            let both = WorldComparison::new(both.world.clone(), ours, &literal, |_| false);
            let verdict = both.verdict();
            assert!(!both.better && verdict.starts_with("No world is better") && verdict.contains(says));
        }
        // What one of them lacks is listed, too.
        let other = reproduction(2, [1.0, 1.0], true);
        let both = WorldComparison::new(both.world, &literal, &other, |_| false);
        assert_eq!((both.claims.len(), both.numbers.len()), (2, 3));
        assert_eq!((both.claims[0].world, both.claims[1].literal), (None, None));
    }
}
