//! The report: text, tables and figures.

use super::cases::{ALONE, FIG_10, IDLE, NicsCase, PUBLISHED, RATIOS, UDP, WINDOW};
use super::sets::{FAILING, ReceivingHost, failure_case, failures};
use super::striped::StripedRun;
use super::{MeasuredNics, extensions, sensitivity};
use crate::observe::means;
use crate::statistics::point;
use farpace_report::{
    Curve, Figure, HeatRow, Level, LinePanel, Page, ReproductionClaim, StyledLine, Table, TimeLine, cells,
    curves, heat_map, line_panels, lines, styles,
};

/// How much of Fig. 10 is drawn from the middle on, in seconds, so that single cuts can be seen.
const WINDOWS: f64 = 0.1;

/// The page between verdict and assumptions.
pub fn body(m: &MeasuredNics<'_>, claims: &[ReproductionClaim], page: &mut Page) {
    page.paragraph(
        "Two hosts have a fast and a slow NIC each, one IP address, one switch. If the frames of a \
         connection go by both NICs in turn, those by the slow one arrive late. The receiver acknowledges \
         what came before them again and again, the sender takes them for lost, retransmits them and halves \
         its window. The paper sends a frame for the slow NIC ahead of its turn, by a skip number S, so that \
         it arrives in its turn.",
    );
    page.paragraph(&format!(
        "Here its measurements are made again in virtual time, {} runs, {} each. Every byte received was \
         compared with the byte sent.",
        m.count(),
        m.of.time,
    ));
    page.heading("What the paper printed").table(&published(m)).paragraph(&costs(m));
    page.figure(&goodput(m)).figure(&resent(m));
    let [none, some] = m.windows();
    page.finding(&format!(
        "Mean window: {none:.1} segments at S = 0, {some:.1} at S = 8: {:.1} times as large (paper: \
         {WINDOW}).",
        some / none
    ));
    page.figure(&windows(m)).heading("Claims").claims(claims);
    if !m.of.quick {
        page.heading("What the paper leaves open").paragraph(
            "One assumption is changed at a time, and each row is measured at ten skip numbers. The last two \
             columns are without an observer.",
        );
        page.table(&sensitivity::table(m)).paragraph(
            "The floor of S + 1 segments below the window is not enough. With S frames held back, a single \
             segment has arrived, and a receiver that acknowledges every second one waits for the other. \
             Both wait until the 10 ms are over. With S + 2 nobody waits.",
        );
    }
    page.heading("Other NICs, other orders").paragraph(
        "Nothing differs but the order in which frames leave, and by which NIC. \"earliest\" (farpace's \
         default) gives a NIC that falls idle the frame that would arrive in its turn. \"skip\" works S out \
         from rates and hops. \"round-robin\" is what Linux calls balance-rr, by shares. \"flow-hash\" keeps \
         a connection to one NIC, as 802.3ad does. \"min-rtt\", \"blest\" and \"ecf\" are schedulers of \
         Multipath TCP. TCP is as it is.",
    );
    page.figure(&orders(m));
    for receiver in ReceivingHost::BOTH {
        page.table(&extensions::orders(m, receiver));
    }
    page.table(&extensions::earliest(m)).paragraph(
        "Delay is the smoothed round trip above its least. Most of it is data that waits before the NICs, \
         because TCP sends as much as its buffers allow.",
    );
    if !m.of.quick {
        page.paragraph(
            "Profile modern finds losses by time (RACK). Once it has seen reordering, what is later than a \
             quarter of the least round trip is lost to it: 12 us on a switch, the time of one full frame at \
             1 Gbit/s. It takes some tenths of a second until it has learned to wait. TCPs that count three \
             duplicate ACKs are not deceived by a frame that is one place late.",
        );
        page.table(&extensions::tcps(m)).table(&extensions::others(m));
    }
    page.heading("A NIC fails").figure(&failure(m)).heading("Skip numbers").table(&skips(m));
}

