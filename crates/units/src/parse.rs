//! Parsing of quantities: a number, a space, a unit.

use crate::{ByteCount, Packets, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::str::FromStr;
use thiserror::Error;

/// A text is not a quantity. The message contains the expected form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text does not begin with a number.
    #[error("`{text}` is not a {kind}: expected a number and a unit, like \"{example}\"")]
    NoNumber {
        /// The text.
        text: String,
        /// The expected quantity: "rate", "size", ...
        kind: &'static str,
        /// A valid value.
        example: &'static str,
    },
    /// The unit is missing.
    #[error("`{text}` has no unit: a {kind} needs one of {units}, like \"{example}\"")]
    NoUnit {
        /// The text.
        text: String,
        /// The expected quantity.
        kind: &'static str,
        /// The known units.
        units: String,
        /// A valid value.
        example: &'static str,
    },
    /// The quantity does not have this unit.
    #[error("unknown unit `{unit}` in `{text}`: a {kind} takes one of {units}, like \"{example}\"")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
        /// The expected quantity.
        kind: &'static str,
        /// The known units.
        units: String,
        /// A valid value.
        example: &'static str,
    },
    /// The value exceeds the range or the resolution of the quantity.
    #[error("`{text}` is out of range or too precise: a {kind} is a whole number of {base} below 2^64")]
    NotExact {
        /// The text.
        text: String,
        /// The expected quantity.
        kind: &'static str,
        /// The base unit.
        base: &'static str,
    },
}

struct UnitKind {
    kind: &'static str,
    base: &'static str,
    example: &'static str,
    /// Units and their size in the base unit.
    units: &'static [(&'static str, u64)],
}

const SPAN: UnitKind = UnitKind {
    kind: "time",
    base: "nanoseconds",
    example: "10 ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
};
const RATE: UnitKind = UnitKind {
    kind: "rate",
    base: "bit/s",
    example: "500 Mbit/s",
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
};
const BYTES: UnitKind = UnitKind {
    kind: "size",
    base: "bytes",
    example: "16 MB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};
const PACKETS: UnitKind = UnitKind {
    kind: "packet count",
    base: "packets",
    example: "100 packets",
    units: &[("packets", 1), ("packet", 1)],
};

/// Parses `text` exactly, with decimal arithmetic: "0.1 ms" is exactly 100000 ns.
fn parse(text: &str, k: &UnitKind) -> Result<u64, UnitError> {
    let t = text.trim();
    let split = t.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(t.len());
    let (number, unit) = (t[..split].replace('_', ""), t[split..].trim());
    let no_number = || UnitError::NoNumber { text: t.into(), kind: k.kind, example: k.example };
    let not_exact = || UnitError::NotExact { text: t.into(), kind: k.kind, base: k.base };
    let units = || k.units.iter().map(|u| u.0).collect::<Vec<_>>().join(", ");
    let (whole, frac) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || frac.contains('.') || (number.contains('.') && frac.is_empty()) {
        return Err(no_number());
    }
    if unit.is_empty() && whole.bytes().chain(frac.bytes()).any(|b| b != b'0') {
        return Err(UnitError::NoUnit { text: t.into(), kind: k.kind, units: units(), example: k.example });
    }
    let size = match k.units.iter().find(|u| u.0 == unit) {
        Some(u) => u.1,
        None if unit.is_empty() => 1, // zero needs no unit
        None => {
            return Err(UnitError::UnknownUnit {
                unit: unit.into(),
                text: t.into(),
                kind: k.kind,
                units: units(),
                example: k.example,
            });
        }
    };
    exact_decimal(whole, frac, size).ok_or_else(not_exact)
}

/// The number with these digits before and after the decimal point, times `unit`. None if it is not a whole
/// number below 2^64, or if there are other characters than digits.
pub fn exact_decimal(whole: &str, fraction: &str, unit: u64) -> Option<u64> {
    const MAX_FRACTION: usize = 18;
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > MAX_FRACTION {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10u128.pow(fraction.len() as u32);
    let value = digits.checked_mul(u128::from(unit))?;
    if value % scale == 0 { u64::try_from(value / scale).ok() } else { None }
}

macro_rules! quantity {
    ($type:ident, $kind:expr, $make:expr) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(s: &str) -> Result<Self, UnitError> {
                $make(parse(s, &$kind)?, s)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let units = $kind.units.iter().map(|u| u.0).collect::<Vec<_>>().join("|");
                json_schema!({
                    "type": "string",
                    "description": format!("a {} with its unit, like \"{}\"", $kind.kind, $kind.example),
                    "pattern": format!("^[0-9_]+([.][0-9_]+)? *({units})$"),
                })
            }
        }
    };
}

