//! The points of a study: every combination of the axes' values, or samples of them.

use crate::axis::Axis;
use crate::error::StudyError;
use crate::sample::{MAX_SAMPLES, Sampling};
use std::collections::BTreeMap;

/// Most axes.
pub const MAX_AXES: usize = 32;

/// The points of a study, by number. Each has a value of every axis.
#[derive(Clone, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
    /// The values of each axis, in order; for samples those that occur.
    values: Vec<Vec<String>>,
    /// The samples; none: all combinations.
    samples: Option<Vec<Vec<String>>>,
}

impl Grid {
    /// The points of `axes`. `seed` draws the samples of a Latin hypercube.
    ///
    /// # Errors
    /// An axis that is there twice or needs samples, or too many axes.
    pub fn new(axes: Vec<Axis>, sampling: Option<Sampling>, seed: u64) -> Result<Grid, StudyError> {
        let invalid = |text: String| Err(StudyError::Invalid(text));
        if axes.len() > MAX_AXES {
            return invalid(format!("{} axes; the limit is {MAX_AXES}", axes.len()));
        }
        for (n, axis) in axes.iter().enumerate() {
            if axes[..n].iter().any(|other| other.path == axis.path) {
                return invalid(format!("{} is varied twice: give all its values at once", axis.path));
            }
            if axis.path == "seed" {
                return invalid("the seed is varied by --seeds N".into());
            }
        }
        let Some(sampling) = sampling else {
            if let Some(axis) = axes.iter().find(|axis| axis.uncounted()) {
                return invalid(format!(
                    "{}: the range does not say how many values: write A..B*7 or A..B*log7, or \
                     draw samples with --samples",
                    axis.path
                ));
            }
            let values = axes.iter().map(Axis::grid).collect();
            return Ok(Grid { axes, values, samples: None });
        };
        if axes.is_empty() {
            return invalid("--samples needs something to vary".into());
        }
        let points = sampling.points(axes.len(), seed).map_err(StudyError::Invalid)?;
        let rounded = |steps: u64| -> Vec<Vec<String>> {
            let at =
                |point: &Vec<f64>| axes.iter().zip(point).map(|(a, share)| a.at(*share, steps)).collect();
            let mut samples: Vec<Vec<String>> = points.iter().map(at).collect();
            // Axes of few words give the same point more than once.
            let mut seen = BTreeMap::new();
            samples.retain(|point| seen.insert(point.clone(), ()).is_none());
            samples
        };
        let samples = match sampling {
            // Samples in neighbouring cells can be much closer than the cells are wide.
            Sampling::LatinHypercube(count) => {
                let samples = rounded(count);
                let finer = (samples.len() < points.len()).then(|| rounded(count.saturating_mul(1_000)));
                finer.filter(|finer| finer.len() > samples.len()).unwrap_or(samples)
            }
            // The same digits for any number of samples, so that a longer one contains the shorter.
            Sampling::Sobol(_) => rounded(MAX_SAMPLES / 10),
        };
        let values = (0..axes.len()).map(|axis| {
            let mut values: Vec<String> = Vec::new();
            let mut seen = BTreeMap::new();
            for point in &samples {
                if seen.insert(point[axis].clone(), ()).is_none() {
                    values.push(point[axis].clone());
                }
            }
            values
        });
        Ok(Grid { values: values.collect(), axes, samples: Some(samples) })
    }

    /// True if all values of this axis are from logarithmic ranges.
    pub fn is_logarithmic(&self, axis: usize) -> bool {
        self.axes.get(axis).is_some_and(Axis::is_logarithmic)
    }

    /// The paths that are varied.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|axis| axis.path.as_str())
    }

    /// The values of each axis, in order.
    pub fn values(&self) -> &[Vec<String>] {
        &self.values
    }

    /// How many points there are; `u64::MAX` if that is too small a number.
    pub fn len(&self) -> u64 {
        match &self.samples {
            Some(samples) => samples.len() as u64,
            None => self.values.iter().fold(1, |n: u64, values| n.saturating_mul(values.len() as u64)),
        }
    }

    /// True if there are no points.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values of point `index`. The last axis changes fastest.
    pub fn point(&self, index: u64) -> Vec<String> {
        if let Some(samples) = &self.samples {
            return usize::try_from(index).ok().and_then(|i| samples.get(i)).cloned().unwrap_or_default();
        }
        let mut rest = index;
        let mut point: Vec<String> = self
            .values
            .iter()
            .rev()
            .map(|values| {
                let count = values.len().max(1) as u64;
                let value = values.get((rest % count) as usize).cloned().unwrap_or_default();
                rest /= count;
                value
            })
            .collect();
        point.reverse();
        point
    }

    /// A table from values to the number of their point.
    pub fn index(&self) -> GridIndex {
        let places = |values: &Vec<String>| values.iter().cloned().zip(0..).collect();
        GridIndex {
            places: self.values.iter().map(places).collect(),
            samples: self.samples.as_ref().map(|samples| samples.iter().cloned().zip(0..).collect()),
        }
    }
}