/// What the paper prints, and the same here.
pub fn published(m: &MeasuredNics<'_>) -> Table {
    let mut table = Table::with(
        "What the paper prints",
        "what | paper [Mbit/s] | here [Mbit/s] | paper [% again] | here [% again]",
    );
    for (row, case) in PUBLISHED.iter().zip([NicsCase::at_90, NicsCase::at_90, NicsCase::at_99]) {
        let case = case(row.skip);
        table.row(cells![
            format!("TCP, {}, S = {}", row.ratio, row.skip),
            (row.goodput, 0),
            (m.total(&case), 0),
            row.resent.map(|r| (r, 2)),
            (m.of_first(&case, StripedRun::resent_percent), 2),
        ]);
    }
    table.row(cells!["TCP, the wide NIC alone", (ALONE, 0), (m.total(&NicsCase::alone(IDLE)), 0)]);
    table.row(cells!["UDP, 90/10", (UDP, 0), (m.udp(RATIOS[0]), 0)]);
    table
}

/// What frames cost the hosts, and what that gives.
fn costs(m: &MeasuredNics<'_>) -> String {
    let (udp, alone) = (m.udp("90/10"), m.total(&NicsCase::alone(IDLE)));
    let near = |measured: f64, paper: f64| (measured / paper - 1.0).abs() < 0.01;
    let calibrated = near(udp, UDP) && near(alone, ALONE);
    format!(
        "The hosts are not described. Two of their speeds are: UDP over both NICs and TCP over the wide NIC \
         alone. They give what a frame and an ACK cost, 12.9 and 7.8 us; {} here, which is no result, but a \
         check. What the program cost that observed retransmissions is worked out from the best speed with \
         it, in the same way: 9.5 us for each frame and ACK. The rest of this page follows. At 99.6/0.4 \
         there is no observer. UDP and the NIC alone: {udp:.0} and {alone:.0} Mbit/s.",
        if calibrated { "both speeds come out" } else { "the speeds do NOT come out" },
    )
}

/// Fig. 9 as numbers.
fn skips(m: &MeasuredNics<'_>) -> Table {
    let mut table = Table::with(
        "Skip numbers (Fig. 9)",
        "S [] | 90/10, observed [Mbit/s] | sent again [%] | mean window [segments] | 99.6/0.4 [Mbit/s] | \
         sent again [%]",
    );
    for &skip in &m.of.skips {
        let [first, second] = [NicsCase::at_90(skip), NicsCase::at_99(skip)];
        let resent = |case| (m.of_first(case, StripedRun::resent_percent), 2);
        table.row(cells![
            u64::from(skip),
            (m.total(&first), 1),
            resent(&first),
            (m.of_first(&first, |m| m.window), 1),
            (m.total(&second), 1),
            resent(&second),
        ]);
    }
    table
}

/// A number by skip number, with those that the paper prints for 90/10.
fn over_skips(
    m: &MeasuredNics<'_>,
    title: &str,
    y: &str,
    of: fn(&StripedRun) -> f64,
    paper: impl Fn(u16) -> Option<f64>,
    [file, caption]: [&str; 2],
) -> Figure {
    let names: Vec<String> = m.of.skips.iter().map(u16::to_string).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let curve = |label, case: fn(u16) -> NicsCase| {
        let points = m.of.skips.iter().map(|skip| point(m.of_first(&case(*skip), of)));
        Curve { label, points: points.collect() }
    };
    let points = m.of.skips.iter().map(|skip| paper(*skip).and_then(point)).collect();
    let all = [
        curve("90/10, observed", NicsCase::at_90),
        curve("99.6/0.4, not observed", NicsCase::at_99),
        Curve { label: "paper, 90/10", points },
    ];
    curves(title, "skip number S (at equal distances)", y, &names, &all).figure(file, caption)
}

