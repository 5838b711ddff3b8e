//! Statistics: means with confidence intervals, percentiles, fairness.

use farpace_report::ComparedEstimate;
use serde::Serialize;

/// A number over runs that differ by chance, or in a phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); zero for a single run.
    pub ci95: f64,
    /// Runs.
    pub runs: usize,
    /// Standard deviation of the sample (n - 1); zero for a single run.
    #[serde(skip)]
    pub sd: f64,
    /// The smallest value.
    #[serde(skip)]
    pub min: f64,
    /// The largest value.
    #[serde(skip)]
    pub max: f64,
}

impl Summary {
    /// Of all that is finite in `values`. Mean, minimum and maximum are NaN if nothing is.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Summary {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let runs = values.len();
        let n = runs as f64;
        let mean = values.iter().sum::<f64>() / n;
        let min = values.iter().copied().fold(f64::NAN, f64::min);
        let max = values.iter().copied().fold(f64::NAN, f64::max);
        if runs < 2 {
            return Summary { mean, ci95: 0.0, runs, sd: 0.0, min, max };
        }
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let sd = (squares / (n - 1.0)).sqrt();
        Summary { mean, ci95: student_t(runs - 1) * (sd / n.sqrt()), runs, sd, min, max }
    }

    /// For figures: the mean with its interval, without one for a single run.
    pub fn estimate(&self) -> ComparedEstimate {
        let range = (self.runs > 1).then_some((self.mean - self.ci95, self.mean + self.ci95));
        ComparedEstimate { mean: self.mean, range }
    }
    /// For figures: the mean with the smallest and the largest value.
    pub fn with_range(&self) -> ComparedEstimate {
        ComparedEstimate { mean: self.mean, range: Some((self.min, self.max)) }
    }

    /// `9.12 ± 0.03`, or the mean alone if all runs agree.
    pub fn text(&self, decimals: usize) -> String {
        match () {
            () if !self.mean.is_finite() => "–".to_owned(),
            () if self.ci95 == 0.0 => format!("{:.decimals$}", self.mean),
            () => format!("{:.decimals$} ± {:.decimals$}", self.mean, self.ci95),
        }
    }
    /// `581 (579-584)`: mean, smallest and largest, or the mean alone if all runs agree.
    pub fn range_text(&self) -> String {
        match () {
            () if !self.mean.is_finite() => "–".to_owned(),
            () if self.max - self.min < 0.5 => format!("{:.0}", self.mean),
            () => format!("{:.0} ({:.0}-{:.0})", self.mean, self.min, self.max),
        }
    }
}

/// For figures: a value without a range; none if it is not finite.
pub(crate) fn point(mean: f64) -> Option<ComparedEstimate> {
    mean.is_finite().then_some(ComparedEstimate { mean, range: None })
}

/// The two-sided 95 % quantile of Student's t for so many degrees of freedom (0 counts as 1), to 2e-6. Beyond
/// 30 it is the expansion of Fisher and Cornish around the quantile of the normal distribution (Abramowitz
/// and Stegun 26.7.5).
fn student_t(freedom: usize) -> f64 {
    const T: [f64; 30] = [
        12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157, 2.228139,
        2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922, 2.093024, 2.085963,
        2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831, 2.048407, 2.045230, 2.042272,
    ];
    if let Some(t) = T.get(freedom.saturating_sub(1)) {
        return *t;
    }
    const NORMAL: f64 = 1.959_963_985;
    let (z, n) = (NORMAL, freedom as f64);
    let squared = z * z;
    let first = (squared + 1.0) * z / 4.0;
    let second = ((5.0 * squared + 16.0) * squared + 3.0) * z / 96.0;
    let third = (((3.0 * squared + 19.0) * squared + 17.0) * squared - 15.0) * z / 384.0;
    z + (first + (second + third / n) / n) / n
}

/// The smallest of `values` that at least `percent` (0 to 100) of them do not exceed; none of no values.
/// Sorts them.
pub fn percentile(values: &mut [f64], percent: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() as f64 * percent / 100.0).ceil() as usize;
    values.get(rank.max(1) - 1).or(values.last()).copied()
}

/// Jain's index of fairness (RFC 5166 §2.3): 1 for equal shares, 1/n if one of n has everything; 1 if nobody
/// has anything.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|s| s * s).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: means, ranges and confidence intervals of all tables. Worked by hand: values 1 to 5 have the
    /// standard deviation sqrt(2.5), and t(4) = 2.776445.
    #[test]
    fn the_interval_is_students() {
        let s = Summary::of([1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]);
        assert_eq!((s.mean, s.runs), (3.0, 5));
        assert!((s.ci95 - 2.776445 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12, "{s:?}");
        assert_eq!((s.min, s.max, s.sd), (1.0, 5.0, 2.5f64.sqrt()));
        let one = Summary::of([7.0]);
        assert_eq!((one.mean, one.ci95, one.runs, one.sd, one.max), (7.0, 0.0, 1, 0.0, 7.0));
        assert_eq!(Summary::of([7.0]).estimate().range, None);
        assert!(Summary::of([]).mean.is_nan());
        assert_eq!((s.text(1), Summary::of([]).text(1)), ("3.0 ± 2.0".to_owned(), "–".to_owned()));
        let texts =
            [Summary::of([3.0, 1.0]), Summary::of([2.0, 2.0]), Summary::of([])].map(|s| s.range_text());
        assert_eq!(texts, ["2 (1-3)", "2", "–"]);
    }

    /// Breaks: intervals of many runs are too narrow, by 4 % with 32 runs, so that a difference that chance
    /// explains looks real. The quantiles are those of SciPy.
    #[test]
    fn the_quantile_is_students_for_any_number_of_runs() {
        let known = [
            (1, 12.706_205),
            (4, 2.776_445),
            (30, 2.042_272),
            (31, 2.039_513),
            (40, 2.021_075),
            (59, 2.000_995),
            (99, 1.984_217),
            (999, 1.962_341),
            (99_999, 1.959_988),
        ];
        for (freedom, t) in known {
            assert!((student_t(freedom) - t).abs() < 3e-6, "{freedom}: {}", student_t(freedom));
        }
        assert!((1..200).all(|freedom| student_t(freedom) > student_t(freedom + 1)), "it falls");
    }

    /// Breaks: the 95 % queueing delay.
    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 95.0), Some(95.0));
        assert_eq!(percentile(&mut values, 0.0), Some(1.0));
        assert_eq!(percentile(&mut values, 100.0), Some(100.0));
        assert_eq!(percentile(&mut [3.0, 1.0], 95.0), Some(3.0));
        assert_eq!(percentile(&mut [], 95.0), None);
    }

    /// Breaks: what fairness means.
    #[test]
    fn jains_index() {
        assert_eq!(jain(&[5.0, 5.0]), 1.0);
        assert_eq!(jain(&[5.0, 0.0]), 0.5);
        assert!((jain(&[4.0, 2.0]) - 0.9).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), 1.0);
    }
}
