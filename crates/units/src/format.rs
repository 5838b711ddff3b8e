//! Formatting with few digits, for tables, figures and messages. `Display` formats quantities exactly
//! instead.

use crate::{Rate, Span};

impl Rate {
    /// The rate with about three digits: `486 Mbit/s`, `1.25 Gbit/s`.
    pub fn rounded(self) -> String {
        let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
        in_largest_unit(self.bits_per_sec() as f64, units)
    }
}

impl Span {
    /// The span with about three digits: `16.5 s`, `230 ms`.
    pub fn rounded(self) -> String {
        in_largest_unit(self.as_nanos() as f64, [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
    }
}

/// A number with about three digits and without exponent; whole numbers have all their digits. A number that
/// is not finite becomes `–`.
pub fn number(value: f64) -> String {
    let magnitude = value.abs();
    match () {
        () if !value.is_finite() => "–".to_owned(),
        () if value.fract() == 0.0 && magnitude < 1e15 => format!("{:.0}", value + 0.0),
        () if magnitude >= 100.0 => format!("{value:.0}"),
        () if magnitude >= 10.0 => format!("{value:.1}"),
        () if magnitude >= 1.0 => format!("{value:.2}"),
        () if magnitude >= 0.001 => format!("{value:.3}"),
        () => format!("{value:.6}"),
    }
}

/// Digits in groups of three: `23,414`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The value in the largest of four units, in descending order, that does not exceed it.
fn in_largest_unit(value: f64, units: [(f64, &str); 4]) -> String {
    let smallest = units[units.len() - 1];
    let (size, name) = units.into_iter().find(|(size, _)| value >= *size).unwrap_or(smallest);
    format!("{} {name}", number(value / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: numbers in tables are short, without exponents and without `NaN`.
    #[test]
    fn numbers_are_short() {
        let shown = [52.44, 187.4, 0.15, 483.0, -0.0, f64::NAN, 1e9].map(number);
        assert_eq!(shown, ["52.4", "187", "0.150", "483", "0", "–", "1000000000"]);
    }

    /// Breaks: rounded quantities have the largest unit that fits.
    #[test]
    fn rounded_quantities_have_the_largest_unit() {
        let rates = [0, 999, 8_000, 485_812_345, 1_250_000_000].map(|n| Rate::from_bits_per_sec(n).rounded());
        assert_eq!(rates, ["0 bit/s", "999 bit/s", "8 kbit/s", "486 Mbit/s", "1.25 Gbit/s"]);
        let spans = [0, 250, 1_500, 230_000_000, 16_470_000_000].map(|n| Span::from_nanos(n).rounded());
        assert_eq!(spans, ["0 ns", "250 ns", "1.50 us", "230 ms", "16.5 s"]);
    }

    /// Breaks: long numbers that nobody can read.
    #[test]
    fn digits_are_grouped() {
        assert_eq!(
            (grouped(7), grouped(23_414), grouped(1_000_000)),
            ("7".into(), "23,414".into(), "1,000,000".into())
        );
    }
}
