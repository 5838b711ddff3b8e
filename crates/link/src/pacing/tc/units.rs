//! Numbers in the syntax of `tc`: rates, sizes, times, identifiers. `mbps` counts bytes, and the `k` of a
//! size is 1024.

use farpace_path::QueueLimit;
use farpace_units::{ByteCount, Packets, Rate, Span, exact_decimal};

/// Units in lower case, with their size in base units.
type Units = &'static [(&'static str, u64)];

/// In bit/s.
const RATES: Units = &[
    ("", 1),
    ("bit", 1),
    ("kbit", 1_000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8_000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
    ("tibps", 8 << 40),
];
/// In bytes.
const SIZES: Units = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("kbit", 128),
    ("mbit", 128 << 10),
    ("gbit", 128 << 20),
];
/// In nanoseconds. A bare number counts microseconds.
const TIMES: Units = &[
    ("", 1_000),
    ("ns", 1),
    ("nsec", 1),
    ("nsecs", 1),
    ("us", 1_000),
    ("usec", 1_000),
    ("usecs", 1_000),
    ("ms", 1_000_000),
    ("msec", 1_000_000),
    ("msecs", 1_000_000),
    ("s", 1_000_000_000),
    ("sec", 1_000_000_000),
    ("secs", 1_000_000_000),
];

/// Parses a number with its unit exactly. A fraction of the base unit is an error.
fn quantity(text: &str, units: Units, expected: &str, base: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not {expected}");
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(wrong());
    }
    let known = units.iter().find(|(name, _)| *name == unit.to_lowercase());
    let Some((_, size)) = known else {
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).filter(|name| !name.is_empty()).collect();
        // Short units are all similar to each other.
        let near =
            Some(unit).filter(|unit| unit.len() > 2).and_then(|unit| super::words::nearest(unit, &names));
        let near = near.map(|near| format!("; did you mean `{number}{near}`?"));
        return Err(wrong() + &near.unwrap_or_else(|| format!("; units are {}", names.join(", "))));
    };
    exact_decimal(whole, fraction, *size)
        .ok_or_else(|| format!("`{text}` is not a whole number of {base} below 2^64"))
}

/// A rate: `500mbit`, or in bytes `62500kbps`.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    if text.ends_with('%') {
        return Err(format!(
            "`{text}`: a percentage of the link is not supported: write the rate itself, like 500mbit"
        ));
    }
    quantity(text, RATES, "a rate, like 500mbit", "bit/s").map(Rate::from_bits_per_sec)
}

/// True if the rate is given in bytes per second.
pub(super) fn counts_bytes(text: &str) -> bool {
    text.to_lowercase().ends_with("ps")
}

/// A size: `64kb` is 65,536 bytes.
pub(super) fn size(text: &str) -> Result<ByteCount, String> {
    quantity(text, SIZES, "a size, like 64kb", "bytes").map(ByteCount::new)
}

/// A time: `10us`; a bare number is microseconds.
pub(super) fn time(text: &str) -> Result<Span, String> {
    quantity(text, TIMES, "a time, like 10us", "nanoseconds").map(Span::from_nanos)
}

/// Packets: `1000`, or `1000p` as `tc` prints them.
pub(super) fn packets(text: &str) -> Result<QueueLimit, String> {
    let number = text.strip_suffix('p').unwrap_or(text);
    let wrong = || format!("`{text}` is not a number of packets, like 1000");
    number.parse().map(|n| QueueLimit::Packets(Packets::new(n))).map_err(|_| wrong())
}

/// Packets, or `unlimited`.
pub(super) fn pfifo_limit(text: &str) -> Result<QueueLimit, String> {
    if text == "unlimited" { Ok(QueueLimit::Unlimited) } else { packets(text) }
}

/// Packets, a size with its unit, or `unlimited`.
pub(super) fn limit(text: &str) -> Result<QueueLimit, String> {
    if text == "unlimited" {
        return Ok(QueueLimit::Unlimited);
    }
    let with_unit =
        |_| if text.ends_with(|c: char| c.is_ascii_digit()) { Err(()) } else { size(text).map_err(|_| ()) };
    packets(text).or_else(|e| with_unit(e).map(QueueLimit::Bytes)).map_err(|()| {
        format!("`{text}` is not a limit: expected packets, like 1000, a size, like 64kb, or unlimited")
    })
}

/// A number of at most `max`: decimal, hexadecimal after `0x`, or octal after `0`.
pub(super) fn number(text: &str, max: u16) -> Result<u16, String> {
    let value = match (text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")), text.strip_prefix('0')) {
        (Some(hex), _) => u16::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => u16::from_str_radix(octal, 8),
        _ => text.parse(),
    };
    value.ok().filter(|n| *n <= max).ok_or_else(|| format!("`{text}` is not a number from 0 to {max}"))
}

/// A mask, in hexadecimal with or without `0x`.
pub(super) fn mask(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u16::from_str_radix(digits, 16).map_err(|_| format!("`{text}` is not a mask, like 0xffff"))
}

/// One half of an identifier: hexadecimal, even without `0x`.
pub(super) fn half(text: &str) -> Result<u16, String> {
    u16::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16)
        .map_err(|_| format!("`{text}` is not a number in hexadecimal, from 0 to ffff"))
}

/// The handle of a qdisc: `1:`; also `1:0` and `1`.
pub(super) fn handle(text: &str) -> Result<u16, String> {
    let (major, minor) = text.split_once(':').unwrap_or((text, ""));
    let wrong = |_| format!("`{text}` is not a handle, like 1:");
    match (half(major).map_err(wrong)?, minor) {
        (0, _) => Err(format!("`{text}` is not a handle: it must be above 0, like 1:")),
        (major, "" | "0") => Ok(major),
        (_, _) => Err(format!("`{text}` is a class: expected a handle, like {major}:")),
    }
}

