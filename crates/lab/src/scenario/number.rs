//! Numbers in texts: four digits and the unit that fits.

use farpace_units::{ByteCount, Rate, Span};

fn digits(x: f64) -> String {
    match x {
        x if x >= 1_000.0 => format!("{x:.0}"),
        x if x >= 100.0 => format!("{x:.1}"),
        x if x >= 10.0 => format!("{x:.2}"),
        x => format!("{x:.3}"),
    }
}

/// `x` in the largest of the units (ascending) that leaves at least 1.
fn in_units(x: u64, units: &[(u64, &str)]) -> String {
    match units.iter().rev().find(|(size, _)| x >= *size) {
        Some((1, unit)) => format!("{x} {unit}"),
        Some((size, unit)) => format!("{} {unit}", digits(x as f64 / *size as f64)),
        None => format!("0 {}", units.first().map_or("", |u| u.1)),
    }
}

pub(super) fn rate(r: Rate) -> String {
    in_units(
        r.bits_per_sec(),
        &[(1, "bit/s"), (1_000, "kbit/s"), (1_000_000, "Mbit/s"), (1_000_000_000, "Gbit/s")],
    )
}

pub(super) fn size(b: ByteCount) -> String {
    in_units(b.get(), &[(1, "B"), (1_000, "kB"), (1_000_000, "MB"), (1_000_000_000, "GB")])
}

pub(super) fn time(t: Span) -> String {
    in_units(t.as_nanos(), &[(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")])
}

pub(super) fn percent(p: f64) -> String {
    if p > 0.0 && p < 0.001 { format!("{:.5} %", p * 100.0) } else { format!("{:.1} %", p * 100.0) }
}

pub(super) fn count(x: f64) -> String {
    if x < 10.0 { format!("{x:.1}") } else { format!("{x:.0}") }
}
