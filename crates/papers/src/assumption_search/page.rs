//! The report of a search: for a terminal, for programs, and as a page.

use super::{KeyEffect, PointScore, SearchedKey, TradeOffs, TriedPoint, stable_id};
use crate::info::PaperInfo;
use crate::report::ExperimentReport;
use crate::world::PaperWorld;
use farpace_report::{Page, Reproduction, Table, TableCell, cells};
use serde_json::{Value, json};

/// A paper that was searched.
pub struct SearchedPaper<'a> {
    /// The paper.
    pub about: &'static PaperInfo,
    /// The world in which it was searched; none: literally.
    pub world: Option<&'static PaperWorld>,
    /// The keys.
    pub keys: &'a [SearchedKey],
    /// Rows and claims without a point.
    pub reference: &'a Reproduction,
    /// The points that were tried.
    pub points: &'a [TriedPoint],
    /// Points that were planned.
    pub planned: u64,
    /// How the points were drawn, in words.
    pub sampling: String,
    /// Rows whose printed numbers choose points, as in [`PaperWorld::fitted`]; empty: every second one.
    pub fit: &'a [String],
}

impl SearchedPaper<'_> {
    /// True if the printed number of this row chooses points.
    fn is_fitted(&self, row: &str) -> bool {
        let by_world = self.world.map_or(&[][..], |world| world.fitted).iter().any(|of| self.covers(of, row));
        let by_user = match self.fit {
            [] => self.is_every_second(row),
            fit => fit.iter().any(|of| self.covers(of, row)),
        };
        by_world || by_user
    }
    /// True if `of` is this row, or ends in `/` and begins as it does.
    fn covers(&self, of: &str, row: &str) -> bool {
        let of = stable_id(self.about, of);
        if of.ends_with('/') { row.starts_with(&of) } else { row == of }
    }
    fn is_every_second(&self, row: &str) -> bool {
        let printed = self.reference.rows.iter().filter(|row| row.paper.is_some());
        printed.step_by(2).any(|fitted| fitted.id == row)
    }

    /// The first name in `fit` that stands for no printed number.
    pub fn unknown_fit(&self) -> Option<&str> {
        let stands = |fit: &&String| {
            let mut printed = self.reference.rows.iter().filter(|row| row.paper.is_some());
            printed.any(|row| self.covers(fit, &row.id))
        };
        self.fit.iter().find(|fit| !stands(fit)).map(String::as_str)
    }

    /// Compares the points, and makes the report. `command` is the command line that repeats the search.
    pub fn report(&self, command: &str) -> ExperimentReport {
        let all = TradeOffs::new(self.keys, self.reference, self.points, |row| self.is_fitted(row));
        let title = format!("{}: what its numbers imply about its hosts", self.about.title);
        let mut page = Page::new(&title);
        let base =
            self.world.map_or("literally".to_owned(), |world| format!("in the world `{}`", world.name));
        let failed = self.points.len() - all.scores.len();
        let mut text = format!(
            "{} of {} points over {} keys ({}); point 0 is the paper {base}. Of {} claims {} hold \
             at point 0, and at most {} at one point. Of {} printed numbers {} are within 10 % at point 0, \
             each of {} at some point, and at most {} at one point.",
            self.points.len(),
            self.planned,
            self.keys.len(),
            self.sampling,
            all.claims.len(),
            all.reference.claims_held,
            all.scores.iter().map(|s| s.claims_held).max().unwrap_or(0),
            all.numbers.len(),
            all.reference.numbers_within_10_percent,
            all.numbers.iter().filter(|n| n.within_10_percent > 0).count(),
            all.most_numbers_at_once,
        );
        if failed > 0 {
            text += &format!(" {failed} points have no result; they are left out.");
        }
        page.paragraph(&text);
        self.judgment(&all, &mut page);
        page.table(&self.key_table());
        page.heading("Points that no other one beats").paragraph(
            "In claims that hold and in the mean error of the numbers that choose points. A number counts at \
             most with an error of 100 %. The other numbers judge.",
        );
        page.table(&self.pareto_table(&all));
        page.heading("Printed numbers").table(&number_table(&all));
        page.heading("Claims").table(&claim_table(&all));
        exclusions(&all, &mut page);
        self.effects(&all, &mut page);
        page.folded("All points", |page| {
            page.table(&self.point_table(&all));
        });
        page.heading("How to repeat this").command(command);
        page.paragraph(&format!("Source: {}.", self.about.citation));
        ExperimentReport::new(page, title, self.json(&all))
    }

    /// Whether the numbers that chose no point agree as well.
    fn judgment(&self, all: &TradeOffs, page: &mut Page) {
        for check in &all.checks {
            let [chosen, reference] = check.chosen_error_percent;
            let [other, other_reference] = check.other_error_percent;
            let (these, others) = if check.chosen_by_fitted {
                ("numbers used for the fit", "others, which judge it,")
            } else {
                ("judging numbers", "numbers used for the fit")
            };
            let meaning = match check.generalises() {
                true => "So it is nearer in both.",
                false => "So what the choice wins, the other numbers do not confirm.",
            };
            page.finding(&format!(
                "Chosen by the {these}, point {} is best: their mean error is {chosen:.0} % (point 0: \
                 {reference:.0} %). That of the {others} is {other:.0} % (point 0: {other_reference:.0} %). \
                 {meaning}",
                check.point
            ));
        }
        if let Some(world) = self.world.filter(|world| world.fitted_to_claims) {
            page.finding(&format!(
                "The world `{}` was chosen by the claims, so that they do not judge it.",
                world.name
            ));
        }
    }

    fn key_table(&self) -> Table {
        let mut table = Table::with("What is searched", "key | range | plausible, because");
        for key in self.keys {
            table.row(cells![key.name(), key.range.as_str(), key.reason.unwrap_or("given by the user")]);
        }
        table
    }

    /// The values of a point; those of the reference are not given.
    fn values(&self, point: usize) -> Vec<TableCell> {
        let values = point.checked_sub(1).and_then(|n| self.points.get(n)).map(|point| &point.values);
        let cell = |n: usize| values.and_then(|all| all.get(n)).map(|value| value.text.as_str()).into();
        (0..self.keys.len()).map(cell).collect()
    }

    fn score_table(&self, title: &str, scores: &[&PointScore]) -> Table {
        let names: Vec<String> = self.keys.iter().map(SearchedKey::name).collect();
        let heads = format!(
            "point [] | claims | within 10 % [] | error, fit [%] | error, judging [%] | {}",
            names.join(" | ")
        );
        let mut table = Table::with(title, &heads);
        for s in scores {
            let error = |e: Option<f64>| TableCell::from(e.map(|e| (e, 0u8)));
            let mut row = vec![
                (s.point as u64).into(),
                format!("{} of {}", s.claims_held, s.claims).into(),
                (s.numbers_within_10_percent as u64).into(),
                error(s.fitted_error_percent),
                error(s.judging_error_percent),
            ];
            row.extend(self.values(s.point));
            table.row(row);
        }
        table
    }

    fn pareto_table(&self, all: &TradeOffs) -> Table {
        let find = |place: &usize| match place {
            0 => Some(&all.reference),
            _ => all.scores.iter().find(|s| s.point == *place),
        };
        let mut scores: Vec<&PointScore> = all.pareto.iter().filter_map(find).collect();
        if !all.pareto.contains(&0) {
            scores.push(&all.reference);
        }
        self.score_table("", &scores)
    }

    fn point_table(&self, all: &TradeOffs) -> Table {
        let scores: Vec<&PointScore> = std::iter::once(&all.reference).chain(&all.scores).collect();
        self.score_table("All points", &scores)
    }

    fn effects(&self, all: &TradeOffs, page: &mut Page) {
        page.heading("What each key changes").paragraph(
            "Points at which a claim holds, in percent, for each value of a key or for both halves of its \
             range; an asterisk marks what chance does not explain (two standard errors). Claims that always \
             or never hold are left out. The last row is the mean error of all printed numbers.",
        );
        let names: Vec<String> =
            self.keys.iter().map(|key| format!("{}{}", key.name(), compared(all, key))).collect();
        let mut table = Table::with("", &format!("claim | {}", names.join(" | ")));
        let varies = |id: &str| all.effects.iter().any(|effect| effect.claim.as_deref() == Some(id));
        let claims = all.claims.iter().map(|claim| claim.id.as_str()).filter(|id| varies(id));
        for claim in claims.map(Some).chain([None]) {
            let cell = |key: &SearchedKey| -> TableCell {
                let is_it = |e: &&KeyEffect| e.key == key.name() && e.claim.as_deref() == claim;
                all.effects.iter().find(is_it).map(shown).into()
            };
            let name = TableCell::from(claim.unwrap_or("error of all numbers"));
            table.row(std::iter::once(name).chain(self.keys.iter().map(cell)));
        }
        page.table(&table);
    }

    fn json(&self, all: &TradeOffs) -> Value {
        let key = |key: &SearchedKey| json!({ "key": key.name(), "range": key.range, "reason": key.reason });
        let point = |(n, point): (usize, &TriedPoint)| {
            let values: Vec<&str> = point.values.iter().map(|value| value.text.as_str()).collect();
            match &point.outcome {
                Ok(of) => {
                    let row = |row: &farpace_report::ReproductionRow| (row.id.clone(), json!(row.measured));
                    let printed = of.rows.iter().filter(|row| row.paper.is_some());
                    json!({
                        "point": n + 1,
                        "values": values,
                        "claims": of.claims.iter().filter(|c| c.holds).map(|c| &c.id).collect::<Vec<_>>(),
                        "numbers": printed.map(row).collect::<serde_json::Map<_, _>>(),
                    })
                }
                Err(reason) => json!({ "point": n + 1, "values": values, "failed": reason }),
            }
        };
        json!({
            "format": "farpace-paper-search/1",
            "paper": self.about.citation,
            "world": self.world.map(|world| world.name),
            "sampling": self.sampling,
            "planned": self.planned,
            "keys": self.keys.iter().map(key).collect::<Vec<_>>(),
            "trade_offs": all,
            "points": self.points.iter().enumerate().map(point).collect::<Vec<_>>(),
        })
    }
}

