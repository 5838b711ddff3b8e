//! Shrinking: the fewest impairments and the roundest numbers with which a path is still about as bad.

use super::space::{DIMENSIONS, Dimension, Gene, PathPoint};
use super::{Elite, FoundPath, Judge, NO_GAP, TimeOver, Verdict, WORST};
use crate::experiment::MeasureError;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A simpler path keeps this part of the gap.
const KEEPS: f64 = 0.9;
/// More are shrunk than are shown: several may become the same.
const SPARE: usize = 2;

/// The worst paths, shrunk, and how many are not, or only in part, because `go_on` said no or the time was
/// over; those that have become the same kind count once.
pub(super) fn worst(
    elites: Vec<&Elite>,
    judge: &Judge<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    is_over: &TimeOver<'_>,
) -> Result<(Vec<FoundPath>, usize), MeasureError> {
    let elites = elites.into_iter().filter(|e| e.found.score.gap > NO_GAP).take(WORST * SPARE);
    // In their order, so that the worst are shrunk if the time is short.
    let shrunk: Result<Vec<(usize, FoundPath, bool)>, _> = elites
        .enumerate()
        .par_bridge()
        .map(|(n, elite)| {
            shrink(&elite.found, judge, go_on, is_over).map(|(found, is_whole)| (n, found, is_whole))
        })
        .collect();
    let mut shrunk = shrunk?;
    shrunk.sort_by_key(|(n, ..)| *n);
    let unshrunk = shrunk.iter().filter(|(_, _, is_whole)| !is_whole).count();
    let mut kinds: BTreeMap<String, FoundPath> = BTreeMap::new();
    for (_, found, _) in shrunk {
        let kind = found.point.kind();
        if kinds.get(&kind).is_none_or(|known| known.score.gap < found.score.gap) {
            kinds.insert(kind, found);
        }
    }
    let mut all: Vec<FoundPath> = kinds.into_values().collect();
    all.sort_by(|a, b| b.score.gap.total_cmp(&a.score.gap));
    Ok((all, unshrunk))
}

/// A path, shrunk as far as `go_on` and the time allow, and whether that is to the end.
fn shrink(
    found: &FoundPath,
    judge: &Judge<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    is_over: &TimeOver<'_>,
) -> Result<(FoundPath, bool), MeasureError> {
    let least = found.score.gap * KEEPS;
    let mut best = found.clone();
    // None: the time is over.
    let attempt = |best: &mut FoundPath, point: PathPoint| -> Result<Option<bool>, MeasureError> {
        if !go_on() {
            return Ok(None);
        }
        match judge.judge(&point, 1, is_over)? {
            Verdict::TimeOver => Ok(None),
            Verdict::Known(Some(score)) if score.gap >= least => {
                *best = FoundPath::new(point, *score);
                Ok(Some(true))
            }
            Verdict::Known(_) => Ok(Some(false)),
        }
    };
    // An impairment may be there only because of another: until none goes.
    loop {
        let mut changed = false;
        for gene in best.point.impairments().collect::<Vec<_>>() {
            let without = best.point.clone().with(gene, None);
            let Some(is_as_bad) = attempt(&mut best, without)? else { return Ok((best, false)) };
            changed |= is_as_bad;
        }
        if !changed {
            break;
        }
    }
    for d in best.point.effective().collect::<Vec<_>>() {
        for value in rounder(d, best.point.of(d.gene)) {
            if value == best.point.of(d.gene) {
                break;
            }
            let rounded = best.point.clone().with(d.gene, value);
            let Some(is_as_bad) = attempt(&mut best, rounded)? else { return Ok((best, false)) };
            if is_as_bad {
                break;
            }
        }
    }
    Ok((best, true))
}

/// Rounder values near `value`, the roundest first.
fn rounder(d: &Dimension, value: f64) -> Vec<f64> {
    if !d.words.is_empty() {
        return Vec::new();
    }
    let usual = d.usual.filter(|_| !matches!(d.gene, Gene::Rate | Gene::Rtt));
    let power = libm::pow(10.0, libm::log10(value.abs().max(1e-12)).floor());
    let near = |steps: &[f64]| {
        let by = |n: &f64| libm::log((n * power) / value).abs();
        steps.iter().copied().min_by(|a, b| by(a).total_cmp(&by(b))).map(|n| n * power)
    };
    let candidates = usual
        .into_iter()
        .chain(near(&[1.0, 2.0, 5.0, 10.0]))
        .chain([d.rounded(value, 1), d.rounded(value, 2)]);
    let inside = |v: &f64| *v >= d.bounds.0 && *v <= d.bounds.1;
    let all = candidates.map(|v| d.rounded(v, 3)).filter(inside);
    debug_assert!(DIMENSIONS.len() > d.gene as usize);
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: numbers of found paths are not round, or leave the bounds.
    #[test]
    fn round_numbers() {
        let of = |gene: Gene, value| rounder(&DIMENSIONS[gene as usize], value);
        assert_eq!(of(Gene::Rate, 87.3), [100.0, 90.0, 87.0]);
        assert_eq!(of(Gene::Rate, 187.3), [200.0, 200.0, 190.0]);
        assert_eq!(of(Gene::Queue, 2.34), [1.0, 2.0, 2.0, 2.3]);
        assert_eq!(of(Gene::BitErrors, 4.2e-7), [5e-7, 4e-7, 4.2e-7]);
        assert_eq!(of(Gene::Thinning, 7.0), [5.0, 7.0, 7.0]);
        assert!(of(Gene::Discipline, 2.0).is_empty());
    }
}
