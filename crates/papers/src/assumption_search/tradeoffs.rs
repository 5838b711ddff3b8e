//! What the points of a search imply together.

use super::reach::{self, ClaimReach, NumberReach, with_result};
use super::{KeyValue, SearchedKey, TriedPoint};
use farpace_report::{Reproduction, agrees};
use serde::Serialize;

/// A number counts at most with an error of all of it, so that one of them does not decide.
const MAX_ERROR: f64 = 1.0;
/// A difference of so many standard errors is not taken for chance (about 95 %).
const CLEAR: f64 = 2.0;
/// A key with at most so many values is compared value by value, another one by the halves of its range.
const MAX_WORDS: usize = 4;

/// What the points of a search imply.
#[derive(Clone, Debug, Serialize)]
pub struct TradeOffs {
    /// How far each printed number can be reached.
    pub numbers: Vec<NumberReach>,
    /// Where each claim holds.
    pub claims: Vec<ClaimReach>,
    /// The most printed numbers within 10 % at one point.
    pub most_numbers_at_once: usize,
    /// Without a point.
    pub reference: PointScore,
    /// All points with a result, in their order.
    pub scores: Vec<PointScore>,
    /// Points that no other one beats in claims that hold and in the error of the fitted numbers: their
    /// places, from 1; 0 is the reference. Most claims first.
    pub pareto: Vec<usize>,
    /// Pairs of claims of which each holds somewhere, and both nowhere.
    pub exclusions: Vec<ExcludedClaims>,
    /// What each key changes.
    pub effects: Vec<KeyEffect>,
    /// Whether points that are chosen by some of the numbers are nearer in the others as well.
    pub checks: Vec<FitCheck>,
}

/// How far a point agrees with the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PointScore {
    /// Its place, from 1; 0 is the reference.
    pub point: usize,
    /// Claims that hold.
    pub claims_held: usize,
    /// Its claims.
    pub claims: usize,
    /// Printed numbers within 10 %.
    pub numbers_within_10_percent: usize,
    /// Mean error of the numbers that choose points, in percent of the printed ones. One that is not measured
    /// or more than 100 % off counts as 100 %. None without such numbers.
    pub fitted_error_percent: Option<f64>,
    /// The same of those that judge.
    pub judging_error_percent: Option<f64>,
}

/// Two claims that hold at no point together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExcludedClaims {
    /// The ids of both.
    pub claims: [String; 2],
    /// Points at which each holds.
    pub holds: [usize; 2],
    /// Points at which both would hold if they had nothing to do with each other.
    pub by_chance: f64,
}

/// The main effect of a key on a claim, or on the error of all printed numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyEffect {
    /// The key.
    pub key: String,
    /// The claim; none: the mean error of all printed numbers.
    pub claim: Option<String>,
    /// What is compared: values of the key, or the halves of its range, in their order.
    pub values: Vec<String>,
    /// The points at which the claim holds, in percent; or the mean error in percent.
    pub percent: Vec<f64>,
    /// The largest difference is more than chance explains: more than two standard errors.
    pub clear: bool,
}

/// The point that some numbers choose, judged by the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FitCheck {
    /// The fitted numbers choose; otherwise the judging ones, to see it the other way round.
    pub chosen_by_fitted: bool,
    /// The place of the point.
    pub point: usize,
    /// Its error over the numbers that chose it, and that of the reference, in percent.
    pub chosen_error_percent: [f64; 2],
    /// The same over the other numbers.
    pub other_error_percent: [f64; 2],
}

impl FitCheck {
    /// The point is nearer than the reference in the numbers that did not choose it as well.
    pub fn generalises(&self) -> bool {
        self.other_error_percent[0] < self.other_error_percent[1]
    }
}

impl TradeOffs {
    /// Compares the points. `is_fitted` says of a row whether it chooses points.
    pub fn new(
        keys: &[SearchedKey],
        reference: &Reproduction,
        points: &[TriedPoint],
        is_fitted: impl Fn(&str) -> bool,
    ) -> Self {
        let numbers = reach::numbers(reference, points, &is_fitted);
        let claims = reach::claims(reference, points);
        let score = |(place, of): (usize, &Reproduction)| score(place, of, &numbers);
        let scores: Vec<PointScore> = with_result(points).map(score).collect();
        let reference = score((0, reference));
        let most_numbers_at_once = scores.iter().map(|s| s.numbers_within_10_percent).max().unwrap_or(0);
        TradeOffs {
            most_numbers_at_once,
            pareto: pareto(&reference, &scores),
            exclusions: exclusions(&claims, points),
            effects: effects(keys, &claims, &numbers, points),
            checks: [true, false].into_iter().filter_map(|by| check(by, &reference, &scores)).collect(),
            numbers,
            claims,
            reference,
            scores,
        }
    }
}