/// The identifier of a class: `1:3`.
pub(super) fn class(text: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("`{text}` is not a class, like 1:3");
    let (major, minor) = text.split_once(':').ok_or_else(wrong)?;
    match (half(major).map_err(|_| wrong())?, half(minor).map_err(|_| wrong())?) {
        (0, _) | (_, 0) => Err(wrong()),
        id => Ok(id),
    }
}

/// The name of a class in a configuration.
pub(super) fn name((major, minor): (u16, u16)) -> String {
    format!("{major:x}:{minor:x}")
}

/// A rate in the largest exact unit.
pub(super) fn write_rate(rate: Rate) -> String {
    // `500 Mbit/s` becomes `500mbit`.
    rate.to_string().trim_end_matches("/s").replace(' ', "").to_lowercase()
}

/// A size in bytes.
pub(super) fn write_size(size: ByteCount) -> String {
    format!("{}b", size.get())
}

/// A time in the largest exact unit.
pub(super) fn write_time(time: Span) -> String {
    time.to_string().replace(' ', "")
}

/// A limit in the syntax of [`limit`].
pub(super) fn write_limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(n) => n.get().to_string(),
        QueueLimit::Bytes(n) => write_size(n),
        QueueLimit::Unlimited => "unlimited".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Breaks: numbers have the meaning of `tc` (with values that iproute2 6.1 prints).
    #[test]
    fn numbers_have_the_meaning_of_tc() {
        for (text, bits) in [
            ("500mbit", 500_000_000),
            ("5MBit", 5_000_000),
            ("1000", 1_000),
            ("1.5kbps", 12_000),
            ("1mibit", 1_048_576),
            ("0.5gbit", 500_000_000),
            ("1gbps", 8_000_000_000),
            ("9.96mbit", 9_960_000),
        ] {
            assert_eq!(rate(text), Ok(Rate::from_bits_per_sec(bits)), "{text}");
        }
        for (text, bytes) in
            [("100k", 102_400), ("1mb", 1 << 20), ("15140", 15_140), ("8kbit", 1_024), ("7b", 7)]
        {
            assert_eq!(size(text), Ok(ByteCount::new(bytes)), "{text}");
        }
        assert_eq!(time("10"), Ok(Span::from_micros(10)));
        assert_eq!(time("1.5ms"), Ok(Span::from_micros(1_500)));
        assert_eq!((number("0x10", 255), number("010", 255), number("10", 255)), (Ok(16), Ok(8), Ok(10)));
        assert_eq!((mask("0xfc"), mask("fc")), (Ok(0xfc), Ok(0xfc)));
        assert_eq!(
            (class("1:a").map(name), class("1:0x10").map(name)),
            (Ok("1:a".into()), Ok("1:10".into()))
        );
        assert_eq!((handle("8001:"), handle("1:0")), (Ok(0x8001), Ok(1)));
        assert_eq!(limit("64kb"), Ok(QueueLimit::Bytes(ByteCount::new(65_536))));
    }

    /// Breaks: bad numbers are refused, and the error names a correction.
    #[test]
    fn bad_numbers_are_explained() {
        let assert_contains = |error: Option<String>, part: &str| {
            assert!(error.as_ref().is_some_and(|e| e.contains(part)), "{error:?}")
        };
        assert_contains(rate("500mbits").err(), "did you mean `500mbit`?");
        assert_contains(rate("fast").err(), "not a rate, like 500mbit");
        assert_contains(rate("50%").err(), "write the rate itself");
        assert_contains(rate("0.5bit").err(), "whole number of bit/s");
        assert_contains(rate("99999999999tbit").err(), "below 2^64");
        assert_contains(size("1tb").err(), "units are b, k, kb");
        assert_contains(class("1").err(), "not a class, like 1:3");
        assert_contains(class("1:0").err(), "not a class");
        assert_contains(class("1:10000").err(), "not a class");
        assert_contains(handle("1:3").err(), "`1:3` is a class: expected a handle, like 1:");
        assert_contains(number("65536", u16::MAX).err(), "from 0 to 65535");
        assert_contains(number("256", 255).err(), "from 0 to 255");
        assert_contains(limit("many").err(), "unlimited");
        assert_contains(mask("0xfffff").err(), "not a mask");
    }

    proptest! {
        /// Breaks: a written number reads back unchanged.
        #[test]
        fn numbers_read_back(n in any::<u64>(), p in any::<u32>()) {
            prop_assert_eq!(rate(&write_rate(Rate::from_bits_per_sec(n))), Ok(Rate::from_bits_per_sec(n)));
            prop_assert_eq!(time(&write_time(Span::from_nanos(n))), Ok(Span::from_nanos(n)));
            for l in [QueueLimit::Bytes(ByteCount::new(n)), QueueLimit::Packets(Packets::new(p)), QueueLimit::Unlimited] {
                prop_assert_eq!(limit(&write_limit(l)), Ok(l));
            }
        }

        /// Breaks: every input yields a value or an error, never a panic.
        #[test]
        fn no_text_panics(text in "[0-9.]{0,25}[a-z%:]{0,5}|.{0,20}") {
            let _ = (rate(&text), size(&text), time(&text), limit(&text), class(&text), handle(&text));
            let _ = (number(&text, 255), mask(&text));
        }
    }
}
