//! What is asked of several values together.

/// The median of those that are finite, the upper of two; 0 if there are none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.retain(|v| v.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// How likely `least` or more of `n` come true of which each does with chance `p`.
pub(crate) fn at_least(least: usize, n: usize, p: f64) -> f64 {
    if least == 0 || p >= 1.0 {
        return 1.0;
    }
    // The probability of none, and from each number to the next.
    let mut exactly = libm::pow(1.0 - p, n as f64);
    let mut fewer = 0.0;
    for k in 0..least {
        fewer += exactly;
        exactly *= (n - k) as f64 / (k + 1) as f64 * p / (1.0 - p);
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a few losses that lie far back in bursts by chance make a small queue.
    #[test]
    fn the_binomial_tail_is_right() {
        assert_eq!(at_least(0, 5, 0.3), 1.0);
        assert!((at_least(1, 2, 0.5) - 0.75).abs() < 1e-12);
        assert!((at_least(6, 10, 0.4) - 0.166_238_6).abs() < 1e-6);
        assert!(at_least(40, 40, 0.4) < 1e-12);
    }
}
