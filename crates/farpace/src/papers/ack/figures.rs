//! The thesis' figures, drawn from the runs.

use super::cases::{CEILING_KB, Case, Policy, Route, TIME};
use super::results::Results;
use super::tables::label;
use super::thesis::{Printed, TABLE_2};
use super::{clocks, sensitivity};
use farpace_report::{ComparedEstimate, ComparisonRow, Figure, Level, TimeLine, comparison, lines};

/// Bins of the rate over time, in seconds.
const BIN: f64 = 0.5;

/// All figures, in the order of the thesis.
pub fn all(results: &Results) -> Vec<Figure> {
    let mut figures = vec![six(results)];
    let flag = [(Policy::None, false), (Policy::None, true), (Policy::Rtt, false), (Policy::Rtt, true)];
    let policies = Policy::ALL.map(|policy| (policy, false));
    for (number, rows, route) in [
        (2, &flag[..], Route::Even),
        (3, &flag, Route::Uneven),
        (4, &policies, Route::Even),
        (5, &policies, Route::Uneven),
    ] {
        figures.extend([behind(results, rows, route, number), rate(results, rows, route, number)]);
    }
    figures.extend([four(results), clocks::figure(results)]);
    figures
}

/// Table 5.2 as a picture, with the cases that stand for its rows.
fn table_2(
    results: &Results,
    title: &str,
    file: &str,
    caption: &str,
    case: impl Fn(&Printed) -> Case,
) -> Figure {
    let labels: Vec<String> = TABLE_2.iter().map(label).collect();
    let rows: Vec<ComparisonRow<'_>> = TABLE_2
        .iter()
        .zip(&labels)
        .map(|(printed, label)| {
            let measured = results.over(&case(printed), |m| m.sent_kb);
            let [paper, ..] = printed.numbers;
            ComparisonRow {
                label,
                values: [
                    paper.map(|mean| ComparedEstimate { mean, range: None }),
                    measured.mean.is_finite().then(|| measured.estimate()),
                ],
            }
        })
        .collect();
    comparison(title, "payload sent (kB)", &rows).figure(file, caption)
}

fn six(results: &Results) -> Figure {
    table_2(
        results,
        "Payload sent in 10 s, by policy",
        "figures/table-5-2.svg",
        "The thesis' Table 5.2 and what is measured here at 25+25 ms: the mean over the phases of the ticks, the least and \
         the most. The line carries 623 kB.",
        |row| Case::new(Route::Even, row.policy, row.timestamps),
    )
}

fn four(results: &Results) -> Figure {
    table_2(
        results,
        "The same with four segments in flight",
        "figures/table-5-2-four.svg",
        "Table 5.2 again, with a receive window of four segments instead of the six that the thesis prints.",
        |row| sensitivity::four(Route::Even, row.policy, row.timestamps),
    )
}

/// The curves of a figure: those of the first phase.
fn curves<'a>(
    results: &'a Results,
    rows: &[(Policy, bool)],
    route: Route,
    names: &'a [String],
    of: impl Fn(&[(f64, f64)]) -> Vec<(f64, f64)>,
) -> Vec<TimeLine<'a>> {
    let line = |((policy, timestamps), label): (&(Policy, bool), &'a String)| {
        let runs = results.case(&Case::new(route, *policy, *timestamps));
        TimeLine { label, points: runs.first().map(|m| of(&m.curve)).unwrap_or_default() }
    };
    rows.iter().zip(names).map(line).collect()
}

fn names(rows: &[(Policy, bool)]) -> Vec<String> {
    let name = |(policy, ts): &(Policy, bool)| {
        format!("{}{}", policy.label(), if *ts { ", timestamps" } else { "" })
    };
    rows.iter().map(name).collect()
}

fn behind(results: &Results, rows: &[(Policy, bool)], route: Route, number: u32) -> Figure {
    let names = names(rows);
    let less = |curve: &[(f64, f64)]| {
        let ceiling = |t: f64| CEILING_KB * t / TIME.as_secs_f64();
        curve.iter().map(|(t, kb)| (*t, (ceiling(*t) - kb).max(0.0))).collect()
    };
    let all = curves(results, rows, route, &names, less);
    lines(&format!("Behind a full line, {}", route.name()), "payload behind a full line (kB)", &all, None).figure(
        &format!("figures/fig5-{number}-behind.svg"),
        &format!(
            "Payload delivered since connecting, less than what a full line would have delivered by then: lower is better, and a \
             level stretch is a full line. One phase (the thesis' Fig. 5.{number}, which draws the payload itself).",
        ),
    )
}

fn rate(results: &Results, rows: &[(Policy, bool)], route: Route, number: u32) -> Figure {
    let names = names(rows);
    let all = curves(results, rows, route, &names, rates);
    let full = Level { label: "full line", value: CEILING_KB * 8.0 / TIME.as_secs_f64() };
    lines(&format!("Rate, {}", route.name()), "kbit/s in bins of 0.5 s", &all, Some(&full)).figure(
        &format!("figures/fig5-{number}-rate.svg"),
        &format!("The same transfers: payload delivered per time (the thesis' Fig. 5.{number})."),
    )
}

/// Payload per time in bins, as (beginning, kbit/s).
fn rates(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let at = |t: f64| curve.iter().take_while(|p| p.0 <= t + 1e-9).last().map_or(0.0, |p| p.1);
    let bins = (TIME.as_secs_f64() / BIN).round() as u32;
    let rate = |n: u32| {
        let from = f64::from(n) * BIN;
        (from, (at(from + BIN) - at(from)) * 8.0 / BIN)
    };
    if curve.is_empty() { Vec::new() } else { (0..bins).map(rate).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: the curves of rates: 50 kB each half a second are 800 kbit/s.
    #[test]
    fn rates_are_differences() {
        let curve: Vec<(f64, f64)> = (0..=500).map(|n| (f64::from(n) * 0.02, f64::from(n) * 2.0)).collect();
        let rates = rates(&curve);
        assert_eq!((rates.len(), rates[3].0), (20, 1.5));
        assert!(rates.iter().all(|(_, kbit)| (kbit - 800.0).abs() < 1e-6), "{rates:?}");
    }
}