/// Finds points by their values.
#[derive(Clone, Debug)]
pub struct GridIndex {
    places: Vec<BTreeMap<String, u64>>,
    samples: Option<BTreeMap<Vec<String>, u64>>,
}

impl GridIndex {
    /// The number of the point with these values; none if there is none.
    pub fn find(&self, values: &[String]) -> Option<u64> {
        if let Some(samples) = &self.samples {
            return samples.get(values).copied();
        }
        if values.len() != self.places.len() {
            return None;
        }
        let digits = self.places.iter().zip(values);
        digits.into_iter().try_fold(0, |n: u64, (places, value)| {
            Some(n.saturating_mul(places.len() as u64).saturating_add(*places.get(value)?))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| Axis::parse(text).unwrap()).collect()
    }

    /// Breaks: a combination that is left out or made twice, or rows that lose their point.
    #[test]
    fn every_combination_is_one_point() {
        let grid = Grid::new(axes(&["a=1,2,3", "b=x,y", "c=1..5*5"]), None, 1).unwrap();
        assert_eq!(grid.len(), 30);
        let points: Vec<_> = (0..30).map(|n| grid.point(n)).collect();
        assert_eq!(
            (&points[0], &points[1]),
            (&["1", "x", "1"].map(String::from).to_vec(), &["1", "x", "2"].map(String::from).to_vec())
        );
        let index = grid.index();
        for (n, point) in points.iter().enumerate() {
            assert_eq!(index.find(point), Some(n as u64));
        }
        assert_eq!(index.find(&["4".into(), "x".into(), "1".into()]), None);
        assert_eq!(Grid::new(Vec::new(), None, 1).unwrap().len(), 1, "nothing varied is one point");
    }

    /// Breaks: samples of words alone are repeated, or cannot be found again.
    #[test]
    fn samples_are_points() {
        let all = axes(&["a=1ms..9ms", "b=x,y"]);
        let grid = Grid::new(all, Some(Sampling::LatinHypercube(20)), 3).unwrap();
        assert_eq!(grid.len(), 20);
        let index = grid.index();
        assert!((0..20).all(|n| index.find(&grid.point(n)) == Some(n)));
        let words = Grid::new(axes(&["a=x,y", "b=x,y"]), Some(Sampling::Sobol(64)), 3).unwrap();
        assert_eq!(words.len(), 4);
    }

    /// Breaks: a sample of a narrow range, or a long one, has fewer points than were asked for, because many
    /// round to the same value. A longer Sobol sample does not contain the shorter one.
    #[test]
    fn samples_of_a_narrow_range_are_all_different() {
        for sampling in [Sampling::LatinHypercube(3000), Sampling::Sobol(3000)] {
            for range in ["a=1ms..2ms", "a=100ms..101ms", "a=1Mbit/s..2Mbit/s*log", "a=0.1..0.11"] {
                let grid = Grid::new(axes(&[range]), Some(sampling), 3).unwrap();
                assert_eq!(grid.len(), 3000, "{range} {sampling}");
            }
        }
        let sobol = |count| Grid::new(axes(&["a=5ms..300ms"]), Some(Sampling::Sobol(count)), 3).unwrap();
        let (short, long) = (sobol(5), sobol(5000));
        assert!((0..5).all(|n| short.point(n) == long.point(n)), "{:?}", short.values());
    }

    /// Breaks: a study of other points than were meant.
    #[test]
    fn mistakes_are_refused() {
        for (texts, problem) in [
            (&["a=1,2", "a=3"][..], "varied twice"),
            (&["seed=1,2"], "--seeds"),
            (&["a=1..2"], "how many values"),
        ] {
            let error = Grid::new(axes(texts), None, 1).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
        assert!(Grid::new(Vec::new(), Some(Sampling::Sobol(4)), 1).is_err());
    }

    /// Breaks: 10^30 combinations overflow.
    #[test]
    fn huge_grids_are_counted() {
        let many: Vec<String> = (0..10).map(|n| format!("a{n}=1..1000*1000")).collect();
        let texts: Vec<&str> = many.iter().map(String::as_str).collect();
        let grid = Grid::new(axes(&texts), None, 1).unwrap();
        assert_eq!(grid.len(), u64::MAX);
        assert_eq!(grid.point(0), vec!["1"; 10]);
    }
}
