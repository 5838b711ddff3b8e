//! The report: text, tables and figures.

use super::cases::{Ber, RouterQueue, SatelliteCase, WINDOW};
use super::rows::GAINS;
use super::{ALGORITHMS, NEIGHBOURS, SatellitePaper, blackout, label, pair, sensitivity, single};
use super::{throughput, usable_kb};
use crate::bulk::FlowReading;
use crate::experiment::Measured;
use crate::sweep::Sweep;
use farpace_report::{
    Curve, Figure, Level, Page, ReproductionClaim, Table, TableCell, TimeLine, cells, curves, lines,
};
use farpace_units::Span;

type Satellite<'a> = Measured<'a, SatellitePaper>;

/// Bins of throughput over time.
const BIN: Span = Span::from_millis(500);
/// Estimates from ACKs that come back to back are far higher than any link, in Mbit/s.
const CUT_OFF: f64 = 20.0;

/// The page between verdict and assumptions.
pub fn body(m: &Satellite<'_>, claims: &[ReproductionClaim], page: &mut Page) {
    let [large, small] = RouterQueue::BOTH;
    page.paragraph(
        "A geostationary satellite link: 10 Mbit/s, half a second for a round trip, and bit errors that lose \
         data though nothing is congested. TCP takes every loss for congestion, halves its window, and needs \
         minutes to grow it again. TCP-STAR measures the bandwidth from the ACKs and sets its window by \
         that: it opens at once (LWC), falls no lower than what it measured (CWS), and asks after a timeout \
         whether data or only ACKs were lost (AEN).",
    );
    page.paragraph(&format!(
        "Here the paper's runs are made again in virtual time: {} of them, {} each. Every byte received was \
         compared with the byte sent.",
        m.count(),
        m.of.runs.time
    ));
    page.heading("A single flow").table(&gains(m));
    page.table(&over_rates("A single flow (Fig. 5): goodput", "algorithm", &ALGORITHMS, single, |case| {
        m.flow_goodput(case, 0).text(2)
    }));
    page.figure(&single_flows(m));
    page.figure(&windows(m, Ber::E7, 6, "Windows of single flows, bit error rate 1e-7"));
    page.figure(&windows(m, Ber::Zero, 7, "Windows of single flows without errors"));
    page.heading("Lost ACKs").table(&times(m)).figure(&lost_acks(m)).heading("Two flows in one router");
    for (queue, figure) in [(large, 10), (small, 11)] {
        let title = format!("Two flows of a kind, queue {} (Fig. {figure}): goodput together", queue.name());
        let case = |name: &str, ber| pair(name, name, ber, queue);
        page.table(&over_rates(&title, "algorithm", &ALGORITHMS, case, |case| m.total(case).text(2)));
    }
    page.figure(&totals(m, large, 10)).figure(&totals(m, small, 11));
    page.heading("Fairness").table(&share_table(m, large)).figure(&shares(m, large, 12));
    page.figure(&pair_windows(m, Ber::Zero, large, 13)).figure(&pair_windows(m, Ber::E8, large, 14));
    page.figure(&estimates(m)).table(&share_table(m, small)).figure(&shares(m, small, 16));
    page.figure(&pair_windows(m, Ber::Zero, small, 17)).figure(&pair_windows(m, Ber::E8, small, 18));
    page.figure(&mixed(m, large, 19)).figure(&mixed(m, small, 20));
    page.heading("Claims").claims(claims);
    if !m.of.quick {
        open_points(m, page);
    }
}

/// Parameter sweeps over what the paper leaves open.
fn open_points(m: &Satellite<'_>, page: &mut Page) {
    page.heading("What the paper leaves open about STAR").paragraph(
        "The paper prints no smoothing formula, changes the interval taken for the first ACK from 1 us to 1 \
         ms by experiment, and bounds the window by the sockets alone. How much each of these matters:",
    );
    page.table(&sensitivity::filter_table(m)).paragraph(
        "The filter matters most, and to TCP-J more than to STAR. When a segment is lost, the next one makes \
         the receiver send the ACK that it was delaying, for one segment after the time of three. That is a \
         sample of a third of the rate, the last one before the loss asks for the estimate. With any filter \
         TCP-J keeps its window, and STAR's gain over it is near the paper's. So the paper's estimator must \
         have had one.",
    );
    page.table(&sensitivity::estimator_table(m)).paragraph(
        "Nor does it print the rate of the links to the router. STAR opens its window at once, so that \
         hundreds of segments leave together: in a queue of 15 kB all but ten of them are lost, and after \
         the timeout the same happens again. Slower access links, or pacing, spread them out.",
    );
    page.table(&sensitivity::burst_table(m));
}