/// The error of a number, as a part of the printed one.
fn error(paper: f64, measured: Option<f64>) -> f64 {
    match measured {
        Some(measured) if paper == 0.0 => f64::from(u8::from(!agrees(paper, Some(measured)))),
        Some(measured) => (measured / paper - 1.0).abs().min(MAX_ERROR),
        None => MAX_ERROR,
    }
}

/// The mean error in percent of the numbers for which `counts`; none without them.
fn mean_error(
    of: &Reproduction,
    numbers: &[NumberReach],
    counts: impl Fn(&NumberReach) -> bool,
) -> Option<f64> {
    let errors = numbers.iter().filter(|n| counts(n)).map(|n| error(n.paper, reach::measured(of, &n.id)));
    let count = errors.clone().count();
    (count > 0).then(|| errors.sum::<f64>() * 100.0 / count as f64)
}

fn score(point: usize, of: &Reproduction, numbers: &[NumberReach]) -> PointScore {
    PointScore {
        point,
        claims_held: of.claims.iter().filter(|claim| claim.holds).count(),
        claims: of.claims.len(),
        numbers_within_10_percent: numbers
            .iter()
            .filter(|n| agrees(n.paper, reach::measured(of, &n.id)))
            .count(),
        fitted_error_percent: mean_error(of, numbers, |n| n.fitted),
        judging_error_percent: mean_error(of, numbers, |n| !n.fitted),
    }
}

fn pareto(reference: &PointScore, scores: &[PointScore]) -> Vec<usize> {
    let all: Vec<&PointScore> = std::iter::once(reference).chain(scores).collect();
    let error = |s: &PointScore| s.fitted_error_percent.unwrap_or(0.0);
    let beats = |a: &PointScore, b: &PointScore| {
        let (more, less) = (a.claims_held.cmp(&b.claims_held), error(a).total_cmp(&error(b)));
        more.is_ge() && less.is_le() && (more.is_gt() || less.is_lt())
    };
    let mut best: Vec<&PointScore> =
        all.iter().filter(|s| !all.iter().any(|other| beats(other, s))).copied().collect();
    best.sort_by(|a, b| b.claims_held.cmp(&a.claims_held).then(a.point.cmp(&b.point)));
    best.into_iter().map(|s| s.point).collect()
}

fn exclusions(claims: &[ClaimReach], points: &[TriedPoint]) -> Vec<ExcludedClaims> {
    let mut all = Vec::new();
    for (n, first) in claims.iter().enumerate().filter(|(_, claim)| claim.holds > 0) {
        for second in claims.iter().skip(n + 1).filter(|claim| claim.holds > 0) {
            let both =
                |of: &Reproduction| Some((reach::holds(of, &first.id)?, reach::holds(of, &second.id)?));
            let pairs: Vec<(bool, bool)> = with_result(points).filter_map(|(_, of)| both(of)).collect();
            let count = |of: fn(&(bool, bool)) -> bool| pairs.iter().filter(|pair| of(pair)).count();
            let holds = [count(|pair| pair.0), count(|pair| pair.1)];
            if count(|pair| pair.0 && pair.1) > 0 || holds.contains(&0) {
                continue;
            }
            let by_chance = holds[0] as f64 * holds[1] as f64 / pairs.len().max(1) as f64;
            all.push(ExcludedClaims { claims: [first.id.clone(), second.id.clone()], holds, by_chance });
        }
    }
    all.sort_by(|a, b| b.by_chance.total_cmp(&a.by_chance));
    all
}

/// The groups of points that differ in a key: what they have, and which values belong to them.
fn groups(values: &[&KeyValue]) -> Vec<(String, Vec<bool>)> {
    let mut distinct: Vec<&KeyValue> = Vec::new();
    for value in values {
        if !distinct.iter().any(|known| known.text == value.text) {
            distinct.push(value);
        }
    }
    distinct.sort_by(|a, b| a.level.unwrap_or(0.0).total_cmp(&b.level.unwrap_or(0.0)));
    if distinct.len() <= MAX_WORDS || distinct.iter().any(|value| value.level.is_none()) {
        let of =
            |one: &&KeyValue| (one.text.clone(), values.iter().map(|value| value.text == one.text).collect());
        return distinct.iter().map(of).collect();
    }
    let middle = distinct.get(distinct.len() / 2);
    let Some((text, level)) = middle.and_then(|value| Some((&value.text, value.level?))) else {
        return Vec::new();
    };
    let below = |value: &&KeyValue| value.level.is_some_and(|l| l < level);
    vec![
        (format!("below {text}"), values.iter().map(below).collect()),
        (format!("from {text} on"), values.iter().map(|value| !below(value)).collect()),
    ]
}

