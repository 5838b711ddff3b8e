//! Numbers for people.

use farpace_units::Span;

/// A number of things: `1 cut`, `2 cuts`. The plural is the word with an `s`.
pub fn count(n: u64, word: &str) -> String {
    format!("{n} {word}{}", if n == 1 { "" } else { "s" })
}

/// A time with the unit that fits it: `21 s`, `140 ms`, `33 us`.
pub fn seconds(span: Span) -> String {
    let s = span.as_secs_f64();
    match s {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 0.1 => format!("{:.0} ms", s * 1e3),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s if s > 0.0 => format!("{:.0} us", s * 1e6),
        _ => "0 s".to_owned(),
    }
}