fn goodput(m: &MeasuredNics<'_>) -> Figure {
    let paper = |skip| PUBLISHED[..2].iter().find(|p| p.skip == skip).map(|p| p.goodput);
    let text = [
        "figures/fig09-goodput.svg",
        "One connection over both NICs. Up to the best S, frames of the narrow NIC come too late and are \
         retransmitted. Beyond it they come early, and what comes early is acknowledged at once, segment by \
         segment, which costs the hosts time (the paper's Fig. 9, of which two points are printed).",
    ];
    over_skips(m, "Goodput by skip number", "goodput (Mbit/s)", StripedRun::total, paper, text)
}

fn resent(m: &MeasuredNics<'_>) -> Figure {
    let paper = |skip| PUBLISHED[..2].iter().find(|p| p.skip == skip).and_then(|p| p.resent);
    let text = [
        "figures/fig09-again.svg",
        "Not one segment was lost: all retransmissions are spurious. From S = 20 on three frames of the \
         narrow NIC may be there ahead of their turn, which looks like a loss as well (the paper's Fig. 9, \
         of which two points are printed).",
    ];
    let (title, y) = ("Sent again by skip number", "segments sent again (%)");
    over_skips(m, title, y, StripedRun::resent_percent, paper, text)
}

fn windows(m: &MeasuredNics<'_>) -> Figure {
    let names = FIG_10.map(|skip| format!("S = {skip}"));
    let from = m.of.time.as_secs_f64() / 2.0;
    let all: Vec<StyledLine<'_>> = FIG_10
        .iter()
        .zip(&names)
        .zip(styles(names.iter().map(String::as_str)))
        .map(|((skip, label), style)| {
            let points = m.first(&NicsCase::fig_10(*skip)).map_or(&[][..], |m| &m.windows);
            let drawn = points.iter().filter(|(at, _)| (from..from + WINDOWS).contains(at));
            StyledLine { label, style, points: drawn.copied().collect() }
        })
        .collect();
    let panel = LinePanel { heading: "", y_label: "segments", lines: all, level: None };
    line_panels("Window over time", "time since start (s)", &[panel]).figure(
        "figures/fig10.svg",
        "What may be in flight, 90/10, observed, with a receive window of 32 kB: a tenth of a second in the \
         middle (the paper's Fig. 10, whose axes are not known).",
    )
}

fn orders(m: &MeasuredNics<'_>) -> Figure {
    let heads = [&m.of.orders[..], &["earliest, in order"]].concat();
    let rows = m.of.all_sets().map(|set| {
        let stock = m.of.orders.iter().map(|order| set.case(order, ReceivingHost::Stock));
        let cases = stock.chain([set.case("earliest", ReceivingHost::Resequences)]);
        let value = |case: NicsCase| Some(m.share(set, &case)).filter(|share| share.is_finite());
        HeatRow { label: set.id, values: cases.map(value).collect() }
    });
    let rows: Vec<HeatRow<'_>> = rows.collect();
    heat_map("One connection, share of the sum of all lines", ["share, %", "–"], &heads, &rows).figure(
        "figures/orders.svg",
        "NICs in Mbit/s, and orders. Receivers as they are, but in the last column, where they put frames in \
         order. 100 % is what all lines together carry of TCP's payload.",
    )
}

fn failure(m: &MeasuredNics<'_>) -> Figure {
    let rates = m.first(&failure_case(m.of.quick)).map(|m| m.rates.clone()).unwrap_or_default();
    let [wide, narrow] = failures(m.of.quick).map(|f| {
        let [at, back] = [f.at_ms, f.back_ms].map(|ms| f64::from(ms) / 1e3);
        format!("{at:.1} to {back:.1} s")
    });
    let level = Level { label: "both NICs", value: FAILING.payload() };
    let all = [TimeLine { label: "goodput", points: means(&rates, 5) }];
    lines("A NIC fails and returns", "Mbit/s in bins of 10 ms", &all, Some(&level)).figure(
        "figures/failure.svg",
        &format!(
            "1 Gbit/s and 100 Mbit/s, order \"earliest\". The wide NIC is down from {wide}, the narrow one \
             from {narrow}; nobody is told, probes find out."
        ),
    )
}