/// Compares the means of groups of `measured` (a number for each point; none: it has none).
fn compared(groups: &[(String, Vec<bool>)], measured: &[Option<f64>]) -> Option<(Vec<f64>, bool)> {
    let mut means = Vec::new();
    for (_, members) in groups {
        let all: Vec<f64> =
            members.iter().zip(measured).filter(|(is_in, _)| **is_in).filter_map(|(_, m)| *m).collect();
        if all.is_empty() {
            return None;
        }
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let squares: f64 = all.iter().map(|m| (m - mean) * (m - mean)).sum();
        means.push((mean, squares, n));
    }
    let (low, high) = (
        means.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0))?,
        means.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?,
    );
    // The variance of both groups together: a group in which all agree would have none.
    let overall = (low.0 * low.2 + high.0 * high.2) / (low.2 + high.2);
    let squared = |mean: f64| (mean - overall) * (mean - overall);
    let between = squared(low.0) * low.2 + squared(high.0) * high.2;
    let variance = (low.1 + high.1 + between) / (low.2 + high.2 - 1.0).max(1.0);
    let standard_error = (variance * (1.0 / low.2 + 1.0 / high.2)).sqrt();
    let clear = high.0 - low.0 > CLEAR * standard_error;
    Some((means.into_iter().map(|(mean, ..)| mean).collect(), clear))
}

fn effects(
    keys: &[SearchedKey],
    claims: &[ClaimReach],
    numbers: &[NumberReach],
    points: &[TriedPoint],
) -> Vec<KeyEffect> {
    let good: Vec<(&TriedPoint, &Reproduction)> =
        points.iter().filter_map(|point| Some((point, point.outcome.as_ref().ok()?))).collect();
    let mut all = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        let values: Vec<&KeyValue> = good.iter().filter_map(|(point, _)| point.values.get(n)).collect();
        let groups = groups(&values);
        let mut add = |claim: Option<&ClaimReach>, measured: Vec<Option<f64>>| {
            if groups.len() > 1
                && let Some((percent, clear)) = compared(&groups, &measured)
            {
                let claim = claim.map(|claim| claim.id.clone());
                let values = groups.iter().map(|(name, _)| name.clone()).collect();
                all.push(KeyEffect { key: key.name(), claim, values, percent, clear });
            }
        };
        add(None, good.iter().map(|(_, of)| mean_error(of, numbers, |_| true)).collect());
        // A claim that always or never holds depends on no key.
        for claim in claims.iter().filter(|claim| claim.holds > 0 && claim.holds < claim.points) {
            let percent = |holds: bool| if holds { 100.0 } else { 0.0 };
            add(Some(claim), good.iter().map(|(_, of)| reach::holds(of, &claim.id).map(percent)).collect());
        }
    }
    all
}

