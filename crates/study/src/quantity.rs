//! Numbers with units as they stand in scenarios, and the values between two of them.

use farpace_units::{ByteCount, Packets, Rate, Span};
use std::fmt;

/// Significant digits of the values between the ends of a range, unless its steps need more.
const DIGITS: usize = 4;
/// Most of them: a double has no more.
const MAX_DIGITS: usize = 15;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityKind {
    /// A number without a unit.
    Number,
    /// A time, in seconds.
    Time,
    /// A rate, in bit/s.
    Rate,
    /// A size, in bytes.
    Size,
    /// A count of packets.
    Packets,
}

impl QuantityKind {
    /// The unit of [`QuantityValue::base`]; empty for a number.
    pub const fn unit(self) -> &'static str {
        match self {
            QuantityKind::Number => "",
            QuantityKind::Time => "s",
            QuantityKind::Rate => "bit/s",
            QuantityKind::Size => "B",
            QuantityKind::Packets => "packets",
        }
    }
}

/// A number with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantityValue {
    /// What it counts.
    pub kind: QuantityKind,
    /// In the base unit of its kind: seconds, bit/s, bytes, packets.
    pub base: f64,
    /// Written as a whole number.
    whole: bool,
}

impl QuantityValue {
    /// Reads a number with or without a unit; none if `text` is neither.
    pub fn parse(text: &str) -> Option<QuantityValue> {
        let text = text.trim();
        let of = |kind, base: f64, whole| base.is_finite().then_some(QuantityValue { kind, base, whole });
        if let Ok(number) = text.parse::<i64>() {
            return of(QuantityKind::Number, number as f64, true);
        }
        // Words like "inf" and "nan" are numbers to Rust.
        if text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
            && let Ok(number) = text.parse::<f64>()
        {
            return of(QuantityKind::Number, number, false);
        }
        if let Ok(span) = text.parse::<Span>() {
            return of(QuantityKind::Time, span.as_secs_f64(), false);
        }
        if let Ok(rate) = text.parse::<Rate>() {
            return of(QuantityKind::Rate, rate.bits_per_sec() as f64, true);
        }
        if let Ok(bytes) = text.parse::<ByteCount>() {
            return of(QuantityKind::Size, bytes.get() as f64, true);
        }
        let packets = text.parse::<Packets>().ok()?;
        of(QuantityKind::Packets, f64::from(packets.get()), true)
    }

    /// Significant digits that `steps` steps to `end` need, so that each is as long as the others to a tenth:
    /// four at least.
    pub fn digits(self, end: QuantityValue, steps: u64, logarithmic: bool) -> usize {
        let steps = steps.max(1) as f64;
        let step = if logarithmic {
            libm::log(end.base / self.base) / steps
        } else {
            (end.base - self.base) / steps / end.base.abs().max(self.base.abs())
        };
        // The last of n digits is at most 10^(1 - n) of its number.
        let needed = libm::ceil(2.0 - libm::log10(step) - 1e-9);
        if needed.is_finite() { (needed.max(0.0) as usize).clamp(DIGITS, MAX_DIGITS) } else { DIGITS }
    }

    /// The value at `share` (0 to 1) of the way to `end`, with so many significant digits, on a linear or a
    /// logarithmic scale. The ends are exact.
    pub fn towards(self, end: QuantityValue, share: f64, logarithmic: bool, digits: usize) -> QuantityValue {
        let whole = self.whole && end.whole;
        let base = if share <= 0.0 {
            self.base
        } else if share >= 1.0 {
            end.base
        } else if logarithmic {
            let (low, high) = (libm::log(self.base), libm::log(end.base));
            rounded(libm::exp(low + (high - low) * share), digits)
        } else {
            rounded(self.base + (end.base - self.base) * share, digits)
        };
        QuantityValue { kind: self.kind, base: if whole { base.round() } else { base }, whole }
    }
}

/// With so many significant digits.
fn rounded(value: f64, digits: usize) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // The text of a number rounds exactly; powers of ten would not.
    format!("{:.*e}", digits.saturating_sub(1), value).parse().unwrap_or(value)
}