/// What the columns of a key compare.
fn compared(all: &TradeOffs, key: &SearchedKey) -> String {
    let values = all.effects.iter().find(|effect| effect.key == key.name()).map(|effect| &effect.values);
    values.map_or(String::new(), |values| format!(": {}", values.join(", ")))
}

/// `80 → 20 *`.
fn shown(effect: &KeyEffect) -> String {
    let numbers: Vec<String> = effect.percent.iter().map(|percent| format!("{percent:.0}")).collect();
    format!("{}{}", numbers.join(" → "), if effect.clear { " *" } else { "" })
}

fn number_table(all: &TradeOffs) -> Table {
    let mut table = Table::with(
        "",
        "number | unit | paper [] | point 0 [] | smallest [] | largest [] | nearest [] | \
         at point [] | within 10 % | used for",
    );
    for n in &all.numbers {
        table.row(cells![
            n.quantity.as_str(),
            n.unit.as_str(),
            n.paper,
            n.reference,
            n.min,
            n.max,
            n.nearest,
            n.nearest_point.map(|n| n as u64),
            format!("{} of {}", n.within_10_percent, n.points),
            if n.fitted { "the fit" } else { "judging" },
        ]);
    }
    table
}

fn claim_table(all: &TradeOffs) -> Table {
    let mut table = Table::with("", "claim | point 0 | holds at | id");
    for claim in &all.claims {
        let verdict = |holds: bool| if holds { "holds" } else { "fails" };
        let at = match claim.holds {
            0 => "no point".to_owned(),
            n if n == claim.points => "all points".to_owned(),
            n => format!("{n} of {}", claim.points),
        };
        table.row(cells![claim.text.as_str(), claim.reference.map(verdict), at, claim.id.as_str()]);
    }
    table
}

fn exclusions(all: &TradeOffs, page: &mut Page) {
    page.heading("Claims that exclude each other");
    if all.exclusions.is_empty() {
        page.paragraph("Each pair of claims that hold at some point holds at one point together.");
        return;
    }
    page.paragraph(
        "Each of both holds at some point, and both at none. By chance they would hold together at so many \
         points, if they had nothing to do with each other: where that is less than about 3, the points do \
         not suffice to tell.",
    );
    let mut table =
        Table::with("", "claim | holds at [points] | other claim | holds at [points] | both by chance []");
    for pair in &all.exclusions {
        let [first, second] = &pair.claims;
        let [a, b] = pair.holds;
        table.row(cells![first.as_str(), a as u64, second.as_str(), b as u64, (pair.by_chance, 1)]);
    }
    page.table(&table);
}
