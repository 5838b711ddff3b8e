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

/// The two-sided 95 % quantile of Student's t for so many degrees of freedom (0 counts as 1). Beyond 30 it is
/// that of the normal distribution, at most 2 % less.
fn student_t(freedom: usize) -> f64 {
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    T.get(freedom.saturating_sub(1)).copied().unwrap_or(1.960)
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
    /// standard deviation sqrt(2.5), and t(4) = 2.776.
    #[test]
    fn the_interval_is_students() {
        let s = Summary::of([1.0, 2.0, 3.0, 4.0, 5.0, f64::NAN]);
        assert_eq!((s.mean, s.runs), (3.0, 5));
        assert!((s.ci95 - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-12, "{s:?}");
        assert_eq!((s.min, s.max, s.sd), (1.0, 5.0, 2.5f64.sqrt()));
        let one = Summary::of([7.0]);
        assert_eq!((one.mean, one.ci95, one.runs, one.sd, one.max), (7.0, 0.0, 1, 0.0, 7.0));
        assert_eq!(Summary::of([7.0]).estimate().range, None);
        assert!(Summary::of([]).mean.is_nan());
        assert_eq!((s.text(1), Summary::of([]).text(1)), ("3.0 ± 2.0".to_owned(), "–".to_owned()));
        let texts =
            [Summary::of([3.0, 1.0]), Summary::of([2.0, 2.0]), Summary::of([])].map(|s| s.range_text());
        assert_eq!(texts, ["2 (1-3)", "2", "–"]);
        assert!(student_t(10) > student_t(30) && student_t(30) > student_t(31));
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