fn check(chosen_by_fitted: bool, reference: &PointScore, scores: &[PointScore]) -> Option<FitCheck> {
    let both = |s: &PointScore| {
        let (fitted, judging) = (s.fitted_error_percent?, s.judging_error_percent?);
        Some(if chosen_by_fitted { [fitted, judging] } else { [judging, fitted] })
    };
    let all = scores.iter().filter_map(|s| Some((s.point, both(s)?)));
    let (point, errors) = all.min_by(|(_, a), (_, b)| a[0].total_cmp(&b[0]))?;
    let reference = both(reference)?;
    Some(FitCheck {
        chosen_by_fitted,
        point,
        chosen_error_percent: [errors[0], reference[0]],
        other_error_percent: [errors[1], reference[1]],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_report::{ReproductionClaim, ReproductionRow};

    fn key(name: &str) -> SearchedKey {
        SearchedKey { part: "x".into(), key: name.into(), range: String::new(), reason: None }
    }

    /// Two numbers that the paper prints as 100, and claims `a`, `b` and `c`.
    fn made(numbers: [f64; 2], claims: [bool; 3]) -> Reproduction {
        let row = |(id, value): (&str, f64)| ReproductionRow {
            id: id.into(),
            quantity: id.into(),
            unit: String::new(),
            paper: Some(100.0),
            measured: Some(value).filter(|v| v.is_finite()),
            assumptions: Vec::new(),
        };
        let claim = |(id, holds): (&str, bool)| ReproductionClaim {
            id: id.into(),
            text: id.into(),
            holds,
            evidence: String::new(),
        };
        Reproduction {
            paper: "p".into(),
            rows: ["fit/n", "judge/n"].into_iter().zip(numbers).map(row).collect(),
            claims: ["a", "b", "c"].into_iter().zip(claims).map(claim).collect(),
            assumed: None,
            comparison: None,
        }
    }

    fn point(level: f64, word: &str, outcome: Result<Reproduction, String>) -> TriedPoint {
        let values = vec![
            KeyValue { text: format!("{level}"), level: Some(level) },
            KeyValue { text: word.into(), level: None },
        ];
        TriedPoint { values, outcome }
    }

    /// `a` holds with small levels and `b` with large ones; the number of the fit grows with the level.
    fn tried() -> TradeOffs {
        let mut points: Vec<TriedPoint> = (0..20)
            .map(|n| {
                let word = if n % 2 == 0 { "x" } else { "y" };
                let (fit, judge) = (60.0 + f64::from(n) * 3.0, 150.0 - f64::from(n));
                point(f64::from(n), word, Ok(made([fit, judge], [n < 10, n >= 10, true])))
            })
            .collect();
        points.insert(3, point(2.5, "x", Err("too slow".into())));
        let reference = made([80.0, 100.0], [true, false, true]);
        TradeOffs::new(&[key("level"), key("word")], &reference, &points, |id| id.starts_with("fit/"))
    }

    /// Breaks: how far a number can be reached, at which point it is nearest, and how many points a claim
    /// has; a point without a result counts, or shifts the places of the others.
    #[test]
    fn reach() {
        let all = tried();
        let fit = &all.numbers[0];
        assert_eq!((fit.min, fit.max, fit.points, fit.within_10_percent), (Some(60.0), Some(117.0), 20, 7));
        // 60 + 13 * 3 = 99, at the fourteenth of those with a result.
        assert_eq!((fit.nearest, fit.nearest_point, fit.reference), (Some(99.0), Some(15), Some(80.0)));
        assert!(fit.fitted && !all.numbers[1].fitted);
        let held: Vec<_> = all.claims.iter().map(|c| (c.holds, c.points, c.reference)).collect();
        assert_eq!(held, [(10, 20, Some(true)), (10, 20, Some(false)), (20, 20, Some(true))]);
        assert_eq!((all.scores.len(), all.most_numbers_at_once), (20, 1));
    }

    /// Breaks: claims that exclude each other are not named, or others are.
    #[test]
    fn exclusions_are_pairs_that_never_meet() {
        let all = tried();
        let [only] = all.exclusions.as_slice() else { panic!("{:?}", all.exclusions) };
        assert_eq!((only.claims[0].as_str(), only.claims[1].as_str()), ("a", "b"));
        assert_eq!((only.holds, only.by_chance), ([10, 10], 5.0));
    }

    /// Breaks: a point that another one beats is called optimal, numbers that judge choose points, or the
    /// reference is left out.
    #[test]
    fn no_point_beats_a_pareto_point() {
        let all = tried();
        // All hold two claims, so the nearest fitted number decides.
        assert_eq!(all.pareto, [15]);
        let reference = PointScore { claims_held: 3, ..all.reference };
        assert_eq!(pareto(&reference, &all.scores), [0, 15]);
    }

    /// Breaks: an effect is overlooked, or chance is taken for one.
    #[test]
    fn main_effects() {
        let all = tried();
        let of = |key: &str, claim: &str| {
            let found = all.effects.iter().find(|e| e.key == key && e.claim.as_deref() == Some(claim));
            found.unwrap_or_else(|| panic!("{:?}", all.effects)).clone()
        };
        let level = of("x.level", "a");
        assert_eq!((level.percent.as_slice(), level.clear), (&[100.0, 0.0][..], true));
        assert_eq!(level.values, ["below 10", "from 10 on"]);
        let word = of("x.word", "a");
        assert_eq!((word.values.as_slice(), word.clear), (&["x".to_owned(), "y".to_owned()][..], false));
        assert!(!all.effects.iter().any(|e| e.claim.as_deref() == Some("c")), "it always holds");
    }

    /// Breaks: a fit that is bought with the other numbers passes for a better world.
    #[test]
    fn the_others_judge_a_fit() {
        let all = tried();
        let [fitted, judging] = all.checks.as_slice() else { panic!("{:?}", all.checks) };
        assert!(fitted.chosen_by_fitted && !judging.chosen_by_fitted);
        assert_eq!(fitted.point, 15);
        assert!((fitted.chosen_error_percent[0] - 1.0).abs() < 1e-9 && !fitted.generalises(), "{fitted:?}");
        assert_eq!(fitted.other_error_percent.map(f64::round), [37.0, 0.0]);
    }

    /// Breaks: a number that a point does not have, or that is far off, decides about all others.
    #[test]
    fn an_error_is_at_most_all_of_the_number() {
        assert_eq!(
            [error(100.0, None), error(100.0, Some(900.0)), error(100.0, Some(80.0))]
                .map(|e| (e * 100.0).round()),
            [100.0, 100.0, 20.0]
        );
        assert_eq!([error(0.0, Some(0.2)), error(0.0, Some(3.0))], [0.0, 1.0]);
    }
}
