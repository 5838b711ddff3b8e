//! Numbers on a page: short, and exact enough for any zoom.

use serde_json::{Value, json};

/// Digits that are kept of values that are no integers.
const DIGITS: i32 = 10;

/// Values as a power of ten and the differences of integers: `{"e": -3, "d": [1, 1, -3]}` is 0.001, 0.002,
/// -0.001. Integers stay exact. Others are rounded to ten digits of the largest. Values are finite.
pub(crate) fn numbers(values: &[f64]) -> Value {
    let largest = values.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
    let whole = largest < 9e15 && values.iter().all(|v| v.fract() == 0.0);
    let exponent = if whole || largest == 0.0 { 0 } else { exponent(largest) };
    let scale = libm::pow(10.0, f64::from(-exponent));
    let mut before = 0i64;
    let differences: Vec<i64> = values
        .iter()
        .map(|v| {
            // Below 9e15 in any case, so it fits.
            let now = libm::round(v * scale) as i64;
            let difference = now.saturating_sub(before);
            before = now;
            difference
        })
        .collect();
    json!({ "e": exponent, "d": differences })
}

/// The exponent of the quantum for values up to `largest`.
fn exponent(largest: f64) -> i32 {
    let digits = (libm::floor(libm::log10(largest)) as i32).saturating_add(1);
    digits.saturating_sub(DIGITS).clamp(-18, 300)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(value: &Value) -> Vec<f64> {
        let quantum = libm::pow(10.0, value["e"].as_i64().unwrap() as f64);
        let mut sum = 0i64;
        let differences = value["d"].as_array().unwrap().iter();
        differences
            .map(|d| {
                sum += d.as_i64().unwrap();
                sum as f64 * quantum
            })
            .collect()
    }

    /// Breaks: values on a page are those of the run.
    #[test]
    fn numbers_survive() {
        let counts = [0.0, 3.0, 4_000_000_000_000.0, 2.0];
        assert_eq!(decoded(&numbers(&counts)), counts);
        let odd = [0.1, 1e-7, 9.999_999, -3.25];
        for (is, was) in decoded(&numbers(&odd)).iter().zip(odd) {
            assert!((is - was).abs() <= 5e-8, "{is} {was}");
        }
        for huge in [1e300, 1e18, 1e-300] {
            let is = decoded(&numbers(&[huge]))[0];
            assert!((is - huge).abs() <= huge.max(1e-17) * 1e-6, "{is} {huge}");
        }
        assert!(decoded(&numbers(&[])).is_empty());
    }
}
