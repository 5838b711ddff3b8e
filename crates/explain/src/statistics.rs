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

/// How likely a normally distributed value lies so many standard deviations above its mean, or more.
pub(crate) fn above(deviations: f64) -> f64 {
    0.5 * libm::erfc(deviations / core::f64::consts::SQRT_2)
}

/// How likely the mean of `n` values, each anywhere between 0 and 1, is this high or higher. An upper bound,
/// which is exact where they are all near 1.
pub(crate) fn mean_at_least(mean: f64, n: usize) -> f64 {
    let below = n as f64 * (1.0 - mean).max(0.0);
    (1..=n).fold(1.0, |chance, k| chance * below / k as f64).min(1.0)
}

/// How likely chance does two things of these likelihoods, or any other two whose product is as small
/// (R. A. Fisher). A likelihood of 1 tells nothing, so that the other stands alone.
pub(crate) fn both_by_chance(a: f64, b: f64) -> f64 {
    if a.max(b) >= 1.0 {
        return a.min(b);
    }
    let product = a * b;
    if product > 0.0 { product * (1.0 - libm::log(product)) } else { 0.0 }
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

    /// Breaks: what chance does often passes for something that it never does, or the reverse.
    #[test]
    fn the_tails_of_means_are_right() {
        assert!((above(0.0) - 0.5).abs() < 1e-12);
        assert!((above(3.0) - 0.001_349_898).abs() < 1e-8);
        assert!((mean_at_least(0.9, 1) - 0.1).abs() < 1e-12);
        assert!((mean_at_least(0.75, 2) - 0.125).abs() < 1e-12, "a triangle of half of a half");
        assert_eq!(mean_at_least(0.5, 10), 1.0);
        assert!(mean_at_least(0.98, 4) < 1e-5);
        assert_eq!(both_by_chance(1.0, 1.0), 1.0);
        assert_eq!(both_by_chance(0.02, 1.0), 0.02);
        assert!(
            (both_by_chance(0.05, 0.05) - 0.017_478_7).abs() < 1e-6,
            "chi-squared, four degrees of freedom"
        );
    }
}
