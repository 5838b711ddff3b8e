//! Shrinking: the fewest impairments and the roundest numbers with which a path is still about as bad.

use super::space::{DIMENSIONS, Dimension, Gene, PathPoint};
use super::{Elite, FoundPath, Judge, NO_GAP, PathVerdict, SEEDS, TimeOver, WORST};
use crate::experiment::MeasureError;
use rayon::prelude::*;
use std::collections::BTreeMap;

/// A simpler path keeps this part of the gap.
const KEEPS: f64 = 0.9;
/// More are shrunk than are shown: several may become the same.
const SPARE: usize = 2;

/// What is left of the worst paths.
pub(super) struct Shrunk {
    /// The worst paths, the worst first; those that have become the same kind count once.
    pub(super) worst: Vec<FoundPath>,
    /// Paths that are not, or only in part, repeated and shrunk before the time was over.
    pub(super) unshrunk: usize,
    /// Paths that another seed does not show.
    pub(super) refuted: usize,
}

/// Repeats the worst paths with more seeds, and shrinks them, as long as `go_on` allows it and the time is
/// not over.
pub(super) fn worst(
    elites: Vec<&Elite>,
    judge: &Judge<'_>,
    go_on: &(dyn Fn() -> bool + Sync),
    is_over: &TimeOver<'_>,
) -> Result<Shrunk, MeasureError> {
    let elites = elites.into_iter().filter(|e| e.found.score.gap > NO_GAP).take(WORST * SPARE);
    let shrinker = Shrinker { judge, go_on, is_over };
    // In their order, so that the worst are shrunk if the time is short.
    let all: Result<Vec<(usize, FoundPath, Outcome)>, _> = elites
        .enumerate()
        .par_bridge()
        .map(|(n, elite)| shrinker.shrink(&elite.found).map(|(found, outcome)| (n, found, outcome)))
        .collect();
    let mut all = all?;
    all.sort_by_key(|(n, ..)| *n);
    let count = |of: Outcome| all.iter().filter(|(_, _, outcome)| *outcome == of).count();
    let (unshrunk, refuted) = (count(Outcome::TimeOver), count(Outcome::Refuted));
    let mut kinds: BTreeMap<String, FoundPath> = BTreeMap::new();
    for (_, found, _) in all.into_iter().filter(|(_, _, outcome)| *outcome != Outcome::Refuted) {
        let kind = found.point.kind();
        if kinds.get(&kind).is_none_or(|known| known.mean_gap() < found.mean_gap()) {
            kinds.insert(kind, found);
        }
    }
    let mut worst: Vec<FoundPath> = kinds.into_values().collect();
    worst.sort_by(|a, b| b.mean_gap().total_cmp(&a.mean_gap()));
    Ok(Shrunk { worst, unshrunk, refuted })
}

/// How shrinking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Whole,
    TimeOver,
    Refuted,
}

struct Shrinker<'a> {
    judge: &'a Judge<'a>,
    go_on: &'a (dyn Fn() -> bool + Sync),
    is_over: &'a TimeOver<'a>,
}

impl Shrinker<'_> {
    /// Judges a path with the seeds that it has not, as long as each gap is above `least`.
    fn repeat(&self, found: &mut FoundPath, least: f64) -> Result<Outcome, MeasureError> {
        for seed in (found.gaps.len() as u64 + 1)..=SEEDS {
            match self.judge.judge(&found.point, seed, self.is_over)? {
                PathVerdict::Known(Some(score)) if score.gap > least => found.gaps.push(score.gap),
                PathVerdict::Known(_) => return Ok(Outcome::Refuted),
                PathVerdict::TimeOver => return Ok(Outcome::TimeOver),
            }
        }
        Ok(Outcome::Whole)
    }

    /// Takes `point` in place of `best` if it is about as bad with every seed: chance must not simplify.
    fn attempt(&self, best: &mut FoundPath, point: PathPoint, least: f64) -> Result<Outcome, MeasureError> {
        if !(self.go_on)() {
            return Ok(Outcome::TimeOver);
        }
        let score = match self.judge.judge(&point, 1, self.is_over)? {
            PathVerdict::TimeOver => return Ok(Outcome::TimeOver),
            PathVerdict::Known(Some(score)) if score.gap > NO_GAP => *score,
            PathVerdict::Known(_) => return Ok(Outcome::Refuted),
        };
        let mut found = FoundPath::new(point, score);
        let outcome = self.repeat(&mut found, NO_GAP)?;
        if outcome != Outcome::Whole {
            return Ok(outcome);
        }
        if found.mean_gap() < least {
            return Ok(Outcome::Refuted);
        }
        *best = found;
        Ok(Outcome::Whole)
    }

    fn shrink(&self, found: &FoundPath) -> Result<(FoundPath, Outcome), MeasureError> {
        let mut best = found.clone();
        let repeated = self.repeat(&mut best, NO_GAP)?;
        if repeated != Outcome::Whole {
            return Ok((best, repeated));
        }
        let least = best.mean_gap() * KEEPS;
        // An impairment may be there only because of another: until none goes.
        loop {
            let mut changed = false;
            for gene in best.point.impairments().collect::<Vec<_>>() {
                let without = best.point.clone().with(gene, None);
                match self.attempt(&mut best, without, least)? {
                    Outcome::Whole => changed = true,
                    Outcome::Refuted => {}
                    Outcome::TimeOver => return Ok((best, Outcome::TimeOver)),
                }
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
                match self.attempt(&mut best, rounded, least)? {
                    Outcome::Whole => break,
                    Outcome::Refuted => {}
                    Outcome::TimeOver => return Ok((best, Outcome::TimeOver)),
                }
            }
        }
        Ok((best, Outcome::Whole))
    }
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
