//! How far printed numbers and claims can be reached by the points of a search.

use super::TriedPoint;
use farpace_report::{Reproduction, agrees};
use serde::Serialize;

/// A printed number over all points.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NumberReach {
    /// As in the rows of the reproduction.
    pub id: String,
    /// Description.
    pub quantity: String,
    /// Its unit; empty for plain numbers.
    pub unit: String,
    /// The printed value.
    pub paper: f64,
    /// It chooses points, so that it does not judge them.
    pub fitted: bool,
    /// Without a point; none: not measured.
    pub reference: Option<f64>,
    /// The smallest value of a point.
    pub min: Option<f64>,
    /// The largest value of a point.
    pub max: Option<f64>,
    /// The value nearest to the printed one, and its point.
    pub nearest: Option<f64>,
    /// The place of that point, from 1.
    pub nearest_point: Option<usize>,
    /// Points at which it is within 10 % of the printed value.
    pub within_10_percent: usize,
    /// Points at which it was measured.
    pub points: usize,
}

/// A claim over all points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimReach {
    /// As in the claims of the reproduction.
    pub id: String,
    /// What the paper states.
    pub text: String,
    /// It holds without a point; none: it is not there.
    pub reference: Option<bool>,
    /// Points at which it holds.
    pub holds: usize,
    /// Points that have it.
    pub points: usize,
}

/// Points with a result, each with its place from 1.
pub(super) fn with_result(points: &[TriedPoint]) -> impl Iterator<Item = (usize, &Reproduction)> + Clone {
    points.iter().enumerate().filter_map(|(n, point)| Some((n + 1, point.outcome.as_ref().ok()?)))
}

/// All printed numbers, in the order of the reference and then of the points.
pub(super) fn numbers(
    reference: &Reproduction,
    points: &[TriedPoint],
    is_fitted: impl Fn(&str) -> bool,
) -> Vec<NumberReach> {
    let mut all: Vec<NumberReach> = Vec::new();
    let every = std::iter::once(reference).chain(with_result(points).map(|(_, of)| of));
    for row in every.flat_map(|of| &of.rows) {
        let Some(paper) = row.paper else { continue };
        if all.iter().any(|number| number.id == row.id) {
            continue;
        }
        all.push(NumberReach {
            id: row.id.clone(),
            quantity: row.quantity.clone(),
            unit: row.unit.clone(),
            paper,
            fitted: is_fitted(&row.id),
            reference: measured(reference, &row.id),
            min: None,
            max: None,
            nearest: None,
            nearest_point: None,
            within_10_percent: 0,
            points: 0,
        });
    }
    for number in &mut all {
        for (place, of) in with_result(points) {
            let Some(value) = measured(of, &number.id) else { continue };
            number.points += 1;
            number.within_10_percent += usize::from(agrees(number.paper, Some(value)));
            number.min = Some(number.min.map_or(value, |min| min.min(value)));
            number.max = Some(number.max.map_or(value, |max| max.max(value)));
            let away = |value: f64| (value - number.paper).abs();
            if number.nearest.is_none_or(|nearest| away(value) < away(nearest)) {
                (number.nearest, number.nearest_point) = (Some(value), Some(place));
            }
        }
    }
    all
}

/// A measured value.
pub(super) fn measured(of: &Reproduction, id: &str) -> Option<f64> {
    of.rows.iter().find(|row| row.id == id)?.measured
}

/// True if a claim holds; none: it is not there.
pub(super) fn holds(of: &Reproduction, id: &str) -> Option<bool> {
    of.claims.iter().find(|claim| claim.id == id).map(|claim| claim.holds)
}

/// All claims, in the order of the reference and then of the points.
pub(super) fn claims(reference: &Reproduction, points: &[TriedPoint]) -> Vec<ClaimReach> {
    let mut all: Vec<ClaimReach> = Vec::new();
    let every = std::iter::once(reference).chain(with_result(points).map(|(_, of)| of));
    for claim in every.flat_map(|of| &of.claims) {
        if all.iter().any(|known| known.id == claim.id) {
            continue;
        }
        let verdicts = with_result(points).filter_map(|(_, of)| holds(of, &claim.id));
        all.push(ClaimReach {
            id: claim.id.clone(),
            text: claim.text.clone(),
            reference: holds(reference, &claim.id),
            holds: verdicts.clone().filter(|holds| *holds).count(),
            points: verdicts.count(),
        });
    }
    all
}
