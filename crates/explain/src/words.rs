//! Numbers for people.

use farpace_units::Span;

/// A number of things, with the words for one and for many: `1 cut`, `2 cuts`.
pub fn count(n: impl Into<u64>, one: &str, many: &str) -> String {
    let n = n.into();
    format!("{n} {}", if n == 1 { one } else { many })
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