/// The gains at 1e-8.
pub fn gains(m: &Satellite<'_>) -> Table {
    let mut table = Table::with(
        "How much faster STAR is alone at BER 1e-8",
        "STAR over | paper [%] | measured [%] | 95 % confidence [± points]",
    );
    for (other, paper) in GAINS {
        let gain = TableCell::signed(m.gain(other), 1);
        table.row(cells![label(other), format!("{paper:+.1}"), gain, (m.gain_ci95(other), 1)]);
    }
    table
}

/// A row per algorithm, a column per bit error rate.
fn over_rates(
    title: &str,
    first: &str,
    rows: &[(&str, &str)],
    case: impl Fn(&str, Ber) -> SatelliteCase,
    cell: impl Fn(&SatelliteCase) -> String,
) -> Table {
    let mut table = Table::with(title, first);
    for name in Ber::NAMES {
        table.column(&format!("BER {name}"), "Mbit/s");
    }
    let mut sweep = Sweep::new();
    rows.iter().for_each(|(name, label)| sweep.row([*label], Ber::ALL.map(|ber| case(name, ber))));
    sweep.fill(table, |case| cell(case).into())
}

/// Figs. 7 and 8.
fn times(m: &Satellite<'_>) -> Table {
    let mut table = Table::with(
        "A single flow without errors (Figs. 7, 8)",
        "algorithm | window fills the path [s] | back after lost ACKs [s] | timeouts then []",
    );
    for (name, label) in ALGORITHMS {
        let timeouts = m.first(&blackout(name)).and_then(|m| m.flows.first()).map(|f| f.timeouts);
        let [filled, after] = [m.fills_at(name), m.recovers_after(name)].map(|s| s.map(|s| (s, 2)));
        table.row(cells![label, filled, after, timeouts]);
    }
    table
}

/// Figs. 12, 16, 19 and 20: the shares of two flows.
fn share_table(m: &Satellite<'_>, queue: RouterQueue) -> Table {
    let figures = if queue == RouterQueue::Large { "12, 19" } else { "16, 20" };
    let title = format!("Each of two flows, queue {} (Figs. {figures}): goodput, Jain's index", queue.name());
    let twins = ALGORITHMS.map(|(name, label)| ((name, name), format!("{label} / {label}")));
    let mixed = NEIGHBOURS.map(|name| (("star", name), format!("STAR / {}", label(name))));
    let mut table = Table::with(title, "flows");
    for name in Ber::NAMES {
        table.column(&format!("BER {name}"), "Mbit/s");
    }
    let mut sweep = Sweep::new();
    for ((first, second), words) in twins.iter().chain(&mixed) {
        sweep.row([words.as_str()], Ber::ALL.map(|ber| pair(first, second, ber, queue)));
    }
    sweep.fill(table, |case| {
        let [a, b] = [0, 1].map(|flow| m.flow_goodput(case, flow).mean);
        let same = case.senders.first() == case.senders.last();
        let jain = if same { format!(" ({:.3})", m.fairness(case).mean) } else { String::new() };
        format!("{a:.2} / {b:.2}{jain}").into()
    })
}

