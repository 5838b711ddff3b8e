//! The paper's figures, drawn from the runs.

use super::plan::{ALGORITHMS, NEIGHBOURS, blackout, label};
use super::results::{Results, throughput, usable_kb};
use crate::grid::satellite::WINDOW;
use crate::grid::{Ber, Queue, Reading};
use farpace_report::{Curve, Figure, Level, TimeLine, curves, lines};
use farpace_units::Span;

/// Bins of throughput over time.
const BIN: Span = Span::from_millis(500);

/// All figures, in the order of the paper.
pub fn all(results: &Results) -> Vec<Figure> {
    let mut figures = vec![
        single(results),
        windows(results, Ber::E7, 6, "Windows of single flows, bit error rate 1e-7"),
        windows(results, Ber::Zero, 7, "Windows of single flows without errors"),
        lost_acks(results),
        totals(results, Queue::Large, 10),
        totals(results, Queue::Small, 11),
        shares(results, Queue::Large, 12),
        pair_windows(results, Ber::Zero, Queue::Large, 13),
        pair_windows(results, Ber::E8, Queue::Large, 14),
        estimates(results),
        shares(results, Queue::Small, 16),
        pair_windows(results, Ber::Zero, Queue::Small, 17),
        pair_windows(results, Ber::E8, Queue::Small, 18),
    ];
    figures.extend([mixed(results, Queue::Large, 19), mixed(results, Queue::Small, 20)]);
    figures
}

const BERS: [&str; 5] = {
    let [a, b, c, d, e] = Ber::ALL;
    [a.name(), b.name(), c.name(), d.name(), e.name()]
};

fn over_ber(title: &str, figure: u32, all: &[Curve<'_>], caption: &str) -> Figure {
    let caption = format!("{caption} Means with 95 % confidence intervals (the paper's Fig. {figure}).");
    curves(title, "bit error rate", "goodput (Mbit/s)", &BERS, all)
        .figure(&format!("figures/fig{figure:02}.svg"), &caption)
}

fn single(results: &Results) -> Figure {
    let curve = |(name, label): (&'static str, &'static str)| Curve {
        label,
        points: Ber::ALL.map(|ber| Some(results.single(name, ber).goodput(0).estimate())).into(),
    };
    let caption =
        "A single flow has the link for itself; every loss is a bit error, and none means congestion.";
    over_ber("A single flow", 5, &ALGORITHMS.map(curve), caption)
}

fn totals(results: &Results, queue: Queue, figure: u32) -> Figure {
    let curve = |(name, label): (&'static str, &'static str)| Curve {
        label,
        points: Ber::ALL.map(|ber| Some(results.pair(name, name, ber, queue).total().estimate())).into(),
    };
    let title = format!("Two flows of a kind together, router queue {}", queue.name());
    over_ber(&title, figure, &ALGORITHMS.map(curve), "What two flows of the same kind get together.")
}

fn each_of(results: &Results, first: &str, second: &str, queue: Queue) -> [Curve<'static>; 2] {
    [0, 1].map(|flow| Curve {
        label: "",
        points: Ber::ALL
            .map(|ber| Some(results.pair(first, second, ber, queue).goodput(flow).estimate()))
            .into(),
    })
}

fn shares(results: &Results, queue: Queue, figure: u32) -> Figure {
    let kinds = ["star", NEIGHBOURS[0], NEIGHBOURS[1]];
    let names = kinds.map(|k| [1, 2].map(|n| format!("{} {n}", label(k))));
    let pairs = kinds.map(|k| each_of(results, k, k, queue));
    let all = labelled(pairs.as_flattened(), names.as_flattened());
    let title = format!("Each of two flows of a kind, router queue {}", queue.name());
    over_ber(&title, figure, &all, "Equal flows should get equal shares.")
}

fn mixed(results: &Results, queue: Queue, figure: u32) -> Figure {
    let names =
        NEIGHBOURS.map(|n| [format!("STAR beside {}", label(n)), format!("{} beside STAR", label(n))]);
    let pairs = NEIGHBOURS.map(|n| each_of(results, "star", n, queue));
    let all = labelled(pairs.as_flattened(), names.as_flattened());
    let title = format!("STAR beside others, router queue {}", queue.name());
    over_ber(&title, figure, &all, "What STAR and its neighbour get.")
}

fn labelled<'a>(all: &[Curve<'_>], names: &'a [String]) -> Vec<Curve<'a>> {
    all.iter().zip(names).map(|(c, label)| Curve { label, points: c.points.clone() }).collect()
}