/// As a scenario takes it: read back, it is the same.
impl fmt::Display for QuantityValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            QuantityKind::Number if self.whole => write!(f, "{}", self.base as i64),
            // With a point or an exponent, so that it stays a float.
            QuantityKind::Number => write!(f, "{:?}", self.base),
            QuantityKind::Time => {
                const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
                let nanos = (self.base * 1e9).round() as u64;
                short(f, nanos, &UNITS, &Span::from_nanos(nanos))
            }
            QuantityKind::Rate => {
                const UNITS: [(u64, &str); 3] =
                    [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
                let bits = self.base as u64;
                short(f, bits, &UNITS, &Rate::from_bits_per_sec(bits))
            }
            QuantityKind::Size => {
                const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
                let bytes = self.base as u64;
                short(f, bytes, &UNITS, &ByteCount::new(bytes))
            }
            QuantityKind::Packets => write!(f, "{}", Packets::new(self.base as u32)),
        }
    }
}

/// In the largest unit that it reaches, with decimals, if that is exact.
fn short(
    f: &mut fmt::Formatter<'_>,
    value: u64,
    units: &[(u64, &str)],
    exact: &dyn fmt::Display,
) -> fmt::Result {
    const EXACT_BELOW: u64 = 1_000_000_000_000_000;
    match units.iter().find(|(size, _)| value >= *size) {
        Some((size, unit)) if value < EXACT_BELOW => write!(f, "{} {unit}", value as f64 / *size as f64),
        _ => write!(f, "{exact}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: a value of a range reaches the scenario as another one.
    #[test]
    fn quantities_are_written_as_they_are_read() {
        for (text, written, base) in [
            ("5ms", "5 ms", 0.005),
            ("1.5 Gbit/s", "1.5 Gbit/s", 1.5e9),
            ("64kB", "64 kB", 64_000.0),
            ("3 packets", "3 packets", 3.0),
            ("7", "7", 7.0),
            ("1e-5", "1e-5", 1e-5),
            ("0.5", "0.5", 0.5),
        ] {
            let quantity = QuantityValue::parse(text).unwrap();
            assert_eq!((quantity.to_string().as_str(), quantity.base), (written, base));
            assert_eq!(QuantityValue::parse(&quantity.to_string()), Some(quantity));
        }
        for text in ["cubic", "", "inf", "nan", "5 parsecs", "[1, 2]"] {
            assert_eq!(QuantityValue::parse(text), None, "{text}");
        }
    }

    /// Breaks: ranges: their ends and the steps between them.
    #[test]
    fn between_two_ends() {
        let at = |from: &str, to: &str, share, log| {
            QuantityValue::parse(from)
                .unwrap()
                .towards(QuantityValue::parse(to).unwrap(), share, log, DIGITS)
                .to_string()
        };
        assert_eq!(at("5 ms", "15 ms", 0.5, false), "10 ms");
        assert_eq!(at("1 Mbit/s", "100 Mbit/s", 0.5, true), "10 Mbit/s");
        assert_eq!(at("1e-6", "1e-2", 0.25, true), "1e-5");
        assert_eq!(at("1", "10", 0.5, false), "6");
        assert_eq!(at("5 ms", "300 ms", 1.0, true), "300 ms");
        assert_eq!(at("5 ms", "300 ms", 1.0 / 6.0, true), "9.893 ms");
    }

    /// Breaks: the steps of a narrow or a long range are unequal, or two of them are one value.
    #[test]
    fn fine_steps_have_more_digits() {
        let digits = |from: &str, to: &str, steps, log| {
            QuantityValue::parse(from).unwrap().digits(QuantityValue::parse(to).unwrap(), steps, log)
        };
        assert_eq!(digits("5 ms", "300 ms", 6, false), 4);
        assert_eq!(digits("1 Mbit/s", "1 Gbit/s", 3, true), 4);
        assert_eq!(digits("100 ms", "101 ms", 20, false), 6);
        assert_eq!(digits("-1", "1", 10, false), 4);
        assert!(digits("1", "1.0000000000000002", 1_000_000, true) <= MAX_DIGITS);
    }

    proptest! {
        /// Breaks: a quantity whose text a scenario reads as another one, or a panic.
        #[test]
        fn any_step_survives(
            a in 1u64..1_000_000_000,
            b in 1u64..1_000_000_000,
            share in 0.0..1.0f64,
            log: bool,
        ) {
            for unit in ["ns", "us", "bit/s", "kbit/s", "B", "kB", "packets", ""] {
                let [a, b] = [a, b].map(|n| QuantityValue::parse(&format!("{n} {unit}")).unwrap());
                let step = a.towards(b, share, log, DIGITS);
                let read = QuantityValue::parse(&step.to_string()).unwrap();
                prop_assert!((read.base - step.base).abs() <= step.base * 1e-9 + 1e-9, "{read:?} {step:?}");
            }
        }
    }
}
