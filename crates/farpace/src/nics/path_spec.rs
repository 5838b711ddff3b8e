//! NICs and paths as they are written on the command line.

use farpace_units::{Rate, Span};
use farpace_wire::NicKind;

/// What a NIC is: a name like `1G`, or a rate like `80 Mbit/s`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn rate(text: &str) -> Result<Rate, String> {
    let text = text.trim();
    let named = (1..=12).map(NicKind).find(|kind| kind.to_string().eq_ignore_ascii_case(text));
    let rate = named.and_then(NicKind::rate).or_else(|| text.parse().ok());
    rate.filter(|rate| rate.bits_per_sec() > 0).ok_or_else(|| {
        format!("`{text}` is not a NIC: expected a kind like 1G or 100M, or a rate like \"80 Mbit/s\"")
    })
}

/// A path to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// What it carries.
    pub rate: Rate,
    /// How long it takes besides sending frames.
    pub delay: Span,
}

/// A rate, and what the way takes besides: `1G`, `80 Mbit/s@20 ms`.
///
/// # Errors
/// Anything else, with what was expected.
pub fn path(text: &str) -> Result<PathSpec, String> {
    let (nic, delay) = text.split_once('@').unwrap_or((text, "0 s"));
    let delay = delay.trim().parse().map_err(|error| format!("{error}, in `{text}`"))?;
    Ok(PathSpec { rate: rate(nic)?, delay })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: a path is read as another than it was written, or nonsense is taken.
    #[test]
    fn paths_are_kinds_or_rates_with_a_delay() {
        let of = |mbit, ms| PathSpec { rate: Rate::from_mbit(mbit), delay: Span::from_millis(ms) };
        for (text, expected) in [
            ("1G", of(1_000, 0)),
            ("100m", of(100, 0)),
            ("2.5G@1 ms", of(2_500, 1)),
            (" 80 Mbit/s @ 20 ms", of(80, 20)),
        ] {
            assert_eq!(path(text), Ok(expected), "{text}");
        }
        for bad in ["", "G", "3G", "0 bit/s", "1G@", "1G@2", "1G@20 km", "unknown"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }
}