fn over_ber(title: &str, figure: u32, all: &[Curve<'_>], caption: &str) -> Figure {
    let caption = format!("{caption} Means with 95 % confidence intervals (the paper's Fig. {figure}).");
    curves(title, "bit error rate", "goodput (Mbit/s)", &Ber::NAMES, all)
        .figure(&format!("figures/fig{figure:02}.svg"), &caption)
}

fn single_flows(m: &Satellite<'_>) -> Figure {
    let all = ALGORITHMS.map(|(name, label)| {
        let point = |ber| Some(m.flow_goodput(&single(name, ber), 0).estimate());
        Curve { label, points: Ber::ALL.map(point).into() }
    });
    let caption =
        "A single flow has the link for itself; every loss is a bit error, and none means congestion.";
    over_ber("A single flow", 5, &all, caption)
}

fn totals(m: &Satellite<'_>, queue: RouterQueue, figure: u32) -> Figure {
    let all = ALGORITHMS.map(|(name, label)| {
        let point = |ber| Some(m.total(&pair(name, name, ber, queue)).estimate());
        Curve { label, points: Ber::ALL.map(point).into() }
    });
    let title = format!("Two flows of a kind together, router queue {}", queue.name());
    over_ber(&title, figure, &all, "What two flows of the same kind get together.")
}

/// Each flow of some pairs; labels of both flows stand beside the names of the pair.
fn each_flow(
    m: &Satellite<'_>,
    pairs: &[([&str; 2], [String; 2])],
    queue: RouterQueue,
    figure: u32,
    title: &str,
    caption: &str,
) -> Figure {
    let curves = pairs.iter().flat_map(|([first, second], labels)| {
        [0, 1].map(|flow| {
            let point = |ber| Some(m.flow_goodput(&pair(first, second, ber, queue), flow).estimate());
            Curve { label: &labels[flow], points: Ber::ALL.map(point).into() }
        })
    });
    let title = format!("{title}, router queue {}", queue.name());
    over_ber(&title, figure, &curves.collect::<Vec<_>>(), caption)
}

fn shares(m: &Satellite<'_>, queue: RouterQueue, figure: u32) -> Figure {
    let kinds = ["star", NEIGHBOURS[0], NEIGHBOURS[1]];
    let pairs = kinds.map(|k| ([k, k], [1, 2].map(|n| format!("{} {n}", label(k)))));
    let caption = "Equal flows should get equal shares.";
    each_flow(m, &pairs, queue, figure, "Each of two flows of a kind", caption)
}

fn mixed(m: &Satellite<'_>, queue: RouterQueue, figure: u32) -> Figure {
    let pairs = NEIGHBOURS.map(|name| {
        let other = label(name);
        (["star", name], [format!("STAR beside {other}"), format!("{other} beside STAR")])
    });
    each_flow(m, &pairs, queue, figure, "STAR beside others", "What STAR and its neighbour get.")
}

/// A value of each reading over time.
fn over_time<'a>(
    label: &'a str,
    readings: &[FlowReading],
    value: impl Fn(&FlowReading) -> Option<f64>,
) -> TimeLine<'a> {
    let point = |r: &FlowReading| value(r).map(|v| (r.at().as_secs_f64(), v));
    TimeLine { label, points: readings.iter().filter_map(point).collect() }
}

const PRODUCT: Level<'static> = Level { label: "bandwidth-delay product", value: WINDOW.get() as f64 / 1e3 };
const STARS: [(usize, &str); 2] = [(0, "STAR 1"), (1, "STAR 2")];

fn windows(m: &Satellite<'_>, ber: Ber, figure: u32, title: &str) -> Figure {
    let all = ALGORITHMS
        .map(|(name, label)| over_time(label, m.readings(&single(name, ber), 0), |r| Some(usable_kb(r))));
    let caption = format!(
        "What each sender may have in flight: its congestion window, as far as the windows of 625 kB let it. \
         One seed (the paper's Fig. {figure})."
    );
    lines(title, "window (kB)", &all, Some(&PRODUCT)).figure(&format!("figures/fig{figure:02}.svg"), &caption)
}

fn pair_windows(m: &Satellite<'_>, ber: Ber, queue: RouterQueue, figure: u32) -> Figure {
    let case = pair("star", "star", ber, queue);
    let all = STARS.map(|(flow, label)| over_time(label, m.readings(&case, flow), |r| Some(usable_kb(r))));
    let title = format!("Windows of two STAR flows, BER {}, router queue {}", ber.name(), queue.name());
    let caption = format!("As above, one seed (the paper's Fig. {figure}).");
    lines(&title, "window (kB)", &all, Some(&PRODUCT))
        .figure(&format!("figures/fig{figure:02}.svg"), &caption)
}

fn estimates(m: &Satellite<'_>) -> Figure {
    let case = pair("star", "star", Ber::E8, RouterQueue::Large);
    let value = |r: &FlowReading| r.bandwidth_mbit().map(|mbit| mbit.min(CUT_OFF));
    let all = STARS.map(|(flow, label)| over_time(label, m.readings(&case, flow), value));
    let half = Level { label: "half of the link", value: 5.0 };
    let title = "Bandwidth as two STAR flows estimate it, BER 1e-8, router queue 625 kB";
    lines(title, "estimate (Mbit/s), cut off at 20", &all, Some(&half)).figure(
        "figures/fig15.svg",
        "Data over the time since the last ACK, unfiltered: within a burst of its own ACKs a flow measures \
         the whole link, not its half (the paper's Fig. 15).",
    )
}

fn lost_acks(m: &Satellite<'_>) -> Figure {
    let all = ALGORITHMS
        .map(|(name, label)| TimeLine { label, points: throughput(m.readings(&blackout(name), 0), BIN) });
    lines("Throughput when all ACKs of a second are lost", "Mbit/s in bins of 0.5 s", &all, None).figure(
        "figures/fig08.svg",
        "The ACKs of one second are lost, no data is. The timer fires nevertheless. STAR asks with its \
         newest segment what was lost, and goes on with the window it had. The others begin again with slow \
         start (the paper's Fig. 8).",
    )
}
