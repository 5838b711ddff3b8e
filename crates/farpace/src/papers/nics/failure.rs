//! A card that dies and comes back under load.

use super::case::{Case, Kind, Measured};
use super::sets::{Receiver, Set, WIRED};
use farpace_units::Span;

/// How long it must go on to count.
const LASTS: f64 = 0.05;
/// So much of what the cards carry.
const ENOUGH: f64 = 0.9;

/// One failure: which wire, when, and for how long, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    /// Its number among the cards.
    pub wire: usize,
    /// When it dies.
    pub at_ms: u32,
    /// When it is there again.
    pub back_ms: u32,
}

/// The cards.
pub const SET: &Set = &WIRED[0];

/// The failures.
pub const fn failures(quick: bool) -> [Failure; 2] {
    if quick {
        [Failure { wire: 0, at_ms: 400, back_ms: 800 }, Failure { wire: 1, at_ms: 1_200, back_ms: 1_600 }]
    } else {
        [Failure { wire: 0, at_ms: 2_000, back_ms: 4_000 }, Failure { wire: 1, at_ms: 6_000, back_ms: 8_000 }]
    }
}

/// How long the run takes.
pub fn time(quick: bool) -> Span {
    let [_, last] = failures(quick);
    Span::from_millis(u64::from(last.back_ms + last.at_ms / 6))
}

/// The run: each card in turn.
pub fn case(quick: bool) -> Case {
    let mut case = SET.case("earliest", Receiver::Stock);
    case.kind = Kind::Failure;
    case.name = format!("{}, a card dies and returns", SET.name);
    for f in failures(quick) {
        let outage =
            format!("[{{ at = \"{} ms\", lasts = \"{} ms\" }}]", f.at_ms, f.back_ms.saturating_sub(f.at_ms));
        let name = SET.wires.get(f.wire).map_or("", |wire| wire.name);
        for way in ["forward", "backward"] {
            case = case.with(&format!("links.a-{name}.{way}.outages"), &outage);
        }
    }
    case.with("trace.bin", "2 ms").drawn()
}

/// From a failure until the other cards carry it all, and from the return until all do, in ms; none: not in time.
pub fn moved(failure: &Failure, measured: &Measured) -> [Option<f64>; 2] {
    let rest = SET.wires.iter().enumerate().filter(|(n, _)| *n != failure.wire);
    let rest: f64 = rest.map(|(_, wire)| f64::from(wire.mbit)).sum();
    let (at, back) = (f64::from(failure.at_ms) / 1e3, f64::from(failure.back_ms) / 1e3);
    let share = SET.payload() / SET.wires.iter().map(|wire| f64::from(wire.mbit)).sum::<f64>();
    [
        reached(&measured.rates, at, back, rest * share),
        reached(&measured.rates, back, back + 1.0, SET.payload()),
    ]
}

/// How long after `from` a stretch begins in which enough of `mbit` arrives.
fn reached(rates: &[(f64, f64)], from: f64, to: f64, mbit: f64) -> Option<f64> {
    let begins = rates.iter().enumerate().filter(|(_, (at, _))| *at + 1e-9 >= from && *at < to);
    for (n, (at, _)) in begins {
        let stretch = rates.iter().skip(n).take_while(|(later, _)| *later < at + LASTS - 1e-9);
        let (sum, count) = stretch.fold((0.0, 0_u32), |(sum, count), (_, rate)| (sum + rate, count + 1));
        if sum / f64::from(count.max(1)) >= ENOUGH * mbit {
            return Some((at - from) * 1e3);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the time that a failure takes is read wrongly from the curve.
    #[test]
    fn the_first_good_stretch_counts() {
        let rate = |ms: u32| match ms {
            0..=99 => 1_000.0,
            100..=159 => 0.0,
            160..=165 => 500.0,
            166..=189 => 0.0,
            _ => 95.0,
        };
        let rates: Vec<(f64, f64)> = (0..400).map(|ms| (f64::from(ms) / 1e3, rate(ms))).collect();
        let after = reached(&rates, 0.1, 0.4, 100.0).unwrap();
        // A burst of 6 ms is worth 50 ms of 60 Mbit/s; with the first of what comes later it is enough.
        assert!((after - 56.0).abs() < 15.0, "{after}");
        assert_eq!(reached(&rates, 0.2, 0.4, 1_000.0), None);
    }
}