quantity!(Span, SPAN, |n, _: &str| Ok::<_, UnitError>(Span::from_nanos(n)));
quantity!(Rate, RATE, |n, _: &str| Ok::<_, UnitError>(Rate::from_bits_per_sec(n)));
quantity!(ByteCount, BYTES, |n, _: &str| Ok::<_, UnitError>(ByteCount::new(n)));
quantity!(Packets, PACKETS, |n, s: &str| u32::try_from(n)
    .map(Packets::new)
    .map_err(|_| UnitError::NotExact { text: s.into(), kind: PACKETS.kind, base: PACKETS.base }));

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: the syntax of quantities in scenarios.
    #[test]
    fn quantities_are_parsed_exactly() {
        assert_eq!("500 Mbit/s".parse(), Ok(Rate::from_mbit(500)));
        assert_eq!("0.1 ms".parse(), Ok(Span::from_micros(100)));
        assert_eq!("16MB".parse(), Ok(ByteCount::new(16_000_000)));
        assert_eq!("64 KiB".parse(), Ok(ByteCount::new(65_536)));
        assert_eq!("0".parse(), Ok(Span::ZERO));
        assert_eq!("10_000 packets".parse(), Ok(Packets::new(10_000)));
    }

    /// Breaks: error messages contain the expected form.
    #[test]
    fn errors_name_the_expected_form() {
        let assert_contains = |e: UnitError, part: &str| assert!(e.to_string().contains(part), "{e}");
        assert_contains("fast".parse::<Rate>().unwrap_err(), "500 Mbit/s");
        assert_contains("500".parse::<Rate>().unwrap_err(), "has no unit");
        assert_contains("5 mbit".parse::<Rate>().unwrap_err(), "kbit/s, Mbit/s");
        assert_contains("0.5 ns".parse::<Span>().unwrap_err(), "whole number of nanoseconds");
        assert_contains("99999999999999999999 GB".parse::<ByteCount>().unwrap_err(), "2^64");
        assert_contains("-1 s".parse::<Span>().unwrap_err(), "10 ms");
        assert_contains("1..5 s".parse::<Span>().unwrap_err(), "10 ms");
    }

    proptest! {
        /// Breaks: a formatted quantity parses to the same value.
        #[test]
        fn formatted_quantities_parse_to_the_same_value(n in any::<u64>(), p in any::<u32>()) {
            prop_assert_eq!(Span::from_nanos(n).to_string().parse(), Ok(Span::from_nanos(n)));
            prop_assert_eq!(Rate::from_bits_per_sec(n).to_string().parse(), Ok(Rate::from_bits_per_sec(n)));
            prop_assert_eq!(ByteCount::new(n).to_string().parse(), Ok(ByteCount::new(n)));
            prop_assert_eq!(Packets::new(p).to_string().parse(), Ok(Packets::new(p)));
        }

        /// Breaks: malformed text yields an error instead of a panic.
        #[test]
        fn no_text_causes_a_panic(s in ".{0,40}") {
            let _ = s.parse::<Span>();
            let _ = s.parse::<Rate>();
            let _ = s.parse::<ByteCount>();
        }
    }
}
