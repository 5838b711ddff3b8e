//! Quantities as people type them on a command line: `500mbit`, `5ms`, `1%`, `100p`.

use farpace_path::QueueLimit;
use farpace_units::{Packets, Rate, Span};

/// A rate: `500mbit`, or as in scenarios `"500 Mbit/s"`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn rate(text: &str) -> Result<Rate, String> {
    let split = text.trim().find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.trim().len());
    let (number, unit) = text.trim().split_at(split);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "bit" => "bit/s",
        "kbit" => "kbit/s",
        "mbit" => "Mbit/s",
        "gbit" => "Gbit/s",
        _ => return text.parse().map_err(|_| not(text, "a rate", "500mbit, 1gbit or \"500 Mbit/s\"")),
    };
    format!("{number} {unit}").parse().map_err(|_| not(text, "a rate", "500mbit, 1gbit or \"500 Mbit/s\""))
}

/// A rate that is not zero.
///
/// # Errors
/// As [`rate`], and zero.
pub fn rate_above_zero(text: &str) -> Result<Rate, String> {
    match rate(text)? {
        zero if zero.bits_per_sec() == 0 => {
            Err(format!("`{text}` carries nothing: expected a rate above zero"))
        }
        rate => Ok(rate),
    }
}

/// A time: `5ms`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn span(text: &str) -> Result<Span, String> {
    text.parse().map_err(|_| not(text, "a time", "5ms, 200us or 60s"))
}

/// A time that is not zero.
///
/// # Errors
/// As [`span`], and zero.
pub fn span_above_zero(text: &str) -> Result<Span, String> {
    match span(text)? {
        zero if zero.is_zero() => Err(format!("`{text}` is no time: expected one above zero, like 60s")),
        span => Ok(span),
    }
}

/// A share: `1%`, or `0.01`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, percent) = match text.trim().strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    let value: Option<f64> = number.trim().parse().ok().map(|value: f64| value / percent);
    value
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| not(text, "a share", "1%, or 0.01, at most 100%"))
}

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOption {
    /// So much.
    Limit(QueueLimit),
    /// What the line carries in this time.
    Time(Span),
}

/// A queue: `100p`, `64kB`, `50ms`, `unlimited`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn queue(text: &str) -> Result<QueueOption, String> {
    let text = text.trim();
    if let Some(packets) = text.strip_suffix('p').and_then(|number| number.parse().ok()) {
        return Ok(QueueOption::Limit(QueueLimit::Packets(Packets::new(packets))));
    }
    if let Ok(limit) = text.parse() {
        return Ok(QueueOption::Limit(limit));
    }
    text.parse()
        .map(QueueOption::Time)
        .map_err(|_| not(text, "a queue", "100p (packets), 64kB, 50ms (at the rate), or unlimited"))
}

fn not(text: &str, what: &str, expected: &str) -> String {
    format!("`{text}` is not {what}: expected something like {expected}")
}

/// Refuses an interface that is named twice.
///
/// # Errors
/// It is there twice: frames between an interface and itself go round and round.
pub fn different<'a>(interfaces: impl Iterator<Item = &'a str> + Clone) -> Result<(), String> {
    let again = |(at, name): (usize, &'a str)| interfaces.clone().take(at).any(|other| other == name);
    match interfaces.clone().enumerate().find(|named| again(*named)) {
        Some((_, name)) => Err(format!("`{name}` is named twice: its frames would go round and round")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farpace_units::ByteCount;

    /// Breaks: a flag means another quantity than was typed, or nonsense is taken.
    #[test]
    fn quantities_are_read_as_they_are_typed() {
        for text in ["500mbit", "500 Mbit/s", "0.5gbit", "500Mbit", "500000kbit"] {
            assert_eq!(rate(text), Ok(Rate::from_mbit(500)), "{text}");
        }
        for bad in ["", "500", "mbit", "500mb", "fast", "-1mbit"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        assert_eq!(span("5ms"), Ok(Span::from_millis(5)));
        assert!(span("5").is_err());
        for (text, value) in
            [("1%", Some(0.01)), ("0.01", Some(0.01)), ("100 %", Some(1.0)), ("101%", None), ("NaN", None)]
        {
            assert_eq!(share(text).ok(), value, "{text}");
        }
        assert_eq!(queue("100p"), Ok(QueueOption::Limit(QueueLimit::Packets(Packets::new(100)))));
        assert_eq!(queue("100 packets"), queue("100p"));
        assert_eq!(queue("64kB"), Ok(QueueOption::Limit(QueueLimit::Bytes(ByteCount::new(64_000)))));
        assert_eq!(queue("50ms"), Ok(QueueOption::Time(Span::from_millis(50))));
        assert_eq!(queue("unlimited"), Ok(QueueOption::Limit(QueueLimit::Unlimited)));
        assert!(queue("50").is_err() && queue("50 mbit").is_err());
    }

    /// Breaks: `farpace emulate lo lo`, whose frames go round and round.
    #[test]
    fn no_interface_is_named_twice() {
        assert_eq!(different(["eth0", "eth1"].into_iter()), Ok(()));
        assert!(different(["lo", "eth0", "lo"].into_iter()).unwrap_err().contains("`lo` is named twice"));
    }
}