/// A value of each reading over time.
fn over_time<'a>(
    label: &'a str,
    readings: &[Reading],
    value: impl Fn(&Reading) -> Option<f64>,
) -> TimeLine<'a> {
    let point = |r: &Reading| value(r).map(|v| (r.at.as_secs_f64(), v));
    TimeLine { label, points: readings.iter().filter_map(point).collect() }
}

fn product() -> Level<'static> {
    Level { label: "bandwidth-delay product", value: WINDOW.get() as f64 / 1e3 }
}

fn windows(results: &Results, ber: Ber, figure: u32, title: &str) -> Figure {
    let line = |(name, label): (&'static str, &'static str)| {
        over_time(label, results.single(name, ber).readings(0), |r| Some(usable_kb(r)))
    };
    let caption = format!(
        "What each sender may have in flight: its congestion window, as far as the windows of 625 kB let it. One seed \
         (the paper's Fig. {figure})."
    );
    lines(title, "window (kB)", &ALGORITHMS.map(line), Some(&product()))
        .figure(&format!("figures/fig{figure:02}.svg"), &caption)
}

fn pair_windows(results: &Results, ber: Ber, queue: Queue, figure: u32) -> Figure {
    let cell = results.pair("star", "star", ber, queue);
    let line = |(flow, label)| over_time(label, cell.readings(flow), |r| Some(usable_kb(r)));
    let title = format!("Windows of two STAR flows, BER {}, router queue {}", ber.name(), queue.name());
    let caption = format!("As above, one seed (the paper's Fig. {figure}).");
    lines(&title, "window (kB)", &[(0, "STAR 1"), (1, "STAR 2")].map(line), Some(&product()))
        .figure(&format!("figures/fig{figure:02}.svg"), &caption)
}

fn estimates(results: &Results) -> Figure {
    let cell = results.pair("star", "star", Ber::E8, Queue::Large);
    let line = |(flow, label)| {
        over_time(label, cell.readings(flow), |r| r.bandwidth.map(|b| b.as_mbit_f64().min(CUT_OFF)))
    };
    let half = Level { label: "half of the link", value: 5.0 };
    let title = "Bandwidth as two STAR flows estimate it, BER 1e-8, router queue 625 kB";
    lines(title, "estimate (Mbit/s), cut off at 20", &[(0, "STAR 1"), (1, "STAR 2")].map(line), Some(&half))
        .figure(
            "figures/fig15.svg",
            "Data over the time since the last ACK, unfiltered: within a burst of its own ACKs a flow measures the whole \
             link, not its half (the paper's Fig. 15).",
        )
}

/// Estimates from ACKs that come back to back are far higher than any link.
const CUT_OFF: f64 = 20.0;

fn lost_acks(results: &Results) -> Figure {
    let line = |(name, label): (&'static str, &'static str)| TimeLine {
        label,
        points: throughput(results.cell(&blackout(name)).readings(0), BIN),
    };
    lines("Throughput when all ACKs of a second are lost", "Mbit/s in bins of 0.5 s", &ALGORITHMS.map(line), None)
        .figure(
            "figures/fig08.svg",
            "The ACKs of one second are lost, no data is. The timer fires nevertheless. STAR asks with its newest segment \
             what was lost, and goes on with the window it had; the others begin again with slow start (the paper's \
             Fig. 8).",
        )
}
