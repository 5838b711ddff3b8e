//! The paper's figures, drawn from the runs, and those of what goes beyond.

use super::beyond;
use super::case::{Case, Measured};
use super::failure;
use super::plan::{FIG_10, at_90, at_99, fig_10};
use super::printed::{BEST, CONVENTIONAL};
use super::results::Results;
use super::sets::Receiver;
use farpace_report::{ComparedEstimate, Curve, Figure, HeatRow, Level, TimeLine, curves, heat_map, lines};

/// Time of Fig. 10 that is drawn, in seconds, from the middle on: single cuts can be seen.
const WINDOWS: f64 = 0.1;

/// All figures, in the order of the page.
pub fn all(results: &Results) -> Vec<Figure> {
    vec![goodput(results), again(results), windows(results), orders(results), failure(results)]
}

fn point(mean: f64) -> Option<ComparedEstimate> {
    mean.is_finite().then_some(ComparedEstimate { mean, range: None })
}

fn over_skips(
    results: &Results,
    title: &str,
    y: &str,
    of: impl Fn(&Measured) -> f64,
    paper: impl Fn(u16) -> Option<f64>,
    file: &str,
    caption: &str,
) -> Figure {
    let skips = &results.plan.skips;
    let names: Vec<String> = skips.iter().map(u16::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let curve = |label, case: fn(u16) -> Case| {
        let value = |skip: &u16| point(results.of(&case(*skip), &of));
        Curve { label, points: skips.iter().map(value).collect() }
    };
    let printed = |skip: &u16| paper(*skip).and_then(point);
    let all = [
        curve("90/10, observed", at_90),
        curve("99.6/0.4, not observed", at_99),
        Curve { label: "paper, 90/10", points: skips.iter().map(printed).collect() },
    ];
    curves(title, "skip number S", y, &names, &all).figure(file, caption)
}

fn goodput(results: &Results) -> Figure {
    let rows = [&CONVENTIONAL, &BEST];
    over_skips(
        results,
        "Goodput by skip number",
        "goodput (Mbit/s)",
        Measured::total,
        |skip| rows.iter().find(|row| row.skip == skip).map(|row| row.mbit),
        "figures/fig09-goodput.svg",
        "One connection over both cards. Up to the best S, frames of the narrow card come too late and are sent again; beyond it they come early, \
         and what comes early is acknowledged at once, segment by segment, which costs the machine time (the paper's Fig. 9, of which two points are printed).",
    )
}

fn again(results: &Results) -> Figure {
    let rows = [&CONVENTIONAL, &BEST];
    over_skips(
        results,
        "Sent again by skip number",
        "segments sent again (%)",
        Measured::resent_percent,
        |skip| rows.iter().find(|row| row.skip == skip).and_then(|row| row.resent),
        "figures/fig09-again.svg",
        "Not one segment was lost: all retransmissions are for nothing. From S = 20 on three frames of the narrow card may be there ahead of their turn, which tells of a loss as well (the paper's Fig. 9, of which two points are printed).",
    )
}

fn windows(results: &Results) -> Figure {
    let names = FIG_10.map(|skip| format!("S = {skip}"));
    let from = results.plan.time.as_secs_f64() / 2.0;
    let all: Vec<TimeLine<'_>> = FIG_10
        .iter()
        .zip(&names)
        .map(|(skip, label)| {
            let points = results.case(&fig_10(*skip)).map_or(&[][..], |m| &m.windows);
            let drawn = points.iter().filter(|(at, _)| (from..from + WINDOWS).contains(at));
            TimeLine { label, points: drawn.map(|(at, window)| (at - from, *window)).collect() }
        })
        .collect();
    lines("Window over time", "segments", &all, None).figure(
        "figures/fig10.svg",
        "What may be in flight, 90/10, observed, with a receive window of 32 kB: a tenth of a second in the middle (the paper's Fig. 10, whose axes are not known).",
    )
}

fn orders(results: &Results) -> Figure {
    let mut heads = results.plan.orders.clone();
    heads.push("earliest, in order");
    let sets: Vec<_> = beyond::sets(results).collect();
    let rows = sets.iter().map(|set| {
        let of = |case: &Case| Some(beyond::share(results, set, case)).filter(|share| share.is_finite());
        let stock = results.plan.orders.iter().map(|order| of(&set.case(order, Receiver::Stock)));
        let resequenced = of(&set.case("earliest", Receiver::Resequences));
        HeatRow { label: set.id, values: stock.chain([resequenced]).collect() }
    });
    let rows: Vec<HeatRow<'_>> = rows.collect();
    heat_map("One connection, share of the sum of all lines", ["share, %", "–"], &heads, &rows).figure(
        "figures/orders.svg",
        "Cards in Mbit/s, and orders. Receivers as they are, but in the last column, where they put frames in order. 100 % is what all lines together carry of TCP's payload.",
    )
}

fn failure(results: &Results) -> Figure {
    let quick = results.plan.is_quick();
    let rates = results.case(&failure::case(quick)).map(|m| m.rates.clone()).unwrap_or_default();
    let [wide, narrow] = failure::failures(quick);
    let seconds = |ms: u32| f64::from(ms) / 1e3;
    let level = Level { label: "both cards", value: failure::SET.payload() };
    let all = [TimeLine { label: "goodput", points: means(&rates, 5) }];
    lines("A card dies and returns", "Mbit/s in bins of 10 ms", &all, Some(&level)).figure(
        "figures/failure.svg",
        &format!(
            "1 Gbit/s and 100 Mbit/s, order \"earliest\". The wide card is dead from {:.1} to {:.1} s, the narrow one from {:.1} to {:.1} s; nobody is \
             told, probes find out.",
            seconds(wide.at_ms),
            seconds(wide.back_ms),
            seconds(narrow.at_ms),
            seconds(narrow.back_ms),
        ),
    )
}

/// Means over so many points each, at the first one's time.
fn means(points: &[(f64, f64)], of: usize) -> Vec<(f64, f64)> {
    let mean = |chunk: &[(f64, f64)]| {
        let sum: f64 = chunk.iter().map(|p| p.1).sum();
        (chunk.first().map_or(0.0, |p| p.0), sum / chunk.len().max(1) as f64)
    };
    points.chunks(of).map(mean).collect()
}
